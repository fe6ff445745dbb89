"""`probe_whatif.json` in the folder of a run: what came of each candidate that was tried against it.

It is written whole after each candidate, so that an end at any time loses at most the one that is being
tried, and read when the same run is tried again: `probe whatif RUN --try-all` goes on where the last one
ended. What was measured lies in the samples beside each program (`Trial.file`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from inductor_probe import __version__
from inductor_probe.errors import UnreadableError
from inductor_probe.files import LARGEST_JSON, json_of, read_text, write_whole
from inductor_probe.model.bench import BenchSettings
from inductor_probe.model.codec import from_json, to_json
from inductor_probe.model.whatif import WHATIF_NAME, Trial, TrialsIndex


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
        index = from_json(TrialsIndex, json_of(read_text(path, largest=LARGEST_JSON)))
    except ValueError as error:
        raise UnreadableError(
            f"{path} cannot be read: {error}", "move it away, and each candidate is tried again"
        ) from error
    if settings is not None:
        timed_as = (settings.margin, settings.threads, settings.inputs, settings.sizes)
        if (index.margin, index.threads, index.inputs, index.sizes) != timed_as:
            return ()
    return tuple(trial for trial in index.trials if trial.run is None or trial.run.is_dir())
