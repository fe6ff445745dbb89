"""The text of a kernel with, on each line, the node, the buffer and the line of the user's it comes from."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from textwrap import wrap

from msgspec import Struct

from inductor_probe.analysis.annotation.origins import LineOrigin, line_origins
from inductor_probe.analysis.annotation.statements import cpp_statements, triton_statements
from inductor_probe.analysis.causes.causes import graph_causes
from inductor_probe.analysis.causes.nests import vector_bits
from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.links import launches, links
from inductor_probe.analysis.names import resolve
from inductor_probe.analysis.operators import operator
from inductor_probe.backends import backend_called
from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.model.cause import Cause
from inductor_probe.model.code import DECIDED_NESTS, CppFacts, Kernel, LoopNest
from inductor_probe.model.cpp_program import portable_flags
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.kernels import KernelLaunch
from inductor_probe.model.record import collected
from inductor_probe.model.span import SourceLine

_INCLUDE = re.compile(r'^#include "(?P<path>[^"\n]*\.h)"', re.MULTILINE)
_PREFIX = "<torch/csrc/inductor/cpp_prefix.h>"
_SEPARATOR = re.compile(r"[\\/]")
_BRACES = re.compile(r"[{};\s]*")
_SIGNS = {"missed": "!", "hazard": "!", "passed": "+"}
_WIDTH = 96
"""Columns of a remark in a comment."""
_VERBS = {"load": "reads", "store": "writes", "atomic": "adds to"}
_COLUMN = 88
"""Comments of a run of lines stand below each other, but not right of this column for short lines' sake."""
_MOST = 4


def annotate(
    graph: CompiledGraph,
    kernel: str,
    *,
    line_directives: bool = True,
    sentence: Callable[[Cause], str] | None = None,
) -> str:
    """Return the text of a generated kernel with its origins as comments, ready to paste.

    Only what is proved is written: a line with several possible origins is marked AMBIGUOUS with all of
    them. With `line_directives` a `#line` stands before C++ lines with one proved line of the user's. With
    `sentence`, which makes words of a cause, recorded decisions stand where they belong: above the loop nest
    that they are about, beside an access that is not contiguous, or above the kernel.

    Raises:
        NotFoundError: the graph has no such kernel, or it is a library function; near names are offered.
        ProbeError: several kernels start so.
    """
    generated = index_of(graph).kernels
    name = resolve(graph, kernel, ("kernel",)).name
    if name not in generated:
        message = f"{name} is a library function: {graph.name} has no text of it"
        raise NotFoundError(message, near_names(kernel, generated))
    return _Annotator(graph, generated[name], sentence).text(line_directives)


def nodes_of_lines(graph: CompiledGraph, kernel: str) -> dict[int, tuple[str, ...]]:
    """Return which nodes each line of a kernel's text computes for; several where it is not known for which.

    Lines are counted from 1 in `Kernel.source`; those that compute for none are left out.
    """
    annotator = _Annotator(graph, index_of(graph).kernels[kernel], None)
    names = {
        row + annotator._moved: tuple(dict.fromkeys(name for one in origins for name in one.concerned))
        for row, origins in annotator._origins().items()
    }
    return {row: nodes for row, nodes in sorted(names.items()) if nodes}


class NestOrigin(Struct, frozen=True):
    """A loop nest of a C++ kernel: nodes that its lines compute for, lines of the user's, and FX nodes."""

    nest: LoopNest
    nodes: tuple[str, ...]
    sources: tuple[SourceLine, ...]
    fx: tuple[str, ...]


def nest_origins(graph: CompiledGraph, kernel: str) -> tuple[NestOrigin, ...]:
    """Return what each loop nest over data of a C++ kernel computes for, in the order of its text."""
    return tuple(_Annotator(graph, index_of(graph).kernels[kernel], None).nests())


def computing_line(graph: CompiledGraph, kernel: str, node: str, called: str) -> tuple[int, str] | None:
    """Return the line of `output_code.py` on which a kernel computes an operator of a scheduler node.

    That is one that calls a function of the operator's name (`exp`); else one whose text has its sign (`-` of
    `sub`); else the first that stores the node's value.

    Args:
        called: the operator, without its namespace.

    Returns:
        line and text; None where the kernel has no text, or nothing in it is proved to be of the node.
    """
    made = index_of(graph).kernels.get(kernel)
    if made is None or made.span is None:
        return None
    return _Annotator(graph, made, None).computing_line(node, called)


