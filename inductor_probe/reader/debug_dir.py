"""Runs and graphs on disk: what is there, and one graph read with everything in it."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Protocol, TypeVar

from msgspec.structs import replace

from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.files import LARGEST_BYTES, LARGEST_JSON, read_text
from inductor_probe.model.code import FOLDING, OutputCode, qualified
from inductor_probe.model.debug_dir import PACKAGE_NAME, CompiledGraph, DebugDir, FileRead, GraphDir
from inductor_probe.model.decision import DECISIONS_NAME, Decisions
from inductor_probe.model.fx import FxGraph
from inductor_probe.model.gpu_target import GpuTarget
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.manifest import MANIFEST_NAME, Manifest
from inductor_probe.model.span import Problem
from inductor_probe.reader.cpp_wrapper import parse_cpp_file
from inductor_probe.reader.fx import (
    KERNEL_INFORMATION,
    PROVENANCE_FILES,
    parse_fx_graph,
    parse_provenance,
    parse_runnable,
)
from inductor_probe.reader.ir import IrFile, lacks_children, parse_ir, with_children
from inductor_probe.reader.logs.trace import failures_of_graph
from inductor_probe.reader.output_code import parse_output_code
from inductor_probe.reader.python_text import expressions_bounded, without_long_numbers
from inductor_probe.store.decisions import parse_decisions
from inductor_probe.store.manifest import read_manifest

# `model__0_inference_0.0`; torch before 2.4 leaves the middle out: `model___9.0`.
_GRAPH_NAME = re.compile(
    r"(?P<model>.+?)__(?:(?P<ids>\d+(?:_\d+)*)_(?P<kind>inference|forward|backward|joint))?_(?P<nth>\d+)\.(?P<k>\d+)"
)
_FX_FILE, _FX_BEFORE = "fx_graph_transformed.py", "fx_graph_readable.py"
_BEFORE_FUSION, _AFTER_FUSION = "ir_pre_fusion.txt", "ir_post_fusion.txt"
_CPP_CODE = "output_code.cpp"
_CHOICE = "benchmark_"
"""Begins the name of a graph that autotuning compiles to time it: see `SubgraphChoiceCaller`."""
_GRAPH_FILES = (_AFTER_FUSION, _BEFORE_FUSION, "output_code.py", _CPP_CODE, _FX_FILE, _FX_BEFORE)

# `probe bench-kernel` writes a bench file and its results beside what torch wrote.
_BENCH = "output_code_bench."
_SHOWN_LINKS = 5

_Part = TypeVar("_Part")


def leads_to(path: Path, top: Path) -> Path | None:
    """Return where `path` leads, if it is a link that leads out of the folder `top`; else None."""
    if not os.path.islink(path):  # noqa: PTH114 - no name is too long for it
        return None
    real = Path(os.path.realpath(path))
    return None if real.is_relative_to(os.path.realpath(top)) else real


def not_followed(link: Path, real: Path) -> Problem:
    """Return the problem of a link that leads out of a dump."""
    return Problem(
        f"{link}: a link to {real}, which is not part of this dump and not read; name it by itself"
    )


def graph_dir(path: Path) -> GraphDir | None:
    """Return `path` as a graph's folder, or None when it is not one."""
    match = _GRAPH_NAME.fullmatch(path.name)
    if not path.is_dir() or not (match or any((path / name).exists() for name in _GRAPH_FILES)):
        return None
    return GraphDir(path, int(match["k"]) if match else 0, match["kind"] if match else None)


def is_run(path: Path) -> bool:
    """Return whether `path` is a run: it has a `torchinductor` folder, or a manifest."""
    return (path / "torchinductor").is_dir() or (path / MANIFEST_NAME).is_file()


