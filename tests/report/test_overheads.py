"""The overhead table in words."""

from __future__ import annotations

from inductor_probe.model.bench import OverheadRow, Overheads, Side
from inductor_probe.model.remark import Subject, reported
from inductor_probe.report.pages.bench import overhead_sentence, overhead_table
from inductor_probe.report.terminal import to_text


def row(
    kind: str, name: str, us: float, *, side: Side = "host", nonzero: bool = True, launches: int = 0
) -> OverheadRow:
    return OverheadRow(kind, name, side, us * 1e-6, 1e-7, us / 521, nonzero, launches)


CPU = Overheads(
    "cpu",
    "compiled",
    (
        row("kernel", "cpp_fused_a_0", 430, launches=2),
        row("launches", "launches", 12, launches=2),
        row("wrapper", "wrapper", 70),
        row("guards", "guards", 9),
        row("total", "compiled", 521),
    ),
    2, 40, 6e-6, None, None, 3, 1, (reported("guards are those of plain arguments", Subject("graph", "")),),
)  # fmt: skip
CUDA = Overheads(
    "cuda",
    "call",
    (
        row("kernel", "triton_a_0", 5, side="device", launches=1),
        row("rest", "rest", 1, side="device"),
        row("total", "call", 6, side="device"),
        row("launches", "launches", 8, launches=1),
        row("wrapper", "wrapper", -2, nonzero=False),
        row("total", "call", 6.5),
    ),
    1, 40, None, 7e-6, "host", 0, 0, (),
)  # fmt: skip


def shown(found: Overheads) -> str:
    return to_text(overhead_table(found), 80)


def test_a_cpu_in_one_sentence() -> None:
    assert overhead_sentence(CPU) == (
        "call takes 512.0 us: kernels 430.0 us, wrapper 70.00 us (2 allocations), 2 launches 12.00 us; "
        "guards add 9.000 us."
    )


def test_cuda_says_what_bounds_it_and_what_cannot_be_told() -> None:
    assert overhead_sentence(CUDA) == (
        "call takes 6.500 us of the host's time: wrapper -2.000 us (too short to measure) (1 allocation), "
        "1 launch 8.000 us; the GPU works 6.000 us: the host is what bounds it, 7.000 us from call to call."
    )


def test_the_table_has_a_row_for_each_part_and_the_remarks() -> None:
    text = shown(CPU)
    for said in (
        "cpp_fused_a_0 x2",
        "launches",
        "wrapper",
        "guards",
        "compiled",
        "100.0 %",
        "guards by themselves",
    ):
        assert said in text
    assert "remark: guards are those of plain arguments" in text
    assert "1 block stayed disturbed" in text
    assert "call (GPU)" in shown(CUDA)
    assert all(len(line) <= 80 for line in text.splitlines())
