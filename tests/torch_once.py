"""What torch imports and does once in a process, before its first graph: `torch_server.py` runs this file."""

from __future__ import annotations

import importlib
import logging
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from unittest.mock import patch

import torch
from torch._inductor import codecache, cpp_builder, cpu_vec_isa

LOADED = (
    "torch._inductor.compile_fx",
    "torch._dynamo.convert_frame",
    "torch._dynamo.repro.after_dynamo",
    "torch._export.passes.collect_tracepoints_pass",
    "torch.export._trace",
    "torch._higher_order_ops.passes.inline_invoke_subgraph",
    "torch._inductor.select_algorithm",
    "torch._inductor.hooks",
    "torch._inductor.codegen.cpp",
    "torch._inductor.codegen.cpp_wrapper_cpu_array_ref",
    "torch._inductor.codegen.cpp_wrapper_gpu",
    "torch._inductor.codegen.cuda_combined_scheduling",
    "torch._inductor.codegen.halide",
    "torch._inductor.codegen.memory_planning",
    "torch._inductor.fx_passes.freezing_patterns",
    "torch._inductor.fx_passes.fuse_attention",
    "torch._inductor.fx_passes.mkldnn_fusion",
    "torch._inductor.fx_passes.pad_mm",
    "torch._inductor.fx_passes.serialized_patterns._sfdp_pattern_1",
    "torch._inductor.runtime.caching",
    "torch.utils.flop_counter",
    "setuptools.command.build_ext",
    "sympy.combinatorics.tensor_can",
    "sympy.physics.units",
    "torch._dynamo.backends.cudagraphs",
    "torch._dynamo.backends.distributed",
    "torch._dynamo.backends.inductor",
    "torch._dynamo.backends.onnxrt",
    "torch._dynamo.backends.tensorrt",
    "torch._dynamo.backends.torchxla",
    "torch._dynamo.backends.tvm",
    "torch._dynamo.dce_extra_outputs",
    "torch._export.passes._node_metadata_hook",
    "torch._functorch._activation_checkpointing.remat_using_tags_for_fwd_loss_bwd_graph_pass",
    "torch._functorch._aot_autograd.subclass_codegen",
    "torch._inductor.bounds",
    "torch._inductor.codegen.cpp_wrapper_mps",
    "torch._inductor.codegen.cpu_device_op_overrides",
    "torch._inductor.codegen.cuda.device_op_overrides",
    "torch._inductor.codegen.mps",
    "torch._inductor.codegen.mps_device_op_overrides",
    "torch._inductor.codegen.mtia.device_op_overrides",
    "torch._inductor.codegen.pallas",
    "torch._inductor.codegen.python_wrapper_mtia",
    "torch._inductor.codegen.segmented_tree",
    "torch._inductor.codegen.wrapper_fxir",
    "torch._inductor.codegen.xpu.device_op_overrides",
    "torch._inductor.codegen.xpu.xpu_combined_scheduling",
    "torch._inductor.compiler_bisector",
    "torch._inductor.extern_node_serializer",
    "torch._subclasses.schema_check_mode",
    "torch.fx.experimental.validator",
    "torch.utils.cpp_extension",
)
"""What compiling the first graph imports, in pieces that bring the rest."""


def do_once() -> None:
    """Do what torch does once in a process, before its first graph, and alike whatever that is.

    It makes the patterns of the passes over FX graphs (`lazy_init` in `torch/_inductor/fx_passes`), hashes
    Triton (`get_system`), asks the compiler which it is, and tries the vector extensions
    (`valid_vec_isa_list`), for which it starts six processes. All are kept by `functools.cache`; with a torch
    that has one of them elsewhere, each fork does that.
    """

    def passes(name: str, *arguments: object) -> None:
        importlib.import_module(f"torch._inductor.fx_passes.{name}").lazy_init(*arguments)

    def compiler() -> None:
        cpp_builder.get_compiler_version_info(cpp_builder.get_cpp_compiler())
        cpp_builder.is_clang()
        cpp_builder.is_intel_compiler()

    each: list[Callable[[], object]] = [
        lambda: passes("pre_grad"),
        lambda: passes("post_grad"),
        lambda: passes("joint_graph", torch.device("cpu")),
        lambda: codecache.CacheBase.get_system(),  # noqa: PLW0108 - it may be missing
        compiler,
        lambda: cpu_vec_isa.valid_vec_isa_list(),  # noqa: PLW0108 - as above
    ]
    trace = logging.getLogger("torch.__trace")
    # With its handlers, a file of all forks would be opened; the folder is for the programs that are tried.
    with patch.object(trace, "handlers", []), tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        for do in each:
            with suppress(ImportError, AttributeError, TypeError):
                do()


if __name__ == "__main__":
    for module in LOADED:
        with suppress(ImportError):  # of another torch
            importlib.import_module(module)
    do_once()
