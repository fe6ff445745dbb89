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
    ...@rankN      any of these, of that rank; @pidN for a process        gpt_block@rank1, @rank1:0

Of a script that started processes, RUN is the dump: what names the run that stands for it names all of its
runs. GRAPH and RUN may be the start of a name where no other name starts so. Of several runs with one label
the latest is meant. What is there as a path goes first, then whole names before starts of names, and graphs
of the latest run before labels before folder names. A name may have an ellipsis for what a screen left out.

The latest run is the user's: one that `probe whatif` made to be compared with another is not meant without
its name, so that `probe show op0` shows A's after it, too.

Of a run with several graphs, a verb whose answer is rows answers for each that has the name, one below the
other under the graph's name, and in one list of rows in JSON (`show`, `why`, `nodes`, `kernels`, `layouts`,
`fusion`, `tunings`, `rewrite`, `expect`, `profile`, `whatif`). One that runs, writes or judges what is of one
graph takes the first, or the first that has the kernel, and says so on standard error (`bench-kernel`,
`check-kernel`, `sweep-configs`, `asm`, `export-cpp`, `verdict`, `rewrite SPEC`, `show --annotate`). Python's
functions of these refuse such a run, and name its graphs (`open_graph`): a program knows which it means.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.discovery.dump_files import is_archive, is_read
from inductor_probe.discovery.dump_processes import OF_PROCESS, run_of_process, runs_of_dump
from inductor_probe.discovery.inductor_cache import graphs_named_in, with_cached_graphs
from inductor_probe.discovery.package import PACKAGE, is_package
from inductor_probe.discovery.walk import Below, compile_order, everything_below, runs_below, runs_in
from inductor_probe.errors import NotFoundError, names_meant, near_names
from inductor_probe.files import seen_from
from inductor_probe.model.debug_dir import TREE, DebugDir, GraphDir
from inductor_probe.reader.debug_dir import graph_dir, is_empty, is_run, read_run

_DUMP_FIRST = "dump a script first: probe dump check_hflip.py"
_NUMBERED = re.compile(r"(?P<run>.*):(?P<number>\d{1,9})")
_NAMED = 6
_CODE = "output_code"
_INSIDE_A_RUN = ("torchinductor", "torchdynamo", "probe_logs", "probe_inputs", "probe_constants")
_WHAT_TO_GIVE = (
    "give a torch_compile_debug folder, a run_* folder in it, a graph's folder, or an archive of one"
)

_Named = TypeVar("_Named", DebugDir, GraphDir)


class Target(Struct, frozen=True):
    """A run, and the one graph in it that was named, if one was.

    `others` are the further runs of a dump of several processes, where the dump was named.
    """

    run: DebugDir
    graph: GraphDir | None = None
    others: tuple[DebugDir, ...] = ()


def path_of(target: str, cwd: Path) -> Path:
    """Return the path that `target` is, seen from `cwd`: without links, `~` expanded, there or not.

    Raises:
        NotFoundError: no file can be called that.
    """
    if "\0" in target:
        raise NotFoundError(f"{target} is not the name of a file")
    return Path(os.path.realpath(cwd / os.path.expanduser(target)))  # noqa: PTH111 - does not raise for `~nobody`


def lies_in_dump(path: Path) -> Path | None:
    """Return the run or graph that the file at `path` lies in, at any depth; None for a file of its own.

    Of a graph without a run, as in inductor's cache, these are the files that torch and probe write.
    """
    real = Path(os.path.realpath(path))
    for file in (Path(os.path.abspath(path)), real):  # noqa: PTH100 - with the links in it
        if run := next((folder for folder in file.parents if is_run(folder)), None):
            return run
    if graph_dir(real.parent) and (is_read(real.name) or real.name.startswith(_CODE)):
        return real.parent
    cached = graph_dir(real.with_suffix(".debug"))
    return cached.path if cached else None


