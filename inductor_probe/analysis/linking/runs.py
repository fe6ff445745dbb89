"""Which step of the wrapper runs a node.

The proofs, strongest first: the step is handed the node's buffer to write; no step is handed the buffer, so
that the one which reads it also computes it; and the order, for inductor writes the steps of a wrapper in the
order in which the nodes stand in `ir_post_fusion.txt`.
"""

from __future__ import annotations

from dataclasses import dataclass

from inductor_probe.analysis.graph import NodeIndex, read_names
from inductor_probe.analysis.linking.steps import Step, Wrapper
from inductor_probe.analysis.linking.units import STATEMENTS, Unit, is_nop, units
from inductor_probe.analysis.operators import operator
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.proof import Proof, inferred, read

_FAR = 200
"""Steps between the neighbours of a node beyond which its place tells nothing worth showing."""


@dataclass(frozen=True, slots=True)
class NodeStep:
    """Where a node runs: `step`, or the `candidates` when more than one is possible.

    `proof` shows it, or that no step is needed; without one the node is unlinked.

    `kernel` is known even where no step is: an extern node names the call it makes.
    """

    kernel: str | None
    proof: Proof | None = None
    step: Step | None = None
    candidates: tuple[Step, ...] = ()


def node_runs(nodes: NodeIndex, wrapper: Wrapper) -> dict[str, NodeStep]:
    """Return where each unfused node runs, by its name."""
    finder = _Finder(nodes, wrapper)
    finder.find()
    runs = {leaf.name: _run(leaf, unit) for unit in finder.units for leaf in unit.leaves}
    for leaf in nodes.leaves:
        if leaf.name in runs:
            continue
        if is_nop(leaf):
            runs[leaf.name] = NodeStep(None, read("no-kernel"))
        elif leaf.ir in STATEMENTS:
            runs[leaf.name] = NodeStep(None, read("wrapper-statement", ir=leaf.ir))
        else:
            runs[leaf.name] = finder.item_of(leaf, runs)
    return runs


def _run(leaf: SchedulerNode, unit: Unit) -> NodeStep:
    if unit.step is not None:
        return NodeStep(unit.step.name, unit.proofs[leaf.name], unit.step)
    if leaf.kernel and len({step.name for step in unit.candidates}) <= 1:
        proof = read("node-names-one-of-calls" if unit.candidates else "node-names-call")
        return NodeStep(leaf.kernel, proof, None, unit.candidates)
    if unit.candidates:
        return NodeStep(None, inferred("steps-in-order"), None, unit.candidates)
    return NodeStep(None)


