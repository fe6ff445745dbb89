"""The machine code of a C++ kernel's loops, and what the compiler's own vectoriser says of them.

A kernel is compiled with inductor's command, and `objdump -d -l --inlines` prints the instructions below the
line that each was made for:

    kernel.cpp:20 (discriminator 3)
      70:   movzbl (%rax),%ecx
    .../vec512_float.h:81
     (inlined by) kernel.cpp:24
      80:   vaddps %zmm1,%zmm0,%zmm0
      7e:   jne    70 <kernel._omp_fn.0+0x70>

A jump backwards closes a loop; a loop with none inside it is where the time goes. Inductor passes
`-fno-tree-loop-vectorize` to GCC (torch/_inductor/cpp_builder.py): the vectors are its own. What GCC's
vectoriser would do is asked by compiling once more with it. Clang's is on.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from inductor_probe.assembly.compiler_remarks import ASK_CLANG, ASK_GCC, compiler_remarks, remark_of
from inductor_probe.errors import RunFailedError
from inductor_probe.model.assembly import CompilerName, CompilerRemark, MachineLoop
from inductor_probe.model.code import LoopNest
from inductor_probe.model.cpp_program import CompileCommand

_FILE = "kernel.cpp"
_MOST_S = 300
_PLACE = re.compile(
    r"^(?:\s*\(inlined by\) )?(?P<path>\S+):(?P<line>\d+)(?: \(discriminator \d+\))?(?: \S+)?$"
)
_INSTRUCTION = re.compile(r"^\s*(?P<address>[0-9a-f]+):\s+(?P<mnemonic>[a-z]\S*)(?:\s+(?P<operands>.*))?$")
_FUNCTION = re.compile(r"^[0-9a-f]+ <(?P<name>[^>]+)>:$")
_TARGET = re.compile(r"^(?P<address>[0-9a-f]+) <")
_TURNED_OFF = "-fno-tree-loop-vectorize"
_WIDTHS = (("%zmm", 512), ("%ymm", 256), ("%xmm", 128))
_SCALAR = re.compile(r"v?(?:[a-z]+(?:ss|sd)|movd|movq|pinsr\w|pextr\w)$")


class CompiledCpp(Struct, frozen=True):
    """What a kernel was compiled to.

    `loops`: the innermost ones. `code`: as text. `remarks` of the compiler, which was asked once more with
    its loop vectoriser where that is `turned_off`.
    """

    loops: tuple[MachineLoop, ...]
    code: str
    remarks: tuple[CompilerRemark, ...]
    turned_off: bool


def compile_cpp(source: str, command: CompileCommand, nests: Sequence[LoopNest]) -> CompiledCpp:
    """Compile a kernel as inductor does.

    Args:
        source: text of the kernel. command: with the flags of its vectors. nests: of the text, by its lines.

    Raises:
        RunFailedError: the compiler or objdump fails, or is not there.
    """
    turned_off = _TURNED_OFF in command.flags
    compiler: CompilerName = "clang" if "clang" in Path(command.compiler).name else "gcc"
    ask = ASK_CLANG if compiler == "clang" else ASK_GCC
    with tempfile.TemporaryDirectory(prefix="inductor_probe_asm_") as name:
        folder = Path(name)
        (folder / _FILE).write_text(source, encoding="utf-8")
        flags = [flag for flag in command.flags if not flag.startswith(("-W", "-pedantic"))]
        settings = *command.definitions, *flags, *command.includes, *command.machine
        common = command.compiler, _FILE, *settings, "-w", "-c"
        said = _run(folder, *common, *(() if turned_off else ask), "-g1", "-o", "kernel.o").stderr
        code = _run(folder, "objdump", "-d", "-l", "--inlines", "--no-show-raw-insn", "kernel.o").stdout
        if turned_off:
            said = _run(folder, *common, "-ftree-loop-vectorize", *ask, "-o", "asked.o").stderr
        if compiler == "gcc":
            written = folder / "remarks"
            said = written.read_text(encoding="utf-8", errors="replace") if written.exists() else ""
    code = code.replace(f"{folder}/", "")
    remarks = compiler_remarks(compiler, said, source, nests)
    return CompiledCpp(tuple(_loops(code, nests, remarks)), code, remarks, turned_off)


def _run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    try:
        ended = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_MOST_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunFailedError(
            f"{command[0]} cannot be run: {error}", "`probe doctor` says what is here"
        ) from error
    if ended.returncode:
        lines = ended.stderr.splitlines()
        last = lines[-1] if lines else f"status {ended.returncode}"
        why = next((line for line in lines if "error" in line), last)
        raise RunFailedError(f"{command[0]} does not compile the kernel: {why}")
    return ended


def _loops(text: str, nests: Sequence[LoopNest], remarks: Sequence[CompilerRemark]) -> Iterator[MachineLoop]:
    """Yield the innermost loops of each function, with the nest that most of their instructions belong to."""
    for instructions in _functions(text):
        at = {address: index for index, (address, *_) in enumerate(instructions)}
        spans = []
        for index, (_, mnemonic, operands, _) in enumerate(instructions):
            target = _TARGET.match(operands) if mnemonic.startswith("j") else None
            begin = at.get(int(target["address"], 16)) if target else None
            if begin is not None and begin <= index:
                spans.append((begin, index))
        for begin, end in spans:
            if any((a, b) != (begin, end) and begin <= a and b <= end for a, b in spans):
                continue
            body = instructions[begin : end + 1]
            counts = Counter(line for *_, line in body if line is not None)
            owner = next(
                (number for line, _ in counts.most_common() for number, nest in enumerate(nests)
                 if nest.line <= line <= nest.last), None,
            )  # fmt: skip
            if owner is None:  # of the division of work among threads, or of a function of torch
                continue
            kinds = Counter(_kind(mnemonic, operands) for _, mnemonic, operands, _ in body)
            inside = [line for line in counts if nests[owner].line <= line <= nests[owner].last]
            yield MachineLoop(
                nest=owner,
                kind=nests[owner].kind,
                first=min(inside),
                last=max(inside),
                instructions=len(body),
                packed=tuple((bits, kinds[str(bits)]) for _, bits in _WIDTHS if kinds[str(bits)]),
                scalar=kinds["scalar"],
                calls=kinds["call"],
                remark=remark_of(remarks, nests[owner], min(inside), max(inside)),
            )


_Instruction = tuple[int, str, str, int | None]
"""Address, mnemonic, operands, and the line of the kernel."""


def _functions(text: str) -> Iterator[list[_Instruction]]:
    function: list[_Instruction] = []
    line: int | None = None
    for row in text.splitlines():
        if _FUNCTION.match(row):
            yield function
            function, line = [], None
        elif instruction := _INSTRUCTION.match(row):
            function.append(
                (
                    int(instruction["address"], 16),
                    instruction["mnemonic"],
                    instruction["operands"] or "",
                    line,
                )
            )
        elif (place := _PLACE.match(row)) and Path(place["path"]).name == _FILE:
            line = int(place["line"])  # the last of a chain is the outermost: the kernel's own
    yield function


def _kind(mnemonic: str, operands: str) -> str:
    """Return the widest register of an instruction on vectors, `scalar` for one float, `call`, or nothing."""
    if mnemonic.startswith("call"):
        return "call"
    for register, bits in _WIDTHS:
        if register in operands:
            return "scalar" if bits == 128 and _SCALAR.fullmatch(mnemonic) else str(bits)
    return ""
