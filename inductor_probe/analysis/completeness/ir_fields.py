"""The fields that torch prints of every scheduler node, and in which order.

`BaseSchedulerNode.debug_str`, `SchedulerBuffer.debug_str` and `SchedulerNode.debug_str_extra` in
`torch/_inductor/scheduler.py` print them without a condition, but for `aliases` and `mutations`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from inductor_probe.model.span import Problem, Span
from inductor_probe.reader.blocks import LAYOUT_LINE, OUTPUT_HEADER, NodeBlock, Statement, split
from inductor_probe.reader.values import shorten

_OUTPUTS = "outputs"
_DEPS = ("writes", "unmet_dependencies", "met_dependencies")
_DISTANCES = ("min_input_distance", "max_input_distance")
_LOOPS = ("group.device", "group.iteration", "sizes")
_KERNEL = "node.kernel"
_OPTIONAL = ("aliases", "mutations")
_ORDER = (*_DEPS, *_DISTANCES, "users", _OUTPUTS, *_LOOPS, LAYOUT_LINE, *_OPTIONAL, _KERNEL)
_OUTPUT_ORDER = ("layout", *_OPTIONAL, "users")
_DEP_NAME = re.compile(r"(?:MemoryDep\(|StarDep\(name=)'(?P<name>\w+)'")
_DISTANCE = re.compile(r"-?\d+|inf")
# Templates have no loop body that torch prints.
_NO_BODY = re.compile(r"\w*Template\w*")


def field_problems(text: str, path: Path) -> Iterator[Problem]:
    """Yield what an IR file lacks of the lines that torch prints for every node."""
    yield from _separators(text, path)
    blocks = [block for top in split(text).nodes for block in _all(top)]
    lines = text.split("\n")
    keys = {statement.key for block in blocks for statement in block.statements}
    # These came and went with releases of torch, so that what one node of a file has, each of them has.
    everywhere = {key for key in (*_DISTANCES, "users") if key in keys}
    if any(block.outputs for block in blocks):
        everywhere.add(_OUTPUTS)
    for block in blocks:
        yield from _missing(block, everywhere, LAYOUT_LINE in keys, path)
        if block.outputs:
            first = block.outputs[0].first - 1
            if lines[first - 1].strip() != f"{block.name}.{_OUTPUTS} = [":
                yield Problem(
                    f"not understood: {shorten(lines[first - 1].strip())}", Span(path, first, first)
                )
        yield from _order(block, path)
        yield from _children(block, path)


def _separators(text: str, path: Path) -> Iterator[Problem]:
    """Torch joins the nodes with two empty lines between them and as many behind the last (`debug.py`)."""
    if not text:
        return
    lines = text.split("\n")
    empty = 0
    for number, line in enumerate(lines, 1):
        if line:
            if empty not in (0, 2) or (empty and number == empty + 1):
                yield Problem("two empty lines stand between nodes", Span(path, number, number))
            empty = 0
        else:
            empty += 1
    if empty != 3:
        yield Problem(
            "cut off: two empty lines stand behind the last node", Span(path, len(lines), len(lines))
        )


def _all(block: NodeBlock) -> Iterator[NodeBlock]:
    yield block
    for child in block.children:
        yield from _all(child)


def _missing(block: NodeBlock, everywhere: set[str], layouts: bool, path: Path) -> Iterator[Problem]:
    span = Span(path, block.first, block.first)
    present = {statement.key for statement in block.statements} | ({_OUTPUTS} if block.outputs else set())
    wanted = {*_DEPS, *everywhere}
    if block.kind == "SchedulerNode":
        wanted.update(_LOOPS)
        if not block.body and not _NO_BODY.fullmatch(block.ir):
            yield Problem(f"{block.name} has no loop body", span)
        if layouts:
            yield from _layouts(block, path)
    elif block.kind == "ExternKernelSchedulerNode":
        wanted.add(_KERNEL)
    for key in sorted(wanted - present):
        yield Problem(f"{block.name} has no line {block.name}.{key}", span)
    for statement in block.statements:
        if statement.key in _DISTANCES and not _DISTANCE.fullmatch(statement.value.strip()):
            yield Problem(
                f"not a distance: {shorten(statement.value)}", Span(path, statement.first, statement.last)
            )


def _layouts(block: NodeBlock, path: Path) -> Iterator[Problem]:
    """A layout is printed for each dependency but those of order, also where the buffer is the same."""
    printed = Counter(each.owner for each in block.statements if each.key == LAYOUT_LINE)
    deps = Counter(
        match["name"]
        for each in block.statements
        if each.key in _DEPS
        for match in _DEP_NAME.finditer(each.value)
    )
    for name, count in deps.items():
        # There may be more of them: a dependency was pruned (foreach of torch 2.4).
        if printed[name] < count:
            message = f"{block.name} has {printed[name]} lines {name}_layout for {count} dependencies"
            yield Problem(message, Span(path, block.first, block.first))


def _order(block: NodeBlock, path: Path) -> Iterator[Problem]:
    """A field that stands before its predecessor was moved, or begins a node that lost its header."""
    lines = [(each.first, each.key) for each in block.statements if each.key in _ORDER]
    if block.outputs:
        lines.append((block.outputs[0].first - 1, _OUTPUTS))
    if block.body:
        lines.append((block.body_first, "body"))
    order = {key: index for index, key in enumerate((*_ORDER, "body"))}
    for (_, before), (line, key) in pairwise(sorted(lines)):
        if order[key] < order[before] or (key == before and key != LAYOUT_LINE):
            message = f"{block.name}.{key} stands behind {block.name}.{before}"
            yield Problem(message, Span(path, line, line))
    yield from _outputs(block.outputs, path)


def _outputs(statements: list[Statement], path: Path) -> Iterator[Problem]:
    order = {key: index for index, key in enumerate(_OUTPUT_ORDER)}
    keys: list[str] = []
    header: Statement | None = None
    for statement in (*statements, None):
        if statement is not None and statement.key != OUTPUT_HEADER:
            if header is not None and statement.owner != header.owner:
                message = f"{statement.owner}.{statement.key} stands in the output {header.owner}"
                yield Problem(message, Span(path, statement.first, statement.first))
            keys.append(statement.key)
            continue
        if header is not None:
            span = Span(path, header.first, header.first)
            for key in ("layout", "users"):
                if key not in keys:
                    yield Problem(f"output {header.owner} has no line {header.owner}.{key}", span)
            known = [order[key] for key in keys if key in order]
            if any(first >= second for first, second in pairwise(known)):
                yield Problem(f"the lines of output {header.owner} are out of order", span)
        header, keys = statement, []


def _has_child_names(block: NodeBlock) -> bool:
    """`buf0_buf1.snodes = ['buf0', 'buf1']` was all that torch printed until August 2023."""
    return any(statement.key == "snodes" for statement in block.statements)


def _children(block: NodeBlock, path: Path) -> Iterator[Problem]:
    """`op0_op1: FusedSchedulerNode(SchedulerNode,SchedulerNode)` joins names, and lists classes."""
    if not block.children and ("Fused" not in block.kind or _has_child_names(block)):
        return
    span = Span(path, block.first, block.first)
    kinds = [child.kind for child in block.children]
    if block.ir != "NoneType" and block.ir.split(",") != kinds:
        yield Problem(f"{block.name} announces {block.ir}, but {','.join(kinds) or 'no node'} follows", span)
    names = "_".join(child.name for child in block.children)
    if names != block.name:
        yield Problem(f"{block.name} holds {names or 'no node'}", span)
