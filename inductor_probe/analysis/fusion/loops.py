"""Whether the loops of two nodes can be one nest, by the rules of the backend that generates them.

The rules are those of torch 2.13; what they need of the nodes besides loops is not looked at here.
"""

from __future__ import annotations

from math import prod

from inductor_probe.model.fusion import PairMember
from inductor_probe.model.ir import Dim
from inductor_probe.model.proof import LoopsCode, Operand, Proof, inferred

Dims = tuple[Dim, ...]
LoopFit = tuple[bool | None, Proof]
"""Whether they fit, None when it is not known, and what shows that."""


def fit_loops(first: PairMember, second: PairMember, *, dependent: bool, outer_loops: bool = True) -> LoopFit:
    """Compare the loops of two nodes.

    Args:
        first, second: `first` runs first.
        dependent: `second` reads of what `first` writes.
        outer_loops: whether this torch can join the outer loops of C++ code alone (2.4 and later).
    """
    for member in (first, second):
        if member.iteration is None:
            return _fit(None, "no-generated-loops", node=member.name)
    one, other = _nested(first), _nested(second)
    if one and other:
        return _cpp(one, other, first.name, second.name, dependent=dependent, outer_loops=outer_loops)
    if one or other:
        return _fit(False, "backends-differ")
    return _triton(first, second)


def _fit(fits: bool | None, code: LoopsCode, **operands: Operand) -> LoopFit:
    return fits, inferred(code, **operands)


def _nested(member: PairMember) -> tuple[Dims, Dims] | None:
    """Loops and reduction loops of C++ code: `((512,), (1000,))`."""
    match member.iteration:
        case (tuple() as loops, tuple() as reduced):
            return loops, reduced
    return None


def _cpp(
    one: tuple[Dims, Dims],
    other: tuple[Dims, Dims],
    first: str,
    second: str,
    *,
    dependent: bool,
    outer_loops: bool,
) -> LoopFit:
    """The rules of `can_fuse_vertical` and `_can_fuse_horizontal_impl` in `codegen/cpp.py`.

    For example `((512, 1000), ())` fits `((512,), (1000,))`: the loops of the second with its reduction. With
    the reduction first and its result used by the pointwise node they have one outer loop in common
    (`can_fuse_vertical_outer_loop`): the sum of a row is complete only after the row.
    """
    (vars1, reduced1), (vars2, reduced2) = one, other
    outer_only = dependent and reduced1 != ()
    if one == other and not outer_only:
        return _fit(True, "same-loops")
    if not reduced1 and vars1 == vars2 + reduced2:
        return _fit(True, "loops-with-reduction", pointwise=first, reduction=second)
    if (
        not reduced1
        and not reduced2
        and 1 in (len(vars1), len(vars2))
        and _elements(vars1) == _elements(vars2)
    ):
        return _fit(None, "equal-elements")
    depth = min(len(vars1), len(vars2))
    if dependent and depth and vars1[:depth] == vars2[:depth]:
        if outer_only:
            code: LoopsCode = (
                "common-outer-loops-reduction" if outer_loops else "no-common-outer-loops-reduction"
            )
            return _fit(outer_loops, code, depth=depth, reduction=first)
        return _fit(
            outer_loops, "common-outer-loops" if outer_loops else "no-common-outer-loops", depth=depth
        )
    return _fit(False, "dependent-loops-differ" if dependent else "independent-loops-differ")


def _elements(dims: Dims) -> int | str:
    numbers = [dim for dim in dims if isinstance(dim, int)]
    return prod(numbers) if len(numbers) == len(dims) else "*".join(map(str, dims))


def _triton(first: PairMember, second: PairMember) -> LoopFit:
    """The rules of `can_fuse` in `codegen/simd.py`: one grid and one reduction for a whole kernel."""
    match first.iteration, second.iteration:
        case (numel1, rnumel1), (numel2, rnumel2):
            pass
        case _:
            return _fit(None, "loops-not-known")
    if (numel1, rnumel1) == (numel2, rnumel2):
        return _fit(True, "same-numel")
    if rnumel1 == 1 and rnumel2 == 1:
        return _fit(False, "numels-differ")
    if rnumel1 != 1 and rnumel2 != 1:
        return _fit(False, "reductions-differ")
    (pointwise, results), reduced = (
        ((numel1, numel2), rnumel2) if rnumel1 == 1 else ((numel2, numel1), rnumel1)
    )
    if pointwise == results:
        return _fit(True, "numel-of-result")
    if all(isinstance(dim, int) for dim in (pointwise, results, reduced)):
        fits = pointwise == prod(dim for dim in (results, reduced) if isinstance(dim, int))
        return _fit(fits, "numel-of-input" if fits else "numel-of-neither")
    return _fit(None, "symbolic-numels")
