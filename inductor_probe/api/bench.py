"""Bench files: writing one, running it if it may run, and what it measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from inductor_probe.api.rows import Rows
from inductor_probe.api.trust import refuse_archive, require_trust, source_to_run
from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.files import read_text
from inductor_probe.model.autotuning import ConfigSweep, SweepConfigsOutput
from inductor_probe.model.bench import (
    BenchFile,
    BenchKernelOutput,
    BenchResult,
    BenchSettings,
    RewriteOutput,
    RewriteRow,
    VerdictOutput,
)
from inductor_probe.model.output import Output
from inductor_probe.report.document import Document, Fold
from inductor_probe.report.pages.bench import (
    bench_page,
    config_sweeps,
    rewrite_list,
    variant_diffs,
    written_file,
)
from inductor_probe.report.shown import Shown
from inductor_probe.report.words.bench import result_sentence

if TYPE_CHECKING:
    from inductor_probe.api.on_disk import GraphOnDisk
    from inductor_probe.model.timing import KernelWork, Process


class Bench(Shown):
    """What timing a bench file says. `file` is None where it was read from samples on disk.

    `samples` are those that the result rests on, by process.
    """

    def __init__(
        self, file: BenchFile | None, result: BenchResult, samples: tuple[Process, ...] = ()
    ) -> None:
        self.file = file
        self.result = result
        self.samples = samples

    @property
    def correct(self) -> bool:
        """Whether every variant computes what the graph does."""
        return all(variant.correct for variant in self.result.variants)

    @property
    def output(self) -> Output:
        """What `bench-kernel --json` prints or, of samples that were read, `verdict --json`."""
        said = result_sentence(self.result)
        if self.file is None:
            return VerdictOutput(result=self.result, summary=said)
        return BenchKernelOutput(file=self.file, results=(self.result,), summary=(said,))

    @property
    def document(self) -> Document:
        """The report, and how variants differ to unfold."""
        yield from bench_page(self.result, self.samples)
        if self.file and self.file.diffs:
            diffs = self.file.diffs
            yield Fold("how variants differ from what they are copies of", lambda: variant_diffs(diffs))


class WrittenBenchFile(BenchFile, Shown):
    """A bench file that was written: shows what happened to it, and how variants differ."""

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return BenchKernelOutput(file=self)

    @property
    def document(self) -> Document:
        """What happened to the file, and how its variants differ."""
        here = Path.cwd()
        return written_file(
            self, self.path.relative_to(here) if self.path.is_relative_to(here) else self.path
        )

    __repr__ = Shown.__repr__


def write_bench_file(
    graph: GraphOnDisk, variants: Sequence[tuple[str, str | None]], rewrites: Sequence[str]
) -> WrittenBenchFile:
    """Write a graph's bench file: see `Graph.write_bench_file`."""
    from inductor_probe.analysis.input_bounds import input_bounds
    from inductor_probe.bench_file import bench_file

    refuse_archive(graph)
    bounds = input_bounds(graph.generated)
    written = bench_file.write_bench_file(graph.path, graph.inputs, variants, rewrites, bounds=bounds)
    return WrittenBenchFile(*(getattr(written, field.name) for field in fields(written)))


def run_bench_file(
    graph: GraphOnDisk,
    file: BenchFile,
    settings: BenchSettings | None,
    *,
    trust: bool,
    progress: Callable[[str], None] | None,
) -> Bench:
    """Run a graph's bench file: see `Graph.bench_kernel`."""
    from inductor_probe.analysis.kernels import kernel_rows
    from inductor_probe.analysis.launch_check import check_launches
    from inductor_probe.analysis.work import kernel_work
    from inductor_probe.bench import session
    from inductor_probe.machine.cpu import cpu_state, hazards
    from inductor_probe.store.samples import read_samples

    settings = settings or BenchSettings()
    if settings.kernel is not None and settings.kernel not in file.kernels:
        raise NotFoundError(
            f"{graph.name} has no kernel {settings.kernel}", near_names(settings.kernel, file.kernels)
        )
    source = source_to_run(graph, settings, trust=trust)
    kernels = graph.generated.code.kernels if graph.generated.code else ()
    sources = {kernel.name: kernel.source for kernel in kernels if kernel.backend == "cpp"}
    known = [*hazards(sources, cpu_state(), settings.threads), *check_launches(graph.generated).remarks]

    def works(result: BenchResult) -> tuple[KernelWork, ...]:
        rows = kernel_rows(graph.generated)
        return kernel_work(graph.generated, rows, result.flops, dict(settings.sizes))

    result = session.run_bench_file(file.path, settings, known, progress, works, source=source)
    return Bench(file, result, read_samples(session.samples_path(file.path, settings)).processes)


class ConfigSweeps(Rows[ConfigSweep]):
    """The configs of each Triton kernel of a graph, timed."""

    record = SweepConfigsOutput
    noun = "kernel"
    nothing = "no Triton kernel of the graph is launched"

    def _view(self) -> Document:
        return config_sweeps(self)


def sweep_configs(
    graph: GraphOnDisk, settings: BenchSettings | None, text: str, *, trust: bool
) -> ConfigSweeps:
    """Time every config of a graph's Triton kernels: see `Graph.sweep_configs`."""
    from inductor_probe.bench import session

    settings = settings or BenchSettings()
    require_trust(graph, trust=trust, imports=settings.imports, rewriting=True)
    file = write_bench_file(graph, (), ())
    source = source_to_run(graph, settings, trust=trust)
    return ConfigSweeps(session.sweep_configs(file.path, settings, text, source=source))


class RewriteRows(Rows[RewriteRow]):
    """The named rewrites, each with the specs that make variants of a graph."""

    noun = "rewrite"
    nothing = "there are no rewrites"

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return RewriteOutput(rewrites=self)

    def _view(self) -> Document:
        return rewrite_list(self)


def rewrites_of(graph: GraphOnDisk) -> RewriteRows:
    """Return what each named rewrite applies to in a graph: see `Graph.rewrites`."""
    from inductor_probe.variants.registry import applicable

    path = graph.path / "output_code.py"
    return RewriteRows(applicable(read_text(path), str(path)))


def verdict_of(path: Path, margin: float | None) -> Bench:
    """Judge samples on disk: see `verdict`."""
    from inductor_probe.bench.verdict import result_of
    from inductor_probe.store.samples import read_samples

    samples = read_samples(path)
    result = result_of(samples if margin is None else replace(samples, margin=margin))
    return Bench(None, result, samples.processes)
