"""Which FX node's value each buffer holds, followed along the data.

A scheduler node computes the FX nodes that lie between the values it reads and the value it writes. What it
reads is known when its turn comes, for nodes are in an order in which they can run. Several FX nodes may lie
there; the shape of the buffer, reductions and the operations of the loop body set them apart, or else all of
them stay candidates. Of `a = mul(x, x); b = sum(a, [1]); c = log(b)`:

    op0 reads x, writes buf0 (512,), reduces by sum  ->  buf0 is b (a has another shape, c is no reduction)
    op1 reads buf0, writes buf1, calls log           ->  buf1 is c
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct

from inductor_probe.analysis.access import LOADS
from inductor_probe.analysis.graph import read_names
from inductor_probe.analysis.linking.fx_index import Cone, FxIndex, Shape
from inductor_probe.analysis.linking.fx_ops import (
    COPIES,
    ITEM,
    PARTED,
    REDUCED_BY,
    REDUCTIONS,
    VIEWS,
    body_constants,
    body_operations,
    constants,
    could_compute,
    could_leave,
    reduction_kinds,
)
from inductor_probe.analysis.linking.steps import ITEM_OF_CALL, is_nop
from inductor_probe.analysis.operators import operator
from inductor_probe.model.ir import Buffer, SchedulerNode
from inductor_probe.model.proof import Proof, inferred, read

_UNROLLED = 8
"""A reduction over fewer elements is written out instead of looped over."""
_SEEDS = "RandomSeeds"
_PIECE = "NonOwningLayout"
_UNKNOWN = Shape()


class Value(Struct, frozen=True):
    """What a buffer holds: one FX node's value, or one of several.

    Attributes:
        nodes: the possible FX nodes in the order of the graph. None of them: part of a value, or not known.
        proof: what shows it, None when nothing does.
        sources: the values that a reader of it starts from; of a part of a value, those it was made from.
        part: True for a part of a value.
    """

    nodes: tuple[str, ...] = ()
    proof: Proof | None = None
    sources: frozenset[str] = frozenset()
    part: bool = False

    @property
    def exact(self) -> str | None:
        """The FX node, when there is only one."""
        return self.nodes[0] if len(self.nodes) == 1 else None


class Path(NamedTuple):
    """What lies between a node's reads and its writes.

    Attributes:
        cones: one for each value that it may write.
        continues: the node reads a part of a value: what leads to its own value is partly done before it.
        complete: it is known what each buffer holds that the node reads, and none holds a part of a value.
    """

    cones: tuple[Cone, ...]
    continues: bool
    complete: bool


class Values:
    """Follows the data from node to node. `proved` are values known from other evidence, with that evidence.

    Attributes:
        of: by buffer and input, what it holds when the next node's turn comes.
        written: by buffer, what the node that writes it writes: a later node may change the memory in place.
        held: FX nodes whose values were in memory at some time.
    """

    def __init__(
        self, fx: FxIndex, shapes: Mapping[str, Shape], proved: Mapping[str, tuple[str, Proof]]
    ) -> None:
        self.fx = fx
        self.shapes = shapes
        self.proved = proved
        self.of = {
            name: Value((name,), read("graph-input" if name in fx.inputs else "constant"), frozenset({name}))
            for name in fx.roots - fx.seeds
        }
        self.written: dict[str, Value] = {}
        self.held = set(fx.roots)

    def follow(self, leaf: SchedulerNode, kernel: str | None, within: frozenset[str] | None) -> Path:
        """Find what `leaf` writes. `within` are the FX nodes of its kernel, where torch records them."""
        values = [self.of.get(name, Value()) for name in _loaded(leaf) if name not in self.fx.sizes]
        continues = any(value.part for value in values)
        reads = tuple(value.sources for value in values)
        complete = all(reads) and not is_nop(leaf)
        search: _Search | None = None
        cones: list[Cone] = []
        for buffer in leaf.outputs:
            shape = self.shapes.get(buffer.name, _UNKNOWN)
            more: list[Cone] = []
            value = Value()
            if buffer.name in self.proved:
                node, proof = self.proved[buffer.name]
                value = Value((node,), proof, self._through_views(node))
                cone = self.fx.cone(node, frozenset().union(*reads) - {node})
                more = [cone] if cone else []
            elif leaf.ir == ITEM_OF_CALL:
                value, more = self._item(shape, values[0] if values else Value())
            elif complete and shape.numel != 0:
                search = search or _Search(
                    self.fx, leaf, kernel, reads=reads, within=within, continues=continues
                )
                value, more = self._searched(search, buffer, shape)
            self.written[buffer.name] = self.of[buffer.name] = value
            self.held |= value.sources
            self.of.update(dict.fromkeys(buffer.mutations, value))  # who reads them later reads this
            cones.extend(more)
        return Path(tuple(cones), continues, complete and not continues)

    def _searched(self, search: _Search, buffer: Buffer, shape: Shape) -> tuple[Value, list[Cone]]:
        cones, parts = search.candidates(buffer, shape), search.parts()
        if not (cones or parts or search.continues) and self._lacks_needs(search.within or frozenset()):
            # Torch before 2.9 lists less than a kernel computes: what is inlined into an index is missing.
            search = _Search(
                self.fx, search.leaf, search.kernel, reads=search.reads, within=None, continues=False
            )
            cones, parts = search.candidates(buffer, shape), search.parts()
        if not cones or parts:
            return Value(sources=search.known, part=True), [*cones, *parts]
        names = self.fx.sorted(cone.value for cone in cones)
        proof = inferred("only-value" if len(names) == 1 else "possible-values")
        return Value(names, proof, frozenset().union(*map(self._through_views, names))), cones

    def _lacks_needs(self, within: frozenset[str]) -> bool:
        """Whether FX nodes in torch's list for a kernel need one that is neither there nor in memory."""
        fx = self.fx
        return any(
            need not in within
            and need not in self.held
            and fx.result(need) not in within
            and fx.op[need] not in VIEWS
            and need not in fx.sizes
            for name in within
            for need in fx.needs.get(name, ())
        )

    def _item(self, shape: Shape, result: Value) -> tuple[Value, list[Cone]]:
        """An item of what a library call returned; of a call that returns one tensor, that tensor."""
        fx, of = self.fx, result.exact
        if of is None:
            return Value(), []
        if fx.nodes[of].type is not None:
            return result, [Cone(of, (of,))]
        users = (name for name in fx.users.get(of, ()) if fx.op[name] == ITEM)
        items = tuple(name for name in users if shape.may_hold(fx.shape[name]))
        proof = inferred("only-item" if len(items) == 1 else "possible-items", fx=of)
        return Value(items, proof, frozenset(items)), [Cone(name, (name,), frozenset({of})) for name in items]

    def _through_views(self, node: str) -> frozenset[str]:
        """Return `node` and what it is only a view of: who reads the buffer starts from any of them."""
        names = [node]
        while self.fx.op[names[-1]] in VIEWS:
            needs = self.fx.needs[names[-1]]
            if len(needs) != 1 or self.fx.shape[needs[0]].numel != self.fx.shape[node].numel:
                break
            names.append(needs[0])
        return frozenset(names)


