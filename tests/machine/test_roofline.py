"""Kernels held against what the machine reaches."""

from __future__ import annotations

import json

import pytest
import torch

from inductor_probe.executors.server import JobFailedError
from inductor_probe.machine.roofline import roofline_rows
from inductor_probe.model.bench import RooflineRow
from inductor_probe.model.call_parts import CallPart, Overheads
from inductor_probe.model.codec import from_json, to_json
from inductor_probe.model.timing import KernelWork, PeakRate, Roofline
from inductor_probe.report.words.remarks import sentence
from tests.builders import roofline_of_device

MIB = 1 << 20
MACHINE = Roofline(
    "2.13.0",
    "cpu",
    1,
    2 * MIB,
    64 * MIB,
    (
        PeakRate("copy", "memory", 256 * MIB, 10e9, 5),
        PeakRate("copy", "cache", MIB, 80e9, 999),
        PeakRate("copy", "last cache", 16 * MIB, 20e9, 99),
        PeakRate("matmul", "float32", 1024, 100e9, 15),
    ),
)


def held(
    work: KernelWork, seconds: float, *, timed: tuple[str, str] = ("kernel", "k"), cold: bool = False
) -> RooflineRow:
    row = CallPart(*timed, "host", seconds, 0.0, 0.0, 1.0, launches=1)
    overheads = Overheads(device="cpu", rows=(row,), allocations=0, rounds=5)
    (found,) = roofline_rows([work], overheads, MACHINE, cold=cold)
    return found


@pytest.mark.parametrize(
    ("moved", "cold", "place", "share"),
    [
        (MIB, False, "cache", MIB / 1e-3 / 80e9),
        (16 * MIB, False, "last cache", 16 * MIB / 1e-3 / 20e9),
        (60 * MIB, False, "memory", 60 * MIB / 1e-3 / 10e9),
        (MIB, True, "memory", MIB / 1e-3 / 10e9),
    ],
)
def test_a_kernel_is_held_against_a_copy_where_its_data_lie(
    moved: int, cold: bool, place: str, share: float
) -> None:
    row = held(KernelWork("k", moved), 1e-3, cold=cold)
    assert (row.place, row.rate, row.share) == (place, moved / 1e-3, pytest.approx(share))


def test_a_product_is_held_against_one_of_its_dtype() -> None:
    work = KernelWork("extern_kernels.mm", 4096, flops=50_000_000, dtype="float32")
    row = held(work, 1e-3, timed=("library", "aten.mm.out"))
    assert (row.flop_rate, row.flop_share) == (5e10, 0.5)
    assert row.remarks == ()  # little is moved for what is computed
    assert held(KernelWork("k", 4096, 50_000_000, "float16"), 1e-3).flop_share is None


@pytest.mark.parametrize(
    ("work", "seconds", "why"),
    [
        (KernelWork("k", 64), 1e-6, "it takes 1 us a launch"),
        (KernelWork("k", 64, indirect=True), 1e-3, "may read less than was counted"),
        (KernelWork("k", 64), 1e-3, "bound by arithmetic"),
        (KernelWork("k", 60 * MIB), 1e-3, "fit in the last-level cache"),
        (KernelWork("k", MIB // 4), 1e-6, "smaller cache"),
        (KernelWork("k", 2 * MIB), 1e-6, "our byte count"),
        (KernelWork("k", 200 * MIB, indirect=True), 1e-3, "its loads are indirect"),
        (KernelWork("k", 60 * MIB, 2_000_000_000, "float32"), 10e-3, "our flop count"),
    ],
)
def test_what_cannot_be_is_remarked_with_its_likely_cause(work: KernelWork, seconds: float, why: str) -> None:
    (remark,) = held(work, seconds).remarks
    assert why in sentence(remark)


def test_bytes_that_are_not_known_have_no_share() -> None:
    row = held(KernelWork("k", None), 1e-3)
    assert (row.rate, row.share, row.remarks) == (None, None, ())


def test_a_kernel_that_was_not_timed_has_no_row() -> None:
    overheads = Overheads(device="cpu", rows=(), allocations=0, rounds=5)
    assert roofline_rows([KernelWork("k", 64)], overheads, MACHINE) == ()


def test_a_roofline_is_the_same_again_from_json() -> None:
    assert from_json(Roofline, json.loads(json.dumps(to_json(MACHINE)))) == MACHINE


@pytest.mark.compiles
def test_this_machine_has_a_roofline() -> None:
    found = roofline_of_device(dtypes=["float32", "float32", "no_such_dtype"])
    memory, cache = found.peak("copy", "memory"), found.peak("copy", "cache")
    assert memory is not None
    assert cache is not None
    assert cache.size <= found.cache
    assert cache.size < memory.size
    assert all(1e6 < each.rate < 1e16 and each.calls >= 5 for each in found.peaks)
    assert [each.place for each in found.peaks if each.what == "matmul"] == ["float32"]
    (missing,) = found.remarks
    assert (missing.code, missing.number("dtype")) == ("matmul-not-measured", "no_such_dtype")


@pytest.mark.compiles
def test_a_device_that_is_not_there_is_said() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(JobFailedError, match="failed: "):
        roofline_of_device("cuda")


def test_a_convolution_that_is_faster_than_a_matmul_may_take_fewer_products() -> None:
    """ "No kernel does that" was said of a Winograd convolution at 2.3 times the rate of a matmul."""
    for name, flops, said in (
        (
            "extern_kernels.convolution",
            23 * 10**10,
            "230% of the measured matmul rate: convolutions of Winograd's",
        ),
        ("extern_kernels.convolution", 95 * 10**10, "950% of the measured matmul rate: no kernel does that"),
        ("extern_kernels.mm", 23 * 10**10, "230% of the measured matmul rate: no kernel does that"),
    ):
        row = held(KernelWork(name, None, flops, "float32"), 1.0, timed=("library", name))
        (remark,) = row.remarks
        assert sentence(remark).startswith(said)
        assert (row.flop_rate, row.flop_share) == (None, None)
