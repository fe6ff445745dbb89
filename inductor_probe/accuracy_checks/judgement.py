"""Right, rounding or wrong: a compiled value beside eager's, and the reference in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from inductor_probe.harness.checks import Slack, allowed, differences, in_double, is_float, slack_of
from inductor_probe.harness.reference import EAGER

NOISES = (1, 2, 3)  # seeds of runs whose results are moved by roundings
OF_INTEGERS = (*NOISES, 4, 5, 6, 7, 8)  # of two equal values each is the larger in half of the runs
TIMES = 16.0  # an error is explained up to so many times what those runs, or eager, are off
TIMES_ON_THE_WHOLE = 2.5  # of the roots of the mean squares; noise is twice a rounding, and the most of runs
UNITS = 4.0  # in the last place, of the reference: what an operation alone may be off
# Vectorised functions of libraries are off by a few units, those that trade digits for speed by some 20
# (`exp_u20`). An error of 256 units has lost two digits of seven.
LOST = 256.0
# A few elements lose that many where terms cancel of which one side has more digits: Adam's bias
# correction is a Python float in eager, a tensor in compiled code. What loses digits itself does so in many.
SHARE_LOST = 1 / 8
RIGHT, ROUNDING, WRONG = "right", "rounding", "wrong"
Noise = Callable[[int], "torch.Tensor | None"]
"""The value as a run with noise of that seed has it."""


@dataclass
class Judged:
    """What was found of one value.

    Attributes:
        verdict: `right`, `rounding` or `wrong`. why: of something wrong or rounded: `values`, `form`,
            `tied`, `draws`.
        elements, wrong: how many there are, and are wrong.
        index: of the first wrong element, or of that with the largest error.
        eager, compiled, reference: its values there.
        eager_error, compiled_error: there, in units in the last place of the reference, and relative to it.
        form: what is another size, dtype or stride: eager's, and that of compiled code.
    """

    verdict: str
    why: str = ""
    elements: int = 0
    wrong: int = 0
    index: tuple[int, ...] = ()
    eager: Any = None
    compiled: Any = None
    reference: Any = None
    eager_error: tuple[float, float] | None = None
    compiled_error: tuple[float, float] | None = None
    form: tuple[str, str] | None = None


def judge(
    eager: torch.Tensor,
    compiled: torch.Tensor,
    reference: torch.Tensor | None = None,
    noise: Noise | None = None,
    *,
    strict: bool = False,
) -> Judged:
    """Judge what compiled code computed.

    Args:
        eager, compiled: of one size and dtype, or the form is wrong.
        reference: eager's in float64; None where that is eager's own.
        noise: gives it as runs with roundings have it, where the verdict depends on that.
        strict: a single element that lost its digits is wrong: of one operation, on the operands that it had.
    """
    eager, compiled = eager.detach(), compiled.detach()
    forms = (
        f"{str(eager.dtype)[6:]} {list(eager.shape)}",
        f"{str(compiled.dtype)[6:]} {list(compiled.shape)}",
    )
    if forms[0] != forms[1]:
        return Judged(WRONG, "form", form=forms)
    reference = eager if reference is None else reference.detach()
    if not eager.numel():
        return Judged(RIGHT)
    if not is_float(eager):
        return _of_integers(eager, compiled, noise)
    reference = reference.to(in_double(eager).dtype)
    beyond = differences(compiled, reference, Slack())[0] & differences(compiled, eager, Slack())[0]
    off, of_eager = _units(compiled, reference), _units(eager, reference)
    lost = (off > LOST) & (off > EAGER * (1 + of_eager.max()))
    if not strict and lost.sum() < SHARE_LOST * lost.numel():
        lost.zero_()
    judged, distance = Judged(RIGHT, elements=eager.numel()), _distance(compiled, reference)
    if not (beyond.any() or lost.any()):
        return _at(judged, distance, eager, compiled, reference)
    judged.verdict, judged.why = ROUNDING, "values"
    by_slack = differences(compiled, reference, slack_of(eager, reference, EAGER))[0]
    wrong = (by_slack & beyond) | lost
    if wrong.any() or _is_off_on_the_whole(compiled, reference, _room(eager, reference, None)):
        room = _room(eager, reference, noise)
        wrong &= ~_explained(compiled, eager, reference, room)
        if not wrong.any() and _is_off_on_the_whole(compiled, reference, room):
            wrong = beyond
    if wrong.any():
        judged.verdict, judged.wrong = WRONG, int(wrong.sum())
        return _at(judged, wrong.double(), eager, compiled, reference)
    return _at(judged, distance, eager, compiled, reference)


def _of_integers(eager: torch.Tensor, compiled: torch.Tensor, noise: Noise | None) -> Judged:
    """Integers and bools differ, or do not; rounding decides those that runs with noise change as far."""
    differ = eager != compiled
    judged = Judged(RIGHT, elements=eager.numel())
    if not differ.any():
        return judged
    distance, room = _steps(compiled, eager), torch.zeros(eager.shape, dtype=torch.int64, device=eager.device)
    for seed in OF_INTEGERS if noise else ():
        value = noise(seed) if noise else None
        if value is not None and value.shape == eager.shape:
            room = torch.maximum(room, _steps(value, eager))
    wrong = differ & (distance > room)
    judged.verdict, judged.why = (WRONG, "values") if wrong.any() else (ROUNDING, "tied")
    judged.wrong = int(wrong.sum())
    return _at(judged, (wrong if wrong.any() else differ).double(), eager, compiled, eager)


def _steps(value: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return how many integers lie between two values."""
    return (value.to(torch.int64) - other.to(torch.int64)).abs()


