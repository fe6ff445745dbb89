"""The completeness check of dumps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from inductor_probe.analysis.check import check_graph
from inductor_probe.analysis.check_logs import check_logs
from inductor_probe.analysis.run_remarks import cut_short, why_empty
from inductor_probe.discovery.discover import find
from inductor_probe.discovery.run_facts import maker
from inductor_probe.discovery.walk import everything_below
from inductor_probe.model.check import DumpCheck, GraphCheck
from inductor_probe.model.debug_dir import DebugDir
from inductor_probe.model.span import Problem
from inductor_probe.notebook.shown import Renderable, Shown
from inductor_probe.reader.debug_dir import read_graph, texts_of, unopened_files
from inductor_probe.reader.logs.run_logs import read_logs
from inductor_probe.report.check import CheckText
from inductor_probe.report.words.remarks import sentence


class Check(DumpCheck, Shown):
    """A check that shows itself."""

    def __rich__(self) -> Renderable:
        return CheckText(self)

    __repr__ = Shown.__repr__


def check(*paths: str | Path) -> Check:
    """Read everything below each path (the latest run without one) and account for every line of it.

    Raises:
        NotFoundError, UnreadableError: a path that is not there, or an archive that cannot be opened.
    """
    runs, problems = _runs(paths)
    if not runs:
        problems.append(Problem(f"no dump below {', '.join(map(str, paths))}"))
    graphs: list[GraphCheck] = []
    empty: list[Path] = []
    for run in runs:
        problems.extend(run.problems)
        empty.extend(run.empty_graphs)
        if not run.graphs and not run.empty_graphs:
            problems.append(Problem(f"{run.path}: {sentence(why_empty(run))}"))
        elif run.manifest and (remark := cut_short(run.manifest, run.name)):
            problems.append(Problem(f"{run.path}: {_running(run) or sentence(remark)}"))
        for folder in run.graphs:
            graph = read_graph(folder, run.manifest)
            graphs.append(check_graph(graph, texts_of(graph), unopened_files(graph)))
    logs = [found for run in runs if (found := check_logs(run, read_logs(run)))]
    return Check(tuple(graphs), tuple(logs), tuple(problems), tuple(empty))


def _running(run: DebugDir) -> str | None:
    """Say that the script is still there, where the manifest tells only how it will have ended otherwise."""
    pid = maker(run)
    return None if pid is None else f"process {pid}, which makes it, is still there"


def _runs(paths: Sequence[str | Path]) -> tuple[list[DebugDir], list[Problem]]:
    """Return every run below the paths once, and what kept others from being found."""
    if not paths:
        return [find(None, Path.cwd()).run], []
    runs: dict[Path, DebugDir] = {}
    problems: list[Problem] = []
    for path in paths:
        below = everything_below(Path(path))
        problems.extend(below.problems)
        for run in below:
            runs.setdefault(run.path, run)
    return list(runs.values()), problems
