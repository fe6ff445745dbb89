"""Runs on disk: a table, what is removed, and what one run compiled, with the next step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from inductor_probe.files import seen_from
from inductor_probe.model.record import grouped
from inductor_probe.model.runs import GraphSummary, NextStep, Removal, RunFacts, RunSummary
from inductor_probe.report.document import (
    Block,
    Cell,
    Column,
    Line,
    RemarkLine,
    Table,
    name_style,
    remark_lines,
)
from inductor_probe.report.units import bytes_text, bytes_were, counted
from inductor_probe.report.words.remarks import sentence
from inductor_probe.report.words.runs import blocker_text, compile_reason

_STAMP = len("run_2026_01_31_12_00_00")
_STYLES = {"failed": "red", "interrupted": "red", "empty": "yellow", "running": "green"}
_AGES = ((365 * 86400, "y"), (86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_SHOWN = 8
"""Processes of a dump whose graphs are counted in the table."""
_LONGEST_NAMES = 60
"""Names of nodes that are longer are those of large fused ones: nobody types them."""


def runs_table(runs: Sequence[RunFacts], root: Path, now: float) -> Iterator[Block]:
    """Yield a row per dump, then why runs are empty or failed. `now`: seconds since the epoch."""
    if not runs:
        yield Line(f"no run below {root}")
        return
    one_tree = len({run.path.parent for run in runs}) == 1
    dumps = _dumps(runs)
    first = [dump[0] for dump in dumps]
    names = _names(first, root, one_tree=one_tree)
    with_scenario = any(run.scenario for run in runs)
    with_processes = any(len(dump) > 1 for dump in dumps)
    with_state = any(run.state not in ("ok", "unknown") for run in runs)
    columns = [
        Column("run", fold="end", least=_shortest(first)) if one_tree else Column("run", fold="path"),
        *([Column("processes")] if with_processes else []),
        *([Column("scenario"), Column("cases", rank=1)] if with_scenario else []),
        *(Column(title, fold="never") for title in ("torch", "device")),
        *(Column(title, right=True, fold="never") for title in ("graphs", "size", "age")),
        *([Column("state", fold="never")] if with_state else []),
    ]
    rows: list[list[Cell]] = []
    for dump in dumps:
        run = dump[0]
        state = next((one.state for one in dump if one.state == "running"), run.state)
        if state in ("ok", "empty") and any(
            one.remark and one.remark.code == "compile-failed" for one in dump
        ):
            state = "failed"  # in another process than the script's
        devices = dict.fromkeys(device for one in dump for device in one.devices)
        rows.append(
            [
                (names[run.path], "bold"),
                *([processes_text(dump) if len(dump) > 1 else "1"] if with_processes else []),
                *([run.scenario or "-", ", ".join(run.cases) or "-"] if with_scenario else []),
                (run.torch or "?").partition("+")[0],
                ", ".join(devices) or "-",
                "+".join(str(one.graphs) for one in dump[:_SHOWN]) + ("+..." if dump[_SHOWN:] else ""),
                bytes_text(sum(one.size for one in dump)),
                age_text(now - run.made),
                *([("-" if state == "unknown" else state, _STYLES.get(state, ""))] if with_state else []),
            ]
        )
    yield Table(columns, rows)
    for dump in dumps:
        for run in dump:
            if run.remark:
                name = names[dump[0].path] + (f"@{_process(run)}" if len(dump) > 1 else "")
                yield Line([("! ", "bold red"), (name, "bold"), f": {sentence(run.remark)}"])


def _dumps(runs: Sequence[RunFacts]) -> list[list[RunFacts]]:
    """Put the runs of a dump together, in the order of its processes."""
    dumps = grouped(runs, lambda run: (run.path.parent, run.dump or run.name))
    return [sorted(dump, key=lambda run: run.place) for dump in dumps.values()]


def _process(run: RunFacts) -> str:
    return f"pid{run.pid}" if run.rank is None else f"rank{run.rank}"


def processes_text(dump: Sequence[RunFacts]) -> str:
    """`4: ranks 0-1`: how many processes of a dump have runs, and which ranks they were."""
    ranks = sorted({run.rank for run in dump if run.rank is not None})
    if not ranks:
        return str(len(dump))
    together = ranks == list(range(ranks[0], ranks[-1] + 1)) and len(ranks) > 1
    shown = f"{ranks[0]}-{ranks[-1]}" if together else ", ".join(map(str, ranks))
    return f"{len(dump)}: rank{'s' if len(ranks) > 1 else ''} {shown}"


def _names(runs: Sequence[RunFacts], root: Path, *, one_tree: bool) -> dict[Path, str]:
    """Return what to call each run: something that means it, and it alone, to every verb.

    That is its label; else, in one tree, its folder's name; else the way to it, as short as it still leads to
    one run only.
    """
    labels = Counter(run.label for run in runs)
    below = Counter(folder for run in runs for folder in (run.path, *run.path.parents))
    names = {}
    for run in runs:
        path = run.path
        if run.label and labels[run.label] == 1:
            names[path] = run.label
        elif one_tree:
            names[path] = run.name
        else:
            while path.parent != root and below[path.parent] == 1:
                path = path.parent
            names[run.path] = str(seen_from(path, root))
    return names


def _shortest(runs: Sequence[RunFacts]) -> int:
    """Return how much of a name is enough: the time in it, if no two runs have the same."""
    times = Counter(run.name[:_STAMP] for run in runs)
    longest = max(len(run.label or "") for run in runs)
    return max(_STAMP, longest) if max(times.values()) == 1 else max(len(run.name) for run in runs)


def age_text(seconds: float) -> str:
    """`3 h`, `2 d`: the largest unit that fits."""
    return next((f"{int(seconds // length)} {unit}" for length, unit in _AGES if seconds >= length), "0 s")


def removal_lines(removals: Sequence[Removal], verb: str) -> Iterator[Block]:
    """Say what goes, or went (`verb`), and what is kept because of what."""
    for removal in removals:
        if not removal.blockers:
            files = counted(len(removal.files) + len(removal.beside), "file")
            yield Line(f"{verb} {removal.run} ({files}, {bytes_text(removal.size)})")
    for removal in removals:
        if removal.blockers:
            blockers = "; ".join(map(blocker_text, removal.blockers))
            yield Line([(f"kept {removal.run}: ", "bold yellow"), blockers])


def summary_page(summary: RunSummary) -> Iterator[Block]:
    """Yield a row per graph, then the remarks about each, and about the run."""
    if summary.empty:
        yield Line([("empty run: ", "bold red"), sentence(summary.empty)])
    else:
        yield _graphs(summary.graphs)
    for graph in summary.graphs:
        if graph.problems or graph.remarks:
            yield Line([(graph.graph, "bold"), ":"])
        yield from _remarks(graph, {name: str(line) for name, line in graph.sources})
    if summary.problems or summary.remarks:
        yield Line(("the run:", "bold"))
    yield from _remarks(summary, {})


def _remarks(summary: GraphSummary | RunSummary, places: Mapping[str, str]) -> Iterator[Block]:
    yield from (RemarkLine("hazard", str(problem), 2) for problem in summary.problems)
    yield from remark_lines(summary.remarks, 2, places=places)


def _graphs(graphs: Sequence[GraphSummary]) -> Table:
    with_case = any(graph.case for graph in graphs)
    with_why = any(graph.compile_kind not in (None, "first") for graph in graphs)
    columns = [
        Column("graph"),
        *([Column("case")] if with_case else []),
        *([Column("why", rank=1, below=True)] if with_why else []),
        Column("nodes", fold="never"),
        Column("kernels", fold="never"),
        *(Column(title, right=True) for title in ("extern", "buffers", "bytes")),
    ]
    rows: list[list[Cell]] = []
    for graph in graphs:
        rows.append(
            [
                (graph.graph, "bold red" if graph.problems else name_style(graph.remarks)),
                *([graph.case or "-"] if with_case else []),
                *([compile_reason(graph) or "-"] if with_why else []),
                f"{graph.nodes_before} -> {graph.nodes_after}",
                _kernels(graph.kernels),
                str(graph.externs),
                str(graph.buffers),
                bytes_were(graph.buffer_bytes, graph.recorded_bytes),
            ]
        )
        rows += [
            [
                (f"  {part.name}", "dim"),
                *(["-"] if with_case else []),
                *(["subgraph"] if with_why else []),
                str(part.nodes),
                _kernels(part.kernels),
                str(part.externs),
                str(part.buffers),
                bytes_were(part.buffer_bytes, None),
            ]
            for part in graph.subgraphs
        ]
    return Table(columns, rows)


def _kernels(kernels: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{count} {backend}" for backend, count in kernels) or "-"


def next_step(step: NextStep, target: str) -> tuple[str, str]:
    """Return the command of a next step, and why it is that one; an empty `target` is the latest run."""
    where = f" {target}" if target else ""
    match step.kind:
        case "doctor":
            return "probe doctor", ""
        case "unread":
            return f"probe check{where}", "(parts of the dump could not be read)"
        case "scalar":
            have = "1 kernel has" if len(step.names) == 1 else f"{len(step.names)} kernels have"
            return f"probe kernels{where} --only scalar", f"({have} scalar loops)"
        case "why" if len(step.names) == 1:
            return f"probe why {step.names[0]}{where}", "(why it is scalar, and what changes it)"
        case "why":
            return (
                f"probe why --kind vectorisation{where}",
                f"(why {len(step.names)} kernels have scalar loops)",
            )
        case "apart":
            nodes = " ".join(step.names)
            shared = bytes_text(step.bytes)
            if len(nodes) > _LONGEST_NAMES:
                return f"probe fusion{where}", f"(two nodes share {shared}, and were not fused)"
            return f"probe fusion {nodes}{where}", f"(they share {shared}, and were not fused)"
        case "measure":
            return f"probe bench-kernel{where}", ""