def _loaded(leaf: SchedulerNode) -> Iterable[str]:
    """Return the buffers whose elements `leaf` computes with: what its loop body loads, else what it reads.

    A node that overwrites a buffer depends on it without loading it.
    """
    if leaf.body is None:
        return read_names(leaf)
    loads = (op for op in leaf.ops if op.target in LOADS)
    names = (name for op in loads for name in op.args[LOADS[op.target] :][:1])
    return dict.fromkeys(name for name in names if isinstance(name, str))


class _Search:
    """The FX nodes whose value a scheduler node may write, by its data, shape and operations.

    Attributes:
        leaf: the node. kernel: what runs it.
        reads: FX nodes whose values it reads, a set for each buffer. known: all of them.
        within: the FX nodes of its kernel, where torch records them.
        continues: it reads a part of a value: what leads to its own value is partly done before it.
    """

    def __init__(
        self,
        fx: FxIndex,
        leaf: SchedulerNode,
        kernel: str | None,
        *,
        reads: tuple[frozenset[str], ...],
        within: frozenset[str] | None,
        continues: bool,
    ) -> None:
        self.fx = fx
        self.leaf = leaf
        self.kernel = kernel
        self.reads = reads
        self.known: frozenset[str] = frozenset().union(*reads)
        self.within = within
        self.continues = continues
        self.operations = body_operations(leaf.body)
        self.kinds = reduction_kinds(leaf.body)
        if leaf.ir == _SEEDS:
            self.reachable = fx.sorted(fx.seeds)
        elif self.known:
            self.reachable = fx.reachable(self.known, within)
        else:
            self.reachable = fx.sorted(fx.free if within is None else fx.free & within)

    def candidates(self, buffer: Buffer, shape: Shape) -> list[Cone]:
        """Return the FX nodes whose value `buffer` may hold, with what computes them."""
        fx = self.fx
        cones = []
        for name in self.reachable:
            if name not in fx.inputs and self._fits(name, buffer, shape):
                cone = Cone(name, (name,)) if name in fx.seeds else fx.cone(name, self.known)
                if cone and cone.nodes and self._uses_all(cone) and self._computes(cone):
                    cones.append(cone)
        if self.continues:
            cones = [cone for cone in cones if fx.op[fx.result(cone.value)] not in COPIES]
        return self._by_constants(_without_views(fx, cones, shape))

    def parts(self) -> list[Cone]:
        """Return what a reducing node may be a part of: half of a variance holds no FX node's value."""
        names = (name for name in self.reachable if PARTED.get(self.fx.op[name], frozenset()) & self.kinds)
        cones = (self.fx.cone(name, self.known) for name in names)
        return [cone for cone in cones if cone and self._uses_all(cone)]

    def _fits(self, name: str, buffer: Buffer, shape: Shape) -> bool:
        fx = self.fx
        # What a library call returns may be several tensors, without a type in the FX graph.
        untyped_call = self.leaf.body is None and fx.nodes[name].type is None
        if not (shape.may_hold(fx.shape[name]) or untyped_call):
            return False
        mutated = [other for other in buffer.mutations if other in fx.inputs]
        if mutated and not any(fx.overwrites(name, other) for other in mutated):
            return False
        if fx.op[name] == "copy_" and not mutated:
            return False
        is_piece = buffer.layout is not None and buffer.layout.kind == _PIECE
        return not is_piece or "cat" in {fx.op[user] for user in fx.users.get(name, ())}

    def _uses_all(self, cone: Cone) -> bool:
        return all(not sources or sources & cone.reached for sources in self.reads)

    def _computes(self, cone: Cone) -> bool:
        """Whether what the node does can be all of `cone`."""
        fx = self.fx
        if self.leaf.ir == _SEEDS:
            return True
        if self.leaf.body is None:
            if self.within is not None and len(self.within) == 1:
                return cone.value in self.within
            # `extern_kernels.mm` is `aten.mm`; the name of a template has nothing of its operator.
            called = operator(self.kernel or "")
            return not called.namespace or called.name.removeprefix("bias_") == fx.op[cone.value]
        looped = [name for name in cone.nodes if fx.op[name] in REDUCTIONS and _is_long(fx, name)]
        if self.kinds:
            last = next((name for name in reversed(cone.nodes) if fx.op[name] not in VIEWS), "")
            if looped != [last] or not REDUCED_BY.get(fx.op[last], frozenset()) & self.kinds:
                return False
        elif looped:
            return False
        return could_compute(map(fx.does.__getitem__, cone.nodes), self.operations)

    def _by_constants(self, cones: list[Cone]) -> list[Cone]:
        """Of cones that do the same with other numbers, keep the one whose numbers the loop body has."""
        fx, body = self.fx, self.leaf.body
        if body is None or len({tuple(sorted(fx.op[name] for name in cone.nodes)) for cone in cones}) != 1:
            return cones
        numbers = body_constants(body)
        equal = [cone for cone in cones if all(constants(fx.nodes[name]) <= numbers for name in cone.nodes)]
        return equal if len(equal) == 1 else cones


