"""The verb that runs PyTorch's own samples of operators through inductor."""

from __future__ import annotations

import inductor_probe as ip
from inductor_probe.cli.parameters import verb
from inductor_probe.cli.screen import OutputFormat, give, progress_line
from inductor_probe.errors import ExitCode
from inductor_probe.options.kernels import CheckOpOptions


@verb(CheckOpOptions, github=True)
def check_op(options: CheckOpOptions, *, output_format: OutputFormat) -> int:
    """Run PyTorch's own samples of operators eager and compiled, and compare.

    OPERATOR is a name of torch.testing's operator database, whole, in part or as a glob: flip, interpolate,
    '*grid_sampl*'. Values are compared with a float64 run; dtypes, sizes, strides and gradients with eager.
    Each failure is shown with its smallest sample, and written as a script that runs alone. --decomp imports
    and runs MODULE. Exit status 1 if a sample fails.
    """
    with progress_line() as progress:
        checked = ip.check_op(options, progress=progress)
    status = give(checked, output_format, ok=not checked.failures)
    if not any(row.samples for row in checked.rows) and any(row.not_run for row in checked.rows):
        status = ExitCode.FAILED  # the budget ended before anything was compared
    return ExitCode.INTERRUPTED if checked.interrupted else status
