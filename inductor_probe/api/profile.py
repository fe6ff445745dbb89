"""Where the time of calls goes: graphs are profiled, and what was measured is joined with what they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.errors import NotFoundError
from inductor_probe.model.own_call import NoOwnCall, OwnCall
from inductor_probe.model.profile import (
    NestTime,
    Profile,
    ProfileComparison,
    ProfileOutput,
    ProfilePart,
    SlowWork,
)
from inductor_probe.report.document import Document, Picture
from inductor_probe.report.pages.call_parts import own_call_lines
from inductor_probe.report.pages.profile import comparison_page, profile_page
from inductor_probe.report.plots.flame import flame_svg
from inductor_probe.report.shown import Shown

if TYPE_CHECKING:
    from inductor_probe.analysis.annotation.annotate import NestOrigin
    from inductor_probe.api.on_disk import GraphOnDisk
    from inductor_probe.executors.server import Server
    from inductor_probe.model.bench import BenchFile, BenchSettings
    from inductor_probe.model.debug_dir import CompiledGraph
    from inductor_probe.model.remark import Remark
    from inductor_probe.model.timing import FlopCount, KernelWork, Roofline

BUDGET_S = 3.0
HALF = 0.5
"""Of what a copy reaches: the bytes of a nest are the least that it moves, so that memory may bound one
beyond it, and something else has to bound one below."""
LONG_SHARE, LAUNCH_S = 0.05, 2e-6
"""Of the call, and of a launch: what is shorter is not worth a line, or is the launch."""
_Part = TypeVar("_Part", "ProfilePart", "NestTime")


class Profiles(Shown, Struct, frozen=True):
    """Where the time of a call of each graph goes. With `details` all loop nests and lines are shown.

    `graphs` are those that were profiled, in the same order; empty where profiles were read from a file.
    """

    profiles: tuple[Profile, ...]
    details: bool = False
    graphs: tuple[GraphOnDisk, ...] = ()
    own: tuple[OwnCall, ...] = ()
    no_own: NoOwnCall | None = None

    def with_details(self, details: bool = True) -> Profiles:
        """Return the same with what else is left out: each loop nest, and the lines of the wrapper."""
        return replace(self, details=details)

    def compare(self, other: Profiles) -> ProfilesCompared:
        """Compare with other profiles, kernel by kernel: these are A, the others are B."""
        return ProfilesCompared(self, other, tuple(_comparisons(self, other)))

    @property
    def flame(self) -> str:
        """The parts of a call of each graph as pictures: a page of HTML with SVG, nothing in it runs."""
        from inductor_probe.report.plots.flame import flame_page

        return flame_page(self.profiles)

    @property
    def chrome(self) -> str:
        """One call of each graph as a trace for chrome://tracing and Perfetto."""
        from inductor_probe.report.chrome import chrome_trace

        return chrome_trace(self.profiles)

    @property
    def output(self) -> ProfileOutput:
        """What `--json` prints, as a record."""
        return ProfileOutput(profiles=self.profiles, own=self.own, no_own=self.no_own)

    @property
    def document(self) -> Document:
        """The parts of a call of each graph, in a table."""
        yield from own_call_lines(self.own, self.no_own)
        for profile in self.profiles:
            yield from profile_page(profile, details=self.details, titled=len(self.profiles) > 1)
            yield Picture(partial(flame_svg, profile))


class ProfilesCompared(Shown, Struct, frozen=True):
    """Two sets of profiles, part by part."""

    a: Profiles
    b: Profiles
    comparisons: tuple[ProfileComparison, ...]

    @property
    def output(self) -> ProfileOutput:
        """What `--json` prints, as a record."""
        return ProfileOutput(profiles=self.a.profiles, against=self.b.profiles, comparisons=self.comparisons)

    @property
    def document(self) -> Document:
        """A table for each pair of graphs."""
        for comparison in self.comparisons:
            yield from comparison_page(comparison)


def _comparisons(a: Profiles, b: Profiles) -> Iterator[ProfileComparison]:
    """Compare each graph with its partner.

    Raises:
        NotFoundError: no graph of A has one in B.
    """
    from inductor_probe.bench.profiles_compared import compare_profiles

    if a.graphs and b.graphs:
        from inductor_probe.analysis.diff.graphs import diff_graphs, pair_graphs

        sides = [[graph.compiled for graph in side.graphs] for side in (a, b)]
        pairs = {0: 0} if len(sides[0]) == len(sides[1]) == 1 else pair_graphs(*sides)
        for first, second in pairs.items():
            matches = diff_graphs(sides[0][first], sides[1][second]).kernels
            groups = [(match.a, match.b) for match in matches]
            yield compare_profiles(a.profiles[first], b.profiles[second], groups)
    else:
        places = {profile.graph: place for place, profile in enumerate(b.profiles)}
        pairs = {
            place: places[profile.graph]
            for place, profile in enumerate(a.profiles)
            if profile.graph in places
        }
        if len(a.profiles) == len(b.profiles) == 1:
            pairs = {0: 0}
        for first, second in pairs.items():
            yield compare_profiles(a.profiles[first], b.profiles[second])
    if not pairs:
        names = [", ".join(profile.graph for profile in side.profiles) for side in (a, b)]
        raise NotFoundError(
            f"no graph of A ({names[0]}) has a partner in B ({names[1]})", "name one graph of each"
        )