def dump_at(path: Path) -> Target | None:
    """Return the run or graph at `path`, the latest of a tree of runs; None when nothing is there.

    `path` may be a file inside of a run, and may lead on into an archive.

    Raises:
        NotFoundError: something else is there, or several dumps, which the hint names.
        UnreadableError: a folder that may not be listed, an archive that is damaged.
    """
    for place in (path, *path.parents):
        if is_archive(place) or is_package(place):
            return _in_archive(place, path.relative_to(place))
        if os.path.lexists(place):
            break
    if not os.path.exists(path):  # noqa: PTH110 - no name is too long for it
        return None
    return _of_folder(path) if path.is_dir() else _of_file(path)


def open_run(path: Path) -> DebugDir:
    """Read the run in `path`; an empty one has the graphs that it took from inductor's cache."""
    return with_cached_graphs(read_run(path))


def _in_archive(archive: Path, rest: Path) -> Target:
    from inductor_probe.discovery.archive import unpack  # noqa: PLC0415 - most dumps are in none

    unpacked = unpack(archive)
    path = unpacked.folder / rest
    if not os.path.exists(path):  # noqa: PTH110 - no name is too long for it
        raise NotFoundError(f"{archive} holds no dump at {rest}", f"probe check {archive} says what is in it")
    target = _of_folder(path, archive / rest) if path.is_dir() else _of_file(path)
    return replace(target, run=replace(target.run, problems=(*unpacked.problems, *target.run.problems)))


def _of_file(path: Path) -> Target:
    for folder in list(path.parents)[:3]:  # <run>/torchinductor/<graph>/probe_inputs is the deepest
        if target := _run_or_graph(folder):
            return target
        if folder.name not in _INSIDE_A_RUN:
            break
    if graph := graph_dir(path.with_suffix(".debug")):  # beside code in inductor's cache
        return Target(DebugDir(graph.path.parent, (graph,), None), graph)
    if (dump := lies_in_dump(path)) and (target := _run_or_graph(dump)):
        return target
    if named := graphs_named_in(path):
        graphs = tuple(graph for folder in named if (graph := graph_dir(folder)))
        if len({graph.path.parent for graph in graphs}) == 1 and (target := _run_or_graph(graphs[0].path)):
            return Target(target.run)
        return Target(DebugDir(path.parent, tuple(sorted(graphs, key=compile_order)), None))
    hint = f"probe dump {path} makes a dump of what it compiles" if path.suffix == ".py" else _WHAT_TO_GIVE
    raise NotFoundError(f"{path} is a file outside of any dump", hint)


def _of_folder(path: Path, shown: Path | None = None) -> Target:
    """Find the dump in a folder; messages name it `shown`."""
    shown = shown or path
    if target := _run_or_graph(path):
        return target
    if path.name in _INSIDE_A_RUN:
        for folder in list(path.parents)[:2]:
            if is_run(folder) or graph_dir(folder):
                return _of_folder(folder)
    if runs := runs_in(path):
        return Target(_first(open_run(runs[-1])))
    below = everything_below(path, archives=False)
    if len(below.runs) == 1:
        (run,) = below
        run = replace(with_cached_graphs(run), problems=(*run.problems, *below.problems))
        is_lone_graph = len(run.graphs) == 1 and run.manifest is None and not is_run(run.path)
        return Target(run, run.graphs[0] if is_lone_graph else None)
    if below.runs:
        names = _short_names(path, below)
        raise NotFoundError(
            f"{shown} holds {len(names)} dumps: name one",
            f"for example {shown / names[0]}; there is {_listed(names)}",
        )
    archives = sorted(entry for entry in path.iterdir() if is_archive(entry))
    raise NotFoundError(
        f"{shown} is not a debug dir: no run and no graph in it",
        f"it holds archives, name one: {_listed([entry.name for entry in archives])}"
        if archives
        else _WHAT_TO_GIVE,
    )


def _run_or_graph(folder: Path) -> Target | None:
    """Return what `folder` itself is, without looking below it."""
    if is_run(folder):
        return Target(open_run(folder))
    graph = graph_dir(folder)
    if graph is None:
        return None
    if is_empty(folder):
        raise NotFoundError(
            f"{folder} is empty: inductor makes an empty folder for a graph that computes nothing",
            "the other graphs of the run have what was compiled",
        )
    run = folder.parent.parent
    if folder.parent.name == "torchinductor" and is_run(run):
        return Target(read_run(run), graph)
    return Target(DebugDir(folder.parent, (graph,), None), graph)


