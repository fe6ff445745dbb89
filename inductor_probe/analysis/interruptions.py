"""Graph breaks and recompiles of a run: which value of the user's it was, and what would avoid it.

A guard that failed is read as dynamo prints it (`get_guard_fail_reason` of torch/_dynamo/guards.py, and the
messages of torch/csrc/dynamo/guards.cpp):

    1/0: self.temperature == 0.5  # return x / self.temperature  # net.py:17 in forward
    0/0: tensor 'x' size mismatch at index 0. expected 4, actual 6

of which the first is a `number`, `self.temperature`, at net.py:17, and the second a `size` of `x`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from inductor_probe.model.interruption import Interruption, InterruptionCause, InterruptionKind, Remedy
from inductor_probe.model.manifest import Manifest

_GUARD = re.compile(
    r"(?:\d+/\d+: )?(?P<guard>.*?)(?:  # (?P<code>.*?)  # (?P<where>\S+:\d+) in \S+)?(?: \(HINT.*)?",
    re.DOTALL,
)
_TENSOR = re.compile(
    r"tensor '(?P<value>.*?)' "
    r"(?P<what>size|rank|dtype|stride|requires_grad|Tensor device index|dispatch key set) mismatch"
)
_EQUAL = re.compile(r"(?P<value>.+?) == (?P<literal>.+)")
_LENGTH = re.compile(r"(?:not )?len\((?P<value>.+?)\) ==|___dict_contains\(|not (?P<empty>[\w.\[\]']+)$")
_CALL = re.compile(r"___(?:check_obj_id|check_type_id|check_function\w*)\((?P<value>[^,]+),")
_CODE = re.compile(r"\.__(?:code|closure|defaults|kwdefaults)__.*")
_OF_TENSOR: dict[str, InterruptionCause] = {
    "size": "size", "rank": "rank", "dtype": "dtype", "stride": "stride", "requires_grad": "requires-grad",
    "Tensor device index": "device", "dispatch key set": "dispatch-keys",
}  # fmt: skip
_STATIC = ("dynamo.assume_static_by_default", "False")
"""What `torch.compile(dynamic=True)` sets: `make_set_enable_dynamic` of torch/_dynamo/eval_frame.py."""
_REMEDIES: dict[InterruptionCause, tuple[Remedy, ...]] = {
    "size": (Remedy("mark-dynamic"), Remedy("dynamic", _STATIC)),
    "dtype": (Remedy("same-form"),),
    "device": (Remedy("same-form"),),
    "requires-grad": (Remedy("one-mode"),),
    "dispatch-keys": (Remedy("one-mode"),),
    "stride": (Remedy("contiguous"), Remedy("dynamic", _STATIC)),
    "integer": (Remedy("dynamic", _STATIC), Remedy("tensor")),
    "integer-attribute": (Remedy("unspecialise", ("dynamo.allow_unspec_int_on_nn_module", "True")),),
    "number": (Remedy("buffer"),),
    "flag": (Remedy("one-value"),),
    "length": (Remedy("one-length"),),
    "object": (Remedy("define-once"),),
    "grad-mode": (Remedy("one-mode"),),
    "branch": (Remedy("where"),),
    "scalar": (Remedy("capture-scalars", ("dynamo.capture_scalar_outputs", "True")),),
    "output-size": (Remedy("capture-sizes", ("dynamo.capture_dynamic_output_shape_ops", "True")),),
    "call": (Remedy("move-out"),),
    "limit": (Remedy("raise-limit"),),
}
"""For each cause what avoids it, in the order in which one would try."""
_BREAKS: tuple[tuple[str, InterruptionCause], ...] = (
    ("data-dependent branching", "branch"),
    ("data-dependent jump", "branch"),
    ("Tensor.item()", "scalar"),
    (".tolist()", "scalar"),
    ("scalar output", "scalar"),
    ("dynamic shape operator", "output-size"),
    ("data dependent operator", "scalar"),
)
"""How reasons of graph breaks begin or what they have in them: torch/_dynamo/graph_break_registry.json."""


def interruptions(manifest: Manifest | None) -> tuple[Interruption, ...]:
    """Return graph breaks and recompiles of a run, each value and place once, the most frequent first."""
    if manifest is None:
        return ()
    found: dict[tuple[str, str, str], Interruption] = {}
    for one in (*_recompiles(manifest), *_breaks(manifest), *_limits(manifest)):
        before = found.get(one.key)
        if before is None:
            found[one.key] = one
        else:
            found[one.key] = replace(
                before, times=before.times + one.times, graphs=(*before.graphs, *one.graphs)
            )
    return tuple(sorted(found.values(), key=lambda one: -one.times))


def _recompiles(manifest: Manifest) -> Iterator[Interruption]:
    for graph in manifest.graphs:
        if graph.why == "recompile" and graph.guards:
            yield replace(recompile_of(graph.guards[0]), graphs=(graph.name,))


def recompile_of(text: str) -> Interruption:
    """Return what a guard that failed is about, by dynamo's words."""
    match = _GUARD.fullmatch(text.strip())
    guard, code, where = (match["guard"], match["code"], match["where"]) if match else (text, "", "")
    cause, value = _value_of(guard)
    return _made("recompile", cause, value, guard, (where or "", code or ""))


