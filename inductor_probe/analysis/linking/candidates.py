"""Which FX nodes a node of the scheduler may write the value of, going by its data, shape and operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from inductor_probe.analysis.linking.fx_index import Cone, FxIndex
from inductor_probe.analysis.linking.fx_ops import (
    COPIES,
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
from inductor_probe.analysis.linking.shapes import Shape, may_hold
from inductor_probe.analysis.operators import operator
from inductor_probe.model.ir import Buffer, SchedulerNode

_UNROLLED = 8
"""A reduction over fewer elements is written out instead of looped over."""
_SEEDS = "RandomSeeds"
_PIECE = "NonOwningLayout"


@dataclass(frozen=True, slots=True)
class Job:
    """A node of the scheduler in front of the FX graph.

    Attributes:
        leaf: the node. kernel: what runs it.
        known: FX nodes whose values it reads. reads: the same, a set for each buffer it reads.
        within: the FX nodes of its kernel, where torch tells them.
        continues: it reads a part of a value: what leads to its own value is partly done before it.
        operations: what its loop body calls. kinds: of its reductions.
    """

    leaf: SchedulerNode
    kernel: str | None
    known: frozenset[str]
    reads: tuple[frozenset[str], ...]
    within: frozenset[str] | None
    continues: bool
    operations: Counter[str]
    kinds: frozenset[str]
    reachable: tuple[str, ...]

    @classmethod
    def of(
        cls,
        fx: FxIndex,
        leaf: SchedulerNode,
        kernel: str | None,
        *,
        reads: tuple[frozenset[str], ...],
        within: frozenset[str] | None,
        continues: bool,
    ) -> Job:
        """Look at a node once, for all of its buffers."""
        known = frozenset().union(*reads)
        if leaf.ir == _SEEDS:
            reachable = fx.sorted(fx.seeds)
        elif known:
            reachable = fx.reachable(known, within)
        else:
            reachable = fx.sorted(fx.free if within is None else fx.free & within)
        body = leaf.body
        return cls(
            leaf=leaf,
            kernel=kernel,
            known=known,
            reads=reads,
            within=within,
            continues=continues,
            operations=body_operations(body) if body else Counter(),
            kinds=reduction_kinds(body) if body else frozenset(),
            reachable=reachable,
        )

    def without_list(self, fx: FxIndex) -> Job:
        """Return the same node in front of all FX nodes, not of those alone that torch lists."""
        return Job.of(fx, self.leaf, self.kernel, reads=self.reads, within=None, continues=self.continues)

    def is_called(self, name: str) -> bool:
        """`extern_kernels.mm` is `aten.mm`; the name of a template has nothing of its operator."""
        called = operator(self.kernel or "")
        return not called.namespace or called.name.removeprefix("bias_") == name


def candidates(fx: FxIndex, job: Job, buffer: Buffer, shape: Shape) -> list[Cone]:
    """Return the FX nodes whose value `buffer` may hold, with what computes them."""
    mutated = [name for name in buffer.mutations if name in fx.inputs]
    piece = buffer.layout is not None and buffer.layout.kind == _PIECE
    cones = []
    for name in job.reachable:
        if name in fx.inputs or not _fits(fx, job, name, shape):
            continue
        if mutated and not any(fx.overwrites(name, other) for other in mutated):
            continue
        if fx.op[name] == "copy_" and not mutated:
            continue
        if piece and "cat" not in {fx.op[user] for user in fx.users.get(name, ())}:
            continue
        cone = fx.cone(name, job.known)
        if name in fx.seeds:
            cone = Cone(name, (name,), frozenset(), closed=True)
        if cone.closed and cone.nodes and _uses_all(job, cone) and _computes(fx, job, cone):
            cones.append(cone)
    if job.continues:
        cones = [cone for cone in cones if fx.op[fx.whole(cone.value)] not in COPIES]
    return _by_constants(fx, job, _without_views(fx, cones, shape))


def parts(fx: FxIndex, job: Job) -> list[Cone]:
    """Return what a reducing node may be a part of: the first half of a variance holds no FX node's value."""
    names = (name for name in job.reachable if PARTED.get(fx.op[name], frozenset()) & job.kinds)
    cones = [fx.cone(name, job.known) for name in names]
    return [cone for cone in cones if cone.closed and _uses_all(job, cone)]


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
        if name not in fx.nodes:
            continue
        operation = fx.op[name]
        if operation in REDUCED_BY and not reduces and _is_long(fx, name):
            continue
        does = fx.does[name]
        if does not in could:
            could[does] = could_leave(*does, called)
        if could[does]:
            yield name


def _fits(fx: FxIndex, job: Job, name: str, shape: Shape) -> bool:
    """What a library call returns may be several tensors, without a type in the FX graph."""
    return may_hold(shape, fx.shape[name]) or (job.leaf.body is None and fx.nodes[name].type is None)


def _uses_all(job: Job, cone: Cone) -> bool:
    return all(not values or values & cone.reached for values in job.reads)


def _computes(fx: FxIndex, job: Job, cone: Cone) -> bool:
    """Whether what the node does can be all of `cone`."""
    if job.leaf.ir == _SEEDS:
        return True
    if job.leaf.body is None:
        alone = job.within is not None and len(job.within) == 1
        return cone.value in (job.within or ()) if alone else job.is_called(fx.op[cone.value])
    looped = [name for name in cone.nodes if fx.op[name] in REDUCTIONS and _is_long(fx, name)]
    if job.kinds:
        last = next((name for name in reversed(cone.nodes) if fx.op[name] not in VIEWS), "")
        if looped != [last] or not REDUCED_BY.get(fx.op[last], frozenset()) & job.kinds:
            return False
    elif looped:
        return False
    return could_compute(map(fx.does.__getitem__, cone.nodes), job.operations)


def _is_long(fx: FxIndex, name: str) -> bool:
    """Whether the reduction is long enough to be a loop."""
    needs = fx.needs[name]
    before = fx.shape[needs[0]].numel if needs else None
    after = fx.shape[name].numel
    return before is None or not after or before // after >= _UNROLLED


def _by_constants(fx: FxIndex, job: Job, cones: list[Cone]) -> list[Cone]:
    """Of ways that do the same with other numbers, keep the one whose numbers the loop body has."""
    body = job.leaf.body
    if body is None or len({tuple(sorted(fx.op[name] for name in cone.nodes)) for cone in cones}) != 1:
        return cones
    found = body_constants(body)
    kept = [cone for cone in cones if all(constants(fx.nodes[name]) <= found for name in cone.nodes)]
    return kept if len(kept) == 1 else cones


def _without_views(fx: FxIndex, cones: list[Cone], shape: Shape) -> list[Cone]:
    """Of a value and mere views of it the buffer holds the one with its shape, or else the value itself."""
    names = {cone.value for cone in cones}
    dropped: set[str] = set()
    for name in names:
        needs = fx.needs[name]
        if fx.op[name] in VIEWS and len(needs) == 1 and needs[0] in names:
            fits, base_fits = (fx.shape[at].dims == shape.dims for at in (name, needs[0]))
            dropped.add(needs[0] if fits and not base_fits else name)
    return [cone for cone in cones if cone.value not in dropped]
