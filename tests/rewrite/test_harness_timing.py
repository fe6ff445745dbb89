from __future__ import annotations

import ctypes
import json
import math
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from inductor_probe.rewrite.harness.bench import Bench
from inductor_probe.rewrite.harness.checks import Check
from inductor_probe.rewrite.harness.inputs import make_tensor
from inductor_probe.rewrite.harness.launches import record
from inductor_probe.rewrite.harness.main import length_of_time, main, parse, time_pair
from inductor_probe.rewrite.harness.report import Timed, describe, duration, table, verdict_on
from inductor_probe.rewrite.harness.rings import Ring, make_ring
from inductor_probe.rewrite.harness.subjects import kernel_pairs
from inductor_probe.rewrite.harness.timing import Quad, Side, Subject, make_side, time_quad, time_quads, width


def side(name: str, run: Callable[..., object], *tensors: Any, cold: bool = False, slots: int = 3) -> Side:
    ring = Ring(tensors, slots, cold, random.Random(0))  # noqa: S311
    return make_side(Subject(name, lambda values: partial(run, *values), tensors), ring)


def test_a_side_that_drifts_starts_each_block_with_the_first_values() -> None:
    seen: list[float] = []

    def double_in_place(x: Any) -> None:
        seen.append(x[0].item())
        x.mul_(2)

    doubling = side("s", double_in_place, torch.ones(4))
    assert doubling.drifting == [0]
    assert 1 <= doubling.calls <= 16
    seen.clear()
    for pair in range(4):
        doubling.block(pair)
    assert seen.count(1.0) == 4
    assert all(values[0][0] == 1 for values in doubling.ring.slots)


def test_a_side_that_writes_the_same_again_needs_no_restoring() -> None:
    out = torch.empty(4)
    assert side("s", lambda x, out: out.copy_(x * 2), torch.ones(4), out).drifting == []


def test_a_block_asks_its_clock_for_so_many_calls() -> None:
    asked: list[int] = []

    def clock(run: Callable[[], object], calls: int) -> float:
        asked.append(calls)
        for _ in range(calls):
            run()
        return 0.5

    counted = side("s", lambda x: None, torch.ones(4))
    counted.clock, counted.calls = clock, 6
    assert counted.block(0) == 0.5
    assert asked == [6]


def test_both_sides_of_a_pair_take_the_same_slot_and_pairs_take_turns() -> None:
    taken: list[tuple[str, int]] = []
    x = torch.ones(4)
    ring = Ring((x,), 3, False, random.Random(0))  # noqa: S311

    def noting(name: str) -> Subject:
        return Subject(name, lambda values: lambda: taken.append((name, values[0].data_ptr())), (x,))

    a, b = make_side(noting("a"), ring), make_side(noting("b"), ring)
    a.calls = b.calls = 1
    places = [values[0].data_ptr() for values in ring.slots]
    taken.clear()
    order = time_quad(a, b, 1, False, random.Random(0)).order  # noqa: S311
    assert [name.upper() for name, _ in taken] == list(order)
    assert [place for _, place in taken] == [places[2], places[2], places[0], places[0]]


def test_cold_calls_take_one_slot_after_the_other_on_both_sides() -> None:
    taken: list[int] = []
    x = torch.ones(4)
    ring = Ring((x,), 5, True, random.Random(0))  # noqa: S311
    subject = Subject("s", lambda values: lambda: taken.append(values[0].data_ptr()), (x,))
    a, b = make_side(subject, ring), make_side(subject, ring)
    a.calls = b.calls = 2
    ring.next = 0
    taken.clear()
    for each in (a, b, a):
        each.block(0)
    places = [values[0].data_ptr() for values in ring.slots]
    assert taken == [places[at] for at in (0, 1, 2, 3, 4, 0)]


def test_slots_are_equal_and_lie_differently_within_their_pages() -> None:
    base = torch.arange(40.0)
    values = ([base[3:9], base.as_strided((2, 3), (5, 2), 1)], {"n": 7, "flag": torch.tensor([True])})
    ring = Ring(values, 6, False, random.Random(0))  # noqa: S311
    for (first, second), rest in ring.slots:
        assert torch.equal(first, values[0][0])
        assert torch.equal(second, values[0][1])
        assert (first.storage_offset(), second.stride(), rest["n"]) == (3, (5, 2), 7)
        assert first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()
        assert first.untyped_storage().data_ptr() % 64 == 0
    assert len({first.data_ptr() % 4096 for (first, _), _ in ring.slots}) > 3


