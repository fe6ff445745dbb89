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
"""The target of an FX node that is an item of a result."""

VIEWS = _words(
    "alias as_strided chunk detach diagonal expand lift_fresh_copy permute reshape select slice split "
    "split_with_sizes squeeze t transpose unbind unfold unsqueeze view view_as_real _reshape_alias "
    f"_unsafe_view {ITEM}"
)
"""Operators that hand on the same elements: another shape, order or part of them."""

COPIES = VIEWS | {"clone", "contiguous", "copy", "lift_fresh"}
"""Operators that leave nothing in a loop body but loads and stores."""

# Operators that make a tensor out of nothing, or may leave nothing at all.
_SILENT = _words("iota full arange scalar_tensor zeros ones empty eye _scalar convert_element_type copy_")

_ALIKE = _words(
    "abs acos acosh asin asinh atan atan2 atanh ceil cos cosh eq erf erfc erfinv exp exp2 expm1 floor ge gt "
    "isinf isnan le lgamma log log10 log1p log2 lt maximum minimum ne neg reciprocal rsqrt sign sin sinh "
    "sqrt tan tanh trunc"
)
# FX operator -> operations of a loop body, of which it leaves at least one.
_MAKES = {name: frozenset({name}) for name in _ALIKE} | {
    "relu": _words("relu maximum"),
    "where": _words("where masked"),
    "clamp_min": _words("maximum"),
    "clamp_max": _words("minimum"),
    "clamp": _words("maximum minimum"),
    "sigmoid": _words("sigmoid exp"),
    "logical_not": _words("logical_not eq"),
    "bitwise_not": _words("bitwise_not logical_not"),
}
# The same for operators that index arithmetic leaves, too: they identify floating point only.
_ARITHMETIC = {
    "add": _words("add fma sub"),
    "sub": _words("sub fma add"),
    "mul": _words("mul fma square truediv"),
    "div": _words("truediv mul div reciprocal"),
}
# Operations that nothing but an FX operator puts into a loop body.
_TELLING = frozenset().union(*_MAKES.values()) - _words("where masked maximum minimum lt ge eq exp")

REDUCTIONS = _words(
    "all amax amin any argmax argmin logsumexp max mean min prod std sum var var_mean xor_sum _softmax "
    "prepare_softmax_online"
)
REDUCED_BY = {name: frozenset({name}) for name in ("sum", "prod", "argmax", "argmin", "xor_sum")} | {
    "amax": _words("max"),
    "amin": _words("min"),
    "max": _words("max argmax"),
    "min": _words("min argmin"),
    "any": _words("any max"),
    "all": _words("any prod min"),
}
"""FX reduction -> kinds of `ops.reduction` that one node of it may leave."""

PARTED = {
    "mean": _words("sum"),
    **dict.fromkeys(("var", "std", "var_mean"), _words("sum welford_reduce welford_combine")),
    **dict.fromkeys(
        ("logsumexp", "_softmax", "prepare_softmax_online"), _words("max sum online_softmax_reduce")
    ),
}
"""The same for reductions that inductor makes of several nodes: the first one writes no FX node's value."""


def body_operations(body: LoopBody | None) -> Counter[str]:
    """Return what a loop body calls and how often, without `ops.`."""
    return (
        Counter(op.target.removeprefix("ops.") for block in body.blocks for op in block.ops)
        if body
        else Counter()
    )


def reduction_kinds(body: LoopBody | None) -> frozenset[str]:
    """Return the kinds of the reductions in a loop body: `sum`, `max`, `welford_reduce`."""
    ops = (op for block in (body.blocks if body else ()) for op in block.ops)
    return frozenset(str(op.args[2]) for op in ops if op.target == "ops.reduction" and len(op.args) > 2)


def body_constants(body: LoopBody) -> frozenset[float]:
    """Return the floating-point constants of a loop body."""
    ops = (op for block in body.blocks for op in block.ops if op.target == "ops.constant" and op.args)
    return frozenset(op.args[0] for op in ops if isinstance(op.args[0], float))


def constants(node: FxNode) -> frozenset[float]:
    """Return the floating-point numbers among the arguments of an FX node."""
    return frozenset(float(text) for text in _FLOAT.findall(node.arguments))


def could_leave(operation: str, floating: bool, called: Counter[str]) -> bool:
    """Whether a loop body that calls `called` may compute an FX operator, of floating point or not."""
    made = _MAKES.get(operation) or (_ARITHMETIC.get(operation) if floating else None)
    return made is None or any(called[name] for name in made)


def could_compute(nodes: Iterable[tuple[str, bool]], called: Counter[str]) -> bool:
    """Whether a loop body that calls `called` can be all of `nodes` and nothing else.

    Each node is its operation, and whether its value is of floating point. `load, exp, add, store` can be
    `exp` and a floating `add`; `load, exp, store` cannot (no add), nor `load, exp, log, add, store`.
    """
    needed: Counter[str] = Counter()
    explained: set[str] = set()
    all_known = True
    for name, floating in nodes:
        # A sum of integers may have become part of an index.
        if name in COPIES or name in _SILENT or (name in _ARITHMETIC and not floating):
            continue
        made = _MAKES.get(name) or _ARITHMETIC.get(name)
        if made is None:
            all_known = False
            continue
        needed[name] += 1
        explained |= made
    for name, times in needed.items():  # what is computed for several loads may be there more often
        if sum(called[made] for made in _MAKES.get(name) or _ARITHMETIC[name]) < times:
            return False
    return not all_known or not (called.keys() & _TELLING) - explained
