"""Why something of a graph is as it is: a decision, whom it concerns, what is at stake, what would turn it.

A `Cause` is made by `analysis/causes` of a recorded `Decision` and the graph, or of what the dump proves
where nothing was recorded. It holds no sentence (`catalogue/`).
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from inductor_probe.model.assembly import KernelRemarks
from inductor_probe.model.codec import written
from inductor_probe.model.decision import Decision, DecisionKind, Operand, Outcome
from inductor_probe.model.output import Output
from inductor_probe.model.record import Compared
from inductor_probe.model.remark import Knowledge, Remark, RemarkKind, Subject
from inductor_probe.model.setting import Setting
from inductor_probe.model.span import Problem, SourceLine, Span

TURN = "turn"
"""Code of the change that turns one decision by name; its operand `option` is `--scalar op0`."""


class Change(Struct, frozen=True):
    """What would turn a decision: a value of a setting; where `setting` is None, a change of source, or that
    it is turned by name (`TURN`).

    Attributes:
        code: what it does; the entry of the cause in `catalogue/` has its sentence.
        operands: named values of the sentence, beside those of the decision.
        differs: whether it changes what is computed, by more than rounding: other random numbers, another
            value of a parameter. Of others nothing is claimed: `probe whatif` compares their results.
    """

    code: str
    setting: Setting | None = None
    operands: tuple[tuple[str, Operand], ...] = ()
    differs: bool = False


class Cause(Compared, frozen=True):
    """A decision about something of a graph, and why it fell so.

    Attributes:
        kind: LLVM's word for the outcome: an optimisation that was done (`passed`), one that was not
            (`missed`), or what helps to judge (`analysis`).
        subjects: what it is about. Of a pair there are two: nodes or fused nodes.
        knowledge: `recorded` while torch decided; else `read` in the dump, or `inferred` from it.
        decision: None where none was recorded or read: then `remark` is what the dump proves.
        cost: bytes that the nodes read and write, or that a pair shares; None where not known.
        times: seconds that the loop nests of the subjects take in a call, or else their kernels, where the
            graph was timed.
        moved: bytes that the nodes read and write together, where `cost` is a part of those and `times` are
            known: of a decision about one buffer, or about what a pair shares.
        direct: whether it is about the subject itself that was asked for, not about what belongs to it; of a
            kernel, about its loops, or about nothing else but its nodes. True where nothing was asked for.
        kernels: that run the subjects. nest: which loop nest of the kernel it is, from 1; None where the
            decision is about all of it, or the nest is not known.
        nodes: unfused nodes that it is about. counted: those that `cost` counts: of the results of a library
            call, which are nodes of their own, the call alone. fx: what the nodes compute.
        sources: lines of the user's.
        evidence: lines of the dump: of the nodes, and of their generated code.
        changes: what would turn it, surest first; none where nothing that applies is known.
        proved_kind: the kind of decision that `remark` proves something of.
    """

    kind: RemarkKind
    subjects: tuple[Subject, ...]
    knowledge: Knowledge
    decision: Decision | None = None
    remark: Remark | None = None
    cost: int | None = None
    times: tuple[tuple[str, float], ...] = ()
    moved: int | None = None
    direct: bool = True
    kernels: tuple[str, ...] = ()
    nest: int | None = None
    nodes: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    fx: tuple[str, ...] = ()
    sources: tuple[SourceLine, ...] = ()
    evidence: tuple[Span, ...] = ()
    changes: tuple[Change, ...] = ()
    proved_kind: DecisionKind | None = None

    @property
    def topic(self) -> DecisionKind | None:
        """What was decided, by its kind."""
        return self.decision.kind if self.decision else self.proved_kind

    @property
    @written
    def seconds(self) -> float | None:
        """What `times` add up to; None where nothing was timed."""
        return sum(seconds for _, seconds in self.times) if self.times else None

    @property
    def stake(self) -> float:
        """The seconds that it is about, in proportion to its bytes; 0 where nothing was timed."""
        if self.moved and self.cost is not None:
            return (self.seconds or 0.0) * min(1.0, self.cost / self.moved)
        return self.seconds or 0.0

    @property
    def outcome(self) -> Outcome | None:
        """What torch chose."""
        return self.decision.outcome if self.decision else None


class GraphCauses(Struct, frozen=True):
    """What was decided about a subject in a graph, or about all of it.

    Attributes:
        graph: its name. asked: the subjects, with their complete names; empty for the ledger of the graph.
        recorded: kinds of decisions that this dump records. looked_for: those that were asked for.
        causes: of what torch finally did: missed ones first, then by what is at stake.
        tried: decisions that torch tried and did not keep; they are not among `causes`.
        failed: recorders that failed while the run was dumped, so that decisions may be missing.
        compile_failed: why the compile of the graph failed, if it did: nothing was decided after that.
        compiler: what the C++ compiler said of the loops of the kernels concerned, once `probe asm` asked it.
        became: of an operator that no FX node calls: the FX nodes that took its place, or that come from the
            lines which call it. gone: of those, the ones that the FX graph does not have any more.
    """

    graph: str
    asked: tuple[Subject, ...]
    recorded: tuple[DecisionKind, ...]
    looked_for: tuple[DecisionKind, ...]
    causes: tuple[Cause, ...]
    tried: int = 0
    failed: tuple[Remark, ...] = ()
    compile_failed: tuple[Remark, ...] = ()
    compiler: tuple[KernelRemarks, ...] = ()
    problems: tuple[Problem, ...] = ()
    became: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


class WhyOutput(Output, frozen=True, kw_only=True):
    """Why the compiler decided as it did: an answer for each graph that has the subject."""

    verb: Literal["why"] = "why"
    rows: tuple[GraphCauses, ...]
