"""Bench files: writing one, running it if it may run, and what it found."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from inductor_probe.api.trust import source_to_run
from inductor_probe.errors import NotFoundError, ProbeError, near_names
from inductor_probe.model.bench import BenchFile, BenchResult, BenchSettings
from inductor_probe.notebook.shown import Renderable, Shown
from inductor_probe.report.bench import BenchTable

if TYPE_CHECKING:
    from inductor_probe.api.graph import Graph
    from inductor_probe.model.roofline import KernelWork
    from inductor_probe.model.timing import Process


class Bench(Shown):
    """What timing a bench file found. `file` is None where it was read from samples on disk.

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
    def json(self) -> dict[str, Any]:
        """The result, ready for `json.dumps`: the fields of `BenchResult`; times are in seconds a call."""
        from inductor_probe.model.codec import to_json

        return cast("dict[str, Any]", to_json(self.result))

    def __rich__(self) -> Renderable:
        return BenchTable(self.result)

    def _repr_html_(self) -> str:
        from inductor_probe.notebook.bench import bench_html

        return bench_html(self.__rich__(), self.result, self.samples, self.file)


def write_bench_file(
    graph: Graph, variants: Sequence[tuple[str, str | None]], rewrites: Sequence[str]
) -> BenchFile:
    """Write a graph's bench file: see `Graph.write_bench_file`."""
    from inductor_probe import bench_file
    from inductor_probe.analysis.input_bounds import input_bounds

    refuse_archive(graph)
    record = graph.run.manifest.graph(graph.name) if graph.run.manifest else None
    facts = record.inputs if record else ()
    bounds = input_bounds(graph.generated)
    return bench_file.write_bench_file(graph.path, facts, variants, rewrites, bounds=bounds)


def refuse_archive(graph: Graph) -> None:
    """Refuse a graph in an archive: a bench file holds the user's edits, and would be lost there.

    Raises:
        ProbeError: it is in one; the hint unpacks it.
    """
    from inductor_probe.discovery.archive import archive_of, unpack

    archive = archive_of(graph.path)
    if archive is None:
        return
    inside, folder = graph.path.relative_to(unpack(archive).folder), archive.name.partition(".")[0]
    unpacks = [["mkdir", "-p", folder], ["tar", "-xf", str(archive), "-C", folder]]
    if archive.suffix.lower() == ".zip":
        unpacks = [["python", "-m", "zipfile", "-e", str(archive), folder]]
    commands = [*unpacks, ["probe", "bench-kernel", str(Path(folder, inside))]]
    raise ProbeError(
        f"{graph.name} is in {archive}: a bench file, and your edits in it, would not be kept there",
        " && ".join(map(shlex.join, commands)),
    )


def run_bench_file(
    graph: Graph,
    file: BenchFile,
    settings: BenchSettings | None,
    *,
    trust: bool,
    progress: Callable[[str], None] | None,
) -> Bench:
    """Run a graph's bench file: see `Graph.bench_kernel`."""
    from inductor_probe import bench
    from inductor_probe.analysis.kernels import kernel_rows
    from inductor_probe.analysis.launch_check import check_launches
    from inductor_probe.analysis.work import kernel_work
    from inductor_probe.bench.session import samples_path

    settings = settings or BenchSettings()
    if settings.kernel is not None and settings.kernel not in file.kernels:
        raise NotFoundError(
            f"{graph.name} has no kernel {settings.kernel}", near_names(settings.kernel, file.kernels)
        )
    source = source_to_run(graph, settings, trust=trust)
    kernels = graph.generated.code.kernels if graph.generated.code else ()
    sources = {each.name: each.source for each in kernels if each.backend == "cpp"}
    hazards = [*bench.hazards(sources, bench.cpu_state(), settings.threads)]
    hazards += check_launches(graph.generated).remarks

    def works(result: BenchResult) -> tuple[KernelWork, ...]:
        rows = kernel_rows(graph.generated)
        return kernel_work(graph.generated, rows, result.flops, dict(settings.sizes))

    result = bench.run_bench_file(file.path, settings, hazards, progress, works, source=source)
    return Bench(file, result, bench.read_samples(samples_path(file.path, settings)).processes)


def time_configs(
    graph: Graph, file: BenchFile, settings: BenchSettings | None, text: str, *, trust: bool
) -> tuple[dict[str, Any], ...]:
    """Time every config of a graph's Triton kernels: see `Graph.time_configs`."""
    from inductor_probe import bench

    settings = settings or BenchSettings()
    source = source_to_run(graph, settings, trust=trust)
    return bench.time_configs(file.path, settings, text, source=source)


def rewrites() -> tuple[tuple[str, str, str], ...]:
    """Return the named rewrites that make variants: name, arguments, and what each does."""
    from inductor_probe.variants.registry import REWRITES

    return tuple((each.name, each.arguments, each.help) for each in REWRITES.values())


def verdict(target: str | Path | None = None, *, margin: float | None = None) -> Bench:
    """Make the report of samples once more; nothing is run.

    Args:
        target: `output_code_bench.json`, the folder that it is in, or what names the graph.
        margin: what differs by less is the same; as it was when they were taken if None.

    Raises:
        NotFoundError, UnreadableError: there is none, or it is something else.
    """
    from inductor_probe import bench

    place = Path(target or "")
    if target is None or not place.exists():
        from inductor_probe.api.verbs import open_graph

        place = open_graph(target).path
    if place.is_dir():
        place /= "output_code_bench.json"
    samples = bench.read_samples(place)
    result = bench.result_of(samples if margin is None else replace(samples, margin=margin))
    return Bench(None, result, samples.processes)