def _short_names(path: Path, below: Below) -> list[str]:
    """Return where each dump lies below `path`, as short as it is still the only one there."""
    dumps = Counter(folder for run in below for folder in (run.path, *run.path.parents))
    names = []
    for run in below:
        folder = run.path
        while path not in (folder, folder.parent) and dumps[folder.parent] == 1:
            folder = folder.parent
        names.append(folder.relative_to(path).as_posix())
    return names


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def find(target: str | None, cwd: Path, runs: Sequence[Path] | None = None) -> Target:
    """Find what `target` names, seen from `cwd`: see above.

    Args:
        runs: those that a name may mean, the oldest first; those of the tree at or above `cwd` if None.

    Raises:
        NotFoundError: nothing of that name, or several things; near names, or all of them, are offered.
        UnreadableError: a folder that may not be listed, an archive that is damaged.
    """
    if target is None:
        return _with_others(Target(_first(_latest(runs or _paths(cwd)))))
    path = path_of(target, cwd)
    if dump := dump_at(path):
        return _with_others(dump)
    if path.suffix == PACKAGE and not path.exists():  # a file, and no name of a run or graph
        raise NotFoundError(f"{path} does not exist")
    if match := OF_PROCESS.fullmatch(target):
        return _of_process(find(match["what"] or None, cwd, runs), match)
    try:
        paths = runs or _paths(cwd)
    except NotFoundError:
        if "/" in target:
            raise NotFoundError(f"{path} does not exist") from None
        raise NotFoundError(
            f"no run in {cwd / TREE}, so no graph or run called {target}", _DUMP_FIRST
        ) from None
    return _with_others(_Runs(paths, cwd).named(target))


def _first(run: DebugDir) -> DebugDir:
    """Return the run that stands for the dump which `run` is of."""
    first = runs_of_dump(run)[0]
    return run if first.path == run.path else first


def _with_others(target: Target) -> Target:
    """Add the further runs of its dump to a run that stands for one."""
    if target.graph is not None:
        return target
    first, *others = runs_of_dump(target.run)
    return replace(target, others=tuple(others)) if first.path == target.run.path else target


def _of_process(target: Target, match: re.Match[str]) -> Target:
    """Return the run or graph of that name in a process of the same dump."""
    run = run_of_process(target.run, match["kind"], int(match["number"]))
    named = _Runs([run.path], run.path.parent)
    if match["rest"]:
        return named.named(f"{run.name}{match['rest']}")
    return named.named(f"{run.name}/{target.graph.name}") if target.graph else Target(run)


def name_of(run: DebugDir, graph: GraphDir, cwd: Path) -> str:
    """Return a short string that `find` finds a graph by from `cwd`: `gpt_block:1`, or else its path."""
    name = _Runs(runs_below(cwd), cwd).name_of(run, graph)
    return name or str(seen_from(graph.path, cwd))


def run_labelled(label: str, cwd: Path) -> Path | None:
    """Return the latest run with exactly this label, seen from `cwd`."""
    run = _Runs(runs_below(cwd), cwd).labels.get(label)
    return run.path if run else None


def labels(cwd: Path) -> tuple[str, ...]:
    """Return the labels of the runs seen from `cwd`, the latest first."""
    return tuple(_Runs(runs_below(cwd), cwd).labels)


def _paths(cwd: Path) -> Sequence[Path]:
    paths = runs_below(cwd)
    if not paths:
        raise NotFoundError(f"no run in {cwd / TREE}", _DUMP_FIRST)
    return paths


def _latest(paths: Sequence[Path]) -> DebugDir:
    """Read the latest of runs, if there is one of those that are not compared with another."""
    for path in reversed(paths):
        run = read_run(path)
        if run.manifest is None or run.manifest.baseline is None:
            return with_cached_graphs(run)
    return open_run(paths[-1])


