"""`output_code.py`: its parts are there, its names are defined, its kernels are launched with all arguments.

`PythonWrapperCodegen` in `torch/_inductor/codegen/wrapper.py` writes it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from inductor_probe.analysis.completeness.cpp_names import cpp_problems
from inductor_probe.analysis.completeness.python_names import undefined_names
from inductor_probe.model.code import Kernel, OutputCode, TritonFacts
from inductor_probe.model.span import Problem, Span
from inductor_probe.reader.python_text import parse_readable_part
from inductor_probe.reader.values import shorten

# Imports that nothing uses are not asked for: a release may leave them out, and nothing depends on them.
_LINES = ("async_compile.wait(globals())", "del async_compile")
_TYPES = re.compile(r"\S+ = async_compile\.cpp_pybinding\((?P<types>\[.*?\]), r?'''")
_BENCHMARK = "benchmark_compiled_module"
_EXAMPLES = ("get_args", _BENCHMARK)
_RUNNER = "Runner"
_METHODS = ("__init__", "recursively_apply_fns", "call")
_OF_RUNNER = (
    "runner = Runner(",
    "call = runner.call",
    "recursively_apply_fns = runner.recursively_apply_fns",
)
_MAIN = '__name__ == "__main__"'
_HANDLE = re.compile(r"\s*# \[Provenance debug handles\] \S+:(?P<number>\d{1,9})")
# Triton kernels that inductor generates, and launches with an argument for each parameter that is not a block
# size.
_GENERATED = (
    "pointwise",
    "reduction",
    "persistent_reduction",
    "split_scan",
    "foreach",
    "cooperative_reduction",
)


def wrapper_problems(code: OutputCode, text: str, path: Path) -> Iterator[Problem]:
    """Yield what `output_code.py` lacks; of a wrapper that was not read as a whole, nothing."""
    parsed = parse_readable_part(text, path)
    lines = text.split("\n")
    yield from undefined_names(parsed.tree, path)
    yield from _parts(parsed.tree, lines, path)
    if code.inputs and not any(line.strip() == "args.clear()" for line in lines):
        yield Problem("the line args.clear() is missing", Span(path, len(lines), len(lines)))
    yield from _handles(lines, path)
    yield from _launches(code)
    for kernel in code.kernels:
        yield from _kernel(kernel, lines, path)


def _kernel(kernel: Kernel, lines: list[str], path: Path) -> Iterator[Problem]:
    """Yield what is not complete in the text of a kernel, if it is one of a backend whose text is read."""
    span = kernel.span
    if span is None or not kernel.source:
        return
    if kernel.backend == "cpp":
        yield from _passed_types(kernel, lines[span.first - 1], span)
        yield from cpp_problems(kernel.source, path, span.first)
    elif kernel.backend == "triton":
        parsed = parse_readable_part(kernel.source, path)
        for problem in parsed.problems:
            yield Problem(f"the text of {kernel.name} is {problem.message}", span)
        if not parsed.problems:
            yield from undefined_names(parsed.tree, path, first=span.first)
    yield from _unwritten(kernel, span)


def _passed_types(kernel: Kernel, line: str, span: Span) -> Iterator[Problem]:
    """`async_compile.cpp_pybinding(['const float*', 'float*'], ...)` lists them (torch 2.3 and later)."""
    match = _TYPES.match(line)
    if match is None:
        if "cpp_pybinding" in line:
            yield Problem(f"not understood: {shorten(line)}", Span(span.path, span.first, span.first))
        return
    types = [text.strip("'\" ") for text in match["types"][1:-1].split(",")]
    if types != [argument.type or "" for argument in kernel.args] and (types != [""] or kernel.args):
        yield Problem(
            f"the types of {kernel.name} are not those of its parameters",
            Span(span.path, span.first, span.first),
        )


def _unwritten(kernel: Kernel, span: Span) -> Iterator[Problem]:
    """A parameter that no line stores through was removed with its buffer, so that one is left out."""
    words = Counter(re.findall(r"\w+", kernel.source))
    for argument in kernel.args:
        if argument.role in ("out", "inout") and words[argument.name] < 2:
            yield Problem(f"{kernel.name} does not use its parameter {argument.name}", span)


def _parts(tree: ast.Module, lines: list[str], path: Path) -> Iterator[Problem]:
    end = Span(path, len(lines), len(lines))
    for line in _LINES:
        if line not in lines:
            yield Problem(f"the line {line} is missing", end)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if _BENCHMARK not in functions:
        yield Problem(f"the function {_BENCHMARK} is missing", end)
    for name in _EXAMPLES:
        function = functions.get(name)
        if function and not isinstance(function.body[-1], ast.Return):
            row = function.lineno
            yield Problem(f"the function {name} has no return", Span(path, row, row))
    yield from _entry(tree, functions, lines, path)
    main = tree.body[-1] if tree.body else None
    if not (isinstance(main, ast.If) and lines[main.lineno - 1].startswith(f"if {_MAIN}:")):
        yield Problem(f"the last part, if {_MAIN}, is missing", end)
    elif not any(line.strip().startswith("compiled_module_main(") for line in lines[main.lineno :]):
        yield Problem("the call of compiled_module_main is missing", end)


def _entry(
    tree: ast.Module, functions: dict[str, ast.FunctionDef], lines: list[str], path: Path
) -> Iterator[Problem]:
    """`def call(args)`, or `class Runner` with what is taken out of it (torch 2.9 and later)."""
    end = Span(path, len(lines), len(lines))
    runner = next(
        (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == _RUNNER), None
    )
    call = functions.get("call")
    if runner is not None:
        methods = {node.name: node for node in runner.body if isinstance(node, ast.FunctionDef)}
        call = methods.get("call")
        for name in _METHODS:
            if name not in methods:
                yield Problem(f"the method {_RUNNER}.{name} is missing", end)
        for start in _OF_RUNNER:
            if not any(line.startswith(start) for line in lines):
                yield Problem(f"the line {start} is missing", end)
    if call is not None and not any(isinstance(node, ast.Return) for node in ast.walk(call)):
        yield Problem("the wrapper has no return", Span(path, call.lineno, call.end_lineno or call.lineno))


def _handles(lines: list[str], path: Path) -> Iterator[Problem]:
    """`# [Provenance debug handles] cpp_fused_0:3` counts the launches (torch 2.9 and later)."""
    numbers = {
        int(match["number"]): row for row, line in enumerate(lines, 1) if (match := _HANDLE.match(line))
    }
    for due, number in enumerate(sorted(numbers), 1):
        if number != due:
            row = numbers[number]
            yield Problem(f"the launch with debug handle {due} is missing", Span(path, row, row))
            return


def _launches(code: OutputCode) -> Iterator[Problem]:
    launched = {launch.kernel for launch in code.launches}
    launched.update(name for kernel in code.kernels for name in kernel.chooses)
    for kernel in code.kernels:
        if kernel.name not in launched:
            yield Problem(f"nothing launches the kernel {kernel.name}", kernel.span)
    for launch in code.launches:
        called = code.kernel(launch.kernel)
        if called is None or not called.args or not _one_for_each(called):
            continue
        if len(launch.args) != len(called.args):
            counts = f"{len(called.args)} parameters, but is launched with {len(launch.args)}"
            message = f"{shorten(launch.kernel)} has {counts}"
            yield Problem(message, launch.span)


def _one_for_each(kernel: Kernel) -> bool:
    """Whether a launch passes an argument for each parameter that was read."""
    if isinstance(kernel.details, TritonFacts):
        return kernel.details.heuristic in _GENERATED
    return kernel.backend == "cpp"
