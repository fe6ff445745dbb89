"""Launch arguments against the kernel's signature: count, types, order, sizes, grid, promises.

What does not fit is a remark. Codes and their numbers, after `aspect`, in order:

- `argument-count`: parameters, grid (further ones), passed. `argument-type`: argument, type, passed, and
  dtype of the buffer where that is what differs.
- `other-buffer`: argument, buffer, access (`read`, `write`): no node of the kernel reaches the buffer so.
  `swapped-buffers`: argument, buffer, other_argument, other_buffer, access.
- `other-size`: argument, passed, compiled (the value in the text). `block-too-small`: argument, passed,
  block, limit. `other-points`: passed (all sizes), node, points, reduced (of the node).
- `grid-size-missing`: grid, argument. `grid-too-large`: sizes, limit (blocks). `other-grid-blocks`: blocks,
  rows, columns, block_rows, block_columns, needed. `other-grid-batches`: blocks, batches.
  `other-grid-sizes`: grid, passed.
- `not-divisible`: argument, divisor, passed. `not-aligned`: argument, alignment, passed, offset (bytes).
- `int32-overflow`: argument, passed. `int32-extent`: argument, passed, elements (from first to last).

Works on what was read, for Triton kernels that inductor wrote; a user's own kernel follows other rules. What
is not known (symbolic sizes without values, nodes that no IR file holds) is not compared, and not counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import prod

from inductor_probe.analysis.access import LOADS
from inductor_probe.analysis.graph import index_of, view_of
from inductor_probe.analysis.index import SYMBOL, all_numbers, known_sum, prime_values, value_of
from inductor_probe.analysis.links import launches, links
from inductor_probe.analysis.memory_format import ITEM_BYTES
from inductor_probe.model.code import Kernel, TritonFacts
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout, Dim, SchedulerNode, WeakDep
from inductor_probe.model.kernels import Aspect, KernelLaunch, LaunchCheck, Passed
from inductor_probe.model.record import collected
from inductor_probe.model.remark import Number, Remark, RemarkCode, Subject

ASPECTS: tuple[Aspect, ...] = ("count", "type", "order", "numel", "grid", "divisibility", "index width")
ALIGNMENT = 16
LARGEST_INT32 = (1 << 31) - 1
_LARGEST_YZ_GRID = 65_535
_LARGEST_BLOCK = 1024
"""Of Y and Z: `TRITON_MAX_BLOCK` of torch/_inductor/runtime/hints.py."""
_NUMBER = re.compile(r"-?\d{1,19}")
_NAME = re.compile(r"[A-Za-z_]\w*")
_POINTER = re.compile(r"(?:in|out)_ptr(\d+)")
_NUMEL = re.compile(r"[xyzr]\d?_?numel")
_FIXED = re.compile(r"^    (?P<name>[xyzr]\d?_?numel)\s*(?::[^=\n]*)?= (?P<value>\d{1,19})$", re.MULTILINE)
_PERSISTENT = re.compile(
    r"^    (?P<name>R\d?_?BLOCK)\s*:\s*tl\.constexpr = (?P<value>\d{1,19})$", re.MULTILINE
)
_MATRIX = re.compile(r"^    (?P<name>[MN]) = (?P<value>\d{1,19})$", re.MULTILINE)
_GRID_NEEDS = {
    "Grid1D": ("xnumel",),
    "Grid2D": ("xnumel", "ynumel"),
    "Grid3D": ("xnumel", "ynumel", "znumel"),
    "BatchMatmulGrid3D": ("xnumel", "ynumel", "znumel"),
    "Grid2DWithYZOverflow": ("xnumel", "ynumel"),
    "MixOrderReductionGrid": ("xnumel",),
    "CooperativeReductionGrid": ("xnumel",),
    "SplitScanGrid": ("r0_numel", "xnumel"),
}
"""Arguments from which a grid is computed: the classes of `GridExpr` in triton_heuristics.py."""
_DTYPES = {
    "fp16": ("float16",), "bf16": ("bfloat16",), "fp32": ("float32", "complex64"),
    "fp64": ("float64", "complex128"),
    "i1": ("bool",), "i8": ("int8", "bool"), "i16": ("int16",), "i32": ("int32",), "i64": ("int64",),
    "u8": ("uint8", "bool"), "u16": ("uint16",), "u32": ("uint32",), "u64": ("uint64",),
    "fp8e4nv": ("float8_e4m3fn",), "fp8e5": ("float8_e5m2",), "fp8e4b8": ("float8_e4m3fnuz",),
    "fp8e5b16": ("float8_e5m2fnuz",),
}  # fmt: skip
"""Dtypes of a buffer that a pointer of this type may be given."""

_Comparison = tuple[Aspect, bool, RemarkCode, tuple[tuple[str, Number], ...]]
"""One comparison: of what, whether it fits, and the remark's code and numbers where it does not."""


