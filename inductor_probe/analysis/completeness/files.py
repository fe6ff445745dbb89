"""The files of a graph one by one: which lines were read, which were checked, and which only counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from inductor_probe.analysis.completeness import Defect, SoundTexts, ir, wrapper
from inductor_probe.analysis.completeness.fx import (
    VERSION_COMMENTS,
    fx_defects,
    fx_modules,
    runnable_defects,
)
from inductor_probe.analysis.graph import NodeIndex, index_of
from inductor_probe.model.check import FileCheck
from inductor_probe.model.code import OutputCode
from inductor_probe.model.debug_dir import CompiledGraph, FileRead
from inductor_probe.model.span import Problem, Span
from inductor_probe.reader.fx import TREE, TREE_INPUTS, TREE_TYPES

_PRE, _POST, _CODE = "ir_pre_fusion.txt", "ir_post_fusion.txt", "output_code.py"
_CPP_CODE = "output_code.cpp"
_FX, _FX_BEFORE, _RUNNABLE = "fx_graph_transformed.py", "fx_graph_readable.py", "fx_graph_runnable.py"
# Backends whose kernels are checked, with the name of their language and what begins a comment in it.
_IR = re.compile(r"ir_(?:pre|post)_fusion\.")
"""`ir_post_fusion.txt`, and `ir_post_fusion.true_graph_0.txt` of a subgraph."""
_LANGUAGES = {"cpp": ("C++", "//"), "triton": ("Triton", "#")}

_ir_files = SoundTexts()
"""A graph with nothing to fuse has the same text before and after."""
_MOST = 100
"""Problems that are reported of a file: one missing line causes fewer."""


class FilesCheck(NamedTuple):
    """What became of the lines of each file, and what the files lack."""

    files: tuple[FileCheck, ...]
    problems: tuple[Problem, ...]


def check_files(graph: CompiledGraph, texts: Mapping[str, str]) -> FilesCheck:
    """Check the files of `graph` that were read without a problem; `texts` are their texts by name.

    A file with a line that was not understood is not checked further: what is missing there follows from it.
    Two files are compared with each other if nothing is wrong with either.
    """
    unsound = {problem.span.path.name for problem in graph.problems if problem.span}
    intact = {name: text for name, text in texts.items() if name not in unsound}
    checks = _checks(graph, intact)
    problems: list[Problem] = []
    for name in intact:
        if name in checks:
            problems += _problems(checks[name], graph.folder.path / name)
    sound = intact.keys() - {problem.span.path.name for problem in problems if problem.span}
    index, fx, code = index_of(graph), graph.fx, graph.code
    if {name for name in texts if _IR.match(name)} <= sound and {_PRE, _POST} <= sound and graph.post:
        problems += _problems(lambda: ir.fusion_defects(index.pre, index.post), graph.folder.path / _POST)
    dumped = next((name for name in (_CODE, _CPP_CODE) if name in sound), None)
    if dumped and _FX in sound and fx and code and code.entry:
        problems += _problems(lambda: wrapper.fx_defects(fx, code), graph.folder.path / dumped)
    files: list[FileCheck] = []
    for file in graph.files:
        name = file.path.name
        if name in texts:
            files.extend(_parts(graph, file, texts[name], name in intact))
        else:
            files.append(FileCheck(name, 1, file.lines, counted=file.lines - file.unread, unread=file.unread))
    return FilesCheck(tuple(files), tuple(dict.fromkeys(problems)))


def _problems(check: Callable[[], Iterable[Defect]], path: Path) -> list[Problem]:
    try:
        defects = list(islice(check(), _MOST))
    except RecursionError:
        defects = [(1, "nested too deeply to be checked")]
    return [
        Problem(message, Span(path, place, place) if isinstance(place, int) else place)
        for place, message in defects
    ]


def _checks(graph: CompiledGraph, texts: Mapping[str, str]) -> dict[str, Callable[[], Iterable[Defect]]]:
    """Return the check of each file by its name."""
    folder, index, code = graph.folder.path, index_of(graph), graph.code
    # Since torch 2.5 nodes are called op0; since 2.6 loop variables p0, and FX graphs free all names.
    names_operations = any(name.startswith("op") for name in index.nodes.leaf)
    frees_unused = any(
        name.startswith("p") for leaf in index.nodes.leaves if leaf.body for name, _ in leaf.body.var_ranges
    )

    settings = dict(graph.runnable.settings) if graph.runnable else {}
    harness = settings.get("torch._inductor.config.benchmark_harness") != "False"

    def check_ir(name: str) -> Iterable[Defect]:
        tops = graph.pre if name.startswith("ir_pre") else graph.post
        nodes = NodeIndex([top for top in tops if top.span and top.span.path.name == name])
        text = texts[name]

        def check() -> Iterable[Defect]:
            return chain(ir.field_defects(text), ir.graph_defects(nodes, text, folder / name))

        alone = not any(map(ir.lacks_members, nodes.tops))
        return _ir_files.defects(text, check) if alone else check()

    return {
        **{name: partial(check_ir, name) for name in texts if _IR.match(name)},
        _FX: lambda: fx_defects(texts[_FX], frees_unused=frees_unused),
        _FX_BEFORE: lambda: fx_defects(texts[_FX_BEFORE], frees_unused=frees_unused),
        **{
            name: partial(wrapper.wrapper_defects, code, texts[name], folder / name, harness=harness)
            for name in (_CODE, _CPP_CODE)
            if code and name in texts
        },
        _RUNNABLE: lambda: runnable_defects(
            texts[_RUNNABLE], folder / _RUNNABLE, texts.get(_FX_BEFORE), prints_same=names_operations
        ),
    }


def _parts(graph: CompiledGraph, file: FileRead, text: str, intact: bool) -> Iterator[FileCheck]:
    """Sort the lines of a file, those of its kernels apart."""
    name = file.path.name
    if not file.unread and _IR.match(name):  # most lines of a dump
        printed = text.removesuffix("\n").split("\n")
        empty = sum(1 for line in printed if not line or line.isspace())
        yield FileCheck(name, 1, len(printed), read=len(printed) - empty, comments=empty)
        return
    lines = dict(enumerate(text.removesuffix("\n").split("\n"), 1))
    if file.unread == file.lines:
        unread = set(lines)
    else:
        spans = [
            problem.span for problem in graph.problems if problem.span and problem.span.path == file.path
        ]
        unread = _numbers(spans)
    code = graph.code if name in (_CODE, _CPP_CODE) else None
    for kernel in code.kernels if code else ():
        if kernel.span and kernel.source:
            language, comment = _LANGUAGES.get(kernel.backend, (kernel.backend, "#"))
            kernel_lines = {
                number: lines.pop(number) for number in _numbers([kernel.span]) if number in lines
            }
            checked = intact and kernel.backend in _LANGUAGES
            kind = f"{language} kernels in {name}"
            yield _counted(kind, kernel_lines, set(), unread, comment=comment, checked=checked)
    comment = "//" if code and code.language == "cpp" else "#"
    if name == _CPP_CODE and code and code.span:
        wrapper_lines = {number: lines.pop(number) for number in _numbers([code.span]) if number in lines}
        yield _counted(f"around the wrapper in {name}", lines, set(), unread, comment=comment, checked=intact)
        lines = wrapper_lines
    if code and code.added:
        added = {number: lines.pop(number) for number in _numbers(code.added) if number in lines}
        yield _counted(f"added to {name}", added, set(), unread, comment=comment, checked=False)
    kind = f"wrapper in {name}" if code else name
    yield _counted(
        kind, lines, _read_lines(graph, name, text, lines), unread, comment=comment, checked=intact
    )


def _counted(
    kind: str, lines: dict[int, str], read: Set[int], unread: Set[int], *, comment: str, checked: bool
) -> FileCheck:
    """Count each line once: not understood, read, a comment or empty, checked, or none of these."""
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


def _numbers(spans: Iterable[Span]) -> set[int]:
    return {number for span in spans for number in range(span.first, span.last + 1)}


def _read_lines(graph: CompiledGraph, name: str, text: str, lines: dict[int, str]) -> set[int]:
    """Return the numbers of the lines whose content is in a record."""
    if _IR.match(name):
        return {number for number, line in lines.items() if line and not line.isspace()}
    if name in (_FX, _FX_BEFORE):
        modules = fx_modules(text)
        nodes = {node.line for module in modules for node in module.nodes}
        returns = {module.returned[0] for module in modules if module.returned}
        starts = ("# File: ", "def forward(")
        with_tree = lines.items() if TREE in text else ()
        trees = {n for n, line in with_tree if TREE_TYPES.fullmatch(line) or TREE_INPUTS.fullmatch(line)}
        return nodes | returns | trees | {n for n, line in lines.items() if line.lstrip().startswith(starts)}
    if name == _RUNNABLE:
        settings = (*VERSION_COMMENTS, "os.environ[", "torch._")
        return {number for number, line in lines.items() if line.startswith(settings)}
    if name in (_CODE, _CPP_CODE):
        return _wrapper_lines(graph.code) if graph.code else set()
    return set(lines)  # a provenance file is JSON, and read as a whole


def _wrapper_lines(code: OutputCode) -> set[int]:
    """Return the lines of what the wrapper launches, calls, allocates and computes."""
    spans = [record.span for records in (code.launches, code.externs, code.symbols) for record in records]
    return _numbers([*spans, *(allocation.span for allocation in code.allocations if allocation.span)])
