"""How the threads of a warp reach global memory together, by the addresses that Triton's GPU IR computes.

TTGIR is SSA, an operation a line, with the layout of each tensor in its type:

    #blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
    %x0 = arith.remsi %xindex, %cst : tensor<1024xi32, #blocked> loc(#loc9)
    %tmp0_3 = tt.load %tmp0_2, %xmask : tensor<1024x!tt.ptr<f32>, #blocked> loc(#loc12)

A layout says which element of a tensor each thread has in each register (TritonGPUAttrDefs.td of Triton).
The addresses of the requests of some warps are computed from that, operation by operation. For example, with
`address = 3 * element` 32 threads that read a float each touch bytes 0 to 375: 12 sectors of 32 bytes, where
4 would hold as many floats.

What is loaded or passed is not known: it becomes a term of its own (`3 * load17 + 5`), the same for threads
that load it from the same address. Terms that differ among threads may lie anywhere.
"""

from __future__ import annotations

import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.model.assembly import AccessKind, GlobalAccess, WarpAccess, WarpPattern

SECTOR_BYTES = 32
"""What the memory system moves at least: a quarter of a cache line of 128 bytes."""
_LANES = 32
_PROGRAMS = range(3)
"""Programs along x whose requests are looked at: rows of an odd size begin at other places of a sector."""
_MOST_WARPS = 2
_MOST_REQUESTS = 16
_STEADY = 0.75
"""Of the steps from thread to thread, for a pattern to have the name of the most frequent one."""
_MOST_OPERATIONS = 20_000

_LAYOUT = re.compile(r"^(?P<name>#\w+) = #ttg\.(?P<kind>\w+)<\{(?P<text>.*)\}>\s*$", re.MULTILINE)
_NUMBERS = re.compile(r"(\w+) = \[([\d, ]*)\]")
_BASES = re.compile(r"(register|lane|warp) = \[((?:\[[\d, ]*\](?:, )?)*)\]")
_BASIS = re.compile(r"\[([\d, ]*)\]")
_OPERATION = re.compile(r'^\s*(?:(?P<result>%[\w-]+)(?::\d+)? = )?"?(?P<name>[a-z_]+\.[\w.]+)"?(?P<rest>.*)$')
_NAME = re.compile(r"%[\w-]+(?:#\d+)?")
_TENSOR = re.compile(
    r"tensor<(?P<shape>(?:\d+x)+)(?:!tt\.ptr<(?P<pointee>[\w.]+)[^>]*>|(?P<type>[\w.]+)), "
    r"(?P<layout>#ttg\.slice<\{dim = \d+, parent = #\w+\}>|#\w+)>"
)
_SCALAR_POINTER = re.compile(r"!tt\.ptr<(?P<pointee>[\w.]+)[^>]*>")
_PLACE = re.compile(r"loc\((#loc\d*)\)\s*(?:\{\s*)?$")
_LOCATION = re.compile(r"^(?P<name>#loc\d*) = loc\((?P<what>.*)\)$", re.MULTILINE)
_FILE_LINE = re.compile(r'"(?P<file>[^"]*)":(?P<line>\d+):\d+')
_FOR = re.compile(r"(?P<variable>%[\w-]+) = (?P<first>%[\w-]+) to ")
_ITERATED = re.compile(r"iter_args\((?P<pairs>[^)]*)\)")
_PAIR = re.compile(r"(%[\w-]+) = (%[\w-]+(?:#\d+)?)")
_BITS = re.compile(r"(?:i|f|bf|f8\w*?)(\d+)")
_KINDS: dict[str, AccessKind] = {
    "tt.load": "load",
    "tt.store": "store",
    "tt.atomic_rmw": "atomic",
    "ttg.async_copy_global_to_local": "copy",
}
_SAME = frozenset((
    "tt.splat", "ttg.convert_layout", "arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast",
    "arith.extf", "arith.truncf", "tt.bitcast",
))  # fmt: skip
"""What leaves a value as it is, for an address."""