def read_profiles(path: Path) -> Profiles:
    """Return the profiles that `probe profile --json` printed into a file.

    Raises:
        NotFoundError: no such file. UnreadableError: not written by `probe profile --json`.
    """
    from inductor_probe.store import profiles

    return Profiles(profiles.read_profiles(path).profiles)


def profile_graphs(
    graphs: Iterable[tuple[GraphOnDisk, Callable[[], BenchFile]]],
    settings: BenchSettings | None = None,
    *,
    trust: bool = False,
    as_called: bool = False,
    progress: Callable[[str], None] | None = None,
    shared: Server | None = None,
) -> Profiles:
    """Profile graphs one after the other: this executes their code, in child processes.

    Args:
        graphs: each with what writes its bench file.
        settings: `budget` (for each graph), `threads`, `inputs`, `sizes`, `cxxflags` and `imports` count.
        trust: run code that is not known to be made here.
        as_called: with as many threads as the script's own call has, where that could be timed.
        progress: called with what is done next.
        shared: a process that has imported torch, with the imports and flags of `settings`.

    Raises:
        ProbeError: a graph's code may not run, or does not.
    """
    from inductor_probe.api.own_call import own_calls, without_own_share
    from inductor_probe.model.bench import BenchSettings
    from inductor_probe.store.profiles import add_to_run

    pairs, settings = list(graphs), settings or BenchSettings(budget=BUDGET_S)
    on_graph = without_own_share(pairs[0][0], settings)
    own, why = own_calls([graph for graph, _ in pairs], settings, progress)
    if as_called and own:
        on_graph = replace(on_graph, threads=max(own, key=lambda call: call.compiled).threads)
    profiles = tuple(
        _profile(graph, write, on_graph, trust=trust, progress=progress, shared=shared)
        for graph, write in pairs
    )
    if not settings.sizes and not settings.cxxflags:  # as the graphs are compiled, and called
        add_to_run(pairs[0][0].run.path, profiles, own, why)
    return Profiles(profiles, graphs=tuple(graph for graph, _ in pairs), own=own, no_own=why)


def _profile(
    graph: GraphOnDisk,
    write: Callable[[], BenchFile],
    settings: BenchSettings,
    *,
    trust: bool,
    progress: Callable[[str], None] | None,
    shared: Server | None,
) -> Profile:
    from inductor_probe.analysis.kernels import kernel_rows
    from inductor_probe.analysis.work import kernel_work
    from inductor_probe.api.trust import require_trust, source_to_run
    from inductor_probe.bench.profile import profile_bench_file
    from inductor_probe.bench_file.clocked import clocked_file
    from inductor_probe.files import read_text
    from inductor_probe.machine.cpu import cpu_state, hazards

    require_trust(graph, trust=trust, imports=settings.imports, rewriting=True)
    file = write()
    source = source_to_run(graph, settings, trust=trust)
    code = graph.path / "output_code.py"
    generated = (code, read_text(code)) if code.exists() else None
    kernels = graph.generated.code.kernels if graph.generated.code else ()
    sources = {kernel.name: kernel.source for kernel in kernels if kernel.backend == "cpp"}
    spoils = tuple(hazards(sources, cpu_state(), settings.threads))
    clocked = clocked_file(file.path, source, generated)
    sizes = dict(settings.sizes)

    def dtypes(flops: Sequence[FlopCount] | None) -> list[str]:
        works = kernel_work(graph.generated, kernel_rows(graph.generated), flops, sizes)
        return [work.dtype for work in works if work.dtype]

    profile, flops = profile_bench_file(clocked, settings, progress, dtypes, shared)
    profile = replace(profile, remarks=(*spoils, *profile.remarks))
    return joined(graph, profile, flops, sizes)