def check_launches(graph: CompiledGraph) -> LaunchCheck:
    """Check every launch of a Triton kernel of `graph`."""
    index = index_of(graph)
    nodes = collected(
        ((link.kernel, link.launches[0].first), index.nodes.leaf[link.node])
        for link in links(graph).nodes.values()
        if link.kernel is not None and len(link.launches) == 1
    )
    checked = 0
    compared: Counter[Aspect] = Counter()
    remarks: list[Remark] = []
    for name, calls in launches(graph).items():
        kernel = index.kernels.get(name)
        facts = kernel.details if kernel else None
        if kernel is None or not isinstance(facts, TritonFacts) or kernel.chooses:
            continue
        if facts.heuristic in (None, "user_autotune"):
            continue
        for launch in calls:
            checked += 1
            check = _LaunchCheck(graph, kernel, facts, launch, nodes.get((name, launch.span.first), ()))
            for aspect, fits, code, numbers in check.comparisons():
                compared[aspect] += 1
                if not fits:
                    remarks.append(
                        Remark(
                            code,
                            "hazard",
                            Subject("kernel", name),
                            (("aspect", aspect), *numbers),
                            evidence=(launch.span,),
                            knowledge="read",
                        )
                    )
    remarks.sort(key=lambda remark: remark.evidence[0].first)
    return LaunchCheck(
        graph.name, checked, tuple((aspect, compared[aspect]) for aspect in ASPECTS), tuple(remarks)
    )


