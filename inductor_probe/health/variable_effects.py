"""What environment variables do to a dump or a timing, as far as that can be said in a line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effect:
    """What a variable does.

    Attributes:
        text: what it does to a dump or a timing.
        harmless: values with which it does nothing of it: what torch has without it.
        misleads: whether what it does can be taken for something else.
    """

    text: str
    harmless: tuple[str, ...] = ("0", "")
    misleads: bool = True


_EAGER = "torch.compile does nothing: no dump, and timings are of eager"
_SEARCH = "choices are timed while compiling: dumps take longer, and may differ from run to run"
_SYNC = "each launch on a GPU waits for its end: timings with several kernels are too long"
_ON = ("1",)
_EMPTY = ("",)
_OWN = "; probe dump sets its own"

EFFECTS: dict[str, Effect] = {
    # what is dumped
    "TORCH_COMPILE_DEBUG": Effect("every run of torch dumps, with warnings" + _OWN, misleads=False),
    "TORCH_COMPILE_DEBUG_DIR": Effect("dumps go there instead of the working folder", (), misleads=False),
    "TORCHINDUCTOR_CACHE_DIR": Effect("inductor's caches are there" + _OWN, (), misleads=False),
    "TRITON_CACHE_DIR": Effect("compiled Triton kernels are there" + _OWN, (), misleads=False),
    "TORCHINDUCTOR_FX_GRAPH_CACHE": Effect("switches the graph cache" + _OWN, (), misleads=False),
    "TORCHINDUCTOR_AUTOGRAD_CACHE": Effect("switches the autograd cache" + _OWN, (), misleads=False),
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": Effect("all caches are off: each run compiles anew"),
    "TORCH_COMPILE_FORCE_DISABLE_CACHES": Effect("all caches are off: each run compiles anew"),
    "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": Effect("graphs may come from a remote cache: empty dumps"),
    "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE": Effect("graphs may come from a remote cache: empty dumps"),
    "TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE": Effect("configurations may come from a remote cache"),
    "TORCHINDUCTOR_BUNDLED_AUTOTUNE_REMOTE_CACHE": Effect("configurations may come from a remote cache"),
    "TORCH_COMPILE_DISABLE": Effect(_EAGER),
    "TORCHDYNAMO_DISABLE": Effect(_EAGER),
    "TORCH_COMPILE_OVERRIDE_BACKENDS": Effect("some graphs go to another backend than the script's", _EMPTY),
    "TORCH_COMPILE_OVERRIDE_INDUCTOR_CONFIGS": Effect("inductor's settings differ for some graphs", _EMPTY),
    "TORCH_COMPILE_OVERRIDE_DYNAMO_CONFIGS": Effect("dynamo's settings differ for some graphs", _EMPTY),
    "TORCHDYNAMO_SUPPRESS_ERRORS": Effect("what fails to compile runs eager without a word", _EMPTY),
    "TORCHDYNAMO_REPRO_AFTER": Effect("graphs are wrapped for the minifier", _EMPTY),
    "TORCHINDUCTOR_FREEZING": Effect("weights become constants: other graphs than without it"),
    "TORCHINDUCTOR_CPP_WRAPPER": Effect("the wrapper is C++: other costs beside the kernels"),
    "TORCHINDUCTOR_FX_WRAPPER": Effect("the wrapper is an FX graph, not output_code.py as usual"),
    "TORCHINDUCTOR_UNIQUE_KERNEL_NAMES": Effect("kernels have names without what they compute", _ON),
    "TORCHINDUCTOR_DEBUG_FUSION": Effect("kernels are commented with the nodes fused in them"),
    "TORCHINDUCTOR_BENCHMARK_KERNEL": Effect("each Triton kernel has its own benchmark in output_code.py"),
    "TORCHINDUCTOR_LAYOUT_OPTIMIZATION": Effect("channels-last for convolutions is switched", ()),
    "TORCH_LOGS": Effect("torch prints these logs as well", _EMPTY, misleads=False),
    "TORCH_TRACE": Effect("torch writes a structured trace there as well", _EMPTY, misleads=False),
    "TORCHINDUCTOR_COMPILE_THREADS": Effect("so many workers compile kernels", (), misleads=False),
    "TORCHINDUCTOR_WORKER_START": Effect("how compile workers are started", (), misleads=False),
    "TRITON_KERNEL_OVERRIDE": Effect("Triton runs kernels from TRITON_OVERRIDE_DIR, not those of the dump"),
    "TRITON_KERNEL_DUMP": Effect("Triton writes its IR for each kernel"),
    "TRITON_INTERPRET": Effect("Triton kernels run in Python: timings are of the interpreter"),
    "TRITON_ALWAYS_COMPILE": Effect("Triton never takes a kernel from its cache"),
    "TRITON_DEBUG": Effect("Triton kernels check as they run: other code, longer times"),
    # which code is generated
    "TORCHINDUCTOR_MAX_AUTOTUNE": Effect(_SEARCH),
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM": Effect(_SEARCH),
    "TORCHINDUCTOR_MAX_AUTOTUNE_POINTWISE": Effect(_SEARCH),
    "TORCHINDUCTOR_COORDINATE_DESCENT_TUNING": Effect(_SEARCH),
    "TORCHINDUCTOR_BENCHMARK_FUSION": Effect("fusions are timed before they are made: dumps may differ"),
    "TORCHINDUCTOR_MULTI_KERNEL": Effect("several kernels are made for a reduction, one chosen as it runs"),
    "TORCHINDUCTOR_VEC_ISA_OK": Effect("0 turns vectors off, 1 takes them untried", _EMPTY),
    "ATEN_CPU_CAPABILITY": Effect("C++ kernels, and torch's own, use no better vectors than that", _EMPTY),
    "CXX": Effect("compiles C++ kernels", ("", "g++"), misleads=False),
    "TORCHINDUCTOR_CPP_DYNAMIC_THREADS": Effect("C++ kernels ask for their threads as they run"),
    "TORCHINDUCTOR_CPP_ENABLE_UNSAFE_MATH_OPT_FLAG": Effect("-funsafe-math-optimizations: other results"),
    "TORCHINDUCTOR_USE_FAST_MATH": Effect("fast, less exact mathematics in Triton kernels"),
    # how long it takes
    "OMP_NUM_THREADS": Effect("kernels are compiled for, and run on, so many threads", _EMPTY),
    "MKL_NUM_THREADS": Effect("library calls run on so many threads", _EMPTY),
    "TORCHINDUCTOR_CUDAGRAPHS": Effect("CUDA graphs replay the launches: less of the host's time"),
    "TORCHINDUCTOR_NAN_ASSERTS": Effect("tensors are checked for NaN after each kernel: longer times"),
    "TORCHINDUCTOR_SIZE_ASSERTS": Effect("without checks of sizes and strides: shorter calls", _ON),
    "TORCHINDUCTOR_PROFILE": Effect("Triton kernels are timed as they run: longer calls", _EMPTY),
    "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": Effect("each C++ kernel tells the profiler: longer calls"),
    "TORCHINDUCTOR_DEBUG_COMPILE": Effect("C++ kernels are compiled for a debugger, without optimisation"),
    "CUDA_LAUNCH_BLOCKING": Effect(_SYNC),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": Effect("each allocation asks the driver: much longer calls", _EMPTY),
    "CUDA_VISIBLE_DEVICES": Effect("torch sees these GPUs only", (), misleads=False),
    "LD_PRELOAD": Effect("another allocator or OpenMP may run than torch's own", _EMPTY),
}  # fmt: skip
