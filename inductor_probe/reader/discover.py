"""Finding the run or graph that a user means: by path, by name, by label, or the latest one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from inductor_probe.errors import NotFoundError, UnreadableError, near_names
from inductor_probe.model.debug_dir import DebugDir, GraphDir
from inductor_probe.reader.debug_dir import graph_dir, is_run, read_run

TREE = "torch_compile_debug"
_STAMP = re.compile(r"run_(\d{4}(?:_\d{2}){5}_\d{6})")
_DUMP_FIRST = "dump a script first: probe dump check_hflip.py"


@dataclass(frozen=True, slots=True)
class Found:
    """A run, and the one graph in it that was named, if one was."""

    run: DebugDir
    graph: GraphDir | None = None


def find(target: str | None, cwd: Path) -> Found:
    """Find what `target` names, seen from `cwd`.

    A path to a graph, a run or a tree of runs; else the name of a graph of the latest run or a unique prefix
    of it; else a run's label, its folder's name or a unique prefix of that. None is the latest run.

    Raises:
        NotFoundError: nothing of that name; near names are offered.
        UnreadableError: a folder that may not be listed.
    """
    if target is None:
        return Found(read_run(_latest(cwd)))
    path = (cwd / Path(target).expanduser()).resolve()
    if path.exists():
        return _at_path(path)
    if "/" in target:
        raise NotFoundError(f"{path} does not exist")
    return _by_name(target, cwd)


def runs_below(path: Path) -> list[Path]:
    """Return the runs of the tree at, in or above `path`, oldest first."""
    for folder in (path, *path.parents):
        if is_run(folder):
            return [folder]
        if folder.name == TREE or folder == path:
            tree = folder if folder.name == TREE else folder / TREE
            runs = [entry for entry in _list(tree) if is_run(entry)] if tree.is_dir() else []
            if runs or folder.name == TREE:
                return sorted(runs, key=_when)
    return []


def _latest(cwd: Path) -> Path:
    runs = runs_below(cwd)
    if not runs:
        raise NotFoundError(f"no run in {cwd / TREE}", _DUMP_FIRST)
    return runs[-1]


def _at_path(path: Path) -> Found:
    folder = path if path.is_dir() else path.parent
    if is_run(folder):
        return Found(read_run(folder))
    if graph := graph_dir(folder):
        run = folder.parent.parent
        if folder.parent.name == "torchinductor" and is_run(run):
            return Found(read_run(run), graph)
        return Found(DebugDir(folder.parent, (graph,), None), graph)
    if folder.name == "torchinductor" and is_run(folder.parent):
        return Found(read_run(folder.parent))
    entries = _list(folder / TREE if (folder / TREE).is_dir() else folder)
    runs = sorted((entry for entry in entries if is_run(entry)), key=_when)
    if runs:
        return Found(read_run(runs[-1]))
    graphs = [graph for entry in entries if (graph := graph_dir(entry))]
    if graphs:
        graphs.sort(key=lambda graph: (graph.order, graph.name))
        return Found(DebugDir(folder, tuple(graphs), None))
    raise NotFoundError(
        f"{path} is not a debug dir: no run and no graph in it",
        "give a torch_compile_debug folder, a run_* folder in it, or a graph's folder",
    )


def _by_name(target: str, cwd: Path) -> Found:
    paths = runs_below(cwd)
    if not paths:
        raise NotFoundError(f"no run in {cwd / TREE}, so no graph or run called {target}", _DUMP_FIRST)
    latest = read_run(paths[-1])
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


def _when(run: Path) -> tuple[float, str]:
    """When a run was made: torch stamps the folder's name; a renamed folder without it has its own time."""
    if match := _STAMP.search(run.name):
        stamp = datetime.strptime(match[1], "%Y_%m_%d_%H_%M_%S_%f").astimezone(timezone.utc)
        return (stamp.timestamp(), run.name)
    return (run.stat().st_mtime, run.name)


def _list(folder: Path) -> list[Path]:
    try:
        return sorted(entry for entry in folder.iterdir() if entry.is_dir())
    except OSError as error:
        raise UnreadableError(f"cannot list {folder}: {error.strerror or error}") from error
