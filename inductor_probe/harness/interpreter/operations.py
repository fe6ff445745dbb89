"""Operations of Triton's language as a GPU does them, in the place of some of those of triton's interpreter.

triton/runtime/interpreter.py (`InterpreterBuilder`) computes them with numpy. Substituted are: accesses to
memory (see `memory`); libdevice; floats that numpy lacks (bfloat16 is kept as uint16, and is computed with in
float32); conversions of floats to integers, which saturate; comparisons and extremes of NaN; reductions and
scans, which the interpreter does one element at a time unless it knows them.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from inductor_probe.harness.interpreter.errors import AssertionFault, KernelFault, NotInterpretedError
from inductor_probe.harness.interpreter.libdevice import function_of
from inductor_probe.harness.interpreter.memory import MEMORY

INTERPRETER: Any = importlib.import_module("triton.runtime.interpreter")
Handle: Any = INTERPRETER.TensorHandle
NARROW = {  # types that numpy lacks, by their names in Triton
    "bf16": torch.bfloat16,
    "fp8e5": torch.float8_e5m2,
    "fp8e4nv": torch.float8_e4m3fn,
}
NAN = {"bf16": 0x7FC0, "fp8e5": 0x7F, "fp8e4nv": 0x7F}
POISON = 0x7F  # in lanes that a load leaves undefined
WAITING = ("x_grid_barrier",)  # functions of triton_helpers in which programs wait for each other
PARTS = ("_get_np_dtype", "ReduceOps", "ScanOps", "FunctionRewriter", "interpreter_builder", "_patch_lang")


def prepare() -> None:
    """Have Triton's language compute with numpy, in this process, from now on.

    triton's own executor does that for each launch, and each call of a function, anew.

    Raises:
        NotInterpretedError: this triton's interpreter has other parts.
    """
    for part in PARTS:
        if not hasattr(INTERPRETER, part):
            raise NotInterpretedError(
                f"triton.runtime.interpreter.{part} is not available on triton {triton.__version__}"
            )
    builder = INTERPRETER.interpreter_builder
    # Assertions of kernels are checked, as on a GPU: inductor compiles them with `debug`. Integers overflow.
    builder.options = replace(builder.options, debug=True, sanitize_overflow=False)
    builder.__class__ = type("GpuBuilder", (Operations, type(builder)), {})
    INTERPRETER.ReduceOps.apply_impl = reduce_blocks
    INTERPRETER.ScanOps.apply_impl = scan_blocks
    INTERPRETER.FunctionRewriter.ast_transformer = truth_values()
    INTERPRETER.InterpretedFunction.__call__ = lambda self, *args, **kwargs: self.rewrite()(*args, **kwargs)
    INTERPRETER.logical_not, INTERPRETER.logical = logical_not, logical

    def language() -> None:
        """Stand for a function that sees `tl` and `tl.core`."""

    language.__globals__.setdefault("core", tl.core)
    INTERPRETER._patch_lang(language)
    # triton 3.6 makes an `int` of an array with a dimension, which numpy 2.4 refuses.
    tl.tensor.__index__ = lambda self: int(self.handle.data.squeeze())
    helpers: Any = importlib.import_module("torch._inductor.runtime.triton_helpers")
    helpers.set_driver_to_gpu = lambda: None  # the text of a kernel calls it
    patch_builtins(helpers, helpers)
    for target in (helpers.libdevice, tl.extra.cuda.libdevice):  # the first has names alone, for any device
        patch_builtins(tl.extra.cuda.libdevice, target)
    for name in ("gdc_wait", "gdc_launch_dependents"):  # of launches that overlap
        if hasattr(tl.extra.cuda, name):
            setattr(tl.extra.cuda, name, lambda *_, **__: None)
    for name in WAITING:
        if hasattr(helpers, name):
            setattr(
                helpers, name, not_interpreted(f"triton_helpers.{name}: programs that wait for each other")
            )


def patch_builtins(source: Any, target: Any) -> None:
    """Give `target` the builtin functions of `source`, which compute with numpy then."""
    for name, member in inspect.getmembers(source, tl.core.is_builtin):

        def call(*args: Any, _member: Any = member, **kwargs: Any) -> Any:
            kwargs.pop("_semantic", None)
            return _member(*args, **kwargs, _semantic=INTERPRETER.interpreter_semantic)

        setattr(target, name, call)


def not_interpreted(what: str) -> Callable[..., Any]:
    """Return what stands in for a function that has no meaning here."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise NotInterpretedError(what)

    return refuse


