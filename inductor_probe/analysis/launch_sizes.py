"""Sizes that a launch passes to a Triton kernel, against its nodes, its text, and what it was promised.

Codes of what does not fit, and their numbers in order:

- `other-size`: argument, passed, compiled (the value in the text). `block-too-small`: argument, passed,
  block, limit. `other-points`: passed (all sizes), node, points, reduced (of the node).
- `grid-size-missing`: grid, argument. `grid-too-large`: sizes, limit (blocks). `other-grid-blocks`: blocks,
  rows, columns, block_rows, block_columns, needed. `other-grid-batches`: blocks, batches.
  `other-grid-sizes`: grid, passed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from math import prod

from inductor_probe.analysis.expression import evaluate, parse_expression
from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.launch_addresses import Addresses, ints, number
from inductor_probe.model.code import Kernel, TritonFacts
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.kernels import Aspect, KernelLaunch, Mismatch

_LARGEST_YZ_GRID = 65_535
_LARGEST_BLOCK = 1024
"""Of Y and Z: `TRITON_MAX_BLOCK` of torch/_inductor/runtime/hints.py."""

_NUMEL = re.compile(r"(?P<dimension>[xyzr]\d?_?)numel")
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


def numels(launch: KernelLaunch) -> dict[str, str]:
    """Return what is passed for `xnumel`, `r0_numel` and the like, by parameter."""
    return {
        passed.arg.name: passed.text
        for passed in launch.passed
        if passed.arg is not None and _NUMEL.fullmatch(passed.arg.name)
    }


class Sizes:
    """Compares sizes of one graph; build it once.

    Symbolic sizes are compared by giving each symbol a prime, twice over: expressions that are equal are
    equal for any values.
    """

    def __init__(self, graph: CompiledGraph) -> None:
        code = graph.code
        self.buffers = index_of(graph).layouts
        self._addresses = Addresses(graph)
        self._computed = {symbol.name: symbol.value for symbol in code.symbols} if code else {}

    def check(
        self,
        kernel: Kernel,
        facts: TritonFacts,
        launch: KernelLaunch,
        nodes: list[SchedulerNode],
        compared: Counter[Aspect],
    ) -> Iterator[tuple[Aspect, Mismatch]]:
        """Yield what does not fit; count in `compared` what could be compared."""
        for aspect, mismatch in (
            *self._against_text(kernel, launch),
            *self._against_nodes(facts, launch, nodes),
            *self._grid(kernel, facts, launch),
            *self._addresses.divisible(facts, launch),
            *self._addresses.width(facts, launch),
        ):
            compared[aspect] += 1
            if mismatch:
                yield aspect, mismatch

    def _against_text(self, kernel: Kernel, launch: KernelLaunch) -> Iterator[tuple[Aspect, Mismatch | None]]:
        """`xnumel = 4096` stands in the text of a kernel whose sizes are known."""
        passed = numels(launch)
        if not passed:
            return
        start = max(kernel.source.find("@triton.jit"), 0)
        for match in _FIXED.finditer(kernel.source, start):
            given = number(passed.get(match["name"], ""))
            if given is not None:
                compiled = int(match["value"])
                numbers = (("argument", match["name"]), ("passed", given), ("compiled", compiled))
                yield "numel", Mismatch("other-size", numbers) if given != compiled else None
        for match in _PERSISTENT.finditer(kernel.source, start):
            name = match["name"].lower().replace("block", "numel")
            given = number(passed.get(name, ""))
            if given is not None:
                limit = int(match["value"])
                block = (("argument", name), ("passed", given), ("block", match["name"]), ("limit", limit))
                yield "numel", Mismatch("block-too-small", block) if given > limit else None

    def _against_nodes(
        self, facts: TritonFacts, launch: KernelLaunch, nodes: list[SchedulerNode]
    ) -> Iterator[tuple[Aspect, Mismatch | None]]:
        """A node of (numel, rnumel) runs in x*y*z points that reduce r: all of it, or its points alone."""
        passed = numels(launch)
        if not passed or facts.heuristic == "foreach":
            return
        for node in nodes:
            iteration = node.iteration or ()
            group = [size for size in iteration if isinstance(size, int | str)]
            if len(group) != 2 or len(iteration) != 2:
                continue
            outcomes = [
                fits
                for values in self._assignments((*passed.values(), *map(str, group)))
                if (fits := _fits(passed, [str(size) for size in group], values)) is not None
            ]
            if outcomes:
                numbers = (
                    ("passed", tuple(f"{name}={text}" for name, text in passed.items())),
                    ("node", node.name),
                    ("points", group[0]),
                    ("reduced", group[1]),
                )
                yield "numel", None if all(outcomes) else Mismatch("other-points", numbers)

    def _assignments(self, texts: tuple[str, ...]) -> Iterator[Mapping[str, int]]:
        """Yield values for the symbols in `texts`, and for what the wrapper computes from them."""
        names = sorted({name for text in texts for name in self._symbols(text)})
        for shift in (0, 5) if names else (0,):
            values = {name: _PRIMES[(at + shift) % len(_PRIMES)] for at, name in enumerate(names)}
            for name, text in self._computed.items():
                if name not in values and (value := _value(text, values)) is not None:
                    values[name] = value
            yield values

    def _symbols(self, text: str) -> set[str]:
        found: set[str] = set()
        for name in re.findall(r"[A-Za-z_]\w*", text):
            source = self._computed.get(name)
            if source is None or not re.search(r"\b[su]\d+\b", source) or re.fullmatch(r"[suz]\d+", name):
                found.add(name)
            else:
                found |= self._symbols(source) if source != name else set()
        return found

    def _grid(
        self, kernel: Kernel, facts: TritonFacts, launch: KernelLaunch
    ) -> Iterator[tuple[Aspect, Mismatch | None]]:
        passed = numels(launch)
        kind = dict(facts.meta).get("grid_type")
        if kind in _GRID_NEEDS:
            missing = [name for name in _GRID_NEEDS[kind] if name not in passed]
            lacks = Mismatch("grid-size-missing", (("grid", kind), ("argument", "".join(missing[:1]))))
            yield "grid", lacks if missing else None
            large = tuple(
                f"{name}={text}"
                for name, text in passed.items()
                if name[0] in "yz" and (number(text) or 0) > _LARGEST_YZ_GRID * _LARGEST_BLOCK
            )
            if kind in ("Grid2D", "Grid3D"):
                limited = (("sizes", large), ("limit", _LARGEST_YZ_GRID))
                yield "grid", Mismatch("grid-too-large", limited) if large else None
        elif kind == "FixedGrid":
            yield from _template_grid(kernel, facts, launch)
        written = dict(launch.keywords).get("grid", "")  # torch before 2.7
        if written.startswith("grid(") and passed:
            parts = written[5:].rstrip(")").split(",")
            names = tuple(sorted(part.strip() for part in parts if part.strip()))
            wanted = tuple(sorted(text for name, text in passed.items() if name[0] != "r"))
            differ = Mismatch("other-grid-sizes", (("grid", names), ("passed", wanted)))
            yield "grid", differ if names != wanted else None


_PRIMES = (10007, 10009, 10037, 10039, 10061, 10067, 10069, 10079, 10091, 10093, 10099, 10103)


def _fits(passed: Mapping[str, str], group: list[str], values: Mapping[str, int]) -> bool | None:
    points = [_value(text, values) for name, text in passed.items() if name[0] != "r"]
    reduced = [_value(text, values) for name, text in passed.items() if name[0] == "r"]
    numel, rnumel = (_value(text, values) for text in group)
    if None in points or None in reduced or numel is None or rnumel is None:
        return None
    x, r = prod(each or 0 for each in points), prod(each or 0 for each in reduced)
    return numel * rnumel == x * r or (rnumel == 1 and numel == x)


def _value(text: str, values: Mapping[str, int]) -> int | None:
    try:
        return evaluate(parse_expression(text), values)
    except ValueError:
        return None


def _template_grid(
    kernel: Kernel, facts: TritonFacts, launch: KernelLaunch
) -> Iterator[tuple[Aspect, Mismatch | None]]:
    """The templates of mm and bmm have a block for each tile of each output matrix.

    Persistent ones (NUM_SMS) loop over tiles and have as many as the GPU has multiprocessors.
    """
    config = {name: number(text) for name, text in facts.config}
    sizes = {match["name"]: int(match["value"]) for match in _MATRIX.finditer(kernel.source)}
    m, n = config.get("BLOCK_M"), config.get("BLOCK_N")
    given = [number(passed.text) for passed in launch.passed[-3:]]
    if "GROUP_M" not in config or "NUM_SMS" in config or not m or not n or sizes.keys() != {"M", "N"}:
        return
    wanted = -(-sizes["M"] // m) * -(-sizes["N"] // n)
    if given[0] is not None:
        numbers = (
            ("blocks", given[0]),
            ("rows", sizes["M"]),
            ("columns", sizes["N"]),
            ("block_rows", m),
            ("block_columns", n),
            ("needed", wanted),
        )
        yield "grid", Mismatch("other-grid-blocks", numbers) if given[0] != wanted else None
    out = next((passed.layout for passed in launch.passed if passed.arg and passed.arg.role == "out"), None)
    elements = prod(ints(out.size) or (0,)) if out else 0
    if elements and elements % (sizes["M"] * sizes["N"]) == 0 and None not in given:
        batches = elements // (sizes["M"] * sizes["N"])
        rest = prod(each or 0 for each in given[1:])
        differ = Mismatch("other-grid-batches", (("blocks", rest), ("batches", batches)))
        yield "grid", differ if rest != batches else None
