"""What `probe diff --devices` shows: kernels of two devices beside each other, what takes most of A first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from inductor_probe.model.diff import DeviceDiff, DeviceGroup, DeviceKernel, DiffSide
from inductor_probe.report.document import Block, Cell, Column, Heading, Line, Name, Table
from inductor_probe.report.units import bytes_text, counted, duration

_COLUMNS = (
    Column(""), Column("kernel", fold="middle", least=24), Column("nodes", right=True, rank=2),
    Column("bytes", right=True, rank=1), Column("time", right=True), Column("at least", right=True, rank=2),
    Column("roofline", right=True), Column("computes", rank=3),
)  # fmt: skip
_MOST_OPS = 3
_MUCH = 1.1
"""Fewer bytes than that are not worth a sentence."""


def devices_page(diffs: Sequence[DeviceDiff]) -> Iterator[Block]:
    """Yield for each pair of graphs its sides, a table, and what one side fuses, or moves less of."""
    for number, diff in enumerate(diffs):
        if number:
            yield Line()
        title = diff.a.name if diff.a.name == diff.b.name else f"{diff.a.name} -> {diff.b.name}"
        yield Heading((title, "bold cyan"))
        for letter, side in (("A", diff.a), ("B", diff.b)):
            yield Line([(f"{letter}  ", "bold"), _side(diff, side, letter)], 2)
        yield Line()
        rows = [row for group in diff.groups for row in _rows(group)]
        used = [place for place in range(len(_COLUMNS)) if any(row[place] != "-" for row in rows)]
        yield Table([_COLUMNS[place] for place in used], [[row[place] for place in used] for row in rows])
        for group in diff.groups:
            if sentence := _sentence(group):
                yield Line(sentence)
    yield from _untimed(diffs)


def _untimed(diffs: Sequence[DeviceDiff]) -> Iterator[Block]:
    """Say which run was not profiled, once."""
    for letter in ("A", "B"):
        sides = [(diff.a, diff.timed_a) if letter == "A" else (diff.b, diff.timed_b) for diff in diffs]
        for name in dict.fromkeys(
            side.label or str(side.path.parents[1]) for side, timed in sides if not timed
        ):
            yield Line(f"{letter} was not timed: probe profile {name} on its machine", 2)


def _side(diff: DeviceDiff, side: DiffSide, letter: str) -> str:
    kernels = [kernel for group in diff.groups for kernel in (group.a if letter == "A" else group.b)]
    seconds = [kernel.seconds for kernel in kernels if kernel.seconds is not None]
    names = ", ".join(side.devices) or "device not known"
    took = f", {duration(sum(seconds))} in kernels" if seconds else ""
    return f"{names}: {counted(len(kernels), 'kernel or library call', 'kernels and library calls')}{took}"


def _rows(group: DeviceGroup) -> Iterator[list[Cell]]:
    ops = [name.removeprefix("aten.").removeprefix("prims.") for name in group.operators]
    computes = ", ".join(ops[:_MOST_OPS]) + (f" +{len(ops) - _MOST_OPS}" if len(ops) > _MOST_OPS else "")
    for letter, kernels, style in (("A", group.a, "red"), ("B", group.b, "green")):
        for kernel in kernels:
            yield [(letter, style), Name(kernel.name), *_figures(kernel), computes or "-"]
            computes = ""
        if not kernels:
            yield [(letter, style), "nothing of its own", "", "", "", "", "", computes]
            computes = ""


def _figures(kernel: DeviceKernel) -> list[Cell]:
    within = kernel.seconds is not None and kernel.seconds <= kernel.uncertainty
    time = "-" if kernel.seconds is None else f"< {duration(kernel.uncertainty)}" if within else ""
    return [
        str(len(kernel.nodes)) if kernel.nodes else "-",
        "-" if kernel.moved is None else bytes_text(kernel.moved),
        time or duration(kernel.seconds or 0.0),
        "-" if kernel.bound is None else duration(kernel.bound),
        "-" if kernel.share is None else f"{kernel.share:.0%}",
    ]


def _sentence(group: DeviceGroup) -> str:
    """Return who fuses, and who moves fewer bytes: `B: 3 kernels for 1 of A, which move 5 KiB more (k)`."""
    if not group.a or not group.b:
        return ""
    sides = {"A": group.a, "B": group.b}
    more, fewer = ("A", "B") if len(group.a) > len(group.b) else ("B", "A")
    moved = {letter: sum(kernel.moved or 0 for kernel in side) for letter, side in sides.items()}
    known = all(kernel.moved is not None for kernel in (*group.a, *group.b))
    name = f" ({sides[fewer][0].name})" if len(sides[fewer]) == 1 else ""
    if len(group.a) == len(group.b) == 1:
        most = max(moved, key=moved.__getitem__)
        difference = abs(moved["A"] - moved["B"])
        return f"{most} moves {bytes_text(difference)} more{name}" if known and _differ(moved) else ""
    text = f"{more}: {counted(len(sides[more]), 'kernel')} for {len(sides[fewer])} of {fewer}"
    if known and _differ(moved):
        word = "more" if moved[more] > moved[fewer] else "less"
        text += f", which move {bytes_text(abs(moved[more] - moved[fewer]))} {word}"
    return text + name


def _differ(moved: Mapping[str, int]) -> bool:
    return max(moved.values()) > _MUCH * min(moved.values())