def joined(
    graph: GraphOnDisk, profile: Profile, flops: Sequence[FlopCount] | None, sizes: dict[str, int]
) -> Profile:
    """Say of kernels and loop nests which nodes and lines of the user's they are, and what they do.

    Bytes and flops with which one would be faster than what was measured of the machine are refused, with a
    remark: too many were counted.
    """
    from inductor_probe.analysis.annotation.annotate import nest_origins
    from inductor_probe.analysis.kernels import kernel_rows
    from inductor_probe.analysis.operators import collective, is_call_of
    from inductor_probe.analysis.work import counts_in_loops, flops_by_node, kernel_work, node_traffic

    generated = graph.generated
    # Copies on several threads, some of which have no core, say nothing of what the machine reaches.
    lost = profile.threads > 1 and any(remark.code == "parts-lost-cores" for remark in profile.remarks)
    roofline = None if lost else profile.roofline
    rows = kernel_rows(generated)
    works = {work.name: work for work in kernel_work(generated, rows, flops, sizes)}
    by_name = {row.name: row for row in rows}
    counts = flops_by_node(generated.fx, flops) if generated.fx is not None and flops is not None else {}
    in_loops = counts_in_loops(rows, counts)
    origins: dict[str, tuple[NestOrigin, ...]] = {
        name: nest_origins(generated, name) for name in dict.fromkeys(nest.kernel for nest in profile.nests)
    }

    def part(part: ProfilePart) -> ProfilePart:
        name = part.name
        if part.kind == "library" and name not in by_name:
            # A GPU's calls were seen as operators: `aten.mm.out` is `extern_kernels.mm` of the wrapper.
            calls = [row.name for row in rows if row.backend == "extern" and is_call_of(row.name, name)]
            name = calls[0] if len(calls) == 1 else name
        row, work = by_name.get(name), works.get(name)
        if row is None or part.kind not in ("kernel", "library"):
            return part
        moved, flops = (work.moved, work.flops) if work else (None, None)
        if part.side == "host" and profile.device != "cpu":
            moved = flops = None  # the host only launches it: bytes and flops are the GPU's row's
        if collective(row.name) or not moved:
            moved = None  # what runs of collectives is a stand-in; a view and a wait move nothing
        if moved is not None and part.count > len(row.launches):  # a loop of the wrapper runs one many times
            moved = moved * part.count // len(row.launches)
        return replace(part, moved=moved, flops=flops, nodes=row.nodes, sources=row.sources)

    def nest(nest: NestTime) -> NestTime:
        if nest.number is None:
            return nest
        origin = origins[nest.kernel][nest.number - 1]  # what it computes for in one launch
        moved = node_traffic(generated, origin.nodes)
        flops = sum(in_loops[name] for name in origin.fx if name in in_loops)
        made = replace(
            nest,
            nodes=origin.nodes,
            sources=origin.sources,
            moved=None if moved is None else moved * nest.launches,
            flops=flops * nest.launches or None,
        )
        slow = _slow_work(generated, origin, made, roofline)
        return replace(made, slow=slow)

    remarks: list[Remark] = []

    def believed(part: _Part, name: str, launches: int) -> _Part:
        if roofline is None or (work := works.get(name)) is None:
            return part
        part, reasons = _believed(part, work, launches, roofline)
        remarks.extend(reason for reason in reasons if reason not in remarks)
        return part

    parts = [believed(part(one), one.name, one.count) for one in profile.parts]
    nests = [believed(nest(one), one.kernel, one.launches) for one in profile.nests]
    return replace(profile, parts=tuple(parts), nests=tuple(nests), remarks=(*profile.remarks, *remarks))


def _slow_work(
    graph: CompiledGraph, origin: NestOrigin, nest: NestTime, roofline: Roofline | None
) -> SlowWork | None:
    """Say what a nest may spend its time on, where a copy of its bytes is much faster."""
    from inductor_probe.analysis.slow_work import points, slow_operations
    from inductor_probe.machine.cpu import clock_hertz
    from inductor_probe.machine.roofline import copy_share

    long = nest.share >= LONG_SHARE and nest.seconds > max(nest.uncertainty, nest.launches * LAUNCH_S)
    if not long or roofline is None or nest.moved is None or nest.flops:
        return None
    count = points(graph, origin.nodes, origin.nest)
    copied = copy_share(nest.moved, nest.seconds, nest.launches, roofline)
    if not count or copied is None or copied >= HALF:
        return None
    hertz, total = clock_hertz(), count * nest.launches
    cycles = nest.seconds * nest.threads * hertz / total if hertz else None
    operations, text = slow_operations(graph, origin.nodes), origin.nest
    return SlowWork(copied, total, cycles, operations, not text.has_vectors, text.features, text.tile)


def _believed(
    part: _Part, work: KernelWork, launches: int, roofline: Roofline
) -> tuple[_Part, tuple[Remark, ...]]:
    """Return a part without the bytes or flops that nothing moves or computes in its time, and why."""
    from inductor_probe.machine.roofline import roofline_row

    if part.seconds <= part.uncertainty:
        return part, ()
    work = replace(work, moved=part.moved, flops=part.flops)
    row = roofline_row(work, part.seconds, launches, roofline, cold=False)
    moved = None if row.rate is None else part.moved
    flops = None if row.flop_rate is None else part.flops
    refused = (moved, flops) != (part.moved, part.flops)
    return replace(part, moved=moved, flops=flops), row.remarks if refused else ()
