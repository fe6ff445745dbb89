"""What a user names, to breakpoints in the sources that are installed.

A place is a function, a line or a topic of `capture/torch_places.py`. A subject is a buffer, an operation, a
pair of nodes or a kernel: what happens to it are places with conditions. Buffers and operations get their
names in lowering, one after the other, and kernels when their code is there: a kernel that is still being
tiled is known by the number that it will get.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from inductor_probe.capture.torch_places import TOPICS, places_of
from inductor_probe.debugging.breakpoints import HELPERS, Breakpoint
from inductor_probe.debugging.sources import Function, Source, find_file, find_module, torch_version
from inductor_probe.errors import NotFoundError, ProbeError, near_names

_LINE = re.compile(r"(.+\.py):(\d+)")
_NAME = re.compile(r"([\w.]+):([\w.<>]+)")
_INDUCTOR = "torch._inductor."
_NODES = r"(?:op|buf)\d+(?:_(?:op|buf)\d+)*"
_FLEXIBLE = "type(self.layout).__name__ == 'FlexibleLayout'"
_FREEZE = ("", "_with_stride_order", "_with_fill_order", "_with_same_order", "_with_exact_strides")
"""Ends of the names of `Buffer.freeze_layout...` in torch/_inductor/ir.py."""


class Location(Struct, frozen=True):
    """A place by name, before it has been looked for.

    Attributes:
        target: `module:Qualified.name`, or `file.py:LINE`.
        condition, event: see `Breakpoint`.
        at_return: before the `return` that the function ends with, when what it makes has a name, rather than
            before its first statement.
    """

    target: str
    condition: str | None = None
    event: str | None = None
    at_return: bool = False


class BreakpointPlan(Struct, frozen=True):
    """Where the child will stop, in the order it was named. `missing`: what the installed sources lack."""

    breakpoints: tuple[Breakpoint, ...]
    missing: tuple[str, ...]


def plan(
    places: Sequence[str], subjects: Sequence[str], cwd: Path, script_folder: Path | None = None
) -> BreakpointPlan:
    """Return the breakpoints that `places` and `subjects` mean in the installed sources.

    Args:
        places: `module:Qualified.name` or `torch/_inductor/file.py:LINE`, each with ` if CONDITION` or
            without, or the name of a topic.
        subjects: `buf3`, `op3`, `op3,op4` or the name of a kernel.
        cwd: what a path is relative to, if it is not below a package.
        script_folder: whose modules the script can import.

    Raises:
        ProbeError: a place or subject that is spelled wrongly; a condition that is no expression, or uses
            names that are not there.
        NotFoundError: none of the places is there.
        UnreadableError: a source cannot be read.
    """
    breakpoints: dict[Breakpoint, None] = {}
    missing: list[NotFoundError] = []
    locations = [location for place in places for location in _locations_of_place(place)]
    locations += [location for subject in subjects for location in _locations_of_subject(subject)]
    for location in locations:
        try:
            breakpoints.update(dict.fromkeys(_resolved(location, cwd, script_folder)))
        except NotFoundError as error:
            missing.append(error)
    if missing and not breakpoints:
        many = f"the installed torch has none of these {len(missing)} places"
        raise NotFoundError(missing[0].message, missing[0].hint if len(missing) == 1 else many)
    return BreakpointPlan(
        tuple(breakpoints),
        tuple(f"{error.message}{f' ({error.hint})' if error.hint else ''}" for error in missing),
    )


def _locations_of_place(place: str) -> Iterator[Location]:
    target, *rest = re.split(r"\s+if\s+", place.strip(), maxsplit=1)
    condition = rest[0] if rest else None
    if target in TOPICS:
        if condition:
            raise ProbeError(
                f"--break {target} is a set of places and takes no condition", "name one of them"
            )
        yield from (Location(str(place)) for place in places_of(target))
    elif _LINE.fullmatch(target) or _NAME.fullmatch(target):
        yield Location(target, condition)
    else:
        raise ProbeError(
            f"invalid place --break {target}: write module:Class.method, file.py:LINE or the name of a set",
            f"{near_names(target, TOPICS)}; or for example torch._inductor.codegen.cpp:LoopLevel.lines",
        )


def _locations_of_subject(subject: str) -> Iterator[Location]:
    if match := re.fullmatch(rf"({_NODES})\s*,\s*({_NODES})", subject):
        yield from _pair(match[1], match[2])
    elif match := re.fullmatch(r"(cpp|triton)_\w*?_?(\d+)", subject):
        yield from _kernel(subject, match[1], int(match[2]))
    elif re.fullmatch(r"(?:\w+_)?buf\d+", subject):
        yield from _buffer(subject)
    elif re.fullmatch(r"(?:\w+_)?op\d+", subject):
        yield from _operation(subject)
    else:
        raise ProbeError(
            f"invalid subject --break-on {subject}: it is not a buffer, node, pair of nodes or kernel",
            "for example buf3, op3, op3,op4 or cpp_fused_add_0; places in the code go to --break",
        )


def _buffer(name: str) -> Iterator[Location]:
    yield Location(
        "torch._inductor.graph:GraphLowering.register_buffer",
        f"name == {name!r}",
        f"{name} is realised",
        at_return=True,
    )
    flexible = f"self.name == {name!r} and {_FLEXIBLE}"
    decide = "torch._inductor.ir:ComputedBuffer.decide_layout"
    yield Location(decide, flexible, f"the layout of {name} is decided")
    for suffix in _FREEZE:
        freeze = f"torch._inductor.ir:Buffer.freeze_layout{suffix}"
        yield Location(freeze, flexible, f"the layout of {name} is fixed")


def _operation(name: str) -> Iterator[Location]:
    yield Location(
        "torch._inductor.graph:GraphLowering.register_operation",
        f"name == {name!r}",
        f"{name} is made",
        at_return=True,
    )
    codegen = "torch._inductor.scheduler:SchedulerNode.codegen"
    yield Location(codegen, f"self.get_name() == {name!r}", f"code of {name} is generated")


def _pair(first: str, second: str) -> Iterator[Location]:
    names = ", ".join(repr(side.split("_")) for side in (first, second))
    condition = f"are_nodes(node1, node2, {names})"
    pair = f"{first} and {second}"
    scheduler = "torch._inductor.scheduler:Scheduler"
    yield Location(f"{scheduler}.can_fuse", condition, f"{pair} are tried for fusion")
    yield Location(f"{scheduler}.fuse_two_nodes", condition, f"{pair} are fused")


def _kernel(name: str, language: str, number: int) -> Iterator[Location]:
    is_next = f"next_kernel() == {number}"
    if language == "cpp":
        select = "torch._inductor.codegen.cpp:TilingSelect.select_tiling"
        yield Location(select, is_next, f"what becomes kernel {number} is tiled")
        define = "torch._inductor.codegen.cpp:CppScheduling.define_kernel"
    else:
        codegen = "torch._inductor.codegen.simd:SIMDScheduling.codegen_node_schedule"
        yield Location(codegen, is_next, f"what becomes kernel {number} is about to be tiled")
        define = "torch._inductor.codegen.triton:TritonScheduling.define_kernel"
    yield Location(define, f"kernel_name == {name!r}", f"{name} is generated", at_return=True)


def _resolved(location: Location, cwd: Path, script_folder: Path | None) -> Iterator[Breakpoint]:
    if match := _LINE.fullmatch(location.target):
        source = find_file(match[1], cwd, script_folder)
        function, statement = _statement_at(source, int(match[2]))
        place = f"{match[1]}:{statement.lineno}"
        yield _breakpoint(location, source, statement, place, function.names)
        return
    module, _, name = location.target.partition(":")
    name = name.replace(".<locals>", "")
    source = _module(module, script_folder)
    place = f"{source.module}:{name}"
    functions = source.named(name)
    if not functions:
        known = dict.fromkeys(function.name for function in source.functions)
        raise NotFoundError(f"{place} is not available on torch {torch_version()}", near_names(name, known))
    for function in functions:
        statement_or_none = function.last_return if location.at_return else function.entry
        if statement_or_none is None:
            lacks = "no return at its end" if location.at_return else "no statement to stop at"
            raise NotFoundError(f"{place} has {lacks} on torch {torch_version()}")
        names = function.names if location.at_return else function.arguments
        yield _breakpoint(location, source, statement_or_none, place, names)


def _breakpoint(
    location: Location, source: Source, statement: ast.stmt, place: str, names: frozenset[str]
) -> Breakpoint:
    _check_condition(location, source, names)
    line, column = statement.lineno, statement.col_offset
    path = str(source.path)
    return Breakpoint(source.module, path, line, column, place, location.condition, location.event)


def _module(name: str, script_folder: Path | None) -> Source:
    """Return the module `name`, which may leave `torch._inductor.` out."""
    try:
        return find_module(name, script_folder)
    except NotFoundError:
        try:
            return find_module(_INDUCTOR + name, script_folder)
        except NotFoundError:
            pass  # the first failure speaks of what the user wrote
        raise


def _statement_at(source: Source, line: int) -> tuple[Function, ast.stmt]:
    """Return the statement that `line` belongs to, else the next one of the same function."""
    function = source.around(line)
    if function is None:
        after = next((f for f in source.functions if f.first_line > line), None)
        hint = f"the next one is {after.name} at line {after.node.lineno}" if after else None
        raise NotFoundError(f"line {line} of {source.path} is in no function", hint)
    entry = function.entry
    if entry is not None and line < entry.lineno:
        return function, entry
    statements = [node for node in ast.walk(function.node) if isinstance(node, ast.stmt)][1:]
    candidates = [node for node in statements if node.lineno <= line <= _header_end(node)]
    candidates = candidates or [node for node in statements if node.lineno > line]
    if not candidates:
        raise NotFoundError(f"nothing of {function.name} runs from line {line} of {source.path} on")
    return function, min(candidates, key=lambda node: (node.lineno, node.col_offset))


def _header_end(statement: ast.stmt) -> int:
    """Return the last line of a statement, without the statements in it."""
    inner = [node.lineno for node in ast.walk(statement) if isinstance(node, ast.stmt)][1:]
    end = statement.end_lineno or statement.lineno
    return max(statement.lineno, min(inner) - 1) if inner else end


def _check_condition(location: Location, source: Source, names: frozenset[str]) -> None:
    """Refuse a condition that cannot hold: torch would be compiled to the end without a stop."""
    if location.condition is None:
        return
    try:
        tree = ast.parse(location.condition, mode="eval")
    except SyntaxError as error:
        raise ProbeError(
            f"the condition of --break {location.target} is not a Python expression: {error.msg}: "
            f"{location.condition}",
            "for example: if node1.get_name() == 'op3'",
        ) from error
    if source.names is None:
        return
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in nodes if isinstance(node.ctx, ast.Store)} | {
        node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)
    }
    known = names | source.names | bound | HELPERS.keys()
    for node in nodes:
        if node.id not in known:
            available = ", ".join(sorted(names)) or "no names"
            raise ProbeError(f"there is no {node.id} at {location.target}", f"it has {available}")
