"""Whether a Triton kernel computes its indices in int32 or int64, and which size decided that.

torch/_inductor/codegen/simd_kernel_features.py, `select_index_dtype`: all elements of the kernel, and of each
buffer that it uses, must be as many as an int32 can count. For example a batch of four 8192 x 16384 float
images with four channels has 2**31 elements, so that its kernel divides int64 indices, where the kernel of
one image does not. What it asks of each size is watched, too: the limit is torch's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from inductor_probe.capture.branches import CallPath, SeenTest
from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, sees, watches
from inductor_probe.capture.recorders.decision_log import (
    cause_of_branch,
    inner_path,
    names_of,
    size_of,
    tests_of,
)

_CHOOSES, _ASKS = "SIMDKernelFeatures.select_index_dtype", "SIMDScheduling.can_use_32bit_indexing"
_FITS = "expr_fits_within_32bit"


@watches("torch._inductor.codegen.simd", _ASKS)
@watches("torch._inductor.utils", _FITS)
class IndexWidth(Recorder):
    """Records the index type of a kernel."""

    KIND = "index-width"

    @sees("torch._inductor.codegen.simd_kernel_features", _CHOOSES, watches=True)
    def chosen(self, call: Call, features: Any) -> None:
        """Record it with the sizes that it has to reach. Torch keeps its answer, and asks several times."""
        path, nodes = call.path, features.scheduler_nodes()
        names = names_of(nodes)
        if path is None and self.log.latest(self.KIND, names) is not None:
            return
        graph = sys.modules["torch._inductor.virtualized"].V.graph
        used = {name for node in nodes for name in (*node.get_buffer_names(), *node.used_buffer_names())}
        operands: Operands = {"numel": size_of(features.numel * features.reduction_numel)}
        asked = inner_path(path.inner, _ASKS) if path is not None else None
        compared = _compared(asked)
        limit = compared.values[1] if compared is not None else None
        if isinstance(limit, int):
            sizes = {name: size for name, size in _sizes(sorted(used), graph) if isinstance(size, int)}
            operands["limit"] = limit
            most = max(sizes.values(), default=0)
            largest = tuple(name for name, size in sizes.items() if size > limit or size == most <= limit)
            if largest:
                operands |= {"buffers": largest, "buffer_elements": most}
        is_narrow = str(call.result).endswith("int32")
        code = "sizes-fit-int32" if is_narrow else cause_of_branch(asked, self.KIND)
        is_symbolic = compared is not None and not isinstance(compared.values[0], int)
        if not is_narrow and code != "unlisted-test" and is_symbolic:
            code = "symbolic-size"
        cause = Cause(code, operands, tests_of(path if code == "unlisted-test" else asked))
        self.record("int32" if is_narrow else "int64", cause, call.place, names, key=names)


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
