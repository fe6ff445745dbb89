"""`output_code.py` to records: read with `ast`, never imported."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

from inductor_probe.backends import BACKENDS, backend_of
from inductor_probe.errors import UnreadableError
from inductor_probe.model.code import Allocation, ExternCall, Kernel, Launch, OutputCode
from inductor_probe.model.ir import BufferLayout, Dim
from inductor_probe.model.span import Problem, Span
from inductor_probe.reader.text import read_text
from inductor_probe.reader.values import dotted

_EXTERN = ("extern_kernels.", "aten.", "torch.ops.")
_EMPTY_STRIDED = re.compile(r"empty_strided(_(?P<device>\w+))?")
_SOURCE_NODES = re.compile(r"# (?:Topologically Sorted )?Source Nodes: \[(?P<names>[^\]]*)\]")
# Statements of every wrapper that say nothing about buffers, kernels or inputs.
_LAUNCHERS = {backend.launcher for backend in BACKENDS}


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
    reader = _WrapperReader(path, text.split("\n"))
    entry: str | None = None
    for statement in module.body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute() as func) as call
            ):
                if dotted(func.value) == "async_compile":
                    reader.kernels[name] = reader.kernel(name, func.attr, call, statement)
            case ast.FunctionDef(name="call"):
                entry = "call"
                reader.wrapper(statement)
            case ast.ClassDef(name="Runner"):
                for method in statement.body:
                    if isinstance(method, ast.FunctionDef) and method.name == "call":
                        entry = "Runner.call"
                        reader.wrapper(method)
            case ast.FunctionDef(name="get_args" | "benchmark_compiled_module"):
                reader.example_inputs(statement)
    if entry is None:
        reader.problems.append(Problem("no `call` function in the wrapper", Span(path, 1, len(reader.lines))))
    return reader.finish(entry)


@dataclass(slots=True)
class _WrapperReader:
    """Collects what the statements of a wrapper say, in order."""

    path: Path
    lines: list[str]
    kernels: dict[str, Kernel] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    launches: list[Launch] = field(default_factory=list)
    externs: list[ExternCall] = field(default_factory=list)
    allocations: dict[str, Allocation] = field(default_factory=dict)
    examples: dict[str, BufferLayout] = field(default_factory=dict)
    returns: tuple[str, ...] = ()
    problems: list[Problem] = field(default_factory=list)

    def finish(self, entry: str | None) -> OutputCode:
        for name in self.inputs:
            self._complete_input(name)
        return OutputCode(
            entry=entry,
            inputs=self.inputs,
            kernels=tuple(self.kernels.values()),
            launches=tuple(self.launches),
            externs=tuple(self.externs),
            allocations=tuple(self.allocations.values()),
            returns=self.returns,
            problems=tuple(self.problems),
        )

    def kernel(self, name: str, maker: str, call: ast.Call, statement: ast.stmt) -> Kernel:
        span = self._span(statement)
        backend = backend_of(maker)
        source = ""
        if backend and backend.makers[maker] < len(call.args):
            argument = call.args[backend.makers[maker]]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                source = argument.value
        if backend is None:
            self.problems.append(Problem(f"kernel {name} is of an unknown backend ({maker})", span))
            return Kernel(name, maker, source, (), (), span)
        return Kernel(name, backend.name, source, backend.parameters(source), backend.facts(source), span)

    def wrapper(self, function: ast.FunctionDef) -> None:
        self._block(function.body)

    def _block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            match statement:
                case ast.With(body=inner):
                    self._block(inner)
                case ast.If(body=inner, orelse=other):
                    self._block(inner)
                    self._block(other)
                case ast.Assign(targets=[target], value=ast.Name(id="args")):
                    elements = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
                    self.inputs = tuple(ast.unparse(element) for element in elements)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._assign(name, value, statement)
                case ast.Expr(value=ast.Call() as call):
                    self._call(call, (), statement)
                case ast.Return(value=ast.Tuple(elts=elements) | ast.List(elts=elements)):
                    self.returns = tuple(ast.unparse(element) for element in elements)

    def _assign(self, name: str, value: ast.expr, statement: ast.stmt) -> None:
        span = self._span(statement)
        match value:
            case ast.Name(id=other) if other in self.allocations or other in self.inputs:
                known = self.allocations.get(other)
                self._allocate(Allocation(name, "reuse", known.layout if known else None, other, span))
            case ast.Subscript(value=ast.Name(id=other), slice=ast.Constant()):
                self._allocate(Allocation(name, "alias", None, other, span))
            case ast.Call(func=func) as call:
                target = dotted(func)
                if target == "reinterpret_tensor":
                    of = ast.unparse(call.args[0])
                    self._allocate(Allocation(name, "view", self._view_layout(call, of), of, span))
                elif target == "empty" or _EMPTY_STRIDED.fullmatch(target):
                    self._allocate(Allocation(name, "new", _empty_layout(target, call), None, span))
                else:
                    self._call(call, (name,), statement)

    def _allocate(self, allocation: Allocation) -> None:
        self.allocations[allocation.name] = allocation

    def _view_layout(self, call: ast.Call, of: str) -> BufferLayout | None:
        if len(call.args) < 3:
            return None
        base = self.allocations.get(of)
        known = base.layout if base else self.examples.get(of)
        offset = _dim(call.args[3]) if len(call.args) > 3 else 0
        device, dtype = (known.device, known.dtype) if known else (None, None)
        return BufferLayout("Allocation", device, dtype, _dims(call.args[1]), _dims(call.args[2]), offset)

    def _call(self, call: ast.Call, targets: tuple[str, ...], statement: ast.stmt) -> None:
        span = self._span(statement)
        func = call.func
        if isinstance(func, ast.Name) and func.id in self.kernels:
            self.launches.append(Launch(func.id, tuple(_pointer(arg) for arg in call.args), span))
            return
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            kernel = func.value.id
            if kernel in self.kernels and func.attr in _LAUNCHERS:
                self.launches.append(Launch(kernel, tuple(ast.unparse(arg) for arg in call.args), span))
                return
        target = dotted(func)
        if target == "assert_size_stride":
            self._sized(call, span)
        elif target.startswith(_EXTERN):
            outputs = tuple(ast.unparse(kw.value) for kw in call.keywords if kw.arg == "out") or targets
            args = tuple(ast.unparse(arg) for arg in (*call.args, *call.keywords))
            self.externs.append(ExternCall(target, args, outputs, span, self._source_nodes(statement)))

    def _sized(self, call: ast.Call, span: Span) -> None:
        """`assert_size_stride` tells the layout of an input, or of what a library kernel returned."""
        if len(call.args) < 3 or not isinstance(call.args[0], ast.Name):
            return
        name = call.args[0].id
        size, stride = _dims(call.args[1]), _dims(call.args[2])
        known = self.allocations.get(name)
        is_input = name in self.inputs
        layout = BufferLayout("Input" if is_input else "Allocation", None, None, size, stride)
        if is_input:
            self._allocate(Allocation(name, "input", layout, None, span))
        elif known is None or known.layout is None:
            how, of = (known.how, known.of) if known else ("new", None)
            self._allocate(Allocation(name, how, layout, of, span))

    def example_inputs(self, function: ast.FunctionDef) -> None:
        """`arg0_1 = rand_strided(size, stride, device=..., dtype=...)`: dtype and device of inputs."""
        for statement in function.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func) as call):
                    if dotted(func) == "rand_strided" and len(call.args) >= 2:
                        device, dtype = _device_and_dtype(call)
                        self.examples[name] = BufferLayout(
                            "Input", device, dtype, _dims(call.args[0]), _dims(call.args[1])
                        )

    def _complete_input(self, name: str) -> None:
        """Join what the wrapper asserts (symbolic sizes) with what the example inputs tell (dtype)."""
        asserted, example = self.allocations.get(name), self.examples.get(name)
        if example is None:
            return
        if asserted is None or asserted.layout is None:
            self._allocate(Allocation(name, "input", example))
            return
        layout = asserted.layout
        joined = BufferLayout("Input", example.device, example.dtype, layout.size, layout.stride)
        self._allocate(Allocation(name, "input", joined, None, asserted.span))

    def _source_nodes(self, statement: ast.stmt) -> tuple[str, ...]:
        """Read the names in the comment lines right above a call."""
        at = statement.lineno - 2
        while at >= 0 and self.lines[at].lstrip().startswith("#"):
            if match := _SOURCE_NODES.search(self.lines[at]):
                return tuple(name.strip() for name in match["names"].split(",") if name.strip())
            at -= 1
        return ()

    def _span(self, statement: ast.stmt) -> Span:
        return Span(self.path, statement.lineno, statement.end_lineno or statement.lineno)


def _empty_layout(target: str, call: ast.Call) -> BufferLayout:
    size = _dims(call.args[0]) or ()
    device, dtype = _device_and_dtype(call)
    if target == "empty":  # torch 2.2 writes contiguous buffers so
        return BufferLayout("Allocation", device, dtype, size, contiguous_stride(size))
    if (match := _EMPTY_STRIDED.fullmatch(target)) and match["device"]:
        device = match["device"].removesuffix("_pinned")
        dtype = dotted(call.args[2]).removeprefix("torch.") if len(call.args) > 2 else dtype
    return BufferLayout("Allocation", device, dtype, size, _dims(call.args[1]))


def contiguous_stride(size: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Return the row-major stride of `size`, in elements."""
    stride: list[Dim] = []
    step: Dim = 1
    for dim in reversed(size):
        stride.append(step)
        if isinstance(dim, int) and isinstance(step, int):
            step = step * max(dim, 1)
        else:
            step = (
                str(dim) if step == 1 else f"{step}*{dim}" if str(dim).isidentifier() else f"{step}*({dim})"
            )
    return tuple(reversed(stride))


def _device_and_dtype(call: ast.Call) -> tuple[str | None, str | None]:
    device = dtype = None
    for keyword in call.keywords:
        if keyword.arg == "device" and isinstance(keyword.value, ast.Constant):
            device = str(keyword.value.value)
        elif keyword.arg == "dtype":
            dtype = dotted(keyword.value).removeprefix("torch.")
    return device, dtype


def _pointer(node: ast.expr) -> str:
    """Unwrap `c_void_p(buf0.data_ptr())` and `c_long(s0)`, which torch before 2.3 passes to C++ kernels."""
    match node:
        case ast.Call(func=ast.Name(id="c_void_p"), args=[ast.Call(func=ast.Attribute(value=inner))]):
            return ast.unparse(inner)
        case ast.Call(func=ast.Name(id="c_long" | "c_int" | "c_float" | "c_double"), args=[inner]):
            return ast.unparse(inner)
    return ast.unparse(node)


def _dim(node: ast.expr) -> Dim:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return ast.unparse(node)


def _dims(node: ast.expr) -> tuple[Dim, ...] | None:
    return tuple(_dim(element) for element in node.elts) if isinstance(node, ast.Tuple | ast.List) else None
