"""The text of a kernel with, on each line, the node, the buffer and the line of the user's it comes from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from inductor_probe.analysis.annotation.nodes import RunningNodes
from inductor_probe.analysis.annotation.origins import LineOrigin, line_origins
from inductor_probe.analysis.annotation.sources import Sources
from inductor_probe.analysis.annotation.statements import cpp_statements, triton_statements
from inductor_probe.analysis.annotation.text import (
    Annotation,
    about,
    annotation,
    columns,
    nest_headings,
    node_lines,
    plain,
    with_comments,
)
from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.links import launches, links
from inductor_probe.analysis.names import resolve
from inductor_probe.backends import backend_called
from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.model.code import CppFacts, Kernel
from inductor_probe.model.cpp_program import portable_flags
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.kernels import KernelLaunch

_INCLUDE = re.compile(r'^#include "(?P<path>[^"\n]*\.h)"', re.MULTILINE)
_PREFIX = "<torch/csrc/inductor/cpp_prefix.h>"
_BRACES = re.compile(r"[{};\s]*")


def annotate(graph: CompiledGraph, kernel: str, *, line_directives: bool = True) -> str:
    """Return the text of a generated kernel with its origins as comments, ready to paste.

    Only what is proved is said: what cannot be told apart is marked AMBIGUOUS with its candidates.

    Args:
        graph: as read.
        kernel: its name, or the start of it.
        line_directives: write `#line` before C++ lines of which one line of the user's is proved.

    Raises:
        NotFoundError: the graph has no such kernel, or it is a library function; near names are offered.
        ProbeError: several kernels start so.
    """
    generated = index_of(graph).kernels
    name = resolve(graph, kernel, ("kernel",)).name
    if name not in generated:
        message = f"{name} is a library function: {graph.name} has no text of it"
        raise NotFoundError(message, near_names(kernel, generated))
    return _Annotator(graph, generated[name]).text(line_directives)


class _Annotator:
    def __init__(self, graph: CompiledGraph, kernel: Kernel) -> None:
        self._graph = graph
        self._kernel = kernel
        self._linked = links(graph).of_kernel(kernel.name)
        self._sources = Sources(graph, self._linked)
        self._launches = launches(graph).get(kernel.name, ())
        self._index = index_of(graph)
        tops = {link.top for link in self._linked}
        # What is fused runs in one kernel: a node that no link was found for must not be left out.
        self._leaves = [leaf for leaf in self._index.nodes.leaves if self._top(leaf) in tops]
        self._lines = kernel.source.strip("\n").split("\n")
        self._source = "\n".join(self._lines)
        # Lines of the kernel's facts are counted with the empty ones that it starts with.
        self._moved = len(kernel.source) - len(kernel.source.lstrip("\n"))

    def text(self, line_directives: bool) -> str:
        """Return the annotated text."""
        origins = self._origins()
        comments = {
            line: found
            for line, told in origins.items()
            if (found := annotation(told, self._sources)) is not None
        }
        if self._kernel.backend == "cpp":
            return "\n".join(self._cpp(origins, comments, line_directives)) + "\n"
        text = "\n".join(self._python(comments)) + "\n"
        return text if self._kernel.backend != "triton" or _same(text, self._source) else self._bare()

    def _origins(self) -> dict[int, list[LineOrigin]]:
        """Return what each launch tells of each line."""
        backend = backend_called(self._kernel.backend)
        pointers = frozenset(arg.name for arg in self._kernel.args if arg.role not in ("size", "workspace"))
        uses = backend.pointer_uses(self._source, pointers) if backend else ()
        read = {"cpp": cpp_statements, "triton": triton_statements}.get(self._kernel.backend)
        statements = read(self._source) if read else ()
        found: dict[int, list[LineOrigin]] = {}
        for launch in self._launches:
            told = line_origins(statements, uses, self._running(launch))
            for line, origin in told.items():
                found.setdefault(line, []).append(origin)
        return found

    def _running(self, launch: KernelLaunch) -> RunningNodes:
        buffers = {}
        for passed in launch.passed:
            if passed.arg is not None and passed.buffer is not None:
                names: tuple[str, ...] = (passed.buffer,)
                if passed.arg.role == "inout":
                    names = self._index.memory_names(passed.buffer)
                mutated_as = self._index.nodes.mutated_as.get(passed.buffer, ())
                buffers[passed.arg.name] = (*names, *mutated_as)
        return RunningNodes(self._run_by(buffers), buffers)

    def _run_by(self, buffers: dict[str, tuple[str, ...]]) -> list[SchedulerNode]:
        """Return the nodes of one launch: all, or of several launches those fused with a writer of it."""
        if len(self._launches) == 1:
            return self._leaves
        named = {name for names in buffers.values() for name in names}
        written = {
            self._top(leaf) for leaf in self._leaves for buffer in leaf.outputs if buffer.name in named
        }
        return [leaf for leaf in self._leaves if self._top(leaf) in written]

    def _top(self, leaf: SchedulerNode) -> str:
        return self._index.nodes.top[leaf.name].name

    def _about(self) -> Iterator[str]:
        yield from about(self._kernel, self._graph.name, self._launches)
        nodes = ((leaf.name, tuple(buffer.name for buffer in leaf.outputs)) for leaf in self._leaves)
        yield from node_lines(nodes, self._sources)

    def _bare(self) -> str:
        return "".join(f"# {plain(line)}\n" for line in self._about()) + self._source + "\n"

    def _python(self, comments: dict[int, Annotation]) -> Iterator[str]:
        yield from (f"# {plain(line)}" for line in self._about())
        if self._kernel.comments:
            yield "#"
            yield from (f"# {plain(line)}" for line in self._kernel.comments)
        at = columns(self._lines, comments)
        for number, line in enumerate(self._lines, 1):
            comment = comments.get(number)
            yield with_comments(line, comment.comment if comment else None, "#", at.get(number, 0))

    def _cpp(
        self, origins: dict[int, list[LineOrigin]], comments: dict[int, Annotation], line_directives: bool
    ) -> Iterator[str]:
        writer = _CppWriter(f"{self._kernel.name}.cpp", line_directives)
        for line in (*self._about(), *self._how_to_compile(line_directives)):
            writer.add(f"// {plain(line)}".rstrip())
        details = self._kernel.details
        first = {line: told[0] for line, told in origins.items()}
        headings = (
            nest_headings(details, first, self._lines, self._moved) if isinstance(details, CppFacts) else {}
        )
        at = columns(self._lines, comments)
        for number, line in enumerate(self._lines, 1):
            if number in headings:
                indent = line[: len(line) - len(line.lstrip())]
                writer.add(f"{indent}// {headings[number]}")
            comment = comments.get(number)
            if header := _INCLUDE.match(line):
                line = f"#include {_PREFIX}  // was {header['path']}"  # noqa: PLW2901 - the line in its portable form
            writer.add(
                with_comments(line, comment.comment if comment else None, "//", at.get(number, 0)), comment
            )
        yield from writer.lines

    def _how_to_compile(self, line_directives: bool) -> Iterator[str]:
        details = self._kernel.details
        bits = details.vector_bits if isinstance(details, CppFacts) else None
        flags = " ".join(portable_flags(bits))
        yield "the function is called `kernel`, as inductor wrote it"
        yield f"compile: g++ -c FILE {flags} -ITORCH/include"
        yield "  TORCH: what `python -c 'import torch; print(torch.__path__[0])'` prints, with the torch that"
        yield "  wrote it: headers change (before 2.8 it is TORCH/_inductor/codegen/cpp_prefix.h)"
        if line_directives:
            yield "#line sends gdb, perf and messages of the compiler to your source where one line of it is"
            yield "  proved; Compiler Explorer colours by the text itself: give it the text of --no-line"


class _CppWriter:
    """Collects lines, and sends the compiler to the user's source and back."""

    def __init__(self, file: str, line_directives: bool) -> None:
        self.lines: list[str] = []
        self._file = file
        self._directives = line_directives
        self._away = False

    def add(self, line: str, comment: Annotation | None = None) -> None:
        """Add a line, with the directive that its origin asks for."""
        source = comment.source if comment else None
        if self._directives and source is not None:
            path = source.path.replace("\\", "\\\\").replace('"', '\\"')
            self.lines.append(f'#line {source.line} "{plain(path)}"')
            self._away = True
        elif self._away and not _BRACES.fullmatch(line):  # a brace is no statement: it may stay away
            self.lines.append(f'#line {len(self.lines) + 2} "{self._file}"')
            self._away = False
        self.lines.append(line)


def _same(text: str, source: str) -> bool:
    """Whether the comments changed nothing: they must not fall into a string of the text."""
    try:
        return ast.dump(ast.parse(text)) == ast.dump(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
