"""A bench file's results that show themselves."""

from __future__ import annotations

from inductor_probe.model.bench import BenchFile, BenchResult
from inductor_probe.report.bench import BenchTable
from inductor_probe.report.shown import Renderable, Shown


class Bench(Shown):
    """A bench file that was run, and what it found."""

    def __init__(self, file: BenchFile, result: BenchResult) -> None:
        self.file = file
        self.result = result

    @property
    def correct(self) -> bool:
        """Whether every variant computes what the graph does."""
        return all(variant.correct for variant in self.result.variants)

    def __rich__(self) -> Renderable:
        return BenchTable(self.result)
