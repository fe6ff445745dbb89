"""What generated code and packages write of the machine they are made for: text and bytes, line by line.

Vector instructions come from `torch/_inductor/cpu_vec_isa.py` (macros and flags of a `VecISA`), metadata of
packages from `AotCodeCompiler` of `torch/_inductor/codecache.py`, flags from `BuildOptionsBase` of
`torch/_inductor/cpp_builder.py`, GPUs from `DeviceProperties` of `torch/_inductor/runtime/hints.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from inductor_probe.files import json_of
from inductor_probe.model.portable import Assumption, Subject

FEATURES: Mapping[str, tuple[str, ...]] = {
    "AVX2": ("avx2", "fma", "f16c"),
    "AVX512": ("avx512f", "avx512dq", "avx512vl", "avx512bw", "fma"),
    "AVX512_VNNI": ("avx512vnni", "avx512vl"),
    "AMX_TILE": ("amxtile", "amxbf16", "amxint8", "avx512fp16"),
    "AMX_FP16": ("amxfp16",),
    "ASIMD": ("asimd",),
    "NEON": ("asimd",),
    "SVE": ("sve", "asimd"),
    "SVE256": ("sve", "asimd"),
}
"""Instruction sets by their names in torch -> features of a processor."""
MACHINE_CODE = 1 << 26
"""Bytes of a shared library that are looked through for the versions of the C library that it needs."""
_METADATA: Mapping[str, Subject] = {
    "AOTI_PLATFORM": "platform",
    "AOTI_MACHINE": "architecture",
    "AOTI_CPU_ISA": "instructions",
    "AOTI_DEVICE_KEY": "device",
    "AOTI_COMPUTE_CAPABILITY": "compute capability",
}
_FLAG = re.compile(r"-m((?:avx|amx|fma|f16c|sve)[\w.-]*)")
_CAPABILITY = re.compile(r"\bCPU_CAPABILITY_(\w+)")
_NATIVE = re.compile(r"-march=(\S+)")
_COMMAND = re.compile(r"// (?:Compile cmd|Link cmd)|\s*target_compile_(?:options|definitions)\(")
_STEP = re.compile(r"\bx\d+\s*\+=\s*static_cast<(?:int64_t|long)>\((\d+)L?\)")
_VECTORS = re.compile(r"\bat::vec::Vectorized")
_THREADS = re.compile(r"#pragma omp parallel\b[^\n]*\bnum_threads\((\d{1,6})\)")
_PINNED = re.compile(r"\bcpp\.simdlen = (\d+)\s*$")
_INPUT = re.compile(r"\bassert_size_stride\((\w+), (\(.*?\)|\{.*?\}), (\(.*?\)|\{.*?\})[,)]")
_INPUTS = re.compile(
    r"\bassert_size_stride_grouped\(\((.*?)\), \((\(.*\))\), \((\(.*\))\), ['\"]input['\"]\)"
)
_TUPLE = re.compile(r"\([^()]*\)")
_ALIGNED = re.compile(r"\bassert_alignment\((\w+), (\d+)")
_DIVISIBLE = re.compile(r"['\"]tt\.divisibility['\"], (\d+)")
_DEVICE = re.compile(r"\bDeviceProperties\(type='(?P<type>\w+)'(?P<rest>[^)]*)\)")
_FIELD = re.compile(r"\b(\w+)=(\d+)")
_GUARD = re.compile(r"\b(?:torch\.cuda\._DeviceGuard|torch\.cuda\.set_device)\((\d+)\)")
_TORCH = re.compile(r"(?:^# torch version:?|^Made from .* of torch) *(\d+\.\d+[\w.+]*\w)")
_TRITON = re.compile(r"^\s*(?:import triton\b|from triton\b)")
_FLOAT_BITS, _WIDTHS = 32, ("128", "256", "512")
_GLIBC = re.compile(rb"GLIBC_2\.(\d{1,3})\0")
_CUDART = re.compile(rb"libcudart\.so\.(\d{1,2})\b")
_MACHINES = {3: "i386", 21: "ppc64le", 22: "s390x", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
"""Machines of ELF by `e_machine`."""


def of_python(text: str, name: str) -> Iterator[Assumption]:
    """Yield what a wrapper in Python assumes, whose C++ and Triton the machine compiles that runs it."""
    pinned = False
    steps: list[tuple[int, str]] = []
    vectors = False
    for number, line in enumerate(text.split("\n"), start=1):
        place = f"{name}:{number}"
        if match := _PINNED.search(line):
            pinned = True
            if match[1] in _WIDTHS:
                yield Assumption(about="vector width", value=match[1], place=place)
        if match := _TORCH.search(line):
            yield Assumption(about="torch", value=match[1], place=place)
        if _TRITON.match(line):
            yield Assumption(about="triton", value="installed", place=place)
        if "DeviceProperties(" in line:
            yield from _of_device(line, place)
        if match := _GUARD.search(line):
            yield Assumption(about="device", value=f"cuda:{match[1]}", place=place)
        vectors = vectors or _VECTORS.search(line) is not None
        steps += [(int(step), place) for step in _STEP.findall(line) if int(step) > 1]
        yield from _of_line(line, place)
    if vectors and not pinned:
        yield from _of_steps(steps)


def of_cpp(text: str, name: str) -> Iterator[Assumption]:
    """Yield what C++ of a package assumes, and the commands that are written below it."""
    for number, line in enumerate(text.split("\n"), start=1):
        place = f"{name}:{number}"
        if line.startswith("// g++ ") or line.startswith("// clang") or _COMMAND.match(line):
            yield from of_flags(line, place)
        else:
            yield from _of_line(line, place)


def of_metadata(text: str, name: str) -> Iterator[Assumption]:
    """Yield what `*_metadata.json` of a package says: instructions, machine, device.

    Raises:
        ValueError: it is not JSON.
    """
    data = json_of(text)
    for key, value in data.items() if isinstance(data, dict) else ():
        if (about := _METADATA.get(str(key))) and value and str(value) != "INVALID_VEC_ISA":
            yield Assumption(about=about, value=str(value), place=name)


def of_flags(text: str, place: str) -> Iterator[Assumption]:
    """Yield what the flags of a compiler allow it to use: of a command, CMake, or `*_compile_flags.json`."""
    words = set(_FLAG.findall(text)) | {
        word for word in re.findall(r'"([\w=.+-]+)"', text) if word.startswith(("mavx", "mamx", "mfma"))
    }
    features = sorted({word.removeprefix("m") if word.startswith("mavx") else word for word in words})
    if features:
        yield Assumption(about="instructions", value=" ".join(features), place=place)
    for name in dict.fromkeys(_CAPABILITY.findall(text)):
        yield Assumption(about="instructions", value=name, place=place)
    native = _NATIVE.search(text) or re.search(r'"march=([\w.+-]+)"', text)
    if native:
        yield Assumption(about="machine code", value=f"-march={native[1]}", place=place)


def of_library(data: bytes, name: str) -> Iterator[Assumption]:
    """Yield what the head of a shared library says, and the newest version of glibc that it names."""
    if data[:4] != b"\x7fELF" or len(data) < 20:
        return
    machine = int.from_bytes(data[18:20], "little" if data[5] == 1 else "big")
    yield Assumption(about="architecture", value=_MACHINES.get(machine, f"ELF machine {machine}"), place=name)
    if minors := {int(match) for match in _GLIBC.findall(data)}:
        yield Assumption(about="C library", value=f"2.{max(minors)}", place=name)
    if cuda := _CUDART.search(data):
        yield Assumption(about="driver", value=f"CUDA {cuda[1].decode()}", place=name)


def collected(assumptions: Iterable[Assumption]) -> tuple[Assumption, ...]:
    """Return each assumption once, at its first place, with how many places there are."""
    first: dict[tuple[str, str, bool], Assumption] = {}
    counts: dict[tuple[str, str, bool], int] = {}
    for one in assumptions:
        key = (one.about, one.value, one.exact)
        first.setdefault(key, one)
        counts[key] = counts.get(key, 0) + 1
    return tuple(
        Assumption(about=one.about, value=one.value, place=one.place, exact=one.exact, places=counts[key])
        for key, one in first.items()
    )


def _of_line(line: str, place: str) -> Iterator[Assumption]:
    if match := _THREADS.search(line):
        yield Assumption(about="threads", value=match[1], place=place)
    for name, size, stride in _INPUT.findall(line):
        if not name.startswith("buf"):
            yield _of_input(name, _plain(size), _plain(stride), place)
    if match := _INPUTS.search(line):
        names = [part.strip() for part in match[1].split(",") if part.strip()]
        sizes, strides = (_TUPLE.findall(match[group]) for group in (2, 3))
        for name, size, stride in zip(names, sizes, strides, strict=False):
            yield _of_input(name, size, stride, place)
    if match := _ALIGNED.search(line):
        yield Assumption(about="alignment", value=f"{match[1]} {match[2]} bytes", place=place)
    if match := _DIVISIBLE.search(line):
        yield Assumption(about="alignment", value=f"pointers {match[1]} bytes", place=place)


def _of_input(name: str, size: str, stride: str, place: str) -> Assumption:
    return Assumption(about="strides", value=f"{name} {size} strides {stride}", place=place)


def _plain(text: str) -> str:
    return re.sub(r"(?<=\d)L\b", "", text).replace("{", "(").replace("}", ")")


def _of_device(line: str, place: str) -> Iterator[Assumption]:
    """Yield what a Triton kernel's `DeviceProperties(type='cuda', index=0, cc=90, ...)` says."""
    for match in _DEVICE.finditer(line):
        fields = dict(_FIELD.findall(match["rest"]))
        if match["type"] == "cpu":
            continue
        yield Assumption(about="device", value=f"{match['type']}:{fields.get('index', '0')}", place=place)
        if "cc" in fields:
            capability = f"{fields['cc'][:-1] or '0'}.{fields['cc'][-1]}"
            yield Assumption(about="compute capability", value=capability, place=place, exact=True)
        if "multi_processor_count" in fields:
            value = fields["multi_processor_count"]
            yield Assumption(about="multiprocessors", value=value, place=place, exact=True)


def _of_steps(steps: list[tuple[int, str]]) -> Iterator[Assumption]:
    """Yield the width of vectors: a loop steps over as many elements as a vector has floats.

    The shortest step counts, as in `bench_file.compile_settings.vector_bits`.
    """
    step, place = min(steps, default=(0, ""))
    if (bits := str(step * _FLOAT_BITS)) in _WIDTHS:
        yield Assumption(about="vector width", value=bits, place=place, exact=True)
