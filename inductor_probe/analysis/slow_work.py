"""What in a loop nest takes more than a cycle, by the loop bodies of its nodes and the text of its kernel.

A loop that moves few bytes for its time and multiplies no matrices spends it on something else: on a function
that is computed by a polynomial, a division, a load from an address that is itself loaded, code without
vectors. Which of them, the time of the whole loop does not say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.index import all_numbers, value_of
from inductor_probe.analysis.symbols import symbol_values
from inductor_probe.model.code import LoopNest
from inductor_probe.model.debug_dir import CompiledGraph

SLOW = (
    "igammac", "igamma", "polygamma", "zeta", "digamma", "lgamma", "erfinv", "pow", "fmod", "remainder",
    "erfc", "erfcx", "erf", "tan", "atan2", "asinh", "acosh", "atanh", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "bessel_j0", "bessel_j1", "i0", "i0e", "i1", "i1e", "ndtri", "log_ndtr", "log10", "log2",
    "log1p", "log", "sin", "cos", "expm1", "exp2", "exp", "sigmoid", "floordiv", "truncdiv", "mod", "div",
    "truediv", "reciprocal", "rsqrt", "sqrt", "bucketize", "rand", "randn", "randint64", "load_seed", "sort",
)  # fmt: skip
"""Operations of loop bodies that take several instructions or a slow one, about the slowest first."""
_NAMES = {"truediv": "div", "libdevice_exp": "exp", "libdevice_log": "log"}


def slow_operations(graph: CompiledGraph, nodes: Sequence[str]) -> tuple[str, ...]:
    """Return the slow operations in the loop bodies of unfused nodes: `tanh`, `log1p`, `exp`."""
    ops = [op for leaf in index_of(graph).nodes.named(nodes) for op in leaf.ops]
    used = {_NAMES.get(name, name) for name in (op.target.removeprefix("ops.") for op in ops)}
    made = [name for name in dict.fromkeys(_NAMES.get(name, name) for name in SLOW) if name in used]
    if any(op.target.startswith("self.set_indirect") for op in ops):
        made.append("indirect loads")
    if any(op.target == "ops.store" and "atomic_add" in (*op.args, *dict(op.kwargs).values()) for op in ops):
        made.append("atomic adds")
    return tuple(made)


def points(graph: CompiledGraph, nodes: Iterable[str], nest: LoopNest) -> int | None:
    """Return how many points a loop nest computes in a launch: of the largest body; None where not known.

    A nest that runs in parts, as one with a tail does, is not counted.
    """
    values = symbol_values(graph)
    if nest.kind in ("tail", "threads"):
        return None
    bodies = (leaf.body for leaf in index_of(graph).nodes.named(nodes) if leaf.body)
    sizes = (all_numbers(value_of(size, values) for _, size in body.var_ranges) for body in bodies)
    return max((prod(numbers) for numbers in sizes if numbers is not None), default=None)
