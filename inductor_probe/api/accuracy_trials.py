"""The script of a wrong call run again: with decisions turned, and what changes that make it right cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Set
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from inductor_probe.analysis.flips import flips_of
from inductor_probe.api.session import Run
from inductor_probe.model.accuracy import AccuracyOutput, RightWhen, WrongValue
from inductor_probe.model.flip import Flip, parse_flip
from inductor_probe.model.own_call import NoOwnCall, OwnPair

if TYPE_CHECKING:
    from inductor_probe.accuracy_checks.options import AccuracyOptions
    from inductor_probe.measuring.script_process import OwnProgram

_SCALAR = "inductor.cpp.simdlen=1"
_MOST_CERTAIN = 2
"""Values that are right in scalar code for which it is tried whether their own loop is enough."""
_MADE_BY_INDUCTOR = ("lowering", "scheduling", "codegen", "compiler")
_COST_S, _MARGIN, _PROCESSES = 3.0, 0.01, 2
"""Seconds in which a change is timed, the difference that counts as none, and pairs of processes."""


class Flips:
    """Runs the script with decisions turned that were taken about what is wrong; notes which are enough.

    Args:
        options: `try_s` for all of them, but for one of each of the first values.
        before: what is wrong without them: see `Judgement`.
    """

    def __init__(
        self, run: Run, program: OwnProgram, options: AccuracyOptions, before: Set[Any],
        progress: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._graphs = {graph.name: graph for graph in run.graphs}
        self._program, self._progress = program, progress
        self._options = replace(options, follow=False, vary=False)
        self._before = before
        self._certain, self._end = _MOST_CERTAIN, time.monotonic() + options.try_s

    def tried(self, record: AccuracyOutput) -> AccuracyOutput:
        """Return the record with what became of each."""
        graphs = []
        for graph in record.graphs:
            wrong = [self._of_value(value, graph.graph) for value in graph.wrong]
            graphs.append(replace(graph, wrong=tuple(wrong)))
        return replace(record, graphs=tuple(graphs))

    def _of_value(self, value: WrongValue, graph: str) -> WrongValue:
        from inductor_probe.accuracy_checks.session import judge_program

        right, not_right, untried = list[RightWhen](), list[str](), list[str]()
        for flip in self._about(value, graph):
            name = str(flip)
            certain = flip.kind == "scalar" and self._certain > 0
            if not certain and time.monotonic() > self._end:
                untried.append(name)
                continue
            self._certain -= certain
            self._progress(f"running it once more, with --{name}")
            turned = replace(self._program, flips=(*self._program.flips, replace(flip, graph=graph)))
            after = judge_program(turned, self._options)
            if after.calls and after.wrong_values < self._before:
                right.append(RightWhen("flip", flip=name))
            else:
                not_right.append(name)
        return replace(
            value,
            right_when=(*right, *value.right_when),
            not_right_when=(*value.not_right_when, *not_right),
            not_tried=(*value.not_tried, *untried),
        )

    def _about(self, value: WrongValue, graph: str) -> Iterator[Flip]:
        """Yield the flips about a value, as far as what is known already does not exclude them."""
        if value.layer not in _MADE_BY_INDUCTOR or graph not in self._graphs:
            return
        names = {value.node, value.buffer, value.fx} - {""}
        is_scalar_right = _SCALAR in {one.setting for one in value.right_when}
        flips = flips_of(self._graphs[graph].compiled, names)
        for flip in sorted(flips, key=lambda one: one.kind != "scalar"):
            if flip.kind != "scalar" or is_scalar_right:
                yield flip


class Costs:
    """Times the program's own call as it is against that with each change that makes it right."""

    def __init__(self, run: Run, program: OwnProgram, progress: Callable[[str], None]) -> None:
        self._graphs = {graph.name: graph for graph in run.graphs}
        self._program, self._progress = program, progress
        self._known: dict[tuple[str, str], OwnPair | NoOwnCall] = {}

    def measured(self, record: AccuracyOutput) -> AccuracyOutput:
        """Return the record with what each change costs; those that no option makes have no cost."""
        graphs = []
        for graph in record.graphs:
            wrong = [
                replace(
                    value, right_when=tuple(self._with_cost(one, graph.graph) for one in value.right_when)
                )
                for value in graph.wrong
            ]
            graphs.append(replace(graph, wrong=tuple(wrong)))
        return replace(record, graphs=tuple(graphs))

    def _with_cost(self, change: RightWhen, graph: str) -> RightWhen:
        if change.kind not in ("setting", "flip") or graph not in self._graphs:
            return change
        if (graph, change.name) not in self._known:
            self._progress(f"timing the call with {change.name}")
            self._known[graph, change.name] = self._pair(change, graph)
        known = self._known[graph, change.name]
        if isinstance(known, NoOwnCall):
            return replace(change, not_timed=known)
        return replace(change, cost=known)

    def _pair(self, change: RightWhen, graph: str) -> OwnPair | NoOwnCall:
        from inductor_probe.api.own_call import wanted_of
        from inductor_probe.measuring.own_calls import compare_programs

        program = self._program
        if program.target is not None:
            return NoOwnCall("simulated")
        if change.kind == "flip":
            flip = replace(parse_flip(change.name), graph=graph)
            other = replace(program, flips=(*program.flips, flip))
        else:
            name, _, value = change.name.partition("=")
            other = replace(program, settings=(*program.settings, (name, value)))
        wanted = wanted_of([self._graphs[graph]])
        return compare_programs(
            program,
            other,
            (wanted, wanted),
            budget=_COST_S,
            margin=_MARGIN,
            processes=_PROCESSES,
            progress=self._progress,
        )
