"""What a name means in a graph: the one place that looks names up, and offers near ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from inductor_probe.analysis.graph import index_of, once_per_graph
from inductor_probe.analysis.operators import operator
from inductor_probe.errors import NotFoundError, ProbeError, near_names
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision
from inductor_probe.model.fx import FxNode
from inductor_probe.model.remark import Subject
from inductor_probe.model.span import SourceLine

NameType: TypeAlias = Literal["node", "buffer", "kernel", "fx", "line", "operator"]

EVERY_TYPE: tuple[NameType, ...] = ("node", "buffer", "kernel", "fx", "line")
"""In the order in which they are preferred: torch before 2.5 calls nodes after their buffers. Operators are
looked up only where they are asked for."""

_WORDS = {
    "node": "node",
    "buffer": "buffer",
    "kernel": "kernel",
    "fx": "FX node",
    "line": "source line",
    "operator": "operator",
}
_OPERATION = re.compile(r"op(?P<number>\d{1,18})")
_LINE = re.compile(r"(?P<path>.*):(?P<line>\d{1,18})")


def resolve(graph: CompiledGraph, name: str, types: Sequence[NameType] = EVERY_TYPE) -> Subject:
    """Return what `name` means in a graph, with its complete name; of `types` the first is preferred.

    A node (`op3`, `op3_op4`), a buffer (`buf3`, `arg0_1`), a kernel or the start of its name that no other
    has, an FX node (`add_1`), a line of the user's (`file.py:12`), or, where asked for, an operator that
    FX nodes call (`aten.cumprod`, with its overload or without).

    Raises:
        NotFoundError: nothing of these types is called that; near names are offered.
        ProbeError: several kernels start so.
    """
    names = names_of(graph)
    for type_ in types:
        if type_ not in ("line", "operator") and name in names[type_]:
            return Subject(type_, name)
    if "line" in types and (lines := lines_called(graph, name)):
        return Subject("line", str(lines[0]) if len(lines) == 1 else name)
    if "operator" in types and (fx_called(graph, name) or kernels_for(graph, name)):
        return Subject("operator", name)
    kernels = kernels_called(name, names["kernel"]) if "kernel" in types else ()
    if len(kernels) == 1:
        return Subject("kernel", kernels[0])
    if kernels:
        message = f"{len(kernels)} kernels of {graph.name} start with {name}"
        raise ProbeError(message, near_names(name, kernels))
    raise not_found(graph, name, types)


def not_found(graph: CompiledGraph, name: str, types: Sequence[NameType] = EVERY_TYPE) -> NotFoundError:
    """Return the error for a name that nothing of these types has, with near names."""
    names = names_of(graph)
    match = _OPERATION.fullmatch(name)
    if match and "node" in types and (buffer := f"buf{match['number']}") in names["buffer"]:
        hint = f"torch before 2.5 calls nodes after their buffers: {buffer}"
        return NotFoundError(f"{graph.name} has no node {name}", hint)
    if "line" in types and _LINE.fullmatch(name):
        places = (f"{line.path.rpartition('/')[2]}:{line.line}" for line in source_lines(graph))
        return NotFoundError(f"{graph.name} has no {_WORDS['line']} {name}", near_names(name, places))
    words = [_WORDS[type_] for type_ in types if type_ != "line"]
    what = " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
    named = {**names, "operator": operators(graph) if "operator" in types else {}}
    known = [other for type_ in types if type_ != "line" for other in named[type_]]
    return NotFoundError(f"{graph.name} has no {what} {name}", near_names(name, known))


@once_per_graph
def names_of(graph: CompiledGraph) -> dict[NameType, dict[str, None]]:
    """Return all names of nodes, buffers, kernels and FX nodes; a line is found by `lines_called`.

    Nodes are those before and after fusion, at any depth of fusion. Buffers are what nodes write, and the
    inputs, constants and views that the IR or the wrapper has a layout of. Kernels are the generated ones and
    the functions of libraries; FX nodes those before inductor's passes and after, and those that were
    rewritten before the graph was written.
    """
    index = index_of(graph)
    allocations = graph.code.allocations if graph.code else ()
    buffers = [item.name for item in allocations if item.kind in ("input", "constant")]
    for nodes in (index.before, index.post):
        buffers += [*nodes.layouts, *nodes.buffers]
    externs = (call.target for call in graph.code.externs) if graph.code else ()
    fx = [node.name for nodes in (graph.fx_before, graph.fx) if nodes is not None for node in nodes.nodes]
    fx += [name for names, _ in _rewritten(graph) for name in names]
    return {
        "node": dict.fromkeys([*index.before.node, *index.post.node]),
        "buffer": dict.fromkeys(buffers),
        "kernel": dict.fromkeys([*index.kernels, *externs]),
        "fx": dict.fromkeys(fx),
    }


def kernels_called(name: str, kernels: Iterable[str]) -> tuple[str, ...]:
    """Return the kernels that `name` means: the one that is called so, or else all that start so."""
    kernels = tuple(dict.fromkeys(kernels))
    if name in kernels:
        return (name,)
    return tuple(kernel for kernel in kernels if name and kernel.startswith(name))


def fx_called(graph: CompiledGraph, name: str) -> tuple[str, ...]:
    """Return the FX nodes that call the operator `name`: `aten.add` those of every overload."""
    asked = operator(name)
    return tuple(
        node.name
        for node in _fx_nodes(graph)
        if (called := operator(node.target)).packet == asked.packet
        and asked.namespace
        and asked.overload in ("", called.overload)
    )


def kernels_for(graph: CompiledGraph, name: str) -> tuple[str, ...]:
    """Return the kernels whose comment names an operator that was decomposed: `prims.rev` was `aten.flip`."""
    packet = operator(name).packet
    kernels = graph.code.kernels if graph.code else ()
    return tuple(kernel.name for kernel in kernels if kernel.comment and packet in kernel.comment.aten)


@once_per_graph
def operators(graph: CompiledGraph) -> dict[str, None]:
    """Return the operators that FX nodes call or that kernels are made from, without their overloads."""
    called = [operator(node.target).packet for node in _fx_nodes(graph) if "." in node.target]
    kernels = graph.code.kernels if graph.code else ()
    return dict.fromkeys(
        [*called, *(aten for kernel in kernels if kernel.comment for aten in kernel.comment.aten)]
    )


def lines_called(graph: CompiledGraph, place: str) -> tuple[SourceLine, ...]:
    """Return the lines of the user's that `file.py:12` may mean: those of any folder."""
    match = _LINE.fullmatch(place)
    if match is None:
        return ()
    path, number = match["path"], int(match["line"])
    return tuple(
        line
        for line in source_lines(graph)
        if line.line == number and (not path or line.path == path or line.path.endswith(f"/{path}"))
    )