class RowsOfNode(Struct, frozen=True):
    """Which lines of a kernel's text, from 1, are shown to compute for a node, and which for others alone."""

    sure: frozenset[int]
    other: frozenset[int]


def rows_of(graph: CompiledGraph, kernel: str, node: str) -> RowsOfNode:
    """Return the lines of a kernel that compute for a scheduler node, and those that do not."""
    return _Annotator(graph, index_of(graph).kernels[kernel], None).rows_of(node)


_SIGN_OF = {
    "add": " + ", "sub": " - ", "mul": " * ", "div": " / ", "reciprocal": " / ", "neg": "neg(", "eq": "==",
    "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "remainder": "mod", "clamp": "clamp",
    "sum": "tmp_acc", "mean": "tmp_acc", "amax": "max", "amin": "min", "var_mean": "welford",
    "where": "blendv", "_to_copy": "convert", "convert_element_type": "convert",
}  # fmt: skip
"""What a line has that computes an operator, where it is not a function of its name."""


class _Comment(Struct, frozen=True):
    """The comment of a line, and the line of the user's that it is proved to come from."""

    text: str
    source: SourceLine | None


class _Annotator:
    def __init__(self, graph: CompiledGraph, kernel: Kernel, sentence: Callable[[Cause], str] | None) -> None:
        self._graph = graph
        self._kernel = kernel
        self._index = index_of(graph)
        self._links = {link.node: link for link in links(graph).of_kernel(kernel.name)}
        self._launches = launches(graph).get(kernel.name, ())
        tops = {link.top for link in self._links.values()}
        # What is fused runs in one kernel: a node that no link was found for must not be left out.
        self._leaves = [leaf for leaf in self._index.nodes.leaves if self._top(leaf) in tops]
        self._source = kernel.source.strip("\n")
        self._lines = self._source.split("\n")
        self._sentence = sentence or str
        causes = graph_causes(graph, [kernel.name]).causes if sentence else ()
        self._causes = [cause for cause in causes if cause.direct and cause.decision is not None]
        self._accesses = _non_contiguous_accesses(self._causes)

    def text(self, line_directives: bool) -> str:
        """Return the annotated text."""
        origins = self._origins()
        comments = {
            line: comment for line, launches in origins.items() if (comment := self._comment(launches))
        }
        if self._kernel.backend == "cpp":
            lines = self._cpp(origins, comments, line_directives)
            if line_directives:
                return "\n".join(_with_line_directives(lines, f"{self._kernel.name}.cpp")) + "\n"
            return "\n".join(line for line, _ in lines) + "\n"
        header = "".join(f"# {_plain(line)}\n" for line in self._header())
        more = "".join(f"# {_plain(line)}\n" for line in self._kernel.comments)
        text = header + ("#\n" + more if more else "") + "\n".join(self._commented(comments, "#")) + "\n"
        is_safe = self._kernel.backend != "triton" or _is_same_python(text, self._source)
        return text if is_safe else f"{header}{self._source}\n"

    def _top(self, leaf: SchedulerNode) -> str:
        return self._index.nodes.top[leaf.name].name

    def _origins(self) -> dict[int, list[LineOrigin]]:
        """Return what each launch shows about each line."""
        backend = backend_called(self._kernel.backend)
        pointers = frozenset(arg.name for arg in self._kernel.args if arg.role not in ("size", "workspace"))
        uses = backend.pointer_uses(self._source, pointers) if backend else ()
        read = {"cpp": cpp_statements, "triton": triton_statements}.get(self._kernel.backend)
        statements = tuple(read(self._source)) if read else ()
        origins: dict[int, list[LineOrigin]] = {}
        for launch in self._launches:
            buffers = self._buffers(launch)
            for line, origin in line_origins(statements, uses, self._run_by(buffers), buffers).items():
                origins.setdefault(line, []).append(origin)
        return origins

    def _buffers(self, launch: KernelLaunch) -> dict[str, tuple[str, ...]]:
        """Return the names that each pointer's memory has while the kernel runs, that of the launch first."""
        buffers = {}
        for passed in launch.passed:
            if passed.arg is not None and passed.buffer is not None:
                in_place = passed.arg.role == "inout"
                names = self._index.memory_names(passed.buffer) if in_place else (passed.buffer,)
                buffers[passed.arg.name] = (*names, *self._index.nodes.mutated_as.get(passed.buffer, ()))
        return buffers

    def _run_by(self, buffers: dict[str, tuple[str, ...]]) -> list[SchedulerNode]:
        """Return the nodes of one launch: all, or of several launches those fused with a writer of it."""
        if len(self._launches) == 1:
            return self._leaves
        names = {name for group in buffers.values() for name in group}
        tops = {self._top(leaf) for leaf in self._leaves for buffer in leaf.outputs if buffer.name in names}
        return [leaf for leaf in self._leaves if self._top(leaf) in tops]

    def _sources(self, node: str) -> tuple[SourceLine, ...]:
        """Return the lines of the user's that a node may come from."""
        link = self._links.get(node)
        return link.sources if link else ()

    def _comment(self, origins: Sequence[LineOrigin]) -> _Comment | None:
        """Return the comment of a line, which may differ from launch to launch."""
        texts = list(dict.fromkeys(text for origin in origins if (text := self._origin_text(origin))))
        if not texts:
            return None
        nodes = [name for origin in origins for name in origin.concerned]
        lines: dict[tuple[str, int], SourceLine] = {}
        for node in dict.fromkeys(nodes):
            sources = self._sources(node)
            if len(sources) > 1:
                sources = self._sources_of_calls(node, origins[0].calls) or sources
            lines.update({line.place: line for line in sources})
        where = _either([f"{_SEPARATOR.split(line.path)[-1]}:{line.line}" for line in lines.values()])
        more = f" | {len(texts) - _MOST} more" if len(texts) > _MOST else ""
        text = " | ".join(texts[:_MOST]) + more + (f", {where}" if where else "")
        is_proved = len(lines) == 1 and all(map(self._sources, nodes))
        return _Comment(_plain(text), next(iter(lines.values())) if is_proved else None)

    def _sources_of_calls(self, node: str, calls: frozenset[str]) -> tuple[SourceLine, ...]:
        """A function that a statement calls is recognised by its name: `.rsqrt()` is of `aten.rsqrt`."""
        nodes = (self._index.fx[name] for name in self._links[node].fx if name in self._index.fx)
        return tuple(fx.source for fx in nodes if fx.source is not None and operator(fx.target).name in calls)

    def _header(self) -> Iterator[str]:
        """Yield what stands above the text: which kernel it is, what it is passed, what its nodes write."""
        span = self._kernel.span
        where = f" ({span.path.name}:{span.first})" if span else ""
        yield f"{self._kernel.name} of {self._graph.name}{where}, annotated by inductor_probe"
        for launch in self._launches:
            yield f"launched at {launch.span.path.name}:{launch.span.first} with"
            arguments = [(passed.arg.name, passed) for passed in launch.passed if passed.arg is not None]
            width = max((len(name) for name, _ in arguments), default=0)
            for name, passed in arguments:
                layout = passed.layout
                size = list(layout.size) if layout and layout.size is not None else ""
                kind = f"  {layout.dtype or '?'} {size}" if layout else ""
                yield f"  {name:{width}}  {passed.text}{kind}"
        for leaf in self._leaves:
            buffers = ", ".join(buffer.name for buffer in leaf.outputs)
            yield f"{leaf.name} computes {buffers or 'no buffer'}"
            for line in self._sources(leaf.name):
                yield f"  {line}{f' in {line.function}' if line.function else ''}: {line.code}"
        yield from self._remarks(None)

    def nests(self) -> Iterator[NestOrigin]:
        """Yield each loop nest over data with what it computes for."""
        origins = {line: launches[0] for line, launches in self._origins().items()}
        for nest in self._nests():
            nodes = self._nodes_in(nest, origins)
            sources = dict.fromkeys(source for node in nodes for source in self._sources(node))
            fx = dict.fromkeys(name for node in nodes if node in self._links for name in self._links[node].fx)
            yield NestOrigin(nest, nodes, tuple(sources), tuple(fx))

    def computing_line(self, node: str, called: str) -> tuple[int, str] | None:
        """Return the line that computes an operator of a node, counted in the file: see `computing_line`."""
        mine = {
            row: origins[0]
            for row, origins in self._origins().items()
            if any(node in origin.concerned for origin in origins)
        }
        function = called.strip("_")  # which `std::exp` is of `exp`
        named = [
            row
            for row, origin in mine.items()
            if any(one.rpartition("::")[2].strip("_") == function for one in origin.calls)
        ]
        sign = _SIGN_OF.get(called, f"{called}(")
        signed = [row for row in mine if sign in self._lines[row - 1].partition("=")[2]]
        stores = [row for row, origin in mine.items() if any(use.kind != "load" for use, _ in origin.uses)]
        row = next((rows[0] for rows in (named, signed, stores) if rows), None)
        if row is None or self._kernel.span is None:
            return None
        return self._kernel.span.first + self._moved + row - 1, self._lines[row - 1].strip()

    def rows_of(self, node: str) -> RowsOfNode:
        """See `rows_of`. All lines are the node's in a kernel that computes no other."""
        if [leaf.name for leaf in self._leaves] == [node]:
            return RowsOfNode(frozenset(range(1, len(self._lines) + 1)), frozenset())
        sure, other = set(), set()
        for row, origins in self._origins().items():
            if all(origin.nodes == (node,) or node in origin.shared for origin in origins):
                sure.add(row)
            elif not any(node in origin.concerned for origin in origins):
                other.add(row)
        return RowsOfNode(frozenset(sure), frozenset(other))

    def _nests(self) -> tuple[LoopNest, ...]:
        details = self._kernel.details
        return details.data_nests if isinstance(details, CppFacts) else ()

    @property
    def _moved(self) -> int:
        """Lines of the kernel's facts are counted with the empty ones that it starts with."""
        return len(self._kernel.source) - len(self._kernel.source.lstrip("\n"))

    def _nodes_in(self, nest: LoopNest, origins: dict[int, LineOrigin]) -> tuple[str, ...]:
        """Return the nodes that the lines of a loop nest compute for."""
        inside = (origins.get(row - self._moved) for row in range(nest.line, nest.last + 1))
        names = (name for origin in inside if origin for name in origin.concerned)
        return tuple(dict.fromkeys(names))

    def _remarks(self, nest: int | None) -> Iterator[str]:
        """Yield what was decided about a loop nest (from 1), or what is about none that is known."""
        for cause in self._causes:
            if cause.nest == nest:
                text = f"{_SIGNS.get(cause.kind, '-')} {self._sentence(cause)}"
                yield from wrap(_plain(text), _WIDTH, subsequent_indent="  ", break_on_hyphens=False)

    def _origin_text(self, origin: LineOrigin) -> str:
        """Return what is known of a statement, and how its accesses fall short of contiguous ones."""
        text = _origin_text(origin)
        strides = [
            stride
            for _, names in origin.uses
            for name in names
            for node in origin.concerned
            for stride in self._accesses.get((node, name), ())
        ]
        return f"{text}; not contiguous ({' or '.join(dict.fromkeys(strides))})" if text and strides else text

    def _commented(self, comments: dict[int, _Comment], sign: str) -> Iterator[str]:
        """Yield each line with its comment, in one column for lines that follow each other."""
        columns = _columns(self._lines, comments)
        for number, line in enumerate(self._lines, 1):
            header = _INCLUDE.match(line) if sign == "//" else None
            shown = f"#include {_PREFIX}  // was {header['path']}" if header else line
            if number in comments and not shown.endswith("\\"):
                shown = f"{shown:{columns[number]}}  {sign} {comments[number].text}"
            yield shown

    def _cpp(
        self, origins: dict[int, list[LineOrigin]], comments: dict[int, _Comment], line_directives: bool
    ) -> Iterator[tuple[str, SourceLine | None]]:
        """Yield each line with that of the user's which it is proved to come from."""
        for line in (*self._header(), *self._compiling(line_directives)):
            yield f"// {_plain(line)}".rstrip(), None
        headings = self._nest_headings({line: launches[0] for line, launches in origins.items()})
        for number, line in enumerate(self._commented(comments, "//"), 1):
            for heading in headings.get(number, ()):
                indent = line[: len(line) - len(line.lstrip())]
                yield f"{indent}// {heading}", None
            yield line, comments[number].source if number in comments else None

    def _compiling(self, line_directives: bool) -> Iterator[str]:
        details = self._kernel.details
        bits = vector_bits(self._graph, self._kernel.name, details) if isinstance(details, CppFacts) else None
        flags = " ".join(portable_flags(bits))
        yield "the function is called `kernel`, as inductor wrote it"
        yield f"compile: g++ -c FILE {flags} -ITORCH/include"
        yield "  TORCH: what `python -c 'import torch; print(torch.__path__[0])'` prints, with the torch that"
        yield "  wrote it: headers change (before 2.8 it is TORCH/_inductor/codegen/cpp_prefix.h)"
        if line_directives:
            yield "#line sends gdb, perf and messages of the compiler to your source where one line of it is"
            yield "  proved; Compiler Explorer colours by the text itself: give it the text of --no-line"

    def _nest_headings(self, origins: dict[int, LineOrigin]) -> dict[int, list[str]]:
        """Return the heading of each loop nest, by the line it stands above: the first pragma of the nest.

        Below its first line stands what was decided about it.
        """
        nests = self._nests()
        headings: dict[int, list[str]] = {}
        decided = 0
        for number, nest in enumerate(nests, 1):
            line = nest.line - self._moved
            while line > 1 and self._lines[line - 2].lstrip().startswith("#pragma"):
                line -= 1
            nodes = ", ".join(self._nodes_in(nest, origins)) or "the node is not known"
            headings[line] = [f"loop nest {number} of {len(nests)}, {nest.kind}: {nodes}"]
            if nest.kind in DECIDED_NESTS:  # a tail has no decision of its own
                decided += 1
                headings[line] += [f"  {text}" for text in self._remarks(decided)]
        return headings


