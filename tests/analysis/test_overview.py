"""The parts of a call for an overview, and the times that decisions are ranked by, of records made here."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from inductor_probe.analysis.causes.times import Times, times_of
from inductor_probe.analysis.overview import agrees, busy_of, parts_of_call, side_of
from inductor_probe.model.call_parts import CallPart, CallParts, Side
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.overview import OverviewIdea, OverviewOutput, OverviewPart
from inductor_probe.model.own_call import OwnCall
from inductor_probe.model.profile import LineTime, NestTime, PartKind, Profile, ProfilePart
from inductor_probe.model.span import Span
from inductor_probe.model.whatif import Candidate
from inductor_probe.report.pages.overview import overview_page
from inductor_probe.report.terminal import to_text
from tests.conftest import REPOSITORY

RUN = REPOSITORY / "run_2026_01_31_12_00_00_000000-pid_1"


def part(kind: PartKind, name: str, side: Side, seconds: float, whole: float) -> ProfilePart:
    return ProfilePart(kind, name, side, seconds, 0.0, seconds / whole, 1)


def nest(number: int, seconds: float, *nodes: str) -> NestTime:
    return NestTime("k_0", number, "vectorised", 1, 2, (), seconds, 0.0, seconds / 1e-3, nodes=nodes)


CPU = Profile(
    "model__0", "2.13", "cpu", 1, "tsc", 1e-3, 1e-3, 0.0, 3,
    (
        part("kernel", "k_0", "host", 6e-4, 1e-3), part("library", "extern_kernels.mm", "host", 3e-4, 1e-3),
        part("check", "check", "host", 1e-4, 1e-3), part("call", "Compiled call", "host", 1e-3, 1e-3),
    ),
    (nest(1, 1e-4, "op0"), nest(2, 5e-4, "op1", "op2")), (),
)  # fmt: skip
_LINES = tuple(
    LineTime(Span(RUN, number, number), name, "launch", name, seconds, 0.0, 0.1, 1)
    for number, (name, seconds) in enumerate((("triton_a", 4e-4), ("triton_b", 1e-4)), start=1)
)
GPU = replace(
    CPU, device="cuda", nests=(), lines=_LINES,
    parts=(
        part("kernel", "triton_a", "device", 1e-4, 1e-3), part("kernel", "triton_b", "device", 1e-4, 1e-3),
        part("gap", "gap", "device", 8e-4, 1e-3), part("call", "call", "device", 1e-3, 1e-3),
        part("call", "call", "host", 1e-3, 1e-3),
    ),
)  # fmt: skip


def own(device: str, rows: tuple[CallPart, ...], wall: float | None = None) -> OwnCall:
    compared = Comparison("eager", "compiled", 0.5, 0.4, 0.6, "FASTER", (), 9, 0)
    return OwnCall(
        "f", "/home/u/f.py:3", "f.py", ("0/0",), 1, None, 1, "8 float32", device, 2, False, (), 2e-3, 1e-3,
        compared, 3, 1.0, 1.0, parts=CallParts(device, rows, 1, 0, wall, 9, 1),
    )  # fmt: skip


def row(kind: str, name: str, side: Side, seconds: float) -> CallPart:
    return CallPart(kind, name, side, seconds, 0.0, 0.0, seconds / 1e-3, 1)


def test_the_kernels_of_the_users_call_are_shown_as_their_loop_nests() -> None:
    call = own("cpu", (row("kernel", "k_0", "host", 8e-4), row("entry", "entry", "host", 2e-4),
                       row("compiled", "compiled", "host", 1e-3)))  # fmt: skip
    parts = parts_of_call(call, [CPU])
    assert [one.name for one in parts] == ["loop nest 2 of k_0", "entry", "loop nest 1 of k_0"]
    assert [one.share for one in parts] == pytest.approx([0.8 * 5 / 6, 0.2, 0.8 / 6])
    assert parts[0].time == pytest.approx(8e-4 * 5 / 6)
    assert sum(one.share for one in parts) == pytest.approx(1.0)


def test_parts_that_were_timed_on_a_busy_machine_are_not_those_of_the_call() -> None:
    slow = own("cpu", (row("kernel", "k_0", "host", 8e-3), row("compiled", "compiled", "host", 9e-3)))
    assert not agrees(slow)
    names = {one.name for one in parts_of_call(slow, [CPU])}
    assert names == {"loop nest 1 of k_0", "loop nest 2 of k_0", "extern_kernels.mm", "check"}


def test_what_is_in_no_part_of_a_call_is_none() -> None:
    with_gap = replace(CPU, parts=(*CPU.parts, part("gap", "gap", "host", 5e-4, 1e-3)))
    assert "gap" not in {one.name for one in parts_of_call(None, [with_gap])}
    record = OverviewOutput(run=RUN, basis="time", parts=parts_of_call(None, [with_gap]))
    assert "checks of sizes and strides" in to_text(overview_page(record), 200)


def test_where_the_gpu_waits_the_parts_are_those_of_the_host() -> None:
    rows = (row("kernel", "triton_a", "device", 2e-4), row("gap", "gap", "device", 8e-4),
            row("launches", "launches", "host", 9e-4), row("compiled", "compiled", "host", 1e-3))  # fmt: skip
    call = own("cuda", rows, wall=1e-3)
    assert side_of(call) == "host"
    assert [one.name for one in parts_of_call(call, [GPU])] == ["launches"]
    assert busy_of([GPU]) == pytest.approx(2e-4)
    assert busy_of([CPU]) is None
    busy = own("cuda", (row("kernel", "a", "device", 9e-4), row("gap", "gap", "device", 1e-4)), wall=1e-3)
    assert side_of(busy) == "device"


def test_a_nest_has_its_own_time_and_a_kernel_without_nests_all_of_its_time() -> None:
    times = times_of(CPU)
    assert times.call == 1e-3
    assert times.pieces(["k_0"], ["op0"]) == (("k_0, loop nest 1", 1e-4),)
    assert times.pieces(["k_0"], [], ("k_0", 1)) == (("k_0, loop nest 2", 5e-4),)
    assert sum(seconds for _, seconds in times.pieces(["k_0"])) == pytest.approx(6e-4)
    assert times.pieces(["extern_kernels.mm", "unknown"]) == (("extern_kernels.mm", 3e-4),)
    assert Times().pieces(["k_0"]) == ()


def test_a_kernel_of_a_gpu_that_waits_has_the_time_of_its_launch() -> None:
    assert dict(times_of(GPU).kernels) == {"triton_a": 4e-4, "triton_b": 1e-4}
    parts = tuple(replace(one, seconds=one.seconds * 4) if one.kind == "kernel" else one for one in GPU.parts)
    assert dict(times_of(replace(GPU, parts=parts)).kernels) == {"triton_a": 4e-4, "triton_b": 4e-4}


def test_a_screen_says_whom_the_gpu_waits_for_and_what_changes_that() -> None:
    record = OverviewOutput(
        run=RUN, basis="time", call=1e-3, name="f", device="cuda", busy=2e-4, side="host", threads=2,
        parts=(OverviewPart("launches", 0.9, 9e-4),),
        try_=(OverviewIdea("probe whatif r --set inductor.triton.cudagraphs=True", 0.8, "they are off"),),
    )  # fmt: skip
    text = to_text(overview_page(record), 200)
    assert (
        "where the time goes: the GPU works 200.0 us of it, and waits for the host; parts of the host" in text
    )
    assert "80.0 %" in text
    assert "inductor.triton.cudagraphs=True" in text
    assert "waits" not in to_text(overview_page(replace(record, busy=9e-4)), 200)


def test_what_acts_around_the_code_is_known_by_its_setting() -> None:
    assert Candidate(settings=(("inductor.triton.cudagraphs", "True"),)).acts_around_code
    assert not Candidate(settings=(("inductor.triton.multi_kernel", "1"),)).acts_around_code