def _room(eager: torch.Tensor, reference: torch.Tensor, noise: Noise | None) -> torch.Tensor:
    """Return how far roundings move each element: eager's error, or more; infinite where they decide."""
    right = in_double(reference)
    room = (in_double(eager) - right).abs().nan_to_num(0.0, 0.0, 0.0)
    for seed in NOISES if noise else ():
        value = noise(seed) if noise else None
        if value is not None and value.shape == right.shape:
            moved = in_double(value)
            unknown = (moved.isnan() != right.isnan()) | (moved.isinf() != right.isinf())
            room = torch.maximum(room, (moved - right).abs().nan_to_num(0.0, 0.0, 0.0))
            room = room.masked_fill(unknown, float("inf"))
    return room


def _is_off_on_the_whole(compiled: torch.Tensor, reference: torch.Tensor, room: torch.Tensor) -> bool:
    """Whether errors are far larger than roundings make them, taken together: as root of the mean square.

    Roundings go up and down, and one element may be moved far: of `cumsum(x) * 1.25` in half precision no
    element is, and all are off by a quarter.
    """
    wide, right = in_double(compiled), in_double(reference)
    known = wide.isfinite() & right.isfinite() & room.isfinite()
    error, moved, unit = (
        one[known].square().mean().sqrt()
        for one in ((wide - right).abs(), room, _unit(right, compiled.dtype))
    )
    units = 1.0 if compiled.dtype.itemsize < 4 else UNITS  # half precision is computed in float32
    return bool(error > TIMES_ON_THE_WHOLE * moved + units * unit)


def _explained(
    compiled: torch.Tensor, eager: torch.Tensor, reference: torch.Tensor, room: torch.Tensor
) -> torch.Tensor:
    """Return which elements are no further off than roundings move them."""
    wide, right = in_double(compiled), in_double(reference)
    error = (wide - right).abs()
    limit = TIMES * room + UNITS * _unit(right, compiled.dtype)
    is_known = wide.isfinite() & right.isfinite()
    return (is_known & (error <= limit)) | room.isinf() | (wide == in_double(eager))


def _unit(reference: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return a unit in the last place of each value, in a dtype."""
    info = torch.finfo(dtype)
    return reference.abs().clamp(min=info.tiny) * info.eps


def _units(value: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Return errors in units in the last place; infinite where only one of the two is finite."""
    wide, right = in_double(value), in_double(reference)
    same = (wide == right) | (wide.isnan() & right.isnan()) | (value == reference.to(value.dtype))
    error = (wide - right).abs() / _unit(right, value.dtype)
    return error.nan_to_num(float("inf"), float("inf")).masked_fill(same, 0.0)


def _distance(value: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Return errors in tolerances of the dtype: those of tiny values do not count for more than they are."""
    error = differences(value, reference, Slack())[1] / allowed(in_double(reference), value.dtype)
    return error.nan_to_num(float("inf"), float("inf"))


def _at(judged: Judged, size: torch.Tensor, *values: torch.Tensor) -> Judged:
    """Note values and errors at the first element where `size` is largest."""
    place = int(size.reshape(-1).argmax()) if size.numel() else 0
    index = torch.unravel_index(torch.tensor(place), size.shape) if size.dim() else ()
    judged.index = tuple(int(one) for one in index)
    eager, compiled, reference = (value[judged.index] for value in values)
    judged.eager, judged.compiled, judged.reference = eager.item(), compiled.item(), reference.item()
    if is_float(eager):
        judged.eager_error, judged.compiled_error = _errors(eager, reference), _errors(compiled, reference)
    return judged


def _errors(value: torch.Tensor, reference: torch.Tensor) -> tuple[float, float]:
    """Return the error of one element, in units in the last place of the reference and relative to it."""
    units = float(_units(value, reference))
    return units, units * torch.finfo(value.dtype).eps


def worst(judged: Sequence[Judged]) -> str:
    """Return the verdict of several values."""
    verdicts = {one.verdict for one in judged}
    return next((one for one in (WRONG, ROUNDING) if one in verdicts), RIGHT)
