"""`probe_whatif.json` in the folder of a run: what came of each candidate that was tried against it.

It is written whole after each candidate, so that an end at any time loses at most the one that is being
tried, and read when the same run is tried again: `probe whatif RUN --try-all` goes on where the last one
ended. What was measured lies in the samples beside each program (`Trial.file`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from inductor_probe import __version__
from inductor_probe.errors import UnreadableError
from inductor_probe.files import LARGEST_JSON, json_of, read_text, write_whole
from inductor_probe.model.bench import CALL, OTHER_CALL, BenchSettings
from inductor_probe.model.codec import from_json, to_json
from inductor_probe.model.comparison import Comparison, Verdict
from inductor_probe.model.whatif import WHATIF_NAME, Candidate, Rank, Trial, TrialReason, TrialsIndex


def write_trials(run: Path, trials: Sequence[Trial], settings: BenchSettings, *, torch: str) -> None:
    """Write what is known of the candidates of a run, and how they were timed."""
    index = TrialsIndex(
        __version__, torch, tuple(trials), settings.margin, settings.threads, settings.inputs, settings.sizes
    )
    write_whole(run / WHATIF_NAME, json.dumps(to_json(index), indent=1) + "\n")


def read_trials(run: Path, settings: BenchSettings | None) -> tuple[Trial, ...]:
    """Return what is known of a run's candidates; none where they were timed otherwise: margin, threads ...

    However they were timed, where `settings` is None.

    Of a trial whose run was removed since, only what needs none is left: torch refused it.

    Raises:
        UnreadableError: the file is cut, or of another form.
    """
    path = run / WHATIF_NAME
    if not path.exists():
        return ()
    try:
        index = _index(json_of(read_text(path, largest=LARGEST_JSON)))
    except ValueError as error:
        raise UnreadableError(
            f"{path} cannot be read: {error}", "move it away, and each candidate is tried again"
        ) from error
    if settings is not None:
        timed_as = (settings.margin, settings.threads, settings.inputs, settings.sizes)
        if (index.margin, index.threads, index.inputs, index.sizes) != timed_as:
            return ()
    return tuple(trial for trial in index.trials if trial.run is None or trial.run.is_dir())


def _index(data: Any) -> TrialsIndex:
    """Return what a file holds; an earlier probe wrote sentences into it, each under the key `detail`.

    Raises:
        ShapeError: it is of neither form.
    """
    trials = data.get("trials") if isinstance(data, Mapping) else None
    if not (isinstance(trials, list) and any(isinstance(one, Mapping) and "detail" in one for one in trials)):
        return from_json(TrialsIndex, data)
    earlier = from_json(_EarlierIndex, data)
    candidates = {f"{_SAME_AS}{trial.candidate}": trial.candidate for trial in earlier.trials}
    read = tuple(_from_sentences(trial, candidates) for trial in earlier.trials)
    return TrialsIndex(earlier.probe, earlier.torch, read, earlier.margin, earlier.threads)


class _EarlierTrial(Struct, frozen=True):
    """A trial whose reason was a sentence; of its times the ratio of the whole call was kept alone."""

    candidate: Candidate
    rank: Rank
    graph: str | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    looks: int = 0
    detail: str = ""
    run: Path | None = None
    file: Path | None = None
    together: bool = False


class _EarlierIndex(Struct, frozen=True):
    probe: str
    torch: str
    trials: tuple[_EarlierTrial, ...]
    margin: float | None = None
    threads: int | None = None


_SAME_CODE, _SAME_AS = "the same code", "the same code as "
_NOT_FASTER = "not faster"
_SAID_BY_RANK = ("", _NOT_FASTER, "compiled; the budget ended before it was timed", "the budget ended before")
_VERDICT_OF: Mapping[Rank, Verdict] = {"gain": "FASTER", "loss": "SLOWER", "no-change": "SAME"}


def _from_sentences(trial: _EarlierTrial, same_as: Mapping[str, Candidate]) -> Trial:
    """Return a trial of an earlier probe; `same_as` has the candidate that each such sentence is about."""
    call = None
    if trial.ratio is not None and trial.low is not None and trial.high is not None:
        verdict = "UNDECIDED" if trial.detail == _NOT_FASTER else _VERDICT_OF.get(trial.rank, "UNDECIDED")
        interval = trial.ratio, trial.low, trial.high
        call = Comparison(CALL, OTHER_CALL, *interval, verdict, process_ratios=(), quads=0, excluded=0)
    reason = None
    if trial.detail == _SAME_CODE:
        reason = TrialReason("same-code")
    elif trial.detail not in (*_SAID_BY_RANK, *same_as):
        reason = TrialReason("reported", trial.detail)
    return Trial(
        trial.candidate,
        trial.rank,
        trial.graph,
        call=call,
        looks=trial.looks,
        reason=reason,
        same_as=same_as.get(trial.detail),
        run=trial.run,
        file=trial.file,
        together=trial.together,
    )