def fx_on_lines(graph: CompiledGraph, lines: Iterable[SourceLine]) -> tuple[str, ...]:
    """Return the FX nodes that come from lines of the user's."""
    places = {(line.path, line.line) for line in lines}
    named = [
        node.name
        for node in _fx_nodes(graph)
        if node.source is not None and (node.source.path, node.source.line) in places
    ]
    for names, sources in _rewritten(graph):
        if any((line.path, line.line) in places for line in sources):
            named += names
    return tuple(dict.fromkeys(named))


@once_per_graph
def source_lines(graph: CompiledGraph) -> tuple[SourceLine, ...]:
    """Return the lines of the user's that FX nodes name, each once, in the order of the graph."""
    nodes = _fx_nodes(graph)
    sources = [node.source for node in nodes if node.source is not None]
    sources += [line for _, lines in _rewritten(graph) for line in lines]
    by_place: dict[tuple[str, int], SourceLine] = {}
    for source in sources:
        by_place.setdefault((source.path, source.line), source)
    return tuple(by_place.values())


@once_per_graph
def _rewritten(graph: CompiledGraph) -> tuple[tuple[tuple[str, ...], tuple[SourceLine, ...]], ...]:
    """Return the FX nodes that each recorded decision names, with the lines of those that are gone."""
    return tuple(
        (tuple(name for group in decision.subjects for name in group), tuple(_lines_of(decision)))
        for decision in (graph.decisions.decisions if graph.decisions else ())
        if decision.subject_type == "fx"
    )


def _lines_of(decision: Decision) -> Iterator[SourceLine]:
    sources = decision.operand("sources")
    for place in sources if isinstance(sources, tuple) else ():
        if match := _LINE.fullmatch(place):
            yield SourceLine(match["path"], int(match["line"]), function=None, code="")


def _fx_nodes(graph: CompiledGraph) -> list[FxNode]:
    """Return the nodes of the FX graph that was lowered, and of the one before inductor's passes."""
    return [node for fx in (graph.fx, graph.fx_before) if fx is not None for node in fx.nodes]
