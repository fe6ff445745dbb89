"""The overhead table in words."""

from __future__ import annotations

import pytest
from inline_snapshot import snapshot

from inductor_probe.model.call_parts import CallPart, Overheads, Side
from inductor_probe.model.remark import Subject, measured
from inductor_probe.report.pages.overheads import overhead_sentence, overhead_table
from inductor_probe.report.pages.whatif import with_sides
from inductor_probe.report.terminal import to_text
from tests.builders import bench_result


def row(kind: str, name: str, us: float, *, side: Side = "host", launches: int = 0) -> CallPart:
    return CallPart(kind, name, side, us * 1e-6, 1e-7, 4e-6, us / 521, launches)


CPU = Overheads(
    device="cpu",
    rows=(
        row("kernel", "cpp_fused_a_0", 442, launches=2),
        row("launches", "launches", 12, launches=2),
        row("wrapper", "wrapper", 70),
        row("call", "Compiled call", 512),
    ),
    allocations=2, rounds=40, repeated=3, disturbed=1,
    remarks=(measured("flops-not-counted", "analysis", Subject("graph", ""), {"error": "no formula"}),),
)  # fmt: skip
CUDA = Overheads(
    device="cuda",
    rows=(
        row("kernel", "triton_a_0", 5, side="device", launches=1),
        row("rest", "rest", 5, side="device"),
        row("call", "Compiled call", 6, side="device"),
        row("launches", "launches", 8, launches=1),
        row("wrapper", "wrapper", -2),
        row("call", "Compiled call", 6.5),
    ),
    allocations=1, rounds=40, wall=7e-6, bound="host",
)  # fmt: skip


def shown(overheads: Overheads, width: int = 80) -> str:
    return to_text(overhead_table(overheads), width)


def test_a_cpu_in_one_sentence() -> None:
    assert overhead_sentence(CPU) == (
        "Compiled call takes 512.0 us: kernels 442.0 us; rest (wrapper) 70.00 us, 2 allocations."
    )


def test_cuda_says_which_side_limits_the_rate_and_what_cannot_be_measured() -> None:
    assert overhead_sentence(CUDA) == (
        "Compiled call takes 6.500 us of the host's time: 1 launch 8.000 us; "
        "rest (wrapper) not measurable (below 4.000 us), 1 allocation. "
        "The GPU is busy for 6.000 us: the host limits the rate of calls, 7.000 us from call to call."
    )


def test_the_table_has_a_row_for_each_part_and_the_remarks() -> None:
    assert shown(CPU) == snapshot("""\
                         time       MAD   share
cpp_fused_a_0 x2     442.0 us  0.100 us  84.8 %
  of that: launches  12.00 us  0.100 us   2.3 %
rest (wrapper)       70.00 us  0.100 us  13.4 %
Compiled call        512.0 us  0.100 us  98.3 %
flops are not counted: no formula
times of one process: those of others differ by a few percent; ratios are of all
processes
1 block of calls shared their core with other programs in every attempt\
""")


def test_a_difference_that_noise_makes_negative_is_no_time() -> None:
    """Reports had `wrapper -42.33 us`."""
    text = shown(CUDA)
    assert text == snapshot("""\
                                                  time       MAD  share
triton_a_0                                    5.000 us  0.100 us  1.0 %
other work of the GPU                         5.000 us  0.100 us  1.0 %
Compiled call (GPU)                           6.000 us  0.100 us  1.2 %
launches                                      8.000 us  0.100 us  1.5 %
rest (wrapper)         not measurable (below 4.000 us)
Compiled call (host)                          6.500 us  0.100 us  1.2 %
times of one process: those of others differ by a few percent; ratios are of all
processes\
""")
    assert "-2.000" not in text


@pytest.mark.parametrize("overheads", [CPU, CUDA])
def test_the_table_fits_80_columns(overheads: Overheads) -> None:
    assert all(len(line) <= 80 for line in shown(overheads).splitlines())


def test_overheads_in_a_whatif_are_named_as_in_its_table() -> None:
    named = with_sides(bench_result(kernels=("cpp_fused_a_0",), overheads=CPU)).overheads
    assert named is not None
    assert overhead_sentence(named).startswith("A takes 512.0 us: kernels 442.0 us")
    assert [row.name for row in named.rows if row.kind == "kernel"] == ["cpp_fused_a_0 of A"]
