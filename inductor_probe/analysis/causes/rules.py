"""What the causes of a kind of decision mean: which outcome is a missed optimisation, and what would turn it.

A kind has its rows in a module here (`cpp_loops.py`), a line in `kinds.RULES`, and its sentences in
`report/words/causes/`. A kind without rows is shown by its codes and operands.

A row of changes is a cause and what would turn it, surest first:

    "short-inner-range": (
        By("cpp.enable_tiling_heuristics", "False"),   # a setting below torch._inductor.config
        Source("innermost-range"),                                # a change of source
    )

Only what applies may be offered: `applies` looks at the decision and the graph, `value` may depend on
operands, and a setting that already has the offered value is left out by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision
from inductor_probe.model.remark import RemarkKind

Condition = Callable[[Decision, CompiledGraph], bool]


def _always(_: Decision, __: CompiledGraph) -> bool:
    return True


class By(Struct, frozen=True):
    """A setting that turns a decision.

    Attributes:
        setting: its name below `torch._inductor.config`; also the code of its sentence.
        value: to try, as Python writes it, or what makes it of the decision (None: nothing would help).
        present: the operand that holds the present value, where torch compared with it: `reads_limit`.
        is_default: `value` is the default of torch: it is offered only where the dump sets another.
        differs, applies: see `Change`, and above.
    """

    setting: str
    value: str | Callable[[Decision], str | None]
    present: str | None = None
    is_default: bool = False
    differs: bool = False
    applies: Condition = _always


class Source(Struct, frozen=True):
    """A change of the user's source that turns a decision; `code` is that of its sentence."""

    code: str
    differs: bool = False
    applies: Condition = _always


class Rules(Struct, frozen=True):
    """The rows of a kind.

    Attributes:
        kinds: LLVM's word for each outcome, or for a cause where the outcome does not say it.
        changes: what turns a decision, by its cause.
    """

    kinds: Mapping[str, RemarkKind] = field(default_factory=dict)
    changes: Mapping[str, tuple[By | Source, ...]] = field(default_factory=dict)

    def kind_of(self, decision: Decision) -> RemarkKind:
        """Return LLVM's word for a decision; `analysis` where no row says another."""
        return self.kinds.get(decision.cause) or self.kinds.get(decision.outcome, "analysis")
