"""Which pass over a graph makes it compute something else, and instead of which operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch

from inductor_probe.accuracy_checks.faults import Fault, operator_of, user_line
from inductor_probe.accuracy_checks.judgement import RIGHT, WRONG, judge
from inductor_probe.accuracy_checks.options import Key
from inductor_probe.accuracy_checks.stages import Lowered, Ran, Step, Traced, runs_alone
from inductor_probe.accuracy_checks.values import Value, outputs_of, values_of
from inductor_probe.model.accuracy import PARTITION

Chain = tuple[str, Sequence[Step], list[Any], "Key | None"]
"""Graphs before and after passes: which passes, the graphs, their inputs, and the graph that they become."""


def chains(runs: Sequence[Ran]) -> Iterator[Chain]:
    """Yield the graphs that passes made one of the other in what a call ran, each once."""
    seen: list[Any] = []
    for ran in runs:
        if any(one is ran.of for one in seen):
            continue
        seen.append(ran.of)
        if isinstance(ran.of, Traced):
            yield "passes over what dynamo traced", ran.of.before, ran.inputs, None
            continue
        lowered: Lowered = ran.of
        joint = lowered.traced.joint
        if joint and lowered.kind != "forward":  # with a backward, inputs of both are there when that has run
            inputs = inputs_by_name(joint[0].graph, [one for one in runs if _of(one, lowered.traced)])
            if inputs is not None:
                yield "passes over the joint graph", joint, inputs, lowered.key
        yield "passes over what is lowered", lowered.steps, ran.inputs, lowered.key


def check_partition(runs: Sequence[Ran]) -> Iterator[Fault]:
    """Yield the first value that differs where a joint graph was divided into forward and backward.

    `min_cut_rematerialization_partition` keeps the names of nodes. Each graph runs on its inputs of the call.
    """
    seen: list[Any] = []
    for traced in (ran.of.traced for ran in runs if isinstance(ran.of, Lowered)):
        mine = [ran for ran in runs if _of(ran, traced)]
        if any(one is traced for one in seen) or not traced.joint:
            continue
        seen.append(traced)
        joint = traced.joint[-1].graph
        inputs = inputs_by_name(joint, mine) if runs_alone(joint) else None
        if inputs is None:
            continue
        rights, noisy = values_of(joint, inputs), _Noisy(joint, inputs)
        saved: dict[str, Value] = {}  # not what code made of it, which may be wrong
        for ran in mine:
            part = ran.of.steps[0].graph if ran.of.steps else ran.of.reference
            if not runs_alone(part):
                break
            names = [node.name for node in part.graph.nodes if node.op == "placeholder"]
            given = [
                saved[name].eager if name in saved else value
                for name, value in zip(names, ran.inputs, strict=False)
            ]
            values = values_of(part, given)
            saved |= values
            if (fault := _first_other(part, ran, rights, values, noisy)) is not None:
                yield fault
                return


def _first_other(
    part: Any, ran: Ran, rights: dict[str, Value], values: dict[str, Value], noisy: _Noisy
) -> Fault | None:
    for node in part.graph.nodes:
        if node.op == "placeholder" or node.name not in rights or node.name not in values:
            continue
        right = rights[node.name]
        judged = judge(right.eager, values[node.name].eager, right.reference, partial(noisy, node.name))
        if judged.verdict == WRONG:
            fault = Fault("joint-graph", operator_of(node), judged, fx=node.name, graph=ran.of.key)
            fault.user, fault.cause = user_line(node), PARTITION
            fault.steps = [("joint graph", "", RIGHT), (f"graph of the {ran.of.kind}", "", WRONG)]
            return fault
    return None


class _Noisy:
    """What the nodes of a graph give when results are moved by roundings: see `Shadow`."""

    def __init__(self, graph: Any, inputs: list[Any]) -> None:
        self._graph, self._inputs = graph, inputs
        self._values: dict[int, dict[str, Value]] = {}

    def __call__(self, name: str, seed: int) -> torch.Tensor | None:
        if seed not in self._values:
            self._values[seed] = values_of(self._graph, self._inputs, seed)
        return self._values[seed][name].reference


def _of(ran: Ran, traced: Traced) -> bool:
    return isinstance(ran.of, Lowered) and ran.of.traced is traced


def inputs_by_name(graph: Any, runs: Sequence[Ran]) -> list[Any] | None:
    """Return the inputs of a joint graph: those of its forward and backward of the same names.

    None where one is not there: where the backward was not run.
    """
    given: dict[str, Any] = {}
    for ran in runs:
        names = [node.name for node in ran.of.graph.graph.nodes if node.op == "placeholder"]
        given.update(zip(names, ran.inputs, strict=False))
    wanted = [node for node in graph.graph.nodes if node.op == "placeholder"]
    if any(node.name not in given and node.users for node in wanted):
        return None
    return [given.get(node.name) for node in wanted]


def check_passes(chain: Chain) -> Iterator[Fault]:
    """Run graphs before and after each pass on the inputs of a call; yield what a pass made wrong.

    Graphs whose nodes are of inductor alone, as functions that lower a pattern, are not run.
    """
    _, steps, inputs, graph = chain
    steps = [step for step in steps if runs_alone(step.graph)]
    first = outputs_of(steps[0].graph, inputs) if len(steps) > 1 else []
    if len(steps) < 2 or not _wrong(steps[0].graph, first, outputs_of(steps[-1].graph, inputs), inputs):
        return
    right, wrong = 0, len(steps) - 1
    while wrong - right > 1:  # bisection: what one pass made wrong, no later one makes right
        middle = (right + wrong) // 2
        if _wrong(steps[0].graph, first, outputs_of(steps[middle].graph, inputs), inputs):
            wrong = middle
        else:
            right = middle
    yield from _located(steps[right], steps[wrong], inputs, graph)


def _wrong(graph: Any, right: list[Value | None], other: list[Value | None], inputs: list[Any]) -> bool:
    """Whether any output of another graph is wrong."""
    noisy: dict[int, list[Value | None]] = {}

    def noise(place: int, seed: int) -> torch.Tensor | None:
        if seed not in noisy:
            noisy[seed] = outputs_of(graph, inputs, seed)
        value = noisy[seed][place]
        return None if value is None else value.reference

    for place, (one, two) in enumerate(zip(right, other, strict=False)):
        if one is None or two is None:
            continue
        judged = judge(one.eager, two.eager, one.reference, partial(noise, place))
        if judged.verdict == WRONG:
            return True
    return False


def _located(before: Step, after: Step, inputs: list[Any], graph: Key | None) -> Iterator[Fault]:
    """Find the value that a pass replaced by another one: an operand of a node that both graphs have."""
    rights, others = values_of(before.graph, inputs), values_of(after.graph, inputs)
    noise = _Noisy(before.graph, inputs)
    nodes = {node.name: node for node in before.graph.graph.nodes}
    for user in after.graph.graph.nodes:
        was = nodes.get(user.name)
        if was is None:
            continue
        operands = _operands(was), _operands(user)
        # The same operands in another order: `cat` of them is wrong, and none of them.
        is_reordered = sorted(one.name for one in operands[0]) == sorted(one.name for one in operands[1])
        pairs = [*(() if is_reordered else zip(*operands, strict=False)), (was, user)]
        for one, other in pairs:
            if one.name not in rights or other.name not in others:
                continue
            right, other_value = rights[one.name], others[other.name].eager
            judged = judge(right.eager, other_value, right.reference, partial(noise, one.name))
            if judged.verdict == WRONG:
                fault = Fault("pass", operator_of(one), judged, fx=one.name, graph=graph)
                fault.user, fault.cause, fault.is_pattern = user_line(one), after.name, after.is_pattern
                kind = "pattern" if after.is_pattern else "pass"
                what = f"{other.name} = {operator_of(other)}" if other.name != one.name else one.name
                fault.steps = [
                    ("graph before the pass", f"{one.name} = {operator_of(one)}", RIGHT),
                    (f"{kind} {after.name}" if after.name else f"a {kind}", what, WRONG),
                ]
                yield fault
                return


def _operands(node: Any) -> list[Any]:
    """Return the nodes that a node takes, in order; the same one again where it takes it again."""
    found: list[Any] = []
    torch.fx.node.map_arg((node.args, node.kwargs), found.append)
    return found
