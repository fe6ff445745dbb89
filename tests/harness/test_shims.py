"""Library calls of wrappers in C++, as operators: real ones of the installed torch."""

from __future__ import annotations

import pytest
import torch

from inductor_probe.harness.shims import operator_of_shim, shim, stand_ins


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        ("aoti_torch_cpu_addmm_out", torch.ops.aten.addmm.out),
        ("aoti_torch_cuda_convolution", torch.ops.aten.convolution.default),
        ("aoti_torch_cpu_index_Tensor", torch.ops.aten.index.Tensor),
        ("aoti_torch_index_put_out", torch.ops.aten.index_put.out),
        ("aoti_torch_cpu_sort_stable", torch.ops.aten.sort.stable),
        ("aoti_torch_cpu_scatter_src_out", torch.ops.aten.scatter.src_out),
        ("aoti_torch_cpu_mkldnn__linear_pointwise", torch.ops.mkldnn._linear_pointwise.default),
        ("aoti_torch_cpu_mkldnn__linear_pointwise_binary", torch.ops.mkldnn._linear_pointwise.binary),
        ("aten::mul.Tensor", torch.ops.aten.mul.Tensor),
    ],
)
def test_a_shim_names_its_operator(name: str, operator: object) -> None:
    assert operator_of_shim(name) is operator


def test_values_go_where_the_schema_has_them() -> None:
    x, weight, bias, out = torch.randn(3, 4), torch.randn(4, 5), torch.randn(5), torch.empty(3, 5)
    shim("aoti_torch_cpu_addmm_out", out, bias, x, weight, 2, 0.5)
    torch.testing.assert_close(out, 2 * bias + 0.5 * (x @ weight))
    torch.testing.assert_close(shim("aoti_torch_cpu_cumsum", x, 1, None), x.cumsum(1))
    torch.testing.assert_close(shim("aoti_torch_cpu_cumsum", x, 1, torch.float64), x.double().cumsum(1))
    values, indices = shim("aoti_torch_cpu_topk", x, 2, 1, 1, 1)
    assert torch.equal(indices, x.topk(2).indices)
    assert torch.equal(values, x.topk(2).values)


def test_a_device_is_two_values_and_a_missing_list_none() -> None:
    made = shim("aoti_torch_cpu_full", [2, 3], 7.0, torch.float64, None, "cpu", 0, 0)
    assert (made.shape, made.dtype, made.device.type) == ((2, 3), torch.float64, "cpu")
    image = torch.randn(1, 2, 4, 4)
    grown = shim("aoti_torch_cpu_upsample_nearest2d", image, [8, 8], None, None)
    assert grown.shape == (1, 2, 8, 8)
    mean = shim("aoti_torch_cpu_mean_dim", image, None, 0, 0, None)
    torch.testing.assert_close(mean, image.mean())


def test_a_function_that_no_operator_has_is_named() -> None:
    with pytest.raises(LookupError, match="no operator of this torch is called by aoti_torch_cpu_frobnicate"):
        operator_of_shim("aoti_torch_cpu_frobnicate")


def test_stand_ins_are_the_same_each_time() -> None:
    first, second = (
        stand_ins({"a": torch.empty(4), "b": torch.empty(4), "c": torch.empty(2, dtype=torch.int64)})
        for _ in range(2)
    )
    assert torch.equal(first["a"], second["a"])
    assert not torch.equal(first["a"], first["b"])
    assert first["c"].tolist() == [0, 0]
