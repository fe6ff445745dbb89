"""A wrong call followed down: through decompositions, passes and launches, to what is wrong first."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch

from inductor_probe.accuracy_checks.above import of_all, of_graphs
from inductor_probe.accuracy_checks.calls import CheckedCall
from inductor_probe.accuracy_checks.changes import Change, changes_for
from inductor_probe.accuracy_checks.decompositions import Decompositions
from inductor_probe.accuracy_checks.faults import Fault, draws, original_operator, user_line
from inductor_probe.accuracy_checks.judgement import RIGHT
from inductor_probe.accuracy_checks.kernels import explain, with_python_wrapper
from inductor_probe.accuracy_checks.launches import Launched, check_launches, stands_for
from inductor_probe.accuracy_checks.options import RAISES
from inductor_probe.accuracy_checks.passes import chains, check_partition, check_passes
from inductor_probe.accuracy_checks.stages import Lowered, Ran, Stages
from inductor_probe.harness.own_calls import COMPILED, EAGER


class Follower:
    """Follows a wrong call.

    Args:
        tell: sends an event.

    Attributes:
        found: what is wrong.
    """

    def __init__(self, call: CheckedCall, stages: Stages, tell: Callable[..., None]) -> None:
        self._call, self._stages, self._tell = call, stages, tell
        self._launched: list[tuple[Lowered, Launched]] = []
        self.found: list[Fault] = []

    def follow(self) -> None:
        """Find what is wrong, in the order of a compile. Nothing is compiled but parts."""
        with self._stages.recorded() as runs:
            self._call.run(COMPILED)
        self._stage("decompositions", self._of_decompositions)
        for chain in chains(runs):
            self._stage(chain[0], partial(check_passes, chain))
        self._stage("partition", partial(check_partition, runs))
        for ran in runs:
            if isinstance(ran.of, Lowered):
                self._stage("launches", partial(self._of_launches, ran))
        for fault in self.found:
            self._place(fault)

    def decide(self) -> str:
        """Follow a call that draws random numbers; return its verdict: wrong, if something else is wrong.

        Code may draw other numbers than eager. Each launch is judged on what eager reads there, so that an
        operator that draws none is wrong by itself.
        """
        self.follow()
        self.found = [fault for fault in self.found if not draws(fault.operator)]
        if self.found:
            self._call.is_wrong()
        return self._call.verdict

    def _stage(self, name: str, faults: Callable[[], Iterable[Fault]]) -> None:
        """Look for what is wrong in one stage: one that cannot be examined does not hide the others."""
        try:
            self.found += faults()
        except Exception as error:
            text = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
            self._tell("not-followed", stage=name, message=text)
            if RAISES in os.environ:
                raise

    def explain(self, seconds: float) -> None:
        """Compile the program in other ways: for what was not found in its graphs, and what makes it right.

        Dynamo forgets what it compiled: this is for when the script has ended.
        """
        begin = time.monotonic()
        self._call.come_back()
        again = self._call.right_with(nullcontext()) if seconds else set()
        above = [*of_graphs(self._call)]
        if any(fault.layer == "decomposition" for fault in self.found):
            # Some decompositions are AOTAutograd's: its graph is wrong by them.
            above = [fault for fault in above if fault.layer == "dynamo"]
        self.found = [*above, *self.found] or [of_all(self._call)]
        if again:  # by what the program did since it was compiled: no change can be told from that
            for fault in self.found:
                fault.steps.append(("the same, compiled again", ", ".join(sorted(again)), RIGHT))
            return
        for number, fault in enumerate(self.found if seconds else ()):
            share = (seconds - (time.monotonic() - begin)) / (len(self.found) - number)
            self._try(fault, share)

    def _of_decompositions(self) -> list[Fault]:
        table = Decompositions()
        with torch.autograd.set_detect_anomaly(True, check_nan=False):
            self._call.run(EAGER, table)
        return [*table.faults.values()]

    def _of_launches(self, ran: Ran) -> Iterator[Fault]:
        of: Lowered = ran.of
        lowered = of
        if of.lowering is not None and of.lowering.cpp_wrapper:
            lowered = with_python_wrapper(of, ran.inputs, self._stages)
        launched = check_launches(lowered, ran.inputs)
        self._launched.append((lowered, launched))
        self._tell(
            "launches", graph=of.key, compared=launched.compared, unknown=launched.unknown,
            problem=launched.problem,
        )  # fmt: skip
        for wrong, part in launched.wrong:
            yield from explain(lowered, ran.inputs, wrong, part, self._stages)

    def _place(self, fault: Fault) -> None:
        """Give a fault that was found above the kernels the names of its operator in a graph of inductor."""
        if fault.buffer:
            return
        for lowered, launched in self._launched:
            if fault.graph not in (None, lowered.key):
                continue
            node = _node_of(lowered, fault)
            if node is None:
                continue
            fault.graph = lowered.key
            fault.fx = fault.fx or node.name
            fault.user = fault.user or user_line(node)
            stands = stands_for(lowered)
            for scheduled in lowered.lowering.scheduler.nodes if lowered.lowering else ():
                for operation in scheduled.get_nodes():
                    if node.name not in {one.name for one in getattr(operation.node, "origins", ())}:
                        continue
                    buffers = [one.get_name() for one in operation.get_outputs()]
                    exact = any(stands.node.get(one) == node.name for one in buffers)
                    if buffers and (exact or not fault.buffer):
                        fault.node, fault.buffer = operation.get_name(), buffers[0]
                        kernels = [
                            launched.kernels.get(line, "")
                            for line, of in launched.written.items()
                            if buffers[0] in of
                        ]
                        fault.kernel = kernels[0] if kernels else ""
            return

    def _try(self, fault: Fault, seconds: float) -> None:
        """Make the program's call with changes that may make it right: one, more if there is time."""
        begin = time.monotonic()
        for number, change in enumerate(changes_for(fault)):
            if number and time.monotonic() - begin > seconds:
                fault.untried.append(change.name)
            elif (right := self._is_right_with(change)) is not None:
                fault.trials.append((change.kind, change.name, "program", right))
                if right and fault.right_alone and fault.layer == "codegen" and change.kind == "setting":
                    fault.layer = "scheduling"
                    return

    def _is_right_with(self, change: Change) -> bool | None:
        """Whether the call is right with a change; of several wrong things, whether fewer values are."""
        try:
            return bool(self._call.right_with(change.applied()))
        except Exception:  # torch may not compile it so
            return None


def _node_of(lowered: Lowered, fault: Fault) -> Any:
    """Return the node that has the value of a fault's operator: the last of those that it became."""
    nodes = [node for node in lowered.reference.graph.nodes if node.op == "call_function"]
    mine = [node for node in nodes if node.name == fault.fx] if fault.fx else []
    mine = mine or [node for node in nodes if original_operator(node) == fault.operator]
    if fault.user:
        mine = [node for node in mine if user_line(node) == fault.user] or mine
    return mine[-1] if mine else None