def test_a_ring_is_as_large_as_it_should_be_and_says_when_it_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    rng = random.Random(0)  # noqa: S311
    x = torch.zeros(1024)
    assert len(make_ring([x], False, rng, said.append).slots) == 8
    monkeypatch.setattr("inductor_probe.rewrite.harness.rings.last_level_cache", lambda: 64 * 1024)
    assert len(make_ring([x], True, rng, said.append).slots) == 24  # one and a half caches
    assert said == []
    monkeypatch.setattr("inductor_probe.rewrite.harness.rings.last_level_cache", lambda: 64 << 20)
    assert len(make_ring([x], True, rng, said.append).slots) == 4096
    assert said == ["data are not wholly cold: the ring holds 16 MiB, the cache 64"]


def test_quads_are_guarded_every_fourth_time_and_score_b_over_a() -> None:
    x = torch.ones(20000)
    a, b = (side(name, torch.sum, x) for name in "ab")
    quads = time_quads(a, b, 0.2, 0.0, random.Random(0))  # noqa: S311
    assert len(quads) >= 8
    assert [quad.guard for quad in quads[:8]] == [False, False, False, True] * 2
    assert {quad.order for quad in quads} == {"ABBA", "BAAB"}
    assert Quad("ABBA", [1.0, 2.0, 2.0, 1.0], False, None).score() == pytest.approx(math.log(2))
    assert Quad("BAAB", [2.0, 1.0, 1.0, 2.0], False, None).score() == pytest.approx(math.log(2))


def test_linear_drift_cancels_in_a_quad() -> None:
    drifting = [math.exp(0.1 * at) for at in range(4)]
    assert Quad("ABBA", drifting, False, None).score() == pytest.approx(0)


def test_a_side_alone_is_timed_against_itself() -> None:
    alone = time_quads(side("a", torch.sum, torch.ones(2000)), None, 0.02, 1.0, random.Random(0))  # noqa: S311
    assert len(alone) >= 4
    assert all(quad.guard for quad in alone)


def test_timing_ends_early_by_the_width_of_what_is_known() -> None:
    fixed = side("a", lambda x: None, torch.ones(4))
    fixed.clock, fixed.calls = lambda run, calls: 1.0, 1
    quads = time_quads(fixed, fixed, 60.0, 0.001, random.Random(0))  # noqa: S311
    assert 8 <= len(quads) <= 20
    assert width([0.0] * 5) == math.inf


def test_the_width_is_that_of_an_interval_that_holds_the_median() -> None:
    rng = random.Random(0)  # noqa: S311
    held = 0
    for _ in range(300):
        ranked = sorted(rng.gauss(0, 1) for _ in range(60))
        assert width(ranked) == pytest.approx(ranked[38] - ranked[22])
        held += ranked[22] <= 0 <= ranked[38]
    assert 0.91 <= held / 300 <= 0.99


class FakeTriton:
    def run(self, x: Any, out: Any, n: int, *, stream: int) -> None:
        out.copy_(x * n + stream)


def bench(namespace: dict[str, Any], kernels: list[str]) -> Bench:
    def make_inputs(seed: int, *_: object) -> list[Any]:
        return [make_tensor((64,), (1,), torch.float32, "cpu", torch.Generator().manual_seed(seed))]

    return Bench("g", kernels, make_inputs, None, "none here", namespace)


def kernels(wrong: bool = False) -> Bench:
    def wrapper(kernel: str) -> Any:
        def call(args: list[Any]) -> tuple[Any]:
            (x,) = args
            args.clear()
            out = subject.namespace["empty_strided"]((64,), (1,))
            subject.namespace[kernel](x, out)
            subject.namespace[kernel](out, out)
            return (out,)

        return call

    def double(x: Any, out: Any) -> None:
        out.copy_(x * 2)

    def triple(x: Any, out: Any) -> None:
        out.copy_(x * 3)

    subject = bench({"empty_strided": torch.empty_strided, "k": double}, ["k"])
    subject.namespace.update(k_v2=triple if wrong else double, call=wrapper("k"), call_v2=wrapper("k_v2"))
    return subject


