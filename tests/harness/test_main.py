from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.main import main, parse
from inductor_probe.harness.measure import time_pair
from inductor_probe.harness.options import seconds_of
from inductor_probe.harness.replays import kernel_pairs
from tests.bench_file.benches import kernels


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
    assert result["schema"] == 2
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
    (needed,) = result["variants"][2]["remarks"]
    assert (needed["code"], needed["numbers"]) == ("own-wrapper-needed", {"wrapper": "call_v2"})

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


def test_a_module_is_imported_before_inputs_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "registers.py").write_text("print('registered by', __name__)")
    monkeypatch.syspath_prepend(str(tmp_path))
    parse(kernels(), ["--import", "registers", "--import", str(tmp_path / "registers.py")])
    assert capsys.readouterr().out.splitlines() == ["registered by registers"] * 2
    sys.modules.pop("registers")
    for name in ("nowhere", "nowhere.py"):
        with pytest.raises(SystemExit):
            parse(kernels(), ["--import", name])
        assert f"error: --import {name}: " in capsys.readouterr().err


def test_candidates_can_be_set_up_first(capsys: pytest.CaptureFixture[str]) -> None:
    subject, called = kernels(), list[str]()
    for name in ("k", "k_v2"):
        kernel = subject.namespace[name]
        subject.namespace[name] = lambda x, out, name=name, kernel=kernel: (
            called.append(name),
            kernel(x, out),
        )
    for argv, order in (((), ["k", "k_v2"]), (("--copies-first",), ["k_v2", "k"])):
        pair = next(kernel_pairs(subject, "k", subject.inputs(0), {"call_v2", "k_v2"}, print))
        called.clear()
        time_pair(pair, parse(subject, [*argv])[0], 0.01, random.Random(0), print)  # noqa: S311
        assert list(dict.fromkeys(called)) == order
    assert run(kernels(), capsys, "--copies-first", "--data", "cold")[1]["first"] == "candidate"


@pytest.mark.parametrize(("text", "seconds"), [("500ms", 0.5), ("10s", 10), ("2m", 120), ("0.25", 0.25)])
def test_budgets(text: str, seconds: float) -> None:
    assert seconds_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["soon", "5sm", "s"])
def test_a_budget_that_is_none_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(kernels(), ["--budget", text])
    assert "--budget" in capsys.readouterr().err
