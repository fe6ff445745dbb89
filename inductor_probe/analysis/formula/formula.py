"""The formula of a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from inductor_probe.analysis.access import STORES
from inductor_probe.analysis.formula.body import BodyValues, read_body
from inductor_probe.analysis.formula.code import NodeCode, code_conventions
from inductor_probe.analysis.formula.decided import decided_comparisons
from inductor_probe.analysis.formula.expressions import Expressions
from inductor_probe.analysis.formula.naming import Named, Spelling
from inductor_probe.analysis.formula.shapes import find_shapes
from inductor_probe.analysis.formula.subscripts import body_subscripts
from inductor_probe.analysis.formula.values import Effect as BodyEffect
from inductor_probe.model.formula import (
    BoundsCheck,
    BufferElement,
    Convention,
    DecidedComparison,
    Definition,
    Effect,
    Formula,
    LoopVariable,
    Statement,
    Store,
    View,
)
from inductor_probe.model.ir import BufferLayout, Dim, Dotted, LoopBody, Ref, SchedulerNode


def formula(
    node: SchedulerNode, layouts: Mapping[str, BufferLayout] | None = None, code: NodeCode | None = None
) -> Formula:
    """Return what an unfused node computes, as mathematics.

    Values are inlined where they are used once and named where they are used more often; the order of
    operations is that of the body, so that the formula gives the same bits.

    Args:
        node: a node with a loop body.
        layouts: of buffers whose layout the node does not print (torch before 2.4), by name.
        code: the text of its kernel, for what the body leaves open.

    Raises:
        ValueError: the node has no loop body (it is fused, or an extern kernel).
    """
    body = node.body
    if body is None:
        raise ValueError(f"{node.name} has no loop body")
    known = dict(layouts or {})
    known.update((name, layout) for name, layout, _ in reversed(node.layouts))
    known.update((buffer.name, buffer.layout) for buffer in node.outputs if buffer.layout is not None)
    views, subscripts = body_subscripts(body, known)
    dtypes = {name: layout.dtype for name, layout in known.items() if layout.dtype}
    read = read_body(body, dtypes, subscripts)
    # The reduced loops are the last; the node's sizes say how many.
    reduced = len(node.sizes[1]) if node.sizes and len(node.sizes) > 1 else 0
    first = len(body.var_ranges) - reduced
    loops = tuple(
        LoopVariable(name, size, position >= first) for position, (name, size) in enumerate(body.var_ranges)
    )
    names = {*(view.buffer for view in views), *dict(body.indexes), *(loop.variable for loop in loops)}
    writer = _Writer(read, names, tuple(loop.variable for loop in loops if loop.reduced))
    statements = tuple(writer.statements())
    conventions = (*_conventions(body, read, views), *code_conventions(body, read, code))
    decided = tuple(writer.decided(dict(body.var_ranges)))
    return Formula(node.name, loops, views, statements, conventions, decided)


class _Writer:
    """Writes the statements of a body, each definition before its first use."""

    def __init__(self, read: BodyValues, names: set[str], reduced: tuple[str, ...]) -> None:
        self._effects = read.effects
        self._values = read.values
        self._dtypes = read.values.dtypes
        roots = [number for effect in read.effects for number in effect.needs]
        shapes = find_shapes(read.values, roots)
        self._named = Named(shapes, roots)
        kinds = {value.kind for value in read.values.table}  # `i0` is a Bessel function, too
        symbols = {str(value.detail[0]) for value in read.values.table if value.kind == "symbol"}
        self._spelling = Spelling(names | kinds | symbols)
        self._names: dict[int, str] = {}
        self._expressions = Expressions(shapes, self._named, self._names, reduced)
        self._defined: set[int] = set()

    def statements(self) -> Iterator[Statement]:
        for effect in self._effects:
            for number in effect.needs:
                yield from self._definitions(number)
            yield self._statement(effect)

    def decided(self, loops: Mapping[str, Dim]) -> Iterator[DecidedComparison]:
        """Write the comparisons that the loops decide, after the statements, whose names they use."""
        roots = [number for effect in self._effects if effect.kind != "unused" for number in effect.needs]
        for number, outcome in decided_comparisons(self._values, roots, loops):
            yield DecidedComparison(self._expressions.expression(number), outcome)

    def _definitions(self, root: int) -> Iterator[Definition]:
        """Define what the expression of `root` needs and, if it has a name, itself."""
        waiting = [(root, False)]
        while waiting:
            number, inside_done = waiting.pop()
            if number in self._defined:
                continue
            if inside_done:
                self._defined.add(number)
                if number in self._named.chosen:
                    yield self._definition(number)
                continue
            waiting.append((number, True))
            needed = list(self._expressions.inside(number))
            mask = self._named.under[number]
            if mask is not None and number in self._named.chosen:
                needed.append(mask)
            waiting += [(inner, False) for inner in reversed(needed)]

    def _definition(self, number: int) -> Definition:
        parameters = self._named.parameters[number]
        for parameter in parameters:
            if parameter not in self._names:
                self._names[parameter] = self._spelling.parameter(self._dtypes[parameter])
        name = self._names[number] = self._spelling.name(self._dtypes[number], len(parameters))
        self._expressions.lines = set()
        value = self._expressions.expression(number)
        lines = tuple(sorted(self._expressions.lines))
        mask = self._named.under[number]
        under = None if mask is None else self._expressions.reference(mask)
        return Definition(
            name, value, tuple(self._names[parameter] for parameter in parameters), under, lines
        )

    def _statement(self, effect: BodyEffect) -> Statement:
        self._expressions.lines = set(effect.lines)
        value, *others = (self._expressions.reference(number) for number in effect.args)
        under = None if effect.under is None else self._expressions.reference(effect.under)
        lines = tuple(sorted(self._expressions.lines))
        if effect.kind == "store":
            buffer, mode, operation = effect.detail
            target = BufferElement(str(buffer), tuple(others))
            reduction = operation == "store_reduction"
            return Store(target, value, None if mode is None else str(mode), reduction, under, lines)
        if effect.kind == "check":
            lower, upper = (bool(flag) for flag in effect.detail)
            return BoundsCheck(value, others[0], lower, upper, under, lines)
        return Effect(value, effect.kind == "call", under, lines)


def _conventions(body: LoopBody, read: BodyValues, views: Sequence[View]) -> Iterator[Convention]:
    kinds = {value.kind for value in read.values.table}
    if "masked" in kinds:
        yield "masked"
    if "mod" in kinds:
        yield "mod"
    if any(kind.startswith("self.scan") for kind in kinds):
        yield "scan"
    if any(effect.kind == "store" and effect.detail[1] == "atomic_add" for effect in read.effects):
        yield "atomic-add"
    if _leaves_casts_out(body):
        yield "cast-left-out"
    of_places = any({"argmax", "argmin"} & {*map(str, op.args)} for op in body.ops)
    if of_places and any(view.order for view in views):
        yield "places-along-loops"


_NARROW = (Dotted("torch.float16"), Dotted("torch.bfloat16"))


def _leaves_casts_out(body: LoopBody) -> bool:
    """Whether a value is cast to a narrow float that is not only stored.

    With `use_compute_types` a backend computes on in float32 (`torch/_inductor/ops_handler.py`, `to_dtype`).
    """
    narrow = {
        op.result
        for op in body.ops
        if op.target == "ops.to_dtype" and ("use_compute_types", True) in op.kwargs and op.args[-1] in _NARROW
    }
    return any(
        isinstance(arg, Ref) and arg.name in narrow
        for op in body.ops
        if op.target not in STORES
        for arg in op.args
    )
