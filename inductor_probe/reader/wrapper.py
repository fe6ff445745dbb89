"""The statements of a wrapper: what it allocates, launches and calls.

torch/_inductor/codegen/wrapper.py prints them; each form names the method of PythonWrapperCodegen that does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.model.code import (
    Allocation,
    ExternCall,
    Freed,
    KernelComment,
    Launch,
    SizeSymbol,
    WrapperFunction,
)
from inductor_probe.model.ir import LARGEST_DIM, BufferLayout, Dim, dim_of
from inductor_probe.model.span import Problem, Span
from inductor_probe.reader.added_code import AddedCode
from inductor_probe.reader.kernel_comments import kernel_comment
from inductor_probe.reader.values import dotted, shorten

# generate_extern_kernel_out, generate_extern_kernel_alloc, generate_fallback_kernel: `aten.cumsum` until
# torch 2.4, `torch.ops.aten.cumsum.default` since.
_EXTERN = ("extern_kernels.", "aten.", "torch.ops.", "quantized.", "_quantized.", "inductor_ops.")
_SYMBOL = re.compile(r"[suz]\d+")
# codegen_partition_call: `partition0_args = [arg0_1]`, then `(buf0,) = self.partitions[0](partition0_args)`
_PARTITION_ARGUMENTS = re.compile(r"partition(?P<number>\d+)_args")
_SIZES = re.compile(r"(?P<tensor>\w+)_(?P<of>size|stride)")
# Calls that neither compute nor name memory: devices, streams, guards, events, lists of a loop, profiling.
_PLUMBING = re.compile(
    r"args\.clear|assert_alignment|get_(?:raw|cuda|xpu)_stream|run_intermediate_hooks|start_graph|end_graph"
    r"|torch\.\w+\.(?:set_device|current_device|current_stream|synchronize|nvtx\.\w+)|torch\.Event"
    r"|get_external_object_by_index|_get_stream_by_index|\w+\.(?:record|synchronize|wait|zero_)"
    r"|[\w\[\]]+\.(?:append|extend|wait_stream|wait_event|record_event|precompile|save_gpu_kernel)"
    r"|print|record_function"
)
_LAUNCHING = ("run", "generated_kernel")
"""Methods of a Triton kernel, and of a library of Metal's."""
# Methods of a tensor that make another one: `buf0[0] = arg0_1.clone()` before a loop.
_COPIES = ("clone", "copy_", "unsqueeze", "contiguous")
# Statements that hold nothing a reader asks for.
_SILENT = (ast.Assert, ast.Pass, ast.Raise, ast.Import, ast.ImportFrom, ast.Global, ast.Break)
# make_allocation: `empty_strided(...)` until torch 2.2, `empty_strided_cpu(...)` since.
_EMPTY_STRIDED = re.compile(r"empty_strided(_(?P<device>\w+?)(?:_pinned|_p2p)?)?")


