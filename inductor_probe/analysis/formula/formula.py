"""The formula of a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inductor_probe.analysis.formula.body import read_body
from inductor_probe.analysis.formula.bounds import block_bounds
from inductor_probe.analysis.formula.effects import BodyValues
from inductor_probe.analysis.formula.effects import Effect as BodyEffect
from inductor_probe.analysis.formula.indexing import Terms
from inductor_probe.analysis.formula.naming import Named, Spelling, choose_named
from inductor_probe.analysis.formula.shapes import Shapes, find_shapes
from inductor_probe.analysis.formula.tree import Tree
from inductor_probe.analysis.formula.views import Reach, Subscripts, subscripts
from inductor_probe.model.formula import (
    BoundsCheck,
    BufferElement,
    Convention,
    Definition,
    Effect,
    Expression,
    Formula,
    LoopVariable,
    Statement,
    Store,
)
from inductor_probe.model.ir import BufferLayout, LoopBody, Op, Ref, SchedulerNode

_PLACES = {"ops.load": 0, "ops.store": 0, "ops.store_reduction": 0}


def formula(node: SchedulerNode, layouts: Mapping[str, BufferLayout] | None = None) -> Formula:
    """Return what an unfused node computes, as mathematics.

    Values are inlined where they are used once and named where they are used more often; the order of
    operations is that of the body, so that the formula gives the same bits.

    Args:
        node: a node with a loop body.
        layouts: of buffers whose layout the node does not print (torch before 2.4), by name.

    Raises:
        ValueError: the node has no loop body (it is fused, or an extern kernel).
    """
    body = node.body
    if body is None:
        raise ValueError(f"{node.name} has no loop body")
    known = {**(layouts or {}), **_layouts(node)}
    places = _places(body, known)
    dtypes = {name: layout.dtype for name, layout in known.items() if layout.dtype}

    def at(buffer: str, index: str, block: str) -> tuple[Terms, ...] | None:
        return places[buffer].at.get((index, block)) if buffer in places else None

    read = read_body(body, dtypes, at)
    loops = _loops(node, body)
    writer = _Writer(read, loops, [*places, *dict(body.indexes)])
    statements = tuple(writer.statements())
    views = tuple(found.view for found in places.values())
    return Formula(node.name, loops, views, statements, tuple(_conventions(body, read)))


def _layouts(node: SchedulerNode) -> dict[str, BufferLayout]:
    found = {buffer.name: buffer.layout for buffer in node.outputs if buffer.layout is not None}
    for name, layout, _ in node.layouts:
        found.setdefault(name, layout)
    return found


def _loops(node: SchedulerNode, body: LoopBody) -> tuple[LoopVariable, ...]:
    """The reduced loops are the last; how many, the node's sizes tell."""
    reduced = len(node.sizes[1]) if node.sizes and len(node.sizes) > 1 else 0
    first = len(body.var_ranges) - reduced
    return tuple(
        LoopVariable(name, size, place >= first) for place, (name, size) in enumerate(body.var_ranges)
    )


def _places(body: LoopBody, layouts: dict[str, BufferLayout]) -> dict[str, Subscripts]:
    """Return how to write the places of each buffer that the body loads from or stores to."""
    bounds = block_bounds(body)
    expressions = dict(body.indexes)
    reaches: dict[str, dict[tuple[str, str], Reach]] = {}
    for block in body.blocks:
        indexes = {
            op.result: str(op.args[0]) for op in block.ops if op.target == "self.get_index" and op.args
        }
        for op in block.ops:
            place = _place(op)
            if place is None:
                continue
            buffer, index = place
            name = indexes.get(index.name, "") if isinstance(index, Ref) else ""
            text = expressions.get(name, name)
            reaches.setdefault(buffer, {})[text, block.name] = Reach(text, block.name, bounds[block.name])
    return {
        buffer: subscripts(buffer, layouts.get(buffer), list(found.values()))
        for buffer, found in reaches.items()
    }


