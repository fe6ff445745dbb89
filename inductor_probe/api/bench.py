"""What is made of a graph's kernels to run them: bench files, what they measured, and C++ programs."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.files import seen_from
from inductor_probe.model.bench import BenchFile, BenchKernelOutput, BenchResult, VerdictOutput
from inductor_probe.model.cpp_program import ExportCppOutput
from inductor_probe.model.output import Output
from inductor_probe.report.document import Code, Document, Fold, Heading, Line
from inductor_probe.report.pages.bench import bench_page, variant_diffs, written_file
from inductor_probe.report.pages.whatif import samples_with_sides, with_sides
from inductor_probe.report.shown import Shown
from inductor_probe.report.words.bench import result_sentence

if TYPE_CHECKING:
    from inductor_probe.api.on_disk import GraphOnDisk
    from inductor_probe.model.bench import BenchSettings
    from inductor_probe.model.timing import KernelWork, Process


class Bench(Shown, Struct, frozen=True):
    """What timing a bench file says. `file` is None where it was read from samples on disk.

    `samples` are those that the result rests on, by process. With `details` the tables are shown that else
    are folded; with `sides` it is of two graphs (`probe whatif`), whose code is called A and B.
    """

    file: BenchFile | None
    result: BenchResult
    samples: tuple[Process, ...] = ()
    details: bool = False
    sides: bool = False

    def with_details(self, details: bool = True) -> Bench:
        """Return the same with what else is folded: overheads, roofline, what the ratios rest on."""
        return replace(self, details=details)

    @property
    def correct(self) -> bool:
        """Whether every variant computes what the graph does."""
        return all(variant.correct for variant in self.result.variants)

    @property
    def _shown(self) -> BenchResult:
        return with_sides(self.result) if self.sides else self.result

    @property
    def output(self) -> Output:
        """What `bench-kernel --json` prints or, of samples that were read, `verdict --json`."""
        summary = result_sentence(self._shown)
        if self.file is None:
            return VerdictOutput(result=self.result, summary=summary)
        return BenchKernelOutput(file=self.file, results=(self.result,), summary=(summary,))

    @property
    def document(self) -> Document:
        """The report, and how variants differ to unfold."""
        samples = samples_with_sides(self.samples, self.result) if self.sides else self.samples
        yield from bench_page(self._shown, samples, details=self.details)
        if self.file and self.file.diffs:
            diffs, title = self.file.diffs, "how variants differ from what they are copies of"
            if self.details:
                yield from (Line(), Heading((title, "bold"), 2), *variant_diffs(diffs))
            else:
                yield Fold(title, lambda: variant_diffs(diffs))


class WrittenBenchFile(Shown, BenchFile, frozen=True):
    """A bench file that was written: shows what happened to it, and how variants differ."""

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return BenchKernelOutput(file=self)

    @property
    def document(self) -> Document:
        """What happened to the file, and how its variants differ."""
        return written_file(self, seen_from(self.path, Path.cwd()))


class CppProgram(Shown, Struct, frozen=True):
    """A kernel as a program of its own.

    Attributes:
        kernel: its name. file: name of the file it is for.
        text: the program. command: what compiles it.
    """

    kernel: str
    file: str
    text: str
    command: tuple[str, ...]

    @property
    def output(self) -> ExportCppOutput:
        """What `--json` prints, as a record."""
        return ExportCppOutput(kernel=self.kernel, path=Path(self.file), command=self.command, text=self.text)

    @property
    def document(self) -> Document:
        """The program, and the command that compiles it."""
        return (Code(f"{self.text}\n// {shlex.join(self.command)}", "cpp"),)


def run_file(
    graph: GraphOnDisk,
    file: BenchFile,
    settings: BenchSettings | None,
    *,
    trust: bool,
    progress: Callable[[str], None] | None,
) -> Bench:
    """Run a graph's bench file as it stands: see `Graph.bench_kernel`."""
    from inductor_probe.analysis.kernels import kernel_rows
    from inductor_probe.analysis.launch_check import check_launches
    from inductor_probe.analysis.operators import collective
    from inductor_probe.analysis.work import kernel_work
    from inductor_probe.api.own_call import own_calls, without_own_share
    from inductor_probe.api.trust import source_to_run
    from inductor_probe.bench import session
    from inductor_probe.bench_file.source import other_harness
    from inductor_probe.machine.cpu import cpu_state, hazards
    from inductor_probe.model.bench import BenchSettings
    from inductor_probe.store.samples import add_own_call, read_samples

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
        # what runs of collectives here is a stand-in, whose rate says nothing
        rows = [row for row in kernel_rows(graph.generated) if not collective(row.name)]
        return kernel_work(graph.generated, rows, result.flops, dict(settings.sizes))

    other = other_harness(source)
    on_graph = settings if settings.kernel is not None else without_own_share(graph, settings)
    result = session.run_bench_file(
        file.path, on_graph, known, progress, works, source=source, other_harness=other
    )
    samples = session.samples_path(file.path, settings)
    if settings.kernel is None:
        own, why = own_calls([graph], settings, progress)
        result = replace(result, own=own[0] if own else None, no_own=None if own else why)
        add_own_call(samples, result.own, result.no_own)
    return Bench(file, result, read_samples(samples).processes)
