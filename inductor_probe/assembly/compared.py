"""Two compiled kernels: their figures side by side, and where their texts differ.

Which register holds a value, and at which address an instruction stands, changes with every edit. In the diff
these count as the same: lines are paired by a form without them, and shown as they are.

    ld.global.b32 { %r12 }, [ %rd4 + 0 ];   and   ld.global.b32 { %r9 }, [ %rd1 + 0 ];   are one line
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from inductor_probe.model.assembly import (
    OF_CPP,
    ComparedFigure,
    ComparedText,
    CompiledConfig,
    CompiledKernel,
    FigureName,
)

_CONTEXT = 2
_MOST_LINES = 60_000
_LEFT_OUT = re.compile(
    r"^\s*(?:\.loc|\.file|//|#loc|$)|^\s*kernel\.cpp:|^\s*//##|^\s*\(inlined by\)|^/|^\S+\(\):$"
    r"|^\s*[0-9a-f]+:\s.*\bnop[wl]?\b"
)
"""Lines that say where code comes from, and padding."""
_SAME: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"/\*[0-9a-f]+\*/"), ""),  # address of SASS
    (re.compile(r"^\s*[0-9a-f]+:\s"), ""),  # of objdump
    (re.compile(r"\b[0-9a-f]+ <[^>]*>"), "<>"),  # a jump of objdump
    (re.compile(r"\s*(?:,? ?loc\(.*\)|//.*|# .*)$"), ""),
    (re.compile(r"\$L__\w+|\.L_x_\d+|`\(\.\w+\)"), "L"),
    (re.compile(r"%(?:r|rd|rs|f|fd|p|b|hh|h)\d+\b"), "%r"),  # PTX
    (re.compile(r"\b(?:UR|UP|R|P|B)\d+\b"), "R"),  # SASS
    (re.compile(r"-?0x[0-9a-f]+\(%rip\)"), "(%rip)"),  # a constant beside the code
    (re.compile(r"%([xyz])mm\d+"), r"%\1mm"),
    (re.compile(r"%(?:r|e)?(?:[abcd][xlh]|[sd]il?|[sb]pl?|8|9|1[0-5])[dwb]?\b|%r\d+[dwb]?"), "%r"),  # x86
    (re.compile(r"%(?![xyz]mm\b|r\b)[\w.-]+"), "%"),  # MLIR and LLVM IR
)


def figures(a: CompiledKernel, b: CompiledKernel) -> tuple[ComparedFigure, ...]:
    """Return the figures of two kernels of one backend, of Triton with their first configs."""
    if a.backend == "cpp":
        first, second = dict(_of_loops(a)), dict(_of_loops(b))
    else:
        first, second = dict(_of_config(a)), dict(_of_config(b))
    names = dict.fromkeys([*first, *second])
    return tuple(ComparedFigure(name, first.get(name), second.get(name)) for name in names)


def _of_config(kernel: CompiledKernel) -> Iterator[tuple[str, str | None]]:
    yield "architecture", kernel.architecture
    made: CompiledConfig | None = next((one for one in kernel.configs if one.failure is None), None)
    if made is None:
        return
    held = made.occupancy
    numbers: dict[FigureName, object] = {
        "config": ", ".join(f"{name}={value}" for name, value in made.config),
        "registers": made.registers,
        "stack": made.stack_bytes,
        "shared": made.shared_bytes,
        "blocks": held and held.blocks,
        "occupancy": held and f"{held.share:.0%}",
        "limits": held and ", ".join(held.limits),
        "machine-code": made.instructions,
    }
    for name, number in numbers.items():
        yield name, None if number is None else str(number)
    counts: Counter[str] = Counter()
    for access in made.accesses:
        counts[access.text] += access.count
    for text, count in sorted(counts.items()):
        yield text, str(count)


def _of_loops(kernel: CompiledKernel) -> Iterator[tuple[str, str | None]]:
    yield "architecture", kernel.architecture
    packed: Counter[int] = Counter()
    for loop in kernel.loops:
        packed.update(dict(loop.packed))
    numbers: dict[FigureName, int] = {
        "loops": len(kernel.loops),
        "loop-instructions": sum(loop.instructions for loop in kernel.loops),
        "512-bits": packed[512],
        "256-bits": packed[256],
        "128-bits": packed[128],
        "scalar-floats": sum(loop.scalar for loop in kernel.loops),
        "calls": sum(loop.calls for loop in kernel.loops),
    }
    for name, number in numbers.items():
        yield name, str(number)


def compared_text(a: CompiledKernel, b: CompiledKernel, stage: str) -> ComparedText:
    """Return where a stage of two kernels differs; both hold its text."""
    return ComparedText(stage, tuple(_diff(_lines(a, stage), _lines(b, stage))))


def _lines(kernel: CompiledKernel, stage: str) -> list[str]:
    if stage == OF_CPP:
        text = kernel.code
    else:
        made = next((one for one in kernel.configs if one.failure is None), None)
        text = dict(made.stages).get(stage, "") if made else ""
    text = text.replace(kernel.kernel, "KERNEL")
    return [line for line in text.splitlines()[:_MOST_LINES] if not _LEFT_OUT.match(line)]


def _diff(a: Sequence[str], b: Sequence[str]) -> Iterator[str]:
    forms = [normalised(line) for line in a], [normalised(line) for line in b]
    matcher = SequenceMatcher(None, *forms, autojunk=False)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        yield f"@@ -{group[0][1] + 1} +{group[0][3] + 1} @@"
        for tag, a_first, a_end, b_first, b_end in group:
            if tag == "equal":
                yield from (f" {line}" for line in a[a_first:a_end])
                continue
            yield from (f"-{line}" for line in a[a_first:a_end])
            yield from (f"+{line}" for line in b[b_first:b_end])


def normalised(line: str) -> str:
    """Return a line without what differs from compile to compile: registers, addresses, labels, places."""
    for pattern, text in _SAME:
        line = pattern.sub(text, line)
    return " ".join(line.split())
