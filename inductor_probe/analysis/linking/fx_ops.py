"""What FX operators leave behind in a loop body, as far as it is certain."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from inductor_probe.model.fx import FxNode
from inductor_probe.model.ir import LoopBody
from inductor_probe.model.record import words

_FLOAT = re.compile(r"(?<![\w.])-?\d+(?:\.\d*(?:e[-+]?\d+)?|e[-+]?\d+)(?![\w.])")


ITEM = "[]"
"""The target of an FX node that is an item of a result."""

VIEWS = words(
    "alias as_strided chunk detach diagonal expand lift_fresh_copy permute reshape select slice split "
    "split_with_sizes squeeze t transpose unbind unfold unsqueeze view view_as_real _reshape_alias "
    f"_unsafe_view {ITEM}"
)
"""Operators that hand on the same elements: another shape, order or part of them."""

COPIES = VIEWS | {"clone", "contiguous", "copy", "lift_fresh"}
"""Operators that leave nothing in a loop body but loads and stores."""

# Operators that make a tensor out of nothing, or may leave nothing at all.
_SILENT = words("iota full arange scalar_tensor zeros ones empty eye _scalar convert_element_type copy_")

_ALIKE = words(
    "abs acos acosh asin asinh atan atan2 atanh ceil cos cosh eq erf erfc erfinv exp exp2 expm1 floor ge gt "
    "isinf isnan le lgamma log log10 log1p log2 lt maximum minimum ne neg reciprocal rsqrt sign sin sinh "
    "sqrt tan tanh trunc"
)
# FX operator -> operations of a loop body, of which it leaves at least one.
_MAKES = {name: frozenset({name}) for name in _ALIKE} | {
    "relu": words("relu maximum"),
    "where": words("where masked"),
    "clamp_min": words("maximum"),
    "clamp_max": words("minimum"),
    "clamp": words("maximum minimum"),
    "sigmoid": words("sigmoid exp"),
    "logical_not": words("logical_not eq"),
    "bitwise_not": words("bitwise_not logical_not"),
}
# The same for operators that index arithmetic leaves, too: they identify floating point only.
_ARITHMETIC = {
    "add": words("add fma sub"),
    "sub": words("sub fma add"),
    "mul": words("mul fma square truediv"),
    "div": words("truediv mul div reciprocal"),
}
# Operations that nothing but an FX operator puts into a loop body.
_TELLING = frozenset().union(*_MAKES.values()) - words("where masked maximum minimum lt ge eq exp")

REDUCTIONS = words(
    "all amax amin any argmax argmin logsumexp max mean min prod std sum var var_mean xor_sum _softmax "
    "prepare_softmax_online"
)
REDUCED_BY = {name: frozenset({name}) for name in ("sum", "prod", "argmax", "argmin", "xor_sum")} | {
    "amax": words("max"),
    "amin": words("min"),
    "max": words("max argmax"),
    "min": words("min argmin"),
    "any": words("any max"),
    "all": words("any prod min"),
}
"""FX reduction -> kinds of `ops.reduction` that one node of it may leave."""

PARTED = {
    "mean": words("sum"),
    **dict.fromkeys(("var", "std", "var_mean"), words("sum welford_reduce welford_combine")),
    **dict.fromkeys(
        ("logsumexp", "_softmax", "prepare_softmax_online"), words("max sum online_softmax_reduce")
    ),
}
"""The same for reductions that inductor makes of several nodes: the first one writes no FX node's value."""


def body_operations(body: LoopBody | None) -> Counter[str]:
    """Return what a loop body calls and how often, without `ops.`."""
    return Counter(op.target.removeprefix("ops.") for op in (body.ops if body else ()))


def reduction_kinds(body: LoopBody | None) -> frozenset[str]:
    """Return the kinds of the reductions in a loop body: `sum`, `max`, `welford_reduce`."""
    ops = (op for op in (body.ops if body else ()) if op.target == "ops.reduction" and len(op.args) > 2)
    return frozenset(str(op.args[2]) for op in ops)


def body_constants(body: LoopBody) -> frozenset[float]:
    """Return the floating-point constants of a loop body."""
    ops = (op for op in body.ops if op.target == "ops.constant" and op.args)
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
