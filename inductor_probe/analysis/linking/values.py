"""Which FX node's value each buffer holds, followed along the data.

A node of the scheduler computes the FX nodes that lie between the values it reads and the value it writes.
What it reads is known when its turn comes, for nodes stand in an order in which they can run. Several FX
nodes may lie there; the shape of the buffer, reductions and the operations of the loop body tell them apart,
or else all of them stay candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inductor_probe.analysis.linking.candidates import Job, candidates, parts
from inductor_probe.analysis.linking.fx_index import Cone, FxIndex
from inductor_probe.analysis.linking.fx_ops import ITEM, VIEWS
from inductor_probe.analysis.linking.shapes import Shape, may_hold
from inductor_probe.analysis.linking.units import is_nop, loaded_names
from inductor_probe.model.ir import Buffer, SchedulerNode
from inductor_probe.model.proof import Proof, inferred, read

_RETURNED_ITEM = "MultiOutput"
_UNKNOWN = Shape()


@dataclass(frozen=True, slots=True)
class Value:
    """What a buffer holds: one FX node's value, or one of several.

    Attributes:
        nodes: the possible FX nodes in the order of the graph. None of them: part of a value, or not known.
        proof: what shows it, None when nothing does.
        stands_for: the values that a reader of it starts from; of a part of a value, those it was made from.
        part: True for a part of a value.
    """

    nodes: tuple[str, ...] = ()
    proof: Proof | None = None
    stands_for: frozenset[str] = frozenset()
    part: bool = False

    @property
    def exact(self) -> str | None:
        """The FX node, when there is only one."""
        return self.nodes[0] if len(self.nodes) == 1 else None


@dataclass(frozen=True, slots=True)
class Way:
    """What lies between a node's reads and its writes.

    Attributes:
        cones: the ways there are, one for each value that it may write.
        continues: the node reads a part of a value: what leads to its own value is partly done before it.
        complete: it is known what each buffer holds that the node reads, and none holds a part of a value.
    """

    cones: tuple[Cone, ...]
    continues: bool
    complete: bool


class Values:
    """Follows the data from node to node. `proved` are values that other evidence tells, and what does.

    Attributes:
        of: by buffer and input, what it holds when the next node's turn comes.
        written: by buffer, what its own node writes: a later node may change the memory in place.
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

    def follow(self, leaf: SchedulerNode, kernel: str | None, within: frozenset[str] | None) -> Way:
        """Find what `leaf` writes. `within` are the FX nodes of its kernel, where torch tells them."""
        read = [self.of.get(name, Value()) for name in loaded_names(leaf) if name not in self.fx.sizes]
        continues = any(value.part for value in read)
        reads = tuple(value.stands_for for value in read)
        complete = all(reads) and not is_nop(leaf)
        job: Job | None = None
        cones: list[Cone] = []
        for buffer in leaf.outputs:
            if buffer.name in self.proved:
                value, found = self._proved(buffer.name, frozenset().union(*reads))
            elif leaf.ir == _RETURNED_ITEM:
                value, found = self._item(buffer, read[0] if read else Value())
            elif not complete or self._shape(buffer).numel == 0:
                value, found = Value(), []
            else:
                job = job or Job.of(self.fx, leaf, kernel, reads=reads, within=within, continues=continues)
                value, found = self._written(job, buffer)
            self.written[buffer.name] = self.of[buffer.name] = value
            self.held |= value.stands_for
            self.of.update(dict.fromkeys(buffer.mutations, value))  # who reads them later reads this
            cones.extend(found)
        return Way(tuple(cones), continues, complete and not continues)

    def _shape(self, buffer: Buffer) -> Shape:
        return self.shapes.get(buffer.name, _UNKNOWN)

    def _proved(self, buffer: str, known: frozenset[str]) -> tuple[Value, list[Cone]]:
        node, proof = self.proved[buffer]
        return Value((node,), proof, self._seen_as(node)), [self.fx.cone(node, known - {node})]

    def _written(self, job: Job, buffer: Buffer) -> tuple[Value, list[Cone]]:
        found, others = candidates(self.fx, job, buffer, self._shape(buffer)), parts(self.fx, job)
        if not (found or others or job.continues) and self._is_incomplete(job.within or frozenset()):
            # Torch before 2.9 lists less than a kernel computes: what is inlined into an index is missing.
            job = job.without_list(self.fx)
            found, others = candidates(self.fx, job, buffer, self._shape(buffer)), parts(self.fx, job)
        if not found or others:
            return Value(stands_for=job.known, part=True), [*found, *others]
        names = self.fx.sorted(cone.value for cone in found)
        proof = inferred("only-value" if len(names) == 1 else "possible-values")
        return Value(names, proof, frozenset().union(*(self._seen_as(name) for name in names))), found

    def _is_incomplete(self, within: frozenset[str]) -> bool:
        """Whether FX nodes in torch's list for a kernel need one that is neither there nor in memory."""
        fx = self.fx
        return any(
            need not in within
            and need not in self.held
            and fx.whole(need) not in within
            and fx.op[need] not in VIEWS
            and need not in fx.sizes
            for name in within
            for need in fx.needs.get(name, ())
        )

    def _item(self, buffer: Buffer, whole: Value) -> tuple[Value, list[Cone]]:
        """An item of what a library call returned; of a call that returns one tensor, that tensor."""
        if whole.exact is None:
            return Value(), []
        if self.fx.nodes[whole.exact].type is not None:
            return whole, [Cone(whole.exact, (whole.exact,), frozenset(), closed=True)]
        items = tuple(
            name
            for name in self.fx.users.get(whole.exact, ())
            if self.fx.op[name] == ITEM and may_hold(self._shape(buffer), self.fx.shape[name])
        )
        cones = [Cone(name, (name,), frozenset({whole.exact}), closed=True) for name in items]
        proof = inferred("only-item" if len(items) == 1 else "possible-items", fx=whole.exact)
        return Value(items, proof, frozenset(items)), cones

    def _seen_as(self, node: str) -> frozenset[str]:
        """Return `node` and what it is only a view of: who reads the buffer starts from any of them."""
        names = [node]
        while self.fx.op[names[-1]] in VIEWS:
            needs = self.fx.needs[names[-1]]
            if len(needs) != 1 or self.fx.shape[needs[0]].numel != self.fx.shape[node].numel:
                break
            names.append(needs[0])
        return frozenset(names)
