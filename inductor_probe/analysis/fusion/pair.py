"""What became of two nodes, and why: the log where there is one, and what the IR proves besides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inductor_probe.analysis.fusion.accesses import shared_buffers
from inductor_probe.analysis.fusion.facts import pair_facts
from inductor_probe.analysis.fusion.matching import Matched
from inductor_probe.analysis.fusion.mentions import BENCHMARK, mentions
from inductor_probe.analysis.fusion.overview import group_of, log_origins, log_problems, replayed
from inductor_probe.analysis.fusion.refusals import settings_for, traits_of
from inductor_probe.analysis.fusion.replay import step_that_joins
from inductor_probe.analysis.graph import index_of
from inductor_probe.errors import ProbeError
from inductor_probe.model.debug_dir import CompiledGraph
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
    facts = pair_facts(graph, first, second, log_origins(matched.log))
    one, other = frozenset(facts.first.nodes), frozenset(facts.second.nodes)
    if one & other:
        both = ", ".join(sorted(one & other))
        raise ProbeError(f"{first} and {second} both name {both}", "name two different nodes or buffers")
    steps = replayed(graph, matched.log).steps if matched.log else ()
    pair = PairEvidence(
        graph=graph,
        facts=facts,
        group=group_of(graph, one | other),
        step=step_that_joins(steps, one | other),
        attempts=mentions(matched.log, one, other, index_of(graph).before.producer) if matched.log else (),
    )
    outcome = _outcome(pair, matched.log)
    refusal = pair.refusal if outcome == "refused" else None
    leaves = index_of(graph).before.leaf
    traits = traits_of(leaves[name] for name in one), traits_of(leaves[name] for name in other)
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
        reasons=tuple(_reasons(pair, outcome)),
        attempts=pair.attempts,
        problems=(*log_problems(graph, matched), *_contradictions(pair)),
    )


@dataclass(frozen=True, slots=True)
class PairEvidence:
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
        names = dict.fromkeys(member.nodes)
        for name in member.nodes:
            if top := index.post.top.get(name):
                names.update(dict.fromkeys(index.post.members[top.name]))
        return [index.before.leaf[name] for name in names if name in index.before.leaf]

    @property
    def refusal(self) -> Refusal | None:
        """The last one."""
        return next((attempt.refusal for attempt in reversed(self.attempts) if attempt.refusal), None)


def _outcome(pair: PairEvidence, log: FusionLog | None) -> Outcome:
    if pair.group is not None:
        return "fused"
    if log is None:
        return "no_log" if pair.groups_share else "never_tried"
    if not pair.attempts:
        tried = pair.groups_share and not pair.without_loops and not _tells_of_all(log)
        return "not_logged" if tried else "never_tried"
    last = pair.attempts[-1]
    if last.what == "refused" or any(_timed_out(attempt, last) for attempt in pair.attempts):
        return "refused"
    return "refused_without_reason" if last.without_reason else "not_logged"


def _timed_out(attempt: PairAttempt, last: PairAttempt) -> bool:
    """Whether the pair was timed and found slow: it is tried again later, and not timed twice."""
    refusal = attempt.refusal
    same = (attempt.first, attempt.second) == (last.first, last.second)
    return same and not last.without_reason and refusal is not None and refusal.form.startswith(BENCHMARK)


def _tells_of_all(log: FusionLog) -> bool:
    """Whether every pair that was tried is in the log: what a pair shares is logged for all (torch 2.5)."""
    return any(part.shared for part in log.rounds)


def _contradictions(pair: PairEvidence) -> Iterator[Problem]:
    """Where log and IR say different things of the pair."""
    facts = pair.facts
    names_text = f"{facts.first.name} and {facts.second.name}"
    if pair.step is not None and pair.group is None and pair.graph.post:
        yield Problem(f"the log fuses {names_text}, and the IR after fusion does not", pair.step.span)
    if len(facts.first.nodes) != 1 or len(facts.second.nodes) != 1:
        return
    names = {*facts.first.nodes, *facts.second.nodes}
    for attempt in pair.attempts:
        if attempt.refusal is None or {attempt.first, attempt.second} != names:
            continue
        if attempt.refusal.form == "no shared data" and any(row.bytes for row in facts.shared if row.matches):
            yield Problem(
                f"the log says that {names_text} share no data, the IR shows that they do", attempt.span
            )
        if attempt.refusal.form.startswith("intermediate nodes") and not facts.path:
            yield Problem(
                f"the log says that nodes run between {names_text}, the IR shows none", attempt.span
            )


def _reasons(pair: PairEvidence, outcome: Outcome) -> Iterator[Proof]:
    """Yield what is concluded of the pair beside its outcome."""
    if pair.group is not None:
        yield from _fused(pair, pair.group)
        return
    facts, without_loops = pair.facts, pair.without_loops
    yield from _of_outcome(pair, outcome)
    if without_loops is not None:
        code: FusionCode = "library-call" if without_loops.kinds == ("extern",) else "no-kernel-node"
        yield read(code, node=without_loops.name)
    elif outcome in ("refused_without_reason", "not_logged", "no_log"):
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
    elif pair.refusal is not None and pair.refusal.form.startswith("intermediate") and facts.path:
        yield read("nodes-between")
    if pair.same_kernel:
        yield read("same-function", kernel=pair.same_kernel)


def _fused(pair: PairEvidence, group: FusionGroup) -> Iterator[Proof]:
    if group.kind == "OuterLoopFusedSchedulerNode":
        yield read("outer-loops-fused")
    elif group.kind == "ForeachKernelSchedulerNode":
        yield read("combo-kernel")
    names = {*pair.facts.first.nodes, *pair.facts.second.nodes}
    before = index_of(pair.graph).before.members
    if any(names <= {*before[top.name]} for top in pair.graph.pre if top.children):
        yield read("grouped-before-fusion")


def _of_outcome(pair: PairEvidence, outcome: Outcome) -> Iterator[Proof]:
    if outcome == "refused_without_reason":
        yield inferred("backend-logs-nothing")
    elif outcome == "not_logged":
        yield read("outcome-not-logged" if pair.attempts else "pair-not-logged")
    elif outcome == "never_tried" and not pair.groups_share:
        yield read("no-common-buffer")
    elif outcome == "never_tried" and pair.without_loops is None:
        yield inferred("common-buffer-not-tried")
