"""The options of the verbs over many cases: `perf`, `compare`, `results`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, field

from inductor_probe.model.perf import PerfSettings
from inductor_probe.options.fields import (
    ARGUMENT,
    LIST,
    PYTHON,
    Cold,
    Device,
    Executor,
    Knobs,
    Margin,
    Script,
    Seconds,
    Share,
    Typed,
    shared,
)

Folder = Annotated[Path, Typed("folder", "FOLDER", "--results", "Where results are. [.probe/results]")]
Result = Annotated[str, ARGUMENT]


class PerfOptions(Struct, frozen=True):
    """Which cases `probe perf` measures, and how.

    Attributes:
        script: A scenario's script, by path or bare name, or `my.py:function`.
        cases: Only cases whose names match, of all matrices: 'channels_*'.
        matrix: quick, full, a matrix of the scenario, or a pattern.  [quick]
        columns: eager, compiled, call, kernel, VARIANT; a setting of inductor: compiled@cpp.simdlen=256. The
            first is what others are compared with.  [eager,compiled and all variants]
        arguments: Argument of FUNCTION: x=u8[1,3,345,456]:channels_last, size=(256,256).
        knobs: Set a knob of the scenario in all cases.
        threads: Threads: 1 or 1,2; each case is measured with each.
        device: Only cases for it.
        budget: Measuring of each row: 500ms, 3s, 1m.
        processes: Measuring processes of a row.  [3, more where they differ]
        cold: Calls find none of their data in a cache.  [cold on a GPU]
        python: Measure under this interpreter: it needs torch, and nothing else.
        interleave: Two interpreters that take turns: two builds of torch.
        check_only: Compile and check all columns, and time none.
        resume: Go on with the latest run of this that was not finished.
    """

    script: Annotated[Script, Typed(metavar="SCENARIO|FILE.py:FUNCTION")]
    cases: Annotated[Sequence[str], Typed("case", "PATTERN", "--case")] = ()
    matrix: Annotated[str | None, Typed(metavar="NAME")] = None
    columns: Annotated[Sequence[str], LIST] = ()
    arguments: Annotated[Sequence[str], Typed("text", "NAME=VALUE", "--arg")] = ()
    knobs: Knobs = field(default_factory=dict)
    threads: Annotated[Sequence[int], LIST] = (1,)
    device: Device | None = None
    budget: Seconds = 3.0
    margin: Margin = 0.01
    processes: Annotated[Annotated[int, Meta(ge=1, le=99)] | None, Typed(metavar="N")] = None
    cold: Cold | None = None
    python: Annotated[Path | None, Typed("python", "PATH")] = None
    interleave: Annotated[tuple[Path, Path] | None, Typed("python", "PY_A PY_B")] = None
    executor: Executor = "local"
    check_only: Annotated[bool, Typed(flags="--check")] = False
    resume: bool = False
    folder: Folder | None = None

    @property
    def settings(self) -> PerfSettings:
        """What of it is recorded with the results, and has to be the same to go on with them."""
        return PerfSettings(**shared(self, PerfSettings))


class CompareOptions(Struct, frozen=True):
    """How `probe compare` holds two results against each other.

    Attributes:
        a: What is compared with: a name, the start of one, a path, `latest`, `latest~1`.
        b: What is compared, named likewise.
        fail_on_regression: Exit status 1 if a row is slower by more than this, with its whole interval.
    """

    a: Annotated[Result, Typed(metavar="A")]
    b: Annotated[Result, Typed(metavar="B")]
    margin: Margin = 0.01
    fail_on_regression: Share | None = None
    folder: Folder | None = None


class ResultsOptions(Struct, frozen=True):
    """Which results `probe results` lists.

    Attributes:
        scenario: Only of scenarios with this in their name.
        older_than: Only older ones: 30m, 12h, 7d, 2w.
        unfinished: Only those that were not finished, or cannot be read.
        indexed: Believe the index of the folder; else each file is read, as before some are removed.
    """

    folder: Folder | None = None
    scenario: Annotated[str | None, Typed(metavar="TEXT")] = None
    older_than: Annotated[timedelta | None, Typed("age", "AGE")] = None
    unfinished: bool = False
    indexed: Annotated[bool, PYTHON] = True