def read_run(path: Path) -> DebugDir:
    """List the graphs of the run in `path`, in the order they were compiled, and read its manifest.

    Raises:
        NotFoundError: `path` is not a run.
    """
    if not is_run(path):
        raise NotFoundError(
            f"{path} is not a debug dir: it holds no torchinductor folder",
            "give a torch_compile_debug folder, a run_* folder in it, or a graph's folder",
        )
    problems: list[Problem] = []
    manifest: Manifest | None = None
    if real := leads_to(path / MANIFEST_NAME, path):
        problems.append(not_followed(path / MANIFEST_NAME, real))
    elif (path / MANIFEST_NAME).exists():
        manifest = _part(lambda: read_manifest(path / MANIFEST_NAME), problems, None)
    folder = path / "torchinductor"
    entries: list[Path] = []
    if real := leads_to(folder, path):
        problems.append(not_followed(folder, real))
    elif folder.is_dir():
        entries = _part(lambda: sorted(folder.iterdir()), problems, [])
    entries = _without_links(entries, path, problems)
    named = [graph for entry in entries if (graph := graph_dir(entry))]
    empty = {
        graph.path: None
        for graph in named
        if is_empty(graph.path) and not failures_of_graph(graph.path, manifest)
    }
    graphs = sorted(
        (graph for graph in named if graph.path not in empty), key=lambda graph: (graph.order, graph.name)
    )
    return DebugDir(path, tuple(graphs), manifest, tuple(problems), empty_graphs=tuple(empty))


def _without_links(entries: list[Path], run: Path, problems: list[Problem]) -> list[Path]:
    """Leave links out: one that leads to a graph of the same run would count it twice, torch makes none."""
    links = [entry for entry in entries if os.path.islink(entry)]  # noqa: PTH114 - no name is too long for it
    for link in links[:_SHOWN_LINKS]:
        if real := leads_to(link, run):
            problems.append(not_followed(link, real))
        else:
            problems.append(Problem(f"{link}: a link, not counted as a graph of its own"))
    if len(links) > _SHOWN_LINKS:
        problems.append(Problem(f"{run}: links not followed, beside these: {len(links) - _SHOWN_LINKS}"))
    return entries if not links else [entry for entry in entries if entry not in links]


def is_empty(folder: Path) -> bool:
    """Return whether torch wrote nothing into `folder`; one that may not be listed is not empty.

    `probe dump` writes there that nothing was decided.
    """
    try:
        files = [*islice(folder.iterdir(), 2)]
        if [file.name for file in files] == [DECISIONS_NAME]:
            recorded = parse_decisions(read_text(files[0]), files[0])
            return recorded.complete and not recorded.decisions
    except (OSError, ProbeError):
        return False
    return not files


def read_graph(folder: GraphDir, manifest: Manifest | None = None, *, earlier: bool = True) -> CompiledGraph:
    """Read everything in a graph's folder. What is missing or damaged is listed in its `problems`.

    The nodes before fusion and the FX graph before inductor's passes are half of the text: without `earlier`
    they are read only where the later ones are missing.
    """
    failures = failures_of_graph(folder.path, manifest)
    reader = _GraphReader(folder.path, may_lack=bool(failures))
    if folder.in_package:
        return _of_package(folder, reader)
    post = reader.nodes(_AFTER_FUSION)
    # They stand in for those after it, or for the nodes in fused ones without them.
    needs_pre = earlier or not post or any(map(lacks_children, post))
    pre = reader.nodes(_BEFORE_FUSION) if needs_pre else ()
    code = reader.code()
    fx, before = reader.fx_graphs(earlier=earlier)
    runnable = reader.read("fx_graph_runnable.py", parse_runnable)
    provenance = [
        found
        for name in PROVENANCE_FILES
        if (folder.path / name).exists() and (found := reader.read(name, parse_provenance))
    ]
    return CompiledGraph(
        folder=folder,
        torch_version=runnable.torch_version if runnable else None,
        pre=pre,
        post=with_children(post, pre),
        code=code,
        fx=fx or before,
        record=manifest.graph(folder.name) if manifest else None,
        fx_before=before,
        provenance=provenance[0] if provenance else None,
        runnable=runnable,
        nodes_before=len(pre) if needs_pre else reader.count_nodes(_BEFORE_FUSION),
        files=tuple(reader.files),
        problems=tuple(reader.problems),
        gpu=_gpu_of(manifest),
        failures=failures,
        read_decisions=partial(read_decisions_of, folder),
    )


