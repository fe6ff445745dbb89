"""Sentences about what a kernel was compiled to: how warps reach memory, what a compiler said of a loop."""

from __future__ import annotations

from collections.abc import Sequence

from inductor_probe.model.assembly import CompilerCode, CompilerName, CompilerRemark, WarpAccess

SECTORS = (
    "inferred from the addresses in TTGIR: sectors of 32 bytes that a request of a warp touches; once: those"
    " that several requests of the warp touch count once; best: the fewest that could hold as much"
)
_WASTED = 1.5
"""Times the fewest sectors: from there on an access has a sentence."""


def pattern_text(row: WarpAccess) -> str:
    """Return how a request of a warp goes through memory: `strided by -8, 16 at a time`."""
    words = {
        "strided": f"strided by {row.stride}",
        "same-address": "same address",
    }.get(row.pattern, row.pattern)
    if row.pattern == "contiguous" and row.run is not None:
        return f"contiguous, {row.run:.3g} at a time"
    return words


def worst_access(rows: Sequence[WarpAccess]) -> WarpAccess | None:
    """Return the one that touches most sectors beyond what it needs; None where none touches many."""
    wasteful = [
        row
        for row in rows
        if row.sectors is not None and row.best is not None and row.sectors > _WASTED * row.best
    ]
    return max(wasteful, key=lambda row: (row.sectors or 0.0) - (row.best or 0.0), default=None)


def warp_sentence(row: WarpAccess, place: str) -> str:
    """Say what an access of a warp touches, and what of it is left where requests share sectors."""
    most = "up to " if row.pattern == "indirect" else ""
    bytes_moved = f"{row.elements * row.item_bits // 8 * 32} bytes"
    text = (
        f"{place}: a request of a warp for {bytes_moved} ({pattern_text(row)}) touches"
        f" {most}{row.sectors:.3g} sectors, where {row.best:.3g} could hold them"
    )
    if row.sectors_once is not None and row.sectors is not None and row.sectors_once < row.sectors:
        text += f"; its other requests touch the same ones: {row.sectors_once:.3g} a request"
    return text


_COMPILERS: dict[CompilerName, str] = {"gcc": "GCC", "clang": "clang"}
_REASONS: dict[CompilerCode, str] = {
    "negative-step": "negative step in an access",
    "nested-loops": "it has loops of its own",
    "unsupported-operation": "an operation has no vector form",
    "no-vector-type": "a statement has no vector type",
    "call": "it calls a function, or reads what cannot be analysed",
    "access-not-affine": "an access is not followed",
    "dependence": "one step may depend on another",
    "float-order": "it would add floats in another order",
    "reduction": "a value goes from step to step",
    "unknown-trip-count": "the number of its steps is not known",
    "control-flow": "control flow in it",
    "not-profitable": "vectors would not be worth it",
}


def compiler_sentence(remark: CompilerRemark, *, turned_off: bool, place: str = "") -> str:
    """Say what a vectoriser did with a loop: `not vectorised by GCC: negative step in an access`.

    Args:
        turned_off: inductor turns it off, and this is what it would do. place: of what it named.
    """
    name = _COMPILERS[remark.compiler]
    if remark.code == "vectorised":
        width = f"{remark.bits} bits" if remark.bits else f"{remark.lanes} lanes"
        if turned_off:
            return f"{name} would vectorise it ({width}), but inductor turns that off"
        return f"vectorised by {name} ({width})"
    words = _REASONS.get(remark.code)
    reason = f"{words} ({remark.text})" if words else remark.text
    off = f", nor would it be without {_TURNED_OFF}" if turned_off else ""
    return f"not vectorised by {name}{off}: {reason}{f', {place}' if place else ''}"


_TURNED_OFF = "-fno-tree-loop-vectorize"
"""With which inductor turns GCC's loop vectoriser off."""


_FIGURES: dict[str, str] = {
    "stack": "stack bytes",
    "shared": "shared bytes",
    "limits": "limited by",
    "machine-code": "SASS instructions",
    "loops": "innermost loops",
    "loop-instructions": "instructions in them",
    "512-bits": "on 512 bits",
    "256-bits": "on 256 bits",
    "128-bits": "on 128 bits",
    "scalar-floats": "scalar floats",
}


def figure_words(name: str) -> str:
    """Return what a figure of a compiled kernel is called; an instruction is its own name."""
    return _FIGURES.get(name, name)
