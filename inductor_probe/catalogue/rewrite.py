"""Rewrites of the FX graph: torch/_inductor/fx_passes and pattern_matcher.py.

Of them only a copy in place of a write is a missed optimisation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.catalogue.entries import By, Cause, Kind, Operand, Outcome, Source, alike
from inductor_probe.catalogue.shared import unless
from inductor_probe.model.decision import Decision


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    """Name operators without their overloads, and the pass with its stage; count names that are left out."""
    derived = {name: _whole(name, operands) for name in ("nodes", "by") if name in operands}
    derived |= {
        name: tuple(dict.fromkeys(_packet(operator) for operator in operands.get(name, ())))
        for name in ("operators", "by_operators")
    }
    stage = str(operands.get("stage", "")).replace("_", " ")
    name = operands.get("pass", "?")
    gone = len(derived.get("nodes", ()))
    return {
        **derived,
        "n_gone": gone,
        "place": f"{name} ({stage})" if stage else name,
    }


def _whole(name: str, operands: Mapping[str, Any]) -> tuple[str, ...]:
    """Return names as many as there were: those that no operand has are behind all that are shown."""
    names = tuple(operands[name])
    return (*names, *[""] * (operands.get(f"{name}_count", len(names)) - len(names)))


def _packet(operator: str) -> str:
    return operator.rpartition(".")[0] if operator.count(".") > 1 else operator


def _is_patterns(decision: Decision) -> bool:
    """Whether `config.pattern_matcher` turns the pass on, and `disabled_passes` leaves it out."""
    return str(decision.operand("pass")).startswith("pass_pattern_")


def _is_random(decision: Decision) -> bool:
    return str(decision.operand("pass")).startswith("fuse_seed") or decision.operand("pattern") == _RANDOM


def _pass(decision: Decision) -> str:
    return repr(decision.operand("pass"))


_RANDOM = "replace_random"
_EAGER_RANDOM = By(
    "fallback_random",
    "True",
    "calls torch for random numbers, which are then those of eager mode",
    differs=True,
    applies=_is_random,
)
_LEAVE_OUT = "leaves out the pass, of joint and post-grad passes all of that name"
_PADDING = "pads matrix products where that is faster"
_FORCE = "pads matrix products whether or not it is faster; time it"
_PAD = By("force_shape_pad", "True", _FORCE)
_KEEP_CONSTANTS = By("joint_graph_constant_folding", "False", "keeps what is computed of constants alone")
_CHANGE_INPUT = Source(
    "change-input", "change the input in place (index_put_), if the caller allows for it", differs=True
)

_APPLY = "pattern_matcher.py:PatternMatcherPass.apply"
_SHOULD_PAD = "fx_passes/pad_mm.py:_should_pad"
_IS_PADDED_FASTER = "fx_passes/pad_mm.py:is_padded_faster"
_CONSTANT_FOLD_UNIFORM_VALUE = "fx_passes/joint_graph.py:constant_fold_uniform_value"
_REINPLACE_INPLACEABLE_OPS_CORE = "fx_passes/reinplace.py:reinplace_inplaceable_ops_core"

OPERANDS = (
    Operand("pass", "text", "of torch, or of a setting"),
    Operand("stage", "text", "pre_grad, joint_graph or post_grad"),
    Operand("nodes", "names", "that are gone, or that stayed"),
    Operand("operators", "names", "what they call"),
    Operand("by", "names", "what took their place"),
    Operand("by_operators", "names", "what those call"),
    Operand("sources", "names", "lines of the user's that nodes come from"),
    *alike("nodes_count operators_count by_count by_operators_count sources_count", "int",
        "of a list that does not name all"),
    Operand("pattern", "text", "the function of its name"),
    Operand("patterns", "names", "that matched"),
    Operand("there", "int", "of the pattern, before the first that is not", "nodes"),
    Operand("pattern_nodes", "int", "of the pattern", "nodes"),
    Operand("differs", "text", "the node where the graph is another"),
    Operand("differs_operator", "text", "what that calls"),
    Operand("wanted", "names", "what the pattern takes there, the first of them"),
    *alike("differs_users wanted_users", "int", "of that node, and as many as the pattern takes"),
    Operand("words", "text", "torch's own, of another argument"),
    Operand("check", "text", "the function that refused"),
    Operand("setting_off", "text", "with which the check passes"),
    Operand("weight", "text", "that is not constant"),
    Operand("weight_users", "int", "of the weight"),
    Operand("weight_dtype", "text", "of the weight"),
    Operand("dtypes", "names", "of what would be folded into it"),
    Operand("mutated_by", "names", "nodes that take the value and change it"),
    Operand("value", "text", "of all elements"),
    *alike("first_size second_size", "text", "of the product"),
    Operand("argument", "text", "that is written into, or copied"),
    Operand("input", "text", "of the graph, of which that is a view"),
    Operand("reader", "text", "that reads it later"),
    Operand("sizes", "names", "of the product: rows, inner, columns"),
    Operand("alignment", "int", "of the dtype", "elements"),
    Operand("operations_per_element", "number", "multiplications for each element that is moved"),
    *alike("plain_ms padded_ms", "number", "without padding and with it, as torch timed it", "ms"),
)  # fmt: skip

OUTCOMES = (
    Outcome("replaced", "{nodes:4} became {by:4}", "passed"),
    Outcome("removed",
        "{nodes:4} {n_gone:?was/were} removed[, and {by:2} used in {n_gone:?its/their} place]", "passed"),
    Outcome("folded", "{nodes:4} became a constant", "passed"),
    Outcome("in-place", "{nodes:2} writes into {argument} itself", "passed"),
    Outcome("copied", "{nodes:2} writes into a copy of {argument}", "missed"),
    Outcome("not-replaced", "{nodes:4} stayed as {n_gone:?it was/they were}"),
)  # fmt: skip

CAUSES = (
    Cause("pattern", "replaced removed", _APPLY, "",
        "{pattern} of {place} matched {operators:5}[, and put {by_operators:4} there]",
        "{operators:3}[ by {by_operators:3}], {pattern}", changes=(By("pattern_matcher", "False",
        "leaves out all patterns", applies=_is_patterns), By("disabled_passes", _pass, _LEAVE_OUT,
        applies=_is_patterns), _EAGER_RANDOM),
        example="(values @ values.transpose(-2, -1) / 4).softmax(-1) @ values"),
    Cause("small-product", "replaced", "decomposition.py:mm", "first_size second_size",
        "inductor multiplies and sums elements where a dimension has one of them, or few ({first_size} by "
        "{second_size})", "{operators} of {first_size} by {second_size}",
        outcome_words={"replaced": "{operators} became {by:4}"}, example="values @ values.t()"),
    Cause("shape-padding-off", "not-replaced", "fx_passes/pad_mm.py:can_pad", "sizes alignment",
        "shape_padding is off", "{operators}: shape_padding off", changes=(By("shape_padding", "True",
        _PADDING, is_default=True),), test="not torch._inductor.config.shape_padding",
        example="first @ second, with shape_padding = False"),
    Cause("sizes-aligned", "not-replaced", "fx_passes/pad_mm.py:can_pad", "sizes alignment",
        "its sizes {sizes} are multiples of {alignment} already, so there is nothing to pad",
        "{operators}: nothing to pad", test="m_padded_length == k_padded_length == ?",
        example="first @ second, with force_shape_pad = True"),
    Cause("padding-forced", "replaced", _SHOULD_PAD, "sizes alignment",
        "force_shape_pad pads its sizes {sizes} to multiples of {alignment}",
        "{operators}: force_shape_pad", changes=(By("force_shape_pad", "False", _FORCE, is_default=True),),
        test="torch._inductor.config.force_shape_pad", example="first @ second, with force_shape_pad = True"),
    Cause("memory-bound", "not-replaced", "fx_passes/pad_mm.py:is_mm_compute_bound",
        "sizes alignment operations_per_element",
        "padding its sizes {sizes} to multiples of {alignment} would not help: "
        "{operations_per_element:.1f} multiplications for each element that is moved: memory bounds it",
        "{operators}: bound by memory", changes=(_PAD,), example="first @ second"),
    Cause("padding-faster", "replaced", _IS_PADDED_FASTER, "sizes alignment plain_ms padded_ms",
        "with its sizes {sizes} padded to multiples of {alignment} it took {padded_ms:.4f} ms when torch "
        "timed it, and {plain_ms:.4f} without", "{operators}: faster padded", changes=(By("shape_padding",
        "False", _PADDING),), example="first @ second"),
    Cause("padding-slower", "not-replaced", _IS_PADDED_FASTER, "sizes alignment plain_ms padded_ms",
        "with its sizes {sizes} padded to multiples of {alignment} it took {padded_ms:.4f} ms when torch "
        "timed it, and {plain_ms:.4f} without, which would have to be 10% more",
        "{operators}: not faster padded", remark="passed", changes=(_PAD,), example="first @ second"),
    Cause("times-simulated", "not-replaced", _SHOULD_PAD, "sizes alignment",
        "torch times it with its sizes {sizes} padded to multiples of {alignment}, and without: on a GPU "
        "that is simulated both take the same time", "{operators}: not timed, simulated GPU",
        changes=(_PAD,), example="first @ second, first: float32 (1017, 1019), second: float32 (1019, 1021)"),
    Cause("no-op", "removed", "fx_passes/post_grad.py:remove_noop_ops", "mutated_by",
        "{operators:4} {n_gone:?gives/give} the values of {n_gone:?its/their} operand in the same size, "
        "strides and dtype[; {mutated_by:3} changes in place what it takes]",
        "{operators:3} of the same layout[, before {mutated_by:1}]", changes=(By("disabled_passes", _pass,
        _LEAVE_OUT),), example="values.clone() + 1, values: float32 (64,)"),
    Cause("identity", "removed", _CONSTANT_FOLD_UNIFORM_VALUE, "",
        "{operators:4} adds 0 to {by:2}, or multiplies it by 1", "{operators:3} with 0 or 1",
        changes=(_KEEP_CONSTANTS,), example="(values + torch.zeros_like(values)).sin()"),
    Cause("uniform-value", "folded", _CONSTANT_FOLD_UNIFORM_VALUE, "value",
        "all its elements are {value}, whatever the inputs are", "{operators:3} of constants, {value}",
        changes=(_KEEP_CONSTANTS,), example="values + torch.ones_like(values) * 3, values: float32 (64,)"),
    Cause("pass", "replaced removed", _APPLY, "",
        "the pass {place} does so[: {by_operators:4} in place of {operators:4}]",
        "{operators:3}[ by {by_operators:3}], {pass}", changes=(_EAGER_RANDOM,),
        example="what 30 tensors of random numbers leave of it; their seeds are made in one call"),
    Cause("copied-back", "in-place", _REINPLACE_INPLACEABLE_OPS_CORE, "argument input",
        "the program changes {input|'that input'}[, and {argument} is a view of {input}]",
        "{operators}: the input is changed in any case",
        example="values.index_put_((torch.arange(3),), torch.zeros(())), values: float32 (17,)"),
    Cause("not-read-later", "in-place", _REINPLACE_INPLACEABLE_OPS_CORE, "argument",
        "nothing reads {argument} after it", "{operators}: not read later",
        example="(values + 1).index_put((torch.arange(3),), torch.zeros(())), values: float32 (19,)"),
    Cause("input-not-mutated", "copied", _REINPLACE_INPLACEABLE_OPS_CORE, "argument",
        "{argument} is an input of the graph, which the program does not mutate",
        "{operators}: an input that is not mutated", changes=(_CHANGE_INPUT,),
        test="mutated_arg.op in ?",
        example="values.index_put((torch.arange(3),), torch.zeros(())), values: float32 (16,)"),
    Cause("view-of-input", "copied", _REINPLACE_INPLACEABLE_OPS_CORE, "argument input",
        "{argument} is a view of the input {input}, and the result is not written back there",
        "{operators}: a view of an input", changes=(_CHANGE_INPUT,),
        test="any(?",
        example="values.t().index_put((torch.arange(3),), torch.zeros(())), values: float32 (16, 16)"),
    Cause("read-later", "copied", _REINPLACE_INPLACEABLE_OPS_CORE, "argument reader",
        "{reader} reads {argument} after it", "{operators}: read later", changes=(Source("read-before",
        "read the value before it is changed, or compute it once more"),),
        example="the same, and read what was computed afterwards"),
    Cause("scatter-fused", "copied", _REINPLACE_INPLACEABLE_OPS_CORE, "argument",
        "a scatter into a view is fused with what it takes and gives, as neither is in memory anyway",
        "{operators}: fused instead", remark="analysis",
        example="(values + 1).slice_scatter(values[:3] * 2, 0, 0, 3).sin(), values: float32 (20,)"),
    Cause("nearly-matched", "not-replaced", _APPLY,
        "there pattern_nodes differs differs_operator wanted differs_users wanted_users words",
        "{there} of the {pattern_nodes} nodes of {pattern} of {place} are there, from {nodes} backwards"
        "[; then it has {wanted:2} where the graph has {differs_operator}][ ({differs})]"
        "[, which has {differs_users} users, where the pattern takes {wanted_users}]"
        "[; in torch's words: {words}]",
        "{operators}: {there} of {pattern_nodes} nodes of {pattern}",
        example="(values @ values.transpose(-2, -1) / 4).relu().softmax(-1) @ values"),
    Cause("check-refused", "not-replaced", _APPLY, "setting_off weight weight_users weight_dtype dtypes",
        "{patterns:3} of {place} matched {operators:4}, and its check {check} refused[: {setting_off} is "
        "off, with which it passes][: its weight {weight} is not constant][: its weight has "
        "{weight_users} users][: its weight is {weight_dtype}, the other constant {dtypes}]",
        "{operators:3}, {check} refused {patterns:2}", changes=(By("enable_linear_binary_folding", "True",
        "folds constants into the weights of linear layers", applies=unless("setting_off", None)),),
        example="torch.addmm(values[0], values, values).relu(), values: float32 (16, 16)"),
)  # fmt: skip

KIND = Kind(
    "rewrite", "which pass over the FX graph rewrote nodes, and what writes in place",
    OUTCOMES, OPERANDS, CAUSES,
    common="pass stage nodes operators by by_operators sources nodes_count operators_count by_count "
    "by_operators_count sources_count patterns check pattern", derived=_derived, derives="n_gone place",
)  # fmt: skip
