"""What became of two nodes, and why: the log where there is one, and what the IR proves besides."""

from __future__ import annotations

from collections.abc import Iterator

from inductor_probe.analysis.fusion.because import Case, because
from inductor_probe.analysis.fusion.facts import pair_facts
from inductor_probe.analysis.fusion.matching import Matched
from inductor_probe.analysis.fusion.mentions import BENCHMARK, mentions
from inductor_probe.analysis.fusion.overview import group_of, log_origins, log_problems, replayed
from inductor_probe.analysis.fusion.replay import step_that_joins
from inductor_probe.analysis.graph import index_of
from inductor_probe.errors import ProbeError
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fusion import FusionDecision, Outcome, PairAttempt
from inductor_probe.model.logs import FusionLog
from inductor_probe.model.span import Problem


def fusion_of_pair(graph: CompiledGraph, matched: Matched, first: str, second: str) -> FusionDecision:
    """Say whether `first` and `second` were fused, when, or why not.

    Args:
        graph: as read.
        matched: the graph's part of the log.
        first, second: nodes, fused ones, or buffers that a node writes.

    Raises:
        NotFoundError: a name that the graph does not have. ProbeError: both name the same node.
    """
    facts = pair_facts(graph, first, second, log_origins(matched.log))
    one, other = frozenset(facts.first.nodes), frozenset(facts.second.nodes)
    if one & other:
        both = ", ".join(sorted(one & other))
        raise ProbeError(f"{first} and {second} both name {both}", "name two different nodes or buffers")
    steps = replayed(graph, matched.log).steps if matched.log else ()
    case = Case(
        graph=graph,
        facts=facts,
        group=group_of(graph, one | other),
        step=step_that_joins(steps, one | other),
        attempts=mentions(matched.log, one, other, index_of(graph).before.producer) if matched.log else (),
    )
    outcome = _outcome(case, matched.log)
    refusal = next((attempt.refusal for attempt in reversed(case.attempts) if attempt.refusal), None)
    return FusionDecision(
        graph=graph.name,
        outcome=outcome,
        facts=facts,
        log=matched.match,
        group=case.group,
        step=case.step,
        same_kernel=case.same_kernel,
        refusal=refusal if outcome == "refused" else None,
        because=tuple(because(case, outcome)),
        attempts=case.attempts,
        next_steps=(learn,) if outcome != "fused" and (learn := matched.match.to_learn) else (),
        problems=(*log_problems(graph, matched), *_contradictions(case)),
    )


def _outcome(case: Case, log: FusionLog | None) -> Outcome:
    if case.group is not None:
        return "fused"
    if log is None:
        return "no_log" if case.groups_share else "never_tried"
    if not case.attempts:
        tried = case.groups_share and not case.library_call and not _tells_of_all(log)
        return "untold" if tried else "never_tried"
    last = case.attempts[-1]
    if last.what == "refused" or any(_timed_out(attempt, last) for attempt in case.attempts):
        return "refused"
    return "refused_silently" if last.silent else "untold"


def _timed_out(attempt: PairAttempt, last: PairAttempt) -> bool:
    """Whether the pair was timed and found slow: it is weighed again later, and not timed twice."""
    refusal = attempt.refusal
    same = (attempt.first, attempt.second) == (last.first, last.second)
    return same and not last.silent and refusal is not None and refusal.form.startswith(BENCHMARK)


def _tells_of_all(log: FusionLog) -> bool:
    """Whether every pair that was weighed is in the log: what a pair shares is logged for all (torch 2.5)."""
    return any(part.shared for part in log.rounds)


def _contradictions(case: Case) -> Iterator[Problem]:
    """Where log and IR say different things of the pair."""
    facts = case.facts
    pair = f"{facts.first.name} and {facts.second.name}"
    if case.step is not None and case.group is None and case.graph.post:
        yield Problem(f"the log fuses {pair}, and in the IR after fusion they are apart", case.step.span)
    if len(facts.first.nodes) != 1 or len(facts.second.nodes) != 1:
        return
    names = {*facts.first.nodes, *facts.second.nodes}
    for attempt in case.attempts:
        if attempt.refusal is None or {attempt.first, attempt.second} != names:
            continue
        if attempt.refusal.form == "no shared data" and any(row.bytes for row in facts.shared if row.matches):
            yield Problem(f"the log says that {pair} share no data, the IR shows that they do", attempt.span)
        if attempt.refusal.form.startswith("intermediate nodes") and not facts.path:
            yield Problem(f"the log says that nodes run between {pair}, the IR shows none", attempt.span)
