"""Words for what `probe doctor` saw, what to do about it, and what environment variables do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from inductor_probe.catalogue.templates import fill
from inductor_probe.model.health import Diagnostic
from inductor_probe.report.units import bytes_text
from inductor_probe.report.words.remarks import sentence, what_and_remedy

_MOST_SHOWN = 60

_EAGER = "torch.compile does nothing: no dump, and timings are of eager"
_SEARCH = "choices are timed while compiling: dumps take longer, and may differ from run to run"
_OWN = "; probe dump sets its own"

VARIABLE_WORDS = {
    # what is dumped
    "TORCH_COMPILE_DEBUG": "every run of torch dumps, with warnings" + _OWN,
    "TORCH_COMPILE_DEBUG_DIR": "dumps go there instead of the working folder",
    "TORCHINDUCTOR_CACHE_DIR": "inductor's caches are there" + _OWN,
    "TRITON_CACHE_DIR": "compiled Triton kernels are there" + _OWN,
    "TORCHINDUCTOR_FX_GRAPH_CACHE": "switches the graph cache" + _OWN,
    "TORCHINDUCTOR_AUTOGRAD_CACHE": "switches the autograd cache" + _OWN,
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "all caches are off: each run compiles everything",
    "TORCH_COMPILE_FORCE_DISABLE_CACHES": "all caches are off: each run compiles everything",
    "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "graphs may come from a remote cache: empty dumps",
    "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE": "graphs may come from a remote cache: empty dumps",
    "TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE": "configurations may come from a remote cache",
    "TORCHINDUCTOR_BUNDLED_AUTOTUNE_REMOTE_CACHE": "configurations may come from a remote cache",
    "TORCH_COMPILE_DISABLE": _EAGER,
    "TORCHDYNAMO_DISABLE": _EAGER,
    "TORCH_COMPILE_OVERRIDE_BACKENDS": "some graphs go to another backend than the script's",
    "TORCH_COMPILE_OVERRIDE_INDUCTOR_CONFIGS": "inductor's settings differ for some graphs",
    "TORCH_COMPILE_OVERRIDE_DYNAMO_CONFIGS": "dynamo's settings differ for some graphs",
    "TORCHDYNAMO_SUPPRESS_ERRORS": "what fails to compile runs eagerly without a warning",
    "TORCHDYNAMO_REPRO_AFTER": "graphs are wrapped for the minifier",
    "TORCHINDUCTOR_FREEZING": "weights become constants: other graphs than without it",
    "TORCHINDUCTOR_CPP_WRAPPER": "the wrapper is C++: other costs apart from the kernels",
    "TORCHINDUCTOR_FX_WRAPPER": "the wrapper is an FX graph, not output_code.py as usual",
    "TORCHINDUCTOR_UNIQUE_KERNEL_NAMES": "kernels have names without what they compute",
    "TORCHINDUCTOR_DEBUG_FUSION": "kernels are commented with the nodes fused in them",
    "TORCHINDUCTOR_BENCHMARK_KERNEL": "each Triton kernel has its own benchmark in output_code.py",
    "TORCHINDUCTOR_LAYOUT_OPTIMIZATION": "channels-last for convolutions is switched",
    "TORCH_LOGS": "torch prints these logs as well",
    "TORCH_TRACE": "torch writes a structured trace there as well",
    "TORCHINDUCTOR_COMPILE_THREADS": "number of workers that compile kernels",
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
    "OMP_NUM_THREADS": "number of threads that kernels are compiled for and run on",
    "MKL_NUM_THREADS": "number of threads of library calls",
    "TORCHINDUCTOR_CUDAGRAPHS": "CUDA graphs replay the launches: less of the host's time",
    "TORCHINDUCTOR_NAN_ASSERTS": "tensors are checked for NaN after each kernel: longer times",
    "TORCHINDUCTOR_SIZE_ASSERTS": "without checks of sizes and strides: shorter calls",
    "TORCHINDUCTOR_PROFILE": "Triton kernels are timed as they run: longer calls",
    "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "each C++ kernel reports to the profiler: longer calls",
    "TORCHINDUCTOR_DEBUG_COMPILE": "C++ kernels are compiled for a debugger, without optimisation",
    "CUDA_LAUNCH_BLOCKING": "each launch on a GPU is synchronous: timings of several kernels are too long",
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "each allocation asks the driver: much longer calls",
    "CUDA_VISIBLE_DEVICES": "torch sees these GPUs only",
    "LD_PRELOAD": "another allocator or OpenMP may run than torch's own",
}

_INSTALL = "install g++ (Debian: apt install g++), or name a compiler with CXX"
_BUILD_REMEDIES = (  # by what compiler, linker or loader says
    ("Python.h", "install Python's headers (Debian: apt install python3-dev)"),
    ("cpp_prefix.h", "reinstall torch: headers that inductor compiles with are missing"),
    ("omp.h", "install OpenMP for this compiler (Debian: apt install libgomp1, or libomp-dev for clang)"),
    ("gomp", "install OpenMP for this compiler (Debian: apt install libgomp1)"),
    ("lomp", "install OpenMP for this compiler (Debian: apt install libomp-dev)"),
    ("fopenmp", "use a compiler with OpenMP: CXX=g++"),
    ("cannot be loaded", "let TMPDIR name a folder from which programs may run (not mounted noexec)"),
    ("No space left", "free some space: see disk"),
    ("Read-only file system", "let TMPDIR name a folder that can be written"),
)
_USES = {
    "dumps": "dumps",
    "temporary": "temporary files, and caches of probe dump",
    "caches": "inductor's own caches",
    "record": "the record of what was made here",
}
_FOLDER_REMEDIES = {
    "dumps": "go elsewhere, or name a folder that can be written with --out",
    "temporary": "let TMPDIR name a folder that can be written",
    "caches": "let TORCHINDUCTOR_CACHE_DIR name a folder that can be written",
    "record": "let XDG_STATE_HOME name a folder that can be written; until then bench files need --trust",
}

_TORCH = "{version}, built for {build}[ {toolkit}], in {folder}"
_COMPILER = "{version|name}, {path}"
_VECTORS = "{vectors}"
_CACHES = (
    "{state}, in {folder} ({bytes_text} in {files:# file})[: a script run {on} compiles nothing that it "
    "finds there]; probe dump has empty ones of its own"
)
_NOT_IMPORTABLE = "cannot be imported: {error|'no answer'}"
_NOT_AVAILABLE = "not available on torch {torch}: {error}"
_UNSET = "unset {name}, unless that is what you want"
_GPU = "{index}: {name|'a GPU'}"
_GPU_STATE = (
    _GPU + "[, driver {driver}][, {sm_mhz:g} of {max_sm_mhz:g} MHz][ ({idle_text})]"
    "[, {power_w:.0f} of {limit_w:.0f} W][, {temperature_c:g} C][, {unknown}]"
)
_PROCESSORS = (
    "{processors:# processor}, {busy:.1f} of them busy, {quota_text|'no quota'}[, governor {governors}]"
)
_TIMER = (
    "time.perf_counter has steps of {step_ns:.0f} ns[, from {source}]",
    "give short kernels a larger --budget; a machine whose clock source is tsc has finer steps",
)
_FOLDER = (
    "{use_text} in {folder}[ ({to_be_made})]: {free} free",
    "free some space: probe runs --older-than 7d lists old runs",
)

HEALTH_WORDS: Mapping[str, tuple[str, str]] = {  # what was seen, and what to do about it where that is needed
    "python": ("{version}, {executable}", ""),
    "torch": (_TORCH + "; the tests passed with it", ""),
    "torch-not-installed": (
        "not installed in {executable}",
        "pip install torch, or run probe with the Python that has it",
    ),
    "torch-not-importable": (
        _NOT_IMPORTABLE,
        "see what `{executable} -c 'import torch, torch._inductor.config'` says",
    ),
    "torch-too-old": (
        _TORCH + ": it is older than what probe dump supports",
        "install torch {oldest} or later to dump and time; reading dumps needs none",
    ),
    "torch-not-passed": (
        _TORCH + ": the tests passed with {passed}, and were not run with it",
        "take one of those where a dump lacks something: its notes say what this one does not have",
    ),
    "places": ("torch has all {asked} private places that dumps read", ""),
    "places-missing": (
        "not available on torch {torch}: {missing:999}",
        "do without what is recorded there, or take another release of torch",
    ),
    "places-not-available": (_NOT_AVAILABLE, "see the notes of a dump: probe dump check_hflip.py"),
    "torch-without-gpu": (
        _TORCH + ", and there is a GPU",
        "install a build for the GPU, if kernels for it are what you want",
    ),
    "triton": ("{version}", ""),
    "triton-not-asked": ("not checked, as torch is missing", ""),
    "triton-not-needed": ("not installed; kernels for the CPU are C++ and need none", ""),
    "triton-not-importable": (
        _NOT_IMPORTABLE,
        "install the triton that this torch was released with; C++ kernels do not need it",
    ),
    "triton-not-installed": (
        "not installed: inductor cannot compile for the GPU",
        "pip install triton, the version that this torch was released with",
    ),
    "debugpy": ("{version}", ""),
    "debugpy-not-installed": ("not installed: stepping into the compiler needs it", "pip install debugpy"),
    "compiler": (_COMPILER + "; compiled, linked and ran a kernel as inductor does in {seconds:.1f} s", ""),
    "compiler-not-found": ("there is no {name} on the PATH", _INSTALL),
    "compiler-not-tried": (_COMPILER + "; not tried, without torch's flags", ""),
    "compile-command-not-available": (
        f"{_COMPILER}; {_NOT_AVAILABLE}",
        "see whether it compiles: probe dump check_hflip.py",
    ),
    "compiler-not-accepted": (_COMPILER + "; torch finds none that works: {error|'no answer'}", _INSTALL),
    "kernel-not-built": (_COMPILER + "; a kernel compiled as inductor does fails: {error}", "{build_remedy}"),
    "openmp": ("{flag}; the kernel ran on {threads:# thread}", ""),
    "openmp-not-used": (
        "inductor uses none: C++ kernels run on one thread",
        "name a compiler that has OpenMP with CXX",
    ),
    "vectors": (_VECTORS, ""),
    "vectors-narrow": (_VECTORS + "[; the processor has {processor_bits} bits]", "{vectors_remedy}"),
    "caches": (_CACHES, ""),
    "caches-remote": (
        _CACHES + "; remote caches are on ({remote}): they hide compiles; probe dump turns them off",
        "unset TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE and similar variables to see every compile",
    ),
    "caches-not-available": (_NOT_AVAILABLE, "look for them yourself; probe dump has caches of its own"),
    "limits": ("{limits} (torch's defaults), after that eager", ""),
    "limits-changed": ("{limits}; torch's defaults: {changed}", "look for what sets them when Python starts"),
    "limits-not-available": (_NOT_AVAILABLE, "watch for limits that probe dump says were hit"),
    "variables-none": ("none of torch, inductor, triton or OpenMP is set", ""),
    "variable-harmless": ("{assignment}: has the same effect as not setting it", ""),
    "variable-effect": ("{assignment}: {effect}", _UNSET),
    "variable-read": ("{assignment}: {reader}", _UNSET),
    "variable-not-read": ("{assignment}: torch[ {torch}] does not read it", "{correction}"),
    "variable-not-known": ("{assignment}: no known effect on dumps or timings", ""),
    "gpu": (_GPU_STATE, ""),
    "gpu-none": ("none: inductor compiles C++ for the CPU", ""),
    "gpu-not-usable": (
        _GPU + ", and torch cannot use it: {error|'no reason given'}",
        "see whether nvidia-smi sees it, and whether the driver is as new as torch's CUDA",
    ),
    "gpu-amd": (_GPU + "; clocks of AMD GPUs are not read", "watch rocm-smi while something is timed"),
    "gpu-not-readable": (_GPU + "; {error|'its clocks are not known'}", "pip install nvidia-ml-py"),
    "gpu-hazards": (
        _GPU_STATE,
        "wait until it is cool and free, or take another: nvidia-smi -q -d PERFORMANCE says more",
    ),
    "processors": (_PROCESSORS, ""),
    "processors-hazards": (_PROCESSORS, ""),
    "timer": _TIMER,
    "timer-coarse": _TIMER,
    "folder": _FOLDER,
    "little-space": _FOLDER,
    "folder-not-writable": ("{not_writable}: {error}", "{folder_remedy}"),
}


def text_and_remedy(diagnostic: Diagnostic) -> tuple[str, str | None]:
    """Return what was seen, without a final period, and what to do about it; None exactly where all is ok."""
    text, remedy = (fill(template, _values(diagnostic)) for template in HEALTH_WORDS[diagnostic.code])
    if diagnostic.code == "processors-hazards":
        hazards = [what_and_remedy(remark) for remark in diagnostic.remarks]
        text = "; ".join([text, *(what for what, _ in hazards)])
        remedy = "; ".join(dict.fromkeys(advice for _, advice in hazards))
    elif diagnostic.code == "gpu-hazards":
        text = "; ".join([text, *map(sentence, diagnostic.remarks)])
    return text, None if diagnostic.level == "ok" else remedy


def _values(diagnostic: Diagnostic) -> dict[str, Any]:
    """Return the facts of a diagnostic, and what templates need beside them."""
    facts: defaultdict[str, Any] = defaultdict(lambda: None, diagnostic.facts)
    match diagnostic.about:
        case "compiler":
            remedies = (remedy for part, remedy in _BUILD_REMEDIES if part in (facts["error"] or ""))
            facts["build_remedy"] = next(remedies, f"fix what it says, or {_INSTALL}")
        case "vectors":
            facts["vectors"] = (
                f"{facts['isa']}, {facts['bits']} bits"
                if facts["isa"]
                else "none: C++ kernels are not vectorised"
            )
            facts["vectors_remedy"] = (
                f"unset {facts['variable']}, unless that is what you want"
                if facts["variable"]
                else "torch compiles and loads a program for each kind: see compiler, or take a later one"
            )
        case "caches" if "folder" in facts:
            facts |= _cache_values(facts)
        case "recompiles":
            facts |= _limit_values(facts)
        case "variables" if facts["name"]:
            facts |= _variable_values(facts)
        case "gpu":
            facts["idle_text"] = "idle" if facts["idle"] and facts["sm_mhz"] and facts["max_sm_mhz"] else None
            known = [facts[name] for name in ("driver", "sm_mhz", "power_w", "temperature_c")]
            facts["unknown"] = None if any(known) else "nothing of its state can be read"
        case "processors":
            quota = facts["quota"]
            facts["quota_text"] = None if quota is None else f"a quota of {quota:g} by the control group"
        case "timer":
            facts["step_ns"] = facts["step_s"] and facts["step_s"] * 1e9
        case "disk":
            use, folder = _USES[facts["use"]], facts["folder"]
            facts |= {"use_text": use, "folder_remedy": _FOLDER_REMEDIES[facts["use"]]}
            facts |= {"free": bytes_text(facts["free_bytes"])}
            facts |= {"to_be_made": None if facts["exists"] else "to be made"}
            facts["not_writable"] = (
                f"{use} cannot be written in {folder}"
                if folder
                else "no folder for temporary files can be written"
            )
    return facts


def _cache_values(facts: Mapping[str, Any]) -> dict[str, Any]:
    names = {"FX graphs": "fx_graph", "autograd": "autograd", "autotuning": "autotune"}
    enabled = [] if facts["disabled"] else [name for name, key in names.items() if facts[key]]
    return {
        "state": f"on for {', '.join(enabled)}" if enabled else "all off",
        "on": "by itself" if enabled else None,
        "bytes_text": f"{'' if facts['whole'] else 'more than '}{bytes_text(facts['bytes'])}",
    }


def _limit_values(facts: Mapping[str, Any]) -> dict[str, Any]:
    scopes = {"recompile_limit": "of one function", "accumulated_recompile_limit": "of all functions"}
    limits = [f"{scope} at most {facts[name]}" for name, scope in scopes.items() if facts[name] is not None]
    defaults = {name: facts[f"{name}_default"] for name in scopes}
    changed = [f"{name} is {value}" for name, value in defaults.items() if value not in (None, facts[name])]
    return {"limits": ", ".join(limits), "changed": ", ".join(changed)}


def _variable_values(facts: Mapping[str, Any]) -> dict[str, Any]:
    name, value = facts["name"], facts["value"]
    shown = value if value is None or len(value) <= _MOST_SHOWN else f"{value[: _MOST_SHOWN - 1]}…"
    return {
        "assignment": f"{name} is set" if value is None else f"{name}={shown}",
        "effect": VARIABLE_WORDS.get(name),
        "reader": f"sets {facts['setting']}" if facts["setting"] else f"read by {facts['file']}",
        "correction": f"did you mean {facts['near']}?" if facts["near"] else f"unset {name}",
    }
