"""What a name means in a graph: the one place that looks names up, and offers near ones.

A name is taken as any screen prints it: with what a table counts behind it (`op10 +3`), with an ellipsis for
what it left out (`triton_poi_fused_…_3`), of nodes that were fused for a while (`op0_op1`), of a buffer that
is gone (`buf10`), of an operator that is gone since it became others (`aten.batch_norm`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from inductor_probe.analysis.graph import index_of, once_per_graph
from inductor_probe.analysis.operators import Operator, operator
from inductor_probe.errors import (
    AmbiguousError,
    NotFoundError,
    names_meant,
    near_names,
    pattern_of,
    shortened,
)
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision
from inductor_probe.model.fx import FxNode
from inductor_probe.model.record import grouped
from inductor_probe.model.remark import Subject
from inductor_probe.model.span import SourceLine

NameType: TypeAlias = Literal["node", "buffer", "kernel", "fx", "line", "operator"]

EVERY_TYPE: tuple[NameType, ...] = ("node", "buffer", "kernel", "fx", "line")
"""In the order in which they are preferred: torch before 2.5 calls nodes after their buffers. Operators are
looked up only where they are asked for."""

ANYTHING: tuple[NameType, ...] = (*EVERY_TYPE, "operator")
KERNEL_FIRST: tuple[NameType, ...] = ("kernel", "node", "buffer", "fx", "line", "operator")

_WORDS = {name: name for name in ANYTHING} | {"fx": "FX node", "line": "source line"}
_OPERATION = re.compile(r"op(?P<number>\d{1,18})")
_NO_OPERATORS = ("extern_kernels", "ops")
_COUNTED = re.compile(r"(?:,.* and \d+ more|(?: \+\d+| \([^()]*\))+)$")
"""What stands behind a name in a table: `op10 +3`, `buf3 (+2)`, `op0_op1, op3 and 3 more`."""
_LINE = re.compile(r"(?P<path>.*):(?P<line>\d{1,18})")


def resolve(graph: CompiledGraph, name: str, types: Sequence[NameType] = EVERY_TYPE) -> Subject:
    """Return what `name` means in a graph, with its complete name; of `types` the first is preferred.

    A node (`op3`), nodes together (`op3_op4`), a buffer (`buf3`, `arg0_1`), a kernel or the start of its name
    that no other has, an FX node (`add_1`), a line of the user's (`file.py:12`), or, where asked for, an
    operator (`aten.cumprod`, with its overload or without) that FX nodes call, or that became some.

    Raises:
        NotFoundError: nothing of these types is called that; what else it is, or near names, are offered.
        AmbiguousError: several kernels start so, or fit what an ellipsis leaves of a name.
    """
    subjects = _meant(graph, plain_name(name), types)
    if not subjects:
        raise not_found(graph, name, types)
    if len(subjects) > 1:
        do = "fit" if shortened(name) else "start with"
        message = f"{len(subjects)} {_WORDS[subjects[0].type]}s of {graph.name} {do} {name}"
        raise AmbiguousError(message, near_names(name, [subject.name for subject in subjects]))
    return subjects[0]


def plain_name(text: str) -> str:
    """Return a name without what a table counts behind it: `op10` of `op10 +3`, `buf3` of `buf3 (+2)`."""
    return _COUNTED.sub("", text.strip())


def _meant(graph: CompiledGraph, name: str, types: Sequence[NameType]) -> tuple[Subject, ...]:
    """Return all that `name` may be of the first of `types` that has it."""
    names = names_of(graph)
    by_name = [type_ for type_ in types if type_ in names]
    for type_ in by_name:
        if name in names[type_]:
            return (Subject(type_, name),)
    if "node" in types and nodes_called(graph, name):
        return (Subject("node", name),)
    if "line" in types and (lines := lines_called(graph, name)):
        return (Subject("line", str(lines[0]) if len(lines) == 1 else name),)
    if "operator" in types and (fx_called(graph, name) or became(graph, name) or kernels_for(graph, name)):
        return (Subject("operator", name),)
    for type_ in by_name:  # of other names than those of kernels a start says little
        if (type_ == "kernel" or shortened(name)) and (short := names_meant(name, names[type_])):
            return tuple(Subject(type_, each) for each in short)
    if "node" in types and shortened(name):
        return tuple(Subject("node", each) for each in _fused_for_a_while(graph, name))
    return ()


def _fused_for_a_while(graph: CompiledGraph, name: str) -> tuple[str, ...]:
    """Return the nodes that a shortened name means within fused ones: `op2…op4` of op0_op1_op2_op3_op4.

    The scheduler puts the names of two nodes behind each other when it fuses them.
    """
    form = re.compile(rf"(?<![^_]){pattern_of(name)}(?![^_])")
    found = (match[0] for node in names_of(graph)["node"] if (match := form.search(node)))
    return tuple(one for one in dict.fromkeys(found) if nodes_called(graph, one))


def not_found(graph: CompiledGraph, name: str, types: Sequence[NameType] = EVERY_TYPE) -> NotFoundError:
    """Return the error for a name that nothing of these types has: what else it is, or near names."""
    names = names_of(graph)
    match = _OPERATION.fullmatch(name)
    if match and "node" in types and (buffer := f"buf{match['number']}") in names["buffer"]:
        hint = f"torch before 2.5 calls nodes after their buffers: {buffer}"
        return NotFoundError(f"{graph.name} has no node {name}", hint)
    words = [_WORDS[type_] for type_ in types if type_ != "line"]
    what = " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
    others = [type_ for type_ in ANYTHING if type_ not in types]
    if len(other := _meant(graph, plain_name(name), others)) == 1:
        return NotFoundError(
            f"{name} of {graph.name} names no {what}: its type is {_WORDS[other[0].type]}",
            f"probe show {other[0].name} says what belongs to it",
        )
    if "line" in types and _LINE.fullmatch(name):
        places = (line.short for line in source_lines(graph))
        return NotFoundError(f"{graph.name} has no {_WORDS['line']} {name}", near_names(name, places))
    named = {**names, "operator": operators(graph) if "operator" in types else {}}
    near = near_names(name, [other for type_ in types if type_ != "line" for other in named[type_]])
    by_line = "or name its line: FILE:LINE"
    if "operator" in types and operator(name).namespace:
        near = f"{near}; {by_line}" if near else by_line
    return NotFoundError(f"{graph.name} has no {what} {name}", near)


@once_per_graph
def names_of(graph: CompiledGraph) -> dict[NameType, dict[str, None]]:
    """Return all names of nodes, buffers, kernels and FX nodes; a line is found by `lines_called`.

    Nodes are those before and after fusion, at any depth of fusion. Buffers are what nodes write, the inputs,
    constants and views that the IR or the wrapper has a layout of, and those that something was decided about
    before they were gone. Kernels are the generated ones and the functions of libraries; FX nodes those
    before inductor's passes and after, those that were rewritten before the graph was written, and those of
    dynamo's graph.
    """
    index = index_of(graph)
    allocations = graph.code.allocations if graph.code else ()
    buffers = [item.name for item in allocations if item.kind in ("input", "constant")]
    for nodes in (index.before, index.post):
        buffers += [*nodes.layouts, *nodes.buffers]
    externs = (call.target for call in graph.code.externs) if graph.code else ()
    graphs = [nodes for nodes in (graph.fx_before, graph.fx) if nodes is not None]
    fx = [node.name for nodes in graphs for node in (*nodes.nodes, *nodes.inputs)]
    fx += [name for names, _ in _rewritten(graph) for name in names]
    fx += graph.provenance.pre_to_post if graph.provenance else ()  # of dynamo's graph
    buffers += [
        name
        for decision in graph.decided
        if decision.subject_type == "buffer"
        for names in decision.subjects
        for name in names
    ]
    return {
        "node": dict.fromkeys([*index.before.node, *index.post.node]),
        "buffer": dict.fromkeys(buffers),
        "kernel": dict.fromkeys([*index.kernels, *externs]),
        "fx": dict.fromkeys(fx),
    }


def nodes_called(graph: CompiledGraph, name: str) -> tuple[str, ...]:
    """Return the unfused nodes that the name of a node means, fused or not; empty for any other name.

    Nodes were fused for a while, or tried together, that no file of the dump has as one: `op3_op4`.
    """
    index = index_of(graph)
    if node := index.nodes.node.get(name) or index.before.node.get(name):
        return tuple(leaf.name for leaf in node.leaves())
    parts = tuple(name.split("_"))
    is_known = len(parts) > 1 and all(part in index.before.leaf or part in index.nodes.leaf for part in parts)
    return parts if is_known else ()


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


@once_per_graph
def _sources_of(graph: CompiledGraph) -> dict[str, tuple[str, ...]]:
    """Return the FX nodes that each node of dynamo's graph became, by file and by the comments of kernels."""
    became: dict[str, dict[str, None]] = {}
    pairs = [*(graph.provenance.pre_to_post.items() if graph.provenance else ())]
    for kernel in graph.kernels:
        pairs += kernel.comment.mapping if kernel.comment else ()
    for name, fx in pairs:
        became.setdefault(name, {}).update(dict.fromkeys(fx))
    return {name: tuple(fx) for name, fx in became.items()}


