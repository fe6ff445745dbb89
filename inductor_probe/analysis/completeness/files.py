"""The files of a graph one by one: which lines were read, which were checked, and which only counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import chain, islice

from inductor_probe.analysis.completeness import across
from inductor_probe.analysis.completeness.fx_text import fx_modules, fx_problems
from inductor_probe.analysis.completeness.ir_fields import field_problems
from inductor_probe.analysis.completeness.ir_graph import graph_problems
from inductor_probe.analysis.completeness.runnable import runnable_problems
from inductor_probe.analysis.completeness.wrapper import wrapper_problems
from inductor_probe.analysis.graph import index_of
from inductor_probe.model.check import FileCheck
from inductor_probe.model.code import OutputCode
from inductor_probe.model.debug_dir import CompiledGraph, FileRead
from inductor_probe.model.span import Problem, Span

_PRE, _POST, _CODE = "ir_pre_fusion.txt", "ir_post_fusion.txt", "output_code.py"
_FX, _FX_BEFORE, _RUNNABLE = "fx_graph_transformed.py", "fx_graph_readable.py", "fx_graph_runnable.py"
# Backends whose kernels are checked, with the name of their language and what begins a comment in it.
_LANGUAGES = {"cpp": ("C++", "//"), "triton": ("Triton", "#")}

_MOST = 100
"""Problems of a file that are told."""


@dataclass(frozen=True, slots=True)
class FilesCheck:
    """What became of the lines of each file, and what the files lack."""

    files: tuple[FileCheck, ...]
    problems: tuple[Problem, ...]


def check_files(graph: CompiledGraph, texts: Mapping[str, str]) -> FilesCheck:
    """Check the files of `graph` that were read without a problem; `texts` are their texts by name.

    Of a file with a line that was not understood nothing more is asked: what is missing there follows from
    it.
    """
    troubled = {problem.span.path.name for problem in graph.problems if problem.span}
    sound = {name: text for name, text in texts.items() if name not in troubled}
    checks = _checks(graph, sound)
    problems = [problem for name in sound if name in checks for problem in _first(checks[name], graph, name)]
    problems.extend(
        _across(graph, sound.keys() - {problem.span.path.name for problem in problems if problem.span})
    )
    files: list[FileCheck] = []
    for file in graph.files:
        name = file.path.name
        if name in texts:
            files.extend(_parts(graph, file, texts[name], name in sound))
        else:
            files.append(FileCheck(name, 1, file.lines, counted=file.lines - file.unread, unread=file.unread))
    return FilesCheck(tuple(files), tuple(dict.fromkeys(problems)))


def _first(check: Callable[[], Iterable[Problem]], graph: CompiledGraph, name: str) -> list[Problem]:
    """Return the first problems of a file: what one line that is missing makes wrong is less than that."""
    try:
        return list(islice(check(), _MOST))
    except RecursionError:
        return [Problem("nested too deeply to be checked", Span(graph.folder.path / name, 1, 1))]


def _checks(graph: CompiledGraph, texts: Mapping[str, str]) -> dict[str, Callable[[], Iterable[Problem]]]:
    folder = graph.folder.path
    # Since torch 2.5 nodes are called op0; since 2.6 loop variables p0, and FX graphs free what is never
    # used.
    index = index_of(graph)
    names_operations = any(name.startswith("op") for name in index.nodes.leaf)
    frees_unused = any(
        name.startswith("p") for leaf in index.nodes.leaves if leaf.body for name, _ in leaf.body.var_ranges
    )

    def ir(name: str) -> Iterable[Problem]:
        nodes, path = (index.pre if name == _PRE else index.post), folder / name
        return chain(field_problems(texts[name], path), graph_problems(nodes, texts[name], path))

    def fx(name: str) -> Iterable[Problem]:
        return fx_problems(texts[name], folder / name, frees_unused=frees_unused)

    return {
        _PRE: lambda: ir(_PRE),
        _POST: lambda: ir(_POST),
        _FX: lambda: fx(_FX),
        _FX_BEFORE: lambda: fx(_FX_BEFORE),
        _CODE: lambda: wrapper_problems(graph.code, texts[_CODE], folder / _CODE) if graph.code else (),
        _RUNNABLE: lambda: runnable_problems(
            texts[_RUNNABLE], folder / _RUNNABLE, texts.get(_FX_BEFORE) if names_operations else None
        ),
    }


def _across(graph: CompiledGraph, sound: set[str]) -> Iterator[Problem]:
    """Two files are held against each other where nothing is wrong with either."""
    folder = graph.folder.path
    if {_PRE, _POST} <= sound and graph.post:
        yield from across.fusion_problems(index_of(graph), folder / _POST)
    if {_FX, _CODE} <= sound and graph.fx and graph.code and graph.code.entry:
        yield from across.wrapper_problems(graph.fx, graph.code, folder / _CODE)


def _parts(graph: CompiledGraph, file: FileRead, text: str, sound: bool) -> Iterator[FileCheck]:
    """Sort the lines of a file, those of its kernels apart."""
    name = file.path.name
    lines = dict(enumerate(text.removesuffix("\n").split("\n"), 1))
    unread = _unread(graph, file) & lines.keys()
    kernels = list(_kernel_lines(graph.code)) if name == _CODE and graph.code else []
    for backend, numbers in kernels:
        language, comment = _LANGUAGES.get(backend, (backend, "#"))
        inside = {number: lines.pop(number) for number in numbers if number in lines}
        known = sound and backend in _LANGUAGES
        yield _sorted(f"{language} kernels in {name}", inside, set(), unread, comment=comment, checked=known)
    kind = f"wrapper in {name}" if name == _CODE else name
    yield _sorted(kind, lines, _read_lines(graph, name, lines), unread, comment="#", checked=sound)


def _sorted(
    kind: str, lines: dict[int, str], read: Set[int], unread: Set[int], *, comment: str, checked: bool
) -> FileCheck:
    """Count each line once: not understood, read, a comment or empty, checked, or none of it."""
    counts: Counter[str] = Counter()
    for number, line in lines.items():
        text = line.strip()
        if number in unread:
            counts["unread"] += 1
        elif number in read:
            counts["read"] += 1
        elif not text or text.startswith(comment):
            counts["comments"] += 1
        else:
            counts["checked" if checked else "counted"] += 1
    return FileCheck(kind, 1, len(lines), **counts)


def _unread(graph: CompiledGraph, file: FileRead) -> set[int]:
    """Return the numbers of the lines that the reader did not understand."""
    if file.unread == file.lines:
        return set(range(1, file.lines + 1))
    spans = [problem.span for problem in graph.problems if problem.span and problem.span.path == file.path]
    return {number for span in spans for number in range(span.first, span.last + 1)}


def _kernel_lines(code: OutputCode) -> Iterator[tuple[str, range]]:
    for kernel in code.kernels:
        if kernel.span and kernel.source:
            yield kernel.backend, range(kernel.span.first, kernel.span.last + 1)


_VERSIONS = ("# torch version: ", "# torch cuda version: ", "# torch git version: ")


def _read_lines(graph: CompiledGraph, name: str, lines: dict[int, str]) -> set[int]:
    """Return the numbers of the lines of which a record holds what they say."""
    match name:
        case "ir_pre_fusion.txt" | "ir_post_fusion.txt":
            return {number for number, line in lines.items() if line}
        case "fx_graph_transformed.py" | "fx_graph_readable.py":
            modules = fx_modules("\n".join(lines.values()))
            nodes = {node.number for module in modules for node in module.nodes}
            returns = {module.returned[0] for module in modules if module.returned}
            starts = ("# File: ", "def forward(")
            return nodes | returns | {n for n, line in lines.items() if line.lstrip().startswith(starts)}
        case "fx_graph_runnable.py":
            settings = (*_VERSIONS, "os.environ[", "torch._")
            return {number for number, line in lines.items() if line.startswith(settings)}
        case "output_code.py":
            return _wrapper_lines(graph.code) if graph.code else set()
    return set(lines)  # a provenance file is JSON, and read as a whole


def _wrapper_lines(code: OutputCode) -> set[int]:
    """Return the lines of what the wrapper launches, calls, allocates and computes."""
    spans = [launch.span for launch in code.launches]
    spans += [call.span for call in code.externs]
    spans += [symbol.span for symbol in code.symbols]
    spans += [allocation.span for allocation in code.allocations if allocation.span]
    return {number for span in spans for number in range(span.first, span.last + 1)}
