"""Words for what `probe doctor` saw: what it is, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inductor_probe.model.health import Diagnostic
from inductor_probe.report.units import bytes_text, counted
from inductor_probe.report.words.machine import machine_sentence, what_and_remedy
from inductor_probe.report.words.variables import VARIABLE_WORDS

_Facts = dict[str, Any]
_Words = tuple[str, str | None]
_MOST_SHOWN = 60
_INSTALL = "install g++ (Debian: apt install g++), or name a compiler with CXX"
_BUILD_REMEDIES = (  # by what compiler, linker or loader says
    ("Python.h", "install Python's headers (Debian: apt install python3-dev)"),
    ("cpp_prefix.h", "install torch anew: headers that inductor compiles with are missing"),
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
    "record": "let XDG_STATE_HOME name a folder that can be written; till then bench files need --trust",
}


def text_and_remedy(diagnostic: Diagnostic) -> _Words:
    """Return what was seen, without a final period, and what to do about it; None exactly where all is ok."""
    facts = dict(diagnostic.facts)
    if diagnostic.code == "processors-hazards":
        words = [what_and_remedy(remark) for remark in diagnostic.remarks]
        text = "; ".join([_processors(facts)[0], *(what for what, _ in words)])
        return text, "; ".join(dict.fromkeys(remedy for _, remedy in words))
    if diagnostic.code == "gpu-hazards":
        text = "; ".join([_gpu(facts)[0], *map(machine_sentence, diagnostic.remarks)])
        return (
            text,
            "wait until it is cool and free, or take another: nvidia-smi -q -d PERFORMANCE tells more",
        )
    text, remedy = HEALTH_WORDS[diagnostic.code](facts)
    return text, None if diagnostic.level == "ok" else remedy


def _torch_not_installed(facts: _Facts) -> _Words:
    remedy = "pip install torch, or run probe with the Python that has it"
    return f"not installed in {facts['executable']}", remedy


def _torch_not_importable(facts: _Facts) -> _Words:
    remedy = f"see what `{facts['executable']} -c 'import torch, torch._inductor.config'` says"
    return f"cannot be imported: {facts['error'] or 'no answer'}", remedy


def _torch(facts: _Facts) -> _Words:
    toolkit = f" {facts['toolkit']}" if facts["toolkit"] else ""
    return f"{facts['version']}, built for {facts['build']}{toolkit}, in {facts['folder']}", None


def _torch_too_old(facts: _Facts) -> _Words:
    remedy = f"install torch {facts['oldest']} or later to dump and time; reading dumps needs none"
    return f"{_torch(facts)[0]}: its private parts are not known here", remedy


def _torch_without_gpu(facts: _Facts) -> _Words:
    remedy = "install a build for the GPU, if kernels for it are what you want"
    return f"{_torch(facts)[0]}, and there is a GPU", remedy


def _triton_not_importable(facts: _Facts) -> _Words:
    remedy = "install the triton that this torch was released with; C++ kernels do not need it"
    return f"cannot be imported: {facts['error'] or 'no answer'}", remedy


def _triton_not_installed(_: _Facts) -> _Words:
    remedy = "pip install triton, the version that this torch was released with"
    return "not installed: inductor cannot compile for the GPU", remedy


def _compiler_name(facts: _Facts) -> str:
    return f"{facts['version'] or facts['name']}, {facts['path']}"


def _compiler(facts: _Facts) -> _Words:
    seconds = facts["seconds"]
    did = f"compiled, linked and ran a kernel as inductor does in {seconds:.1f} s"
    return f"{_compiler_name(facts)}; {did}", None


def _command_not_available(facts: _Facts) -> _Words:
    text = f"{_compiler_name(facts)}; not available on torch {facts['torch']}: {facts['error']}"
    return text, "see whether it compiles: probe dump check_hflip.py"


def _compiler_not_accepted(facts: _Facts) -> _Words:
    why = facts["error"] or "no answer"
    return f"{_compiler_name(facts)}; torch finds none that works: {why}", _INSTALL


def _kernel_not_built(facts: _Facts) -> _Words:
    error = facts["error"]
    remedies = (remedy for sign, remedy in _BUILD_REMEDIES if sign in error)
    text = f"{_compiler_name(facts)}; a kernel compiled as inductor does fails: {error}"
    return text, next(remedies, f"mend what it says, or {_INSTALL}")


def _openmp(facts: _Facts) -> _Words:
    return f"{facts['flag']}; the kernel ran on {counted(facts['threads'], 'thread')}", None


def _openmp_not_used(_: _Facts) -> _Words:
    text = "inductor uses none: C++ kernels run on one thread"
    return text, "name a compiler that has OpenMP with CXX"


def _vectors(facts: _Facts) -> _Words:
    none = "none: C++ kernels are not vectorised"
    return f"{facts['isa']}, {facts['bits']} bits" if facts["isa"] else none, None


def _vectors_narrow(facts: _Facts) -> _Words:
    processor, variable = facts["processor_bits"], facts["variable"]
    has = f"; the processor has {processor} bits" if processor else ""
    remedy = (
        f"unset {variable}, unless it shall be so"
        if variable
        else "torch compiles and loads a program for each kind: see compiler, or take a later one"
    )
    return _vectors(facts)[0] + has, remedy


def _caches(facts: _Facts) -> _Words:
    size = f"{'' if facts['whole'] else 'more than '}{bytes_text(facts['bytes'])}"
    names = {"FX graphs": "fx_graph", "autograd": "autograd", "autotuning": "autotune"}
    enabled = [] if facts["disabled"] else [name for name, key in names.items() if facts[key]]
    text = f"on for {', '.join(enabled)}" if enabled else "all off"
    text += f", in {facts['folder']} ({size} in {counted(facts['files'], 'file')})"
    text += ": a script run by itself compiles nothing that it finds there" if enabled else ""
    return f"{text}; probe dump has empty ones of its own", None


def _caches_remote(facts: _Facts) -> _Words:
    which = ", ".join(facts["remote"])
    text = f"{_caches(facts)[0]}; remote caches are on ({which}): they hide compiles; probe dump has them off"
    return text, "unset TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE and its like to see every compile"


def _caches_not_available(facts: _Facts) -> _Words:
    text = f"not available on torch {facts['torch']}: {facts['error']}"
    return text, "look for them yourself; probe dump has caches of its own"


def _limits_text(facts: _Facts) -> str:
    whose = {"recompile_limit": "of one function", "accumulated_recompile_limit": "of all functions"}
    limits = [(name, facts[name]) for name in whose if facts[name] is not None]
    return ", ".join(f"{whose[name]} at most {value}" for name, value in limits)


def _limits_changed(facts: _Facts) -> _Words:
    defaults = {name: facts[f"{name}_default"] for name in ("recompile_limit", "accumulated_recompile_limit")}
    changed = [f"{name} is {value}" for name, value in defaults.items() if value not in (None, facts[name])]
    text = f"{_limits_text(facts)}; torch's own {', '.join(changed)}"
    return text, "look for what sets them when Python starts"


def _limits_not_available(facts: _Facts) -> _Words:
    text = f"not available on torch {facts['torch']}: {facts['error']}"
    return text, "watch for limits that probe dump says were hit"


def _variable(facts: _Facts) -> str:
    name, value = facts["name"], facts["value"]
    if value is None:
        return f"{name} is set"
    return f"{name}={value if len(value) <= _MOST_SHOWN else f'{value[: _MOST_SHOWN - 1]}…'}"


def _variable_effect(facts: _Facts) -> _Words:
    return f"{_variable(facts)}: {VARIABLE_WORDS[facts['name']]}", _unset(facts)


def _variable_read(facts: _Facts) -> _Words:
    does = f"sets {facts['setting']}" if facts["setting"] else f"read by {facts['file']}"
    return f"{_variable(facts)}: {does}", _unset(facts)


def _variable_not_read(facts: _Facts) -> _Words:
    remedy = f"did you mean {facts['near']}?" if facts["near"] else f"unset {facts['name']}"
    return f"{_variable(facts)}: torch {facts['torch'] or ''} does not read it", remedy


def _unset(facts: _Facts) -> str:
    return f"unset {facts['name']}, unless that is what you want"


def _gpu_name(facts: _Facts) -> str:
    return f"{facts['index']}: {facts['name'] or 'a GPU'}"


def _gpu(facts: _Facts) -> _Words:
    parts = [f"driver {facts['driver']}" if facts["driver"] else None]
    if facts["sm_mhz"] and facts["max_sm_mhz"]:
        idle = " (idle)" if facts["idle"] else ""
        parts.append(f"{facts['sm_mhz']:g} of {facts['max_sm_mhz']:g} MHz{idle}")
    if facts["power_w"] is not None and facts["limit_w"]:
        parts.append(f"{facts['power_w']:.0f} of {facts['limit_w']:.0f} W")
    if facts["temperature_c"] is not None:
        parts.append(f"{facts['temperature_c']:g} C")
    shown = ", ".join(part for part in parts if part) or "nothing of its state can be read"
    return f"{_gpu_name(facts)}, {shown}", None


def _gpu_not_usable(facts: _Facts) -> _Words:
    remedy = "see whether nvidia-smi sees it, and whether the driver is as new as torch's CUDA"
    return f"{_gpu_name(facts)}, and torch cannot use it: {facts['error'] or 'no reason given'}", remedy


def _gpu_amd(facts: _Facts) -> _Words:
    return f"{_gpu_name(facts)}; clocks of AMD's are not read here", "watch rocm-smi while something is timed"


def _gpu_not_readable(facts: _Facts) -> _Words:
    return f"{_gpu_name(facts)}; {facts['error'] or 'its clocks are not known'}", "pip install nvidia-ml-py"


def _processors(facts: _Facts) -> _Words:
    text = f"{counted(facts['processors'], 'processor')}, {facts['busy']:.1f} of them busy"
    quota = facts["quota"]
    text += f", a quota of {quota:g} by the control group" if quota is not None else ", no quota"
    if facts["governors"]:
        text += f", governor {' and '.join(facts['governors'])}"
    return text, None


def _timer(facts: _Facts) -> _Words:
    source = f", from {facts['source']}" if facts["source"] else ""
    remedy = "give short kernels a larger --budget; a machine whose clock source is tsc tells time finer"
    return f"time.perf_counter goes in steps of {facts['step_s'] * 1e9:.0f} ns{source}", remedy


def _folder(facts: _Facts) -> _Words:
    shown = facts["folder"] if facts["exists"] else f"{facts['folder']} (to be made)"
    remedy = "free some space: probe runs --older-than 7d lists old runs"
    return f"{_USES[facts['use']]} in {shown}: {bytes_text(facts['free_bytes'])} free", remedy


def _folder_not_writable(facts: _Facts) -> _Words:
    use, folder, error = facts["use"], facts["folder"], facts["error"]
    if folder is None:
        return f"no folder for temporary files can be written: {error}", _FOLDER_REMEDIES[use]
    return f"{_USES[use]} cannot be written in {folder}: {error}", _FOLDER_REMEDIES[use]


HEALTH_WORDS: dict[str, Callable[[_Facts], _Words]] = {
    "python": lambda facts: (f"{facts['version']}, {facts['executable']}", None),
    "torch": _torch,
    "torch-not-installed": _torch_not_installed,
    "torch-not-importable": _torch_not_importable,
    "torch-too-old": _torch_too_old,
    "torch-without-gpu": _torch_without_gpu,
    "triton": lambda facts: (facts["version"], None),
    "triton-not-asked": lambda _: ("not asked, without torch", None),
    "triton-not-needed": lambda _: ("not installed; kernels of a CPU are C++ and need none", None),
    "triton-not-importable": _triton_not_importable,
    "triton-not-installed": _triton_not_installed,
    "debugpy": lambda facts: (facts["version"], None),
    "debugpy-not-installed": (
        lambda _: ("not installed: stepping into the compiler needs it", "pip install debugpy")
    ),
    "compiler": _compiler,
    "compiler-not-found": lambda facts: (f"there is no {facts['name']} on the PATH", _INSTALL),
    "compiler-not-tried": lambda facts: (f"{_compiler_name(facts)}; not tried, without torch's flags", None),
    "compile-command-not-available": _command_not_available,
    "compiler-not-accepted": _compiler_not_accepted,
    "kernel-not-built": _kernel_not_built,
    "openmp": _openmp,
    "openmp-not-used": _openmp_not_used,
    "vectors": _vectors,
    "vectors-narrow": _vectors_narrow,
    "caches": _caches,
    "caches-remote": _caches_remote,
    "caches-not-available": _caches_not_available,
    "limits": lambda facts: (f"{_limits_text(facts)} (torch's own), after that eager", None),
    "limits-changed": _limits_changed,
    "limits-not-available": _limits_not_available,
    "variables-none": lambda _: ("none of torch, inductor, triton or OpenMP is set", None),
    "variable-harmless": lambda facts: (f"{_variable(facts)}: as without it", None),
    "variable-effect": _variable_effect,
    "variable-read": _variable_read,
    "variable-not-read": _variable_not_read,
    "variable-not-known": (
        lambda facts: (f"{_variable(facts)}: nothing known of it that matters here", None)
    ),
    "gpu": _gpu,
    "gpu-none": lambda _: ("none: inductor compiles C++ for the CPU", None),
    "gpu-not-usable": _gpu_not_usable,
    "gpu-amd": _gpu_amd,
    "gpu-not-readable": _gpu_not_readable,
    "processors": _processors,
    "timer": _timer,
    "timer-coarse": _timer,
    "folder": _folder,
    "little-space": _folder,
    "folder-not-writable": _folder_not_writable,
}
