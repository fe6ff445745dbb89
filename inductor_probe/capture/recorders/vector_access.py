"""Which loads and stores of a vectorised C++ loop are done lane by lane, and why.

torch/_inductor/codegen/cpp.py, `CppVecKernel.load` and `_get_store_line`: with stride 0 along the loop a
scalar is broadcast, with stride 1 a vector is moved; else `_load_or_store_non_contiguous` fills an array in a
loop over the lanes. The index of `weight[index[i]]` is a vector itself, so each lane has an address of its
own. `atomic_add_vec` adds lane by lane, too. Only kernels that are in the generated text count. Where all
accesses move whole vectors there is no decision.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from inductor_probe.capture.recorders.base import Call, Cause, Operands, sees
from inductor_probe.capture.recorders.cpp_nest import MOST_ACCESSES, Access, Nest, OfNests, first_accesses
from inductor_probe.capture.recorders.decision_log import DecisionLog, node_in, printed
from inductor_probe.model.decision import CauseCode, Outcome, TorchFrame

_CPP = "torch._inductor.codegen.cpp"
_COSTLIEST_FIRST: tuple[CauseCode, ...] = (
    "atomic-access", "indirect-access", "varying-stride", "constant-stride", "transposed-access"
)  # fmt: skip
_Costly: TypeAlias = tuple[CauseCode, Access]


class VectorAccess(OfNests):
    """Keeps the accesses of each kernel that move no whole vectors, each with why and where."""

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self._accesses: WeakKeyDictionary[Any, dict[_Costly, TorchFrame]] = WeakKeyDictionary()

    @sees(_CPP, "CppVecKernel._load_or_store_non_contiguous")
    def non_contiguous(self, call: Call, kernel: Any, *args: Any, **kwargs: Any) -> None:
        """Keep an access that is done in a loop over the lanes; without a pointer it is an index."""
        pointer, index = args[:2]
        stride = kernel._try_get_const_stride(index, kernel.itervars[kernel.tiling_idx])
        cause: CauseCode = "constant-stride"
        if stride is None:
            cpp: Any = sys.modules[_CPP]
            temporary = cpp.SymT.TMP  # what was loaded or computed before
            is_indirect = any(cpp.symbol_is_type(symbol, temporary) for symbol in index.free_symbols)
            cause = "indirect-access" if is_indirect else "varying-stride"
        is_store = bool(kwargs.get("store_value"))
        operation = "index_expr" if pointer is None else "store" if is_store else "load"
        buffer = "" if pointer is None else _buffer(kernel.args, str(pointer), is_store=is_store)
        text = "" if stride is None else printed(stride)
        access = Access(node_in(kernel), operation, buffer, printed(index), text, contiguous=False)
        self._keep(call, kernel, cause, access)

    @sees(_CPP, "CppVecKernel.store")
    def stored(self, call: Call, kernel: Any, *args: Any, **kwargs: Any) -> None:
        """Keep an atomic addition; of one thread it is an ordinary store."""
        name, index, _value, *rest = args
        mode = rest[0] if rest else kwargs.get("mode")
        is_shared = sys.modules[_CPP].config.cpp.dynamic_threads or kernel.num_threads != 1
        if mode == "atomic_add" and is_shared:
            access = Access(node_in(kernel), "store", name, printed(index), "", contiguous=False)
            self._keep(call, kernel, "atomic-access", access)

    @sees(_CPP, "CppTile2DKernel.gen_transposed_tile_load_store")
    def transposed(self, call: Call, kernel: Any, *args: Any, **kwargs: Any) -> None:
        """Keep an access of a 2-D tile that goes through a transposition."""
        name, _pointer, index, *rest = args
        operation = "store" if (rest[0] if rest else kwargs["is_store"]) else "load"
        access = Access(node_in(kernel), operation, name, printed(index), "", contiguous=False)
        self._keep(call, kernel, "transposed-access", access)

    def _keep(self, call: Call, kernel: Any, cause: CauseCode, access: Access) -> None:
        if self.nests.now is not None:
            self._accesses.setdefault(kernel, {})[cause, access] = call.place

    def record_nest(self, nest: Nest) -> None:
        """Record the costliest way in which a vectorised nest reaches memory, with all accesses."""
        removed = nest.cpp.V.graph.removed_buffers
        places: dict[_Costly, TorchFrame] = {}
        for kernel in nest.kernels if nest.tiled else ():
            for (cause, access), place in self._accesses.get(kernel, {}).items():
                if not (access.operation == "store" and access.buffer in removed):
                    places[cause, access] = place
        if not places:
            self.answer(nest, "access", None, None, nest.place)
            return
        ranked = sorted(places, key=lambda costly: _COSTLIEST_FIRST.index(costly[0]))
        causes = [cause for cause, _ in ranked]
        transposed = causes.count("transposed-access")
        operands: Operands = {
            "loops": tuple(nest.loop_name(loop) for loop in nest.tiled),
            "factor": int(nest.answer[0][0]), "by_lane": len(ranked) - transposed, "transposed": transposed,
            **first_accesses([access for _, access in ranked]), "causes": tuple(causes[:MOST_ACCESSES]),
        }  # fmt: skip
        outcome: Outcome = "transposed" if causes[0] == "transposed-access" else "lane-by-lane"
        self.answer(nest, "access", outcome, Cause(causes[0], operands), places[ranked[0]])


def _buffer(args: Any, pointer: str, *, is_store: bool) -> str:
    """Return the buffer that a pointer of the C++ function is (`in_ptr0`: `arg0_1`).

    A pointer `in_out_ptr0` is several buffers, one after the other in time (torch's InplacedBuffer).
    """
    for inplaced in args.inplace_buffers.values():
        if getattr(inplaced, "inner_name", None) == pointer:
            return str(inplaced.other_names[-1 if is_store else 0])
    names = [*args.output_buffers.items(), *args.input_buffers.items()]
    return next((name for name, value in names if value == pointer), pointer)