def _place(op: Op) -> tuple[str, object] | None:
    if op.target in _PLACES and len(op.args) >= 2 and isinstance(op.args[0], str):
        return op.args[0], op.args[1]
    return None


class _Writer:
    """Writes the statements of a body, each definition before its first use."""

    def __init__(self, read: BodyValues, loops: tuple[LoopVariable, ...], taken: list[str]) -> None:
        self._values = read.values
        self._effects = read.effects
        roots = [at for effect in read.effects for at in effect.needs]
        self._shapes: Shapes = find_shapes(self._values, roots)
        self._named: Named = choose_named(self._values, roots, self._shapes)
        kinds = {value.kind for value in self._values.table}  # `i0` is a Bessel function, too
        symbols = [str(value.detail[0]) for value in self._values.table if value.kind == "symbol"]
        self._spelling = Spelling([*taken, *kinds, *symbols, *(loop.variable for loop in loops)])
        self._names: dict[int, str] = {}
        reduced = tuple(loop.variable for loop in loops if loop.reduced)
        self._tree = Tree(self._values, self._shapes, self._named, self._names, reduced)
        self._defined: set[int] = set()

    def statements(self) -> Iterator[Statement]:
        for effect in self._effects:
            for at in effect.needs:
                yield from self._definitions(at)
            yield self._statement(effect)

    def _definitions(self, root: int) -> Iterator[Definition]:
        """Define what the expression of `root` needs and, if it has a name, itself."""
        waiting = [(root, False)]
        while waiting:
            at, inside_done = waiting.pop()
            if at in self._defined:
                continue
            if inside_done:
                self._defined.add(at)
                if at in self._named.chosen:
                    yield self._definition(at)
                continue
            waiting.append((at, True))
            needed = list(self._tree.inside(at))
            mask = self._named.under[at]
            if mask is not None and at in self._named.chosen:
                needed.append(mask)
            waiting += [(inner, False) for inner in reversed(needed)]

    def _definition(self, at: int) -> Definition:
        parameters = self._named.parameters[at]
        for parameter in parameters:
            if parameter not in self._names:
                self._names[parameter] = self._spelling.parameter(self._values.dtypes[parameter])
        self._names[at] = self._spelling.name(self._values.dtypes[at], len(parameters))
        value, lines = self._written(at, named=True)
        mask = self._named.under[at]
        under = None if mask is None else self._tree.reference(mask)
        return Definition(self._names[at], value, tuple(self._names[own] for own in parameters), under, lines)

    def _written(self, at: int, named: bool = False) -> tuple[Expression, tuple[int, ...]]:
        self._tree.lines = set()
        value = self._tree.expression(at) if named else self._tree.reference(at)
        return value, tuple(sorted(self._tree.lines))

    def _statement(self, effect: BodyEffect) -> Statement:
        self._tree.lines = set(effect.lines)
        value, *others = (self._tree.reference(at) for at in effect.args)
        under = None if effect.under is None else self._tree.reference(effect.under)
        lines = tuple(sorted(self._tree.lines))
        if effect.kind == "store":
            buffer, mode, operation = effect.detail
            target = BufferElement(str(buffer), tuple(others))
            reduction = operation == "store_reduction"
            return Store(target, value, None if mode is None else str(mode), reduction, under, lines)
        if effect.kind == "check":
            lower, upper = (bool(flag) for flag in effect.detail)
            return BoundsCheck(value, others[0], lower, upper, under, lines)
        return Effect(value, effect.kind == "call", under, lines)


def _conventions(body: LoopBody, read: BodyValues) -> Iterator[Convention]:
    kinds = {value.kind for value in read.values.table}
    if any(op.target.startswith("self.set_indirect") for block in body.blocks for op in block.ops):
        yield "indirect-index"
    if "masked" in kinds:
        yield "masked"
    if "mod" in kinds:
        yield "mod"
    if any(kind.startswith("self.scan") for kind in kinds):
        yield "scan"
    if any(effect.kind == "store" and effect.detail[1] == "atomic_add" for effect in read.effects):
        yield "atomic-add"
