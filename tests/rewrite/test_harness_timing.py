from __future__ import annotations

import ctypes
import json
from dataclasses import replace
from typing import Any

import pytest
import torch

from inductor_probe.rewrite.harness.bench import Bench
from inductor_probe.rewrite.harness.checks import Check
from inductor_probe.rewrite.harness.inputs import make_tensor
from inductor_probe.rewrite.harness.launches import record
from inductor_probe.rewrite.harness.main import main
from inductor_probe.rewrite.harness.report import describe, table, verdict_on, wandering
from inductor_probe.rewrite.harness.timing import Quad, Side, compare_times, conclude, make_side, time_alone


def test_a_side_that_drifts_is_restored_before_each_block() -> None:
    x, seen = torch.ones(4), []

    def double_in_place() -> None:
        seen.append(x[0].item())
        x.mul_(2)

    side = make_side("s", double_in_place, [x])
    assert side.restore is not None
    assert 1 <= side.calls <= 16
    seen.clear()
    side.block()
    side.block()
    assert seen.count(1.0) == 2


def test_a_side_that_writes_the_same_again_needs_no_restoring() -> None:
    x, out = torch.ones(4), torch.empty(4)
    assert make_side("s", lambda: out.copy_(x * 2), [x, out]).restore is None


def test_samples_are_seconds_a_call() -> None:
    calls = 0

    def count() -> None:
        nonlocal calls
        calls += 1

    side = Side("s", count, calls=50)
    side.block()
    assert calls == 50
    assert len(side.samples) == 1
    time_alone(side, 0.01)
    assert len(side.samples) >= 3
    assert calls > 50


def test_comparing_keeps_all_quads_and_guards_every_fourth() -> None:
    x = torch.ones(20000)
    a, b = (make_side(name, x.sum, [x]) for name in "ab")
    found = compare_times(a, b, 0.3, seed=0)
    assert len(found.quads) >= 8
    assert [quad.guard for quad in found.quads[:8]] == [False, False, False, True] * 2
    assert len(b.samples) == 2 * sum(not quad.guard for quad in found.quads)
    assert found.low <= found.ratio <= found.high


class FakeTriton:
    def run(self, x: Any, out: Any, n: int, *, stream: int) -> None:
        out.copy_(x * n + stream)


def bench(namespace: dict[str, Any], kernels: list[str]) -> Bench:
    def make_inputs(seed: int) -> list[Any]:
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
    status = main(subject, ["--json", "--min-run-time", "0.02", *argv])
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
    assert {each["verdict"] for each in result["comparisons"]} <= {
        "FASTER",
        "SLOWER",
        "SAME",
        "UNDECIDED",
        "INVALID",
    }
    assert [each["name"] for each in result["variants"]] == ["call", "call_v2", "k_v2"]
    assert all(each["samples"] and each["median"] > 0 for each in result["measurements"])
    assert "Times are in" in err


def test_wrong_copies_are_not_timed(capsys: pytest.CaptureFixture[str]) -> None:
    status, result, err = run(kernels(wrong=True), capsys)
    assert status == 1
    wrong = {each["name"]: each for each in result["variants"] if not each["correct"]}
    assert set(wrong) == {"call_v2", "k_v2"}
    assert (wrong["k_v2"]["mismatches"], wrong["k_v2"]["first_bad"]) == (64, [0])
    assert {each["name"] for each in result["measurements"]} == {"Compiled call", "k alone #1", "k alone #2"}
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
    assert {each["name"].split()[0] for each in result["measurements"]} == {"k", "k_v2"}
    _, result, _ = run(kernels(), capsys, "--check-only")
    assert (result["measurements"], len(result["variants"])) == ([], 3)
    with pytest.raises(SystemExit) as caught:
        main(kernels(), ["--kernel", "kk"])
    assert caught.value.code == 2
    assert "no kernel kk; there is k" in capsys.readouterr().err


def test_the_table_fits_80_columns_and_shows_what_is_wrong() -> None:
    long = "cpp_fused__to_copy_abs_add_arange_clamp_div_index_lt_mul_rsub_sub_sum_unsqueeze_0 alone"
    sides = [Side(name, lambda: None, samples=[1e-5]) for name in ("Compiled call", long)]
    shown = table(
        "model__0_inference_0.0", "1x3x224x224 uint8 channels_last", sides, [Check("call_v2", False)]
    )
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 80
    assert any("cpp_fused" in line and "unsqueeze_0 alone" in line and "10.0" in line for line in lines)
    assert any("call_v2: WRONG, not timed" in line for line in lines)


def test_inputs_and_findings_in_words() -> None:
    image = torch.zeros(1, 3, 4, 4, dtype=torch.uint8)
    assert describe([5, image.contiguous(memory_format=torch.channels_last)]) == "1x3x4x4 uint8 channels_last"
    assert describe([image, torch.ones(2)]) == "1x3x4x4 uint8 contiguous"
    assert describe([3]) == "no tensor inputs"
    check = Check("v", False, 2.0, 3, 9, (1, 2), 0, 5.0, 7.0)
    said = "v: WRONG, 3 of 9 elements, max error 2; first at output 0[1, 2]: 5.0 instead of 7.0"
    assert verdict_on(check) == said
    assert verdict_on(Check("v", max_error=0.0)) == "v: correct, max error 0"


def test_samples_of_a_side_are_kept_over_all_its_comparisons() -> None:
    x = torch.ones(20000)
    a, b, c = (make_side(name, x.sum, [x]) for name in "abc")
    first = compare_times(a, b, 0.05, seed=0)
    kept = len(a.samples)
    second = compare_times(a, c, 0.05, seed=0)
    assert len(a.samples) > kept > 0
    assert all(seconds > 0 for found in (first, second) for seconds in found.medians)


def test_a_side_that_took_another_time_in_the_next_comparison_is_named() -> None:
    quads = [Quad(0.0, guard, False) for guard in (False, True) for _ in range(8)]
    found = [conclude("call", name, quads, 1) for name in "ab"]
    steady = [replace(each, medians=(1e-6, 1e-6)) for each in found]
    assert wandering(steady) == []
    (warning,) = wandering([steady[0], replace(found[1], medians=(2e-6, 1e-6))])
    assert warning.startswith("call took 1.0 to 2.0 us")
