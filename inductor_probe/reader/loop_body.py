"""Loop bodies: printed as Python, read as Python, never run."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

from inductor_probe.model.ir import Block, Dim, LoopBody, Op, Ref, Value
from inductor_probe.model.span import Span
from inductor_probe.reader import values


def parse_loop_body(lines: list[str], path: Path, first: int) -> LoopBody:
    """Read the lines of a `class op0_loop_body:`, of which the first stands at line `first` of `path`.

    Raises:
        ValueError: a form that is not known; the message says which line.
    """
    text = dedent("\n".join(lines))
    try:
        (definition,) = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = first + (error.lineno or 1) - 1 if isinstance(error, SyntaxError) else first
        raise ValueError(f"line {line}: the loop body is cut off or not in a known form") from error
    if not isinstance(definition, ast.ClassDef):
        raise ValueError(f"line {first}: not a loop body")
    source = text.split("\n")
    ranges: tuple[tuple[str, Dim], ...] = ()
    indexes: list[tuple[str, str]] = []
    blocks: list[Block] = []
    for statement in definition.body:
        match statement:
            case ast.FunctionDef():
                blocks.append(_block(statement, path, first))
            case ast.Assign(targets=[ast.Name(id="var_ranges")]):
                ranges = values.ranges(values.parse(_right_side(source[statement.lineno - 1])))
            case ast.Assign(targets=[ast.Name(id=name)]):
                indexes.append((name, _right_side(source[statement.lineno - 1])))
            case _:
                raise ValueError(f"line {first + statement.lineno - 1}: unknown part of a loop body")
    return LoopBody(ranges, tuple(indexes), tuple(blocks), Span(path, first, first + len(lines) - 1))


def _right_side(line: str) -> str:
    return line.partition(" = ")[2].strip()


def _block(definition: ast.FunctionDef, path: Path, first: int) -> Block:
    ops: list[Op] = []
    result: Value = None
    for statement in definition.body:
        line = statement.lineno - 1
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                target = values.dotted(call.func)
                args = tuple(values.operand(arg) for arg in call.args)
                kwargs = tuple(
                    (kw.arg, values.operand(kw.value)) for kw in call.keywords if kw.arg is not None
                )
                ops.append(Op(name, target, args, kwargs, line))
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Subscript(value=ast.Name(id=base), slice=ast.Constant(value=int() as at)),
            ):
                ops.append(Op(name, "[]", (Ref(base), at), (), line))
            case ast.Return(value=None):
                result = None
            case ast.Return(value=ast.expr() as value):
                result = values.operand(value)
            case ast.Pass():
                pass
            case _:
                raise ValueError(f"line {first + line}: unknown statement in a loop body")
    return Block(definition.name, tuple(arg.arg for arg in definition.args.args), tuple(ops), result)
