from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.inputs import Inputs
from inductor_probe.harness.saved_inputs import KINDS, InputsError, KindsOfInputs, choose_inputs

CPU = "cpu"


def bench(**sizes: int) -> Bench:
    names = {"GRAPH": "g", "KERNELS": [], "NO_REFERENCE": "", "SIZES": sizes}
    return Bench({**names, "make_inputs": lambda inputs, s77=5, s27=12: [s77, s27]})


def test_sizes_are_bound_to_what_was_recorded_or_given() -> None:
    subject = bench(s77=5, s27=12)
    assert subject.inputs(0) == [5, 12]
    choose_inputs(subject, "random", {"s27": 128})
    assert subject.inputs(0) == [5, 128]
    with pytest.raises(InputsError, match="no size s9: there is s77, s27"):
        choose_inputs(subject, "random", {"s9": 1})
    with pytest.raises(InputsError, match="all sizes of this graph are fixed"):
        choose_inputs(bench(), "random", {"s9": 1})


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "real"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.uint8, torch.int32, torch.uint16])
def test_every_kind_stays_inside_the_bounds(kind: str, dtype: torch.dtype) -> None:
    made = KindsOfInputs(0, kind).tensor("x", (50,), (1,), dtype, CPU, low=3, high=6).to(torch.int64)
    assert set(made.tolist()) <= {3, 4, 5, 6}
    assert len(made.unique()) == (1 if kind == "zeros" else 4)


def test_floats_are_normal_or_uniform_where_they_are_bounded() -> None:
    normal = Inputs(0).tensor("x", (4000,), (1,), torch.float32, CPU)
    assert abs(normal.mean().item()) < 0.1
    assert normal.min() < -2
    bounded = Inputs(0).tensor("x", (4000,), (1,), torch.float32, CPU, low=0, high=1)
    assert 0 <= bounded.min() < 0.01
    assert 0.99 < bounded.max() <= 1


def test_floats_have_the_mean_and_the_deviation_that_was_recorded() -> None:
    def made(kind: str) -> torch.Tensor:
        how = {"mean": 3.0, "deviation": 0.05}
        return KindsOfInputs(0, kind).tensor("x", (4000,), (1,), torch.float16, CPU, **how).double()

    values = made("random")
    assert (values.mean().item(), values.std().item()) == (
        pytest.approx(3, abs=0.01),
        pytest.approx(0.05, rel=0.1),
    )
    assert made("zeros").unique().tolist() == [0]
    assert made("sequential")[:3].tolist() == [0, 1, 2]


def test_booleans_are_mixed() -> None:
    made = Inputs(0).tensor("x", (100,), (1,), torch.bool, CPU)
    assert 20 < made.sum() < 80


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.complex32, torch.uint64])
def test_rare_dtypes_can_be_made(dtype: torch.dtype) -> None:
    for kind in ("random", "zeros", "sequential"):
        assert KindsOfInputs(0, kind).tensor("x", (3, 4), (4, 1), dtype, CPU).dtype == dtype


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
        KindsOfInputs(0, "ones")
    with pytest.raises(InputsError, match="leave out the other sizes"):
        choose_inputs(bench(s77=3), "real", {"s77": 5})


def real(folder: Path, file: str | None, offset: int = 0) -> torch.Tensor:
    layout = ((2, 3), (1, 4), torch.int32)
    inputs = KindsOfInputs(0, "real", folder)
    return inputs.tensor("arg0_1", *layout, CPU, low=0, high=1, offset=offset, file=file)


def test_real_inputs_are_the_raw_bytes_of_their_storage(tmp_path: Path) -> None:
    stored = torch.arange(40, dtype=torch.int32)
    (tmp_path / "arg0_1.bin").write_bytes(stored.numpy().tobytes())
    made = real(tmp_path, "arg0_1.bin", offset=7)
    assert torch.equal(made, stored.as_strided((2, 3), (1, 4), 7))
    assert (made.stride(), made.storage_offset()) == ((1, 4), 7)


def test_real_inputs_are_taken_from_what_torch_writes_without_unpickling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = torch.arange(40, dtype=torch.int32)
    torch.save(stored.untyped_storage(), tmp_path / "0beef")
    monkeypatch.setattr(torch, "load", None)
    assert torch.equal(real(tmp_path, "0beef"), stored.as_strided((2, 3), (1, 4), 0))


def test_real_inputs_that_are_missing_or_cut_off_are_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        InputsError, match="no real input arg0_1: the dump holds none; `probe dump --save-inputs`"
    ):
        real(tmp_path, None)
    with pytest.raises(InputsError, match=r"arg0_1\.bin is not there"):
        real(tmp_path, "arg0_1.bin")
    (tmp_path / "arg0_1.bin").write_bytes(b"1234")
    with pytest.raises(InputsError, match="has 4 bytes and is cut off"):
        real(tmp_path, "arg0_1.bin")
