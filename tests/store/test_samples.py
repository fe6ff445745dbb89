from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from inductor_probe.bench.result import result_of
from inductor_probe.errors import NotFoundError, UnreadableError
from inductor_probe.harness.remarks import TYPES, remark
from inductor_probe.model.codec import to_json
from inductor_probe.model.timing import KernelWork, PeakRate, Roofline
from inductor_probe.report.pages.bench import bench_page
from inductor_probe.report.terminal import to_text
from inductor_probe.report.words.remarks import sentence
from inductor_probe.store.samples import read_samples, samples_text

QUAD = {"order": "ABBA", "seconds": [1e-6, 2e-6, 2e-6, 1e-6], "guard": False, "disturbed": None}
GUARD = {"order": "BAAB", "seconds": [1e-6] * 4, "guard": True, "disturbed": None}
COUNTS = {"repeated": 0, "disturbed": 0}
PROCESS: dict[str, Any] = {
    "schema": 2,
    "graph": "g",
    "kernels": ["k"],
    "inputs": "4x4 float32 contiguous",
    "values": "random",
    "sizes": {},
    "data": "warm",
    "threads": 1,
    "seed": 0,
    "first": "baseline",
    "command": ["output_code_bench.py"],
    "environment": {"torch": "2.13.0", "cores": 2, "gpu": None},
    "warnings": [remark("data-not-cold", ring_mib=3, cache_mib=32)],
    "variants": [
        {
            "name": "k_v2",
            "correct": True,
            "max_error": 0.0,
            "mismatches": 0,
            "elements": 9,
            "first_bad": None,
            "first_bad_output": None,
            "value": None,
            "expected": None,
            "remarks": [],
        }
    ],
    "ablations": {},
    "configs": [],
    "comparisons": [
        {"baseline": "k alone", "candidate": "k_v2 alone", "spent": 1.0, "quads": [QUAD, QUAD, QUAD, GUARD]},
        {"baseline": "m alone", "candidate": None, "spent": 1.0, "quads": [GUARD] * 4},
    ],
}


def kept(folder: Path, *processes: dict[str, Any], margin: float = 0.01) -> Path:
    path = folder / "output_code_bench.json"
    path.write_text(samples_text(processes, margin))
    return path


def test_what_was_kept_is_read_and_judged_again(tmp_path: Path) -> None:
    read = read_samples(kept(tmp_path, PROCESS, PROCESS, PROCESS, margin=0.02))
    result = result_of(read)
    assert (result.graph, result.kernels, result.processes, result.margin) == ("g", ("k",), 3, 0.02)
    (found,) = result.comparisons
    assert (found.baseline, found.candidate) == ("k alone", "k_v2 alone")
    assert (found.ratio, found.verdict, found.quads) == (pytest.approx(2), "SLOWER", 9)
    (alone,) = result.alone
    assert (alone.name, alone.seconds, alone.samples) == ("m alone", 1e-6, 12)
    assert read.processes[0].environment["torch"] == "2.13.0"


def test_a_roofline_is_kept_so_that_the_same_report_can_be_made_again(tmp_path: Path) -> None:
    part = {"kind": "kernel", "name": "k", "seconds": [1e-4] * 5, "host": [1e-7] * 5, "wall": []}
    call = {"kind": "call", "name": "call", "seconds": [1.2e-4] * 5, "host": [], "wall": []}
    parts = [part | COUNTS, call | COUNTS]
    overheads = {"device": "cpu", "allocations": 1, "parts": parts, "flops": None, "remarks": []}
    machine = Roofline("2.13.0", "cpu", 1, 1 << 21, 1 << 25, (PeakRate("copy", "cache", 1 << 20, 5e10, 9),))
    works = (KernelWork("k", 1 << 20), KernelWork("mm", None, 9, "float32", indirect=True))
    path = tmp_path / "output_code_bench.json"
    path.write_text(samples_text([{**PROCESS, "overheads": overheads}] * 3, 0.01, machine, works))
    read = read_samples(path)
    assert (read.roofline, read.works) == (machine, works)
    result = result_of(read)
    assert result.roofline == machine
    (row,) = result.roofline_rows
    assert (row.work.name, row.place) == ("k", "cache")
    assert row.share == pytest.approx((1 << 20) / 1e-4 / 5e10, rel=1e-3)
    shown = to_text(bench_page(result, details=True), 200)
    assert "this machine copies 50 GB/s in cache (2 MiB)" in shown
    assert to_json(result)["roofline_rows"][0]["work"]["name"] == "k"  # type: ignore[call-overload, index]