@dataclass(slots=True)
class WrapperReader:
    """Collects what the statements of a wrapper say, in order.

    `kernels` are the names that are launched, `functions` those of the wrapper's other functions, `forwards`
    what those call that only forward their arguments.
    """

    path: Path
    lines: list[str]
    kernels: frozenset[str]
    functions: frozenset[str] = frozenset()
    forwards: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    arguments: set[str] = field(default_factory=set)
    launches: list[Launch] = field(default_factory=list)
    externs: list[ExternCall] = field(default_factory=list)
    allocations: dict[str, Allocation] = field(default_factory=dict)
    examples: dict[str, BufferLayout] = field(default_factory=dict)
    symbols: list[SizeSymbol] = field(default_factory=list)
    returns: tuple[str, ...] = ()
    others: list[WrapperFunction] = field(default_factory=list)
    freed: list[Freed] = field(default_factory=list)
    entered: list[tuple[str, Span]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    added: AddedCode = field(default_factory=AddedCode)
    comments: dict[int, KernelComment | None] = field(default_factory=dict)

    def entry(self, body: list[ast.stmt]) -> None:
        """Read the statements of `call`, also below a device guard.

        `arg0_1, = args` (write_args), ..., `return (buf0, )` (generate_return).
        """
        for statement in body:
            match statement:
                case ast.Assign(targets=[target], value=ast.Name(id="args")):
                    elements = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
                    self.inputs = tuple(map(text, elements))
                case ast.With(body=inner):
                    self.entry(inner)
                case ast.Return(value=ast.Tuple(elts=elements) | ast.List(elts=elements)):
                    self.returns = tuple(map(text, elements))
                case _:
                    self._statement(statement)

    def function(self, function: ast.FunctionDef) -> None:
        """Read another function; its arguments and returns are not the graph's."""
        inputs: tuple[str, ...] = ()
        returns: tuple[str, ...] = ()
        for statement in function.body:
            match statement:
                case ast.Assign(targets=[target], value=ast.Name(id="args")):
                    elements = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
                    inputs = tuple(map(text, elements))
                    self.arguments.update(inputs)
                case ast.Return(value=ast.Tuple(elts=elements) | ast.List(elts=elements)):
                    returns = tuple(map(text, elements))
                case ast.Return():
                    pass
                case _:
                    self._statement(statement)
        self.others.append(WrapperFunction(function.name, inputs, returns, self._span(function)))

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.If(body=inner, orelse=other) | ast.While(body=inner, orelse=other):
                for part in (*inner, *other):
                    self._statement(part)
            case ast.With(body=inner) | ast.For(body=inner):
                for part in inner:
                    self._statement(part)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, value, statement)
            case ast.Assign(targets=[ast.Tuple(elts=elements)], value=ast.Call() as call):
                self._call(call, tuple(map(text, elements)), statement)
            case ast.Assign(targets=[ast.Attribute()]):
                pass  # a switch of a kernel object
            case ast.Assign(targets=[ast.Subscript() as item], value=ast.Name() | ast.Call()):
                self._assign(ast.unparse(item), statement.value, statement)
            case ast.Expr(value=ast.Call() as call):
                self._call(call, (), statement)
            case ast.Delete(targets=names):
                self.freed += [Freed(text(name), self._span(statement)) for name in names]
            case ast.Expr(value=ast.Constant()) | ast.Return():
                pass
            case _ if not isinstance(statement, _SILENT):
                self._unknown(statement)

    def _assign(self, name: str, value: ast.expr, statement: ast.stmt) -> None:
        span = self._span(statement)
        match value:
            case ast.Name(id=other):
                known = self.allocations.get(other)
                if known is None and _SYMBOL.fullmatch(name):
                    # codegen_input_symbol_assignment: `s77 = arg0_1`
                    self.symbols.append(SizeSymbol(name, other, span))
                else:  # make_buffer_reuse: `buf3 = buf1; del buf1  # reuse`
                    self._allocate(Allocation(name, "reuse", known.layout if known else None, other, span))
            case ast.Subscript(value=ast.Name(id=other), slice=ast.Constant(value=int(place))) if (
                match := _SIZES.fullmatch(other)
            ) and any(symbol.name == other for symbol in self.symbols):
                # codegen_input_symbol_assignment: `arg0_1_size = arg0_1.size(); s77 = arg0_1_size[0]`
                self.symbols.append(SizeSymbol(name, f"{match['tensor']}.{match['of']}({place})", span))
            case ast.Subscript(value=ast.Name(id=other), slice=ast.Constant()):
                # codegen_multi_output: `buf1 = buf0[0]`
                self._allocate(Allocation(name, "alias", None, other, span))
            case ast.Call() as call:
                self._assign_call(name, call, statement)
            case ast.List() if match := _PARTITION_ARGUMENTS.fullmatch(name):
                self.entered.append((f"partition_{match['number']}", span))
            case ast.Constant(value=None) | ast.List() | ast.ListComp() | ast.BinOp(left=ast.List()):
                pass  # nothing yet: what a branch, a loop or a partition fills
            case _:
                self.symbols.append(SizeSymbol(name, ast.unparse(value), span))

    def _assign_call(self, name: str, call: ast.Call, statement: ast.stmt) -> None:
        target, span = dotted(call.func), self._span(statement)
        if target in ("reinterpret_tensor", "alloc_from_pool") and call.args:
            of = text(call.args[0])
            base = self.allocations.get(of)
            known = base.layout if base else self.examples.get(of)
            self._allocate(Allocation(name, "view", view_layout(target, call, known), of, span))
        elif layout := _empty_layout(target, call):
            self._allocate(Allocation(name, "new", layout, None, span))
        elif reduction := _workspace_reduction(call):
            self._allocate(Allocation(name, "new", reduction.layout(self.allocations), None, span))
            self.externs.append(
                ExternCall(reduction.target, reduction.args, (name,), span, comment=self._comment(statement))
            )
        elif target == "copy_if_misaligned" and call.args:
            known_input = self.allocations.get(name)
            layout = known_input.layout if known_input else None
            self._allocate(Allocation(name, "copy", layout, text(call.args[0]), span))
        elif target.endswith((".item", ".size", ".stride", ".numel")) or target in ("max", "min", "int"):
            self.symbols.append(SizeSymbol(name, ast.unparse(call), span))
        else:
            self._call(call, (name,), statement)

    def _allocate(self, allocation: Allocation) -> None:
        self.allocations[allocation.name] = allocation

    def _call(self, call: ast.Call, targets: tuple[str, ...], statement: ast.stmt) -> None:
        span, called = self._span(statement), dotted(call.func)
        target = self.forwards.get(called, called)
        kernel, _, method = target.rpartition(".")
        # _generate_kernel_call_helper: `cpp_fused_flip_0(arg0_1, buf0)`, `triton_poi_0.run(arg0_1, 512)`,
        # `mps_lib_0.generated_kernel(buf0, arg0_1, threads=[512])`
        if (isinstance(call.func, ast.Name) and target in self.kernels) or (
            kernel in self.kernels and method in _LAUNCHING
        ):
            args = tuple(map(_pointer, call.args))
            keywords = tuple((kw.arg, ast.unparse(kw.value)) for kw in call.keywords if kw.arg)
            self.launches.append(
                Launch(kernel or target, args, span, keywords, comment=self._comment(statement))
            )
        elif target in ASSERTIONS:
            for asserted in asserted_layouts(call):
                self._sized(asserted, span)
        elif target.startswith(_EXTERN) or method in _COPIES or (targets and _is_torch(target)):
            outputs = tuple(ast.unparse(kw.value) for kw in call.keywords if kw.arg == "out") or targets
            args = (*map(text, call.args), *map(ast.unparse, call.keywords))
            if method in _COPIES:
                outputs, args = outputs or (kernel,), (kernel, *args)
            self.externs.append(ExternCall(target, args, outputs, span, comment=self._comment(statement)))
        elif target in self.functions:
            self.entered.append((target, span))
        elif not ("partitions[" in target or _PLUMBING.fullmatch(target)):
            self._unknown(statement)

    def _unknown(self, statement: ast.stmt) -> None:
        if self.added.uses(statement):
            self.added.take(statement)
            return
        line = shorten(self.lines[statement.lineno - 1].strip())
        self.problems.append(Problem(f"unknown statement of the wrapper: {line}", self._span(statement)))

    def _sized(self, asserted: AssertedLayout, span: Span) -> None:
        """Take the layout of an input, or of what a library kernel returned."""
        name, size, stride = asserted.name, _dims(asserted.size), _dims(asserted.stride)
        known = self.allocations.get(name)
        if name in self.inputs or (known is None and name in self.arguments):
            layout = BufferLayout("Input", None, asserted.dtype, size, stride)
            self._allocate(
                Allocation(name, "input" if name in self.inputs else "argument", layout, None, span)
            )
        elif known is None or known.layout is None:
            layout = BufferLayout("Allocation", None, asserted.dtype, size, stride)
            of = known.of if known else None
            self._allocate(Allocation(name, known.kind if known else "new", layout, of, span))

    def example_inputs(self, function: ast.FunctionDef) -> None:
        """Read dtype and device of inputs: `arg0_1 = rand_strided(size, stride, device=..., dtype=...)`.

        benchmark_compiled_module; in a function `get_args` since torch 2.11. Where inputs share memory it is
        made first, and each is `torch.as_strided(_shared_storage_24, size, stride)`.
        """
        for statement in function.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func) as call):
                    if dotted(func) == "rand_strided" and len(call.args) >= 2:
                        device, dtype = _device_and_dtype(call)
                        size, stride = _dims(call.args[0]), _dims(call.args[1])
                        self.examples[name] = BufferLayout("Input", device, dtype, size, stride)
                    elif dotted(func) == "torch.as_strided" and len(call.args) >= 3:
                        memory = self.examples.get(ast.unparse(call.args[0]))
                        if memory is not None:
                            size, stride = _dims(call.args[1]), _dims(call.args[2])
                            self.examples[name] = replace(memory, size=size, stride=stride)

    def complete_inputs(self) -> None:
        """Call last: joins what the wrapper asserts (symbolic sizes) with the examples (dtype, device)."""
        for name in self.inputs:
            asserted, example = self.allocations.get(name), self.examples.get(name)
            if example is None:
                continue
            if asserted is None or asserted.layout is None:
                self._allocate(Allocation(name, "input", example))
                continue
            layout = replace(example, size=asserted.layout.size, stride=asserted.layout.stride)
            self._allocate(Allocation(name, "input", layout, None, asserted.span))

    def _comment(self, statement: ast.stmt) -> KernelComment | None:
        """Return the comment above a statement; many may stand in one line, below a long comment."""
        line = statement.lineno
        if line not in self.comments:
            self.comments[line] = kernel_comment(self.lines, line, self.path)
        return self.comments[line]

    def _span(self, statement: ast.stmt) -> Span:
        return Span(self.path, statement.lineno, statement.end_lineno or statement.lineno)


