"""Which step of the wrapper (a launch of a kernel or a library call) runs a node.

The proofs, strongest first: the step is passed the node's buffer to write; no step is passed the buffer, so
that the one which reads it also computes it; and the order, for inductor writes the steps of a wrapper in the
order of the nodes in `ir_post_fusion.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.analysis.graph import NodeIndex, buffer_in, read_names
from inductor_probe.analysis.operators import is_call_of
from inductor_probe.model.code import ExternCall, Kernel, Launch, OutputCode
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.proof import Proof, inferred, read
from inductor_probe.model.record import collected, grouped
from inductor_probe.model.span import Span

ITEM_OF_CALL = "MultiOutput"
"""The IR class of a node that is an item of what a library call returned."""

_FAR = 200
"""Steps between the neighbours of a node beyond which its place says nothing worth showing."""
_EXTERN = "ExternKernelSchedulerNode"
_SPLIT = ("ForeachKernelSchedulerNode", "GroupedSchedulerNode")
"""Groups whose members may run in different steps: torch cuts a long list into several launches."""
_GENERATED_EXTERN = "UserDefinedTritonKernel"
_STATEMENTS = (
    "AssertScalar", "Conditional", "DynamicScalar", "DynamicSelectStorageOffset", "DynamicSliceSize",
    "InvokeSubgraph", "Switch", "WhileLoop",
)  # fmt: skip
"""Library nodes that are statements of the wrapper, not calls."""
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


class Step(Struct, frozen=True, eq=False):
    """One launch or library call.

    Attributes:
        order: its place among all steps.
        name: the kernel, or the target of the library call.
        generated: True for a kernel that inductor generated.
        writes: buffers that it is passed to write, or that it returns; none where the text of a kernel does
            not say.
        reaches: every buffer among its arguments, written ones too.
        subgraph: in whose function it stands, None for the graph's own.
    """

    order: int
    name: str
    generated: bool
    writes: frozenset[str]
    reaches: frozenset[str]
    span: Span
    subgraph: str | None = None

    @property
    def what(self) -> str:
        """`launch` or `call`."""
        return "launch" if self.generated else "call"


class Wrapper(Struct, frozen=True):
    """The steps of a wrapper, by what they write.

    Attributes:
        writers: for each buffer, the steps that write it, in order.
        reachers: for each buffer, the steps that have it among their arguments, in order.
        passed: buffers that are an argument of a step, seen through a view or returned. One that is not
            lives inside one kernel: it has no memory of its own, or another reuses its memory there.
        inputs: of the graph and of its subgraphs.
        lent: buffers whose memory another one takes over.
    """

    steps: tuple[Step, ...] = ()
    writers: dict[str, tuple[Step, ...]] = {}
    reachers: dict[str, tuple[Step, ...]] = {}
    passed: frozenset[str] = frozenset()
    inputs: frozenset[str] = frozenset()
    lent: frozenset[str] = frozenset()


class NodeStep(Struct, frozen=True):
    """Where a node runs: `step`, or the `candidates` when more than one is possible.

    `proof` shows it, or that no step is needed; without one the node is unlinked. `kernel` is known even
    where no step is: an extern node names the call it makes.
    """

    kernel: str | None
    proof: Proof | None = None
    step: Step | None = None
    candidates: tuple[Step, ...] = ()


def read_steps(code: OutputCode | None) -> Wrapper:
    """Return launches and library calls in the order in which the wrapper makes them."""
    if code is None:
        return Wrapper()
    places: list[Launch | ExternCall] = [*code.launches, *code.externs]
    places.sort(key=lambda place: place.span.first)
    steps = tuple(
        replace(_step(order, place, code.by_name), subgraph=code.subgraph_at(place.span.first))
        for order, place in enumerate(places)
    )
    reachers = collected((buffer, step) for step in steps for buffer in step.reaches)
    views = (allocation.of for allocation in code.allocations if allocation.kind in ("view", "alias"))
    returns = (*code.returns, *(text for function in code.subgraphs for text in function.returns))
    returned = (name for text in returns for name in _NAME.findall(text))
    return Wrapper(
        steps=steps,
        writers=collected((buffer, step) for step in steps for buffer in step.writes),
        reachers=reachers,
        passed=frozenset((*reachers, *filter(None, views), *returned)),
        inputs=frozenset((*code.inputs, *(name for part in code.subgraphs for name in part.inputs))),
        lent=frozenset(one.of for one in code.allocations if one.kind == "reuse" and one.of is not None),
    )


def _step(order: int, place: Launch | ExternCall, kernels: dict[str, Kernel]) -> Step:
    reached = {name for text in place.args for name in _NAME.findall(text)}
    if isinstance(place, ExternCall):
        written = {name for text in place.outputs for name in _NAME.findall(text)}
        return Step(order, place.target, False, frozenset(written), frozenset(reached | written), place.span)
    kernel = kernels.get(place.kernel)
    args = zip(kernel.args if kernel else (), place.args, strict=False)
    written = {buffer_in(text) for arg, text in args if arg.role in ("out", "inout")}
    return Step(order, place.kernel, True, frozenset(written), frozenset(reached), place.span)


def is_nop(leaf: SchedulerNode) -> bool:
    """Whether nothing runs for `leaf`.

    A concatenation whose pieces others write, an empty tensor, or an `OrderingBarrier`: a place in the order.
    """
    return leaf.kind == "NopKernelSchedulerNode"


def node_runs(
    nodes: NodeIndex, wrapper: Wrapper, subgraph_of: Callable[[str], str | None] = lambda _: None
) -> dict[str, NodeStep]:
    """Return where each unfused node runs, by its name. `subgraph_of` says of which subgraph a node is."""
    units = _Finder(nodes, wrapper, subgraph_of).units
    runs = {leaf.name: _node_step(leaf, unit) for unit in units for leaf in unit.leaves}
    for leaf in nodes.leaves:
        if leaf.name in runs:
            continue
        if is_nop(leaf):
            runs[leaf.name] = NodeStep(None, read("no-kernel"))
        elif leaf.ir in _STATEMENTS:
            runs[leaf.name] = NodeStep(None, read("wrapper-statement", ir=leaf.ir))
        else:  # an item of what a library call returned is there when the call returns
            runs[leaf.name] = NodeStep(None)
            for name in read_names(leaf):
                producer = nodes.producer.get(name, "")
                run = runs.get(producer)
                if run is not None and nodes.leaf[producer].ir in _STATEMENTS:
                    runs[leaf.name] = run
                    break
                if run is not None and (run.kernel or run.candidates):
                    proof = read("item-of-call", buffer=name)
                    runs[leaf.name] = NodeStep(run.kernel, proof, run.step, run.candidates)
                    break
    return runs


@dataclass(slots=True, eq=False)
class _Unit:
    """Nodes that run in one step, while the step is searched.

    Attributes:
        generated: they run in a kernel that inductor generated.
        shares: other units may run in the same step: C++ kernels hold many nodes, Triton kernels one each.
        proofs: for each node, what shows the step.
    """

    leaves: tuple[SchedulerNode, ...]
    generated: bool
    shares: bool
    step: Step | None = None
    proofs: dict[str, Proof] = field(default_factory=dict)
    candidates: tuple[Step, ...] = ()

    def settle(self, step: Step, proof: Proof) -> None:
        """Set the step; `proof` holds for the nodes that have none of their own."""
        self.step = step
        self.candidates = ()
        self.proofs = {leaf.name: self.proofs.get(leaf.name, proof) for leaf in self.leaves}


def _units(top: SchedulerNode, split: bool = False) -> Iterator[_Unit]:
    """Yield the units of a scheduler node; what needs no step is in none. `split` is for recursion."""
    if top.kind in _SPLIT:
        for child in top.children:
            yield from _units(child, split=True)
        return
    leaves = tuple(
        leaf for leaf in top.leaves() if not is_nop(leaf) and leaf.ir not in (ITEM_OF_CALL, *_STATEMENTS)
    )
    if leaves:
        generated = any(leaf.kind != _EXTERN or leaf.ir == _GENERATED_EXTERN for leaf in leaves)
        yield _Unit(leaves, generated, shares=split or leaves[0].device in (None, "cpu"))


def _node_step(leaf: SchedulerNode, unit: _Unit) -> NodeStep:
    if unit.step is not None:
        return NodeStep(unit.step.name, unit.proofs[leaf.name], unit.step)
    if leaf.kernel and len({step.name for step in unit.candidates}) <= 1:
        proof = read("node-names-one-of-calls" if unit.candidates else "node-names-call")
        return NodeStep(leaf.kernel, proof, None, unit.candidates)
    if unit.candidates:
        return NodeStep(None, inferred("steps-in-order"), None, unit.candidates)
    return NodeStep(None)


class _Finder:
    """Finds the step of each unit, by stronger proofs first."""

    def __init__(self, nodes: NodeIndex, wrapper: Wrapper, subgraph_of: Callable[[str], str | None]) -> None:
        self.wrapper = wrapper
        self.nodes = nodes
        self.units = [unit for top in nodes.tops for unit in _units(top)]
        self.unit_of = {leaf.name: unit for unit in self.units for leaf in unit.leaves}
        for unit in self.units:
            self._by_written_buffers(unit)
        self._one_each()
        for unit in reversed(self.units):
            self._by_readers(unit)
        places: dict[str | None, tuple[list[_Unit], list[Step]]] = {}
        for unit in self.units:
            places.setdefault(subgraph_of(unit.leaves[0].name), ([], []))[0].append(unit)
        for step in wrapper.steps:
            places.setdefault(step.subgraph, ([], []))[1].append(step)
        for units, steps in places.values():
            self._by_order(units, steps)

    def _by_written_buffers(self, unit: _Unit) -> None:
        """The step that is passed a buffer of the unit to write runs the unit."""
        possible: tuple[Step, ...] = ()
        for leaf in unit.leaves:
            steps, proof = self._writers(leaf)
            if proof is not None:
                unit.proofs[leaf.name] = proof
                common = tuple(step for step in steps if step in possible)
                possible = common or tuple(dict.fromkeys((*possible, *steps)))
        unit.candidates = possible
        if len(possible) == 1:
            unit.settle(possible[0], read("fused-with-linked"))

    def _writers(self, leaf: SchedulerNode) -> tuple[tuple[Step, ...], Proof | None]:
        """Return the steps that may write what `leaf` writes, and what shows that."""
        for buffer in leaf.outputs:
            if buffer.name in self.wrapper.writers:
                first = self.wrapper.writers[buffer.name][0]  # later ones change it in place
                return (first,), read("writes-buffer", step=first.what, buffer=buffer.name)
        for name in self._items(leaf):  # a wrapper in C++ names the items of a result, and not the result
            if name in self.wrapper.writers:
                first = self.wrapper.writers[name][0]
                return (first,), read("writes-buffer", step=first.what, buffer=name)
        for buffer in leaf.outputs:
            for name in self._mutated(buffer.name):
                steps = self._changers(leaf, name)
                if steps:
                    operands = {"step": steps[0].what, "buffer": buffer.name, "mutated": name}
                    return steps, read("mutates-buffer", **operands)
        return (), None

    def _items(self, leaf: SchedulerNode) -> Iterator[str]:
        """Yield the buffers of the items of what `leaf` returns, if it returns several."""
        for buffer in leaf.outputs:
            for reader in self.nodes.readers.get(buffer.name, ()):
                if self.nodes.leaf[reader].ir == ITEM_OF_CALL:
                    yield from (item.name for item in self.nodes.leaf[reader].outputs)

    def _mutated(self, buffer: str) -> Iterator[str]:
        """Yield the buffers that `buffer` is another name of, nearest first: a launch is passed the last."""
        names = [buffer]
        for name in names:  # grows while it is walked
            known = self.nodes.buffers.get(name)
            for mutated in known.mutations if known else ():
                if mutated not in names[1:]:
                    names.append(mutated)
                    yield mutated

    def _changers(self, leaf: SchedulerNode, name: str) -> tuple[Step, ...]:
        """Steps that may change the buffer `name` in place on behalf of `leaf`."""
        unit = self.unit_of.get(leaf.name)
        reachers = self.wrapper.reachers.get(name, ())
        if unit is not None and unit.generated:
            steps = self.wrapper.writers.get(name) or tuple(step for step in reachers if not step.writes)
            steps = tuple(step for step in steps if step.generated)
        else:  # `aten.index_put_(buf0, ...)` does not say which argument it changes
            steps = tuple(step for step in reachers if _is_call_of(step, leaf))
        if len(steps) > 1 and (passed := self._passed_what_it_reads(leaf, steps)):
            return passed
        if len(steps) > 1 and name in self.nodes.producer:
            producer = self.unit_of.get(self.nodes.producer[name])
            return steps[1:] if producer is not None and steps[0] is producer.step else steps
        return steps

    def _passed_what_it_reads(self, leaf: SchedulerNode, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Of steps that change a buffer, those that are passed what `leaf` reads; none if all are.

        A C++ kernel that makes a buffer may change it in place, too: `table.clone().index_add_(...)`. What
        one of them writes, or what lends its memory to another buffer, is passed under other names.
        """
        names = [
            name
            for name in read_names(leaf)
            if name in self.wrapper.reachers
            and name not in self.wrapper.lent
            and not any(name in step.writes for step in steps)
        ]
        passed = tuple(step for step in steps if step.reaches.issuperset(names))
        return passed if len(passed) < len(steps) else ()

    def _one_each(self) -> None:
        """As many nodes as steps that change the same buffer: they belong together in order."""
        rivals = grouped(
            (unit for unit in self.units if len(unit.candidates) > 1), lambda unit: unit.candidates
        )
        for steps, units in rivals.items():
            if len(units) == len(steps):
                for unit, step in zip(units, steps, strict=True):
                    unit.settle(step, inferred("mutation-order"))

    def _by_readers(self, unit: _Unit) -> None:
        """A buffer that the wrapper passes to nothing lives inside one kernel, with all of its readers."""
        if unit.step is not None or not unit.generated:
            return
        for leaf in unit.leaves:
            for buffer in leaf.outputs:
                if buffer.name not in self.wrapper.passed:
                    readers = (self.unit_of.get(reader) for reader in self.nodes.readers.get(buffer.name, ()))
                    steps = {reader.step for reader in readers if reader is not None and reader.step}
                    if len(steps) == 1:
                        unit.settle(steps.pop(), inferred("inlined-into-reader", buffer=buffer.name))
                        return

    def _by_order(self, units: Sequence[_Unit], run: Sequence[Step]) -> None:
        """What is left of `units` runs between the steps of its neighbours, in the same function."""
        place = {step: order for order, step in enumerate(run)}
        highest = [len(run) - 1]
        for unit in reversed(units):
            highest.append(min(highest[-1], place[unit.step]) if unit.step in place else highest[-1])
        low = 0
        used = {unit.step for unit in units if unit.step is not None and not unit.shares}
        for unit, high in zip(units, reversed(highest[:-1]), strict=True):
            if unit.step is None:
                self._between(unit, run, low, high, used)
            if unit.step in place:
                low = max(low, place[unit.step])

    def _between(self, unit: _Unit, run: Sequence[Step], low: int, high: int, used: set[Step]) -> None:
        steps = unit.candidates
        if not steps:
            if high - low > _FAR:
                return
            between = run[low : high + 1]
            steps = tuple(
                step for step in between if step.generated == unit.generated and self._could_run(step, unit)
            )
        steps = tuple(step for step in steps if step in run[low : high + 1]) or steps
        if not unit.shares:
            steps = tuple(step for step in steps if step not in used) or steps
        unit.candidates = steps
        if len(steps) == 1:
            unit.settle(steps[0], inferred("only-step-in-order"))
            if not unit.shares:
                used.add(steps[0])

    def _could_run(self, step: Step, unit: _Unit) -> bool:
        """Whether `step` is passed the inputs that the unit reads; a call must be of the node's target."""
        if not unit.generated:
            return _is_call_of(step, unit.leaves[0])
        needed = {name for leaf in unit.leaves for name in read_names(leaf)}
        return needed & self.wrapper.inputs <= step.reaches


def _is_call_of(step: Step, leaf: SchedulerNode) -> bool:
    """Whether the call may be the node's. What a node prints as its target differs between versions."""
    return not step.generated and (not leaf.kernel or is_call_of(step.name, leaf.kernel))
