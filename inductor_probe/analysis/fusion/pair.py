"""What became of two nodes, and why: the log where there is one, and what the IR proves besides."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from inductor_probe.analysis.fusion.facts import pair_facts, shared_buffers
from inductor_probe.analysis.fusion.log import BENCHMARK, Matched, mentions, replay
from inductor_probe.analysis.fusion.overview import group_of, log_problems
from inductor_probe.analysis.fusion.recorded import decision_of_pair
from inductor_probe.analysis.fusion.refusals import settings_for, traits_of
from inductor_probe.analysis.graph import index_of
from inductor_probe.errors import ProbeError
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision
from inductor_probe.model.fusion import (
    FusionDecision,
    FusionGroup,
    FusionStep,
    Outcome,
    PairAttempt,
    PairFacts,
    PairMember,
    Refusal,
)
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.logs import FusionLog
from inductor_probe.model.proof import FusionCode, Proof, inferred, read
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
    log = matched.log
    candidates = next((row.candidates for row in log.rounds if row.candidates), ()) if log else ()
    origins = {member.node: member.origins for candidate in candidates for member in candidate.members}
    facts = pair_facts(graph, first, second, origins)
    one, other = frozenset(facts.first.nodes), frozenset(facts.second.nodes)
    if one & other:
        both = ", ".join(sorted(one & other))
        raise ProbeError(f"{first} and {second} both name {both}", "name two different nodes or buffers")
    before = index_of(graph).before
    steps = replay(log, graph).steps if log else ()
    group = group_of(graph, one | other)
    pair = _PairEvidence(
        graph=graph,
        facts=facts,
        group=group,
        step=next((step for step in steps if (one | other).issubset(step.nodes)), None),
        attempts=mentions(log, one, other, before.producer) if log else (),
    )
    recorded = graph.decisions
    decision = decision_of_pair(recorded.decisions, one, other) if recorded else None
    outcome = _recorded_outcome(pair, decision) if decision else _outcome(pair, log)
    refusal = pair.refusal if outcome == "refused" else None
    traits = traits_of(before.leaf[name] for name in one), traits_of(before.leaf[name] for name in other)
    return FusionDecision(
        graph=graph.name,
        outcome=outcome,
        facts=facts,
        log=matched.match,
        group=pair.group,
        step=pair.step,
        same_kernel=pair.same_kernel,
        refusal=refusal,
        settings=settings_for(refusal.form, [traits], graph.runnable, facts.loops_fit) if refusal else (),
        reasons=tuple(_reasons(pair, outcome) if group or not decision else _same_function(pair)),
        attempts=pair.attempts,
        problems=(*log_problems(graph, matched), *_contradictions(pair)),
    )


class _PairEvidence(Struct, frozen=True):
    """All that is known of a pair: the IR's facts, the node that holds both, and what the log says."""

    graph: CompiledGraph
    facts: PairFacts
    group: FusionGroup | None
    step: FusionStep | None
    attempts: tuple[PairAttempt, ...]

    @property
    def same_kernel(self) -> str | None:
        """The kernel that runs both although they are not fused."""
        kernel = self.facts.first.kernel
        return kernel if kernel and self.group is None and kernel == self.facts.second.kernel else None

    @property
    def without_loops(self) -> PairMember | None:
        """The node that no generated loop runs."""
        members = (self.facts.first, self.facts.second)
        return next((member for member in members if member.kinds in (("extern",), ("nop",))), None)

    @property
    def groups_share(self) -> bool:
        """Whether the nodes after fusion that hold the two use a common buffer: only then torch tries."""
        if self.facts.shared:
            return True
        first, second = (self._fused_with(member) for member in (self.facts.first, self.facts.second))
        return bool(shared_buffers(first, second, {}))

    def _fused_with(self, member: PairMember) -> list[SchedulerNode]:
        index = index_of(self.graph)
        tops = (index.post.top.get(name) for name in member.nodes)
        fused = (name for top in tops if top for name in index.post.members[top.name])
        names = dict.fromkeys((*member.nodes, *fused))
        return [index.before.leaf[name] for name in names if name in index.before.leaf]

    @property
    def refusal(self) -> Refusal | None:
        """The last one."""
        return next((attempt.refusal for attempt in reversed(self.attempts) if attempt.refusal), None)