def became(graph: CompiledGraph, name: str) -> tuple[str, ...]:
    """Return the FX nodes that stand for an operator that none of them calls: it was decomposed, or removed.

    `probe dump` records what became of what. Of other dumps dynamo's nodes say it, which are called after the
    function (`batch_norm_1`) where the user gave its result no name; or else the user's lines that call it.
    """
    asked = operator(name)
    if not asked.namespace or asked.namespace in _NO_OPERATORS or fx_called(graph, name):
        return ()
    plain, packet = _plain_function(asked.name), asked.packet.rstrip("_")
    recorded = [
        fx
        for called, names in (graph.record.became if graph.record else ())
        if called == asked.packet or ("." not in called and _plain_function(called) == plain)
        for fx in names
    ]
    recorded += [node.name for node in _fx_nodes(graph) if operator(node.target).packet.rstrip("_") == packet]
    recorded += _removed(graph, asked)
    function = re.compile(rf"{re.escape(asked.name.rstrip('_'))}_?(?:_\d+)?")
    sources = _sources_of(graph).items()
    by_dynamo = [fx for source, names in sources if function.fullmatch(source) for fx in names]
    call = re.compile(rf"(?<!\w){function.pattern}\(")
    lines = [line for line in source_lines(graph) if call.search(line.code)]
    names = dict.fromkeys(recorded or by_dynamo or fx_on_lines(graph, lines))
    return tuple(dict.fromkeys([*names, *_in_place_of(graph, names)]))


