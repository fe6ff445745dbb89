"""`output_code.py` to records: read with `ast`, never imported.

torch/_inductor/codegen/wrapper.py, `PythonWrapperCodegen.generate`, prints its parts in this order: imports
and aliases, kernels (`cpp_fused_flip_0 = async_compile.cpp_pybinding([...], r'''...''')`),
`async_compile.wait(globals())`, the wrapper (`def call(args):` until torch 2.8, then a method of `class
Runner:`), example inputs.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from msgspec.structs import replace

from inductor_probe.backends import METAL, backend_of, role_of, source_text
from inductor_probe.files import unix_lines
from inductor_probe.model.code import Allocation, Kernel, KernelArg, OutputCode
from inductor_probe.model.ir import BufferLayout
from inductor_probe.model.span import MOST_PROBLEMS, Problem, Span
from inductor_probe.reader.added_code import added_code, forwarded
from inductor_probe.reader.cpp_kernels import cpp_kernels
from inductor_probe.reader.cpp_wrapper import parse_cpp_wrapper
from inductor_probe.reader.kernel_comments import kernel_comment
from inductor_probe.reader.python_text import parse_once, parse_readable_part
from inductor_probe.reader.values import constant_layout, dotted, shorten
from inductor_probe.reader.wrapper import WrapperReader

_CONSTANT = re.compile(
    r" = None  # device\(type='(?P<device>\w+)'(?:, index=(?P<index>\d+))?\) torch\.(?P<dtype>\w+) "
    r"\((?P<size>[\d, ]{0,200})\) \((?P<stride>[\d, ]{0,200})\) "
)

LARGEST_KERNEL = 1 << 21
"""Characters. Kernels of networks have up to 100,000, those of a foreach optimizer most of all."""
_OUTPUTS = re.compile(r"    num_outputs=(\d{1,6}),")
_SPEC = "HalideInputSpec"
_TUNING = "Compile-time auto-tuning block:"
_EXAMPLES = ("get_args", "benchmark_compiled_module")


def parse_output_code(text: str, path: Path) -> OutputCode:
    """Read the text of `output_code.py`; `path` is what spans name.

    Of a file that was cut off, what stands before the cut is read; the rest is a problem.
    """
    text = unix_lines(text)
    module = parse_once(text, path)
    problems = list(module.problems)
    lines = text.split("\n")
    if written_in_cpp := _cpp_wrapper(module.tree, path, lines, problems):
        return replace(written_in_cpp, problems=(*problems, *written_in_cpp.problems))
    kernels = _kernels(module.tree, path, lines, problems)
    functions = functions_in(module.tree.body)
    classes = (part for part in module.tree.body if isinstance(part, ast.ClassDef) and part.name == "Runner")
    methods = functions_in(runner.body) if (runner := next(classes, None)) else {}
    call = functions.get("call") or methods.get("call")
    added = added_code(module.tree)
    others = [
        part
        for part in functions.values()
        if part is not call and part.name not in _EXAMPLES and part not in added.statements
    ]
    forwards = {part.name: target for part in others if (target := forwarded(part)) is not None}
    reader = WrapperReader(
        path,
        lines,
        frozenset(kernels),
        frozenset(function.name for function in others),
        forwards,
        problems=problems,
        added=added,
    )
    for function in others:
        # `@triton.jit`: a kernel of the user's, quoted in the wrapper
        if not function.decorator_list and function.name not in forwards:
            reader.function(function)
    if call is not None:
        reader.entry(call.body)
    else:
        problems.append(Problem("no `call` function in the wrapper", Span(path, len(lines), len(lines))))
    for name in _EXAMPLES:
        if name in functions:
            reader.example_inputs(functions[name])
    reader.complete_inputs()
    _top_level(module.tree, reader, kernels, problems)
    problems.sort(key=lambda problem: problem.span.first if problem.span else 0)
    if len(problems) > MOST_PROBLEMS:
        more, first = len(problems) - MOST_PROBLEMS, problems[MOST_PROBLEMS].span
        message = f"{more:,} more statements from here on are not understood"
        rest = Problem(message, Span(path, first.first if first else 1, len(lines)))
        problems[MOST_PROBLEMS:] = [rest, *module.problems]
    return OutputCode(
        entry=None if call is None else "call" if "call" in functions else "Runner.call",
        inputs=reader.inputs,
        kernels=tuple(kernels.values()),
        launches=tuple(reader.launches),
        externs=tuple(reader.externs),
        allocations=tuple(reader.allocations.values()),
        returns=reader.returns,
        symbols=tuple(reader.symbols),
        functions=tuple(reader.others),
        freed=tuple(reader.freed),
        entered=tuple(reader.entered),
        added=tuple(
            sorted(
                (Span(path, part.lineno, part.end_lineno or part.lineno) for part in added.statements),
                key=lambda span: span.first,
            )
        ),
        problems=tuple(problems),
    )


def functions_in(body: list[ast.stmt]) -> dict[str, ast.FunctionDef]:
    """Return the functions that are defined in a body, by name."""
    return {part.name: part for part in body if isinstance(part, ast.FunctionDef)}


def _cpp_wrapper(
    tree: ast.Module, path: Path, lines: list[str], problems: list[Problem]
) -> OutputCode | None:
    """With `cpp_wrapper` the wrapper and its C++ kernels are a text in a string, and Triton kernels another.

    CppWrapperCpu.write_wrapper_decl prints the first, CppWrapperGpu.generate the second: a block of Python
    that tunes the kernels while the graph is compiled.
    """
    source: ast.Constant | None = None
    kernels: dict[str, Kernel] = {}
    for statement in tree.body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id="cpp_wrapper_src")], value=ast.Constant(value=str()) as constant
            ):
                source = constant
            case ast.Assign(value=ast.Constant(value=str(text))) if text.lstrip().startswith("#include"):
                kernels.update(cpp_kernels(text.split("\n"), path, statement.value.lineno))
            case ast.Expr(value=ast.Constant(value=str(text))) if "async_compile." in text:
                code = text.replace(_TUNING, "#", 1)  # a heading, all else is Python
                quoted = parse_readable_part("\n" * (statement.lineno - 1) + code, path)
                problems.extend(quoted.problems)
                kernels.update(_kernels(quoted.tree, path, lines, problems))
    if source is None:
        return None
    reader = WrapperReader(path, lines, frozenset())
    for name, function in functions_in(tree.body).items():
        if name in _EXAMPLES:
            reader.example_inputs(function)
    outputs = (int(match[1]) for line in lines if (match := _OUTPUTS.fullmatch(line)))
    return parse_cpp_wrapper(
        str(source.value),
        path,
        first=source.lineno,
        quoted=kernels,
        examples=reader.examples,
        outputs=next(outputs, None),
    )


def _kernels(tree: ast.Module, path: Path, lines: list[str], problems: list[Problem]) -> dict[str, Kernel]:
    kernels: dict[str, Kernel] = {}
    for statement in tree.body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute() as func) as call
            ) if dotted(func.value) == "async_compile":
                span = Span(path, statement.lineno, statement.end_lineno or statement.lineno)
                kernel = _kernel(name, func.attr, call, span, problems)
                if not kernel.source:
                    kernel = _choosing(kernel, call, kernels)
                comment = kernel_comment(lines, statement.lineno, path)
                kernels[name] = replace(kernel, comment=comment)
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="compile_mps_shader")) as call
            ):  # until torch 2.11: a library with one kernel, `generated_kernel`
                span = Span(path, statement.lineno, statement.end_lineno or statement.lineno)
                kernel = _kernel(name, METAL.name, call, span, problems)
                kernels[name] = replace(kernel, comment=kernel_comment(lines, statement.lineno, path))
    return kernels


def _kernel(name: str, maker: str, call: ast.Call, span: Span, problems: list[Problem]) -> Kernel:
    backend, source = backend_of(maker), source_text(call)
    if source == name:  # `multi_kernel('multi_kernel_0', [kernel, ...])` has no text of its own
        source = ""
    if backend is None:  # its text is shown, and what the wrapper passes to it: a remark says so
        return Kernel(name, maker, source, (), span)
    if len(source) > LARGEST_KERNEL:
        problems.append(
            Problem(f"kernel {name} is not read: its source has {len(source):,} characters", span)
        )
        return Kernel(name, backend.name, "", (), span)
    text = backend.read(source)
    return Kernel(name, backend.name, source, text.args or _described(call), span, text.details)


def _described(call: ast.Call) -> tuple[KernelArg, ...]:
    """Return the arguments that stand beside the text of a kernel, in the order in which they are passed.

    HalideKernel.halide_kernel_meta: `argtypes=[HalideInputSpec(ctype='float*', name='in_ptr0', ...`.
    """
    specs = [part for part in ast.walk(call) if isinstance(part, ast.Call) and dotted(part.func) == _SPEC]
    texts = [
        {word.arg: word.value.value for word in spec.keywords if isinstance(word.value, ast.Constant)}
        for spec in sorted(specs, key=lambda spec: (spec.lineno, spec.col_offset))
    ]
    return tuple(
        KernelArg(str(text["name"]), role_of(str(text["name"])), str(text["ctype"]))
        for text in texts
        if "name" in text and "ctype" in text
    )


def _choosing(kernel: Kernel, call: ast.Call, kernels: dict[str, Kernel]) -> Kernel:
    """Complete a kernel that runs one of several (`multi_kernel`); it has the parameters of the first."""
    names = tuple(part.id for part in ast.walk(call) if isinstance(part, ast.Name) and part.id in kernels)
    if not names:
        return kernel
    return replace(kernel, args=kernels[names[0]].args, chooses=names)


def _top_level(
    tree: ast.Module, reader: WrapperReader, kernels: dict[str, Kernel], problems: list[Problem]
) -> None:
    """Take constants, and say what stands at the top level in no known form."""
    for statement in tree.body:
        span = Span(reader.path, statement.lineno, statement.end_lineno or statement.lineno)
        match statement:
            case _ if statement in reader.added.statements:
                pass
            case (
                ast.Import() | ast.ImportFrom() | ast.Delete() | ast.FunctionDef() | ast.ClassDef() | ast.If()
            ):
                pass
            case ast.Assign(targets=[ast.Name(id=name)]) if name in kernels:
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=None)):
                layout = _constant_layout(reader.lines[statement.lineno - 1])
                reader.allocations.setdefault(name, Allocation(name, "constant", layout, None, span))
            case ast.Assign(targets=[ast.Name()]) | ast.Expr(value=ast.Constant() | ast.Call()):
                pass  # aliases of torch's functions, metadata of kernels, `async_compile.wait(globals())`
            case _:
                text = shorten(reader.lines[statement.lineno - 1].strip())
                if reader.added.names:
                    reader.added.take(statement)
                else:
                    problems.append(Problem(f"unknown statement: {text}", span))


def _constant_layout(line: str) -> BufferLayout | None:
    """Read `x = None  # device(type='cpu') torch.float32 (16,) (1,) 7f9f22183de0`; None for any other line.

    `GraphLowering.allocate_non_dup_const_name` writes device, dtype, size, stride and hash.
    """
    match = _CONSTANT.search(line)
    if match is None:
        return None
    size, stride = (
        tuple(int(number) for number in match[name].split(",") if number.strip())
        for name in ("size", "stride")
    )
    device = match["device"] + (f":{match['index']}" if match["index"] else "")
    return constant_layout(device, match["dtype"], size, stride)
