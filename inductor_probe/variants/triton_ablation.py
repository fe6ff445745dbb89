"""Triton kernels with parts left out."""

from __future__ import annotations

import re

from inductor_probe.backends.brackets import inside
from inductor_probe.variants.code import KernelCode
from inductor_probe.variants.places import Place, body_start, places

_TYPES = {
    "*fp16": "tl.float16", "*bf16": "tl.bfloat16", "*fp32": "tl.float32", "*fp64": "tl.float64",
    "*i1": "tl.int1", "*i8": "tl.int8", "*i16": "tl.int16", "*i32": "tl.int32", "*i64": "tl.int64",
    "*u8": "tl.uint8", "*u16": "tl.uint16", "*u32": "tl.uint32", "*u64": "tl.uint64",
}  # fmt: skip
# One operand, over the last dimension: `tmp4 = tl.sum(tmp3, 1)[:, None].to(tl.float32)`.
_REDUCED = re.compile(
    r"^(?P<indent>\s*)(?P<name>\w+) = (?:tl\.sum|triton_helpers\.(?:max2|min2|any|prod))"
    r"\((?P<value>\w+), 1\)\[:, None\](?P<cast>(?:\.to\([\w.]+\))*)$"
)
_OTHER = re.compile(
    r"\btl\.(?:sum|max|min|reduce|associative_scan|argmax|argmin|xor_sum|sort|cumsum)\("
    r"|\btriton_helpers\.(?:max2|min2|any|prod|welford\w*|\w+_with_index|exclusive_scan\w*|online_softmax\w*)\("
)
_ASSERT = re.compile(r"^\s*tl\.device_assert\(")
_VALUE = re.compile(r"\btmp\d+\b")


def without_reduction(kernel: KernelCode) -> str:
    """Return the source without the combination across the threads of a block, which costs the most.

    An assembly statement that is not pure takes each value that was to be combined, so that it is computed;
    the result is made from the index. What a loop adds up thread by thread stays.
    """
    lines = kernel.source.split("\n")
    first = kernel.source.count("\n", 0, body_start(kernel.source, "triton")) + 1
    for number, line in enumerate(lines, 1):
        found = _REDUCED.match(line)
        if found:
            value, indent = found["value"], found["indent"]
            lines[number - 1] = (
                f"{indent}tl.inline_asm_elementwise('mov.b32 $0, $1;', '=r,r', "
                f"[{value}.to(tl.float32).to(tl.int32, bitcast=True)], "
                "dtype=tl.int32, is_pure=False, pack=1)\n"
                f"{indent}{found['name']} = xindex.to({value}.dtype){found['cast']}"
            )
        elif number > first and _OTHER.search(line):
            raise kernel.refusal(number, "a reduction in a form that is not known")
    return "\n".join(lines)


def without_loads(kernel: KernelCode) -> str:
    """Return the source in which each load gives its index, as a value of the type it loads."""
    return _edited(kernel, loads=True)


def only_stores(kernel: KernelCode) -> str:
    """Return the source in which each store stores its index, so that the compiler drops all the rest."""
    return _edited(kernel, loads=False)


def _edited(kernel: KernelCode, *, loads: bool) -> str:
    source = kernel.source
    found: list[tuple[int, int, str]] = []
    for arg in kernel.backend.read(source).args:
        if arg.role == "size" or arg.type is None or not arg.type.startswith("*"):
            continue
        for place in places(source, arg.name, "triton"):
            if isinstance(place, int):
                raise kernel.refusal(place, f"{arg.name} is used in a form that is not known")
            if place.writes is None:
                raise kernel.refusal(place.line, "an atomic operation loads and stores")
            if place.writes and _VALUE.search(place.index):
                raise kernel.refusal(place.line, "it stores through an index that was loaded")
            if place.writes is not loads:
                found.append(_replaced(kernel, arg.name, arg.type, place))
    for start, end, text in sorted(found, reverse=True):
        source = source[:start] + text + source[end:]
    return "\n".join(line for line in source.split("\n") if not _ASSERT.match(line))


def _replaced(kernel: KernelCode, pointer: str, kind: str, place: Place) -> tuple[int, int, str]:
    """Return the piece that a load, or the value of a store, is replaced by: its index, and the program's id.

    The id keeps an index without variables from being a constant, and makes a tensor of a plain number.
    """
    source = kernel.source
    dtype = _TYPES.get(kind)
    if dtype is None:
        raise kernel.refusal(place.line, f"the type {kind} of {pointer} is not known")
    value = f"(({place.index}) + tl.program_id(0)).to({dtype})"
    opening = source.index("(", source.rindex("tl.", 0, place.start))
    arguments = inside(source, opening)
    end = opening + len(arguments or "") + 1
    if not place.writes:
        return source.rindex("tl.load", 0, opening), end + 1, value
    comma = source.index(",", place.end)
    return comma + 1, _argument_end(source, comma + 1), f" tl.broadcast_to({value}, {_shape(source, comma)})"


def _shape(source: str, comma: int) -> str:
    """Return the shape of the value that a store stores now."""
    return f"({source[comma + 1 : _argument_end(source, comma + 1)].strip()}).shape"


def _argument_end(source: str, at: int) -> int:
    """Return where the argument that starts at `at` ends: at the comma or bracket behind it."""
    depth = 0
    while depth or source[at] not in ",)":
        depth += (source[at] in "([{") - (source[at] in ")]}")
        at += 1
    return at