class AssertedLayout(Struct, frozen=True):
    """What the wrapper asserts of a tensor: where size and stride stand, and the dtype if it is asserted."""

    name: str
    size: ast.expr
    stride: ast.expr
    dtype: str | None = None


ASSERTIONS = ("assert_size_stride", "assert_size_stride_grouped", "assert_tensor_metadata")


def asserted_layouts(call: ast.Call) -> tuple[AssertedLayout, ...]:
    """Return the layouts that a call asserts; none of any other call.

    `assert_size_stride(arg0_1, (4, 3), (3, 1), 'input')` (codegen_input_size_asserts). Torch 2.14 asserts
    several inputs at once, `assert_size_stride_grouped((arg0_1, arg1_1), ((4, 3), (3, )), ((3, 1), (1, )),
    'input')`, and of what a custom operator returned the dtype, too: `assert_tensor_metadata(buf1, (4, ),
    (1, ), torch.float32, 'op')`.
    """
    match call:
        case ast.Call(
            func=ast.Name("assert_size_stride_grouped"),
            args=[ast.Tuple(elts=names), ast.Tuple(elts=sizes), ast.Tuple(elts=strides), *_],
        ):
            rows = zip(names, sizes, strides, strict=False)
            return tuple(AssertedLayout(text(name), size, stride) for name, size, stride in rows)
        case ast.Call(func=ast.Name("assert_size_stride"), args=[ast.Name(name), size, stride, *_]):
            return (AssertedLayout(name, size, stride),)
        case ast.Call(
            func=ast.Name("assert_tensor_metadata"), args=[ast.Name(name), size, stride, dtype, *_]
        ):
            return (AssertedLayout(name, size, stride, dotted(dtype).removeprefix("torch.")),)
    return ()


