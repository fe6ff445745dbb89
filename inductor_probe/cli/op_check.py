"""The verb that runs PyTorch's own samples of operators through inductor."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

import inductor_probe as ip
from inductor_probe.cli.parameters import IN_GITHUB, CommaList, command, seconds, shared_option
from inductor_probe.cli.screen import OutputFormat, give, progress_line, say, say_warning
from inductor_probe.errors import ExitCode
from inductor_probe.model.op_check import FORMS, MODES, Form, Mode, OpRow
from inductor_probe.report.units import duration

if TYPE_CHECKING:
    from inductor_probe.executors.local import ExecutorName

_BUDGET = "10m"


@command(
    click.argument("patterns", nargs=-1, required=True, metavar="OPERATOR..."),
    click.option(
        "--decomp", metavar="[OVERLOAD=]MODULE:FUNCTION",
        help="A decomposition to try beside torch's own: my.py:flip, aten.flip.default=my.py:flip.",
    ),
    click.option(
        "--dtype", "dtypes", multiple=True, metavar="DTYPE", help="float32 and uint8 if left out; all."
    ),
    click.option(
        "--modes", type=CommaList(MODES), default=",".join(MODES[:3]), metavar="MODES",
        help=f"{', '.join(MODES)}.  [{','.join(MODES[:3])}]",
    ),
    click.option(
        "--forms", type=CommaList(FORMS), default=",".join(FORMS[:2]), metavar="FORMS",
        help=f"Samples {', '.join(FORMS)}.  [{','.join(FORMS[:2])}]",
    ),
    click.option(
        "--vary", is_flag=True, help="Further samples: sizes around vectors, other memory and values."
    ),
    click.option(
        "--samples", type=click.IntRange(min=1), default=8, metavar="N", help="At most of each row.  [8]"
    ),
    click.option(
        "--budget", metavar="TIME", default=_BUDGET, callback=lambda ctx, parameter, text: seconds(text),
        help=f"Running samples: none begins after it: 30s, 10m.  [{_BUDGET}]",
    ),
    click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes at once.  [one a core]"),
    click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", help="Of samples.  [cpu]"),
    shared_option("--executor"),
    click.option(
        "--out", type=click.Path(file_okay=False, path_type=Path), default=Path(".probe/check-op"),
        help="Folder for scripts that show a failure.  [.probe/check-op]",
    ),
    IN_GITHUB,
)  # fmt: skip
def check_op(
    patterns: tuple[str, ...],
    *,
    decomp: str | None,
    dtypes: tuple[str, ...],
    modes: tuple[Mode, ...],
    forms: tuple[Form, ...],
    vary: bool,
    samples: int,
    budget: float,
    jobs: int | None,
    device: str,
    executor: ExecutorName,
    out: Path,
    output_format: OutputFormat,
) -> int:
    """Run PyTorch's own samples of operators eager and compiled, and compare.

    OPERATOR is a name of torch.testing's operator database, whole, in part or as a glob: flip, interpolate,
    '*grid_sampl*'. Values are compared with a float64 run; dtypes, sizes, strides and gradients with eager.
    Each failure is shown with its smallest sample, and written as a script that runs alone. --decomp imports
    and runs MODULE. Exit status 1 if a sample fails.
    """
    for name, chosen, known in (("--modes", modes, MODES), ("--forms", forms, FORMS)):
        if unknown := [word for word in chosen if word not in known]:
            raise click.UsageError(f"{name}: {unknown[0]} is none of {', '.join(known)}")
    if vary and "varied" not in forms:
        forms = (*forms, "varied")
    say(f"this takes about {budget:.0f} s at most: no sample begins after that")
    begin = time.monotonic()
    with progress_line() as say_progress:

        def progress(done: int, of: int, row: OpRow) -> None:
            if say_progress:
                left = (time.monotonic() - begin) / done * (of - done)
                say_progress(
                    f"{done} of {of}: {row.case.operator} {row.case.dtype}, about {duration(left)} left"
                )

        checked = ip.check_op(
            *patterns, decomp=decomp, dtypes=dtypes, modes=modes, forms=forms, samples=samples, device=device,
            jobs=jobs, budget=budget, out=out, executor=executor, progress=progress, warn=say_warning,
        )  # fmt: skip
    status = give(checked, output_format, ok=not checked.failures)
    if not any(row.samples for row in checked.rows) and any(row.not_run for row in checked.rows):
        status = ExitCode.FAILED  # the budget ended before anything was compared
    return ExitCode.INTERRUPTED if checked.interrupted else status