class _Finder:
    """Finds the step of each unit: nodes that run together."""

    def __init__(self, nodes: NodeIndex, wrapper: Wrapper) -> None:
        self.wrapper = wrapper
        self.nodes = nodes
        self.units = [unit for top in nodes.tops for unit in units(top)]
        self.unit_of = {leaf.name: unit for unit in self.units for leaf in unit.leaves}

    def find(self) -> None:
        for unit in self.units:
            self._by_own_buffers(unit)
        self._one_each()
        for unit in reversed(self.units):
            self._by_readers(unit)
        self._by_order()

    def _by_own_buffers(self, unit: Unit) -> None:
        """The step that is handed a buffer of the unit to write runs the unit."""
        possible: dict[int, Step] | None = None
        for leaf in unit.leaves:
            writers, proof = self._writers(leaf)
            if proof is None:
                continue
            unit.proofs[leaf.name] = proof
            steps = {step.order: step for step in writers}
            both = {} if possible is None else {at: step for at, step in steps.items() if at in possible}
            possible = both or {**(possible or {}), **steps}
        unit.candidates = tuple(possible.values()) if possible else ()
        if len(unit.candidates) == 1:
            unit.settle(unit.candidates[0], read("fused-with-linked"))

    def _writers(self, leaf: SchedulerNode) -> tuple[tuple[Step, ...], Proof | None]:
        """Return the steps that may write what `leaf` writes, and what shows that."""
        for buffer in leaf.outputs:
            if buffer.name in self.wrapper.writers:
                first = self.wrapper.writers[buffer.name][0]  # later ones change it in place
                return (first,), read("writes-buffer", step=first.what, buffer=buffer.name)
        for buffer in leaf.outputs:
            for name in self._mutated(buffer.name):
                steps = self._changers(leaf, name)
                if steps:
                    operands = {"step": steps[0].what, "buffer": buffer.name, "mutated": name}
                    return steps, read("mutates-buffer", **operands)
        return (), None

    def _mutated(self, buffer: str) -> list[str]:
        """Buffers that `buffer` is another name of, nearest first: a launch is handed the last."""
        names: list[str] = []
        queue = [buffer]
        for name in queue:  # grows while it is walked
            known = self.nodes.buffers.get(name)
            for mutated in known.mutations if known else ():
                if mutated not in names:
                    names.append(mutated)
                    queue.append(mutated)
        return names

    def _changers(self, leaf: SchedulerNode, name: str) -> tuple[Step, ...]:
        """Steps that may change the buffer `name` in place on behalf of `leaf`."""
        unit = self.unit_of.get(leaf.name)
        if unit is not None and unit.generated:
            steps = self.wrapper.writers.get(name, ()) or tuple(
                step for step in self.wrapper.reachers.get(name, ()) if not step.roles
            )
            steps = tuple(step for step in steps if step.generated)
        else:  # `aten.index_put_(buf0, ...)` does not say which argument it changes
            steps = tuple(step for step in self.wrapper.reachers.get(name, ()) if is_call_of(step, leaf))
        if len(steps) > 1 and name in self.nodes.producer:
            made = self.unit_of.get(self.nodes.producer[name])
            return steps[1:] if made is not None and steps[0] is made.step else steps
        return steps

    def _one_each(self) -> None:
        """As many nodes as steps that change the same buffer: they go together in order."""
        rivals: dict[tuple[int, ...], list[Unit]] = {}
        for unit in self.units:
            if len(unit.candidates) > 1:
                rivals.setdefault(tuple(step.order for step in unit.candidates), []).append(unit)
        for group in rivals.values():
            steps = group[0].candidates
            if len(group) == len(steps):
                for unit, step in zip(group, steps, strict=True):
                    unit.settle(step, inferred("mutation-order"))

    def _by_readers(self, unit: Unit) -> None:
        """A buffer that the wrapper hands to nobody lives inside one kernel, with all of its readers."""
        if unit.step is not None or not unit.generated:
            return
        for leaf in unit.leaves:
            for buffer in leaf.outputs:
                if buffer.name in self.wrapper.handed:
                    continue
                readers = (self.unit_of.get(reader) for reader in self.nodes.readers.get(buffer.name, ()))
                steps = {unit.step for unit in readers if unit is not None and unit.step is not None}
                if len(steps) == 1:
                    unit.settle(steps.pop(), inferred("inlined-into-reader", buffer=buffer.name))
                    return

    def _by_order(self) -> None:
        """What is left runs between the steps of its neighbours."""
        below = [len(self.wrapper.steps) - 1]
        for unit in reversed(self.units):
            below.append(min(below[-1], unit.step.order) if unit.step else below[-1])
        low = 0
        taken = {unit.step.order for unit in self.units if unit.step is not None and not unit.shares}
        for unit, high in zip(self.units, reversed(below[:-1]), strict=True):
            if unit.step is None:
                self._between(unit, low, high, taken)
            if unit.step is not None:
                low = max(low, unit.step.order)

    def _between(self, unit: Unit, low: int, high: int, taken: set[int]) -> None:
        pool = unit.candidates
        if not pool:
            if high - low > _FAR:
                return
            pool = tuple(
                step
                for step in self.wrapper.steps[low : high + 1]
                if step.generated == unit.generated and self._could_run(step, unit)
            )
        pool = tuple(step for step in pool if low <= step.order <= high) or pool
        if not unit.shares:
            pool = tuple(step for step in pool if step.order not in taken) or pool
        unit.candidates = pool
        if len(pool) == 1:
            unit.settle(pool[0], inferred("only-step-in-order"))
            if not unit.shares:
                taken.add(pool[0].order)

    def _could_run(self, step: Step, unit: Unit) -> bool:
        """Whether `step` is handed the inputs that the unit reads; a call must be of the node's target."""
        if not unit.generated:
            return is_call_of(step, unit.leaves[0])
        needed = {name for leaf in unit.leaves for name in read_names(leaf)}
        return needed & self.wrapper.inputs <= step.reaches

    def item_of(self, leaf: SchedulerNode, runs: dict[str, NodeStep]) -> NodeStep:
        """An item of what a library call returned is there when the call returns."""
        for name in read_names(leaf):
            run = runs.get(self.nodes.producer.get(name, ""))
            if run is not None and (run.kernel or run.candidates):
                proof = read("item-of-call", buffer=name)
                return NodeStep(run.kernel, proof, run.step, run.candidates)
        return NodeStep(None)


def is_call_of(step: Step, leaf: SchedulerNode) -> bool:
    """Whether the call may be the node's. What a node prints as its target differs between versions."""
    return not step.generated and (not leaf.kernel or operator(leaf.kernel).name == operator(step.name).name)