def _quotient(a: Any, b: Any) -> Any:
    """Divide as `arith.divsi` does: towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "arith.addi": operator.add, "arith.subi": operator.sub, "arith.muli": operator.mul,
    "tt.addptr": operator.add, "arith.divsi": _quotient, "arith.divui": _quotient,
    "arith.remsi": lambda a, b: a - b * _quotient(a, b), "arith.remui": lambda a, b: a - b * _quotient(a, b),
    "arith.andi": operator.and_, "arith.ori": operator.or_, "arith.xori": operator.xor,
    "arith.minsi": min, "arith.maxsi": max, "arith.minui": min, "arith.maxui": max,
    "arith.addf": operator.add, "arith.subf": operator.sub, "arith.mulf": operator.mul,
    "arith.divf": operator.truediv, "arith.minnumf": min, "arith.maxnumf": max,
    "arith.shli": operator.lshift, "arith.shrsi": operator.rshift,
}  # fmt: skip
_UNARY: dict[str, Callable[[Any], Any]] = {
    "arith.sitofp": float, "arith.uitofp": float, "arith.fptosi": math.trunc, "arith.fptoui": math.trunc,
    "math.floor": math.floor, "math.ceil": math.ceil, "__nv_floorf": math.floor, "__nv_ceilf": math.ceil,
    "__nv_truncf": math.trunc, "__nv_nearbyintf": round, "__nv_rintf": round, "arith.negf": operator.neg,
}  # fmt: skip
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge,
}  # fmt: skip
_REGIONS = ("tt.reduce", "tt.scan", "scf.")
"""Begin with a line that does not name the type of their result."""
_LINEAR = frozenset(("arith.addi", "arith.subi", "tt.addptr"))


class _Layout(Struct, frozen=True):
    """Which element each thread has: `blocked` with sizes by dimension, or `linear` with bases."""

    sizes: dict[str, tuple[int, ...]]
    bases: dict[str, tuple[tuple[int, ...], ...]]

    @property
    def warps(self) -> int:
        """Number of warps that it is made for."""
        return math.prod(self.sizes.get("warpsPerCTA", ())) if self.sizes else 1 << len(self.bases["warp"])

    def element(self, register: int, lane: int, warp: int) -> tuple[int, ...]:
        """Return the indices of the element that a thread has in a register."""
        if self.bases:
            chosen = [
                basis
                for name, number in (("register", register), ("lane", lane), ("warp", warp))
                for bit, basis in enumerate(self.bases.get(name, ()))
                if number >> bit & 1
            ]
            rank = len(next(basis for bases in self.bases.values() for basis in bases))
            places = [0] * rank
            for basis in chosen:
                places = [a ^ b for a, b in zip(places, basis, strict=True)]
            return tuple(places)
        per_thread, lanes = self.sizes["sizePerThread"], self.sizes["threadsPerWarp"]
        places = [0] * len(per_thread)
        scale = [1] * len(per_thread)
        for number, sizes in ((register, per_thread), (lane, lanes), (warp, self.sizes["warpsPerCTA"])):
            rest = number
            for dim in self.sizes["order"]:
                places[dim] += rest % sizes[dim] * scale[dim]
                rest //= sizes[dim]
            scale = [a * b for a, b in zip(scale, sizes, strict=True)]
        return tuple(places)


class _Linear(Struct, frozen=True):
    """`sum of coefficient * term + constant`; a term is the number of something that is not known."""

    terms: tuple[tuple[int, int], ...]
    constant: int = 0


@dataclass(slots=True, eq=False)
class _Operation:
    """An operation with the operations that its operands are results of; None: of none that is known."""

    name: str
    text: str
    operands: tuple[_Operation | None, ...] = ()
    shape: tuple[int, ...] = ()
    number: int = 0


@dataclass(slots=True)
class _Terms:
    """Numbers for what is not known; `loaded` are those that depend on memory."""

    numbers: dict[tuple[Any, ...], int] = field(default_factory=dict)
    loaded: set[int] = field(default_factory=set)

    def of(self, *key: Any, memory: bool = False) -> _Linear:
        """Return the term for a key: the same for the same key."""
        number = self.numbers.setdefault(key, len(self.numbers))
        inside = (term for part in key if isinstance(part, _Linear) for term, _ in part.terms)
        if memory or any(term in self.loaded for term in inside):
            self.loaded.add(number)
        return _Linear(((number, 1),))


_Places = tuple[tuple[int, ...], ...]
"""For each dimension of a tensor, an index for each thread's element."""


