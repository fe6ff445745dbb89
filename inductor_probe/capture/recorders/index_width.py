"""Whether a Triton kernel computes its indices in int32 or int64, and which size decided that.

torch/_inductor/codegen/simd_kernel_features.py, `select_index_dtype`: all elements of the kernel, and of each
buffer that it uses, must be fewer than 2**31. For example a batch of four 8192 x 16384 float images with four
channels has 2**31 elements, so that its kernel divides int64 indices, where the kernel of one image does not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from inductor_probe.capture.recorders.decision_log import DecisionLog, UnknownPathError, size_of
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, TorchFrame

KIND: DecisionKind = "index-width"

_LIMIT = 2**31 - 1


@dataclass
class _Recorder:
    log: DecisionLog

    def chosen(self, place: TorchFrame, dtype: Any, features: Any) -> None:
        """Record the index type of a kernel. Torch keeps its answer, and asks it several times."""
        nodes = features.scheduler_nodes()
        names = tuple(node.get_name() for node in nodes)
        graph = sys.modules["torch._inductor.virtualized"].V.graph
        used = {name for node in nodes for name in (*node.get_buffer_names(), *node.used_buffer_names())}
        numel = size_of(features.numel * features.reduction_numel)
        sizes = dict(_sizes(sorted(used), graph))
        operands: dict[str, Operand] = {"numel": numel, "limit": _LIMIT}
        is_int32 = str(dtype) == "torch.int32"
        large = {name: size for name, size in sizes.items() if isinstance(size, int) and size > _LIMIT}
        known = {name: size for name, size in sizes.items() if isinstance(size, int)}
        largest = large or {name: size for name, size in known.items() if size == max(known.values())}
        if largest:
            operands |= {"buffers": tuple(largest), "buffer_elements": max(largest.values())}
        if is_int32:
            cause: CauseCode = "sizes-fit-int32"
        elif isinstance(numel, int) and numel > _LIMIT:
            cause = "numel-exceeds-int32"
        elif large:
            cause = "buffer-exceeds-int32"
        else:
            is_known = isinstance(numel, int) and len(known) == len(sizes)
            if is_known and not self.log.is_turned(KIND, names):
                raise UnknownPathError("int64, though every size fits int32")  # since torch 2.14 for an index
            cause = "symbolic-size"
        self.log.record(
            KIND, (names,), "int32" if is_int32 else "int64", cause, place, operands=operands, key=names
        )


def _sizes(names: Iterable[str], graph: Any) -> Iterable[tuple[str, int | str]]:
    """Yield the elements that the storage of each buffer spans."""
    for name in names:
        buffer = graph.get_buffer(name)
        if buffer is not None and buffer.has_tensor_output():
            yield name, size_of(buffer.get_layout().storage_size())


def _hook(features: Any, log: DecisionLog) -> None:
    wrap(features, "SIMDKernelFeatures.select_index_dtype", log.observed(_Recorder(log).chosen))


HOOKS = {"torch._inductor.codegen.simd_kernel_features": _hook}
