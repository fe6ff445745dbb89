"""The conclusion about a pair in words, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inductor_probe.analysis.fusion.accesses import shared_buffers
from inductor_probe.analysis.graph import index_of
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fusion import FusionGroup, FusionStep, Outcome, PairAttempt, PairFacts, Side


@dataclass(frozen=True, slots=True)
class Case:
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
    def library_call(self) -> Side | None:
        """The side that no generated loop runs."""
        sides = (self.facts.first, self.facts.second)
        return next((side for side in sides if side.kind in ("extern", "nop")), None)

    @property
    def groups_share(self) -> bool:
        """Whether the nodes after fusion that hold the two use a common buffer: only then torch tries."""
        if self.facts.shared:
            return True
        first, second = (self._held_with(side) for side in (self.facts.first, self.facts.second))
        leaves = index_of(self.graph).before.leaf
        return bool(shared_buffers([leaves[name] for name in first], [leaves[name] for name in second], {}))

    def _held_with(self, side: Side) -> list[str]:
        index = index_of(self.graph)
        names = dict.fromkeys(side.nodes)
        for name in side.nodes:
            if top := index.post.top.get(name):
                names.update(dict.fromkeys(index.post.members[top.name]))
        return [name for name in names if name in index.before.leaf]

    @property
    def reason(self) -> str:
        """The form of the last refusal."""
        last = next((attempt.refusal for attempt in reversed(self.attempts) if attempt.refusal), None)
        return last.form if last else ""


def because(case: Case, outcome: Outcome) -> Iterator[str]:
    """Yield what is concluded of the pair."""
    if case.group is not None:
        yield from _fused(case, case.group)
        return
    facts, library = case.facts, case.library_call
    yield from _told(case, outcome)
    if library is not None:
        what = (
            "is a library call" if library.kind == "extern" else "makes no kernel (a concatenation or a view)"
        )
        yield f"{library.name} {what}: there is no generated loop that another could join."
    elif outcome in ("refused_silently", "untold", "no_log"):
        if not facts.shared and case.groups_share:
            yield "Alone they use no buffer in common; the fused nodes that hold them do."
        yield from _hints(facts)
    elif case.reason.startswith("intermediate") and facts.path:
        yield _between(facts)
    if case.same_kernel:
        yield f"Both run in {case.same_kernel} all the same: a C++ function may have several loop nests."


def _fused(case: Case, group: FusionGroup) -> Iterator[str]:
    if group.kind == "OuterLoopFusedSchedulerNode":
        yield "The C++ backend joined their outer loops; inside, each part keeps loops of its own."
    elif group.kind == "ForeachKernelSchedulerNode":
        yield "They are parts of one foreach or combo kernel: one launch, a part of the grid each."
    names = {*case.facts.first.nodes, *case.facts.second.nodes}
    before = index_of(case.graph).before.members
    if any(names <= {*before[top.name]} for top in case.graph.pre if top.children):
        yield "They were together before the first round."


def _told(case: Case, outcome: Outcome) -> Iterator[str]:
    if outcome == "refused_silently":
        yield (
            "Torch weighed the pair in a round that found nothing to fuse, and logged no reason: "
            "a backend refuses without a word."
        )
    elif outcome == "untold" and case.attempts:
        yield "Torch weighed the pair, and the log shows neither a refusal nor a fusion."
    elif outcome == "untold":
        yield "The log does not mention the pair: this torch logs nothing when a backend refuses."
    elif outcome == "never_tried" and not case.groups_share:
        yield "They use no buffer in common, and torch tries only pairs that do."
    elif outcome == "never_tried" and case.library_call is None:
        yield (
            "They use a common buffer, and yet the log does not mention them: "
            "torch tries each node with a limited number of others that use its buffer."
        )


def _hints(facts: PairFacts) -> Iterator[str]:
    """What in the IR may keep the two apart."""
    if facts.path:
        yield _between(facts)
    if facts.loops_fit is not True:
        yield f"{facts.loops[:1].upper()}{facts.loops[1:]}."
    if facts.shared and not any(row.matches for row in facts.shared):
        yield "No access is the same in both (buffer, index and ranges): torch sees no traffic saved."
    if facts.first.device != facts.second.device:
        yield f"They run on different devices: {facts.first.device} and {facts.second.device}."


def _between(facts: PairFacts) -> str:
    between = facts.path[2:-1:2]
    return f"{', '.join(between)} must run between them: {' -> '.join(facts.path)}."
