"""Kernels and ceilings in a table."""

from __future__ import annotations

import io
import json

from rich.console import Console

from inductor_probe.model.ceilings import Ceiling, CeilingRow, Ceilings, KernelWork
from inductor_probe.report.ceilings import CeilingTable, ceilings_json, ceilings_sentence, rate_text

MACHINE = Ceilings(
    "2.13.0", "cpu", 1, 1 << 21, 1 << 26,
    (
        Ceiling("copy", "memory", 1 << 28, 11.2e9, 5),
        Ceiling("copy", "cache", 1 << 20, 48.3e9, 99),
        Ceiling("matmul", "float32", 1024, 71e9, 9),
    ),
    ("no matrix product of int4: there is none",),
)  # fmt: skip
ROWS = (
    CeilingRow(KernelWork("cpp_fused_a_0", 1 << 20), 1e-4, 1.05e10, "cache", 0.217, None, None, ()),
    CeilingRow(
        KernelWork("extern_kernels.mm", None, 10**9, "float32"),
        1e-2, None, None, None, 1e11, 1.41, ("141% of it",),
    ),
)  # fmt: skip


def test_the_machine_in_one_sentence() -> None:
    assert ceilings_sentence(MACHINE) == (
        "this machine copies 11.2 GB/s in memory and 48.3 GB/s in cache (2 MiB), and multiplies matrices of "
        "float32 with 71 GFLOP/s (1 thread); copies count bytes read and written"
    )


def test_every_kernel_has_its_rates_and_what_is_odd_about_them() -> None:
    console = Console(file=io.StringIO(), width=80)
    console.print(CeilingTable(MACHINE, ROWS))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    for said in (
        "cpp_fused_a_0",
        "1 MiB",
        "10.5 GB/s",
        "21.7 %",
        "100 GFLOP/s",
        "141 %",
        "odd: ",
        "note: no matrix",
    ):
        assert said in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_json_has_the_machine_and_the_kernels() -> None:
    plain = json.loads(json.dumps(ceilings_json(MACHINE, ROWS)))
    assert [each["place"] for each in plain["machine"]["found"]] == ["memory", "cache", "float32"]
    assert [each["name"] for each in plain["kernels"]] == ["cpp_fused_a_0", "extern_kernels.mm"]
    assert plain["kernels"][1]["flops"] == 10**9


def test_a_rate_that_is_not_known_is_left_out() -> None:
    assert (rate_text(None, "B/s"), rate_text(2.5e12, "B/s")) == ("", "2.5 TB/s")
