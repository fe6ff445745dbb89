"""`output_code.py`: its parts are there, its names are defined, its kernels are launched with all arguments.

`PythonWrapperCodegen` in `torch/_inductor/codegen/wrapper.py` writes it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from inductor_probe.analysis.completeness import Defect, SoundTexts
from inductor_probe.analysis.completeness.cpp_names import bracket_defects, cpp_defects
from inductor_probe.analysis.completeness.python_names import undefined_names
from inductor_probe.model.code import Kernel, OutputCode, TritonFacts
from inductor_probe.model.fx import FxGraph
from inductor_probe.model.record import words
from inductor_probe.reader.output_code import functions_in
from inductor_probe.reader.python_text import parse_once, parse_readable_part
from inductor_probe.reader.values import shorten

# Imports that nothing uses are not required: a release may omit them, and nothing depends on them.
_LINES = ("async_compile.wait(globals())", "del async_compile")
_TYPES = re.compile(r"\S+ = async_compile\.cpp_pybinding\((?P<types>\[.*?\]), r?'''")
_BENCHMARK = "benchmark_compiled_module"
_RUNNER = "Runner"
_METHODS = ("__init__", "recursively_apply_fns", "call")
_RUNNER_LINES = (
    "runner = Runner(",
    "call = runner.call",
    "recursively_apply_fns = runner.recursively_apply_fns",
)
_MAIN = '__name__ == "__main__"'
_HANDLE = re.compile(r"\s*(?:#|//) \[Provenance debug handles\] \S+:(?P<number>\d{1,9})")
_kernels = SoundTexts()
# Triton kernels that inductor generates: a launch passes an argument for each parameter but block sizes.
_GENERATED = words("pointwise reduction persistent_reduction split_scan foreach cooperative_reduction")


def wrapper_defects(code: OutputCode, text: str, path: Path, *, harness: bool = True) -> Iterator[Defect]:
    """Yield what `output_code.py` lacks, or `output_code.cpp`; `harness` if torch was to write benchmarks."""
    if code.language == "cpp":
        lines = text.split("\n")
        if path.suffix == ".cpp":
            yield from bracket_defects(text, 1)
        yield from _handles(lines)
        yield from _launches(code)
        for kernel in code.kernels:
            yield from _kernel(kernel, lines, path)
        return
    lines = text.split("\n")
    if code.added:  # what was moved or left out with it is the editor's matter
        for kernel in code.kernels:
            yield from _kernel(kernel, lines, path)
        return
    tree = parse_once(text, path).tree
    parse_once.cache_clear()
    yield from undefined_names(tree, lines=lines if text.isascii() else ())
    yield from _parts(tree, lines, harness=harness)
    if code.inputs and not any(line.strip() == "args.clear()" for line in lines):
        yield len(lines), "the line args.clear() is missing"
    yield from _handles(lines)
    yield from _launches(code)
    for kernel in code.kernels:
        yield from _kernel(kernel, lines, path)


def _parts(tree: ast.Module, lines: list[str], *, harness: bool) -> Iterator[Defect]:
    end = len(lines)
    for line in _LINES:
        if line not in lines:
            yield end, f"the line {line} is missing"
    functions = functions_in(tree.body)
    yield from _entry(tree, functions, lines)
    if not harness:
        return
    if _BENCHMARK not in functions:
        yield end, f"the function {_BENCHMARK} is missing"
    for name in ("get_args", _BENCHMARK):
        function = functions.get(name)
        if function and not isinstance(function.body[-1], ast.Return):
            yield function.lineno, f"the function {name} has no return"
    main = tree.body[-1] if tree.body else None
    if not (isinstance(main, ast.If) and lines[main.lineno - 1].startswith(f"if {_MAIN}:")):
        yield end, f"the last part, if {_MAIN}, is missing"
    elif not any(line.strip().startswith("compiled_module_main(") for line in lines[main.lineno :]):
        yield end, "the call of compiled_module_main is missing"


def _entry(tree: ast.Module, functions: dict[str, ast.FunctionDef], lines: list[str]) -> Iterator[Defect]:
    """`def call(args)`, or `class Runner` and what is assigned from it (torch 2.9 and later)."""
    call = functions.get("call")
    runners = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == _RUNNER)
    for runner in runners:
        methods = functions_in(runner.body)
        call = methods.get("call")
        for name in _METHODS:
            if name not in methods:
                yield len(lines), f"the method {_RUNNER}.{name} is missing"
        for start in _RUNNER_LINES:
            if not any(line.startswith(start) for line in lines):
                yield len(lines), f"the line {start} is missing"
    if call is not None and not _returns(call):
        yield call.lineno, "the wrapper has no return"


def _returns(statement: ast.stmt) -> bool:
    blocks = (getattr(statement, name, ()) for name in ("body", "orelse", "finalbody"))
    return isinstance(statement, ast.Return) or any(_returns(inner) for block in blocks for inner in block)


def _handles(lines: list[str]) -> Iterator[Defect]:
    """`# [Provenance debug handles] cpp_fused_0:3` counts the launches (torch 2.9 and later).

    It begins anywhere: some releases count from 1 in each call of a compiler (`reset_provenance_globals`,
    torch/_inductor/debug.py), which may compile several graphs, others through the whole process.
    """
    numbers = {
        int(match["number"]): row for row, line in enumerate(lines, 1) if (match := _HANDLE.match(line))
    }
    for expected, number in enumerate(sorted(numbers), min(numbers, default=1)):
        if number != expected:
            yield numbers[number], f"the launch with debug handle {expected} is missing"
            return


def _launches(code: OutputCode) -> Iterator[Defect]:
    launched = {launch.kernel for launch in code.launches}
    launched.update(name for kernel in code.kernels for name in kernel.chooses)
    for kernel in code.kernels:
        if kernel.name not in launched:
            yield kernel.span, f"nothing launches the kernel {kernel.name}"
    for launch in code.launches:
        called = code.kernel(launch.kernel)
        if called is None or not called.args or len(launch.args) == len(called.args):
            continue
        facts = called.details
        if facts.heuristic in _GENERATED if isinstance(facts, TritonFacts) else called.backend == "cpp":
            counts = f"{len(called.args)} parameters, but is launched with {len(launch.args)}"
            yield launch.span, f"{shorten(launch.kernel)} has {counts}"


def _kernel(kernel: Kernel, lines: list[str], path: Path) -> Iterator[Defect]:
    """Yield what is not complete in the text of a kernel, if it is one of a backend whose text is read."""
    span = kernel.span
    if span is None or not kernel.source:
        return
    if kernel.backend == "cpp":
        # `async_compile.cpp_pybinding(['const float*', 'float*'], ...)`: torch 2.3 and later
        line = lines[span.first - 1]
        if match := _TYPES.match(line):
            types = [text.strip("'\" ") for text in match["types"][1:-1].split(",")]
            if types != ([argument.type or "" for argument in kernel.args] or [""]):
                yield span.first, f"the types of {kernel.name} are not those of its parameters"
        elif "cpp_pybinding" in line:
            yield span.first, f"not understood: {shorten(line)}"
        source = kernel.source
        yield from _kernels.defects(source, lambda: cpp_defects(source, span.first))
    elif kernel.backend == "triton":
        parsed = parse_readable_part(kernel.source, path)
        for problem in parsed.problems:
            yield span, f"the text of {kernel.name} is {problem.message}"
        if not parsed.problems:
            source_lines = kernel.source.split("\n") if kernel.source.isascii() else ()
            tree = Chosen.of(parsed.tree) if "False" in kernel.source else parsed.tree
            for line_number, message in undefined_names(tree, lines=source_lines):
                yield span.first + line_number - 1, message
    # A parameter that no line stores through was removed with its buffer, so a line is missing.
    words = Counter(re.findall(r"\w+", kernel.source))
    for argument in kernel.args:
        if argument.role in ("out", "inout") and words[argument.name] < 2:
            yield span, f"{kernel.name} does not use its parameter {argument.name}"


class Chosen(ast.NodeTransformer):
    """Leaves out what a template's constant switches off: `if HAS_FULL_BLOCKS:`, with `HAS_FULL_BLOCKS :
    tl.constexpr = False` above it. Triton does not compile it, and names in it may have no definition."""

    def __init__(self, off: frozenset[str]) -> None:
        self.off = off

    @classmethod
    def of(cls, tree: ast.Module) -> ast.Module:
        """Return `tree` without what is switched off in it; the same tree, changed."""
        off = {
            node.target.id
            for node in ast.walk(tree)
            if isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(node.value, ast.Constant)
            and node.value.value is False
        }
        if off:
            cls(frozenset(off)).visit(tree)
        return tree

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """Take the other branch of a switch that is off."""
        self.generic_visit(node)
        if isinstance(node.test, ast.Name) and node.test.id in self.off:
            return node.orelse or [ast.copy_location(ast.Pass(), node)]
        return node


def fx_defects(fx: FxGraph, code: OutputCode) -> Iterator[Defect]:
    """Yield where the wrapper takes or returns other values than the FX graph that was lowered."""
    left_out = inputs_left_out(fx, code)
    names = tuple(node.name for node in fx.inputs if node.name not in left_out)
    if code.language == "cpp":  # a number that torch.export fixed is no input of a package
        names = tuple(name for name in names if name in code.inputs)
    if names != code.inputs:
        wrapper, graph = (", ".join(inputs) or "nothing" for inputs in (code.inputs, names))
        yield 1, f"the wrapper takes {wrapper}, the FX graph {graph}"
    if len(fx.outputs) != len(code.returns):
        yield 1, f"the wrapper returns {len(code.returns)} values, the FX graph {len(fx.outputs)}"


def inputs_left_out(fx: FxGraph, code: OutputCode) -> tuple[str, ...]:
    """Return inputs of the FX graph that the wrapper does not take, and that are no tensors and unused.

    Some releases leave out one that is None, or a `BackwardState` (`GraphLowering.placeholder`).
    """
    used = {name for node in fx.nodes for name in node.inputs}.union(name for name in fx.outputs if name)
    return tuple(
        node.name
        for node in fx.inputs
        if node.type is None and node.name not in used and node.name not in code.inputs
    )
