"""The dump at a path, whatever its shape: a run, a graph, copies under other names, an archive, a cache."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inductor_probe.discovery.dump_files import is_archive
from inductor_probe.discovery.inductor_cache import graphs_named_in, with_cached_graphs
from inductor_probe.discovery.tree import runs_in
from inductor_probe.discovery.walk import Below, compile_order, everything_below
from inductor_probe.errors import NotFoundError
from inductor_probe.model.debug_dir import DebugDir, GraphDir
from inductor_probe.reader.debug_dir import graph_dir, is_empty, is_run, read_run

_NAMED = 6
_INSIDE_A_RUN = ("torchinductor", "torchdynamo", "probe_logs", "probe_inputs")
_WHAT_TO_GIVE = (
    "give a torch_compile_debug folder, a run_* folder in it, a graph's folder, or an archive of one"
)


@dataclass(frozen=True, slots=True)
class Found:
    """A run, and the one graph in it that was named, if one was."""

    run: DebugDir
    graph: GraphDir | None = None


def path_of(target: str, cwd: Path) -> Path:
    """Return the path that `target` is, seen from `cwd`: without links, `~` expanded, there or not.

    Raises:
        NotFoundError: no file can be called that.
    """
    if "\0" in target:
        raise NotFoundError(f"{target} is no name of a file")
    return Path(os.path.realpath(cwd / os.path.expanduser(target)))  # noqa: PTH111 - does not raise for `~nobody`


def dump_at(path: Path) -> Found | None:
    """Return the run or graph at `path`, the latest of a tree of runs; None when nothing is there.

    `path` may be a file inside of a run, and may lead on into an archive.

    Raises:
        NotFoundError: something else is there, or several dumps, which the hint names.
        UnreadableError: a folder that may not be listed, an archive that is damaged.
    """
    for place in (path, *path.parents):
        if is_archive(place):
            return _in_archive(place, path.relative_to(place))
        if os.path.lexists(place):
            break
    if not os.path.exists(path):  # noqa: PTH110 - no name is too long for it
        return None
    return _of_folder(path) if path.is_dir() else _of_file(path)


def open_run(path: Path) -> DebugDir:
    """Read the run in `path`; an empty one has the graphs that it took from inductor's cache."""
    return with_cached_graphs(read_run(path))


def _in_archive(archive: Path, rest: Path) -> Found:
    from inductor_probe.discovery.archive import unpack  # noqa: PLC0415 - most dumps are in none

    unpacked = unpack(archive)
    path = unpacked.folder / rest
    if not os.path.exists(path):  # noqa: PTH110 - no name is too long for it
        raise NotFoundError(
            f"{archive} holds no dump at {rest}", f"probe check {archive} tells what it holds"
        )
    found = _of_folder(path, archive / rest) if path.is_dir() else _of_file(path)
    return replace(found, run=replace(found.run, problems=(*unpacked.problems, *found.run.problems)))


def _of_file(path: Path) -> Found:
    for folder in list(path.parents)[:3]:  # <run>/torchinductor/<graph>/probe_inputs is the deepest
        if found := _run_or_graph(folder):
            return found
        if folder.name not in _INSIDE_A_RUN:
            break
    if graph := graph_dir(path.with_suffix(".debug")):  # beside code in inductor's cache
        return Found(DebugDir(graph.path.parent, (graph,), None), graph)
    if named := graphs_named_in(path):
        graphs = tuple(graph for folder in named if (graph := graph_dir(folder)))
        if len({graph.path.parent for graph in graphs}) == 1 and (found := _run_or_graph(graphs[0].path)):
            return Found(found.run)
        return Found(DebugDir(path.parent, tuple(sorted(graphs, key=compile_order)), None))
    hint = f"probe dump {path} makes a dump of what it compiles" if path.suffix == ".py" else _WHAT_TO_GIVE
    raise NotFoundError(f"{path} is a file outside of any dump", hint)


def _of_folder(path: Path, called: Path | None = None) -> Found:
    """Find the dump in a folder; messages name it `called`."""
    called = called or path
    if found := _run_or_graph(path):
        return found
    if path.name in _INSIDE_A_RUN:
        for folder in list(path.parents)[:2]:
            if is_run(folder) or graph_dir(folder):
                return _of_folder(folder)
    if runs := runs_in(path):
        return Found(open_run(runs[-1]))
    below = everything_below(path, archives=False)
    if len(below.runs) == 1:
        (run,) = below
        run = replace(with_cached_graphs(run), problems=(*run.problems, *below.problems))
        return Found(run, run.graphs[0] if run.manifest is None and _is_lone(run) else None)
    if below.runs:
        names = _short_names(path, below)
        raise NotFoundError(
            f"{called} holds {len(names)} dumps: name one",
            f"for example {called / names[0]}; there is {_listed(names)}",
        )
    archives = sorted(entry for entry in path.iterdir() if is_archive(entry))
    raise NotFoundError(
        f"{called} is not a debug dir: no run and no graph in it",
        f"it holds archives, name one: {_listed([entry.name for entry in archives])}"
        if archives
        else _WHAT_TO_GIVE,
    )


def _run_or_graph(folder: Path) -> Found | None:
    """Return what `folder` itself is, without looking below it."""
    if is_run(folder):
        return Found(open_run(folder))
    graph = graph_dir(folder)
    if graph is None:
        return None
    if is_empty(folder):
        raise NotFoundError(
            f"{folder} is empty: so inductor leaves the folder of a graph that computes nothing",
            "the other graphs of the run have what was compiled",
        )
    run = folder.parent.parent
    if folder.parent.name == "torchinductor" and is_run(run):
        return Found(read_run(run), graph)
    return Found(DebugDir(folder.parent, (graph,), None), graph)


def _is_lone(run: DebugDir) -> bool:
    """Tell whether `run` is a single graph's folder, outside of any run."""
    return len(run.graphs) == 1 and not is_run(run.path)


def _short_names(path: Path, below: Below) -> list[str]:
    """Return where each dump lies below `path`, as short as it is still the only one there."""
    places = [run.path for run in below]
    dumps = Counter(folder for place in places for folder in (place, *place.parents))
    names = []
    for place in places:
        while path not in (place, place.parent) and dumps[place.parent] == 1:
            place = place.parent  # noqa: PLW2901 - it climbs
        names.append(place.relative_to(path).as_posix())
    return names


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
