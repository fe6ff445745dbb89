"""What compiled code does for an operator that inductor decomposed: loops, operations, loads, bytes.

The loop bodies of the scheduler say what is done at a point of a loop nest. Equal values of the nodes of a
nest are one, as inductor's code generator has it (`CSE` in `torch/_inductor/codegen/common.py`), and what one
of them makes for another is neither stored nor loaded. Which loops a value depends on follows from its
operands: what depends on no variable of an outer loop is computed again in each of its trips.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from msgspec import Struct

from inductor_probe.analysis.annotation.annotate import nest_origins
from inductor_probe.analysis.formula.body import read_body
from inductor_probe.analysis.formula.values import LIGHT, Value
from inductor_probe.analysis.graph import index_of, once_per_graph
from inductor_probe.analysis.index import all_numbers, known_sum, value_of
from inductor_probe.analysis.linking.fx_index import fx_index
from inductor_probe.analysis.linking.fx_ops import VIEWS
from inductor_probe.analysis.linking.steps import is_nop
from inductor_probe.analysis.links import links
from inductor_probe.analysis.memory_format import element_bytes
from inductor_probe.analysis.names import became, fx_called
from inductor_probe.analysis.operators import operator
from inductor_probe.analysis.symbols import symbol_values
from inductor_probe.analysis.work import is_stored, node_traffic
from inductor_probe.model.code import LoopNest
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decomposed import Figure, FigureCode, FigureSource, LoopWork, Repeated
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.own_call import EagerOperator
from inductor_probe.model.record import collected

_ALL_POINTS = frozenset({"reduction", "scan", "sort", "partial_accumulate", "unknown"})
"""Done at each point, whatever loops their operands depend on."""
_NO_OPERATION = LIGHT | {"load", "item", "inside"}
_INDEX = LIGHT | {"floordiv", "remainder", "function"}
_TIMES: tuple[FigureCode, ...] = ("seconds", "without-vectors")
_CHECK = re.compile(r"\bTORCH_CHECK\(")


Nodes = Mapping[str, frozenset[str]]
"""FX nodes that operators became, views left out: who reads through one computes nothing of the operator."""


def decomposed(graph: CompiledGraph, eager: Sequence[EagerOperator] = ()) -> dict[str, frozenset[str]]:
    """Return the operators that inductor decomposed in a graph, with the FX nodes that they became.

    `probe dump` records what became of what; of dumps without that, none is known. What decomposes before
    AOTAutograd sees the operator, as of `aten.upsample_bicubic2d`, is recorded of the user's function alone:
    it became of that operator which eager runs for the function, where one only is not in the graph.

    Args:
        eager: the operators that eager runs; others are steps of a decomposition.
    """
    run_by_eager = {one.name for one in eager}
    recorded = {name: fx for name, fx in _recorded(graph).items() if not eager or name in run_by_eager}
    taken = frozenset().union(*recorded.values())
    became_of = {name: fx for name, fx in (graph.record.became if graph.record else ()) if "." not in name}
    missing: dict[str, list[str]] = {}
    called: dict[str, set[str]] = {}
    for one in eager:
        in_graph = one.name in recorded or any(
            fx_called(graph, name) for name in (one.name, one.name.rstrip("_"))
        )
        for function in one.functions:
            called.setdefault(function, set()).add(one.name)
            if not in_graph and operator(one.name).name not in VIEWS:
                missing.setdefault(function, []).append(one.name)
    computing = _computing(graph)
    for function, names in missing.items():
        fx = {name for name in became_of.get(function, ()) if name not in taken}
        fx = {name for name in fx if name in computing and computing[name] not in called[function]}
        if len(names) == 1 and fx:
            recorded[names[0]] = recorded.get(names[0], frozenset()) | fx
    return recorded


@once_per_graph
def _recorded(graph: CompiledGraph) -> dict[str, frozenset[str]]:
    names = (name for name, _ in (graph.record.became if graph.record else ()))
    computing = _computing(graph).keys()
    nodes = {name: computing & set(became(graph, name)) for name in names if name.startswith("aten.")}
    return {name: frozenset(fx) for name, fx in nodes.items() if fx}


@once_per_graph
def _computing(graph: CompiledGraph) -> dict[str, str]:
    """Return the operator of each FX node, except views."""
    called = ((node.name, operator(node.target)) for node in (graph.fx.nodes if graph.fx else ()))
    return {name: one.packet for name, one in called if one.name not in VIEWS}


class Loops(Struct, frozen=True):
    """A loop nest, a kernel without nests, or a library call: its nodes, and the FX nodes they compute."""

    name: str
    kernel: str
    nest: LoopNest | None
    nodes: tuple[str, ...]
    fx: frozenset[str]

    def operators(self, graph: CompiledGraph, became_of: Nodes) -> tuple[str, ...]:
        """Return the operators of ATen that are computed in it: decomposed ones, and what FX nodes call."""
        of = {node: name for name, nodes in became_of.items() for node in nodes}
        called = (of.get(node, target) for node, target in _computing(graph).items() if node in self.fx)
        return tuple(dict.fromkeys(name for name in called if name.startswith("aten.")))


@once_per_graph
def all_loops(graph: CompiledGraph) -> tuple[Loops, ...]:
    """Return the loops of a graph in the order of the code."""
    index, known = index_of(graph), links(graph)
    pieces: list[tuple[str, str, LoopNest | None, tuple[str, ...]]] = []
    for kernel in dict.fromkeys(link.kernel for link in known.nodes.values() if link.kernel):
        made = index.kernels.get(kernel)
        nests = nest_origins(graph, kernel) if made is not None and made.backend == "cpp" else ()
        for number, one in enumerate(nests, 1):
            name = f"loop nest {number} of {kernel}" if len(nests) > 1 else kernel
            pieces.append((name, kernel, one.nest, one.nodes))
        if not nests:
            pieces.append((kernel, kernel, None, tuple(link.node for link in known.of_kernel(kernel))))
    return tuple(
        Loops(*piece, frozenset(fx for link in known.of_nodes(piece[3]) for fx in link.fx))
        for piece in pieces
    )


def work_of(graph: CompiledGraph, loops: Loops, seconds: float | None = None) -> LoopWork:
    """Count what is done in a loop nest: nodes whose loops have the same sizes are at the same points.

    `seconds` are those of a call.
    """
    index, nest, nodes = index_of(graph), loops.nest, loops.nodes
    leaves = index.nodes.named(nodes)
    groups = collected(
        (tuple(size for _, size in leaf.body.var_ranges), leaf) for leaf in leaves if leaf.body
    )
    inside = {buffer.name for leaf in leaves for buffer in leaf.outputs}
    tables = [_Table(graph, group, inside) for group in groups.values()]
    largest = max(tables, key=lambda table: table.points or 0, default=None)
    checks = None
    if nest is not None and not nest.has_vectors:
        text = index.kernels[loops.kernel].source.strip("\n").split("\n")[nest.line - 1 : nest.last]
        checks = len(_CHECK.findall("\n".join(text)))
    return LoopWork(
        graph=graph.name,
        name=loops.name,
        kind=nest.kind if nest else None,
        nodes=nodes,
        loops=largest.loops if largest else (),
        points=largest.points if largest else None,
        operations=sum(table.operations for table in tables),
        loads=sum(len(table.loads) for table in tables),
        indirect=sum(len(table.indirect) for table in tables),
        stores=sum(table.stores for table in tables),
        checks=checks,
        evaluated=known_sum(
            None if table.points is None else table.points * table.operations for table in tables
        ),
        again=sum(table.again for table in tables),
        moved=node_traffic(graph, nodes),
        seconds=seconds,
        repeated=tuple(one for table in tables for one in table.repeated()),
    )


class _Known(Struct, frozen=True):
    """A value of a group of nodes: what it is, and the loops that it depends on, by place."""

    value: Value
    loops: frozenset[int]
    is_index: bool


@dataclass(slots=True)
class _Table:
    """The values of nodes whose loops have the same sizes, equal ones once.

    `inside` are buffers that nodes of the same nest write: reading them is not a load.
    """

    graph: CompiledGraph
    leaves: Sequence[SchedulerNode]
    inside: Collection[str]
    known: list[_Known] = field(default_factory=list)
    loads: list[int] = field(default_factory=list)
    indirect: list[int] = field(default_factory=list)
    stored: list[frozenset[int]] = field(default_factory=list)
    sizes: list[int | None] = field(default_factory=list)
    _numbers: dict[Value, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        values = symbol_values(self.graph)
        self.sizes = [value_of(size, values) for _, size in self.loops]
        written: dict[tuple[str, tuple[int, ...]], int] = {}
        for leaf in self.leaves:
            self._read(leaf, written)

    @property
    def loops(self) -> tuple[tuple[str, int | str], ...]:
        """The loops of the nodes, by the names that the first has for them."""
        body = self.leaves[0].body
        return body.var_ranges if body is not None else ()

    @property
    def points(self) -> int | None:
        """How many points they are computed at."""
        known = all_numbers(self.sizes)
        return None if known is None else prod(known)

    @property
    def operations(self) -> int:
        """Operations on values at a point."""
        return sum(1 for _ in self._operations())

    @property
    def stores(self) -> int:
        """Stores to memory at a point."""
        return len(self.stored)

    @property
    def again(self) -> int:
        """How many operations of all points an outer loop does again, with the same result."""
        total = 0
        for loops in self._operations():
            varying = [size for place, size in enumerate(self.sizes) if self._may_repeat(place, loops)]
            if self.points and varying:
                total += self.points - self.points // prod(size or 1 for size in varying)
        return total

    def repeated(self) -> Iterator[Repeated]:
        """Yield the loops that do operations again, outermost first."""
        sizes = self._fx_sizes()
        innermost = max((place for place, size in enumerate(self.sizes) if size != 1), default=0)
        for place, size in enumerate(self.sizes):
            operations = sum(self._is_again(place, loops) for loops in self._operations())
            stores = sum(self._is_again(place, loops) for loops in self.stored)
            if operations and size is not None:
                name = self.loops[place][0]
                sized = sum(
                    self._is_again(place, loops) and prod(self.sizes[one] or 0 for one in loops) in sizes
                    for loops in self._operations()
                )
                yield Repeated(name, size, operations, stores, place == innermost, sized)

    def _fx_sizes(self) -> frozenset[int]:
        """Return how many elements the FX nodes have that are computed here."""
        fx = fx_index(self.graph)
        linked = links(self.graph).of_nodes(leaf.name for leaf in self.leaves)
        names = {name for link in linked for name in link.fx}
        shapes = (
            (fx.shape[name] for name in names & fx.shape.keys() if fx.op[name] not in VIEWS) if fx else ()
        )
        return frozenset(shape.numel for shape in shapes if shape.numel is not None)

    def _is_again(self, place: int, loops: frozenset[int]) -> bool:
        return self.sizes[place] not in (None, 1) and bool(loops) and place not in loops

    def _may_repeat(self, place: int, loops: frozenset[int]) -> bool:
        """Whether an outer loop does a value again: a compiler moves it out of the innermost one itself."""
        inner = any(size != 1 for size in self.sizes[place + 1 :])
        return inner and self._is_again(place, loops)

    def _operations(self) -> Iterator[frozenset[int]]:
        return (one.loops for one in self.known if one.value.kind not in _NO_OPERATION)

    def _read(self, leaf: SchedulerNode, written: dict[tuple[str, tuple[int, ...]], int]) -> None:
        assert leaf.body is not None  # noqa: S101 - of those that have one
        read = read_body(leaf.body, {})
        places = {name: place for place, (name, _) in enumerate(leaf.body.var_ranges)}
        here: list[int] = []
        for value in read.values.table:
            args = tuple(here[number] for number in value.args)
            if value.kind == "load" and (number := written.get((str(value.detail[0]), args))) is not None:
                here.append(number)
                continue
            here.append(self._add(value, args, places))
        for effect in read.effects:
            if effect.kind == "store":
                stored, *subscripts = (here[number] for number in effect.args)
                buffer = str(effect.detail[0])
                written[buffer, tuple(subscripts)] = stored
                if is_stored(self.graph, buffer):
                    self.stored.append(self.known[stored].loops)

    def _add(self, value: Value, args: tuple[int, ...], places: Mapping[str, int]) -> int:
        detail = value.detail
        loops = frozenset().union(*(self.known[number].loops for number in args))
        kind = value.kind
        is_index = kind in _INDEX and all(self.known[number].is_index for number in args)
        if kind == "variable":
            place = places[str(detail[0])]
            detail, loops = (place,), frozenset({place})
        elif kind in _ALL_POINTS:
            loops = frozenset(range(len(self.sizes)))
        elif kind == "load" and detail[0] in self.inside:
            kind = "inside"
        made = Value(kind, args, detail)
        if made not in self._numbers:
            number = self._numbers[made] = len(self.known)
            self.known.append(_Known(made, loops, is_index))
            if kind == "load":
                self.loads.append(number)
                if not all(self.known[argument].is_index for argument in args[: len(value.shown)]):
                    self.indirect.append(number)
        return self._numbers[made]


def figures_of(
    graphs: Sequence[CompiledGraph], fx: int, works: Sequence[LoopWork], eager: EagerOperator | None
) -> tuple[Figure, ...]:
    """Return both sides of an operator, figure by figure; what neither side knows is left out.

    Args:
        graphs: that compute it. fx: how many FX nodes it became. works: its loops in all of them.
    """
    outputs = sum(_outputs(graph, _nodes(graph, works)) for graph in graphs)
    evaluated = [work.evaluated for work in works]
    total = sum(one or 0 for one in evaluated)
    timed = [work.seconds for work in works]
    checked = [work for work in works if work.checks is not None]

    def of_points(counts: Iterable[tuple[int, LoopWork]]) -> float | None:
        pairs = [(count * work.points, work) for count, work in counts if work.points is not None]
        return sum(count for count, _ in pairs) / outputs if outputs and pairs else None

    def row(
        code: FigureCode, compiled: float | None, source: FigureSource, theirs: float | None = None
    ) -> Figure:
        of_eager: FigureSource = "measured" if code in _TIMES else "recorded"
        return Figure(
            code,
            compiled,
            source if compiled is not None else "not-known",
            theirs,
            of_eager if theirs is not None else "not-known",
        )

    seconds = sum(one or 0.0 for one in timed) if any(one is not None for one in timed) else None
    rows = [
        row("seconds", seconds, "measured", eager.seconds if eager else None),
        row("without-vectors", None, "measured", eager.without_vectors if eager else None),
        row(
            "operators",
            fx,
            "recorded",
            len(eager.below) if eager else None,
        ),
        row("loops", len(works), "read"),
        row("operations", total / outputs if outputs and None not in evaluated else None, "inferred"),
        row("repeated", sum(work.again for work in works) / outputs if outputs else None, "inferred"),
        row("loads", of_points((work.loads, work) for work in works), "inferred"),
        row("indirect", of_points((work.indirect, work) for work in works), "inferred"),
        row("stores", of_points((work.stores, work) for work in works), "inferred"),
        row("checks", of_points((work.checks or 0, work) for work in checked), "read"),
        row("vectorised", _vectorised(works, total), "inferred"),
        row(
            "operand-bytes",
            known_sum(node_traffic(graph, _with_nops(graph, _nodes(graph, works))) for graph in graphs),
            "inferred",
            eager.read + eager.written if eager else None,
        ),
        row("moved-bytes", known_sum(work.moved for work in works), "inferred"),
        row(
            "between-bytes",
            known_sum(_between(graph, _nodes(graph, works)) for graph in graphs),
            "read",
            max(eager.allocated - eager.written, 0) if eager else None,
        ),
    ]
    return tuple(one for one in rows if one.compiled is not None or one.eager is not None)


def _vectorised(works: Sequence[LoopWork], total: int) -> float | None:
    """Return the share of the operations in loop nests with vectors; None if any loop is not a C++ nest."""
    if not total or any(work.kind is None for work in works):
        return None
    return sum(work.evaluated or 0 for work in works if work.kind == "vectorised") / total


def _nodes(graph: CompiledGraph, works: Sequence[LoopWork]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node for work in works if work.graph == graph.name for node in work.nodes))


def _with_nops(graph: CompiledGraph, nodes: Sequence[str]) -> tuple[str, ...]:
    """Return nodes, and those without code that only join what they write for what they read: `cat`."""
    index, members = index_of(graph).nodes, dict.fromkeys(nodes)
    for leaf in filter(is_nop, index.leaves):
        readers = {name for buffer in leaf.outputs for name in index.readers.get(buffer.name, ())}
        returned = any(buffer.name in index.returned for buffer in leaf.outputs)
        if readers and not returned and readers <= members.keys():
            members[leaf.name] = None
    return tuple(members)


def _outputs(graph: CompiledGraph, nodes: Sequence[str]) -> int:
    """Return how many elements of results nodes write, symbolic sizes as they were; 0 where not known."""
    values = symbol_values(graph)
    total = 0
    for name in _written(graph, nodes, leaving=True):
        layout = index_of(graph).layouts.get(name)
        sizes = all_numbers(value_of(size, values) for size in (layout.size or () if layout else ()))
        total += prod(sizes) if layout is not None and sizes is not None else 0
    return total


def _between(graph: CompiledGraph, nodes: Sequence[str]) -> int | None:
    """Return the bytes of buffers that nodes write for each other alone."""
    values = symbol_values(graph)
    layouts = (index_of(graph).layouts.get(name) for name in _written(graph, nodes, leaving=False))
    return known_sum(value_of(element_bytes(layout), values) for layout in layouts)


def _written(graph: CompiledGraph, nodes: Sequence[str], *, leaving: bool) -> Iterator[str]:
    """Yield the buffers with memory that nodes write for others, or for themselves alone."""
    index, members = index_of(graph), set(_with_nops(graph, nodes))
    for leaf in index.nodes.named(nodes):
        for buffer in leaf.outputs:
            for_others = (
                buffer.name in index.returned
                or bool(buffer.mutations)
                or not members.issuperset(index.nodes.readers.get(buffer.name, ()))
            )
            if for_others == leaving and is_stored(graph, buffer.name):
                yield buffer.name
