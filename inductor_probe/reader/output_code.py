"""`output_code.py` to records: read with `ast`, never imported."""

from __future__ import annotations

import ast
from pathlib import Path

from inductor_probe.backends import backend_of
from inductor_probe.errors import UnreadableError
from inductor_probe.model.code import Kernel, OutputCode
from inductor_probe.model.span import Problem, Span
from inductor_probe.reader.text import read_text
from inductor_probe.reader.values import dotted
from inductor_probe.reader.wrapper import WrapperReader


def read_output_code(path: Path) -> OutputCode:
    """Read a wrapper file.

    Raises:
        NotFoundError, UnreadableError: the file is missing, not readable, not text, or cut off.
    """
    return parse_output_code(read_text(path), path)


def parse_output_code(text: str, path: Path) -> OutputCode:
    """Read the text of `output_code.py`; `path` is what spans name."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise UnreadableError(
            f"{path}:{line}: output_code.py is cut off or is not Python",
            "the compile may have been stopped while it was written; dump the script again",
        ) from error
    kernels: dict[str, Kernel] = {}
    problems: list[Problem] = []
    for statement in module.body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute() as func) as call
            ):
                if dotted(func.value) == "async_compile":
                    span = Span(path, statement.lineno, statement.end_lineno or statement.lineno)
                    kernels[name] = _kernel(name, func.attr, call, span, problems)
    reader = WrapperReader(path, text.split("\n"), frozenset(kernels))
    entry = _read_functions(module, reader)
    if entry is None:
        problems.append(Problem("no `call` function in the wrapper", Span(path, 1, len(reader.lines))))
    return OutputCode(
        entry=entry,
        inputs=reader.inputs,
        kernels=tuple(kernels.values()),
        launches=tuple(reader.launches),
        externs=tuple(reader.externs),
        allocations=tuple(reader.allocations.values()),
        returns=reader.returns,
        problems=tuple(problems),
    )


def _read_functions(module: ast.Module, reader: WrapperReader) -> str | None:
    """Hand the wrapper and the example inputs to `reader`; return how the wrapper is entered."""
    entry: str | None = None
    for statement in module.body:
        match statement:
            case ast.FunctionDef(name="call"):
                entry = "call"
                reader.statements(statement.body)
            case ast.ClassDef(name="Runner"):
                for method in statement.body:
                    if isinstance(method, ast.FunctionDef) and method.name == "call":
                        entry = "Runner.call"
                        reader.statements(method.body)
            case ast.FunctionDef(name="get_args" | "benchmark_compiled_module"):
                reader.example_inputs(statement)
    reader.complete_inputs()
    return entry


def _kernel(name: str, maker: str, call: ast.Call, span: Span, problems: list[Problem]) -> Kernel:
    backend = backend_of(maker)
    source = ""
    if backend and backend.makers[maker] < len(call.args):
        argument = call.args[backend.makers[maker]]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            source = argument.value
    if backend is None:
        problems.append(Problem(f"kernel {name} is of an unknown backend ({maker})", span))
        return Kernel(name, maker, source, (), (), span)
    return Kernel(name, backend.name, source, backend.parameters(source), backend.facts(source), span)
