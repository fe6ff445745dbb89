"""PyTorch's own samples of operators through inductor, with its decompositions or with a user's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from inductor_probe.model.op_check import FORMS, MODES, Form, Mode, OpCheckOutput, OpChecks
from inductor_probe.model.output import Output
from inductor_probe.report.document import Document
from inductor_probe.report.pages.op_check import op_check_page
from inductor_probe.report.shown import Shown

if TYPE_CHECKING:
    from inductor_probe.executors.local import ExecutorName
    from inductor_probe.op_checks.running import Progress


class OpCheck(Shown, OpChecks, frozen=True):
    """What came of samples; shows itself."""

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return OpCheckOutput(checks=self)

    @property
    def document(self) -> Document:
        """Rows and failures."""
        return op_check_page(self)


def check_op(
    *patterns: str,
    decomp: str | None = None,
    dtypes: Sequence[str] = (),
    modes: Sequence[Mode] = MODES[:3],
    forms: Sequence[Form] = FORMS[:2],
    samples: int = 8,
    device: str = "cpu",
    jobs: int | None = None,
    budget: float = 600.0,
    out: Path | str = Path(".probe/check-op"),
    executor: ExecutorName = "local",
    progress: Progress | None = None,
    warn: Callable[[str], None] = lambda text: None,
) -> OpCheck:
    """Run PyTorch's samples of operators eager and compiled, and compare values, dtypes, sizes and strides.

    Dynamo forgets what it compiled before each sample, and inductor finds no graph in its caches. Values are
    right if they are as near to a float64 run as the dtype's tolerance asks, or twice as far as eager's.

    Args:
        patterns: names of operators of `torch.testing`'s `op_db`, whole, in part, or as globs: `flip`,
            `interpolate`, `*grid_sampl*`.
        decomp: a decomposition to try beside torch's own: `MODULE:FUNCTION` or `FILE.py:FUNCTION`; with the
            overload in front where its parameters do not say which: `aten.flip.default=my.py:flip`. Its
            module is imported in the processes that run samples.
        dtypes: float32 and uint8 if left out, as far as an operator has samples of them; `all`.
        modes: static or dynamic sizes, and the same with a backward pass. forms: see `model.op_check.OpCase`.
        samples: at most of each operator, dtype, mode and form. jobs: processes at once; one a core if None.
        budget: seconds of running samples, after which no further one begins.
        out: where programs are written that show a failure alone.
        executor: `local` runs samples here, `ray` on the nodes of a Ray cluster, a process a core of each.
        progress: is called after each case with the number done, of how many, and its row. warn: with what
            happens to nodes.

    Raises:
        ProbeError: a name that is not known, or a decomposition that fits no operator. RunFailedError: torch
            cannot be imported.
    """
    from inductor_probe.op_checks.running import OpPlan, check_operators

    overload, _, place = (decomp or "").rpartition("=")
    plan = OpPlan(
        patterns=tuple(patterns),
        dtypes=tuple(dtypes),
        modes=tuple(modes),
        forms=tuple(forms),
        samples=samples,
        device=device,
        decomposition=place or None,
        operators=(overload,) if overload else (),
        jobs=jobs,
        budget=budget,
        out=Path(out),
        executor=executor,
    )
    checks = check_operators(plan, progress, warn)
    return OpCheck(**asdict(checks))