@dataclass(slots=True)
class _Request:
    """Evaluates operations for the elements of one request of a warp, in the program `program` along x."""

    program: int
    terms: _Terms
    count: int
    known: dict[tuple[int, _Places], list[Any]] = field(default_factory=dict)

    def values(self, operation: _Operation | None, places: _Places) -> list[Any]:
        """Return the value of each element; numbers, or `_Linear` where something is not known."""
        if operation is None:
            return [self.terms.of("operand")] * self.count
        rank = len(operation.shape)
        if rank != len(places) and not operation.name.startswith(_REGIONS):
            if rank:  # not the tensor that this text would make of it
                return [self.terms.of(operation.number, index) for index in range(self.count)]
            places = ()
        key = (operation.number, places)
        if key not in self.known:
            self.known[key] = self._values(operation, places)
        return self.known[key]

    def _values(self, operation: _Operation, places: _Places) -> list[Any]:
        name, text = operation.name, operation.text
        if name == "arith.constant":
            return [_constant(text, self.terms)] * self.count
        if name == "tt.get_program_id":
            return [self.program if text.lstrip().startswith("x") else 0] * self.count
        if name == "tt.get_num_programs":
            return [1] * self.count
        if name == "tt.make_range":
            first = re.search(r"start = (-?\d+)", text)
            start = int(first[1]) if first else 0
            return [start + place for place in places[0]] if places else [start] * self.count
        operands = operation.operands
        if name == "tt.expand_dims" and (axis := re.search(r"axis = (\d+)", text)):
            return self.values(operands[0], tuple(p for dim, p in enumerate(places) if dim != int(axis[1])))
        if name == "tt.broadcast" and operands and operands[0] is not None:
            zero = (0,) * self.count
            inner = operands[0].shape
            return self.values(
                operands[0],
                tuple(zero if size == 1 else place for size, place in zip(inner, places, strict=False)),
            )
        if name == "tt.trans" and (order := re.search(r"order = array<i32: ([\d, ]+)>", text)):
            turned = [int(number) for number in order[1].split(",")]
            return self.values(operands[0], tuple(places[turned.index(dim)] for dim in range(len(places))))
        if name in _SAME and operands:
            return self.values(operands[0], places)
        if name == "argument" or not operands:
            return [self.terms.of(operation.number)] * self.count
        if name in _KINDS and operands:
            addresses = self.values(operands[0], places)
            return [self.terms.of(operation.number, address, memory=True) for address in addresses]
        if name.startswith((*_REGIONS, "tt.reshape", "tt.dot")):
            rows = zip(*places, strict=True) if places else ((),) * self.count
            return [self.terms.of(operation.number, row, memory=True) for row in rows]
        return self._elementwise(operation, [self.values(one, places) for one in operands])

    def _elementwise(self, operation: _Operation, columns: list[list[Any]]) -> list[Any]:
        name = operation.name
        if name == "tt.extern_elementwise" and (symbol := re.search(r'symbol = "(\w+)"', operation.text)):
            name = symbol[1]
        if name.startswith("arith.cmp"):
            word = re.match(r"\s*[uos]?(\w+),", operation.text)
            name = f"cmp.{word[1]}" if word else name
        return [_applied(name, row, self.terms) for row in zip(*columns, strict=True)]


def _applied(name: str, row: tuple[Any, ...], terms: _Terms) -> Any:
    """Return an elementwise operation of known numbers, or a term."""
    try:
        if name == "arith.select" and not isinstance(row[0], _Linear):
            return row[1] if row[0] else row[2]
        if not any(isinstance(value, _Linear) for value in row):
            if name in _BINARY:
                return _BINARY[name](*row)
            if name in _UNARY:
                return _UNARY[name](*row)
            if name.startswith("cmp.") and name[4:] in _COMPARED:
                return _COMPARED[name[4:]](*row)
        elif (result := _linear(name, row)) is not None:
            return result
    except (ArithmeticError, ValueError, TypeError):  # a division by zero, or not of these operands
        pass
    return terms.of(name, *row)


