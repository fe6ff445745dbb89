"""Words for layouts, accesses, loop nests, and what nodes do to memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inductor_probe.model.code import NestFeature
from inductor_probe.model.formula import Convention
from inductor_probe.model.ir import PRINTED_STRIDE, BufferLayout
from inductor_probe.model.layouts import GeneratedAccess, LayoutRow, Pattern
from inductor_probe.model.nodes import NodeRow
from inductor_probe.report.units import dims_text

FEATURES: Mapping[NestFeature, str] = {
    "indirect-load": "indirect loads",
    "atomic-add": "atomic adds",
    "random-number": "random numbers",
    "division-in-index": "% or / in an index",
    "float64": "float64",
    "reversed-access": "reversed accesses",
    "strided-access": "strided accesses",
}
CONVENTIONS: Mapping[Convention, str] = {
    "indirect-index": "an index that is a loaded value may be negative and count from the end; "
    "whether it is wrapped and checked is not known here",
    "index-wrapped": "to an index that is a loaded value the kernel adds the size where it is negative",
    "index-as-loaded": "an index that is a loaded value is taken as it is: the kernel wraps no negative one",
    "index-checked": "such an index is checked against the size: outside of it the kernel fails",
    "index-not-checked": "such an index is not checked against the size",
    "masked": "masked(m, a, b) is a where m holds, else b; nothing in a is loaded elsewhere",
    "mod": "mod(a, b) has the sign of a, a % b that of b",
    "scan": "how a scan combines two values is not printed in the dump",
    "cast-left-out": "a cast to f16 or bf16 does not round here: code computes on in f32, unless "
    "inductor.emulate_precision_casts is set",
    "places-along-loops": "argmax and argmin count places along these loops: of a buffer that is seen in "
    "another order of dimensions not in its own",
    "shift-as-eager": "a shift by less than 0, or by the width of the type or more, gives what eager gives: "
    "0, or of a >> b the sign, 0 or -1",
    "shift-open": "what a shift by less than 0, or by the width of the type or more, gives is open in Triton",
    "zero-division-raises": "an integer division by 0 makes the kernel raise behind its loops, as eager does",
    "zero-division-is-zero": "a // 0 of integers gives 0",
    "division-open": "what an integer division by 0, or of the least int32 or int64 by -1, gives is open: "
    "C++ on x86 ends the process (SIGFPE)",
    "overflow-open": "C++ leaves open what +, - and * of signed scalars give on overflow (torch passes no "
    "-fwrapv), where eager wraps around",
    "constant-block-mask": "the kernel has no mask for the ends of its loops: its blocks divide them",
    "atomic-add": "+= is atomic: several iterations may add to one element, in any order",
}
DECIDED: Mapping[bool, str] = {True: "holds in every iteration", False: "holds in no iteration"}
_WITH_ORDER = ("transposed", "padded", "other")
"""Formats whose name does not say the order of the dimensions."""


def format_words(name: object, order: object, always: bool = False) -> str | None:
    """`contiguous`; `transposed [0, 2, 1, 3]`; None without a name."""
    if name is None:
        return None
    return f"{name} {order}" if order is not None and (always or name in _WITH_ORDER) else str(name)


NO_MEMORY = "no memory"
"""In the place of a format."""


def format_text(row: LayoutRow, always: bool = False) -> str:
    """`transposed [0, 2, 1, 3]`: the memory format; `always` adds the order to every format that has one."""
    if row.packing and row.packing.knowledge == "recorded":
        return "packed"
    if row.memory_format == "none":
        return NO_MEMORY
    order = None if row.dim_order is None else list(row.dim_order)
    return format_words(str(row.memory_format), order, always) or ""


def unknown_layout(row: LayoutRow) -> str:
    """Say why the memory format of a buffer is unknown."""
    layout = row.layout
    if layout is None:
        return "no layout in the dump: this torch prints none, or it is a constant of the module"
    if layout.kind == "MultiOutputLayout":
        return "the result of a call whose values are buffers of their own: those have layouts, it has none"
    if row.packing and row.packing.knowledge == "recorded":
        return f"a weight that {row.packing.operator or 'a library'} packed: its layout is the library's own"
    if row.packing:
        printed = dict(layout.extras).get(PRINTED_STRIDE)
        return (
            f"a constant with the stride {printed}, which cannot be that of its memory; inferred: a "
            "weight that freezing packed for a library"
        )
    return f"{layout.kind} without a size and stride that can be compared"


def pattern_text(pattern: Pattern) -> str:
    """`contiguous in runs of 3, reversed along p1`; `strided by 32`; `indirect`."""
    text = pattern.kind.replace("_", " ")
    if pattern.kind == "contiguous" and pattern.run is not None:
        text += f" in runs of {pattern.run}"
    elif pattern.kind == "strided":
        text += f" by {pattern.stride}"
    elif pattern.kind == "reversed" and pattern.stride != -1:
        text += f", strided by {str(pattern.stride).removeprefix('-')}"
    return text + (f", reversed along {', '.join(pattern.reversed_loops)}" if pattern.reversed_loops else "")


def part_text(parts: Sequence[BufferLayout]) -> str:
    """`a part: [63] with strides [1] from element 1`; several where a call is passed several views."""
    texts = [
        f"{dims_text(part.size)} with strides {dims_text(part.stride)} from element {part.offset}"
        for part in parts
    ]
    return f"a part: {'; '.join(texts)}" if len(texts) == 1 else f"{len(texts)} parts: {'; '.join(texts)}"


def generated_text(access: GeneratedAccess) -> str:
    """How the generated kernel makes an access: `vector along x0 (32 steps)`, `stride 5 along x2`."""
    if access.form == "none":
        return "no access: the value stays in registers"
    steps = f" ({access.steps} steps)" if access.steps is not None else ""
    along = f" along {access.loop}{steps}" if access.loop else ""
    if access.form == "vector":
        return f"vector{along}"
    if access.stride == "indirect":
        return f"one element at a time{along}, indirect" if access.form == "element" else "indirect"
    if access.stride is None:
        return "one element" if access.form == "element" and access.contiguous else "not known"
    coalesced = "coalesced, " if access.form == "block" and access.contiguous else ""
    return f"{coalesced}stride {access.stride}{along}"


def memory_text(row: NodeRow) -> str:
    """`mutates arg0_1, atomic_add`; `reuses buf1`; empty where it only writes buffers of its own."""
    effects = [f"{effect.kind.replace('_', ' ')} {effect.buffer}" for effect in row.effects]
    return ", ".join([*effects, *row.store_modes])
