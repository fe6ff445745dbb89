"""Kernels and roofline in a table."""

from __future__ import annotations

from inline_snapshot import snapshot

from inductor_probe.model.bench import RooflineRow
from inductor_probe.model.remark import Subject, measured
from inductor_probe.model.timing import KernelWork, PeakRate, Roofline
from inductor_probe.report.pages.overheads import roofline_sentence, roofline_table
from inductor_probe.report.terminal import to_text
from inductor_probe.report.units import bytes_text, rate_text

NO_INT4 = measured(
    "matmul-not-measured", "analysis", Subject("machine", "cpu"), {"dtype": "int4", "error": "there is none"}
)
ABOVE = measured("above-matmul-rate", "analysis", Subject("kernel", "extern_kernels.mm"), {"share": 1.41})
MACHINE = Roofline(
    "2.13.0", "cpu", 1, 1 << 21, 1 << 26,
    (
        PeakRate("copy", "memory", 1 << 28, 11.2e9, 5),
        PeakRate("copy", "cache", 1 << 20, 48.3e9, 99),
        PeakRate("matmul", "float32", 1024, 71e9, 9),
    ),
    (NO_INT4,),
)  # fmt: skip
ROWS = (
    RooflineRow(KernelWork("cpp_fused_a_0", 1 << 20), 1e-4, 1.05e10, "cache", 0.217, None, None, ()),
    RooflineRow(
        KernelWork("extern_kernels.mm", None, 10**9, "float32"),
        1e-2, None, None, None, None, None, (ABOVE,),
    ),
)  # fmt: skip


def test_the_machine_in_one_sentence() -> None:
    assert roofline_sentence(MACHINE) == (
        "this machine copies 11.2 GB/s in memory and 48.3 GB/s in cache (2 MiB), and multiplies matrices of "
        "float32 with 71 GFLOP/s (1 thread); copies count bytes read and written"
    )


def test_every_kernel_has_its_rates_and_remarks() -> None:
    text = to_text(roofline_table(MACHINE, ROWS), 80)
    assert text == snapshot("""\
this machine copies 11.2 GB/s in memory and 48.3 GB/s in cache (2 MiB), and
multiplies matrices of float32 with 71 GFLOP/s (1 thread); copies count bytes
read and written
                       time  bytes       rate   share  of a copy in
cpp_fused_a_0      100.0 us  1 MiB  10.5 GB/s  21.7 %  cache
extern_kernels.mm  10.00 ms      ?
                       time    flops  rate  share  of a product of
extern_kernels.mm  10.00 ms  1 GFLOP               float32
remark: extern_kernels.mm: 141% of the measured matmul rate: no kernel does
that, so that our flop count, our time or our measurement of the machine is
wrong; no rate is shown
remark: no matmul of int4 was measured: there is none\
""")
    assert all(len(line) <= 80 for line in text.splitlines())


def test_a_rate_that_is_not_known_is_left_out() -> None:
    assert (rate_text(None, "B/s"), rate_text(2.5e12, "B/s")) == ("", "2.5 TB/s")


def test_no_size_and_no_rate_has_an_exponent() -> None:
    """A table had `1e+03 KiB`."""
    assert [bytes_text(1023 * 1024), bytes_text(1000 * 1024), bytes_text(1 << 20)] == [
        "1023 KiB", "1000 KiB", "1 MiB",
    ]  # fmt: skip
    assert [rate_text(rate, "B/s") for rate in (999.7e9, 12.0, 2048.0)] == [
        "1000 GB/s",
        "12 B/s",
        "2.05 kB/s",
    ]
