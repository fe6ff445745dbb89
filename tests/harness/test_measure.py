"""One measuring process: checks, what is timed of what is right, and the record that is made of it."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.jobs import JobError, import_modules
from inductor_probe.harness.measure import (
    Listener,
    Options,
    Times,
    bind_inputs,
    environment,
    process_record,
    run_checks,
    run_timing,
    time_pair,
)
from inductor_probe.harness.references import plain_check
from inductor_probe.harness.replays import kernel_pairs
from tests.bench_file.benches import kernels


def run(subject: Bench, **values: Any) -> tuple[bool, dict[str, Any]]:
    """Check and time a graph; return whether all is right, and the record as a reader of JSON gets it."""
    options = bind_inputs(subject, Options(budget=0.06, overheads=0.0, **values))
    checked, times = run_checks(subject, options), Times([])
    if checked.pristine.correct and not options.check_only:
        variants = checked.to_time(options.copies)
        times = run_timing(subject, options, checked.inputs, variants, Listener())
    record = process_record(
        subject,
        options,
        times,
        inputs=checked.inputs,
        variants=[plain_check(check) for check in (checked.pristine, *checked.checks)],
        warnings=checked.remarks,
        machine=environment(),
        command=["b.py"],
    )
    return checked.correct, json.loads(json.dumps(record, allow_nan=False))


def test_every_launch_is_timed_and_recorded() -> None:
    correct, record = run(kernels())
    assert correct
    pairs = {(pair["baseline"], pair["candidate"]) for pair in record["comparisons"]}
    assert pairs == {
        ("Compiled call", "call_v2"),
        ("k alone #1", "k_v2 alone #1"),
        ("k alone #2", "k_v2 alone #2"),
    }
    assert record["schema"] == 2
    assert (record["data"], record["first"], record["threads"], record["seed"]) == ("warm", "baseline", 1, 0)
    quads = [quad for pair in record["comparisons"] for quad in pair["quads"]]
    assert all(len(quad["seconds"]) == 4 and min(quad["seconds"]) > 0 for quad in quads)
    assert {"torch", "python", "cpu", "cores", "load"} <= set(record["environment"])
    assert [variant["name"] for variant in record["variants"]] == ["call", "call_v2", "k_v2"]


def test_wrong_copies_are_not_timed() -> None:
    correct, record = run(kernels(wrong=True))
    assert not correct
    wrong = {variant["name"]: variant for variant in record["variants"] if not variant["correct"]}
    assert set(wrong) == {"call_v2", "k_v2"}
    assert (wrong["k_v2"]["mismatches"], wrong["k_v2"]["first_bad"]) == (64, [0])
    pairs = {(pair["baseline"], pair["candidate"]) for pair in record["comparisons"]}
    assert pairs == {("Compiled call", None), ("k alone #1", None), ("k alone #2", None)}


def test_a_copy_that_needs_the_buffers_of_its_own_wrapper_is_right_there() -> None:
    subject = kernels()

    def rolled(x: Any, out: Any) -> None:
        out.copy_(x.roll(1) * 2)

    def call_v2(args: list[Any]) -> tuple[Any]:
        out = torch.empty(64)
        subject.namespace["k_v2"](args[0].roll(-1), out)
        return (out * 2,)

    subject.namespace.update(k_v2=rolled, call_v2=call_v2)
    correct, record = run(subject, check_only=True)
    assert correct
    (needed,) = record["variants"][2]["remarks"]
    assert (needed["code"], needed["numbers"]) == ("own-wrapper-needed", {"wrapper": "call_v2"})

    subject.namespace["call_v2"] = subject.namespace["call"]  # nothing launches the copy now
    correct, record = run(subject, check_only=True)
    assert not correct
    assert not record["variants"][2]["correct"]


def test_nan_is_recorded_so_that_every_reader_of_json_takes_it() -> None:
    subject = kernels()
    subject.namespace["k_v2"] = lambda x, out: None
    correct, record = run(subject, check_only=True)
    assert not correct
    assert record["variants"][1]["value"] == "nan"
    assert record["variants"][1]["max_error"] is None


def test_one_kernel_or_no_times_can_be_requested() -> None:
    _, record = run(kernels(), kernel="k")
    assert {pair["baseline"].split()[0] for pair in record["comparisons"]} == {"k"}
    _, record = run(kernels(), check_only=True)
    assert (record["comparisons"], len(record["variants"])) == ([], 3)


def test_candidates_can_be_set_up_first() -> None:
    subject, called = kernels(), list[str]()
    for name in ("k", "k_v2"):
        kernel = subject.namespace[name]
        subject.namespace[name] = lambda x, out, name=name, kernel=kernel: (
            called.append(name),
            kernel(x, out),
        )
    for options, order in ((Options(), ["k", "k_v2"]), (Options(copies_first=True), ["k_v2", "k"])):
        pair = next(kernel_pairs(subject, "k", subject.inputs(0), {"call_v2", "k_v2"}, print))
        called.clear()
        time_pair(pair, options, 0.01, random.Random(0), print)  # noqa: S311
        assert list(dict.fromkeys(called)) == order
    _, record = run(kernels(), copies_first=True, cold=True)
    assert (record["first"], record["data"]) == ("candidate", "cold")


def test_modules_are_imported_by_name_or_by_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "registers.py").write_text("print('registered by', __name__)")
    monkeypatch.syspath_prepend(str(tmp_path))
    import_modules({"imports": ["registers", str(tmp_path / "registers.py")]})
    assert capsys.readouterr().out.splitlines() == ["registered by registers"] * 2
    sys.modules.pop("registers")
    for name in ("nowhere", "nowhere.py"):
        with pytest.raises(JobError, match=f"--import {name}: "):
            import_modules({"imports": [name]})
