"""The parts of a call for an overview, and the times that decisions are ranked by, of records made here."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from inductor_probe.analysis.causes.times import Times, times_of
from inductor_probe.analysis.overview import agrees, busy_of, parts_of_call, side_of
from inductor_probe.model.call_parts import CallPart, CallParts, Side
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.decomposed import Figure, LoopWork, Repeated
from inductor_probe.model.overview import DecomposedOperator, OverviewIdea, OverviewOutput, OverviewPart
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
        name="f", where="/home/u/f.py:3", script="f.py", graphs=("0/0",), call=1, after=None, instances=1,
        inputs="8 float32", device=device, threads=2, backward=False, changes=(), eager=2e-3, compiled=1e-3,
        comparison=compared, processes=3, reached_s=1.0, measured=1.0,
        parts=CallParts(device=device, rows=rows, graphs=1, allocations=0, wall=wall, rounds=9),
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


def test_a_decomposed_operator_that_is_slower_is_named_where_times_have_a_verdict() -> None:
    operator = DecomposedOperator(
        "aten.softplus", 0.5, 6e-4, eager=1e-4, others=("aten.mul",), others_eager=1e-4
    )
    assert operator.ratio == pytest.approx(3.0)
    record = OverviewOutput(
        run=RUN, basis="time", call=1e-3, eager=2e-3, name="f", operators=(operator,), threads=1,
        parts=(OverviewPart("k_0", 0.6, 6e-4),),
        comparison=Comparison("eager", "compiled", 0.5, 0.4, 0.6, "FASTER", (), 9, 0),
    )  # fmt: skip
    line = "aten.softplus and what else its loops compute: 600.0 us, 3.0 times as long as in eager"
    assert line in to_text(overview_page(record), 200)
    busy = Comparison("eager", "compiled", 0.5, 0.4, 0.6, "INVALID", (), 9, 0)
    assert line not in to_text(overview_page(replace(record, comparison=busy)), 200)
    as_fast = replace(operator, seconds=2e-4)
    assert line not in to_text(overview_page(replace(record, operators=(as_fast,))), 200)


def test_a_loop_that_repeats_operations_says_who_can_change_that() -> None:
    figures = (
        Figure("seconds", 6e-4, "measured", 1e-4, "measured"),
        Figure("operations", 12.0, "inferred", None, "not-known"),
        Figure("between-bytes", 2048.0, "read", 0.0, "recorded"),
    )

    def text(again: Repeated, **more: object) -> str:
        work = LoopWork(
            "g", "k_0", "scalar", ("op0",), (("p0", 3), ("p1", 8)), 24, 12, again=48, repeated=(again,)
        )
        one = replace(DecomposedOperator("aten.softplus", 0.5, 6e-4, figures=figures, works=(work,)), **more)
        return to_text(overview_page(OverviewOutput(run=RUN, basis="time", operators=(one,))), 400)

    outer = Repeated("p0", 3, operations=4, stores=0, innermost=False, sized=0)
    page = text(outer)
    assert "4 of 12 operations do not depend on p0" in page
    assert "only another decomposition has" in page
    assert "eager: not measured" in page
    assert "no decision about these loops" in page
    assert "of the size of 2 of them: inductor can make buffers" in text(replace(outer, sized=2))
    assert "of the size of them all: inductor can" in text(replace(outer, sized=4))
    assert "a C++ compiler can do them before it" in text(replace(outer, innermost=True))
    tried = text(outer, tries=9, tried=4, gain=0.8, eager=1e-4, own=0.5, below=("aten.bmm",))
    assert "4 were timed: the best takes 0.80 of the call's time" in tried
    assert "eager: 50 % of its time is in its own code, the rest in aten.bmm" in tried
    assert "4 were timed: none is faster" in text(outer, tries=9, tried=4)