def _with_line_directives(lines: Iterable[tuple[str, SourceLine | None]], file: str) -> Iterator[str]:
    """Send the compiler to the user's source before a line that comes from there, and back after it."""
    number = 0
    is_away = False
    for line, source in lines:
        number += 1
        if source is not None:
            path = source.path.replace("\\", "\\\\").replace('"', '\\"')
            yield f'#line {source.line} "{_plain(path)}"'
            number, is_away = number + 1, True
        elif is_away and not _BRACES.fullmatch(line):  # a brace needs no directive: only statements do
            yield f'#line {number + 1} "{file}"'
            number, is_away = number + 1, False
        yield line


def _origin_text(origin: LineOrigin) -> str:
    """`op1 or op2 (AMBIGUOUS) reads arg0_1`, `op0 (and op3) writes buf0`."""
    node = _either(origin.nodes)
    if len(origin.nodes) > _MOST:
        node = f"{origin.nodes[0]} or {len(origin.nodes) - 1} others"
    if len(origin.nodes) > 1:
        node += " (AMBIGUOUS)"
    elif origin.shared:
        node += f" (and {', '.join(origin.shared[:_MOST])}{' ...' if len(origin.shared) > _MOST else ''})"
    uses = (f"{_VERBS[use.kind]} {_either(names) if names else use.pointer}" for use, names in origin.uses)
    return " ".join(filter(None, (node, ", ".join(uses))))


