"""Candidates are compiled: each by a dump in a process of its own, several of them at once."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.analysis.causes.candidates import times_code
from inductor_probe.api.baseline import DumpFailedError, Recipe, dumped_to_the_end
from inductor_probe.api.on_disk import RunOnDisk
from inductor_probe.capture import interrupt_dumps
from inductor_probe.errors import ProbeError
from inductor_probe.model.autotuning import CHOICES_NAME
from inductor_probe.model.debug_dir import DebugDir
from inductor_probe.model.whatif import Candidate, Trial, TrialReason

_ERROR = re.compile(r"^[\w.]*(?:Error|Exception|Exit|Interrupt|Unsupported)\b.*")
"""How Python ends a traceback: the class of the exception, and its first line."""
_MOST = 300
"""Characters kept of an exception; the script prints its traceback."""
_MOST_AT_ONCE = 8
"""Candidates that are compiled at once: each is a process with torch in it, of about 1 GiB."""


class Dumped(Struct, frozen=True):
    """A compiled candidate: its run, or the reason why the dump failed."""

    candidate: Candidate
    run: RunOnDisk | None = None
    failure: TrialReason | None = None

    @property
    def trial(self) -> Trial:
        """What is known by the dump alone: torch failed, or it is to be compared with the run as it is."""
        if self.run is None or self.failure:
            return Trial(self.candidate, "impossible", reason=self.failure)
        return Trial(self.candidate, "not-tried", run=self.run.path)


def dump_candidate(
    recipe: Recipe,
    kind: Callable[[DebugDir, str | None], RunOnDisk],
    candidate: Candidate,
    output: Path,
    *,
    beside_others: bool,
) -> Dumped:
    """Dump what a recipe makes with a candidate; what its script prints goes to the file `output`.

    Raises:
        KeyboardInterrupt: Ctrl-C ended the script.
    """
    if times_code(candidate):
        recipe = replace(recipe, caches=None)  # what it times is to be timed
    try:
        run = dumped_to_the_end(recipe, kind, candidate, output=output, beside_others=beside_others)
    except DumpFailedError as error:
        lines = output.read_text(encoding="utf-8", errors="replace").splitlines()
        return Dumped(candidate, error.run, TrialReason("script-failed", last_error(lines)))
    except ProbeError as error:
        return Dumped(candidate, failure=TrialReason("refused", error.message))
    return Dumped(candidate, run, None if run.graphs else TrialReason("nothing-compiled"))


def last_error(lines: Sequence[str]) -> str:
    """Return the exception at the end of what a script printed, or its last line; empty if it has none."""
    texts = [line.strip() for line in lines if line.strip()]
    errors = [text for text in texts if _ERROR.match(text)]
    return (errors or texts or [""])[-1][:_MOST]


def dump_at_once(
    recipe: Recipe, kind: Callable[[DebugDir, str | None], RunOnDisk], candidates: Sequence[Candidate]
) -> tuple[list[Dumped], bool]:
    """Dump candidates, all at once; return what came of each, and whether Ctrl-C ended some.

    Raises:
        KeyboardInterrupt: Ctrl-C ended the only one.
    """
    with tempfile.TemporaryDirectory(prefix="whatif-") as folder:
        outputs = [Path(folder, str(number)) for number in range(len(candidates))]
        if len(candidates) == 1:  # in this thread: the script gets the signals that we get
            return [dump_candidate(recipe, kind, candidates[0], outputs[0], beside_others=False)], False
        with ThreadPoolExecutor(len(candidates)) as pool:
            dumps = [
                pool.submit(dump_candidate, recipe, kind, *pair, beside_others=True)
                for pair in zip(candidates, outputs, strict=True)
            ]
            try:
                wait(dumps)
            except KeyboardInterrupt:
                interrupt_dumps()
    interrupted = [dump for dump in dumps if isinstance(dump.exception(), KeyboardInterrupt)]
    return [dump.result() for dump in dumps if dump not in interrupted], bool(interrupted)


def batches(entries: Sequence[tuple[Candidate, ...]], most: int) -> Iterator[list[tuple[Candidate, ...]]]:
    """Yield entries, each of what is turned at once, in their order; with which torch times code, alone."""
    batch: list[tuple[Candidate, ...]] = []
    for entry in entries:
        alone = any(map(times_code, entry))
        if batch and (len(batch) == most or alone):
            yield batch
            batch = []
        batch.append(entry)
        if alone:
            yield batch
            batch = []
    if batch:
        yield batch


def most_at_once(a: RunOnDisk) -> int:
    """Return how many candidates may be compiled at once: one where torch times code as it compiles."""
    if any((graph.path / CHOICES_NAME).exists() for graph in a.graphs):
        return 1
    return max(1, min(len(os.sched_getaffinity(0)), _MOST_AT_ONCE))