def _linear(name: str, row: tuple[Any, ...]) -> _Linear | None:
    """Return a sum, or a product with a whole number, where one operand is not known."""
    if name in _LINEAR:
        a, b = (value if isinstance(value, _Linear) else _Linear((), int(value)) for value in row)
        sign = -1 if name == "arith.subi" else 1
        sums: Counter[int] = Counter(dict(a.terms))
        for term, times in b.terms:
            sums[term] += sign * times
        return _Linear(
            tuple(sorted((term, times) for term, times in sums.items() if times)),
            a.constant + sign * b.constant,
        )
    if name == "arith.muli":
        unknown, factor = row if isinstance(row[0], _Linear) else row[::-1]
        if isinstance(factor, int):
            return _Linear(
                tuple((t, times * factor) for t, times in unknown.terms), unknown.constant * factor
            )
    return None


def _constant(text: str, terms: _Terms) -> Any:
    value = re.match(r"\s*(?:dense<)?(?P<value>[^>:]*)", text)
    word = value["value"].strip() if value else ""
    if word in ("true", "false"):
        return word == "true"
    try:
        return int(word) if re.fullmatch(r"-?\d+", word) else float(word)
    except ValueError:
        return terms.of("constant", word)


def warp_accesses(ttgir: str, file: str, accesses: Sequence[GlobalAccess]) -> Iterator[WarpAccess]:
    """Yield how a warp reaches memory in each load and store of `file`, as far as its addresses are known.

    Args:
        ttgir: text of the stage. file: path of the kernel's text in its locations.
        accesses: of PTX: how many bits a thread moves at once.
    """
    layouts = _layouts(ttgir)
    lines = _lines(ttgir, file)
    widths: dict[tuple[int | None, AccessKind], set[int]] = {}
    for access in accesses:
        widths.setdefault((access.line, access.kind), set()).add(access.bits)
    terms = _Terms()
    rows: dict[tuple[int, AccessKind], list[WarpAccess]] = {}
    for operation in _operations(ttgir):
        kind = _KINDS.get(operation.name)
        place = _PLACE.search(operation.text)
        line = lines.get(place[1]) if kind and place else None
        if kind is None or line is None:
            continue
        narrowest = min(widths.get((line, kind), {0}))
        unknown = WarpAccess(line, kind, 0, 1, "unknown", None, None, None, None, None)
        if row := _warp_access(operation, unknown, narrowest, layouts, terms):
            rows.setdefault((line, kind), []).append(row)
    for _, found in sorted(rows.items(), key=lambda item: item[0]):
        yield from dict.fromkeys(found)  # a loop that was unrolled has the same access several times


def _layouts(ttgir: str) -> dict[str, _Layout]:
    layouts = {}
    for match in _LAYOUT.finditer(ttgir):
        if match["kind"] == "blocked":
            sizes = {name: _integers(numbers) for name, numbers in _NUMBERS.findall(match["text"])}
            needed = [
                sizes.get(key, ()) for key in ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")
            ]
            ranks = {len(numbers) for numbers in needed}
            whole = len(ranks) == 1 and ranks != {0} and all(min(numbers) > 0 for numbers in needed[:3])
            if whole and sorted(sizes["order"]) == [*range(len(sizes["order"]))]:
                layouts[match["name"]] = _Layout(sizes, {})
        elif match["kind"] == "linear":
            bases = {
                name: tuple(_integers(basis) for basis in _BASIS.findall(text))
                for name, text in _BASES.findall(match["text"])
            }
            ranks = {len(basis) for rows in bases.values() for basis in rows}
            if len(ranks) == 1 and "warp" in bases:
                layouts[match["name"]] = _Layout({}, bases)
    return layouts