def truth_values() -> Any:
    """Return what rewrites a kernel's `not`, `and` and `or`: of blocks they are taken lane by lane.

    triton/compiler/code_generator.py (`visit_UnaryOp`, `visit_BoolOp`) does that; Python asks a block
    whether it is true, and triton's interpreter says that each is.
    """
    ast = importlib.import_module("ast")
    base = type(INTERPRETER.FunctionRewriter.ast_transformer)

    class TruthValues(base):  # type: ignore[misc, valid-type] # a class of triton's
        def visit_Assign(self, node: Any) -> Any:  # noqa: N802 - `ast` calls it so, and the others
            self.generic_visit(node)
            return super().visit_Assign(node)

        def visit_UnaryOp(self, node: Any) -> Any:  # noqa: N802
            self.generic_visit(node)
            if not isinstance(node.op, ast.Not):
                return node
            return ast.copy_location(call("logical_not", [node.operand]), node)

        def visit_BoolOp(self, node: Any) -> Any:  # noqa: N802
            self.generic_visit(node)
            none = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
            later = [ast.Lambda(args=none, body=value) for value in node.values]
            every = ast.Constant(value=isinstance(node.op, ast.And))
            return ast.copy_location(call("logical", [every, *later]), node)

    def call(name: str, arguments: list[Any]) -> Any:
        return ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=arguments, keywords=[])

    return TruthValues()


def logical_not(value: Any) -> Any:
    """Return `not value` as Triton has it."""
    return value.__not__() if isinstance(value, tl.tensor) else not value


def logical(every: bool, *values: Callable[[], Any]) -> Any:
    """Return what is joined by `and` or `or`: one that decides ends it, unless it is a block."""
    result = values[0]()
    for value in values[1:]:
        if isinstance(result, tl.tensor):
            other = value()
            result = result.logical_and(other) if every else result.logical_or(other)
        elif bool(result) == every:
            result = value()
    return result


def widened(handle: Any) -> Any:
    """Return the numbers of a handle, floats that numpy lacks as float32."""
    dtype = NARROW.get(str(handle.dtype.scalar))
    if dtype is None:
        return handle.data
    bits = np.ascontiguousarray(handle.data)
    return (
        torch.from_numpy(bits.view(np.int16 if dtype.itemsize == 2 else np.uint8)).view(dtype).float().numpy()
    )


def narrowed(values: Any, type_: Any) -> Any:
    """Return numbers as an interpreter's handle of a type keeps them."""
    scalar, wanted = type_.scalar, INTERPRETER._get_np_dtype(type_)
    values = np.asarray(values)
    if dtype := NARROW.get(str(scalar)):
        tensor = torch.from_numpy(np.array(values, copy=True)).to(dtype)
        return tensor.view(torch.int16 if dtype.itemsize == 2 else torch.uint8).numpy().view(wanted)
    if values.dtype.kind == "f" and wanted.kind in "iu" and str(scalar) not in NAN:
        return saturated(values, wanted)
    return values.astype(wanted)


def saturated(values: Any, wanted: Any) -> Any:
    """Convert floats to integers as PTX's `cvt.rzi` does: out of range is the next bound, NaN is 0."""
    wide = np.dtype(f"{wanted.kind}{max(4, wanted.itemsize)}")  # narrower ones are cut off after that
    least, most = np.iinfo(wide).min, np.iinfo(wide).max
    inside = np.isfinite(values) & (values >= float(least)) & (values < float(most))
    result = np.where(inside, values, 0).astype(wide)
    result = np.where(values >= float(most), wide.type(most), result)
    result = np.where(values < float(least), wide.type(least), result)
    return np.where(np.isnan(values), wide.type(0), result).astype(wanted)


