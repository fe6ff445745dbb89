"""From samples to a table that adds up."""

from __future__ import annotations

from typing import Any

import pytest

from inductor_probe.bench.overheads import overheads_of, times_of_parts
from inductor_probe.model.call_parts import Overheads
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
)


def test_on_a_cpu_the_rows_add_up_to_the_call() -> None:
    """The second round ran at half the speed: it is not of the faster half, in any row."""
    overheads = table(written(*ON_CPU))
    seconds = {row.kind: row.seconds for row in overheads.rows}
    assert seconds == {
        "kernel": 157.5,  # both launches
        "library": 315.0,
        "launches": 2.0,  # of the kernels' time
        "wrapper": 52.5,
        "call": 525.0,
    }
    assert seconds["kernel"] + seconds["library"] + seconds["wrapper"] == seconds["call"]
    launches = {row.kind: row.launches for row in overheads.rows}
    assert (launches["kernel"], launches["library"], launches["launches"]) == (2, 1, 2)
    assert (overheads.rounds, overheads.bound) == (3, None)


def test_times_of_parts_are_those_of_the_table() -> None:
    times = times_of_parts([overhead_samples(written(*ON_CPU))])
    seconds = {name: time.seconds for name, time in times.items()}
    assert seconds == {"k0 alone #1": 105.0, "k0 alone #2": 52.5, "Compiled call": 525.0}


def test_a_process_that_was_slow_in_every_part_does_not_count() -> None:
    slow = [part(one["kind"], one["name"], [9 * time for time in one["seconds"]]) for one in ON_CPU[:4]]
    overheads = table(written(*ON_CPU[:4]), written(*slow), written(*ON_CPU[:4]))
    assert [row.seconds for row in overheads.rows if row.kind == "call"] == [525.0]


def test_kernels_that_take_longer_than_the_call_leave_no_wrapper() -> None:
    """`wrapper -42.33 us` is no time."""
    kernel = part("kernel", "k", [142.0, 142.5, 142.1])
    overheads = table(written(kernel, part("call", "call", [100.0, 100.4, 100.2])))
    wrapper = overheads.row("wrapper")
    assert wrapper is not None
    assert not wrapper.nonzero
    assert wrapper.seconds == 0.0
    assert (wrapper.below or 0.0) > 42.0, "nothing says that it is less"
    (remark,) = overheads.remarks
    assert "kernels take 42% longer than the call that runs them all" in sentence(remark)
    assert sum(row.share for row in overheads.rows if row.kind == "kernel") == 1.0
    assert sum(row.seconds for row in overheads.rows if row.kind == "kernel") == pytest.approx(100.1)


def test_rounds_of_all_processes_count() -> None:
    assert table(written(*ON_CPU), written(*ON_CPU)).rounds == 6


def test_without_kernels_no_wrapper_is_made_up() -> None:
    found = table(written(*ON_CPU[3:]))
    assert [row.kind for row in found.rows] == ["call"]


def test_what_may_be_nothing_is_not_told() -> None:
    seconds = [10.0, 12.0, 9.0, 11.0]
    parts = (part("kernel", "k", [10.0, 11.0, 10.0, 10.5]), part("call", "call", seconds))
    wrapper = table(written(*parts)).row("wrapper")
    assert wrapper is not None
    assert not wrapper.nonzero
    assert wrapper.below is not None
    assert wrapper.below > max(wrapper.seconds, 0)


def test_on_cuda_each_side_adds_up_and_the_slower_one_bounds() -> None:
    found = table(
        written(
            part("kernel", "t0", [4.0] * 3, [5.0] * 3),
            part("call", "call", [5.0] * 3, [20.0] * 3, [21.0] * 3),
            device="cuda",
        )
    )
    rows = {(row.side, row.kind): row.seconds for row in found.rows}
    assert rows == {
        ("device", "kernel"): 4.0,
        ("device", "rest"): 1.0,
        ("device", "call"): 5.0,
        ("host", "launches"): 5.0,
        ("host", "wrapper"): 15.0,
        ("host", "call"): 20.0,
    }
    assert (found.bound, found.wall) == ("host", 21.0)
    assert {row.side for row in found.rows if row.share == 1.0} == {"host", "device"}


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