def test_a_file_without_a_roofline_is_read(tmp_path: Path) -> None:
    path = kept(tmp_path, PROCESS)
    old = json.loads(path.read_text())
    del old["roofline"]
    path.write_text(json.dumps(old))
    assert (read_samples(path).roofline, read_samples(path).works) == (None, ())
    assert result_of(read_samples(path)).roofline is None


def test_what_triton_kernels_take_is_read_and_shown(tmp_path: Path) -> None:
    taken = {
        "k": {"registers": 168, "spills": 4, "shared": 32768},
        "k_v2": {"registers": 96, "spills": 0, "shared": 0},
    }
    result = result_of(read_samples(kept(tmp_path, {**PROCESS, "resources": taken})))
    assert to_json(result)["resources"] == taken  # type: ignore[call-overload, index]
    shown = to_text(bench_page(result, details=True), 100)
    (line,) = [line for line in shown.splitlines() if "32768" in line]
    assert line.split() == ["k", "168", "4", "32768"]


def test_nothing_of_what_a_process_wrote_is_lost(tmp_path: Path) -> None:
    extra = {**PROCESS, "clock": {"mhz": 3100}}
    assert json.loads(kept(tmp_path, extra).read_text())["processes"] == [extra]


def test_a_variant_is_wrong_if_any_process_found_it_wrong(tmp_path: Path) -> None:
    wrong = deepcopy(PROCESS)
    wrong["variants"][0].update(correct=False, mismatches=3, first_bad=[1, 2], first_bad_output=0)
    wrong["variants"][0].update(value=1.5, expected="nan")
    result = result_of(read_samples(kept(tmp_path, PROCESS, wrong, PROCESS)))
    assert [(each.correct, each.mismatches, each.first_bad) for each in result.variants] == [
        (False, 3, (1, 2))
    ]
    assert (result.variants[0].value, result.variants[0].expected) == (1.5, "nan")


def test_warnings_that_differ_in_numbers_are_given_once(tmp_path: Path) -> None:
    again = remark("data-not-cold", ring_mib=4, cache_mib=32)
    pointers = [remark("foreign-pointers", name) for name in ("k", "m", "k")]
    other = {**PROCESS, "warnings": [again, *pointers]}
    result = result_of(read_samples(kept(tmp_path, PROCESS, other)))
    assert [(each.code, each.subject.name) for each in result.warnings] == [
        ("data-not-cold", ""),
        ("foreign-pointers", "k"),
        ("foreign-pointers", "m"),
    ]
    assert result.warnings[0].number("ring_mib") == 3


@pytest.mark.parametrize("code", TYPES)
def test_a_remark_without_its_numbers_is_shown_as_its_code(tmp_path: Path, code: str) -> None:
    """A file may come from anybody: what it lacks must not end in a KeyError."""
    bare = remark(code, "k") | {"numbers": {"ring_mib": "x"}}
    (read,) = read_samples(kept(tmp_path, {**PROCESS, "warnings": [bare]})).processes[0].warnings
    assert read.code == code
    assert sentence(read)


def broken(**changes: Any) -> str:
    process = deepcopy(PROCESS)
    process["comparisons"][0]["quads"][0] = {**QUAD, **changes}
    return json.dumps({"schema": 2, "probe": "0", "margin": 0.01, "processes": [process]})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        json.dumps(PROCESS),
        json.dumps({"schema": 2, "margin": 0.01, "processes": []}),
        json.dumps({"schema": 2, "margin": 2, "processes": [PROCESS]}),
        json.dumps({"schema": 2, "margin": 0.01, "processes": [{**PROCESS, "schema": 0}]}),
        json.dumps({"schema": 2, "margin": 0.01, "processes": [{**PROCESS, "comparisons": [3]}]}),
        broken(order="AABB"),
        broken(seconds=[1, 2, 3]),
        broken(seconds=[0, 1, 1, 1]),
        broken(seconds=[float("nan")] * 4),
        broken(seconds=["x"] * 4),
        broken(guard=True).replace('"guard": false', '"guard": true'),
    ],
)
def test_a_file_that_is_something_else_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "output_code_bench.json"
    path.write_text(text)
    with pytest.raises(UnreadableError, match="is not what probe bench-kernel writes") as caught:
        read_samples(path)
    assert str(path) in caught.value.message