def may_compute(fx: FxIndex, leaf: SchedulerNode, names: Iterable[str]) -> Iterator[str]:
    """Yield those of `names` that the loop body of `leaf` may compute, going by its operations alone.

    A body without `ops.log` does not compute `aten.log`, and one without a reduction no sum of 1000 elements.
    """
    if leaf.body is None:
        yield from names
        return
    called = body_operations(leaf.body)
    reduces = bool(reduction_kinds(leaf.body))
    could: dict[tuple[str, bool], bool] = {}
    for name in names:
        if name in fx.nodes and (reduces or fx.op[name] not in REDUCED_BY or not _is_long(fx, name)):
            does = fx.does[name]
            if does not in could:
                could[does] = could_leave(*does, called)
            if could[does]:
                yield name


def _is_long(fx: FxIndex, name: str) -> bool:
    """Whether the reduction is long enough to be a loop."""
    needs = fx.needs[name]
    before = fx.shape[needs[0]].numel if needs else None
    after = fx.shape[name].numel
    return before is None or not after or before // after >= _UNROLLED


def _without_views(fx: FxIndex, cones: list[Cone], shape: Shape) -> list[Cone]:
    """Of a value and mere views of it the buffer holds the one with its shape, or else the value itself."""
    names = {cone.value for cone in cones}
    dropped: set[str] = set()
    for name in names:
        needs = fx.needs[name]
        if fx.op[name] in VIEWS and len(needs) == 1 and needs[0] in names:
            fits, base_fits = (fx.shape[value].dims == shape.dims for value in (name, needs[0]))
            dropped.add(needs[0] if fits and not base_fits else name)
    return [cone for cone in cones if cone.value not in dropped]