def _gpu_of(manifest: Manifest | None) -> GpuTarget | str | None:
    if manifest is None or manifest.gpu is None:
        return dict(manifest.machine).get("gpu") if manifest else None
    return manifest.gpu.figures or manifest.gpu.device


def _of_package(folder: GraphDir, reader: _GraphReader) -> CompiledGraph:
    """Read the graph of a package of AOTInductor: its code, and which FX nodes its kernels are made from."""
    return CompiledGraph(
        folder,
        code=reader.code(),
        provenance=(
            reader.read(KERNEL_INFORMATION, parse_provenance)
            if (folder.path / KERNEL_INFORMATION).exists()
            else None
        ),
        files=tuple(reader.files),
        problems=tuple(reader.problems),
    )


def read_decisions_of(folder: GraphDir) -> Decisions | None:
    """Return what was recorded of a graph's decisions, None if nothing was.

    A file that cannot be read gives none of them, and a problem.
    """
    path = folder.path / DECISIONS_NAME
    if not path.exists():
        return None
    if real := leads_to(path, folder.path.parent.parent):
        return Decisions("", (), (), complete=False, problems=(not_followed(path, real),))
    problems: list[Problem] = []
    decisions = _part(lambda: parse_decisions(read_text(path), path), problems, None)
    return decisions or Decisions("", (), (), complete=False, problems=tuple(problems))


def with_earlier(graph: CompiledGraph) -> CompiledGraph:
    """Return `graph`, which was read without the earlier nodes and FX graph, with them."""
    if graph.folder.in_package:
        return graph
    reader = _GraphReader(graph.folder.path)
    done = {file.path.name for file in graph.files}
    pre, before = graph.pre, graph.fx_before
    if graph.post and _BEFORE_FUSION not in done:
        pre = reader.nodes(_BEFORE_FUSION)
    if _FX_BEFORE not in done and (graph.folder.path / _FX_BEFORE).exists():
        before = reader.read(_FX_BEFORE, parse_fx_graph)
    return replace(
        graph,
        pre=pre,
        fx_before=before,
        nodes_before=len(pre),
        files=(*graph.files, *reader.files),
        problems=(*graph.problems, *reader.problems),
    )


def texts_of(graph: CompiledGraph) -> dict[str, str]:
    """Return the texts of the files that `graph` was read from, by name, without those that are not text."""
    texts = {file.path: _part(partial(read_text, file.path), [], None) for file in graph.files}
    return {
        path.name: without_long_numbers(text, path)[0] for path, text in texts.items() if text is not None
    }


def unopened_files(graph: CompiledGraph) -> tuple[Path, ...]:
    """Return the files in the folder of `graph` that it was not read from, without those that users edit."""
    opened = {file.path.name for file in graph.files}
    entries: list[Path] = _part(lambda: sorted(graph.folder.path.iterdir()), [], [])
    return tuple(
        path
        for path in entries
        if path.name not in opened and not path.name.startswith((_BENCH, PACKAGE_NAME)) and path.is_file()
    )


class _Parsed(Protocol):
    """What a parser of a file returns: at least what it could not read."""

    @property
    def problems(self) -> tuple[Problem, ...]: ...


_File = TypeVar("_File", bound=_Parsed)