def test_a_newer_file_asks_for_a_newer_probe(tmp_path: Path) -> None:
    path = tmp_path / "output_code_bench.json"
    path.write_text('{"schema": 3}')
    with pytest.raises(UnreadableError, match="was written by a newer probe"):
        read_samples(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="does not exist"):
        read_samples(tmp_path / "output_code_bench.json")


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("threads",), -1, "processes[0].threads is not between 0 and"),
        (("threads",), 10**400, "processes[0].threads is not between"),
        (("threads",), True, "processes[0].threads is True, not an integer"),
        (("kernels",), "k", "processes[0].kernels is 'k', not a list"),
        (("environment", "cores"), [], "processes[0].environment.cores is a list, not"),
        (("variants", 0, "elements"), None, "processes[0].variants[0].elements is None, not an integer"),
        (
            ("variants", 0, "max_error"),
            float("inf"),
            "processes[0].variants[0].max_error is inf, not a",
        ),
        (("comparisons", 0, "spent"), "long", "processes[0].comparisons[0].spent is 'long', not a number"),
        (("comparisons", 0, "quads"), [], "processes[0].comparisons[0].quads is empty"),
        (("comparisons", 0, "quads", 0, "seconds", 2), 5e-324, "quads[0].seconds[2] is not between"),
        (("comparisons", 0, "quads", 0, "seconds", 2), 10**400, "quads[0].seconds[2] is 1000"),
        (("ablations",), [], "processes[0].ablations is a list, not an object"),
        (("warnings",), [{"code": "none-such"}], "processes[0].warnings"),
        (("warnings",), 3, "processes[0].warnings is"),
    ],
)
def test_a_mutated_sample_is_named_by_its_key(
    tmp_path: Path, keys: tuple[str | int, ...], value: object, said: str
) -> None:
    process: Any = deepcopy(PROCESS)
    holder = process
    for key in keys[:-1]:
        holder = holder[key]
    holder[keys[-1]] = value
    path = tmp_path / "output_code_bench.json"
    path.write_text(json.dumps({"schema": 2, "probe": "0", "margin": 0.01, "processes": [process]}))
    with pytest.raises(UnreadableError) as caught:
        read_samples(path)
    assert caught.value.message.startswith(f"{path} is not what probe bench-kernel writes: ")
    assert said in caught.value.message
    assert "run probe bench-kernel again" in (caught.value.hint or "")


def test_processes_that_differ_by_far_have_a_ratio_and_an_interval(tmp_path: Path) -> None:
    """Their interval was beyond any float: math.exp raised OverflowError."""
    slow, fast = deepcopy(PROCESS), deepcopy(PROCESS)
    for process, seconds in ((slow, [1e-15, 1e6, 1e6, 1e-15]), (fast, [1e6, 1e-15, 1e-15, 1e6])):
        for quad in process["comparisons"][0]["quads"]:
            quad["seconds"] = seconds
    result = result_of(read_samples(kept(tmp_path, slow, fast)))
    json.loads(json.dumps(to_json(result), allow_nan=False))
    assert "UNDECIDED" in to_text(bench_page(result), 100)


def overheads(*parts: dict[str, Any], device: str = "cpu") -> dict[str, Any]:
    return {"device": device, "allocations": 1, "parts": list(parts), "flops": None, "remarks": []}


def timed(kind: str, seconds: list[float], host: list[float]) -> dict[str, Any]:
    return {"kind": kind, "name": kind, "seconds": seconds, "host": host, "wall": [], **COUNTS}


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ([overheads(timed("call", [], []))], "overheads.parts has no times of call"),
        ([overheads(timed("call", [1.0], []), timed("call", [1.0], []))], "has 2 times of call instead of 1"),
        ([overheads(timed("call", [1.0], []), device="cuda")], "has no times of call"),
        (
            [overheads(timed("call", [1.0], [])), overheads(timed("call", [1.0], [1.0]), device="cuda")],
            "its processes ran on different devices",
        ),
    ],
)
def test_overheads_that_cannot_be_taken_apart_are_named(
    tmp_path: Path, samples: list[dict[str, Any]], said: str
) -> None:
    path = kept(tmp_path, *({**PROCESS, "overheads": each} for each in samples))
    with pytest.raises(UnreadableError) as caught:
        read_samples(path)
    assert said in caught.value.message