class _Runs:
    """The runs seen from a folder, the latest first."""

    def __init__(self, paths: Sequence[Path], cwd: Path) -> None:
        self.cwd = cwd
        latest = _latest(paths) if paths else None
        others = (read_run(path) for path in reversed(paths) if latest and path != latest.path)
        self.runs = [latest, *others] if latest else []
        self.latest_dump: list[DebugDir] = []
        self.labels: dict[str, DebugDir] = {}
        if self.runs:  # those of the latest dump come first, and first of them what stands for it
            by_path = {run.path: run for run in self.runs}
            paths_of_dump = [run.path for run in runs_of_dump(self.runs[0]) if run.path in by_path]
            first = [by_path[path] for path in paths_of_dump]
            self.latest_dump = first
            self.runs = [*first, *(run for run in self.runs if run.path not in paths_of_dump)]
        for run in self.runs:
            if run.manifest and run.manifest.label and run.manifest.label not in self.labels:
                self.labels[run.manifest.label] = _first(run)

    def named(self, target: str) -> Target:
        """Return what is called `target`: of the latest run's graphs, the runs, or the older runs' graphs."""
        latest, *older = self.runs
        target = target.rstrip("/") or target
        if target in self.labels and not any(graph.name == target for graph in latest.graphs):
            return Target(self.labels[target])
        for of_dump in self.latest_dump:
            if graph := _pick(target, of_dump.graphs, "graphs"):
                return Target(of_dump, graph)
        if run := self._run(target):
            return Target(run)
        if match := _NUMBERED.fullmatch(target):
            run = self._run(match["run"]) if match["run"] else latest
            if run is not None:
                return Target(run, self._numbered(run, int(match["number"])))
        head, slash, tail = target.rpartition("/")
        if slash and (run := self._run(head)):
            return Target(run, self._graph(run, tail))
        if slash:
            raise NotFoundError(f"{path_of(target, self.cwd)} does not exist", self._near(target))
        for matches in (str.__eq__, str.startswith):
            pairs = [(run, graph) for run in older for graph in run.graphs if matches(graph.name, target)]
            if len(pairs) == 1:
                return Target(*pairs[0])
            if pairs:
                names = [self.name_of(run, graph, with_run=True) for run, graph in pairs[:_NAMED]]
                raise NotFoundError(
                    f"{target} names graphs of {len(pairs)} older runs: name the run, too",
                    f"one of {', '.join(filter(None, names))}",
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
                target = self.named(name) if self.runs else None
            except NotFoundError:
                continue
            if target and target.graph and target.graph.path == graph.path:
                return name
        return None

    def _run(self, name: str) -> DebugDir | None:
        """Return the run called `name`, by label or folder name, or the only one whose name starts so."""
        if not name:
            return None
        return _pick(name, self.labels, "labels") or _pick(name, self.runs, "runs")

    def _graph(self, run: DebugDir, name: str) -> GraphDir:
        if graph := _pick(name, run.graphs, "graphs"):
            return graph
        names = [graph.name for graph in run.graphs]
        raise NotFoundError(f"{run.path} has no graph {name}", near_names(name, names))

    def _numbered(self, run: DebugDir, number: int) -> GraphDir:
        graphs = [graph for graph in run.graphs if graph.order == number]
        if len(graphs) == 1:
            return graphs[0]
        names = ", ".join(graph.name for graph in (graphs or run.graphs)[:_NAMED])
        count = f"{len(graphs)} graphs" if graphs else "no graph"
        raise NotFoundError(f"{run.path} has {count} whose name ends in .{number}", f"it has {names}")

    def _near(self, target: str) -> str | None:
        graphs = [graph.name for graph in self.runs[0].graphs]
        return near_names(target, [*graphs, *self.labels, *(run.name for run in self.runs)])


def _pick(target: str, things: Mapping[str, _Named] | Sequence[_Named], what: str) -> _Named | None:
    """Return what is called `target`, or the only thing that it is short for."""
    by_name = things if isinstance(things, Mapping) else {thing.name: thing for thing in things}
    meant = names_meant(target, by_name)
    if len(meant) > 1:
        raise NotFoundError(f"{target} is the start of {len(meant)} {what}", near_names(target, meant))
    return by_name[meant[0]] if meant else None
