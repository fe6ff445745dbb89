"""The verbs about a whole program on one screen: what to do about it, and whether it is right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.cli.parameters import AsIssue, Everything, verb
from inductor_probe.cli.screen import (
    OutputFormat,
    give,
    give_issue,
    give_rows,
    progress_line,
    relative,
    require_new,
    say,
    warn,
    write_output,
)
from inductor_probe.errors import ExitCode
from inductor_probe.options.fields import Typed
from inductor_probe.options.programs import (
    AccuracyOptions,
    BisectOptions,
    CompileTimeOptions,
    ExpectOptions,
    MemoryOptions,
    OverviewOptions,
    ReduceOptions,
)


@verb(OverviewOptions)
def overview(options: OverviewOptions, *, output_format: OutputFormat) -> int:
    """What to do about a program: its call against eager, where the time goes, what was missed, what to try.

    SCRIPT is dumped first; of a RUN or GRAPH what was measured before is taken as it is, the latest run if
    left out. What is measured: the script runs again up to its call, and copies of the code that inductor
    generated read clocks. Where nothing can be run, parts are ranked by what bounds their time, and the first
    line says so.

    Exit status 1 if the compiled call gives other values than eager.
    """
    with progress_line() as progress:
        answer = ip.overview(options, progress=progress)
    status = give(answer, output_format, ok=not answer.record.wrong)
    return max(status, warn(answer.record.problems))


class CompileTimeShown(Everything, frozen=True, kw_only=True):
    """How the answer is shown, and what is written of it: `page` and `chrome` in Python.

    Attributes:
        guards: Show what has to hold for each function to be called.
        chrome: Write all regions as a trace for Perfetto.
        force: Overwrite FILE.
    """

    guards: bool = False
    chrome: Annotated[Path | None, Typed("file", "FILE")] = None
    force: bool = False


@verb(CompileTimeOptions, CompileTimeShown)
def compile_time(options: CompileTimeOptions, shown: CompileTimeShown, *, output_format: OutputFormat) -> int:
    """Where the time of compiling goes: phases, compiles, torch's regions, and each run of a compiler.

    SCRIPT is run twice without a dump: with empty caches, then with full ones. Of a RUN, the latest if
    left out, torch's log of the dump is read.
    """
    if shown.chrome is not None:
        require_new(shown.chrome, force=shown.force, option="--chrome")
    with progress_line() as progress:
        answer = ip.compile_time(options, progress=progress)
    page = answer.page(everything=shown.everything, guards=shown.guards)
    status = give_rows(answer, output_format, document=page)
    if shown.chrome is not None:
        write_output(shown.chrome, answer.chrome, force=shown.force)
        say(f"wrote {relative(shown.chrome.absolute())}: open it in https://ui.perfetto.dev")
    return status


@verb(MemoryOptions, Everything)
def memory(options: MemoryOptions, shown: Everything, *, output_format: OutputFormat) -> int:
    """How much memory does a compiled call take, against eager, and which buffers live at its peak?

    SCRIPT is dumped first; RUN and GRAPH are there already, the latest run if left out. What the wrapper
    allocates and frees is read, a buffer a row. Then the script runs again up to its call: torch's allocator
    says what that takes at its peak, compiled and in eager.
    """
    with progress_line() as progress:
        answer = ip.memory(options, progress=progress)
    return give(replace(answer, everything=shown.everything), output_format)


class AccuracyShown(Struct, frozen=True):
    """How the answer is shown: `issue_of` in Python."""

    issue: AsIssue = False


@verb(AccuracyOptions, AccuracyShown, github=True)
def accuracy(options: AccuracyOptions, shown: AccuracyShown, *, output_format: OutputFormat) -> int:
    """Is what a compiled program computes right, and if not: which operator, which line, whose fault?

    SCRIPT is dumped first. The script of a run is run again, the latest one if left out: each call of what it
    compiles is made eagerly, in float64, and compiled. What differs by more than rounding is followed down:
    through decompositions, passes, each launch and its loop body, to the operator that is wrong first, with
    its values, and the layer of the compiler that makes it so. With --target, and of a run that was made with
    it, the GPU is simulated, and triton's interpreter runs the kernels.

    Exit status 1 if something is wrong, 2 if nothing could be judged.
    """
    with progress_line() as progress:
        answer = ip.accuracy(options, progress=progress)
        if shown.issue and answer.record.verdict is not None:
            give_issue(answer, output_format, progress=progress)
            return ExitCode.MISMATCH
    status = give(answer, output_format, ok=answer.record.verdict != "wrong")
    if answer.record.verdict is None:
        status = ExitCode.FAILED
    return max(status, warn(answer.record.problems))


@verb(ExpectOptions, github=True)
def expect(options: ExpectOptions, *, output_format: OutputFormat) -> int:
    """Is what was compiled as it should be? Pins what was fixed in a lowering, so that it stays fixed.

    SCRIPT is dumped first; RUN and GRAPH are there already, the latest run if left out. All that is expected
    has to hold in each graph that has the nodes and buffers that it names. Of what does not, the decision is
    shown that torch recorded, with its cause.

    Exit status 1 if an expectation fails, else 2 if one is not known, names what is not there, or
    something cannot be read.
    """
    with progress_line() as progress:
        answer = ip.expect(options, progress=progress)
    status = give(answer, output_format) or answer.status
    unread = warn(answer.problems)  # beside what fails it changes nothing: that was read
    return status if status == ExitCode.MISMATCH else max(status, unread)


@verb(ReduceOptions)
def reduce(options: ReduceOptions, *, output_format: OutputFormat) -> int:
    """The smallest program that still shows it: a graph of 300 nodes becomes a script of ten lines.

    SCRIPT runs once; of RUN and GRAPH the script runs again. Of the graph that dynamo traced, operators,
    outputs, sizes and arguments are left out while all of --keep holds, and what is left is written as a
    script of torch calls. At the end that is asked alone, of a time three times.

    Exit status 1 if no graph shows it to begin with, or the last program does not when it runs alone.
    """
    with progress_line() as progress:
        answer = ip.reduce(options, progress=progress)
    return give(answer, output_format, ok=answer.record.holds)


@verb(BisectOptions)
def bisect(options: BisectOptions, *, output_format: OutputFormat) -> int:
    """Which build of torch, which setting, which decision makes the difference?

    SCRIPT is asked under two or more builds (--python, --torch), and the two are named between which
    --keep comes or goes; or as it is and with several settings (--set, --env, --settings), of which those
    are named that it takes; or decisions of run A are turned as they are in run B (--runs). The dumps of
    the pair are compared at the end, with the causes on both sides.

    Exit status 1 if there is no difference.
    """
    with progress_line() as progress:
        answer = ip.bisect(options, progress=progress)
    return give(answer, output_format, ok=bool(answer.record.pair))
