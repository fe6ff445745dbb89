"""Whether a dump is complete and understood (`probe check`), and the machine fit (`probe doctor`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from inductor_probe.model.check import DumpCheck, FileCheck
from inductor_probe.model.health import Level, MachineHealth
from inductor_probe.report.document import Block, Cell, Column, Line, RemarkLine, Table
from inductor_probe.report.units import counted, first_names
from inductor_probe.report.words.health import text_and_remedy
from inductor_probe.report.words.remarks import sentence

_MOST_NAMES = 12
_LEVELS: dict[Level, str] = {"ok": "green", "warning": "yellow", "error": "bold red"}
"""The style of each level, the worst last."""


def check_page(check: DumpCheck) -> Iterator[Block]:
    """Yield the verdict in one line, what was read of each kind of file, then every problem."""
    logs = f" and {counted(len(check.logs), 'log')}" if check.logs else ""
    counts = (
        f"{counted(len(check.graphs), 'graph')}{logs}, {counted(check.nodes, 'node')}, "
        f"{counted(check.kernels, 'kernel')}, {counted(check.launches, 'launch', 'launches')}"
    )
    yield Line([_verdict(check), f": {counts}, {_lines(check.total)}"])
    if check.sound and not check.whole:
        yield Line(f"not called whole: {_unseen(check)}")
    if check.empty_graphs:
        folders = counted(len(check.empty_graphs), "graph folder is empty", "graph folders are empty")
        yield Line(f"{folders}: inductor makes one before it sees that the graph computes nothing")
    if check.unread_lines:
        yield RemarkLine("hazard", f"{counted(check.unread_lines, 'line')} not understood", 2)
    if check.unlinked_nodes:
        yield RemarkLine("hazard", f"{counted(check.unlinked_nodes, 'node')} without a proved kernel", 2)
    for file in check.files:
        yield Line((f"{file.kind}: {_lines(file)}", "dim"), 2)
    if check.problems or any(graph.unlinked or graph.remarks for graph in check.graphs):
        yield Line()
    for problem in check.problems:
        yield Line(str(problem))
    for graph in check.graphs:
        for remark in graph.remarks:
            yield Line((f"{graph.graph}: {sentence(remark)}", "dim"))
        if graph.unlinked:
            names = first_names(graph.unlinked, _MOST_NAMES)
            rest = " (--json lists all)" if len(graph.unlinked) > _MOST_NAMES else ""
            yield Line(f"{graph.graph}: no kernel could be linked to {names}{rest}")


def _verdict(check: DumpCheck) -> tuple[str, str]:
    if check.whole:
        return "whole", "bold green"
    return ("no problem", "bold green") if check.sound else ("not whole", "bold red")


def _lines(file: FileCheck) -> str:
    """`300 lines (200 read, 80 checked, 20 comments or empty)`."""
    parts = (
        (file.read, "read"),
        (file.checked, "checked"),
        (file.comments, "comments or empty"),
        (file.counted, "only counted"),
        (file.unread, "not understood"),
    )
    detail = ", ".join(f"{number:,} {what}" for number, what in parts if number)
    return counted(file.lines, "line") + (f" ({detail})" if detail else "")


def _unseen(check: DumpCheck) -> str:
    """Say what was neither read nor checked."""
    parts = [
        f"{counted(file.counted, 'line')} of {file.kind} only counted" for file in check.files if file.counted
    ]
    for name, count in Counter(path.name for path in check.unopened).items():
        parts.append(f"{name} not opened" + (f" ({count} times)" if count > 1 else ""))
    return ", ".join(parts)


def health_page(health: MachineHealth) -> Iterator[Block]:
    """Yield a row for each subject, the worst diagnostic about it first, then whether the machine is fit."""
    order, diagnostics = list(_LEVELS), health.diagnostics
    subjects = list(dict.fromkeys(diagnostic.about for diagnostic in diagnostics))
    ranked = sorted(diagnostics, key=lambda one: (subjects.index(one.about), -order.index(one.level)))
    rows: list[list[Cell]] = []
    above: tuple[str, str] | None = None
    for diagnostic in ranked:
        text, remedy = text_and_remedy(diagnostic)
        repeated = above == (diagnostic.level, diagnostic.about)
        above = (diagnostic.level, diagnostic.about)
        level = ("" if repeated else diagnostic.level, _LEVELS[diagnostic.level])
        about = ("" if repeated else diagnostic.about, "dim")
        rows.append([level, about, text if remedy is None else [text, "; ", (remedy, "cyan")]])
    yield Table((Column("", fold="never"), Column("", fold="never"), Column("")), rows)
    yield Line()
    levels = [diagnostic.level for diagnostic in diagnostics]
    warnings = f"; {counted(levels.count('warning'), 'warning')} above" if "warning" in levels else ""
    if health.fit:
        yield Line([("fit", "bold green"), f": nothing that is needed is missing{warnings}"])
    else:
        missing = dict.fromkeys(diagnostic.about for diagnostic in diagnostics if diagnostic.level == "error")
        yield Line([("not fit", "bold red"), f": see {', '.join(missing)}{warnings}"])
