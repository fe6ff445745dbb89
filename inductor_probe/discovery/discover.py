"""Finding the run or graph that a user means: by path, by name, by label, or the latest one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from inductor_probe.discovery.at_path import Found, dump_at, open_run, path_of
from inductor_probe.discovery.tree import runs_below
from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.model.debug_dir import TREE
from inductor_probe.reader.debug_dir import read_run

__all__ = ["TREE", "Found", "find", "runs_below"]

_DUMP_FIRST = "dump a script first: probe dump check_hflip.py"


def find(target: str | None, cwd: Path) -> Found:
    """Find what `target` names, seen from `cwd`.

    A path to a graph, a run, a tree of runs, a folder or an archive that holds one of them, or a path on into
    an archive; else the name of a graph of the latest run or a unique prefix of it; else a run's label, its
    folder's name or a unique prefix of that. None is the latest run.

    Raises:
        NotFoundError: nothing of that name; near names are offered.
        UnreadableError: a folder that may not be listed, an archive that is damaged.
    """
    if target is None:
        return Found(open_run(_latest(cwd)))
    path = path_of(target, cwd)
    if found := dump_at(path):
        return found
    if "/" in target:
        raise NotFoundError(f"{path} does not exist")
    return _by_name(target, cwd)


def _latest(cwd: Path) -> Path:
    runs = runs_below(cwd)
    if not runs:
        raise NotFoundError(f"no run in {cwd / TREE}", _DUMP_FIRST)
    return runs[-1]


def _by_name(target: str, cwd: Path) -> Found:
    paths = runs_below(cwd)
    if not paths:
        raise NotFoundError(f"no run in {cwd / TREE}, so no graph or run called {target}", _DUMP_FIRST)
    latest = open_run(paths[-1])
    graphs = {graph.name: graph for graph in latest.graphs}
    if name := _pick(target, graphs, "graphs"):
        return Found(latest, graphs[name])
    runs = [latest, *(read_run(path) for path in reversed(paths[:-1]))]
    for run in runs:
        if run.manifest and run.manifest.label == target:
            return Found(run)
    by_name = {run.name: run for run in runs}
    if name := _pick(target, by_name, "runs"):
        return Found(by_name[name])
    older = next((run for run in runs if any(graph.name == target for graph in run.graphs)), None)
    if older:
        raise NotFoundError(
            f"the latest run {latest.name} has no graph {target}, {older.name} has",
            f"name its path: {older.path / 'torchinductor' / target}",
        )
    labels = [run.manifest.label for run in runs if run.manifest and run.manifest.label]
    hint = near_names(target, [*graphs, *labels, *by_name])
    raise NotFoundError(f"no graph or run called {target} in {paths[-1].parent}", hint)


def _pick(target: str, names: Iterable[str], what: str) -> str | None:
    """Return the name that is `target` or the only one that starts with it."""
    known = list(names)
    if target in known:
        return target
    starting = [name for name in known if name.startswith(target)]
    if len(starting) > 1:
        raise NotFoundError(f"{target} is the start of {len(starting)} {what}", near_names(target, starting))
    return starting[0] if starting else None
