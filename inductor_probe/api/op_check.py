"""PyTorch's own samples of operators through inductor, with its decompositions or with a user's."""

from __future__ import annotations

import time

from msgspec.structs import asdict

from inductor_probe.errors import ProbeError
from inductor_probe.model.op_check import FORMS, MODES, OpCheckOutput, OpChecks, OpRow
from inductor_probe.model.output import Output
from inductor_probe.options.kernels import CheckOpOptions
from inductor_probe.options.verb import Progress, takes
from inductor_probe.report.document import Document
from inductor_probe.report.pages.op_check import op_check_page
from inductor_probe.report.shown import Shown
from inductor_probe.report.units import duration


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


@takes(CheckOpOptions)
def check_op(options: CheckOpOptions, progress: Progress) -> OpCheck:
    """Run PyTorch's samples of operators eager and compiled, and compare values, dtypes, sizes and strides.

    Dynamo forgets what it compiled before each sample, and inductor finds no graph in its caches. Values are
    right if they are as near to a float64 run as the dtype's tolerance asks, or twice as far as eager's. The
    module of a decomposition is imported in the processes that run samples.

    Raises:
        ProbeError: a name that is not known, or a decomposition that fits no operator. RunFailedError: torch
            cannot be imported.
    """
    from inductor_probe.op_checks.running import check_operators

    for name, chosen, known in (("--modes", options.modes, MODES), ("--forms", options.forms, FORMS)):
        if unknown := [word for word in chosen if word not in known]:
            raise ProbeError(
                f"{name}: {unknown[0]} is none of {', '.join(known)}",
                "see probe check-op --help",
                code="usage",
            )
    progress.say(f"this takes about {options.budget:.0f} s at most: no sample begins after that")
    begin = time.monotonic()

    def done(number: int, of: int, row: OpRow) -> None:
        left = duration((time.monotonic() - begin) / number * (of - number))
        progress(f"{number} of {of}: {row.case.operator} {row.case.dtype}, about {left} left")

    return OpCheck(**asdict(check_operators(options, done, progress.warn)))
