"""The memory that a kernel is passed: how much, what for, and which integers may stand in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.analysis.graph import view_of
from inductor_probe.analysis.index import value_of
from inductor_probe.analysis.memory_format import ITEM_BYTES
from inductor_probe.backends import backend_called
from inductor_probe.errors import ProbeError
from inductor_probe.model.code import CppFacts
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout, Dim
from inductor_probe.model.kernels import KernelLaunch, KernelRow, Passed
from inductor_probe.model.manifest import InputFact

Use: TypeAlias = Literal["in", "out", "inout"]

_INTEGER = re.compile(r"u?int(?:8|16|32|64)_t|(?:unsigned |signed )?(?:int|long(?: long)?|short|char)")
_BYTES = {"uint8_t": (0, 255), "unsigned char": (0, 255), "int8_t": (-128, 127), "signed char": (-128, 127)}
_POINTER = re.compile(r"(?:const )?(?P<type>[\w:<>, ]+?)\s*\*")
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_SMALL = 8
"""Integers of which nothing is known go up to this: a count of something, and small enough for most sums."""
_LARGEST_SIZE = 1 << 62
# The end of `output_code.py` (torch/_inductor/codegen/wrapper.py, benchmark_compiled_module): `    s77 = 5`.
_TAIL = re.compile(r"^def (?:get_args|benchmark_compiled_module)\(", re.MULTILINE)
_EXAMPLE = re.compile(r"^    (?P<name>\w+) = (?P<value>-?\d{1,18})$", re.MULTILINE)
# A value may be computed by a lambda that is called where it stands; its end is `()` on a line, then `;`.
_ASSIGNED = re.compile(
    r"\bauto\s+(?P<name>\w+)\s*=\s*(?P<value>\[&\][\s\S]{0,9999}?\n\s*\(\)\s*;|[^;]{0,9999};)"
)
# codegen/cpp.py, indirect_assert: `TORCH_CHECK((0 <= tmp0) & (tmp0 < 20L), "index out of bounds...`
_CHECK = re.compile(r"<= (?P<value>tmp\w*)\) & \((?P=value) < (?:[\w:]+<[^<>()\n]*>\()*(?P<high>[^()\n]*)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_INDEX_NUMBER = re.compile(r"(\d{1,18})L{0,2}")
_LONGEST_SOURCE = 200_000


class Memory(Struct, frozen=True):
    """A parameter of a kernel that points to memory.

    Attributes:
        type: of its elements, as the kernel's text has it. text: what the wrapper passes.
        elements: from the first element to the last, gaps of the strides included.
        use: `in`, `out`, or `inout` where the kernel reads what was there before it writes.
        low, high: of the integers in it, both included.
        of, offset: the parameter whose memory it shares, and how many of its own elements further on.
    """

    name: str
    type: str
    text: str
    layout: BufferLayout
    elements: int
    use: Use
    low: int = 0
    high: int = 0
    of: str | None = None
    offset: int = 0

    @property
    def integers(self) -> bool:
        """Whether integers are in it."""
        return _INTEGER.fullmatch(self.type) is not None

    @property
    def item(self) -> int:
        """Bytes of an element."""
        return ITEM_BYTES.get(self.layout.dtype or "", 1)


class Scalar(NamedTuple):
    """A parameter of a kernel that is a number."""

    name: str
    type: str
    text: str
    value: str


def arguments(
    row: KernelRow, launch: KernelLaunch, sizes: Mapping[str, int], facts: Mapping[str, InputFact]
) -> tuple[Memory | Scalar, ...]:
    """Return what a launch passes, in order, sizes as numbers.

    Raises ProbeError: a layout or a size is not known.
    """
    passed_arguments = [(passed, _argument(passed, row, sizes)) for passed in launch.passed]
    numbers = {
        scalar.name: int(scalar.value)
        for _, scalar in passed_arguments
        if isinstance(scalar, Scalar) and scalar.value.isdecimal()
    }
    pointers = frozenset(memory.name for _, memory in passed_arguments if isinstance(memory, Memory))
    limits = bounds(row.source, pointers)
    reads_first = _read_before_written(row, pointers)
    owners: dict[str, str] = {}
    arguments: list[Memory | Scalar] = []
    for passed, argument in passed_arguments:
        if isinstance(argument, Scalar):
            arguments.append(argument)
            continue
        low, high = _range(argument, limits.get(argument.name), facts.get(passed.buffer or ""), numbers)
        owner = owners.setdefault(passed.buffer, argument.name) if passed.buffer else argument.name
        of = owner if owner != argument.name else None
        use: Use = "inout" if argument.use != "in" and argument.name in reads_first else argument.use
        offset = _offset(passed.text, sizes)
        arguments.append(replace(argument, use=use, low=low, high=high, of=of, offset=offset))
    return tuple(_with_shared_memory(arguments))


def _argument(passed: Passed, row: KernelRow, sizes: Mapping[str, int]) -> Memory | Scalar:
    if passed.arg is None or passed.arg.type is None:
        raise ProbeError(
            f"{row.name} is passed {passed.text}, for which it has no parameter",
            "the dump may be cut off: probe check says",
        )
    name, kind, text = passed.arg.name, passed.arg.type, passed.text
    pointer = _POINTER.fullmatch(kind)
    if pointer is None:
        value = text if _NUMBER.fullmatch(text) else str(_size(text, sizes, f"{name} of {row.name}"))
        return Scalar(name, kind, text, value)
    layout = passed.layout
    if layout is None or layout.size is None or layout.stride is None:
        raise ProbeError(f"the dump does not say how large {text} is, {name} of {row.name}")
    what = f"a size of {text}, {name} of {row.name},"
    size = tuple(_size(dim, sizes, what) for dim in layout.size)
    stride = tuple(_size(dim, sizes, what) for dim in layout.stride)
    use: Use = "in" if kind.startswith("const ") else "inout" if passed.arg.role == "inout" else "out"
    last = sum((length - 1) * step for length, step in zip(size, stride, strict=True))
    numbers = replace(layout, size=size, stride=stride)
    return Memory(name, pointer["type"].strip(), text, numbers, 0 if 0 in size else last + 1, use)


def _read_before_written(row: KernelRow, pointers: frozenset[str]) -> set[str]:
    """Return the pointers of which the kernel may read what was there before: it loads or adds first."""
    backend = backend_called("cpp")
    first: dict[str, str] = {}
    for use in backend.pointer_uses(row.source, pointers) if backend else ():
        first.setdefault(use.pointer, use.kind)
    atomic = isinstance(row.details, CppFacts) and row.details.atomics > 0
    return {name for name in pointers if atomic or first.get(name, "load") != "store"}


def _range(
    memory: Memory, limits: Bounds | None, fact: InputFact | None, numbers: Mapping[str, int]
) -> tuple[int, int]:
    """Return the integers to fill `memory` with: recorded ones, or those that cannot leave a buffer."""
    if not memory.integers:
        return 0, 0
    if fact is not None and fact.minimum is not None and fact.maximum is not None:
        return fact.minimum, fact.maximum
    below = limits.below if limits else None
    if below is not None:
        limit = value_of(below, numbers)
        return 0, max((1 if limit is None else limit) - 1, 0)
    if limits is not None and limits.used_in_index:
        return 0, 0
    return _BYTES.get(memory.type, (1, _SMALL))  # not 0: something may be divided by it


def _offset(text: str, sizes: Mapping[str, int]) -> int:
    """`reinterpret_tensor(buf0, (4, 3), (3, 1), 12)` starts at element 12 of `buf0`."""
    view = view_of(text) if "(" in text else None
    return _size(view.offset, sizes, f"the offset of {text}") if view else 0


def _with_shared_memory(arguments: list[Memory | Scalar]) -> Iterator[Memory | Scalar]:
    """Where parameters share memory, the first holds all of it, and is put back if any of them is written."""
    memories = [argument for argument in arguments if isinstance(argument, Memory)]
    for argument in arguments:
        parts = [part for part in memories if argument.name in (part.name, part.of)]
        if len(parts) > 1 and isinstance(argument, Memory):
            last = max((part.offset + part.elements) * part.item for part in parts)
            written = any(part.use != "in" for part in parts)
            elements = -(-last // argument.item)
            yield replace(argument, elements=elements, use="inout" if written else "in")
        else:
            yield argument


def recorded_sizes(graph: CompiledGraph, output_code: str) -> dict[str, int]:
    """Return the values that the names of sizes had: `{"s77": 5}`.

    They come from the manifest, or else from the example inputs at the end of `output_code`, or from what
    `fx_graph_runnable.py` begins with. A size that is known only when the graph runs (`u0 = buf1.item()`) is
    missing.
    """
    sizes = dict(graph.runnable.symbols) if graph.runnable else {}
    if tail := _TAIL.search(output_code):
        examples = _EXAMPLE.finditer(output_code, tail.end())
        sizes |= {match["name"]: int(match["value"]) for match in examples}
    for fact in graph.record.inputs if graph.record else ():
        if fact.kind == "symint" and fact.value is not None:
            sizes[fact.name] = fact.value
    for symbol in graph.code.symbols if graph.code else ():
        value = value_of(symbol.value, sizes)
        if value is not None:
            sizes[symbol.name] = value
    return sizes


def _size(dim: Dim, sizes: Mapping[str, int], what: str) -> int:
    """Return a size as a number; ProbeError where it names one whose value the dump does not have."""
    value = value_of(dim, sizes)
    if value is not None and abs(value) < _LARGEST_SIZE:
        return value
    unknown = [name for name in dict.fromkeys(re.findall(r"\b[a-z]\w*\d+\b", str(dim))) if name not in sizes]
    raise ProbeError(
        f"{what} is {dim}, and the dump does not say what {' and '.join(unknown) or dim} was",
        f"give it: --size {unknown[0]}=16" if unknown else None,
    )


class Bounds(NamedTuple):
    """What a kernel does with the integers behind a pointer.

    Attributes:
        below: they must be less than this: an index made from them is checked.
        used_in_index: an index is made from them, so that a wrong one reads or writes beside the buffer.
    """

    below: int | str | None
    used_in_index: bool


def bounds(source: str, pointers: frozenset[str]) -> dict[str, Bounds]:
    """Return for each of `pointers` what the text of a kernel does with integers loaded through it.

    Values are followed through `auto tmp3 = ...;`. `below` is a number, or the name of a size (`ks0`):

        auto tmp0 = in_ptr0[x0]; ... (0 <= tmp0) & (tmp0 < 20L) ... in_ptr1[tmp0] -> in_ptr0: Bounds(20, True)
    """
    backend = backend_called("cpp")
    if backend is None or len(source) > _LONGEST_SOURCE:
        return {}
    values: dict[str, str] = {}
    for match in _ASSIGNED.finditer(source):
        values[match["name"]] = values.get(match["name"], "") + " " + match["value"]
    below: dict[str, list[int | str]] = {}
    for check in _CHECK.finditer(source):
        limit = check["high"].strip()
        number = _INDEX_NUMBER.fullmatch(limit)
        for pointer in _pointers_of(check["value"], values, pointers):
            below.setdefault(pointer, []).append(int(number[1]) if number else limit)
    index = {
        pointer
        for use in backend.pointer_uses(source, pointers)
        for word in _WORD.findall(use.index or "")
        if word.startswith("tmp")
        for pointer in _pointers_of(word, values, pointers)
    }
    # the least number, which says more than the name of a size
    numbers = {name: [limit for limit in limits if isinstance(limit, int)] for name, limits in below.items()}
    least = {name: min(numbers[name]) if numbers[name] else limits[0] for name, limits in below.items()}
    return {pointer: Bounds(least.get(pointer), pointer in index) for pointer in below.keys() | index}


def _pointers_of(name: str, values: Mapping[str, str], pointers: frozenset[str]) -> Iterator[str]:
    """Yield the pointers that a value is computed from."""
    seen, waiting = {name}, [name]
    while waiting:
        for word in _WORD.findall(values.get(waiting.pop(), "")):
            if word in pointers:
                yield word
            elif word in values and word not in seen:
                seen.add(word)
                waiting.append(word)
