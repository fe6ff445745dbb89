"""Whether the loops of two nodes can be one nest, by the rules of the backend that generates them.

The rules are those of torch 2.13; what they need of the nodes besides loops is not looked at here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from inductor_probe.model.fusion import Side
from inductor_probe.model.ir import Dim


@dataclass(frozen=True, slots=True)
class LoopFit:
    """Whether they fit, None when it is not known, and why in words."""

    fits: bool | None
    text: str


Dims = tuple[Dim, ...]


def fit_loops(first: Side, second: Side, *, dependent: bool, outer_loops: bool = True) -> LoopFit:
    """Compare the loops of two sides.

    Args:
        first, second: `first` runs first.
        dependent: `second` reads of what `first` writes.
        outer_loops: whether this torch can join the outer loops of C++ code alone (2.4 and later).
    """
    for side in (first, second):
        if side.iteration is None:
            return LoopFit(None, f"{side.name} has no loops that inductor generates ({side.kind})")
    one, other = _nested(first), _nested(second)
    if one and other:
        return _cpp(one, other, first.name, second.name, dependent=dependent, outer_loops=outer_loops)
    if one or other:
        return LoopFit(False, "one is C++ code and the other is not")
    return _triton(first, second)


def _nested(side: Side) -> tuple[Dims, Dims] | None:
    """Loops and reduction loops of C++ code: `((512,), (1000,))`."""
    match side.iteration:
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
    (vars1, reduced1), (vars2, reduced2) = one, other
    outer_only = dependent and reduced1 != ()
    if one == other and not outer_only:
        return LoopFit(True, "both have the same loops")
    if not reduced1 and vars1 == vars2 + reduced2:
        return LoopFit(True, f"the loops of {first} are those of {second} with its reduction")
    if (
        not reduced1
        and not reduced2
        and 1 in (len(vars1), len(vars2))
        and _elements(vars1) == _elements(vars2)
    ):
        text = "both run over as many elements, one in a single loop: they fit if the buffers have one size"
        return LoopFit(None, text)
    depth = min(len(vars1), len(vars2))
    if dependent and depth and vars1[:depth] == vars2[:depth]:
        why = f"{first} is a reduction, whose result is whole only after its loop: " if outer_only else ""
        if not outer_loops:
            return LoopFit(
                False, f"{why}only their {_outer(depth)} can be joined, which torch 2.4 and later do"
            )
        return LoopFit(True, f"{why}they can have their {_outer(depth)} in common, and an inner loop each")
    if dependent:
        return LoopFit(False, f"the loops differ, from the outermost in: {_shown(one)} and {_shown(other)}")
    rule = (
        "C++ code joins independent nodes only if their loops are the same, or the same but for a reduction"
    )
    return LoopFit(False, f"the loops differ: {_shown(one)} and {_shown(other)}; {rule}")


def _elements(dims: Dims) -> int | str:
    numbers = [dim for dim in dims if isinstance(dim, int)]
    return prod(numbers) if len(numbers) == len(dims) else "*".join(map(str, dims))


def _outer(depth: int) -> str:
    return "outermost loop" if depth == 1 else f"{depth} outermost loops"


def _shown(loops: tuple[Dims, Dims]) -> str:
    kept, reduced = (" x ".join(map(str, dims)) for dims in loops)
    return f"{kept or '1'}{f' reducing {reduced}' if reduced else ''}"


def _triton(first: Side, second: Side) -> LoopFit:
    match first.iteration, second.iteration:
        case (numel1, rnumel1), (numel2, rnumel2):
            pass
        case _:
            return LoopFit(None, "loops of a form that is not known")
    both = f"{_grid(numel1, rnumel1)} and {_grid(numel2, rnumel2)}"
    if (numel1, rnumel1) == (numel2, rnumel2):
        return LoopFit(True, f"both have {_grid(numel1, rnumel1)}")
    if rnumel1 == 1 and rnumel2 == 1:
        return LoopFit(False, f"a Triton kernel has one number of elements; these have {both}")
    if rnumel1 != 1 and rnumel2 != 1:
        return LoopFit(
            False, f"a Triton kernel has one number of elements and one reduction; these have {both}"
        )
    (pointwise, wanted), reduced = (
        ((numel1, numel2), rnumel2) if rnumel1 == 1 else ((numel2, numel1), rnumel1)
    )
    if pointwise == wanted:
        return LoopFit(True, f"the elementwise one has an element for each result of the reduction: {both}")
    if all(isinstance(dim, int) for dim in (pointwise, wanted, reduced)):
        fits = pointwise == prod(dim for dim in (wanted, reduced) if isinstance(dim, int))
        if fits:
            return LoopFit(True, f"the elementwise one has an element for each that is reduced: {both}")
        return LoopFit(
            False, f"the elementwise one has neither as many elements as are reduced nor as result: {both}"
        )
    return LoopFit(None, f"symbolic: {both}")


def _grid(numel: object, rnumel: object) -> str:
    return f"{numel} elements" if rnumel == 1 else f"{numel} elements reducing {rnumel}"
