"""What FX operators leave behind in a loop body, as far as it is certain."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from inductor_probe.model.fx import FxNode
from inductor_probe.model.ir import LoopBody

_FLOAT = re.compile(r"(?<![\w.])-?\d+(?:\.\d*(?:e[-+]?\d+)?|e[-+]?\d+)(?![\w.])")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ITEM = "[]"
"""What the target of an FX node is that takes an item out of a result."""

VIEWS = _words(
    "alias as_strided chunk detach diagonal expand lift_fresh_copy permute reshape select slice split "
    "split_with_sizes squeeze t transpose unbind unfold unsqueeze view view_as_real _reshape_alias "
    f"_unsafe_view {ITEM}"
)
"""Operators that hand on the same elements: another shape, order or part of them."""

COPIES = VIEWS | {"clone", "contiguous", "copy", "lift_fresh"}
"""Operators that leave nothing in a loop body but loads and stores."""

_SILENT = frozenset({"convert_element_type", "copy_"})
"""Operators that may leave nothing at all."""

CREATORS = frozenset({"iota", "full", "arange", "scalar_tensor", "zeros", "ones", "empty", "eye", "_scalar"})
"""Operators that make a tensor out of nothing."""

_ALIKE = _words(
    "abs acos acosh asin asinh atan atan2 atanh ceil cos cosh eq erf erfc erfinv exp exp2 expm1 floor ge gt "
    "isinf isnan le lgamma log log10 log1p log2 lt maximum minimum ne neg reciprocal rsqrt sign sin sinh "
    "sqrt tan tanh trunc"
)
_MAKES: dict[str, frozenset[str]] = {
    **{name: frozenset({name}) for name in _ALIKE},
    "relu": frozenset({"relu", "maximum"}),
    "where": frozenset({"where", "masked"}),
    "clamp_min": frozenset({"maximum"}),
    "clamp_max": frozenset({"minimum"}),
    "clamp": frozenset({"maximum", "minimum"}),
    "sigmoid": frozenset({"sigmoid", "exp"}),
    "logical_not": frozenset({"logical_not", "eq"}),
    "bitwise_not": frozenset({"bitwise_not", "logical_not"}),
}
"""FX operator -> operations of a loop body, of which it leaves at least one."""

_ARITHMETIC: dict[str, frozenset[str]] = {
    "add": frozenset({"add", "fma", "sub"}),
    "sub": frozenset({"sub", "fma", "add"}),
    "mul": frozenset({"mul", "fma", "square", "truediv"}),
    "div": frozenset({"truediv", "mul", "div", "reciprocal"}),
}
"""The same for operators that index arithmetic leaves too: they tell something of floating point only."""

_TELLING = frozenset().union(*_MAKES.values()) - {
    "where",
    "masked",
    "maximum",
    "minimum",
    "lt",
    "ge",
    "eq",
    "exp",
}
"""Operations that nothing but an FX operator puts into a loop body."""

REDUCTIONS = _words(
    "all amax amin any argmax argmin logsumexp max mean min prod std sum var var_mean xor_sum _softmax "
    "prepare_softmax_online"
)

REDUCED_BY: dict[str, frozenset[str]] = {
    "sum": frozenset({"sum"}),
    "amax": frozenset({"max"}),
    "amin": frozenset({"min"}),
    "max": frozenset({"max", "argmax"}),
    "min": frozenset({"min", "argmin"}),
    "prod": frozenset({"prod"}),
    "any": frozenset({"any", "max"}),
    "all": frozenset({"any", "prod", "min"}),
    "argmax": frozenset({"argmax"}),
    "argmin": frozenset({"argmin"}),
    "xor_sum": frozenset({"xor_sum"}),
}
"""FX reduction -> kinds of `ops.reduction` that one node of it may leave."""

PARTED: dict[str, frozenset[str]] = {
    "mean": frozenset({"sum"}),
    "var": frozenset({"sum", "welford_reduce", "welford_combine"}),
    "std": frozenset({"sum", "welford_reduce", "welford_combine"}),
    "var_mean": frozenset({"sum", "welford_reduce", "welford_combine"}),
    "logsumexp": frozenset({"max", "sum", "online_softmax_reduce"}),
    "_softmax": frozenset({"max", "sum", "online_softmax_reduce"}),
    "prepare_softmax_online": frozenset({"max", "sum", "online_softmax_reduce"}),
}
"""The same for reductions that inductor makes of several nodes: the first one writes no FX node's value."""


def body_operations(body: LoopBody) -> Counter[str]:
    """Return what a loop body calls and how often, without `ops.`."""
    return Counter(op.target.removeprefix("ops.") for block in body.blocks for op in block.ops)


def reduction_kinds(body: LoopBody) -> frozenset[str]:
    """Return the kinds of the reductions in a loop body: `sum`, `max`, `welford_reduce`."""
    ops = (op for block in body.blocks for op in block.ops if op.target == "ops.reduction")
    return frozenset(str(op.args[2]) for op in ops if len(op.args) > 2)


def body_constants(body: LoopBody) -> frozenset[float]:
    """Return the floating-point constants of a loop body."""
    ops = (op for block in body.blocks for op in block.ops if op.target == "ops.constant" and op.args)
    return frozenset(op.args[0] for op in ops if isinstance(op.args[0], float))


def constants(node: FxNode) -> frozenset[float]:
    """Return the floating-point numbers among the arguments of an FX node."""
    return frozenset(float(text) for text in _FLOAT.findall(node.arguments))


def could_leave(operation: str, floating: bool, found: Counter[str]) -> bool:
    """Whether a loop body that calls `found` may compute an FX operator, of floating point or not."""
    made = _MAKES.get(operation) or (_ARITHMETIC.get(operation) if floating else None)
    return made is None or any(found[name] for name in made)


def could_compute(nodes: Iterable[tuple[str, bool]], found: Counter[str]) -> bool:
    """Whether a loop body that calls `found` can be all of `nodes` and nothing else.

    Each node is its operation, and whether its value is of floating point.
    """
    wanted: Counter[str] = Counter()
    explained: set[str] = set()
    all_known = True
    for name, floating in nodes:
        if name in COPIES or name in CREATORS or name in _SILENT:
            continue
        if name in _ARITHMETIC and not floating:
            continue  # a sum of integers may have become part of an index
        made = _MAKES.get(name) or _ARITHMETIC.get(name)
        if made is None:
            all_known = False
            continue
        wanted[name] += 1
        explained |= made
    for name, times in wanted.items():  # what is computed for several loads may be there more often
        if sum(found[made] for made in _MAKES.get(name) or _ARITHMETIC[name]) < times:
            return False
    return not all_known or not (found.keys() & _TELLING) - explained
