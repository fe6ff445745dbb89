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
from inductor_probe.files import LARGEST_JSON, read_text, write_whole
from inductor_probe.model.codec import ShapeError, from_json, to_json
from inductor_probe.model.whatif import WHATIF_NAME, Trial, TrialsIndex


def write_trials(run: Path, trials: Sequence[Trial], *, torch: str, margin: float, threads: int) -> None:
    """Write what is known of the candidates of a run, timed with this margin and number of threads."""
    index = TrialsIndex(__version__, torch, tuple(trials), margin, threads)
    write_whole(run / WHATIF_NAME, json.dumps(to_json(index), indent=1) + "\n")


def read_trials(run: Path, *, margin: float, threads: int) -> tuple[Trial, ...]:
    """Return what is known of a run's candidates; none where it was measured with another margin or threads.

    Of a trial whose run was removed since, only what needs none is left: torch refused it.

    Raises:
        UnreadableError: the file is cut, or of another form.
    """
    path = run / WHATIF_NAME
    if not path.exists():
        return ()
    try:
        index = from_json(TrialsIndex, json.loads(read_text(path, largest=LARGEST_JSON)))
    except (ShapeError, ValueError) as error:
        raise UnreadableError(
            f"{path} cannot be read: {error}", "move it away, and each candidate is tried again"
        ) from error
    if (index.margin, index.threads) != (margin, threads):
        return ()
    return tuple(trial for trial in index.trials if trial.run is None or trial.run.is_dir())