def _outcome(pair: _PairEvidence, log: FusionLog | None) -> Outcome:
    if pair.group is not None:
        return "fused"
    if log is None:
        return "no_log" if pair.groups_share else "never_tried"
    if not pair.attempts:
        # What a pair shares is logged of every pair that is tried (torch 2.5).
        logs_every_pair = any(row.shared for row in log.rounds)
        tried = pair.groups_share and not pair.without_loops and not logs_every_pair
        return "not_logged" if tried else "never_tried"
    last = pair.attempts[-1]
    if last.what == "refused" or any(_timed_out(attempt, last) for attempt in pair.attempts):
        return "refused"
    return "refused_without_reason" if last.without_reason else "not_logged"


def _recorded_outcome(pair: _PairEvidence, decision: Decision) -> Outcome:
    if pair.group is not None:
        return "fused"  # in the IR; its code may have a loop nest for each (`undone`)
    return "never_tried" if decision.outcome == "not-tried" else "refused"


def _timed_out(attempt: PairAttempt, last: PairAttempt) -> bool:
    """Whether the pair was timed and found slow: it is tried again later, and not timed twice."""
    refusal = attempt.refusal
    same = (attempt.first, attempt.second) == (last.first, last.second)
    return same and not last.without_reason and refusal is not None and refusal.form.startswith(BENCHMARK)


def _contradictions(pair: _PairEvidence) -> Iterator[Problem]:
    """Where log and IR say different things of the pair."""
    facts = pair.facts
    both = f"{facts.first.name} and {facts.second.name}"
    if pair.step is not None and pair.group is None and pair.graph.post:
        yield Problem(f"the log fuses {both}, but the IR after fusion does not", pair.step.span)
    if len(facts.first.nodes) != 1 or len(facts.second.nodes) != 1:
        return
    shares = any(row.bytes for row in facts.shared if row.matches)
    for attempt in pair.attempts:
        form = attempt.refusal.form if attempt.refusal else ""
        if {attempt.first, attempt.second} != {*facts.first.nodes, *facts.second.nodes}:
            continue
        if form == "no shared data" and shares:
            yield Problem(
                f"the log says that {both} share no data, but the IR shows that they do", attempt.span
            )
        if form.startswith("intermediate nodes") and not facts.path:
            yield Problem(f"the log says that nodes run between {both}, but the IR shows none", attempt.span)


def _reasons(pair: _PairEvidence, outcome: Outcome) -> Iterator[Proof]:
    """Yield what is concluded of the pair beside its outcome."""
    facts, group, without_loops = pair.facts, pair.group, pair.without_loops
    if group is not None:
        if group.kind == "OuterLoopFusedSchedulerNode":
            yield read("outer-loops-fused")
        elif group.kind == "ForeachKernelSchedulerNode":
            yield read("combo-kernel")
        names = {*facts.first.nodes, *facts.second.nodes}
        before = index_of(pair.graph).before.members
        if any(names <= {*before[top.name]} for top in pair.graph.pre if top.children):
            yield read("grouped-before-fusion")
        return
    if outcome == "refused_without_reason":
        yield inferred("backend-logs-nothing")
    elif outcome == "not_logged":
        yield read("outcome-not-logged" if pair.attempts else "pair-not-logged")
    elif outcome == "never_tried" and not pair.groups_share:
        yield read("no-common-buffer")
    elif outcome == "never_tried" and without_loops is None:
        yield inferred("common-buffer-not-tried")
    if without_loops is not None:
        code: FusionCode = "library-call" if without_loops.kinds == ("extern",) else "no-kernel-node"
        yield read(code, node=without_loops.name)
    elif outcome in ("refused_without_reason", "not_logged", "no_log"):
        yield from _obstacles(pair)
    elif pair.refusal is not None and pair.refusal.form.startswith("intermediate") and facts.path:
        yield read("nodes-between")
    yield from _same_function(pair)


def _same_function(pair: _PairEvidence) -> Iterator[Proof]:
    if pair.same_kernel:
        yield read("same-function", kernel=pair.same_kernel)


def _obstacles(pair: _PairEvidence) -> Iterator[Proof]:
    facts = pair.facts
    if not facts.shared and pair.groups_share:
        yield read("fused-nodes-share")
    if facts.path:
        yield read("nodes-between")
    if facts.loops_fit is not True:
        yield inferred("loops-do-not-fit")
    if facts.shared and not any(row.matches for row in facts.shared):
        yield read("no-equal-access")
    if facts.first.device != facts.second.device:
        yield read("devices-differ")
