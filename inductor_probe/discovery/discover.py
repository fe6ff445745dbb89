"""One rule from a string to a run or graph, for every verb and for Python.

    STRING         names                                                  example
    (none)         the latest run                                         probe show
    PATH           whatever is there: tree, run, graph, file, archive     torch_compile_debug/run_.../
    GRAPH          a graph of the latest run, or of the only run          model__0_inference_0.0, model__1
                   that has one of that name
    RUN            a run, by label or folder name                         gpt_block, run_2026_01_31
    RUN:NUMBER     the graph of a run whose name ends in .NUMBER          gpt_block:1
    RUN/GRAPH      the graph of that name in a run                        gpt_block/model__1
    :NUMBER        of the latest run                                      :1

GRAPH and RUN may be the start of a name where no other name starts so. Of several runs with one label the
latest is meant. What is there as a path goes first, then whole names before starts of names, and graphs of
the latest run before labels before folder names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from inductor_probe.discovery.at_path import Found, dump_at, open_run, path_of
from inductor_probe.discovery.tree import runs_below
from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.model.debug_dir import TREE, DebugDir, GraphDir
from inductor_probe.reader.debug_dir import read_run

__all__ = ["TREE", "Found", "find", "labels", "name_of", "runs_below"]

_DUMP_FIRST = "dump a script first: probe dump check_hflip.py"
_NUMBERED = re.compile(r"(?P<run>.*):(?P<number>\d{1,9})")
_NAMED = 8

Thing = TypeVar("Thing")


def find(target: str | None, cwd: Path, runs: Sequence[Path] | None = None) -> Found:
    """Find what `target` names, seen from `cwd`: see above.

    Args:
        runs: those that a name may mean, the oldest first; those of the tree at or above `cwd` if None.

    Raises:
        NotFoundError: nothing of that name, or several things; near names, or all of them, are offered.
        UnreadableError: a folder that may not be listed, an archive that is damaged.
    """
    if target is None:
        return Found(open_run((runs or _paths(cwd))[-1]))
    path = path_of(target, cwd)
    if at_path := dump_at(path):
        return at_path
    try:
        paths = runs or _paths(cwd)
    except NotFoundError:
        if "/" in target:
            raise NotFoundError(f"{path} does not exist") from None
        raise NotFoundError(
            f"no run in {cwd / TREE}, so no graph or run called {target}", _DUMP_FIRST
        ) from None
    return _Runs(paths, cwd).named(target)


def name_of(run: DebugDir, graph: GraphDir, cwd: Path) -> str:
    """Return a short string that `find` finds a graph by from `cwd`: `gpt_block:1`, or else its path."""
    name = _Runs(runs_below(cwd), cwd).name_of(run, graph)
    path = graph.path.relative_to(cwd) if graph.path.is_relative_to(cwd) else graph.path
    return name or str(path)


def labels(cwd: Path) -> tuple[str, ...]:
    """Return the labels of the runs seen from `cwd`, the latest first."""
    return tuple(_Runs(runs_below(cwd), cwd).labels)


def _paths(cwd: Path) -> Sequence[Path]:
    paths = runs_below(cwd)
    if not paths:
        raise NotFoundError(f"no run in {cwd / TREE}", _DUMP_FIRST)
    return paths


class _Runs:
    """The runs seen from a folder, the latest first."""

    def __init__(self, paths: Sequence[Path], cwd: Path) -> None:
        self.cwd = cwd
        self.runs = [open_run(paths[-1]), *map(read_run, reversed(paths[:-1]))] if paths else []
        self.labels: dict[str, DebugDir] = {}
        for run in self.runs:
            if run.manifest and run.manifest.label:
                self.labels.setdefault(run.manifest.label, run)

    def named(self, target: str) -> Found:
        """Return what is called `target`: of the latest run's graphs, the runs, or the older runs' graphs."""
        latest, *older = self.runs
        target = target.rstrip("/") or target
        if target in self.labels and not any(graph.name == target for graph in latest.graphs):
            return Found(self.labels[target])
        if graph := _pick(target, latest.graphs, _name, "graphs"):
            return Found(latest, graph)
        if run := self._run(target):
            return Found(run)
        if match := _NUMBERED.fullmatch(target):
            run = self._run(match["run"]) if match["run"] else latest
            if run is not None:
                return Found(run, self._numbered(run, int(match["number"])))
        head, slash, tail = target.rpartition("/")
        if slash and (run := self._run(head)):
            return Found(run, self._graph(run, tail))
        if slash:
            raise NotFoundError(f"{path_of(target, self.cwd)} does not exist", self._near(target))
        for same in (str.__eq__, str.startswith):
            having = [(run, graph) for run in older for graph in run.graphs if same(graph.name, target)]
            if len(having) == 1:
                return Found(*having[0])
            if having:
                known = (self.name_of(*each, with_run=True) for each in having[:_NAMED])
                names = ", ".join(filter(None, known))
                raise NotFoundError(
                    f"{target} names graphs of {len(having)} older runs: name the run, too", f"one of {names}"
                )
        raise NotFoundError(f"no graph or run called {target} in {latest.path.parent}", self._near(target))

    def name_of(self, run: DebugDir, graph: GraphDir, *, with_run: bool = False) -> str | None:
        """Return a short string that `named` finds a graph by, None if there is none.

        `LABEL:NUMBER` means another graph where a later run has the same label, and none where two graphs of
        the run have the same number: then it is `GRAPH`, `LABEL/GRAPH`, `RUN:NUMBER` or `RUN/GRAPH`.

        Args:
            with_run: leave out `GRAPH`.
        """
        label = run.manifest.label if run.manifest else None
        names = [f"{label}:{graph.order}"] if label else []
        names += [] if with_run else [graph.name]
        names += [f"{label}/{graph.name}"] if label else []
        for name in (*names, f"{run.name}:{graph.order}", f"{run.name}/{graph.name}"):
            try:
                there = self.named(name) if self.runs else None
            except NotFoundError:
                continue
            if there and there.graph and there.graph.path == graph.path:
                return name
        return None

    def _run(self, name: str) -> DebugDir | None:
        """Return the run called `name`, by label or folder name, or the only one whose name starts so."""
        if name in self.labels:
            return self.labels[name]
        labelled = _pick(name, list(self.labels), str, "labels") if name else None
        if labelled:
            return self.labels[labelled]
        return _pick(name, self.runs, lambda run: run.name, "runs") if name else None

    def _graph(self, run: DebugDir, name: str) -> GraphDir:
        if graph := _pick(name, run.graphs, _name, "graphs"):
            return graph
        raise NotFoundError(f"{run.path} has no graph {name}", near_names(name, map(_name, run.graphs)))

    def _numbered(self, run: DebugDir, number: int) -> GraphDir:
        graphs = [graph for graph in run.graphs if graph.order == number]
        if len(graphs) == 1:
            return graphs[0]
        known = ", ".join(_name(graph) for graph in (graphs or run.graphs)[:_NAMED])
        what = f"{len(graphs)} graphs" if graphs else "no graph"
        raise NotFoundError(f"{run.path} has {what} whose name ends in .{number}", f"it has {known}")

    def _near(self, target: str) -> str | None:
        graphs = [graph.name for graph in self.runs[0].graphs]
        return near_names(target, [*graphs, *self.labels, *(run.name for run in self.runs)])


def _name(graph: GraphDir) -> str:
    return graph.name


def _pick(target: str, things: Iterable[Thing], name: Callable[[Thing], str], what: str) -> Thing | None:
    """Return what is called `target`, or the only thing whose name starts so."""
    by_name = {name(thing): thing for thing in things}
    if target in by_name:
        return by_name[target]
    starting = [known for known in by_name if known.startswith(target)]
    if len(starting) > 1:
        raise NotFoundError(f"{target} is the start of {len(starting)} {what}", near_names(target, starting))
    return by_name[starting[0]] if starting else None