def gone(graph: CompiledGraph, names: Iterable[str]) -> tuple[str, ...]:
    """Return those of some FX nodes that neither FX graph of the dump has: passes took them out."""
    kept = {node.name for node in _fx_nodes(graph)}
    kept.update(node.name for fx in (graph.fx, graph.fx_before) if fx is not None for node in fx.inputs)
    return tuple(name for name in names if name not in kept)


def _in_place_of(graph: CompiledGraph, names: Iterable[str]) -> Iterator[str]:
    """Yield what took the place of FX nodes that are gone, one rewrite after the other.

    Of `sub` of a batch norm that was folded it is the convolution.
    """
    by: dict[str, tuple[str, ...]] = {}
    for decision in graph.decided:
        old, new = decision.operand("nodes"), decision.operand("by")
        if decision.outcome == "replaced" and isinstance(old, tuple) and isinstance(new, tuple):
            by.update(dict.fromkeys(map(str, old), tuple(map(str, new))))
    left = list(gone(graph, names))
    seen = set(left)
    while left:
        took_over = [name for name in by.get(left.pop(), ()) if name not in seen]
        seen.update(took_over)
        removed = gone(graph, took_over)
        left += removed
        yield from (name for name in took_over if name not in removed)


def _removed(graph: CompiledGraph, asked: Operator) -> Iterator[str]:
    """Yield the FX nodes of decisions that name an operator, as those do that a pass removed or replaced."""
    for decision in graph.decided:
        values = [value for _, value in decision.operands]
        texts = [text for value in values for text in (value if isinstance(value, tuple) else (value,))]
        named = (operator(text).packet for text in texts if isinstance(text, str))
        if decision.subject_type == "fx" and decision.outcome != "not-replaced" and asked.packet in named:
            yield from (name for names in decision.subjects for name in names)


def _plain_function(name: str) -> str:
    """Return `batchnorm` of `batch_norm`, and of the module `BatchNorm2d`."""
    return re.sub(r"\dd$|_", "", name.lower())


def kernels_for(graph: CompiledGraph, name: str) -> tuple[str, ...]:
    """Return the kernels whose comment names an operator that was decomposed: `prims.rev` was `aten.flip`."""
    packet = operator(name).packet
    return tuple(kernel.name for kernel in graph.kernels if kernel.comment and packet in kernel.comment.aten)


@once_per_graph
def operators(graph: CompiledGraph) -> dict[str, None]:
    """Return the operators that FX nodes call or that kernels are made from, without their overloads."""
    called = [operator(node.target).packet for node in _fx_nodes(graph) if "." in node.target]
    comments = (kernel.comment for kernel in graph.kernels if kernel.comment)
    return dict.fromkeys([*called, *(aten for comment in comments for aten in comment.aten)])


def lines_called(graph: CompiledGraph, place: str) -> tuple[SourceLine, ...]:
    """Return the lines of the user's that `file.py:12` may mean: those of any folder."""
    match = _LINE.fullmatch(place)
    if match is None:
        return ()
    path, number = match["path"], int(match["line"])
    cut, tail = path.startswith("…"), path.removeprefix("…")
    return tuple(
        line
        for line in source_lines(graph)
        if line.line == number
        and (not path or line.path == path or line.path.endswith(tail if cut else f"/{path}"))
    )


def fx_on_lines(graph: CompiledGraph, lines: Iterable[SourceLine]) -> tuple[str, ...]:
    """Return the FX nodes that come from lines of the user's."""
    places = {line.place for line in lines}
    named = [node.name for node in _fx_nodes(graph) if node.source and node.source.place in places]
    for names, sources in _rewritten(graph):
        if any(line.place in places for line in sources):
            named += names
    return tuple(dict.fromkeys(named))


@once_per_graph
def source_lines(graph: CompiledGraph) -> tuple[SourceLine, ...]:
    """Return the lines of the user's that FX nodes name, each once, in the order of the graph."""
    sources = [node.source for node in _fx_nodes(graph) if node.source is not None]
    sources += [line for _, lines in _rewritten(graph) for line in lines]
    return tuple(lines[0] for lines in grouped(sources, lambda line: line.place).values())


@once_per_graph
def _rewritten(graph: CompiledGraph) -> tuple[tuple[tuple[str, ...], tuple[SourceLine, ...]], ...]:
    """Return the FX nodes that each recorded decision names, with the lines of those that are gone."""
    return tuple(
        (tuple(name for group in decision.subjects for name in group), tuple(_lines_of(decision)))
        for decision in graph.decided
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