def _is_torch(target: str) -> bool:
    return target.startswith("torch.") and not _PLUMBING.fullmatch(target)


class _WorkspaceReduction(Struct, frozen=True):
    """The last step of a mix-order reduction: what the blocks of a kernel left in the workspace is reduced.

    codegen/simd.py, `SIMDScheduling._codegen_mix_order_reduction`; until torch 2.12 without the second view:
    `buf2 = workspace_0[0 * (512) * (1024) : ...].view(512, 1024).sum(dim=0).view([1024]).to(torch.bfloat16)`
    """

    workspace: str
    target: str
    args: tuple[str, ...]
    size: tuple[Dim, ...]
    dtype: str | None

    def layout(self, allocations: Mapping[str, Allocation]) -> BufferLayout:
        """Return how the result lies: it is contiguous, and of the workspace's dtype but for a `to`."""
        base = allocations.get(self.workspace)
        device, dtype = (base.layout.device, base.layout.dtype) if base and base.layout else (None, None)
        return BufferLayout(
            "Allocation", device, self.dtype or dtype, self.size, _contiguous_stride(self.size)
        )


def _workspace_reduction(call: ast.Call) -> _WorkspaceReduction | None:
    """Read `workspace_0[...].view(...).sum(dim=0)`, and what comes behind it; None for any other call."""
    steps: list[tuple[str, ast.Call]] = []
    value: ast.expr = call
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        steps.insert(0, (value.func.attr, value))
        value = value.func.value
    match value, steps:
        case ast.Subscript(value=ast.Name(id=workspace)), [("view", rows), (method, reduced), *rest]:
            pass
        case _:
            return None
    if len(rows.args) != 2 or any(name not in ("view", "to") for name, _ in rest):
        return None
    views = [_dims(step.args[0]) for name, step in rest if name == "view" and step.args]
    dtypes = [dotted(step.args[0]) for name, step in rest if name == "to" and step.args]
    return _WorkspaceReduction(
        workspace,
        f"torch.Tensor.{method}",
        (workspace, *map(text, reduced.args), *map(ast.unparse, reduced.keywords)),
        next((size for size in views if size is not None), (dim(rows.args[1]),)),
        next((dtype.removeprefix("torch.") for dtype in dtypes), None),
    )


