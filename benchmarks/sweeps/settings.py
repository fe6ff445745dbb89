"""Dump one small network under many settings of inductor, each of which changes how code is written.

    python -m benchmarks.sweeps.settings OUT [--device cpu|cuda] [--jobs N] [--only PATTERN]

A setting that the installed torch does not have is left out. OUT is as in `op_db.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch  # noqa: TID253 - a file of torch programs
import torch._inductor.config  # noqa: TID253 - as above
from torch import nn  # noqa: TID253 - as above

from benchmarks.sweeps.run import main

_COMMON = {
    "memory_planning": True,
    "cpp_wrapper": True,
    "size_asserts": False,
    "nan_asserts": True,
    "benchmark_kernel": True,
    "profiler_mark_wrapper_call": True,
    "generate_intermediate_hooks": True,
    "comment_origin": True,
    "inplace_buffers": False,
    "allow_buffer_reuse": False,
    "fallback_random": True,
    "emulate_precision_casts": True,
    "aggressive_fusion": True,
    "epilogue_fusion": False,
    "max_fusion_size": 1,
    "realize_reads_threshold": 1,
    "split_reductions": False,
    "layout_optimization": False,
    "loop_ordering_after_fusion": False,
    "pick_loop_orders": False,
    "pattern_matcher": False,
    "joint_graph_constant_folding": False,
    "assert_indirect_indexing": False,
    "debug_index_asserts": True,
    "conv_1x1_as_mm": True,
    "keep_output_stride": False,
    "comprehensive_padding": False,
    "deterministic": True,
    "graph_partition": False,
    "combo_kernels": True,
    "freezing": True,
}
_CPU = {
    "cpp.simdlen": 1,
    "cpp.threads": 1,
    "cpp.dynamic_threads": True,
    "cpp.no_redundant_loops": False,
    "cpp.enable_kernel_profile": True,
    "cpp.enable_loop_tail_vec": False,
    "cpp.descriptive_names": False,
    "cpp.max_horizontal_fusion_size": 1,
    "cpp.enable_tiling_heuristics": False,
}
_CUDA = {
    "profile_bandwidth": True,
    "triton.multi_kernel": 1,
    "triton.use_block_ptr": True,
    "triton.use_tensor_descriptor": True,
    "triton.prefer_nd_tiling": True,
    "triton.tile_reductions": True,
    "triton.force_cooperative_reductions": True,
    "triton.persistent_reductions": False,
    "triton.dense_indexing": True,
    "triton.max_tiles": 3,
    "triton.debug_sync_kernel": True,
    "triton.debug_sync_graph": True,
    "triton.cudagraphs": True,
    "triton.unique_kernel_names": False,
    "triton.unique_user_kernel_names": True,
    "triton.descriptive_names": False,
    "triton.mix_order_reduction": True,
    "triton.codegen_upcast_to_fp32": False,
    "triton.store_cubin": True,
    "triton.native_matmul": True,
    "test_configs.runtime_triton_dtype_assert": True,
}


class Small(nn.Module):
    """A little of everything: convolution, norm, pooling, gather, softmax, matrix products, dropout, scan."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.words, self.out = nn.Embedding(20, 8), nn.Linear(8, 5)

    def forward(self, image: torch.Tensor, words: torch.Tensor) -> torch.Tensor:  # noqa: D102 - its class says it
        x = nn.functional.max_pool2d(self.norm(self.convolution(image)).relu(), 2).flatten(2).transpose(1, 2)
        x = nn.functional.dropout(x, 0.1, self.training)
        w = self.words(words)
        read = (x @ w.transpose(1, 2)).softmax(-1) @ w
        ranked = torch.cat([read.cumsum(1), x.sort(1).values], 1)
        return self.out(ranked + ranked.mean((1, 2), keepdim=True)).square().sum()


def names(device: str) -> list[str]:
    """Return the settings that there are."""
    wanted = {**_COMMON, **(_CPU if device == "cpu" else _CUDA)}
    known = torch._inductor.config.get_config_copy()
    return [name for name in wanted if name in known]


def attempts(name: str, device: str, compiler: Callable[..., Any]) -> Iterator[Callable[[], object]]:
    """Yield the one way to run the network under the setting `name`."""
    yield lambda: run(name, device, compiler)


def run(name: str, device: str, compiler: Callable[..., Any]) -> None:
    """Infer and train under a setting."""
    setting = {name: {**_COMMON, **_CPU, **_CUDA}[name]}
    image, words = torch.randn(2, 3, 18, 18, device=device), torch.randint(0, 20, (2, 7), device=device)
    module = Small().to(device)
    with torch._inductor.config.patch(setting):
        with torch.no_grad():
            compiler(module.eval())(image, words)
        compiler(module.train())(image, words).backward()


if __name__ == "__main__":
    main("benchmarks.sweeps.settings", __doc__)