@dataclass(slots=True)
class _GraphReader:
    """Reads the files of a graph one by one, and keeps account of their lines.

    `may_lack`: a file that is not there is no problem.
    """

    path: Path
    may_lack: bool = False
    files: list[FileRead] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def count_nodes(self, name: str) -> int:
        """Count the nodes of an IR file, which stand with empty lines between them, without reading them."""
        paths = [self.path / name, *self._of_subgraphs(name)]
        paths = [path for path in paths if not leads_to(path, self.path.parent.parent)]
        texts = [_part(partial(read_text, path), [], "") for path in paths]
        return sum(1 for text in texts for block in text.split("\n\n\n") if not block.isspace() and block)

    def code(self) -> OutputCode | None:
        """Read the generated code: Python, or the C++ that AOTInductor writes in its place."""
        if (self.path / _CPP_CODE).exists() and not (self.path / "output_code.py").exists():
            return self.read(_CPP_CODE, parse_cpp_file)
        return self.read("output_code.py", parse_output_code)

    def nodes(self, name: str) -> tuple[SchedulerNode, ...]:
        """Read the nodes of the graph from an IR file, then those of its subgraphs, each from its own."""

        def parse(text: str, path: Path) -> IrFile:
            """Read a file; of what folds constants, with names that the graph does not have."""
            return parse_ir(qualified(text, FOLDING) if f".{FOLDING}." in path.name else text, path)

        names = [name, *(path.name for path in self._of_subgraphs(name))]
        return tuple(node for part in names if (file := self.read(part, parse)) for node in file.nodes)

    def _of_subgraphs(self, name: str) -> list[Path]:
        """Return `ir_post_fusion.true_graph_0.txt` and the like, which `probe dump` keeps."""
        start, _, ending = name.rpartition(".")
        paths: list[Path] = _part(lambda: sorted(self.path.glob(f"{start}.*.{ending}")), [], [])
        return [path for path in paths if not path.name.startswith(f"{start}.{_CHOICE}")]

    def fx_graphs(self, *, earlier: bool) -> tuple[FxGraph | None, FxGraph | None]:
        """Read the FX graph after inductor's passes, and the one before: a dump with one of them will do."""
        has_before = (self.path / _FX_BEFORE).exists()
        lacks_after = has_before and not (self.path / _FX_FILE).exists()
        after = None if lacks_after else self.read(_FX_FILE, parse_fx_graph)
        before = self.read(_FX_BEFORE, parse_fx_graph) if has_before and (earlier or after is None) else None
        return after, before

    def read(self, name: str, parse: Callable[[str, Path], _File]) -> _File | None:
        """Read the file `name` with `parse`; None, and a problem, when it is not there or not text."""
        path = self.path / name
        if real := leads_to(path, self.path.parent.parent):
            self.problems.append(not_followed(path, real))
            return None
        if self.may_lack and not path.exists():
            return None
        largest = LARGEST_JSON if path.suffix == ".json" else LARGEST_BYTES
        text = _part(lambda: read_text(path, largest=largest), self.problems, None)
        if text is None:
            return None
        lines = text.count("\n") + (not text.endswith("\n"))
        problems: list[Problem] = []
        with warnings.catch_warnings(), expressions_bounded():
            warnings.simplefilter("ignore", SyntaxWarning)  # about text that is read, not run
            readable, long_numbers = without_long_numbers(text, path)
            parsed = _part(lambda: parse(readable, path), problems, None)
        unread = lines if parsed is None else 0
        if parsed is not None:
            problems = [*long_numbers, *parsed.problems]
            spans = [problem.span for problem in problems if problem.span and problem.span.path == path]
            unread = len({line for span in spans for line in range(span.first, span.last + 1)})
        self.files.append(FileRead(path, lines, unread))
        self.problems.extend(problems)
        return parsed


def _part(read: Callable[[], _Part], problems: list[Problem], otherwise: _Part) -> _Part:
    """Read one part; a failure becomes a problem, so that it does not hide the other parts."""
    try:
        return read()
    except ProbeError as error:
        problems.append(Problem(error.message))
    except OSError as error:
        problems.append(Problem(f"cannot read {error.filename}: {error.strerror or error}"))
    except (RecursionError, ValueError) as error:  # ValueError: a number of thousands of digits
        problems.append(Problem(f"cannot be read: {error}"))
    return otherwise
