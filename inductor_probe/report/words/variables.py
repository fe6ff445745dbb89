"""What environment variables do to a dump or a timing, as far as that can be said in a line."""

from __future__ import annotations

_EAGER = "torch.compile does nothing: no dump, and timings are of eager"
_SEARCH = "choices are timed while compiling: dumps take longer, and may differ from run to run"
_SYNC = "each launch on a GPU waits for its end: timings with several kernels are too long"
_OWN = "; probe dump sets its own"

VARIABLE_WORDS = {
    # what is dumped
    "TORCH_COMPILE_DEBUG": "every run of torch dumps, with warnings" + _OWN,
    "TORCH_COMPILE_DEBUG_DIR": "dumps go there instead of the working folder",
    "TORCHINDUCTOR_CACHE_DIR": "inductor's caches are there" + _OWN,
    "TRITON_CACHE_DIR": "compiled Triton kernels are there" + _OWN,
    "TORCHINDUCTOR_FX_GRAPH_CACHE": "switches the graph cache" + _OWN,
    "TORCHINDUCTOR_AUTOGRAD_CACHE": "switches the autograd cache" + _OWN,
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "all caches are off: each run compiles anew",
    "TORCH_COMPILE_FORCE_DISABLE_CACHES": "all caches are off: each run compiles anew",
    "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "graphs may come from a remote cache: empty dumps",
    "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE": "graphs may come from a remote cache: empty dumps",
    "TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE": "configurations may come from a remote cache",
    "TORCHINDUCTOR_BUNDLED_AUTOTUNE_REMOTE_CACHE": "configurations may come from a remote cache",
    "TORCH_COMPILE_DISABLE": _EAGER,
    "TORCHDYNAMO_DISABLE": _EAGER,
    "TORCH_COMPILE_OVERRIDE_BACKENDS": "some graphs go to another backend than the script's",
    "TORCH_COMPILE_OVERRIDE_INDUCTOR_CONFIGS": "inductor's settings differ for some graphs",
    "TORCH_COMPILE_OVERRIDE_DYNAMO_CONFIGS": "dynamo's settings differ for some graphs",
    "TORCHDYNAMO_SUPPRESS_ERRORS": "what fails to compile runs eager without a word",
    "TORCHDYNAMO_REPRO_AFTER": "graphs are wrapped for the minifier",
    "TORCHINDUCTOR_FREEZING": "weights become constants: other graphs than without it",
    "TORCHINDUCTOR_CPP_WRAPPER": "the wrapper is C++: other costs beside the kernels",
    "TORCHINDUCTOR_FX_WRAPPER": "the wrapper is an FX graph, not output_code.py as usual",
    "TORCHINDUCTOR_UNIQUE_KERNEL_NAMES": "kernels have names without what they compute",
    "TORCHINDUCTOR_DEBUG_FUSION": "kernels are commented with the nodes fused in them",
    "TORCHINDUCTOR_BENCHMARK_KERNEL": "each Triton kernel has its own benchmark in output_code.py",
    "TORCHINDUCTOR_LAYOUT_OPTIMIZATION": "channels-last for convolutions is switched",
    "TORCH_LOGS": "torch prints these logs as well",
    "TORCH_TRACE": "torch writes a structured trace there as well",
    "TORCHINDUCTOR_COMPILE_THREADS": "so many workers compile kernels",
    "TORCHINDUCTOR_WORKER_START": "how compile workers are started",
    "TRITON_KERNEL_OVERRIDE": "Triton runs kernels from TRITON_OVERRIDE_DIR, not those of the dump",
    "TRITON_KERNEL_DUMP": "Triton writes its IR for each kernel",
    "TRITON_INTERPRET": "Triton kernels run in Python: timings are of the interpreter",
    "TRITON_ALWAYS_COMPILE": "Triton never takes a kernel from its cache",
    "TRITON_DEBUG": "Triton kernels check as they run: other code, longer times",
    # which code is generated
    "TORCHINDUCTOR_MAX_AUTOTUNE": _SEARCH,
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM": _SEARCH,
    "TORCHINDUCTOR_MAX_AUTOTUNE_POINTWISE": _SEARCH,
    "TORCHINDUCTOR_COORDINATE_DESCENT_TUNING": _SEARCH,
    "TORCHINDUCTOR_BENCHMARK_FUSION": "fusions are timed before they are made: dumps may differ",
    "TORCHINDUCTOR_MULTI_KERNEL": "several kernels are made for a reduction, one chosen as it runs",
    "TORCHINDUCTOR_VEC_ISA_OK": "0 turns vectors off, 1 takes them untried",
    "ATEN_CPU_CAPABILITY": "C++ kernels, and torch's own, use no better vectors than that",
    "CXX": "compiles C++ kernels",
    "TORCHINDUCTOR_CPP_DYNAMIC_THREADS": "C++ kernels ask for their threads as they run",
    "TORCHINDUCTOR_CPP_ENABLE_UNSAFE_MATH_OPT_FLAG": "-funsafe-math-optimizations: other results",
    "TORCHINDUCTOR_USE_FAST_MATH": "fast, less exact mathematics in Triton kernels",
    # how long it takes
    "OMP_NUM_THREADS": "kernels are compiled for, and run on, so many threads",
    "MKL_NUM_THREADS": "library calls run on so many threads",
    "TORCHINDUCTOR_CUDAGRAPHS": "CUDA graphs replay the launches: less of the host's time",
    "TORCHINDUCTOR_NAN_ASSERTS": "tensors are checked for NaN after each kernel: longer times",
    "TORCHINDUCTOR_SIZE_ASSERTS": "without checks of sizes and strides: shorter calls",
    "TORCHINDUCTOR_PROFILE": "Triton kernels are timed as they run: longer calls",
    "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "each C++ kernel tells the profiler: longer calls",
    "TORCHINDUCTOR_DEBUG_COMPILE": "C++ kernels are compiled for a debugger, without optimisation",
    "CUDA_LAUNCH_BLOCKING": _SYNC,
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "each allocation asks the driver: much longer calls",
    "CUDA_VISIBLE_DEVICES": "torch sees these GPUs only",
    "LD_PRELOAD": "another allocator or OpenMP may run than torch's own",
}