def _empty_layout(target: str, call: ast.Call) -> BufferLayout | None:
    """Return the layout of `empty`, `empty_strided` or `empty_strided_cuda`; None for any other call."""
    match = _EMPTY_STRIDED.fullmatch(target)
    if not (target == "empty" or match) or not call.args:
        return None
    size = _dims(call.args[0]) or ()
    device, dtype = _device_and_dtype(call)
    if target == "empty" or len(call.args) < 2:  # torch 2.2 writes contiguous buffers so
        return BufferLayout("Allocation", device, dtype, size, _contiguous_stride(size))
    if match and match["device"]:
        device = match["device"]
        dtype = dotted(call.args[2]).removeprefix("torch.") if len(call.args) > 2 else dtype
    return BufferLayout("Allocation", device, dtype, size, _dims(call.args[1]))


def view_layout(target: str, call: ast.Call, base: BufferLayout | None) -> BufferLayout | None:
    """Return the layout of a view of a buffer that lies as `base`.

    `reinterpret_tensor(buf, size, stride, offset)`, in elements (codegen_reinterpret_view);
    `alloc_from_pool(pool, offset, dtype, size, stride)`, whose offset is in bytes and so is not one of the
    layout (codegen_alloc_from_pool).
    """
    device, dtype = (base.device, base.dtype) if base else (None, None)
    match target, call.args:
        case "reinterpret_tensor", [_, size, stride, *rest]:
            offset = dim(rest[0]) if rest else 0
            return BufferLayout("Allocation", device, dtype, _dims(size), _dims(stride), offset)
        case "alloc_from_pool", [_, _, kind, size, stride]:
            dtype = dotted(kind).removeprefix("torch.")
            return BufferLayout("Allocation", device, dtype, _dims(size), _dims(stride))
    return None


def _contiguous_stride(size: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Return the row-major stride of `size`, in elements: of (2, s0, 3) it is (s0*3, 3, 1)."""
    stride: list[Dim] = []
    step: Dim = 1
    for length in reversed(size):
        stride.append(step)
        if isinstance(length, int) and isinstance(step, int):
            product = step * max(length, 1)
            step = dim_of(product, str(product))
        else:
            factor = str(length) if str(length).isidentifier() else f"({length})"
            step = str(length) if step == 1 else f"{step}*{factor}"
    return tuple(reversed(stride))


def _device_and_dtype(call: ast.Call) -> tuple[str | None, str | None]:
    """Return the keyword arguments `device` and `dtype` (without `torch.`), None where they are not given."""
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
            return text(inner)
        case ast.Call(func=ast.Name(id="c_long" | "c_int" | "c_float" | "c_double"), args=[inner]):
            return text(inner)
    return text(node)


def dim(node: ast.expr) -> Dim:
    """Read a size or stride: a number, or the text of a symbolic one."""
    if isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) <= LARGEST_DIM:
        return node.value
    return ast.unparse(node)


def _dims(node: ast.expr) -> tuple[Dim, ...] | None:
    """Read a tuple or list of sizes or strides; None for anything else."""
    return tuple(map(dim, node.elts)) if isinstance(node, ast.Tuple | ast.List) else None


def text(node: ast.expr) -> str:
    """Return the source of an expression (names, most of what a wrapper passes, without `ast.unparse`)."""
    return node.id if isinstance(node, ast.Name) else ast.unparse(node)
