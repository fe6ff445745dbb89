"""The statements of a wrapper: what it allocates, launches and calls."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

from inductor_probe.backends import BACKENDS
from inductor_probe.model.code import Allocation, ExternCall, Launch
from inductor_probe.model.ir import BufferLayout, Dim
from inductor_probe.model.span import Span
from inductor_probe.reader.values import dotted

_EXTERN = ("extern_kernels.", "aten.", "torch.ops.")
_EMPTY_STRIDED = re.compile(r"empty_strided(_(?P<device>\w+))?")
_SOURCE_NODES = re.compile(r"# (?:Topologically Sorted )?Source Nodes: \[(?P<names>[^\]]*)\]")
_LAUNCHERS = {backend.launcher for backend in BACKENDS}


@dataclass(slots=True)
class WrapperReader:
    """Collects what the statements of a wrapper say, in order. `kernels` are the names that are launched."""

    path: Path
    lines: list[str]
    kernels: frozenset[str]
    inputs: tuple[str, ...] = ()
    launches: list[Launch] = field(default_factory=list)
    externs: list[ExternCall] = field(default_factory=list)
    allocations: dict[str, Allocation] = field(default_factory=dict)
    examples: dict[str, BufferLayout] = field(default_factory=dict)
    returns: tuple[str, ...] = ()

    def statements(self, body: list[ast.stmt]) -> None:
        """Read statements of `call`, in order."""
        for statement in body:
            match statement:
                case ast.With(body=inner):
                    self.statements(inner)
                case ast.If(body=inner, orelse=other):
                    self.statements(inner)
                    self.statements(other)
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

    def complete_inputs(self) -> None:
        """Call last: gives inputs the dtype and device of the example inputs."""
        for name in self.inputs:
            self._complete_input(name)

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