class Operations:
    """Methods of `InterpreterBuilder` that are replaced; each is named after the operation in Triton's IR."""

    def create_masked_load(self, ptrs: Any, mask: Any, other: Any, *_: Any) -> Any:
        """Load; a lane that is masked off, and has no other value, may hold anything: it gets NaN."""
        type_ = ptrs.get_element_ty()
        dtype = INTERPRETER._get_np_dtype(type_)
        lanes = getattr(mask, "data", mask)
        if other is None:
            undefined = NAN.get(str(type_), np.nan if dtype.kind == "f" else POISON)
            values = np.full(ptrs.data.shape, undefined).astype(dtype)
        else:
            values = np.ascontiguousarray(np.broadcast_to(other.data, ptrs.data.shape))
        real = MEMORY.real(ptrs.data, lanes, dtype.itemsize, "reads")
        lanes = np.ascontiguousarray(np.broadcast_to(lanes, ptrs.data.shape))
        return Handle(INTERPRETER._interpreter.load(real, lanes, values, dtype), type_)

    def create_masked_store(self, ptrs: Any, value: Any, mask: Any, *_: Any) -> Any:
        """Store."""
        dtype = INTERPRETER._get_np_dtype(ptrs.get_element_ty())
        lanes = getattr(mask, "data", mask)
        real = MEMORY.real(ptrs.data, lanes, dtype.itemsize, "writes")
        values = np.ascontiguousarray(np.broadcast_to(value.data, ptrs.data.shape))
        lanes = np.ascontiguousarray(np.broadcast_to(lanes, ptrs.data.shape))
        return INTERPRETER._interpreter.store(real, values.astype(dtype, copy=False), lanes)

    def create_atomic_rmw(self, operation: Any, ptr: Any, val: Any, mask: Any, sem: Any, _: Any) -> Any:
        """Read, change and write: lane by lane, in order."""
        shape = ptr.data.shape
        values = np.ascontiguousarray(np.broadcast_to(val.data, shape))
        lanes = np.ascontiguousarray(np.broadcast_to(mask.data, shape))
        real = MEMORY.real(ptr.data, lanes, values.dtype.itemsize, "changes")
        if str(val.dtype.scalar) in NARROW:
            return Handle(self._narrow_atomic(operation, real, values, lanes, val.dtype), val.dtype.scalar)
        kind, order = self.ir_rmw_op_to_interpreter_rmw_op, self.ir_sem_to_interpreter_sem  # type: ignore[attr-defined]
        before = INTERPRETER._interpreter.atomic_rmw(kind[operation], real, values, lanes, order[sem])
        return Handle(before, val.dtype.scalar)

    def _narrow_atomic(self, operation: Any, real: Any, values: Any, lanes: Any, type_: Any) -> Any:
        """Do the same with floats that numpy lacks: they are added, and rounded each time."""
        if operation != INTERPRETER._ir.ATOMIC_OP.FADD:
            raise NotInterpretedError(f"an atomic {operation} of {type_}")
        native, before = INTERPRETER._interpreter, np.zeros_like(values)
        for index in map(tuple, np.argwhere(lanes)):
            place, one = real[index].reshape(1), np.ones(1, dtype=bool)
            old = native.load(place, one, values[index].reshape(1), values.dtype)
            total = widened(Handle(old, type_.scalar)) + widened(
                Handle(values[index].reshape(1), type_.scalar)
            )
            native.store(place, narrowed(total, type_), one)
            before[index] = old[0]
        return before

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any, _: Any) -> Any:
        """Compare and swap."""
        real = MEMORY.real(ptr.data, True, val.data.dtype.itemsize, "changes")
        order = self.ir_sem_to_interpreter_sem[sem]  # type: ignore[attr-defined]
        return Handle(INTERPRETER._interpreter.atomic_cas(real, cmp.data, val.data, order), cmp.dtype.scalar)

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        """Convert numbers."""
        return Handle(narrowed(widened(src), dst_type), dst_type.scalar)

    def create_fp_to_fp(self, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        """Convert floats, to the nearest."""
        if rounding_mode not in (None, INTERPRETER._ir.ROUNDING_MODE.RTNE):
            raise NotInterpretedError("a conversion that does not round to the nearest")
        return self.cast_impl(src, dst_type)

    def binary_op(self, lhs: Any, rhs: Any, op: Any) -> Any:
        """Compute with floats that numpy lacks in float32; comparisons give truth values."""
        result = op(widened(lhs), widened(rhs))
        return Handle(
            result if result.dtype == bool else narrowed(result, lhs.dtype.scalar), lhs.dtype.scalar
        )

    def unary_op(self, arg: Any, op: Any) -> Any:
        """Compute with floats that numpy lacks in float32."""
        return Handle(narrowed(op(widened(arg)), arg.dtype.scalar), arg.dtype.scalar)

    def ternary_op(self, lhs: Any, rhs: Any, other: Any, op: Any) -> Any:
        """Select or clamp."""
        if op is np.where:
            return Handle(np.where(lhs.data, rhs.data, other.data), other.dtype.scalar)
        return Handle(narrowed(op(*map(widened, (lhs, rhs, other))), other.dtype.scalar), other.dtype.scalar)

    def create_fma(self, x: Any, y: Any, z: Any) -> Any:
        """Multiply and add, and round once."""
        wide = [widened(value) for value in (x, y, z)]
        exact = wide[0].astype(np.float64) * wide[1] + wide[2]
        return Handle(narrowed(exact.astype(wide[2].dtype), z.dtype.scalar), z.dtype.scalar)

    def create_minnumf(self, lhs: Any, rhs: Any) -> Any:
        """Return the smaller; of NaN and a number, the number."""
        return self.binary_op(lhs, rhs, np.fmin)

    def create_maxnumf(self, lhs: Any, rhs: Any) -> Any:
        """Return the larger; of NaN and a number, the number."""
        return self.binary_op(lhs, rhs, np.fmax)

    def create_clampf(self, arg: Any, lo: Any, hi: Any, propagate_nans: Any) -> Any:
        """Clamp; NaN stays, or is taken for a missing number."""
        value, low, high = map(widened, (arg, lo, hi))
        keep = propagate_nans == INTERPRETER._ir.PROPAGATE_NAN.ALL
        result = np.clip(value, low, high) if keep else np.fmin(np.fmax(value, low), high)
        return Handle(narrowed(result, arg.dtype.scalar), arg.dtype.scalar)

    def create_erf(self, arg: Any) -> Any:
        """Compute the error function."""
        return self.unary_op(arg, function_of("__nv_erf"))

    def create_rsqrt(self, arg: Any) -> Any:
        """Compute the inverse of the square root."""
        return self.unary_op(arg, lambda value: 1 / np.sqrt(value))

    def create_dot(self, a: Any, b: Any, d: Any, *_: Any) -> Any:
        """Multiply matrices, in the precision that sums have."""
        first, second = widened(a), widened(b)
        kind = d.data.dtype
        if kind.kind == "f" and kind.itemsize < 4:
            kind = np.dtype(np.float32)
        product = np.matmul(first.astype(kind), second.astype(kind)) + widened(d)
        return Handle(narrowed(product, d.dtype.scalar), d.dtype.scalar)

    def create_extern_elementwise(self, _: str, __: str, symbol: str, *rest: Any) -> Any:
        """Call a function of libdevice."""
        arguments, type_, _pure = rest
        result = function_of(symbol)(*(argument.data for argument in arguments))
        return Handle(narrowed(result, type_), type_.scalar)

    def create_inline_asm(self, text: str, *_: Any) -> Any:
        """Refuse: it is a text for ptxas."""
        instruction = next((line.strip() for line in text.splitlines() if line.strip(" {}")), text)
        raise NotInterpretedError(f"tl.inline_asm_elementwise: {instruction[:60]}")

    def create_assert(self, condition: Any, message: Any) -> None:
        """End the run where an assertion of the kernel does not hold."""
        if not np.all(condition.data):
            lane = int(np.flatnonzero(~np.asarray(condition.data, dtype=bool))[0])
            raise AssertionFault(
                f"tl.device_assert fails in lane {lane}: {getattr(message, 'value', message)}"
            )

    def create_assume(self, condition: Any) -> None:
        """End the run where what the compiler may assume does not hold."""
        if not np.all(condition.data):
            raise KernelFault("what tl.assume says does not hold")


for _name, _op in {
    "ULT": lambda x, y: ~(x >= y), "ULE": lambda x, y: ~(x > y), "UGT": lambda x, y: ~(x <= y),
    "UGE": lambda x, y: ~(x < y), "UEQ": lambda x, y: ~((x < y) | (x > y)),
    "ONE": lambda x, y: (x < y) | (x > y),
}.items():  # fmt: skip

    def _compare(self: Any, lhs: Any, rhs: Any, _op: Any = _op) -> Any:
        return self.binary_op(lhs, rhs, _op)

    setattr(Operations, f"create_fcmp{_name}", _compare)


KNOWN: dict[
    str, Callable[..., Any]
] = {  # functions of reductions, with what reduces an array along its last axis
    "triton.language.standard._sum_combine": np.add.reduce,
    "triton.language.standard._elementwise_max": np.fmax.reduce,
    "triton.language.standard._elementwise_min": np.fmin.reduce,
    "torch._inductor.runtime.triton_helpers._prod_accumulate": np.multiply.reduce,
    "torch._inductor.runtime.triton_helpers._any_combine": np.bitwise_or.reduce,
    "torch._inductor.runtime.triton_helpers.maximum": np.maximum.reduce,
    "torch._inductor.runtime.triton_helpers.minimum": np.minimum.reduce,
}


def reduce_blocks(self: Any, inputs: tuple[Any, ...]) -> list[Any]:
    """Reduce blocks along an axis: by halves, neighbours are combined, as many at a time as there are.

    Floats are combined in float64 and rounded once: how often a GPU rounds depends on its warps, and no
    kernel is wrong for that. `self` is triton's `ReduceOps`: `axis` (None for all), `combine_fn` and
    `keep_dims`.
    """
    whole = self.axis is None
    axis = 0 if whole else self.axis
    dimensions = inputs[0].handle.data.ndim
    blocks = [np.moveaxis(block.reshape(-1) if whole else block, axis, -1) for block in map(wide, inputs)]
    function = getattr(self.combine_fn, "fn", self.combine_fn)
    known = KNOWN.get(f"{function.__module__}.{function.__qualname__}")
    if known is not None and len(blocks) == 1:
        results = [known(blocks[0], axis=-1)]
    else:
        types = wide_types(inputs)
        while blocks[0].shape[-1] > 1:
            blocks = combined(self, [block[..., side::2] for side in (0, 1) for block in blocks], types)
        results = [block[..., 0] for block in blocks]
    if self.keep_dims:
        places = tuple(range(dimensions)) if whole else (axis,)
        results = [np.expand_dims(result, places) for result in results]
    return rounded(self, results, inputs)


def scan_blocks(self: Any, inputs: tuple[Any, ...]) -> list[Any]:
    """Scan blocks along an axis: each lane is combined with that 1, 2, 4, ... lanes before it.

    Floats are rounded once, as for `reduce_blocks`. `self` is triton's `ScanOps`: `axis`, `combine_fn`,
    `reverse`.
    """
    types = wide_types(inputs)
    blocks = [np.moveaxis(block, self.axis, -1) for block in map(wide, inputs)]
    blocks = [block[..., ::-1] if self.reverse else block for block in blocks]
    length, step = blocks[0].shape[-1], 1
    while step < length:
        before = [np.roll(block, step, axis=-1) for block in blocks]  # blocks keep a power of two of lanes
        later = np.arange(length) >= step
        results = combined(self, [*before, *blocks], types)
        blocks = [np.where(later, result, block) for result, block in zip(results, blocks, strict=True)]
        step *= 2
    blocks = [np.moveaxis(block[..., ::-1] if self.reverse else block, -1, self.axis) for block in blocks]
    return rounded(self, blocks, inputs)


def wide(value: Any) -> Any:
    """Return the numbers of a tensor, floats in float64."""
    numbers = widened(value.handle)
    return numbers.astype(np.float64) if numbers.dtype.kind == "f" else numbers


def wide_types(values: tuple[Any, ...]) -> list[Any]:
    """Return the types that Triton has for what `wide` gives."""
    return [tl.float64 if value.dtype.is_floating() else value.dtype for value in values]


def combined(self: Any, blocks: list[Any], types: list[Any]) -> list[Any]:
    """Call the function of a reduction or scan on whole blocks: those of the left side first."""
    values = [self.to_tensor(block, types[number % len(types)]) for number, block in enumerate(blocks)]
    results = self.combine_fn(*values)
    results = results if isinstance(results, (tuple, list, tl.tuple)) else (results,)
    return [
        np.broadcast_to(narrowed(widened(result.handle), type_), blocks[0].shape)
        for result, type_ in zip(results, types, strict=True)
    ]


def rounded(self: Any, blocks: list[Any], like: tuple[Any, ...]) -> list[Any]:
    """Return tensors of the types of those that a reduction or scan was given."""
    return [
        self.to_tensor(narrowed(block, value.dtype), value.dtype)
        for block, value in zip(blocks, like, strict=True)
    ]
