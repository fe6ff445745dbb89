from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inductor_probe.harness import inputs as module
from inductor_probe.harness.inputs import KINDS, Inputs, InputsError, bind

CPU = "cpu"


def test_sizes_are_bound_to_what_was_recorded_or_given() -> None:
    assert bind(None, s77=5, s27=12) == (5, 12)
    assert bind({"s27": 128}, s77=5, s27=12) == (5, 128)
    with pytest.raises(InputsError, match="no size s9: there is s77, s27"):
        bind({"s9": 1}, s77=5, s27=12)
    with pytest.raises(InputsError, match="all sizes of this graph are fixed"):
        bind({"s9": 1})


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "real"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.uint8, torch.int32, torch.uint16])
def test_every_kind_stays_inside_the_bounds(kind: str, dtype: torch.dtype) -> None:
    made = Inputs(0, kind).tensor("x", (50,), (1,), dtype, CPU, low=3, high=6).to(torch.int64)
    assert set(made.tolist()) <= {3, 4, 5, 6}
    assert len(made.unique()) == (1 if kind == "zeros" else 4)


def test_a_divisor_is_never_zero_and_bounds_fit_the_dtype() -> None:
    for kind in ("random", "zeros", "sequential"):
        assert Inputs(0, kind).tensor("x", (99,), (1,), torch.int64, CPU, low=1).min() >= 1
        assert Inputs(0, kind).tensor("x", (99,), (1,), torch.int8, CPU, low=-1000, high=1000).numel() == 99


def test_floats_are_normal_or_uniform_where_they_are_bounded() -> None:
    normal = Inputs(0).tensor("x", (4000,), (1,), torch.float32, CPU)
    assert abs(normal.mean().item()) < 0.1
    assert normal.min() < -2
    bounded = Inputs(0).tensor("x", (4000,), (1,), torch.float32, CPU, low=0, high=1)
    assert 0 <= bounded.min() < 0.01
    assert 0.99 < bounded.max() <= 1


def test_booleans_are_mixed() -> None:
    made = Inputs(0).tensor("x", (100,), (1,), torch.bool, CPU)
    assert 20 < made.sum() < 80


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.complex32, torch.uint64])
def test_rare_dtypes_can_be_made(dtype: torch.dtype) -> None:
    for kind in ("random", "zeros", "sequential"):
        assert Inputs(0, kind).tensor("x", (3, 4), (4, 1), dtype, CPU).dtype == dtype


def test_values_are_arranged_as_the_operation_needs_them() -> None:
    inputs = Inputs(0)

    def made(form: str, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        return inputs.tensor("x", (6, 6), (6, 1), dtype, CPU, low=0, high=20, form=form)

    for row in made("sorted").tolist():
        assert row == sorted(row)
    for row in made("offsets").tolist():
        assert (row[0], row) == (0, sorted(row))
    assert made("parts").sum(-1).tolist() == [20] * 6
    assert made("parts").min() >= 0
    assert torch.linalg.eigvalsh(made("positive definite", torch.float32)).min() > 0
    mask = inputs.tensor("x", (6, 6), (6, 1), torch.bool, CPU, low=0, high=5, form="true")
    assert (mask.dtype, mask.sum().item()) == (torch.bool, 5)


def test_an_unknown_kind_is_named_with_those_there_are() -> None:
    with pytest.raises(InputsError, match="'ones': there is random, zeros, sequential, real"):
        Inputs(0, "ones")
    with pytest.raises(InputsError, match="leave out the other sizes"):
        Inputs(0, "real", {"s77": 5})


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the harness believe that it is pasted into a file in this folder."""
    monkeypatch.setattr(module, "__file__", str(tmp_path / "output_code_bench.py"))
    return tmp_path


def real(file: str | None, offset: int = 0) -> torch.Tensor:
    layout = ((2, 3), (1, 4), torch.int32)
    return Inputs(0, "real").tensor("arg0_1", *layout, CPU, low=0, high=1, offset=offset, file=file)


def test_real_inputs_are_the_raw_bytes_of_their_storage(beside: Path) -> None:
    stored = torch.arange(40, dtype=torch.int32)
    (beside / "arg0_1.bin").write_bytes(stored.numpy().tobytes())
    made = real("arg0_1.bin", offset=7)
    assert torch.equal(made, stored.as_strided((2, 3), (1, 4), 7))
    assert (made.stride(), made.storage_offset()) == ((1, 4), 7)


def test_real_inputs_are_taken_from_what_torch_writes_without_unpickling(
    beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = torch.arange(40, dtype=torch.int32)
    torch.save(stored.untyped_storage(), beside / "0beef")
    monkeypatch.setattr(torch, "load", None)
    assert torch.equal(real("0beef"), stored.as_strided((2, 3), (1, 4), 0))


def test_real_inputs_that_are_missing_or_cut_off_are_a_sentence(beside: Path) -> None:
    with pytest.raises(
        InputsError, match="no real input arg0_1: the dump holds none; `probe dump --save-inputs`"
    ):
        real(None)
    with pytest.raises(InputsError, match=r"arg0_1\.bin is not there"):
        real("arg0_1.bin")
    (beside / "arg0_1.bin").write_bytes(b"1234")
    with pytest.raises(InputsError, match="has 4 bytes and is cut off"):
        real("arg0_1.bin")