def test_launches_are_recorded_with_what_the_buffers_held_then() -> None:
    subject = kernels()
    first, second = record(subject, "call", "k", [torch.full((64,), 3.0)])
    assert first.args[0][0] == 3
    assert second.args[0][0] == 6
    assert second.args[0].data_ptr() == second.args[1].data_ptr()
    assert second.fits(second)
    assert callable(subject.namespace["k"])
    second.bind(subject.namespace["k"])()
    assert second.args[1][0] == 12


def test_triton_launches_are_replayed_through_run() -> None:
    kernel = FakeTriton()

    def call(args: list[Any]) -> tuple[Any]:
        out = torch.empty_like(args[0])
        subject.namespace["k"].run(args[0], out, 2, stream=5)
        return (out,)

    subject = bench({"k": kernel, "call": call}, ["k"])
    (launch,) = record(subject, "call", "k", [torch.ones(64)])
    launch.bind(kernel)()
    assert (launch.method, launch.args[1][0].item()) == ("run", 7.0)
    assert subject.namespace["k"] is kernel


def test_raw_pointers_cannot_be_replayed() -> None:
    subject = bench({"k": id}, ["k"])

    def call(args: list[Any]) -> tuple[()]:
        subject.namespace["k"](ctypes.c_void_p(args[0].data_ptr()))
        return ()

    subject.namespace["call"] = call
    (launch,) = record(subject, "call", "k", [torch.ones(64)])
    assert not launch.replayable()


def run(subject: Bench, capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, dict[str, Any], str]:
    status = main(subject, ["--json", "--budget", "60ms", *argv])
    out, err = capsys.readouterr()
    return status, json.loads(out), err


def test_a_run_times_every_launch_and_prints_json_alone(capsys: pytest.CaptureFixture[str]) -> None:
    status, result, err = run(kernels(), capsys)
    assert status == 0
    pairs = {(each["baseline"], each["candidate"]) for each in result["comparisons"]}
    assert pairs == {
        ("Compiled call", "call_v2"),
        ("k alone #1", "k_v2 alone #1"),
        ("k alone #2", "k_v2 alone #2"),
    }
    assert result["schema"] == 1
    assert (result["data"], result["first"], result["threads"], result["seed"]) == ("warm", "baseline", 1, 0)
    quads = [quad for each in result["comparisons"] for quad in each["quads"]]
    assert all(len(quad["seconds"]) == 4 and min(quad["seconds"]) > 0 for quad in quads)
    assert {"torch", "python", "cpu", "cores", "load"} <= set(result["environment"])
    assert [each["name"] for each in result["variants"]] == ["call", "call_v2", "k_v2"]
    assert "for a verdict, from several processes: probe bench-kernel g" in err


def test_wrong_copies_are_not_timed(capsys: pytest.CaptureFixture[str]) -> None:
    status, result, err = run(kernels(wrong=True), capsys)
    assert status == 1
    wrong = {each["name"]: each for each in result["variants"] if not each["correct"]}
    assert set(wrong) == {"call_v2", "k_v2"}
    assert (wrong["k_v2"]["mismatches"], wrong["k_v2"]["first_bad"]) == (64, [0])
    timed = {(each["baseline"], each["candidate"]) for each in result["comparisons"]}
    assert timed == {("Compiled call", None), ("k alone #1", None), ("k alone #2", None)}
    assert "k_v2: WRONG, not timed" in err


def test_a_copy_that_needs_the_buffers_of_its_own_wrapper_is_right_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    subject = kernels()

    def rolled(x: Any, out: Any) -> None:
        out.copy_(x.roll(1) * 2)

    def call_v2(args: list[Any]) -> tuple[Any]:
        out = torch.empty(64)
        subject.namespace["k_v2"](args[0].roll(-1), out)
        return (out * 2,)

    subject.namespace.update(k_v2=rolled, call_v2=call_v2)
    status, result, _ = run(subject, capsys, "--check-only")
    assert status == 0
    assert result["variants"][2]["note"] == "inside call_v2: it does not fit the buffers of call"

    subject.namespace["call_v2"] = subject.namespace["call"]  # nothing launches the copy now
    status, result, _ = run(subject, capsys, "--check-only")
    assert status == 1
    assert not result["variants"][2]["correct"]


