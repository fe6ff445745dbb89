"""Constants read from files, and operators of oneDNN and MKL beside what they compute in float64."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.constants import OPERATORS, Constants, bind_constants
from inductor_probe.harness.inputs import Inputs
from inductor_probe.harness.random_numbers import DrawsInFloat64
from inductor_probe.harness.remarks import MISSING_CONSTANT, sentences
from inductor_probe.harness.saved_inputs import InputsError
from inductor_probe.model.manifest import NotKept


def saved(folder: Path, name: str, values: torch.Tensor) -> str:
    data = bytes(values.flatten().view(torch.uint8).tolist())
    (folder / f"{name}.bin").write_bytes(data)
    return hashlib.sha256(data).hexdigest()[:32]


def test_a_constant_has_its_values_and_its_layout(tmp_path: Path) -> None:
    values = torch.arange(6, dtype=torch.int16)
    digest = saved(tmp_path, "table", values)
    constants = Constants(tmp_path)
    table = constants.tensor("table", (2, 2), (3, 2), torch.int16, "cpu", sha256=digest)
    assert table.tolist() == [[0, 2], [3, 5]]
    assert not constants.missing
    assert table.data_ptr() % 64 == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("fault", ["deleted", "changed", "not kept"])
def test_a_constant_that_cannot_be_had_has_a_stand_in(tmp_path: Path, dtype: torch.dtype, fault: str) -> None:
    digest = saved(tmp_path, "table", torch.zeros(4, dtype=dtype))
    if fault == "deleted":
        (tmp_path / "table.bin").unlink()
    elif fault == "changed":
        (tmp_path / "table.bin").write_bytes(b"\1" * 4 * dtype.itemsize)
    constants = Constants(tmp_path)
    missing = "too-large" if fault == "not kept" else ""
    table = constants.tensor("table", (4,), (1,), dtype, "cpu", sha256=digest, missing=missing)
    assert (table.shape, table.dtype) == ((4,), dtype)
    expected = {"deleted": "file-missing", "changed": "file-changed", "not kept": "too-large"}
    assert constants.missing == {"table": expected[fault]}
    if dtype == torch.int64:
        assert table.tolist() == [0, 0, 0, 0], "an index within any bounds"


def test_every_reason_that_a_manifest_has_is_worded() -> None:
    assert set(get_args(NotKept)) < set(MISSING_CONSTANT)


def bench(folder: Path, call: Any) -> Bench:
    def make_constants(constants: Constants) -> None:
        namespace["weight"] = constants.tensor("weight", (4,), (1,), torch.float32, "cpu", sha256="00")
        namespace["table"] = constants.random("table", (4,), (1,), torch.int64, "cpu", low=0, high=3)

    namespace: dict[str, Any] = {
        "__file__": str(folder / "bench.py"),
        "make_constants": make_constants,
        "TAKES": {"weight": ("k",)},
        "call": call,
        "call_v2": call,
        **dict.fromkeys(("k", "k_v2", "other", "other_v2"), call),
    }

    def make_inputs(inputs: Inputs) -> list[Any]:
        return [inputs.tensor("x", (4,), (1,), torch.float32, "cpu")]

    names = {"GRAPH": "g", "KERNELS": ["k", "other"], "NO_REFERENCE": "none here"}
    namespace.update(names, make_inputs=make_inputs)
    return Bench(namespace)


def test_kernels_without_their_constant_are_left_out(tmp_path: Path) -> None:
    subject = bench(tmp_path, lambda args: (args[0] * subject.namespace["weight"],))
    remarks = sentences(bind_constants(subject))
    assert "constants have random values, as the dump does not hold the real ones: table" in remarks
    assert (
        "k is neither judged nor timed, as it takes the constant weight: its file in probe_constants"
        in remarks
    )
    assert subject.variants() == ["other_v2"]
    assert bind_constants(subject) == [], "set once"


def test_a_graph_that_does_not_run_on_stand_ins_is_a_sentence(tmp_path: Path) -> None:
    def call(args: list[Any]) -> Any:
        raise RuntimeError("itensor_from_mkldnn expects MKL-DNN tensor input")

    with pytest.raises(
        InputsError, match=r"cannot run without its constants .the constant weight .* itensor_from_mkldnn"
    ):
        bind_constants(bench(tmp_path, call))


def calls() -> dict[str, tuple[Any, ...]]:
    """Return arguments for each operator, with packed weights."""
    x, other, bias = torch.randn(16, 32), torch.randn(16, 48), torch.randn(48)
    plain = torch.randn(48, 32)
    packed = torch.ops.mkldnn._reorder_linear_weight(plain, 16)
    image, sums = torch.randn(1, 3, 8, 8), torch.randn(1, 4, 8, 8)
    geometry = ([1, 1], [1, 1], [1, 1], 1)
    kernel = torch.ops.mkldnn._reorder_convolution_weight(torch.randn(4, 3, 3, 3), *geometry, [1, 3, 8, 8])
    offset = torch.randn(4)
    linear = torch.ops.mkldnn._linear_pointwise
    convolution = torch.ops.mkldnn._convolution_pointwise
    into = torch.ops.mkldnn._convolution_pointwise_
    unary = {
        "swish": [], "relu": [], "sigmoid": [], "tanh": [], "hardswish": [], "hardsigmoid": [], "none": [],
        "leaky_relu": [0.1], "hardtanh": [-0.5, 0.5],
    }  # fmt: skip
    found: dict[str, tuple[Any, ...]] = {
        f"linear {name}": (linear.default, x, packed, bias, name, scalars, "")
        for name, scalars in unary.items()
    }
    for algorithm in ("none", "tanh"):
        found[f"linear gelu {algorithm}"] = (linear.default, x, packed, None, "gelu", [], algorithm)
    found["linear add"] = (linear.binary, x, other, packed, bias, "add")
    found["convolution relu"] = (convolution.default, image, kernel, offset, *geometry, "relu", [], "")
    rest = (kernel, offset, *geometry, "add", 1.0, "relu", [], "")
    found["convolution add"] = (convolution.binary, image, sums, *rest)
    found["convolution into"] = (into.binary, sums, image, *rest)
    wide = torch.randn(1, 6, 8, 8)
    deconvolution = torch.ops.mkldnn._convolution_transpose_pointwise.default
    transposed = torch.ops.mkldnn._reorder_convolution_transpose_weight(
        torch.randn(6, 4, 3, 3), [1, 1], [1, 1], [2, 2], [1, 1], 1, [1, 6, 8, 8]
    )
    found["transposed convolution"] = (
        deconvolution, wide, transposed, offset, [1, 1], [1, 1], [2, 2], [1, 1], 1, "relu", [], ""
    )  # fmt: skip
    return found


@pytest.mark.parametrize("name", calls())
def test_operators_on_packed_weights_compute_the_same_in_float64(name: str) -> None:
    operator, *args = calls()[name]
    assert str(operator) in OPERATORS
    with DrawsInFloat64() as mode:
        exact = operator(*args)
    assert mode.used
    assert exact.dtype == torch.float64
    torch.testing.assert_close(operator(*args).double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="torch without MKL packs for oneDNN")
def test_the_linear_of_mkl_takes_its_plain_weight_in_float64() -> None:
    x, plain, bias = torch.randn(16, 32), torch.randn(48, 32), torch.randn(48)
    packed = torch.ops.mkl._mkl_reorder_linear_weight(plain, 16)
    with DrawsInFloat64():
        exact = torch.ops.mkl._mkl_linear(x.double(), packed, plain, bias, 16)
    expected = torch.nn.functional.linear(x.double(), plain.double(), bias.double())
    torch.testing.assert_close(exact, expected)
    torch.testing.assert_close(
        torch.ops.mkl._mkl_linear(x, packed, plain, bias, 16).double(), expected, rtol=1e-5, atol=1e-5
    )
