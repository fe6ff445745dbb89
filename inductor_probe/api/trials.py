"""Many ways to compile one run, as they are shown: what came of each, the gains first."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.api.on_disk import RunOnDisk
from inductor_probe.api.whatif import WhatIf, is_faster
from inductor_probe.model.output import Output
from inductor_probe.model.whatif import WHATIF_NAME, Trial, WhatIfOutput
from inductor_probe.report.document import Document, apart
from inductor_probe.report.pages.whatif import trials_page
from inductor_probe.report.shown import Shown
from inductor_probe.report.words.whatif import gain_sentence, trials_sentence


class Trials(Shown, Struct, frozen=True):
    """A run, and what came of each candidate against it, the gains first.

    Attributes:
        interrupted: by Ctrl-C: what was done by then is here, and on disk.
        answers: the whole comparison of each candidate, where those are to be shown.
        margin: a smaller difference counts as none. threads: with how many all was timed.
        goes_on: the command that tries the rest; empty where it would begin anew.
    """

    run: RunOnDisk
    trials: tuple[Trial, ...]
    interrupted: bool = False
    answers: tuple[WhatIf, ...] = ()
    margin: float = 0.01
    threads: int = 1
    goes_on: str = ""

    @property
    def path(self) -> Path:
        """The file that was written after each candidate."""
        return self.run.path / WHATIF_NAME

    @property
    def gains(self) -> tuple[Trial, ...]:
        """The candidates that are faster and right, the fastest first."""
        return tuple(trial for trial in self.trials if trial.rank == "gain")

    def sentence(self, gain: Trial) -> str:
        """Return a sentence about one of the gains, to be quoted."""
        return gain_sentence(gain, self.margin, self.threads)

    def faster_by(self, share: float) -> tuple[str, ...]:
        """Return a sentence for each code that takes less time by more than a share, its whole interval."""
        faster = [gain for gain in self.gains if is_faster(gain.call, share)]
        codes = {(gain.same_as or gain.candidate, gain.graph): gain for gain in reversed(faster)}
        return tuple(map(self.sentence, reversed(codes.values())))

    def with_details(self, details: bool = True) -> Trials:
        """Return the same with what else is folded in the comparisons that are shown."""
        return replace(self, answers=tuple(answer.with_details(details) for answer in self.answers))

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return WhatIfOutput(
            a=self.run.path,
            trials=self.trials,
            margin=self.margin,
            threads=self.threads,
            summary=(trials_sentence(self.trials, self.margin, self.threads),),
        )

    @property
    def document(self) -> Document:
        """A row for each candidate, and one sentence."""
        pages = [*(answer.document for answer in self.answers)]
        yield from apart(
            [
                *pages,
                trials_page(self.trials, self.margin, self.threads, several_graphs=len(self.run.graphs) > 1),
            ]
        )
