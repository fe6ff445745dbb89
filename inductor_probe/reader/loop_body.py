"""Loop bodies: printed as Python, a statement a line; read line by line, never run.

Bodies are most of what an IR file holds, and the same lines occur over and over in them, so an operation is
read once and remembered, and so is what stands between the brackets of a call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from inductor_probe.model.ir import Block, Dim, LoopBody, Op, Ref, Value
from inductor_probe.model.span import Span
from inductor_probe.reader import usual, values

_CALL = re.compile(r"(?P<result>\w+) = (?P<target>[A-Za-z_][\w.]*)\((?P<arguments>.*)\)")
_ITEM = re.compile(r"(?P<result>\w+) = (?P<base>[A-Za-z_]\w*)\[(?P<at>\d{1,9})\]")
_DEFINITION = re.compile(r"def (?P<name>\w+)\((?P<params>[\w, ]*)\):")
_RETURN = re.compile(r"return(?: (?P<value>.+))?")
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*) = (?P<value>.+)")

Arguments: TypeAlias = tuple[tuple[Value, ...], tuple[tuple[str, Value], ...]]
BadLine: TypeAlias = Callable[[int, str], None]
"""Is told the number of a line (counted from the body's first, which is 0) and what is wrong there."""


@dataclass(slots=True)
class _BlockDraft:
    """A function of a body while its lines are read."""

    name: str
    params: tuple[str, ...]
    ops: list[Op] = field(default_factory=list)
    result: Value = None


def parse_loop_body(lines: list[str], path: Path, first: int, bad_line: BadLine) -> LoopBody:
    """Read the lines of a `class op0_loop_body:`, of which the first stands at line `first` of `path`.

    A line in no known form is handed to `bad_line`, and the others are read all the same.
    """
    ranges: tuple[tuple[str, Dim], ...] = ()
    indexes: list[tuple[str, str]] = []
    drafts: list[_BlockDraft] = []
    for number, line in enumerate(lines[1:], start=1):
        text = line.strip()
        try:
            if drafts and (op := _op(text, number)):
                drafts[-1].ops.append(op)
            elif not drafts and (match := _ASSIGNMENT.fullmatch(text)):
                if match["name"] == "var_ranges":
                    ranges = values.ranges_text(match["value"])
                else:
                    indexes.append((match["name"], match["value"]))
            elif match := _DEFINITION.fullmatch(text):
                drafts.append(_BlockDraft(match["name"], tuple(match["params"].split(", "))))
            elif drafts and (match := _RETURN.fullmatch(text)):
                drafts[-1].result = values.operand_text(match["value"]) if match["value"] else None
            elif text != "pass":
                raise ValueError(f"not understood: {values.shorten(text)}")
        except (ValueError, RecursionError) as error:
            bad_line(number, str(error))
    blocks = tuple(Block(draft.name, draft.params, tuple(draft.ops), draft.result) for draft in drafts)
    return LoopBody(ranges, tuple(indexes), blocks, Span(path, first, first + len(lines) - 1))


@lru_cache(maxsize=16384)
def _op(text: str, line: int) -> Op | None:
    if match := _CALL.fullmatch(text):
        result, target, arguments = match.groups()
        args, kwargs = _arguments(arguments)
        return Op(result, target, args, kwargs, line)
    if match := _ITEM.fullmatch(text):
        return Op(match["result"], "[]", (Ref(match["base"]), int(match["at"])), (), line)
    return None


@lru_cache(maxsize=16384)
def _arguments(text: str) -> Arguments:
    if known := usual.operands(text):
        return known, ()
    call = values.parse(f"f({text})").node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):  # `f(1).g(2)`
        raise ValueError(f"not the arguments of one call: {values.shorten(text)}")
    args = tuple(values.operand(argument) for argument in call.args)
    kwargs = tuple((kw.arg, values.operand(kw.value)) for kw in call.keywords if kw.arg is not None)
    if len(kwargs) != len(call.keywords):
        raise ValueError(f"unknown argument: {values.shorten(text)}")
    return args, kwargs
