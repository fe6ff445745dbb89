"""What is drawn of a graph: nodes, folded where they are many, and the buffers between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.model.cause import Cause
from inductor_probe.model.decision import Decision
from inductor_probe.model.layouts import Access, LayoutRow
from inductor_probe.model.nodes import NodeRow
from inductor_probe.model.record import grouped
from inductor_probe.report.pages.nodes import buffer_text
from inductor_probe.report.pages.why import cause_sentence
from inductor_probe.report.plots.folding import Run, fold

MOST_UNITS = 60
"""Boxes of nodes that a drawing has at most unless all are asked for: of more, neighbours are folded."""

_FEW_ENDS = 4
"""Inputs of a graph, or outputs, that are all boxes of their own."""
_FEW_UNITS = 24
"""Of so few nodes layers that are alike are not folded."""


class Unit(Struct, frozen=True):
    """What has one box: a node after fusion, or several that are folded.

    Attributes:
        name: of the node; of several, of the first and the last.
        rows: the unfused nodes in it. parts: names of the nodes after fusion; several if they are folded.
        period: of equal layers, after how many of `parts` the next one begins; 0 where they are not such.
        cost: what `Outline.basis` says, of all of it.
        beside: inputs that it alone reads, weights as a rule, and outputs that no other reads.
    """

    name: str
    rows: tuple[NodeRow, ...]
    parts: tuple[str, ...] = ()
    period: int = 0
    cost: float = 0.0
    beside: tuple[LayoutRow, ...] = ()

    @property
    def kernel(self) -> str | None:
        """What runs it, None where that is not known, it needs none, or it is folded."""
        names = (row.link.kernel for row in self.rows if row.link.kernel)
        return None if len(self.parts) > 1 else next(names, None)

    @property
    def nodes(self) -> frozenset[str]:
        """The names of its nodes."""
        return frozenset(row.node for row in self.rows)


class Read(Struct, frozen=True):
    """A unit reads a buffer; `slow` if a remark says that it does so non-contiguously."""

    buffer: str
    unit: str
    accesses: tuple[Access, ...]
    slow: bool = False


class Outline(Struct, frozen=True):
    """A graph, or the part of it around something.

    Attributes:
        buffers: those that more than their writer uses; what lives inside of one unit is not drawn.
        writes: unit and buffer.
        timed: whether costs of units are seconds, and not bytes.
    """

    units: tuple[Unit, ...]
    buffers: tuple[LayoutRow, ...]
    writes: tuple[tuple[str, str], ...]
    reads: tuple[Read, ...]
    timed: bool = False


def outline_of(
    nodes: Sequence[NodeRow],
    buffers: Sequence[LayoutRow],
    around: str | None = None,
    *,
    seconds: Mapping[str, float] | None = None,
    most: int | None = None,
) -> Outline:
    """Return what is drawn of a graph.

    Args:
        nodes: its unfused nodes. buffers: all of its buffers.
        around: a node, a buffer, a kernel or the start of its name: only what has to do with it, and who
            is next to that. Nothing is drawn if the graph has none of that name.
        seconds: what each node after fusion takes in a call; without them its bytes are its cost.
        most: units; of more, neighbours are folded (`folding.fold`). None for as many as there are.
    """
    groups = grouped(nodes, lambda row: row.top or row.node)
    sizes = {row.buffer: known_bytes(row) for row in buffers}
    units = [
        Unit(name, tuple(rows), (name,), cost=seconds.get(name, 0.0) if seconds else _moved(rows, sizes))
        for name, rows in groups.items()
    ]
    outline = replace(_joined(units, buffers), timed=bool(seconds))
    if around is not None:
        outline = _part(outline, around)
    if most is not None and len(outline.units) > min(most, _FEW_UNITS):
        parts = outline.units
        runs = fold([_mark(unit) for unit in parts], [unit.cost for unit in parts], most)
        outline = replace(_joined([_folded(parts, run) for run in runs], buffers), timed=bool(seconds))
    return _with_ends_beside(outline)


def known_bytes(row: LayoutRow) -> int:
    """Return the bytes of a buffer, those of the compile where they are symbolic; 0 where not known."""
    size = row.recorded_bytes if row.recorded_bytes is not None else row.size_bytes
    return size if isinstance(size, int) else 0


def _moved(rows: Sequence[NodeRow], sizes: Mapping[str, int]) -> float:
    """Return the bytes of the buffers that a node reads from outside of it, and writes, each once."""
    written = {buffer.name for row in rows for buffer in row.writes}
    return sum(sizes.get(name, 0) for name in {name for row in rows for name in row.reads} ^ written)


def _mark(unit: Unit) -> tuple[object, ...]:
    """Return what is equal of nodes that run the same loops, or library function, for as much memory.

    How many operations they have is not asked: the layers of a network differ by what is inlined into each.
    """
    return tuple(
        (
            row.kind,
            row.ranges,
            row.reductions,
            row.link.kernel if row.ranges is None else None,
            *(buffer_text(one).partition(" ")[2] for one in row.writes),
        )
        for row in unit.rows
    )


def _folded(units: Sequence[Unit], run: Run) -> Unit:
    if run.many == 1:
        return units[run.first]
    part = units[run.first : run.last]
    rows = tuple(row for unit in part for row in unit.rows)
    names = tuple(unit.name for unit in part)
    name = f"{part[0].rows[0].node} ... {part[-1].rows[-1].node}"
    return Unit(name, rows, names, run.period, sum(unit.cost for unit in part))


def _joined(units: Sequence[Unit], buffers: Sequence[LayoutRow]) -> Outline:
    """Return units with the buffers between them."""
    writer = {buffer.name: unit.name for unit in units for row in unit.rows for buffer in row.writes}
    readers: dict[str, set[str]] = {}
    for unit in units:
        for row in unit.rows:
            for name in row.reads:
                readers.setdefault(name, set()).add(unit.name)
    shown = {
        row.buffer: row
        for row in buffers
        if (row.role == "output" and row.buffer in writer)
        or readers.get(row.buffer, set()) - {writer.get(row.buffer)}
    }
    writes = tuple((unit, buffer) for buffer, unit in writer.items() if buffer in shown)
    reads = tuple(
        Read(
            name,
            unit.name,
            tuple(access for access in shown[name].reads if access.node in unit.nodes),
            not shown[name].noncontiguous_readers.isdisjoint(unit.nodes),
        )
        for unit in units
        for name in dict.fromkeys(name for row in unit.rows for name in row.reads)
        if name in shown and writer.get(name) != unit.name
    )
    return Outline(tuple(units), tuple(shown.values()), writes, reads)


def _with_ends_beside(outline: Outline) -> Outline:
    """Return an outline with inputs of a single reader, and outputs without one, beside their nodes.

    A node that nothing else feeds has its first input in a box; a graph with few of them has all in boxes.
    """
    reads = grouped(outline.reads, lambda read: read.buffer)
    writes = {name: unit for unit, name in outline.writes}
    inputs = [
        row for row in outline.buffers if row.role in ("input", "constant") and row.buffer not in writes
    ]
    outputs = [row for row in outline.buffers if row.role == "output" and row.buffer not in reads]
    beside: dict[str, list[LayoutRow]] = {}
    for row in inputs if len(inputs) > _FEW_ENDS else ():
        readers = reads.get(row.buffer, [])
        if len(readers) == 1 and not readers[0].slow:
            beside.setdefault(readers[0].unit, []).append(row)
    of_unit = grouped(outline.reads, lambda read: read.unit)
    for unit, rows in beside.items():
        if len(rows) == len(of_unit[unit]):
            rows.pop(0)
    for row in outputs if len(outputs) > _FEW_ENDS else ():
        beside.setdefault(writes[row.buffer], []).append(row)
    aside = {row.buffer for rows in beside.values() for row in rows}
    return replace(
        outline,
        units=tuple(replace(unit, beside=tuple(beside.get(unit.name, ()))) for unit in outline.units),
        buffers=tuple(row for row in outline.buffers if row.buffer not in aside),
        writes=tuple((unit, name) for unit, name in outline.writes if name not in aside),
        reads=tuple(read for read in outline.reads if read.buffer not in aside),
    )


def costly_path(outline: Outline) -> tuple[str, ...]:
    """Return the path through the graph that costs most: names of units and buffers in turns, in order.

    That is the least time that a call takes where all that may run at once does so.
    """
    readers = grouped(outline.reads, lambda read: read.buffer)
    after = grouped(outline.writes, lambda write: write[0])
    best: dict[
        str, tuple[float, str, str]
    ] = {}  # of a unit: cost up to it, the unit and the buffer before it
    for unit in outline.units:  # in the order of the schedule
        cost, before, through = best.get(unit.name, (0.0, "", ""))
        cost += unit.cost
        best[unit.name] = (cost, before, through)
        for _, buffer in after.get(unit.name, ()):
            for read in readers.get(buffer, ()):
                if best.get(read.unit, (-1.0, "", ""))[0] < cost:
                    best[read.unit] = (cost, unit.name, buffer)
    if not any(unit.cost for unit in outline.units):
        return ()
    name = max(best, key=lambda name: best[name][0])
    path = [name]
    while (before := best[name][1]) and before not in path:
        path += [best[name][2], before]
        name = before
    return tuple(reversed(path))


def _part(outline: Outline, name: str) -> Outline:
    """Of a buffer: who writes and reads it, and all they touch. Of a node: its buffers, and who has them."""
    named = {unit.name for unit in outline.units if _is_meant(unit, name)}
    of_buffer = {unit for unit, buffer in outline.writes if buffer == name}
    of_buffer |= {read.unit for read in outline.reads if read.buffer == name}
    core = of_buffer or named
    touched = {buffer for unit, buffer in outline.writes if unit in core}
    touched |= {read.buffer for read in outline.reads if read.unit in core}
    near = {unit for unit, buffer in outline.writes if buffer in touched}
    near |= {read.unit for read in outline.reads if read.buffer in touched}
    names = core if of_buffer else near | core
    return Outline(
        tuple(unit for unit in outline.units if unit.name in names),
        tuple(row for row in outline.buffers if row.buffer in touched),
        tuple((unit, buffer) for unit, buffer in outline.writes if unit in names and buffer in touched),
        tuple(read for read in outline.reads if read.unit in names and read.buffer in touched),
        outline.timed,
    )


def _is_meant(unit: Unit, name: str) -> bool:
    written = (buffer.name for row in unit.rows for buffer in row.writes)  # inside of it, maybe
    return name in (unit.name, *unit.nodes, *written) or bool(unit.kernel and unit.kernel.startswith(name))


def missed_of(outline: Outline, causes: Sequence[Cause]) -> dict[str, tuple[str, ...]]:
    """Return what the compiler missed, in sentences, by what is drawn: `node op1`, `buffer buf1`.

    That two nodes were not fused stands at the arrow between them: `read buf1 op3`.
    """
    sentences: dict[str, list[str]] = {}
    for cause in causes:
        if cause.kind == "missed" and cause.decision is not None:
            for what in _drawn(outline, cause.decision):
                sentences.setdefault(what, []).append(cause_sentence(cause))
    return {what: tuple(texts) for what, texts in sentences.items()}


def _drawn(outline: Outline, decision: Decision) -> Iterator[str]:
    """Yield what in a drawing a decision is about."""
    if decision.subject_type == "buffer":
        yield from (f"buffer {name}" for group in decision.subjects for name in group)
        return
    sides = [
        [unit.name for unit in outline.units if not unit.nodes.isdisjoint(group)]
        for group in decision.subjects
    ]
    if len(sides) == 1:
        yield from (f"node {name}" for name in sides[0])
    elif len(sides) == 2:
        written = {buffer for unit, buffer in outline.writes if unit in sides[0]}
        reads = ((read.buffer, read.unit) for read in outline.reads)
        yield from (f"read {name} {unit}" for name, unit in reads if name in written and unit in sides[1])