class _LaunchCheck:
    """The comparisons of one launch, which runs `nodes`."""

    def __init__(
        self,
        graph: CompiledGraph,
        kernel: Kernel,
        facts: TritonFacts,
        launch: KernelLaunch,
        nodes: Sequence[SchedulerNode],
    ) -> None:
        self.kernel = kernel
        self.facts = facts
        self.launch = launch
        self.nodes = nodes
        self.types = dict(facts.signature)
        self.arguments = [(item.arg.name, item) for item in launch.passed if item.arg is not None]
        self.numels = {name: item.text for name, item in self.arguments if _NUMEL.fullmatch(name)}
        self._index = index_of(graph)
        self._computed = {symbol.name: symbol.value for symbol in graph.code.symbols} if graph.code else {}

    def comparisons(self) -> Iterator[_Comparison]:
        """Yield them all. With the wrong number of arguments nothing else can be said of them."""
        extra = 3 if dict(self.facts.meta).get("grid_type") == "FixedGrid" else 0
        parameters, passed = len(self.kernel.args), len(self.launch.passed)
        numbers = (("parameters", parameters), ("grid", extra), ("passed", passed))
        yield "count", passed == parameters + extra, "argument-count", numbers
        if passed == parameters + extra:
            for name, item in self.arguments:
                yield from self._type(name, item)
            yield from self._order() if self.nodes else ()
            yield from self._sizes_in_text() if self.numels else ()
            yield from self._points() if self.numels and self.facts.heuristic != "foreach" else ()
            yield from self._grid()
            for compare in (self._divisibility, self._width):
                for name, item in self.arguments:
                    yield from compare(name, item)

    def _type(self, name: str, passed: Passed) -> Iterator[_Comparison]:
        type_ = self.types.get(name)
        if type_ is None:
            return
        numbers = (("argument", name), ("type", type_), ("passed", passed.text))
        if not type_.startswith("*"):
            yield "type", passed.text not in self._index.layouts, "argument-type", numbers
        elif _number(passed.text) is not None or passed.layout is None or passed.layout.dtype is None:
            yield "type", _number(passed.text) is None, "argument-type", numbers
        else:
            dtypes = _DTYPES.get(type_.removeprefix("*"))
            fits = not dtypes or passed.layout.dtype in dtypes or ".view" in passed.text
            yield "type", fits, "argument-type", (*numbers, ("dtype", passed.layout.dtype))

    def _order(self) -> Iterator[_Comparison]:
        """Inductor numbers `in_ptr` by the first load of each buffer, `out_ptr` by the first store.

        `KernelArgs.input` and `KernelArgs.output` in torch/_inductor/codegen/common.py.
        """
        has_bodies = all(node.body is not None for node in self.nodes)
        ops = (op for node in self.nodes for op in node.ops)
        loads = [op.args[0] for op in ops if op.target in LOADS and op.args]
        deps = [dep.name for node in self.nodes for dep in node.reads if not isinstance(dep, WeakDep)]
        read = _numbered([*loads, *deps])
        written = _numbered([buffer.name for node in self.nodes for buffer in node.outputs])
        for role, first_use, access in (
            ("in", read, "read"), ("out", written, "write"), ("inout", written, "write"),
        ):  # fmt: skip
            numbered: list[tuple[int, str, str, int]] = []
            for name, passed in self.arguments:
                if passed.arg is None or passed.arg.role != role or passed.buffer is None:
                    continue
                places = [first_use[alias] for alias in self._aliases(passed.buffer) if alias in first_use]
                numbers = (("argument", name), ("buffer", passed.buffer), ("access", access))
                yield "order", bool(places), "other-buffer", numbers
                if places and has_bodies and (match := _POINTER.fullmatch(name)):
                    numbered.append((int(match[1]), name, passed.buffer, min(places)))
            for (_, name, buffer, place), (_, other, other_buffer, next_place) in pairwise(sorted(numbered)):
                if next_place < place:
                    argument = (("argument", name), ("buffer", buffer))
                    other_argument = (("other_argument", other), ("other_buffer", other_buffer))
                    yield "order", False, "swapped-buffers", (*argument, *other_argument, ("access", access))

    def _aliases(self, buffer: str) -> Iterator[str]:
        """Yield the names that nodes may have for what the wrapper calls `buffer`."""
        for name in self._index.memory_names(buffer):
            yield name
            yield from self._index.nodes.mutated_as.get(name, ())

    def _sizes_in_text(self) -> Iterator[_Comparison]:
        """`xnumel = 4096` stands in the text of a kernel whose sizes are known."""
        source = self.kernel.source
        start = max(source.find("@triton.jit"), 0)
        for match in _FIXED.finditer(source, start):
            size, compiled = _number(self.numels.get(match["name"], "")), int(match["value"])
            if size is not None:
                numbers = (("argument", match["name"]), ("passed", size), ("compiled", compiled))
                yield "numel", size == compiled, "other-size", numbers
        for match in _PERSISTENT.finditer(source, start):
            name, limit = match["name"].lower().replace("block", "numel"), int(match["value"])
            size = _number(self.numels.get(name, ""))
            if size is not None:
                block = (("argument", name), ("passed", size), ("block", match["name"]), ("limit", limit))
                yield "numel", size <= limit, "block-too-small", block

    def _points(self) -> Iterator[_Comparison]:
        """A node of (numel, rnumel) runs in x*y*z points that reduce r: all of it, or its points alone.

        Symbolic sizes are compared with primes for the symbols, twice over: see `prime_values`.
        """
        for node in self.nodes:
            group = [size for size in node.iteration or () if isinstance(size, int | str)]
            if len(group) != 2 or len(node.iteration or ()) != 2:
                continue
            assignments = self._assignments([*self.numels.values(), *map(str, group)])
            outcomes = [self._fits(group, values) for values in assignments]
            if outcomes != [None] * len(outcomes):
                texts = tuple(f"{name}={text}" for name, text in self.numels.items())
                points = (("passed", texts), ("node", node.name), ("points", group[0]), ("reduced", group[1]))
                yield "numel", False not in outcomes, "other-points", points

    def _fits(self, group: list[Dim], values: Mapping[str, int]) -> bool | None:
        """Whether a node's points are those that the launch runs; None where that cannot be computed."""
        numel, rnumel = (value_of(size, values) for size in group)
        x, r = (
            [value_of(text, values) for name, text in self.numels.items() if (name[0] == "r") is reduced]
            for reduced in (False, True)
        )
        if None in x or None in r or numel is None or rnumel is None:
            return None
        points, reduced = prod(size or 0 for size in x), prod(size or 0 for size in r)
        return numel * rnumel == points * reduced or (rnumel == 1 and numel == points)

    def _assignments(self, texts: list[str]) -> Iterator[Mapping[str, int]]:
        """Yield values for the symbols in `texts`, and for what the wrapper computes from symbols."""
        computed = {
            name: text
            for name, text in self._computed.items()
            if SYMBOL.search(text) and not re.fullmatch(r"[suz]\d+", name)
        }
        names = {name for text in (*texts, *computed.values()) for name in _NAME.findall(text)}
        names = {name for name in names if name not in computed}
        for shift in (0, 5) if names else (0,):
            values = prime_values(sorted(names), shift)
            for name, text in computed.items():
                if (value := value_of(text, values)) is not None:
                    values[name] = value
            yield values

    def _grid(self) -> Iterator[_Comparison]:
        kind = dict(self.facts.meta).get("grid_type", "")
        if kind in _GRID_NEEDS:
            missing = [name for name in _GRID_NEEDS[kind] if name not in self.numels]
            yield (
                "grid",
                not missing,
                "grid-size-missing",
                (("grid", kind), ("argument", "".join(missing[:1]))),
            )
        if kind in ("Grid2D", "Grid3D"):
            large = tuple(
                f"{name}={text}"
                for name, text in self.numels.items()
                if name[0] in "yz" and (_number(text) or 0) > _LARGEST_YZ_GRID * _LARGEST_BLOCK
            )
            yield "grid", not large, "grid-too-large", (("sizes", large), ("limit", _LARGEST_YZ_GRID))
        if kind == "FixedGrid":
            yield from self._template_grid()
        grid = dict(self.launch.keywords).get("grid", "")  # torch before 2.7
        if grid.startswith("grid(") and self.numels:
            names = tuple(sorted(part.strip() for part in grid[5:].rstrip(")").split(",") if part.strip()))
            passed = tuple(sorted(text for name, text in self.numels.items() if name[0] != "r"))
            yield "grid", names == passed, "other-grid-sizes", (("grid", names), ("passed", passed))

    def _template_grid(self) -> Iterator[_Comparison]:
        """The templates of mm and bmm have a block for each tile of each output matrix.

        Persistent ones (NUM_SMS) loop over tiles and have as many as the GPU has multiprocessors.
        """
        config = {name: _number(text) for name, text in self.facts.config}
        sizes = {match["name"]: int(match["value"]) for match in _MATRIX.finditer(self.kernel.source)}
        block_m, block_n = config.get("BLOCK_M"), config.get("BLOCK_N")
        if "GROUP_M" not in config or "NUM_SMS" in config or not block_m or not block_n:
            return
        if sizes.keys() != {"M", "N"}:
            return
        m, n = sizes["M"], sizes["N"]
        grid = [_number(passed.text) for passed in self.launch.passed[-3:]]
        needed = -(-m // block_m) * -(-n // block_n)
        if grid[0] is not None:
            matrix = (("blocks", grid[0]), ("rows", m), ("columns", n))
            tiles = (("block_rows", block_m), ("block_columns", block_n), ("needed", needed))
            yield "grid", grid[0] == needed, "other-grid-blocks", (*matrix, *tiles)
        out = next((item.layout for _, item in self.arguments if item.arg and item.arg.role == "out"), None)
        elements = prod(all_numbers(out.size or (0,)) or (0,)) if out else 0
        if elements and m * n and elements % (m * n) == 0 and None not in grid:
            batches, rest = elements // (m * n), prod(size or 0 for size in grid[1:])
            yield "grid", rest == batches, "other-grid-batches", (("blocks", rest), ("batches", batches))

    def _divisibility(self, name: str, passed: Passed) -> Iterator[_Comparison]:
        """Triton loads 16 bytes at once where it was promised a multiple of 16; an address between faults."""
        if name not in self.facts.divisible:
            return
        value = _number(passed.text)
        offset = self._offset_bytes(passed) if value is None else None
        if value is not None:
            numbers = (("argument", name), ("divisor", ALIGNMENT), ("passed", value))
            yield "divisibility", value % ALIGNMENT == 0, "not-divisible", numbers
        elif offset is not None:
            address = (
                ("argument", name),
                ("alignment", ALIGNMENT),
                ("passed", passed.text),
                ("offset", offset),
            )
            yield "divisibility", offset % ALIGNMENT == 0, "not-aligned", address

    def _offset_bytes(self, passed: Passed) -> int | None:
        """Return where a buffer starts in its memory, which starts aligned; views of views add up."""
        item = ITEM_BYTES.get(passed.layout.dtype or "") if passed.layout else None
        name = passed.buffer
        if name is None or item is None:
            return None
        view = view_of(passed.text) if passed.text != name else None
        offsets: list[Dim | None] = [0 if passed.text == name else view.offset if view else None]
        seen: set[str] = set()
        while name and name not in seen and (allocation := self._index.allocations.get(name)):
            seen.add(name)
            if allocation.kind == "view":
                offsets.append(allocation.layout.offset if allocation.layout else None)
            name = allocation.of if allocation.kind in ("reuse", "alias", "view") else None
        offset = known_sum(offsets)
        return None if offset is None else offset * item

    def _width(self, name: str, passed: Passed) -> Iterator[_Comparison]:
        """Whether a number's type holds it, and whether 32 bits index a buffer."""
        type_, value = self.types.get(name, ""), _number(passed.text)
        if type_ == "i32" and value is not None:
            numbers = (("argument", name), ("passed", value))
            yield "index width", abs(value) <= LARGEST_INT32, "int32-overflow", numbers
        elif type_.startswith("*") and self.facts.index_width == "int32" and passed.layout is not None:
            extent = _extent(passed.layout)
            if extent is not None:
                span = (("argument", name), ("passed", passed.text), ("elements", extent))
                yield "index width", extent - 1 <= LARGEST_INT32, "int32-extent", span


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None


def _numbered(names: Iterable[object]) -> dict[str, int]:
    """Number names by their first mention."""
    texts = dict.fromkeys(name for name in names if isinstance(name, str))
    return {name: number for number, name in enumerate(texts)}


def _extent(layout: BufferLayout) -> int | None:
    """Return the number of elements from the first to the last that a layout reaches."""
    size, stride = (None if dims is None else all_numbers(dims) for dims in (layout.size, layout.stride))
    if size is None or stride is None:
        return None
    return 1 + sum((length - 1) * step for length, step in zip(size, stride, strict=True)) if all(size) else 0
