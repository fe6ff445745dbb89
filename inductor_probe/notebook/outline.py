"""What is drawn of a graph: nodes after fusion, the buffers between them, and who reads what how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inductor_probe.model.layouts import Access, LayoutRow
from inductor_probe.model.nodes import NodeRow


@dataclass(frozen=True, slots=True)
class Unit:
    """A node after fusion: its name, and the unfused nodes in it."""

    name: str
    rows: tuple[NodeRow, ...]

    @property
    def kernel(self) -> str | None:
        """What runs it, None where that could not be told, or it needs none."""
        return next((row.link.kernel for row in self.rows if row.link.kernel), None)

    @property
    def nodes(self) -> frozenset[str]:
        """The names of its nodes."""
        return frozenset(row.node for row in self.rows)


@dataclass(frozen=True, slots=True)
class Read:
    """A unit reads a buffer; `slow` if a remark says that it does so non-contiguously."""

    buffer: str
    unit: str
    accesses: tuple[Access, ...]
    slow: bool = False


@dataclass(frozen=True, slots=True)
class Outline:
    """A graph, or the part of it around something.

    Attributes:
        buffers: those that more than their writer uses; what lives inside of one unit is not drawn.
        writes: unit and buffer.
    """

    units: tuple[Unit, ...]
    buffers: tuple[LayoutRow, ...]
    writes: tuple[tuple[str, str], ...]
    reads: tuple[Read, ...]


def outline(nodes: Sequence[NodeRow], buffers: Sequence[LayoutRow], around: str | None = None) -> Outline:
    """Return what is drawn of a graph.

    Args:
        nodes: its unfused nodes. buffers: all of its buffers.
        around: a node, a buffer, a kernel or the start of its name: only what has to do with it, and who
            is next to that. Nothing is drawn if the graph has none of that name.
    """
    groups: dict[str, list[NodeRow]] = {}
    for row in nodes:
        groups.setdefault(row.top or row.node, []).append(row)
    units = tuple(Unit(name, tuple(rows)) for name, rows in groups.items())
    writer = {buffer.name: unit.name for unit in units for row in unit.rows for buffer in row.writes}
    shown = {row.buffer: row for row in buffers if _is_between(row, units, writer)}
    writes = tuple((unit, buffer) for buffer, unit in writer.items() if buffer in shown)
    reads = tuple(
        Read(
            name,
            unit.name,
            tuple(access for access in shown[name].reads if access.node in unit.nodes),
            not slow_readers(shown[name]).isdisjoint(unit.nodes),
        )
        for unit in units
        for name in dict.fromkeys(name for row in unit.rows for name in row.reads)
        if name in shown and writer.get(name) != unit.name
    )
    whole = Outline(units, tuple(shown.values()), writes, reads)
    return whole if around is None else _part(whole, around)


def slow_readers(row: LayoutRow) -> frozenset[str]:
    """Return the nodes that read a buffer non-contiguously, as its remarks say."""
    return frozenset(
        subject.name
        for remark in row.remarks
        if remark.code == "noncontiguous-access"
        and (remark.number("buffer"), remark.number("direction")) == (row.buffer, "read")
        for subject in remark.subjects
    )


def _is_between(row: LayoutRow, units: Sequence[Unit], writer: dict[str, str]) -> bool:
    own = writer.get(row.buffer)
    if row.role == "output" and own is not None:
        return True
    return any(row.buffer in node.reads for unit in units if unit.name != own for node in unit.rows)


def _part(whole: Outline, name: str) -> Outline:
    """Of a buffer: who writes and reads it, and all they touch. Of a node: its buffers, and who has them."""
    meant = {unit.name for unit in whole.units if _is_meant(unit, name)}
    of_buffer = {unit for unit, buffer in whole.writes if buffer == name}
    of_buffer |= {read.unit for read in whole.reads if read.buffer == name}
    core = of_buffer or meant
    touched = {buffer for unit, buffer in whole.writes if unit in core}
    touched |= {read.buffer for read in whole.reads if read.unit in core}
    near = {unit for unit, buffer in whole.writes if buffer in touched}
    near |= {read.unit for read in whole.reads if read.buffer in touched}
    kept = core if of_buffer else near | core
    return Outline(
        tuple(unit for unit in whole.units if unit.name in kept),
        tuple(row for row in whole.buffers if row.buffer in touched),
        tuple((unit, buffer) for unit, buffer in whole.writes if unit in kept and buffer in touched),
        tuple(read for read in whole.reads if read.unit in kept and read.buffer in touched),
    )


def _is_meant(unit: Unit, name: str) -> bool:
    written = (buffer.name for row in unit.rows for buffer in row.writes)  # inside of it, maybe
    return name in (unit.name, *unit.nodes, *written) or bool(unit.kernel and unit.kernel.startswith(name))
