"""The verb that compiles a program otherwise, once or in many ways, and holds that against how it is."""

from __future__ import annotations

from msgspec import Struct

import inductor_probe as ip
from inductor_probe.cli.alternatives import WithAlternatives
from inductor_probe.cli.parameters import AsIssue, verb
from inductor_probe.cli.screen import (
    OutputFormat,
    give,
    give_issue,
    progress_line,
    relative,
    say,
    say_warning,
    warn,
)
from inductor_probe.errors import ExitCode, StoppedError
from inductor_probe.options.fields import Share
from inductor_probe.options.programs import WhatifOptions


class WhatifShown(Struct, frozen=True):
    """How the answer is shown, and what of it is a failure: `with_details`, `faster_by` in Python.

    Attributes:
        fail_if_faster: Exit status 1 if a candidate takes less time by more than this, its whole interval.
        details: Show overheads, roofline, samples, and all changes, too.
    """

    fail_if_faster: Share | None = None
    details: bool = False
    issue: AsIssue = False


@verb(WhatifOptions, WhatifShown, cls=WithAlternatives)
def whatif(options: WhatifOptions, shown: WhatifShown, *, output_format: OutputFormat) -> int:
    """Would the other decision have been better? Compile both ways, check both, and time them in turns.

    A is SCRIPT as it is, or RUN, made before; B is the same with what --set and --env change, and with
    decisions turned by name (--scalar op0), all of it at once. Or A and B are two runs. This executes the
    code of both on inputs of A. The answer has the decisions that changed, whether B computes the same, and a
    verdict for the whole call and for each kernel that does the same work in both. --env holds while B is
    compiled: both are timed as this command is.

    Exit status 1 if A or B does not compute what the graph does, 2 if nothing could be compared; with --or
    and --try-all 1 only where --fail-if-faster says so.
    """
    with progress_line() as progress:
        answer = ip.whatif(options, progress=progress)
    status = ExitCode.OK
    if shown.issue:
        give_issue(answer, output_format)
        return status if isinstance(answer, ip.Trials) or answer.correct else ExitCode.MISMATCH
    if isinstance(answer, ip.Trials):
        _give_trials(answer.with_details(shown.details), output_format)
    else:
        status = give(answer.with_details(shown.details), output_format, ok=answer.correct)
        if not answer.compared:
            status = ExitCode.FAILED  # the answer says why
            if hint := answer.without_gpu:
                say(hint)
    if (share := shown.fail_if_faster) is not None:
        for line in answer.faster_by(share):
            say_warning(f"over {100 * share:.3g} % is left on the table: {line}")
            status = max(status, ExitCode.MISMATCH)
    return status if isinstance(answer, ip.Trials) else max(status, warn(answer.problems))


def _give_trials(trials: ip.Trials, output_format: OutputFormat) -> None:
    """Show what came of all candidates.

    Raises:
        StoppedError: it was interrupted; with the command that tries the rest.
    """
    if trials.trials:
        give(trials, output_format)
        say(f"all of it is in {relative(trials.path)}")
    if trials.interrupted:
        done = "nothing was known yet"
        if trials.trials:
            done = f"what was known by then is in {relative(trials.path)}"
        raise StoppedError("interrupted", f"{done}; {trials.goes_on} goes on" if trials.goes_on else done)
