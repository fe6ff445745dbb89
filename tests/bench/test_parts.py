"""Parts of a time: they add up to the whole and never exceed it, whatever real samples are taken for it."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.api.profile import Profiles, joined
from inductor_probe.bench.overheads import CALL, overheads_of, times_of_parts, within
from inductor_probe.bench.profile import another_fits, new_pages
from inductor_probe.bench.times import once_timed
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.profile import NestTime, Profile, ProfilePart
from inductor_probe.model.remark import Subject, measured
from inductor_probe.model.timing import OverheadSamples, PeakRate, Roofline, Samples, TimedPart
from inductor_probe.report.words.remarks import sentence
from inductor_probe.store.samples import read_samples
from tests.analysis.test_work import Read
from tests.fixtures.make_samples import SAMPLES

if TYPE_CHECKING:
    from inductor_probe.api.on_disk import GraphOnDisk

REAL: dict[str, Samples] = {path.stem: read_samples(path) for path in sorted(SAMPLES.glob("*.json"))}
MEASURED = {
    name: [process.overheads for process in samples.processes if process.overheads is not None]
    for name, samples in REAL.items()
}
PARTS = [
    part.seconds
    for processes in MEASURED.values()
    for process in processes
    for part in process.parts
    if part.seconds
]


def disturbed(samples: OverheadSamples, part: int, factor: float) -> OverheadSamples:
    """Return samples in which something else ran while one part was timed."""

    def slower(one: TimedPart) -> TimedPart:
        return replace(one, seconds=tuple(time * factor for time in one.seconds))

    place = part % len(samples.parts)
    parts = tuple(slower(one) if number == place else one for number, one in enumerate(samples.parts))
    return replace(samples, parts=parts)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from([name for name, processes in MEASURED.items() if processes]),
    first=st.integers(0, 9),
    part=st.integers(0, 99),
    factor=st.sampled_from([0.0, 0.1, 1.0, 1.5, 64.0]),
)
def test_the_parts_of_a_call_never_exceed_it(name: str, first: int, part: int, factor: float) -> None:
    """A kernel of 269.9 ms stood in a call of 4.2 ms."""
    processes = MEASURED[name][first % len(MEASURED[name]) :]
    table = overheads_of([disturbed(processes[0], part, factor), *processes[1:]])
    assert 0 <= table.scale <= 1
    times = times_of_parts([disturbed(processes[0], part, factor), *processes[1:]])
    alone = sum(time.seconds for name, time in times.items() if name != CALL)
    assert alone <= times[CALL].seconds * (1 + 1e-9), "a kernel of 2.268 ms stood above a call of 2.252 ms"
    for side in ("device", "host"):
        rows = [row for row in table.rows if row.side == side]
        on_gpu = table.device == "cuda" and side == "host"
        inside = [
            row
            for row in rows
            if row.kind in ("kernel", "library", "wrapper", "rest") or (on_gpu and row.kind == "launches")
        ]
        assert all(row.seconds >= 0 and row.share <= 1 + 1e-9 for row in rows)
        for call in (row for row in rows if row.kind == "call"):
            if inside:
                assert sum(row.seconds for row in inside) == pytest.approx(call.seconds)
        launches = sum(row.seconds for row in rows if row.kind == "launches" and not on_gpu)
        assert launches <= sum(row.seconds for row in rows if row.kind == "kernel") + 1e-12


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(PARTS), st.sampled_from([-0.1, 0.0, 0.3, 1.0]), st.sampled_from([1e-9, 1.0])
        ),
        max_size=6,
    ),
    st.sampled_from(PARTS),
)
def test_what_parts_leave_is_the_rest(
    parts: Sequence[tuple[tuple[float, ...], float, float]], whole: Sequence[float]
) -> None:
    """`outside of loop nests -0.3 %` is no time: below it stands what reading clocks took too much off."""
    times = [(seconds[0] * factor, off) for seconds, factor, off in parts]
    fitted, rest = within(times, whole[0])
    assert all(0 <= seconds <= seconds + off <= whole[0] + 1e-12 for seconds, off in fitted), (
        "`below 120 us` stood in a call of 90 us"
    )
    assert sum(seconds for seconds, _ in fitted) + rest == pytest.approx(whole[0])
    if all(seconds >= 0 for seconds, _ in times) and sum(seconds for seconds, _ in times) <= whole[0]:
        kept = [(seconds, min(off, whole[0] - seconds)) for seconds, off in times]
        assert fitted == kept, "what fits is left as it was measured"


def test_a_kernel_that_took_longer_than_a_call_is_not_in_it() -> None:
    process = replace(REAL["quiet"].processes[0], timed_once=(("k1", 2e-3), ("k0", 269.9e-3)))
    times, remarks = once_timed(process, 4.2e-3)
    assert times == ()
    assert sentence(remarks[0]).startswith(
        "in the one call that was looked into, k0, k1 took 271.9 ms, and a call takes 4.200 ms"
    )
    for known in (0.3, None):
        times, remarks = once_timed(process, known)
        assert ([time.name for time in times], remarks) == (["k0 in one call", "k1 in one call"], ())


def test_a_loop_nest_moves_its_bytes_at_each_launch(read: Read) -> None:
    """Rates were too low by the number of launches: the time was of all of them, the bytes of one."""
    graph: CompiledGraph = read("torch-2.13.0-cpu-programs/bucketed_collectives")
    (row,) = (row for row in kernel_rows(graph) if row.name == "cpp_fused_relu_2")
    assert (len(row.launches), row.bytes_read) == (3, 1536)
    nest = NestTime(row.name, 1, "vectorised", 1, 2, (), 1e-6, 1e-9, 0.5, launches=3)
    parts = [
        ProfilePart("kernel", row.name, "host", 1e-6, 1e-9, 0.5, count)
        for count in (3, 30)  # as often as there are launches, and in a loop of the wrapper
    ]
    profile = Profile(
        graph.name, "2.13.0", "cpu", 1, "tsc", 2e-6, 2e-6, 0.0, 9, tuple(parts), (nest,), (), (), (), ()
    )
    found = joined(cast("GraphOnDisk", SimpleNamespace(generated=graph)), profile, None, {})
    assert [part.moved for part in found.parts] == [3072, 30720]
    assert [nest.moved for nest in found.nests] == [3072]


def test_a_loop_nest_too_short_to_be_measured_has_no_rate(read: Read) -> None:
    """A nest of 0.000 us that may be 0.1 us moved "753 TB/s"."""
    graph: CompiledGraph = read("torch-2.13.0-cpu-programs/bucketed_collectives")
    texts = []
    for seconds in (2e-12, 2e-6):
        nest = NestTime(
            "cpp_fused_relu_2", 1, "vectorised", 1, 2, (), seconds, 1e-7, 0.0, launches=3, moved=1536
        )
        part = ProfilePart("kernel", nest.kernel, "host", seconds, 1e-7, 0.0, 3, 1536)
        profile = Profile(
            graph.name, "2.13.0", "cpu", 1, "tsc", 2e-5, 2e-5, 0.0, 9, (part,), (nest,), (), (), (), ()
        )
        texts.append(str(Profiles((profile,), details=True)))
    assert "B/s" not in texts[0]
    assert texts[1].count("MB/s") == 2


def test_a_rate_that_the_machine_does_not_reach_is_refused(read: Read) -> None:
    """In `profile` as in `bench-kernel`: bytes that no copy moves in that time were counted wrongly."""
    graph: CompiledGraph = read("torch-2.13.0-cpu-programs/bucketed_collectives")
    nest = NestTime("cpp_fused_relu_2", 1, "vectorised", 1, 2, (), 1e-6, 1e-9, 0.5, launches=3)
    part = ProfilePart("kernel", nest.kernel, "host", 1e-6, 1e-9, 0.5, 3)
    profile = Profile(
        graph.name, "2.13.0", "cpu", 1, "tsc", 2e-6, 2e-6, 0.0, 9, (part,), (nest,), (), (), (), ()
    )
    disk, slow = cast("GraphOnDisk", SimpleNamespace(generated=graph)), None
    for copies, moved, remarks in ((1e8, None, ["above-copy-rate"]), (1e11, 3072, [])):
        peaks = tuple(PeakRate("copy", place, 4096, copies, 9) for place in ("cache", "memory"))
        roofline = Roofline("2.13.0", "cpu", 1, 1024, 4096, peaks)
        slow = roofline if moved is None else slow
        found = joined(disk, replace(profile, roofline=roofline), None, {})
        assert [one.moved for one in (*found.parts, *found.nests)] == [moved, moved]
        assert [remark.code for remark in found.remarks] == remarks
    lost = measured("parts-lost-cores", "analysis", Subject("graph", ""))
    busy = replace(profile, threads=2, roofline=slow, remarks=(lost,))
    assert [one.moved for one in joined(disk, busy, None, {}).nests] == [3072], "no copy had its cores"


def test_a_collective_that_is_a_stand_in_has_no_rate(read: Read) -> None:
    """`all_reduce` of one rank moved "164 GB/s", and waiting for it "0 B/s"."""
    graph: CompiledGraph = read("torch-2.13.0-cpu-programs/bucketed_collectives")
    names = [row.name for row in kernel_rows(graph) if "c10d" in row.name]
    assert len(names) > 1
    parts = tuple(ProfilePart("library", name, "host", 1e-6, 1e-9, 0.5, 1) for name in names)
    profile = Profile(graph.name, "2.13.0", "cpu", 1, "tsc", 2e-6, 2e-6, 0.0, 9, parts, (), (), (), (), ())
    disk = cast("GraphOnDisk", SimpleNamespace(generated=graph))
    assert [part.moved for part in joined(disk, profile, None, {}).parts] == [None] * len(names)


@pytest.mark.parametrize(
    ("device", "pages", "numbers"),
    [
        ("cpu", ([0, 2, 900], [990, 992, 3], [0, 0, 63]), {"slow": 1, "processes": 3, "pages": 990}),
        ("cpu", ([0, 2, 900], [3, 63, 63], [0, 0, 64]), None),
        ("cuda", ([990, 992, 990],), None),
    ],
)
def test_new_pages_are_said_of_the_processes_that_were_given_some(
    device: str, pages: tuple[list[int], ...], numbers: dict[str, int] | None
) -> None:
    """One process was slower for them, and its parts stood for the call."""
    remarks = list(new_pages([{"device": device, "new_pages": each} for each in pages]))
    if numbers is None:
        assert remarks == []
        return
    assert dict(remarks[0].numbers) == {**numbers, "size": 990 * mmap.PAGESIZE}
    assert sentence(remarks[0]).startswith("in 1 of 3 processes each call is given 990 new pages")


@pytest.mark.parametrize(("spent", "fits"), [([], True), ([0.9], True), ([1.3, 1.2], False), ([1.9], False)])
def test_calls_of_seconds_are_profiled_in_fewer_processes(spent: list[float], fits: bool) -> None:
    """Three processes that each take a call of every side took three times the budget."""
    assert another_fits([{"seconds": seconds} for seconds in spent], 3.0) == fits