def test_nan_is_said_in_json_that_every_reader_takes(capsys: pytest.CaptureFixture[str]) -> None:
    subject = kernels()
    subject.namespace["k_v2"] = lambda x, out: None
    status, result, _ = run(subject, capsys, "--check-only")
    assert status == 1
    assert result["variants"][1]["value"] == "nan"
    assert result["variants"][1]["max_error"] is None


def test_one_kernel_or_no_times_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    _, result, _ = run(kernels(), capsys, "--kernel", "k")
    assert {each["baseline"].split()[0] for each in result["comparisons"]} == {"k"}
    _, result, _ = run(kernels(), capsys, "--check-only")
    assert (result["comparisons"], len(result["variants"])) == ([], 3)
    with pytest.raises(SystemExit) as caught:
        main(kernels(), ["--kernel", "kk"])
    assert caught.value.code == 2
    assert "no kernel kk; there is k" in capsys.readouterr().err


def test_candidates_can_be_set_up_first(capsys: pytest.CaptureFixture[str]) -> None:
    subject, called = kernels(), list[str]()
    for name in ("k", "k_v2"):
        kernel = subject.namespace[name]
        subject.namespace[name] = lambda x, out, name=name, kernel=kernel: (
            called.append(name),
            kernel(x, out),
        )
    for argv, order in (((), ["k", "k_v2"]), (("--copies-first",), ["k_v2", "k"])):
        pair = next(kernel_pairs(subject, "k", subject.make_inputs(0), {"call_v2", "k_v2"}, print))
        called.clear()
        time_pair(pair, parse(subject, [*argv]), 0.01, random.Random(0), print)  # noqa: S311
        assert list(dict.fromkeys(called)) == order
    assert run(kernels(), capsys, "--copies-first", "--data", "cold")[1]["first"] == "candidate"


@pytest.mark.parametrize(("text", "seconds"), [("500ms", 0.5), ("10s", 10), ("2m", 120), ("0.25", 0.25)])
def test_budgets(text: str, seconds: float) -> None:
    assert length_of_time(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["soon", "5sm", "s"])
def test_a_budget_that_is_none_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(kernels(), ["--budget", text])
    assert "--budget" in capsys.readouterr().err


def test_the_table_fits_80_columns_and_shows_what_is_wrong() -> None:
    long = "cpp_fused__to_copy_abs_add_arange_clamp_div_index_lt_mul_rsub_sub_sum_unsqueeze_0 alone"
    quads = [Quad("ABBA", [1e-5, 1.1e-5, 1.1e-5, 1e-5], False, None)] * 3
    quads.append(Quad("ABBA", [1e-5, 1e-5, 1e-5, 1e-5], True, None))
    lines = table([Timed("Compiled call", long, quads, 1.0), Timed(long, None, quads[3:], 1.0)], ["call_v2"])
    assert max(map(len, lines.splitlines())) <= 80
    head, first, second, alone, wrong = lines.splitlines()
    assert head.split() == ["median", "MAD", "ratio"]
    assert first.split() == ["Compiled", "call", "10.00", "us", "0.000", "us"]
    assert second.endswith("unsqueeze_0 alone   11.00 us   0.000 us    1.100x")
    assert alone.startswith("cpp_fused")
    assert wrong == "call_v2: WRONG, not timed"


@pytest.mark.parametrize(
    ("seconds", "said"), [(2.5, "2.500 s"), (0.0123, "12.30 ms"), (1.55e-4, "155.0 us"), (3e-8, "0.030 us")]
)
def test_times_have_four_digits(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_inputs_and_findings_in_words() -> None:
    image = torch.zeros(1, 3, 4, 4, dtype=torch.uint8)
    assert describe([5, image.contiguous(memory_format=torch.channels_last)]) == "1x3x4x4 uint8 channels_last"
    assert describe([image, torch.ones(2)]) == "1x3x4x4 uint8 contiguous"
    assert describe([3]) == "no tensor inputs"
    check = Check("v", False, 2.0, 3, 9, (1, 2), 0, 5.0, 7.0)
    said = "v: WRONG, 3 of 9 elements, max error 2; first at output 0[1, 2]: 5.0 instead of 7.0"
    assert verdict_on(check) == said
    assert verdict_on(Check("v", max_error=0.0)) == "v: correct, max error 0"