def _value_of(guard: str) -> tuple[InterruptionCause, str]:
    if tensor := _TENSOR.match(guard):
        return _OF_TENSOR[tensor["what"]], tensor["value"]
    if "grad_mode" in guard:
        return "grad-mode", ""
    if call := _CALL.match(guard):
        value = _CODE.sub("", call["value"])
        return ("type" if guard.startswith("___check_type_id") else "object"), value
    if length := _LENGTH.match(guard):
        return "length", length["value"] or length["empty"] or ""
    if equal := _EQUAL.fullmatch(guard):
        return _of_literal(equal["value"], equal["literal"]), equal["value"]
    return "other", ""


def _of_literal(value: str, literal: str) -> InterruptionCause:
    if re.fullmatch(r"-?\d+", literal):
        return "integer-attribute" if re.match(r"self\.|.*\]\.", value) else "integer"
    if re.fullmatch(r"-?(\d+\.\d*|\.\d+|\d+)(e[-+]?\d+)?|-?inf|nan", literal):
        return "number"
    return "flag" if literal in ("True", "False", "None") or literal[:1] in "'\"" else "other"


def _breaks(manifest: Manifest) -> Iterator[Interruption]:
    for broken in manifest.graph_breaks:
        reason = broken.reason.splitlines()[0]
        lower = broken.reason.lower()
        cause: InterruptionCause = next((cause for words, cause in _BREAKS if words.lower() in lower), "call")
        yield _made("graph-break", cause, "", reason, (broken.where or "", ""))


def _limits(manifest: Manifest) -> Iterator[Interruption]:
    for hit in manifest.limit_hits:
        yield _made("recompile-limit", "limit", hit.function, "", (hit.where or "", ""))


def _made(
    kind: InterruptionKind, cause: InterruptionCause, value: str, reason: str, line: tuple[str, str]
) -> Interruption:
    remedies, (where, code) = _REMEDIES.get(cause, ()), line
    return Interruption(kind, cause, value, reason, where.rpartition("/")[2], code, remedies=remedies)


def settings_of(found: Sequence[Interruption]) -> tuple[tuple[str, str], ...]:
    """Return the settings that stand for remedies, each once."""
    remedies = (remedy for one in found for remedy in one.remedies)
    return tuple(dict.fromkeys(remedy.setting for remedy in remedies if remedy.setting is not None))


def checked(before: Sequence[Interruption], after: Sequence[Interruption]) -> tuple[Interruption, ...]:
    """Return what there was, its remedies with whether it was gone in a dump with their settings.

    Sizes that are dynamic from the start make fewer graphs, so that a value that was seen in one of several
    frames alone may be seen in others: what counts is whether it is as frequent as before.
    """
    left = {one.key: one.times for one in after}
    return tuple(
        replace(
            one,
            remedies=tuple(
                replace(remedy, checked=left.get(one.key, 0) == 0) if remedy.setting else remedy
                for remedy in one.remedies
            ),
        )
        for one in before
    )
