"""Whether a Triton kernel computes its indices in int32 or int64, and which size decided that.

torch/_inductor/codegen/simd_kernel_features.py, `select_index_dtype`: all elements of the kernel, and of each
buffer that it uses, must be as many as an int32 can count. For example a batch of four 8192 x 16384 float
images with four channels has 2**31 elements, so that its kernel divides int64 indices, where the kernel of
one image does not. What it asks of each size is watched, too: the limit is torch's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from inductor_probe.capture.branches import CallPath, SeenTest
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    cause_of_branch,
    inner_path,
    size_of,
    tests_of,
)
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, Outcome, TorchFrame

KIND: DecisionKind = "index-width"

_CHOOSES, _ASKS = "SIMDKernelFeatures.select_index_dtype", "SIMDScheduling.can_use_32bit_indexing"
_FITS = "expr_fits_within_32bit"


@dataclass
class _Recorder:
    log: DecisionLog

    def chosen(self, place: TorchFrame, path: CallPath | None, dtype: Any, features: Any) -> None:
        """Record the index type of a kernel. Torch keeps its answer, and asks it several times."""
        nodes = features.scheduler_nodes()
        names = tuple(node.get_name() for node in nodes)
        if path is None and self.log.latest(KIND, names) is not None:
            return
        graph = sys.modules["torch._inductor.virtualized"].V.graph
        used = {name for node in nodes for name in (*node.get_buffer_names(), *node.used_buffer_names())}
        sizes = dict(_sizes(sorted(used), graph))
        operands: dict[str, Operand] = {"numel": size_of(features.numel * features.reduction_numel)}
        asked = inner_path(path.inner, _ASKS) if path is not None else None
        compared = _compared(asked)
        limit = compared.values[1] if compared is not None else None
        known = {name: size for name, size in sizes.items() if isinstance(size, int)}
        if isinstance(limit, int):
            operands["limit"] = limit
            large = {name: size for name, size in known.items() if size > limit}
            most = max(known.values(), default=0)
            largest = large or {name: size for name, size in known.items() if size == most}
            if largest:
                operands |= {"buffers": tuple(largest), "buffer_elements": most}
        outcome: Outcome = "int32" if str(dtype).endswith("int32") else "int64"
        cause: CauseCode = "sizes-fit-int32"
        if outcome == "int64":
            cause = cause_of_branch(asked, KIND)
            if cause != "unlisted-test" and compared is not None and not isinstance(compared.values[0], int):
                cause = "symbolic-size"
        tests = tests_of(path if cause == "unlisted-test" else asked)
        self.log.record(KIND, (names,), outcome, cause, place, operands=operands, key=names, tests=tests)


def _compared(path: CallPath | None) -> SeenTest | None:
    """Return the last comparison of a size with the limit."""
    fits = inner_path(path.inner, _FITS) if path is not None else None
    return fits.tested("? <= ?") if fits is not None else None


def _sizes(names: Iterable[str], graph: Any) -> Iterable[tuple[str, int | str]]:
    """Yield the elements that the storage of each buffer spans."""
    for name in names:
        buffer = graph.get_buffer(name)
        if buffer is not None and buffer.has_tensor_output():
            yield name, size_of(buffer.get_layout().storage_size())


def _hook_features(features: Any, log: DecisionLog) -> None:
    log.watch(features, _CHOOSES)
    wrap(features, _CHOOSES, log.followed(_Recorder(log).chosen))


HOOKS = {
    "torch._inductor.codegen.simd_kernel_features": _hook_features,
    "torch._inductor.codegen.simd": lambda module, log: log.watch(module, _ASKS),
    "torch._inductor.utils": lambda module, log: log.watch(module, _FITS),
}