def _integers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(",") if number.strip())


def _lines(ttgir: str, file: str) -> dict[str, int]:
    """Return the line of `file` that each location names; of inlined code that of the outermost call."""
    texts = {match["name"]: match["what"] for match in _LOCATION.finditer(ttgir)}
    lines: dict[str, int] = {}

    def line(name: str, depth: int = 0) -> int | None:
        text = texts.get(name, "")
        if name in lines or depth > len(texts):
            return lines.get(name)
        place = _FILE_LINE.search(text)
        result = int(place["line"]) if place and place["file"] == file else None
        if result is None:  # `callsite(#loc3 at #loc5)`: the last one is the caller
            inner = [line(part, depth + 1) for part in reversed(re.findall(r"#loc\d*", text)) if part != name]
            result = next((number for number in inner if number is not None), None)
        if result is not None:
            lines[name] = result
        return result

    for name in texts:
        line(name)
    return lines


def _operations(ttgir: str) -> Iterator[_Operation]:
    """Yield the operations in order, each linked to those that made its operands.

    A loop's variable is at its first step, and what it carries is what it begins with.
    """
    scope: dict[str, _Operation] = {}
    for number, text in enumerate(ttgir.splitlines()[:_MOST_OPERATIONS]):
        if "tt.func" in text:
            for name in re.findall(r"(%\w+): ", text):
                scope[name] = _Operation("argument", "", number=-1 - len(scope))
            continue
        match = _OPERATION.match(text)
        if match is None:
            continue
        rest = match["rest"]
        if match["name"] == "scf.for" and (loop := _FOR.search(rest)):
            iterated = _ITERATED.search(rest)
            pairs = [(loop["variable"], loop["first"]), *_PAIR.findall(iterated["pairs"] if iterated else "")]
            begun = [(inner, scope.get(outer)) for inner, outer in pairs]
            scope |= {inner: one for inner, one in begun if one is not None}
        head = rest.partition(" : ")[0]
        operands = tuple(scope.get(name) for name in _NAME.findall(head))
        shape: tuple[int, ...] = ()
        if tensors := list(_TENSOR.finditer(rest)):
            shape = _integers(tensors[-1]["shape"].replace("x", ","))
        operation = _Operation(match["name"], rest, operands, shape, number)
        yield operation
        if match["result"]:
            scope[match["result"]] = operation


