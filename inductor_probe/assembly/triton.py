"""A Triton kernel compiled for a GPU that need not be there: resources, occupancy, accesses to memory.

`triton_child` compiles. PTX is what LLVM's NVPTX back end prints: an instruction a line, below the `.loc` of
the line that it was made for, and the files by number at the end.

        .loc    1 24 35                         // k.py:24:35
        @%p1 ld.global.v2.b32 { %r1, %r2 }, [ %rd1 + 0 ];
        .loc    2 291 36, function_name $L__info_string0, inlined_at 1 26 24
        .file   1 "/folder/k.py"

The machine code is what nvdisasm prints, below lines `//## File "/folder/k.py", line 24`.
"""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from inductor_probe.assembly.coalescing import warp_accesses
from inductor_probe.errors import NotFoundError, ProbeError, RunFailedError, near_names
from inductor_probe.machine.python_child import ask_torch
from inductor_probe.machine.targets import WARP_THREADS, find_gpu_target, target_names, target_of_capability
from inductor_probe.model.assembly import STAGES, AccessKind, CompiledConfig, GlobalAccess, Limit, Occupancy
from inductor_probe.model.code import Pairs

_CHILD = Path(__file__).with_name("triton_child.py")
_LOC = re.compile(
    r"^\s*\.loc\s+(?P<file>\d+) (?P<line>\d+) \d+(?:.*inlined_at (?P<in_file>\d+) (?P<in_line>\d+))?"
)
_FILE = re.compile(r'^\s*\.file\s+(?P<number>\d+) "(?P<path>[^"]*)"', re.MULTILINE)
_ACCESS = re.compile(
    r"^\s*(?:@!?%p\d+ )?(?P<op>ld|st|atom|red|cp\.async)"
    r"(?P<parts>(?:[.:]+[A-Za-z0-9_]+)*\.global(?:[.:]+[A-Za-z0-9_]+)*)\s"
)
_VECTOR = re.compile(r"\.v(\d)\b")
_TYPE = re.compile(r"\.([a-z]+)(\d+)(?:x(\d))?$")
_COPIED_BYTES = re.compile(r"\], \[[^]]*\], 0x([0-9a-f]+)")
_KINDS: dict[str, AccessKind] = {
    "ld": "load", "st": "store", "atom": "atomic", "red": "atomic", "cp.async": "copy"
}  # fmt: skip
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?P<text>[^;]*?)\s*;", re.MULTILINE)
_RESOURCES = re.compile(
    r"REG:(?P<registers>\d+) STACK:(?P<stack>\d+) SHARED:(?P<shared>\d+) LOCAL:(?P<local>\d+)"
)
_ARCHITECTURE = re.compile(r"sm_?(?P<number>[1-9]\d{1,2})[af]?")
_TOOLS_NAMED = ("TRITON_PTXAS_PATH", "TRITON_CUOBJDUMP_PATH", "TRITON_NVDISASM_PATH")
_WARPS_TOGETHER = 4
"""Warps get their registers four at a time: one for each scheduler of a multiprocessor."""
_REGISTERS_OF_WARP = 256
_RESERVED_SHARED = 1024
_FIRST_RESERVING = 80
"""From this architecture on the system takes 1 KiB of shared memory for each block."""


def architecture_of(text: str) -> int:
    """Return `90` for `sm_90`, `90` or a target's name (`h200`).

    Raises:
        NotFoundError: neither an architecture nor the name of a GPU; near names are offered.
    """
    if text.lower() in target_names() or text.endswith(".toml"):
        return find_gpu_target(text).architecture
    if match := _ARCHITECTURE.fullmatch(text.lower()) or re.fullmatch(r"(?P<number>[1-9]\d{1,2})", text):
        return int(match["number"])
    raise NotFoundError(
        f"no architecture {text!r}: write sm_90, or the name of a GPU",
        near_names("" if text.lower().startswith("sm") else text.lower(), target_names()),
    )


