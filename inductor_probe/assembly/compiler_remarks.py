"""What GCC and clang say of the loops of a C++ kernel, as remarks with the loop that each is about.

GCC (`-fopt-info-vec-optimized-missed`, vect_analyze_loop of tree-vect-loop.cc) names a loop, then the
statement that kept it from being vectorised:

    kernel.cpp:16:56: missed: couldn't vectorize loop
    kernel.cpp:23:38: missed: not vectorized: relevant stmt not supported: tmp0_50 = *_49;
    kernel.cpp:16:56: optimized: loop vectorized using 32 byte vectors
    kernel.cpp:8:13: missed: not vectorized: vectorization is not profitable.

The last is of a block, which is another vectoriser's. A loop stands where its condition does; one that OpenMP
divides among threads has a condition of its own without a place, and stands at its first statement.

Clang (`-Rpass=loop-vectorize` and its kin, LoopVectorize.cpp) names statements first, then the loop:

    kernel.cpp:63:37: remark: loop not vectorized: value that could not be identified as reduction is used ...
    kernel.cpp:55:9: remark: loop not vectorized [-Rpass-missed=loop-vectorize]
    kernel.cpp:16:17: remark: vectorized loop (vectorization width: 8, interleaved count: 4) [-Rpass=...]
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from inductor_probe.model.assembly import CompilerCode, CompilerName, CompilerRemark
from inductor_probe.model.code import Loop, LoopNest

ASK_GCC = ("-fopt-info-vec-optimized-missed=remarks",)
ASK_CLANG = tuple(f"-Rpass{kind}=loop-vectorize" for kind in ("", "-missed", "-analysis"))
_FILE = "kernel.cpp"
_GCC = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):\d+: (?P<kind>optimized|missed): +(?P<text>.*)$")
_CLANG = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):\d+: remark: "
    r"(?P<text>.*?)(?: \[-Rpass(?P<kind>[-a-z]*)=loop-vectorize\])$"
)
_GCC_VECTORISED = re.compile(r"loop vectorized using (?P<bytes>\d+) byte vectors")
_CLANG_VECTORISED = re.compile(r"vectorized loop \(vectorization width: (?P<lanes>\d+)")
_CLANG_MISSED = "loop not vectorized"
_GCC_LOOP, _GCC_REASON = "couldn't vectorize loop", "not vectorized: "
_REASONS: tuple[tuple[CompilerCode, str], ...] = (
    ("negative-step", r"negative step"),
    ("nested-loops", r"two or more consecutive inner loops|multiple nested loops|not the innermost"),
    ("unsupported-operation", r"relevant stmt not supported(?:: (.*))?|instruction return type cannot"),
    ("no-vector-type", r"no vectype for stmt(?:: (.*))?|unsupported data-type(?: (.*))?"),
    ("call", r"function calls or data references|call instruction|statement clobbers memory"),
    ("access-not-affine", r"complicated access|not affine|data ref analysis failed|identify array bounds"),
    ("dependence", r"dependence|dependent memory operations|reorder memory|alias"),
    ("float-order", r"reorder floating-point"),
    ("reduction", r"reduction|cyclic|value used after|used outside the loop|unsupported use in stmt"),
    ("unknown-trip-count", r"number of (?:loop )?iterations"),
    ("control-flow", r"control flow|multiple exits|latch block|loop exits|switch"),
    ("not-profitable", r"profitable|not beneficial|cost.model"),
)  # fmt: skip
_GENERIC = "instruction cannot be vectorized"
"""Clang adds it to what it said before."""


class _Said(Struct, frozen=True):
    """Of the loop at a line of the kernel: bits or lanes of its vectors, or why it has none."""

    loop: int
    line: int | None = None
    bits: int | None = None
    lanes: int | None = None
    text: str = ""

    @property
    def vectorised(self) -> bool:
        """Whether the compiler vectorised the loop."""
        return self.bits is not None or self.lanes is not None


def compiler_remarks(
    compiler: CompilerName, text: str, source: str, nests: Sequence[LoopNest]
) -> tuple[CompilerRemark, ...]:
    """Return what a compiler said of each loop of a kernel once: that it is vectorised, or the first reason.

    Args:
        text: that GCC wrote, or clang printed. source: of the kernel. nests: of the source.
    """
    lines = source.split("\n")
    rows = _of_gcc(text) if compiler == "gcc" else _of_clang(text)
    remarks: dict[tuple[int, int], CompilerRemark] = {}
    for row in rows:
        placed = _loop_of(_behind_pragmas(row.loop, lines), nests)
        if placed is None:
            continue
        number, loop = placed
        known = remarks.get((number, loop.line))
        if known is not None and (known.code == "vectorised" or not row.vectorised):
            continue
        code, operand = ("vectorised", None) if row.vectorised else _reason(row.text)
        remarks[number, loop.line] = CompilerRemark(
            compiler=compiler,
            code=code,
            nest=number,
            loop=loop.line,
            variable=loop.variable,
            line=row.line or loop.line,
            bits=row.bits,
            lanes=row.lanes,
            operand=operand,
            text=row.text,
        )
    return tuple(remarks[key] for key in sorted(remarks))


def remark_of(
    remarks: Sequence[CompilerRemark], nest: LoopNest, first: int, last: int
) -> CompilerRemark | None:
    """Return what was said of the innermost loop that computes these lines of a nest; None where nothing was.

    A loop that was unrolled whole is none: what the compiler saw is the one around it.
    """
    around = {loop.line: loop.depth for loop in nest.loops if loop.line <= first and last <= loop.last}
    said = [row for row in remarks if row.loop in around and row.code != "nested-loops"]
    return max(said, key=lambda row: around[row.loop], default=None)


def _of_gcc(text: str) -> Iterator[_Said]:
    loop: int | None = None
    for row in text.splitlines():
        match = _GCC.match(row)
        if match is None:
            continue
        own = int(match["line"]) if match["file"] == _FILE else None
        if match["kind"] == "optimized":
            vectorised = _GCC_VECTORISED.search(match["text"])
            if vectorised and own is not None:
                yield _Said(own, bits=8 * int(vectorised["bytes"]))
            loop = None
        elif match["text"].startswith(_GCC_LOOP):
            loop = own
        elif loop is not None and match["text"].startswith(_GCC_REASON):
            yield _Said(loop, own, text=match["text"].removeprefix(_GCC_REASON).rstrip(".; "))
            loop = None


def _of_clang(text: str) -> Iterator[_Said]:
    reasons: list[tuple[int | None, str]] = []
    for row in text.splitlines():
        match = _CLANG.match(row)
        if match is None:
            continue
        own = int(match["line"]) if match["file"] == _FILE else None
        vectorised = _CLANG_VECTORISED.search(match["text"])
        if vectorised and own is not None:
            yield _Said(own, lanes=int(vectorised["lanes"]))
        elif match["kind"] == "-analysis" and ": " in match["text"]:
            reasons.append((own, match["text"].partition(": ")[2]))
        elif match["kind"] == "-missed" and match["text"].startswith(_CLANG_MISSED):
            line, reason = next((pair for pair in reasons if pair[1] != _GENERIC), (None, _GENERIC))
            if own is not None:
                yield _Said(own, line, text=reason if reasons else match["text"])
            reasons = []


def _behind_pragmas(line: int, lines: Sequence[str]) -> int:
    """Return the line of the `for` below a `#pragma`: clang puts a loop that OpenMP divides there."""
    while 0 < line < len(lines) and lines[line - 1].lstrip().startswith("#pragma"):
        line += 1
    return line


def _loop_of(line: int, nests: Sequence[LoopNest]) -> tuple[int, Loop] | None:
    """Return the loop that stands at a line, with the number of its nest: see the module's docstring."""
    around = [
        (number, loop)
        for number, nest in enumerate(nests)
        for loop in nest.loops
        if loop.line <= line <= loop.last
    ]
    exact = [pair for pair in around if pair[1].line == line]
    divided = [pair for pair in around if any("omp for" in pragma for pragma in pair[1].pragmas)]
    return max(exact or divided or around, key=lambda pair: pair[1].depth, default=None)


def _reason(text: str) -> tuple[CompilerCode, str | None]:
    for code, pattern in _REASONS:
        if match := re.search(pattern, text):
            return code, next((group.rstrip("; ") for group in match.groups() if group), None)
    return "other", None
