"""Triton kernels that were run by triton's interpreter on the CPU, and held against the graph in eager."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.output import Output
from inductor_probe.model.remark import Remark, RemarkCode
from inductor_probe.model.timing import Variant

KernelVerdict: TypeAlias = Literal["right", "wrong", "not-judged", "not-launched", "not-decided"]
"""`not-judged`: it cannot be interpreted, or was stopped. `not-decided`: the call is wrong, or did not run to
its end, and it is not known whose fault that is."""


class InterpretedKernel(Struct, frozen=True):
    """A kernel as inductor generated it.

    Attributes:
        launches, programs: how many ran, of all runs of the call. seconds: that they took in the interpreter,
            which says nothing of a GPU.
        blocks: the config that was run, `XBLOCK=1024`: of those that inductor tries, the one with the fewest
            programs.
    """

    name: str
    verdict: KernelVerdict
    launches: int
    programs: int
    seconds: float
    blocks: tuple[tuple[str, int], ...]


class KernelCheck(Struct, frozen=True):
    """What came of the kernels of a graph and of their variants.

    Attributes:
        graph: its name. path: the bench file that was run.
        torch, triton: versions of what ran it.
        values: of the inputs: `random`, `zeros`, `sequential`, `real`.
        rounds: sets of inputs that it ran on; 0 where the call did not run to its end.
        call: the wrapper as inductor generated it, against the graph in float64.
        kernels: those that it launches. variants: of them and of the wrapper, as they are checked by
            `bench-kernel`; with KERNEL its own alone.
        relaid: operators whose results the CPU lays out otherwise than a GPU; they were laid out again.
        by_formula: fused attention, which the CPU lacks, computed by its formula. drawn: other operators that
            it lacks, whose results are drawn numbers: the same in the call and in the graph.
        warnings: what else has to be known.
    """

    graph: str
    path: Path
    torch: str
    triton: str
    values: str
    rounds: int
    call: Variant
    kernels: tuple[InterpretedKernel, ...]
    variants: tuple[Variant, ...] = ()
    relaid: tuple[str, ...] = ()
    by_formula: tuple[str, ...] = ()
    drawn: tuple[str, ...] = ()
    warnings: tuple[Remark, ...] = ()

    @property
    def right(self) -> bool:
        """Whether everything that was to be checked was shown to be right."""
        return self.call.correct and self.compared and all(variant.correct for variant in self.variants)

    @property
    def compared(self) -> bool:
        """Whether the call was compared with the graph: else variants agree with it, and no more is known."""
        return not any(remark.code in NOT_COMPARED for remark in self.call.remarks)


NOT_JUDGED: tuple[RemarkCode, ...] = ("not-interpreted", "not-finished", "call-not-run")
"""Remarks that say why a variant was not run to its end."""


NOT_COMPARED: tuple[RemarkCode, ...] = (
    "no-reference", "reference-fails", "other-random-numbers", "constant-missing",
)  # fmt: skip
"""Remarks that say why a call that ran was compared with nothing."""


def is_interpreted(variant: Variant) -> bool:
    """Tell whether a variant could be run at all: else it is not called wrong."""
    return not any(remark.code in NOT_JUDGED for remark in variant.remarks)


class CheckKernelOutput(Output, frozen=True, kw_only=True):
    """Whether the Triton kernels of a graph are right, by triton's interpreter: nothing is timed.

    Attributes:
        summary: what is right and wrong, in words.
    """

    verb: Literal["check-kernel"] = "check-kernel"
    check: KernelCheck
    summary: str