def compile_triton(
    source: str,
    name: str,
    *,
    architecture: int = 0,
    configs: Sequence[str] = (),
    recorded: Sequence[str] = (),
    sweep: bool = False,
    stages: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Compile a kernel in a process of its own; this imports its text, and runs what stands in it.

    Args:
        source: text of the kernel, a module. name: of the kernel in it.
        architecture: `90`; 0 for the one that it was generated for.
        configs: each `XBLOCK=512,1024 num_warps=4`: every combination; inductor's own if empty.
        recorded: configs that inductor offered while the dump was made, likewise.
        sweep: add these, inductor's own, and a grid around them.
        stages: those of which the text is wanted. progress: is told which config is compiled.

    Returns `compilers`, `architecture` and `configs`, as `CompiledKernel` has them.

    Raises:
        ProbeError: the kernel has no such parameter. RunFailedError: torch or Triton cannot be imported, or
            cannot load the text.
    """
    with tempfile.TemporaryDirectory(prefix="inductor_probe_asm_") as folder:
        file = Path(folder, "kernel.py")
        file.write_text(source, encoding="utf-8")
        try:
            wanted = {"asked": list(configs), "recorded": list(recorded) if sweep else [], "sweep": sweep}
            arguments = str(file), name, str(architecture), json.dumps(wanted)
            answer = ask_torch(_CHILD, *arguments, environment=_environment(Path(folder)), progress=progress)
        except RunFailedError as error:
            raise RunFailedError(
                f"{name} cannot be compiled here: {error.message.removeprefix('cannot query torch: ')}",
                "its text is for the torch and Triton that generated it; `probe doctor` says what is here",
            ) from error
        if "refused" in answer:
            hint = (
                "`--arch` takes one of these, or the name of a GPU"
                if "architecture" in answer["refused"]
                else None
            )
            raise ProbeError(answer["refused"], hint)
        capability = divmod(answer["cc"], 10)
        rows = tuple(_config(row, file, capability, stages) for row in answer["configs"])
    compilers = tuple((name, str(answer[name])) for name in ("torch", "triton"))
    return {"compilers": compilers, "architecture": f"sm_{answer['cc']}", "configs": rows}


def _environment(folder: Path) -> dict[str, str]:
    """Return this process's environment for a compile that keeps nothing, and all lines of the kernel's text.

    Other variables of Triton's would interpret kernels, override them, or write files; those that name its
    tools stay.
    """
    cache = str(folder / "cache")
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TRITON_") or name in _TOOLS_NAMED
    }
    caches = {"TRITON_CACHE_DIR": cache, "TORCHINDUCTOR_CACHE_DIR": cache}
    return inherited | caches | {"TRITON_DISABLE_LINE_INFO": "0"}


def _config(
    row: dict[str, Any], file: Path, capability: tuple[int, int], stages: Sequence[str]
) -> CompiledConfig:
    config: Pairs = tuple((name, str(value)) for name, value in row["config"].items())
    if "failure" in row:
        return CompiledConfig(config, row["origin"], failure=row["failure"])
    texts: dict[str, str | None] = row["stages"]
    resources = _RESOURCES.search(row["resources"] or "")
    registers = int(resources["registers"]) if resources else None
    sass = texts["sass"]
    accesses = tuple(global_accesses(texts["ptx"] or "", str(file)))
    return CompiledConfig(
        config=config,
        origin=row["origin"],
        threads=row["threads"],
        registers=registers,
        stack_bytes=max(int(resources["stack"]), int(resources["local"])) if resources else None,
        shared_bytes=row["shared"],
        instructions=None if sass is None else len(list(_instructions(sass))),
        occupancy=None
        if registers is None
        else occupancy(capability, row["threads"], registers, row["shared"]),
        accesses=accesses,
        warp_accesses=tuple(warp_accesses(texts["ttgir"] or "", str(file), accesses)),
        stages=tuple((stage, _with_places(texts[stage] or "", file)) for stage in STAGES if stage in stages),
    )


def global_accesses(ptx: str, file: str) -> Iterator[GlobalAccess]:
    """Yield what reaches global memory, by the line of `file` that it was made for; inlined code counts, too.

    Caches, scopes and predicates are left out of `text`: `ld.global.L1::evict_last.b32` is a `ld.global.b32`.
    """
    numbers = {match["number"] for match in _FILE.finditer(ptx) if match["path"] == file}
    line: int | None = None
    counts: Counter[tuple[int | None, AccessKind, str, int]] = Counter()
    for text in ptx.splitlines():
        if place := _LOC.match(text):
            if place["file"] in numbers:
                line = int(place["line"])
            elif place["in_file"] in numbers:
                line = int(place["in_line"])
        elif (access := _ACCESS.match(text)) and (width := _width(access, text)):
            form, bits = width
            counts[line, _KINDS[access["op"]], form, bits] += 1
    for (at, kind, form, bits), count in sorted(
        counts.items(), key=lambda item: (item[0][0] or 0, item[0][2])
    ):
        yield GlobalAccess(at, kind, form, bits, count)


def _width(access: re.Match[str], text: str) -> tuple[str, int] | None:
    """Return an access without modifiers, and the bits that a thread moves with it."""
    if access["op"] == "cp.async":
        size = _COPIED_BYTES.search(text)
        return ("cp.async.global", 8 * int(size[1], 16)) if size else None
    vector, kind = _VECTOR.search(access["parts"]), _TYPE.search(access["parts"])
    if kind is None:
        return None
    elements = int(vector[1]) if vector else 1
    form = f"{access['op']}.global{vector[0] if vector else ''}.{kind[0].lstrip('.')}"
    return form, elements * int(kind[2]) * int(kind[3] or 1)


def _instructions(sass: str) -> Iterator[str]:
    """Yield the instructions of machine code, without the padding behind its end."""
    return (text for text in _INSTRUCTION.findall(sass) if text != "NOP")


def _with_places(text: str, file: Path) -> str:
    """Name the kernel's file as it is named everywhere else: the folder that it was compiled in is gone."""
    return text.replace(str(file), file.name)


def occupancy(capability: tuple[int, int], threads: int, registers: int, shared: int) -> Occupancy | None:
    """Return how many blocks a multiprocessor holds at a time; None where its figures are not known.

    Registers are given to warps in units of 256, four warps at a time. For example, of 65,536 registers 168 a
    thread, 128 threads a block: 5,376 a warp (168 x 32, a multiple of 256), 12 warps (65,536 / 5,376, down to
    a multiple of 4), 3 blocks of 4 warps; 384 of 2,048 threads: a share of 0.19.
    """
    processor = target_of_capability(capability)
    if processor is None or not threads:
        return None
    warps = math.ceil(threads / WARP_THREADS)
    of_warp = math.ceil(max(registers, 1) * WARP_THREADS / _REGISTERS_OF_WARP) * _REGISTERS_OF_WARP
    resident = processor.registers_per_multiprocessor // of_warp // _WARPS_TOGETHER * _WARPS_TOGETHER
    reserved = _RESERVED_SHARED if 10 * capability[0] + capability[1] >= _FIRST_RESERVING else 0
    most: dict[Limit, int] = {
        "threads": processor.threads_per_multiprocessor // (warps * WARP_THREADS),
        "registers": resident // warps,
        "blocks": processor.blocks_per_multiprocessor,
    }
    if shared + reserved:
        most["shared-memory"] = processor.shared_bytes_per_multiprocessor // (shared + reserved)
    blocks = min(most.values())
    limits = tuple(name for name, number in most.items() if number == blocks)
    return Occupancy(blocks, blocks * warps * WARP_THREADS / processor.threads_per_multiprocessor, limits)
