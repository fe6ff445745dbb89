"""The FX nodes of each kernel and library call, as torch tells them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.linking.runs import NodeStep
from inductor_probe.analysis.linking.steps import Step
from inductor_probe.model.code import ExternCall, Launch
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import SchedulerNode

_ITEM = "MultiOutput"


class KernelNodes:
    """What torch's provenance says of a step, or else the comment above its kernel."""

    def __init__(
        self, graph: CompiledGraph, leaves: Iterable[SchedulerNode], runs: Mapping[str, NodeStep]
    ) -> None:
        code = graph.code
        self._provenance = graph.provenance
        self._comments = {name: kernel.comment for name, kernel in index_of(graph).kernels.items()}
        launches: list[Launch | ExternCall] = [*code.launches, *code.externs] if code else []
        self._above = {launch.span.first: launch.comment for launch in launches}
        self.members: dict[int, list[SchedulerNode]] = {}
        steps: dict[int, Step] = {}
        for leaf in leaves:
            step = runs[leaf.name].step
            if step is not None and leaf.ir != _ITEM:
                steps[step.order] = step
                self.members.setdefault(step.order, []).append(leaf)
        self._times = Counter(step.name for step in steps.values())
        self._first = {step.name: order for order, step in sorted(steps.items(), reverse=True)}

    def alone(self, step: Step | None) -> bool:
        """Whether `step` runs only one node."""
        return step is not None and len(self.members.get(step.order, ())) == 1

    def of(self, step: Step | None) -> tuple[str, ...] | None:
        """Return the FX nodes that `step` computes; None when torch does not say."""
        if step is None:
            return None
        if self._provenance is not None:
            above = self._above.get(step.span.first) if step.span else None
            handle = above.handle if above else None
            found = self._provenance.launches.get(f"{step.name}:{handle}")
            if not found and self._times[step.name] == 1:
                found = self._provenance.kernels.get(step.name)
            if found:
                return found
        comment = self._comments.get(step.name)
        # A kernel is defined once, and its comment speaks of the nodes of its first launch.
        if comment is not None and self._first.get(step.name) == step.order and comment.fx_nodes:
            return comment.fx_nodes
        return None

    def written(self, step: Step | None) -> tuple[str, ...]:
        """Return the FX nodes that the comment above the kernel says it writes, in the order of its nodes."""
        comment = self._comments.get(step.name) if step else None
        return comment.returns if step and comment and self._first.get(step.name) == step.order else ()
