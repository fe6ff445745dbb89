"""Words for graph breaks and recompiles, and for what avoids them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from inductor_probe.model.interruption import Interruption, InterruptionCause, Remedy, RemedyCode

_CAUSES: Mapping[InterruptionCause, str] = {
    "size": "the size of {value} changed",
    "rank": "{value} had another number of dimensions",
    "dtype": "{value} had another dtype",
    "stride": "the strides of {value} changed",
    "requires-grad": "{value} requires a gradient in some calls",
    "device": "{value} was on another device",
    "dispatch-keys": "{value} had other dispatch keys (a subclass, inference mode or autograd)",
    "integer": "the integer {value} changed",
    "integer-attribute": "the integer {value} of a module changed",
    "number": "the number {value} changed",
    "flag": "{value} changed",
    "length": "{value} had another length",
    "object": "{value} was another object",
    "type": "{value} had another type",
    "grad-mode": "autograd was on in some calls and off in others",
    "branch": "a branch on the values of a tensor",
    "scalar": "a value was taken out of a tensor",
    "output-size": "an operator's output size depends on values",
    "call": "{reason}",
    "limit": "{value} was compiled as often as torch allows, and ran eagerly from then on",
    "other": "{reason}",
}
_REMEDIES: Mapping[RemedyCode, str] = {
    "mark-dynamic": "torch._dynamo.mark_dynamic({value}, DIM) before the first call",
    "dynamic": "torch.compile(..., dynamic=True)",
    "tensor": "pass a tensor instead",
    "buffer": "make it a tensor: self.register_buffer, or an argument",
    "same-form": "convert it before the call",
    "contiguous": "give it one memory format before the call: .contiguous()",
    "one-value": "each value is a graph: set it before the first call, or use torch.where over a tensor",
    "unspecialise": "torch._dynamo.config.allow_unspec_int_on_nn_module = True",
    "one-length": "pass one stacked tensor, or lists of one length",
    "define-once": "define it once, outside of the code that calls",
    "one-mode": "call it with gradients or without, not both",
    "where": "torch.where over both, or torch.cond",
    "capture-scalars": "torch._dynamo.config.capture_scalar_outputs = True",
    "capture-sizes": "torch._dynamo.config.capture_dynamic_output_shape_ops = True",
    "move-out": "move it out of the compiled function, or torch.compiler.disable it by itself",
    "raise-limit": "avoid the recompiles above it; torch._dynamo.config.recompile_limit allows more",
}


def interruption_sentence(one: Interruption) -> str:
    """`compiled again 2 times: the size of x changed (net.py:17)`."""
    times = "" if one.times == 1 else f" {one.times} times"
    what = {
        "recompile": f"compiled again{times}: ",
        "graph-break": f"graph break{times}: ",
        "recompile-limit": "",
    }[one.kind]
    where = f" ({one.where})" if one.where else ""
    reason = one.reason.partition(". ")[0]
    return f"{what}{_CAUSES[one.cause].format(value=one.value or 'a value', reason=reason)}{where}"


def with_sentences(one: Interruption) -> Interruption:
    """Return it with its sentences."""
    remedies = (replace(remedy, text=remedy_text(one, remedy)) for remedy in one.remedies)
    return replace(one, text=interruption_sentence(one), remedies=tuple(remedies))


def best_remedy(one: Interruption) -> Remedy | None:
    """Return the one that was seen to work, or else the first."""
    return next((remedy for remedy in one.remedies if remedy.checked), next(iter(one.remedies), None))


def remedy_text(one: Interruption, remedy: Remedy) -> str:
    """Return what to do, and whether that was tried."""
    text = _REMEDIES[remedy.code].format(value=one.value or "it")
    if remedy.checked is None:
        return text
    return f"{text} [checked: {'it is gone' if remedy.checked else 'it is still there'}]"