class _Access(Struct, frozen=True):
    """Where a load or store takes its addresses from; `elements`: how many a thread moves at once."""

    pointer: _Operation | None
    mask: _Operation | None
    layout: _Layout
    shape: tuple[int, ...]
    elements: int

    @property
    def requests(self) -> int:
        """How many requests move what a thread has of a tile."""
        registers = math.prod(self.layout.sizes.get("sizePerThread", (self.elements,)))
        return max(1, min(registers // self.elements, _MOST_REQUESTS))

    def addresses(self, program: int, warp: int, number: int, terms: _Terms) -> list[_Linear]:
        """Return the addresses of a request, in elements from the pointer on, thread by thread."""
        first = number * self.elements
        held = [
            self.layout.element(first + register, lane, warp)
            for lane in range(_LANES)
            for register in range(self.elements)
        ]
        if any(len(element) != len(self.shape) for element in held):
            return []
        places = tuple(tuple(element[dim] % size for element in held) for dim, size in enumerate(self.shape))
        request = _Request(program, terms, len(held))
        addresses = request.values(self.pointer, places)
        active = [True] * len(held) if self.mask is None else request.values(self.mask, places)
        return [
            address if isinstance(address, _Linear) else _Linear((), int(address))
            for address, on in zip(addresses, active, strict=True)
            if isinstance(on, _Linear) or on
        ]


def _warp_access(
    operation: _Operation, row: WarpAccess, narrowest: int, layouts: dict[str, _Layout], terms: _Terms
) -> WarpAccess | None:
    """Return what the requests of an access have in common; None where its form is not known."""
    types = operation.text.partition(" : ")[2]
    tensor = next((match for match in _TENSOR.finditer(types) if match["pointee"]), None)
    scalar = _SCALAR_POINTER.search(types)
    pointee = tensor["pointee"] if tensor else scalar["pointee"] if scalar else ""
    size = _BITS.fullmatch(pointee)
    operands = operation.operands
    if size is None or not operands:
        return None
    item = max(int(size[1]), 8)
    row = replace(row, item_bits=item)
    if tensor is None:
        return replace(row, pattern="same-address", stride=0, sectors=1.0, sectors_once=1.0, best=1.0)
    layout, shape = layouts.get(tensor["layout"]), _integers(tensor["shape"].replace("x", ","))
    if layout is None or 0 in shape:
        return row
    row = replace(row, elements=max(1, narrowest // item))
    masked = {"tt.load": 1, "tt.store": 2, "tt.atomic_rmw": 2}.get(operation.name)
    mask = operands[masked] if masked and len(operands) > masked else None
    access = _Access(operands[0], mask, layout, shape, row.elements)
    warps = [
        [access.addresses(program, warp, number, terms) for number in range(access.requests)]
        for program, warp in product(_PROGRAMS, range(min(layout.warps, _MOST_WARPS)))
    ]
    return _summary(row, warps, terms)


def _summary(row: WarpAccess, warps: list[list[list[_Linear]]], terms: _Terms) -> WarpAccess | None:
    """Return what the requests of some warps have in common; None where none has a thread that takes part."""
    size = row.item_bits // 8
    patterns: Counter[tuple[WarpPattern, int | None]] = Counter()
    runs, sectors, once, best = [], [], [], []
    for requests in warps:
        seen: set[tuple[Any, ...]] = set()
        active = [addresses for addresses in requests if addresses]  # a mask may leave out all threads
        for addresses in active:
            groups: dict[tuple[tuple[int, int], ...], set[int]] = {}
            for address in addresses:
                groups.setdefault(address.terms, set()).add(address.constant)
            steps = [b.constant - a.constant if a.terms == b.terms else None for a, b in pairwise(addresses)]
            pattern, run = _pattern(groups, steps, terms)
            patterns[pattern] += 1
            runs.append(run)
            touched = {
                (group, place * size // SECTOR_BYTES) for group, places in groups.items() for place in places
            }
            sectors.append(len(touched))
            seen |= touched
            best.append(-(-sum(map(len, groups.values())) * size // SECTOR_BYTES))
        once += [len(seen) / len(active) for _ in active]
    if not patterns:
        return None
    (name, stride), _ = patterns.most_common(1)[0]
    if blind := {pattern for pattern, _ in patterns} & {"indirect", "unknown"}:
        name, stride = ("unknown" if "unknown" in blind else "indirect"), None
    known = name != "unknown"
    run = sum(runs) / len(runs)
    return replace(
        row,
        pattern=name,
        stride=stride,
        run=run if name in ("contiguous", "reversed", "strided") and run < _LANES * row.elements else None,
        sectors=sum(sectors) / len(sectors) if known else None,
        sectors_once=sum(once) / len(once) if known else None,
        best=sum(best) / len(best) if known else None,
    )


def _pattern(
    groups: dict[tuple[tuple[int, int], ...], set[int]], steps: list[int | None], terms: _Terms
) -> tuple[tuple[WarpPattern, int | None], float]:
    """Return the pattern of a request with its stride, and how many elements go on like that in the mean."""
    count = len(steps) + 1
    if len(groups) > 1:
        shared = frozenset.intersection(*(frozenset(group) for group in groups))
        varying = {term for group in groups for term, times in group if (term, times) not in shared}
        return (("indirect" if varying & terms.loaded else "unknown"), None), count
    if set(steps) <= {0}:
        return ("same-address", 0), count
    step, times = Counter(steps).most_common(1)[0]
    run = count / (1 + len(steps) - times)
    if times < _STEADY * len(steps):
        return ("irregular", None), run
    names: dict[int | None, WarpPattern] = {0: "same-address", 1: "contiguous", -1: "reversed"}
    return (names.get(step, "strided"), step), run
