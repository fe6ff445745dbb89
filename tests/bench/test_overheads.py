"""From samples to a table that adds up."""

from __future__ import annotations

from typing import Any

import pytest

from inductor_probe.bench.overheads import overheads_of
from inductor_probe.harness.remarks import remark
from inductor_probe.model.bench import Overheads
from inductor_probe.report.words.remarks import sentence
from inductor_probe.store.samples import overhead_samples


def part(kind: str, name: str, seconds: list[float], host: Any = (), wall: Any = ()) -> dict[str, Any]:
    own = {"seconds": seconds, "host": list(host), "wall": list(wall)}
    return {"kind": kind, "name": name, **own, "repeated": 1, "disturbed": 0}


def written(*parts: dict[str, Any], device: str = "cpu", **others: Any) -> dict[str, Any]:
    found = {"device": device, "allocations": 2, "parts": list(parts), "flops": None, "remarks": []}
    return {**found, **others}


def table(*processes: dict[str, Any]) -> Overheads:
    return overheads_of([overhead_samples(each) for each in processes])


ON_CPU = (
    part("kernel", "k0", [100.0, 200.0, 110.0], [1.0, 1.0, 1.0]),
    part("kernel", "k0", [50.0, 100.0, 55.0], [1.0, 1.0, 1.0]),
    part("library", "aten.mm.out", [300.0, 600.0, 330.0]),
    part("call", "call", [500.0, 1000.0, 550.0]),
    part("guards", "guards", [9.0, 10.0, 9.0], [1.0, 2.0, 1.0]),
    part("compiled", "compiled", [510.0, 1010.0, 560.0]),
)


def test_on_a_cpu_the_rows_add_up_to_the_compiled_callable() -> None:
    found = table(written(*ON_CPU))
    medians = {row.kind: row.median for row in found.rows}
    assert medians == {
        "kernel": 163.0,  # both launches, without what an empty kernel takes
        "library": 330.0,
        "launches": 2.0,
        "wrapper": 55.0,
        "guards": 10.0,
        "total": 560.0,
    }
    assert sum(each for kind, each in medians.items() if kind != "total") == medians["total"]
    assert sum(row.share for row in found.rows) == pytest.approx(2.0)
    launches = {row.kind: row.launches for row in found.rows}
    assert (launches["kernel"], launches["library"], launches["launches"]) == (2, 1, 2)
    assert (found.total_of, found.guards_alone, found.rounds, found.bound) == ("compiled", 8.0, 3, None)


def test_differences_are_taken_within_a_round() -> None:
    """The second round ran at half the speed; the guards differ by nothing all the same."""
    found = table(written(*ON_CPU))
    guards = found.row("guards")
    assert guards is not None
    assert (guards.mad, guards.nonzero) == (0.0, True)


def test_guards_too_little_to_tell_beside_a_long_call_are_those_timed_by_themselves() -> None:
    noisy = part("compiled", "compiled", [400.0, 1100.0, 550.0])
    found = table(written(*ON_CPU[:5], noisy))
    guards, total = found.row("guards"), found.row("total")
    assert guards is not None
    assert total is not None
    assert (guards.median, total.median) == (8.0, 558.0)
    assert "too short to measure" in sentence(found.remarks[0])


def test_rounds_of_all_processes_count() -> None:
    assert table(written(*ON_CPU), written(*ON_CPU)).rounds == 6


def test_without_guards_in_one_process_the_total_is_call() -> None:
    found = table(written(*ON_CPU), written(*ON_CPU[:4], remarks=[remark("guards-not-timed", error="x")]))
    assert found.total_of == "call"
    assert found.row("guards") is None
    assert list(map(sentence, found.remarks)) == ["guards are not timed: x"]


def test_without_kernels_no_wrapper_is_made_up() -> None:
    found = table(written(*ON_CPU[3:]))
    assert [row.kind for row in found.rows] == ["guards", "total"]


def test_what_may_be_nothing_is_not_told() -> None:
    seconds = [10.0, 12.0, 9.0, 11.0]
    parts = (part("kernel", "k", [10.0, 11.0, 10.0, 10.5]), part("call", "call", seconds))
    wrapper = table(written(*parts)).row("wrapper")
    assert wrapper is not None
    assert not wrapper.nonzero


def test_on_cuda_each_side_adds_up_and_the_slower_one_bounds() -> None:
    found = table(
        written(
            part("kernel", "t0", [4.0] * 3, [5.0] * 3),
            part("call", "call", [5.0] * 3, [20.0] * 3, [21.0] * 3),
            part("compiled", "compiled", [], [30.0] * 3, [31.0] * 3),
            part("guards", "guards", [12.0] * 3, [2.0] * 3),
            device="cuda",
        )
    )
    rows = {(row.side, row.kind): row.median for row in found.rows}
    assert rows == {
        ("device", "kernel"): 4.0,
        ("device", "rest"): 1.0,
        ("device", "total"): 5.0,
        ("host", "launches"): 5.0,
        ("host", "wrapper"): 15.0,
        ("host", "guards"): 10.0,
        ("host", "total"): 30.0,
    }
    assert (found.bound, found.wall, found.guards_alone) == ("host", 31.0, 10.0)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (written(), "has 0 times of call instead of 1"),
        (written(part("call", "call", [1.0]), part("kernel", "k", [1.0, 2.0])), "different length"),
        (written(part("call", "call", [-1.0])), r"parts\[0\].seconds\[0\] is not between"),
        (
            written(part("call", "call", [1.0]), part("what", "k", [1.0])),
            "kind is 'what', not one of 'kernel'",
        ),
    ],
)
def test_what_is_no_overheads_is_refused(broken: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        overhead_samples(broken)