def _either(names: Sequence[str]) -> str:
    return " or ".join(names[:_MOST]) + (" or others" if len(names) > _MOST else "")


def _plain(text: str) -> str:
    """Make text fit for a comment: one line, nothing that acts, no backslash that joins the next line."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return shown.rstrip().rstrip("\\")


def _columns(lines: Sequence[str], comments: dict[int, _Comment]) -> dict[int, int]:
    """Return the column where the comment of each line starts: the same for lines that follow each other."""
    columns: dict[int, int] = {}
    run: list[int] = []
    for number in range(1, len(lines) + 2):
        if number in comments:
            run.append(number)
            continue
        widths = (len(lines[line - 1]) for line in run if len(lines[line - 1]) <= _COLUMN)
        columns.update(dict.fromkeys(run, max(widths, default=0)))
        run = []
    return columns


def _is_same_python(text: str, source: str) -> bool:
    """Whether the comments changed nothing: they must not fall into a string of the text."""
    try:
        return ast.dump(ast.parse(text)) == ast.dump(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _non_contiguous_accesses(causes: Sequence[Cause]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return by node and buffer how accesses fall short of contiguous ones: `stride -1`, `indirect access`.

    They are operands of decisions about vectors, which list them as tuples of equal lengths.
    """
    decisions = (cause.decision for cause in causes if cause.decision is not None)
    accesses = (access for decision in decisions for access in _accesses_of(decision))
    return collected(((node, buffer), text) for node, buffer, text in dict.fromkeys(accesses))


def _accesses_of(decision: Decision) -> list[tuple[str, str, str]]:
    columns = [decision.operand(name) for name in ("nodes", "buffers", "strides")]
    if not all(isinstance(column, tuple) for column in columns):
        return []
    nodes, buffers, strides = (column if isinstance(column, tuple) else () for column in columns)
    kinds = decision.operand("causes")
    codes = kinds if isinstance(kinds, tuple) else ("",) * len(strides)
    return [
        (node, buffer, f"stride {stride}" if stride else code.replace("-", " "))
        for node, buffer, stride, code in zip(nodes, buffers, strides, codes, strict=False)
        if buffer and (stride or code)
    ]
