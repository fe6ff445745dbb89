"""`output_code.py` cut at its joints: imports, kernels, wrapper, tail."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import libcst as cst
import libcst.matchers as m
from msgspec import Struct

from inductor_probe.backends import backend_of
from inductor_probe.errors import UnreadableError

Statement: TypeAlias = cst.SimpleStatementLine | cst.BaseCompoundStatement

_TAIL = m.FunctionDef(name=m.Name("benchmark_compiled_module") | m.Name("get_args")) | m.If(
    test=m.Comparison(left=m.Name("__name__"))
)
WAIT = m.SimpleStatementLine(body=[m.Expr(m.Call(func=m.Attribute(m.Name("async_compile"), m.Name("wait"))))])
_DEFINITION = m.Assign(
    targets=[m.AssignTarget(m.Name())], value=m.Call(func=m.Attribute(value=m.Name("async_compile")))
)


class Sections(Struct, frozen=True):
    """The statements of `output_code.py` in order.

    Attributes:
        imports: everything before the first kernel: imports, aliases, constants.
        kernels: the kernels, up to and with `async_compile.wait(globals())`.
        wrapper: `call`, or `Runner` and the names bound to it, and partitions if there are any.
        tail: example inputs, torch's own benchmark, `__main__`.
        names: the kernels that inductor generated.
    """

    imports: tuple[Statement, ...]
    kernels: tuple[Statement, ...]
    wrapper: tuple[Statement, ...]
    tail: tuple[Statement, ...]
    names: tuple[str, ...]


def cut(text: str, path: Path | str = "output_code.py") -> Sections:
    """Cut the text of `output_code.py`; `path` is what an error names.

    Raises:
        UnreadableError: it is not Python, or has no wrapper.
    """
    body = parse(text, path).body
    waits = [index for index, statement in enumerate(body) if m.matches(statement, WAIT)]
    tail = next((index for index, node in enumerate(body) if m.matches(node, _TAIL)), len(body))
    if not waits or waits[-1] >= tail:
        raise UnreadableError(
            f"{path} is not a whole output_code.py: no async_compile.wait before its wrapper",
            "the compile may have been stopped while it was written; dump the script again",
        )
    end = waits[-1] + 1
    while m.matches(body[end], m.SimpleStatementLine(body=[m.Del()])) if end < tail else False:
        end += 1
    names = [kernel_name(statement) for statement in body[:end]]
    kernels = [(index, name) for index, name in enumerate(names) if name]
    start = kernels[0][0] if kernels else waits[0]
    if not any(name in ("call", "Runner") for statement in body[end:tail] for name in defined(statement)):
        raise UnreadableError(f"{path} has no call and no Runner", "dump the script again")
    return Sections(
        tuple(body[:start]),
        tuple(body[start:end]),
        tuple(body[end:tail]),
        tuple(body[tail:]),
        tuple(name for _, name in kernels),
    )


def parse(text: str, path: Path | str) -> cst.Module:
    """Parse Python that inductor wrote.

    Raises:
        UnreadableError: it is not Python; says the line.
    """
    try:
        return cst.parse_module(text)
    except (cst.ParserSyntaxError, RecursionError) as error:
        line = error.raw_line if isinstance(error, cst.ParserSyntaxError) else 1
        raise UnreadableError(
            f"{path}:{line}: cut off or not Python",
            "the compile may have been stopped while it was written; dump the script again",
        ) from error


def kernel_name(statement: cst.CSTNode) -> str | None:
    """Return the name of the kernel that `statement` defines, if it does."""
    if not isinstance(statement, cst.SimpleStatementLine) or not m.matches(statement.body[0], _DEFINITION):
        return None
    assign = cst.ensure_type(statement.body[0], cst.Assign)
    func = cst.ensure_type(cst.ensure_type(assign.value, cst.Call).func, cst.Attribute)
    return cst.ensure_type(assign.targets[0].target, cst.Name).value if backend_of(func.attr.value) else None


def defined(statement: cst.CSTNode) -> tuple[str, ...]:
    """Return the names that a statement at the top of a module binds, imports aside."""
    if isinstance(statement, cst.FunctionDef | cst.ClassDef):
        return (statement.name.value,)
    if isinstance(statement, cst.SimpleStatementLine):
        return tuple(
            target.target.value
            for part in statement.body
            if isinstance(part, cst.Assign)
            for target in part.targets
            if isinstance(target.target, cst.Name)
        ) + tuple(
            part.target.value
            for part in statement.body
            if isinstance(part, cst.AnnAssign) and isinstance(part.target, cst.Name)
        )
    return ()


def source_of(statements: Sequence[cst.CSTNode]) -> str:
    """Return the text of statements."""
    return cst.Module(body=list(statements)).code.strip()  # type: ignore[arg-type]  # statements all
