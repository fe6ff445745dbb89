"""Which loads and stores of a vectorised C++ loop are done lane by lane, and why.

torch/_inductor/codegen/cpp.py, `CppVecKernel.load` and `_get_store_line`: with stride 0 along the loop a
scalar is broadcast, with stride 1 a vector is moved; else `_load_or_store_non_contiguous` fills an array in a
loop over the lanes. The index of `weight[index[i]]` is a vector itself, so each lane has an address of its
own. `atomic_add_vec` adds lane by lane, too. Only kernels that are in the generated text count. Where all
accesses move whole vectors there is no decision.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.capture.recorders import cpp_nest
from inductor_probe.capture.recorders.cpp_nest import Nest, observe, open_nest, record_nest
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    printed,
)
from inductor_probe.capture.recorders.vectorisation import MOST_ACCESSES
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, Operand, Outcome, TorchFrame

KIND = cpp_nest.KIND
_COSTLIEST_FIRST: tuple[CauseCode, ...] = (
    "atomic-access", "indirect-access", "varying-stride", "constant-stride", "transposed-access"
)  # fmt: skip


class _Access(Struct, frozen=True):
    cause: CauseCode
    node: str
    operation: str
    buffer: str
    index: str
    stride: str = ""


class _Recorder:
    def __init__(self, cpp: Any, log: DecisionLog) -> None:
        self._cpp = cpp
        self._log = log
        self._accesses: WeakKeyDictionary[Any, dict[_Access, TorchFrame]] = WeakKeyDictionary()

    def non_contiguous(self, place: TorchFrame, _: object, kernel: Any, *args: Any, **kwargs: Any) -> None:
        """Keep an access that is done in a loop over the lanes; without a pointer it is an index."""
        pointer, index = args[:2]
        stride = kernel._try_get_const_stride(index, kernel.itervars[kernel.tiling_idx])
        cause: CauseCode = "constant-stride"
        if stride is None:
            temporary = self._cpp.SymT.TMP  # what was loaded or computed before
            is_indirect = any(self._cpp.symbol_is_type(symbol, temporary) for symbol in index.free_symbols)
            cause = "indirect-access" if is_indirect else "varying-stride"
        if pointer is None:
            access = _access(kernel, cause, "index_expr", "", index)
        else:
            is_store = bool(kwargs.get("store_value"))
            buffer = _buffer(kernel.args, str(pointer), is_store=is_store)
            access = _access(kernel, cause, "store" if is_store else "load", buffer, index)
        self._keep(kernel, place, replace(access, stride="" if stride is None else printed(stride)))

    def stored(self, place: TorchFrame, _: object, kernel: Any, *args: Any, **kwargs: Any) -> None:
        """Keep an atomic addition; of one thread it is an ordinary store."""
        name, index, _value, *rest = args
        mode = rest[0] if rest else kwargs.get("mode")
        if mode == "atomic_add" and (self._cpp.config.cpp.dynamic_threads or kernel.num_threads != 1):
            self._keep(kernel, place, _access(kernel, "atomic-access", "store", name, index))

    def transposed(self, place: TorchFrame, _: object, kernel: Any, *args: Any, **kwargs: Any) -> None:
        """Keep an access of a 2-D tile that goes through a transposition."""
        name, _pointer, index, *rest = args
        operation = "store" if (rest[0] if rest else kwargs["is_store"]) else "load"
        self._keep(kernel, place, _access(kernel, "transposed-access", operation, name, index))

    def _keep(self, kernel: Any, place: TorchFrame, access: _Access) -> None:
        if open_nest(self._log) is not None:
            self._accesses.setdefault(kernel, {})[access] = place

    def record(self, nest: Nest) -> None:
        """Record the costliest way in which a vectorised nest reaches memory, with all accesses."""
        removed = nest.cpp.V.graph.removed_buffers
        accesses: dict[_Access, TorchFrame] = {}
        for kernel in nest.kernels if nest.tiled else ():
            for access, place in self._accesses.get(kernel, {}).items():
                if not (access.operation == "store" and access.buffer in removed):
                    accesses[access] = place
        if not accesses:
            record_nest(self._log, nest, "access", None, nest.place)
            return
        ranked = sorted(accesses, key=lambda access: _COSTLIEST_FIRST.index(access.cause))
        cause = ranked[0].cause
        outcome: Outcome = "transposed" if cause == "transposed-access" else "lane-by-lane"
        by_lane = sum(access.cause != "transposed-access" for access in ranked)
        first = ranked[:MOST_ACCESSES]
        operands: dict[str, Operand] = {
            "loops": tuple(nest.loop_name(loop) for loop in nest.tiled),
            "factor": int(nest.answer[0][0]), "by_lane": by_lane, "transposed": len(ranked) - by_lane,
            "nodes": tuple(access.node for access in first),
            "node_operations": tuple(access.operation for access in first),
            "buffers": tuple(access.buffer for access in first),
            "indices": tuple(access.index for access in first),
            "strides": tuple(access.stride for access in first),
            "causes": tuple(access.cause for access in first),
        }  # fmt: skip
        record_nest(self._log, nest, "access", (outcome, cause, operands), accesses[ranked[0]])


def _access(kernel: Any, cause: CauseCode, operation: str, buffer: str, index: Any) -> _Access:
    node = kernel.current_node.get_name() if kernel.current_node is not None else ""
    return _Access(cause, node, operation, buffer, printed(index))


def _buffer(args: Any, pointer: str, *, is_store: bool) -> str:
    """Return the buffer that a pointer of the C++ function is (`in_ptr0`: `arg0_1`).

    A pointer `in_out_ptr0` is several buffers, one after the other in time (torch's InplacedBuffer).
    """
    for inplaced in args.inplace_buffers.values():
        if getattr(inplaced, "inner_name", None) == pointer:
            return str(inplaced.other_names[-1 if is_store else 0])
    names = [*args.output_buffers.items(), *args.input_buffers.items()]
    return next((name for name, value in names if value == pointer), pointer)


def _hook(cpp: Any, log: DecisionLog) -> None:
    recorder = _Recorder(cpp, log)
    wrap(cpp, "CppVecKernel._load_or_store_non_contiguous", log.observed(recorder.non_contiguous))
    wrap(cpp, "CppVecKernel.store", log.observed(recorder.stored))
    wrap(cpp, "CppTile2DKernel.gen_transposed_tile_load_store", log.observed(recorder.transposed))
    observe(cpp, log, recorder.record)


HOOKS = {"torch._inductor.codegen.cpp": _hook}
