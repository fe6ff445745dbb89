"""What stands in for a GPU where Triton kernels are interpreted: memory, libdevice, devices."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from inductor_probe.harness import random_numbers
from inductor_probe.harness.interpreter.cuda_names import CudaAsCpu, size_and_stride
from inductor_probe.harness.interpreter.errors import KernelFault, NotInterpretedError
from inductor_probe.harness.interpreter.kernels import Interpreted
from inductor_probe.harness.interpreter.libdevice import FUNCTIONS, function_of
from inductor_probe.harness.interpreter.memory import Memory


def _lanes(address: int, *offsets: int) -> Any:
    return np.array([address + offset for offset in offsets], dtype=np.uint64)


def test_an_address_becomes_that_of_its_element() -> None:
    memory, tensor = Memory(), torch.arange(12, dtype=torch.float32)[4:]
    first = memory.place("in_ptr0", tensor)
    real = memory.real(_lanes(first, 0, 28, -16), True, 4, "reads")
    base = tensor.data_ptr()
    assert real.tolist() == [base, base + 28, base - 16], "a view reaches the whole of its storage"


@pytest.mark.parametrize("offset", [32, -20, 1 << 33])
def test_what_lies_outside_of_a_tensor_is_a_fault(offset: int) -> None:
    memory = Memory()
    memory.place("in_ptr0", torch.zeros(100))
    first = memory.place("out_ptr0", torch.zeros(12)[4:])
    with pytest.raises(KernelFault, match=r"writes outside of out_ptr0: element -?\d+ of 8, by lane 1"):
        memory.real(_lanes(first, 0, offset), True, 4, "writes")


def test_a_lane_that_is_masked_off_reaches_nothing() -> None:
    memory = Memory()
    first = memory.place("in_ptr0", torch.zeros(1))
    assert memory.real(_lanes(first, 0, 400), np.array([True, False]), 4, "reads")[1] == 0


def test_a_misaligned_address_is_a_fault() -> None:
    memory = Memory()
    first = memory.place("in_ptr0", torch.zeros(4, dtype=torch.uint8))
    with pytest.raises(KernelFault, match="misaligned address of in_ptr0"):
        memory.real(_lanes(first, 1), True, 2, "reads")


def test_a_pointer_that_is_made_of_a_number_is_not_followed() -> None:
    with pytest.raises(NotInterpretedError, match="a pointer that is made from a number"):
        Memory().real(_lanes(12345678, 0), True, 4, "reads")


UNARY = {
    "exp": math.exp, "expm1": math.expm1, "log1p": math.log1p, "log2": math.log2, "log10": math.log10,
    "sin": math.sin, "tan": math.tan, "asinh": math.asinh, "atan": math.atan, "tanh": math.tanh,
    "erf": math.erf, "erfc": math.erfc, "lgamma": math.lgamma, "tgamma": math.gamma, "sqrt": math.sqrt,
    "rsqrt": lambda value: 1 / math.sqrt(value), "cbrt": lambda value: value ** (1 / 3), "floor": math.floor,
    "ceil": math.ceil, "trunc": math.trunc, "rint": round, "fabs": abs, "exp10": lambda value: 10**value,
    "normcdf": lambda value: (1 + math.erf(value / math.sqrt(2))) / 2,
    "sinpi": lambda value: math.sin(math.pi * value), "erfcinv": None,
}  # fmt: skip
VALUES = [0.25, 0.5, 0.75, 1.25, 1.5, 1.9]


@pytest.mark.parametrize("suffix", ["", "f"])
@pytest.mark.parametrize("name", [name for name, exact in UNARY.items() if exact])
def test_a_function_of_libdevice_is_the_mathematical_one(name: str, suffix: str) -> None:
    dtype = np.float32 if suffix else np.float64
    values = np.array(VALUES, dtype=dtype)
    exact = UNARY[name]
    assert exact is not None
    expected = np.array([exact(float(value)) for value in values])
    result = function_of(f"__nv_{name}{suffix}")(values)
    np.testing.assert_allclose(
        result, expected, rtol=4e-6 if suffix else 1e-13, atol=1e-6 if suffix else 1e-13
    )


def test_functions_of_libdevice_that_are_defined_by_cases() -> None:
    def one(symbol: str, *values: Any) -> Any:
        arrays = (
            np.array([value], dtype=np.float32 if isinstance(value, float) else np.int32) for value in values
        )
        return function_of(f"__nv_{symbol}")(*arrays).item()

    assert [one("roundf", value) for value in (0.5, -0.5, 2.5, 0.49999997)] == [1, -1, 3, 0]
    assert [one("rintf", value) for value in (0.5, 1.5, 2.5)] == [0, 2, 2]
    assert one("fmodf", -7.5, 2.0) == -1.5
    assert one("remainderf", 7.5, 2.0) == -0.5
    assert [one("ilogbf", value) for value in (1.0, 0.75, 1024.0)] == [0, -1, 10]
    assert one("ldexpf", 0.75, 4) == 12
    assert one("powif", 2.0, -2) == 0.25
    assert [one(name, -1) for name in ("popc", "clz", "ffs")] == [32, 0, 1]
    assert one("brev", 1) == -(2**31)
    assert [bool(one(name, math.nan)) for name in ("isnanf", "isinff", "finitef")] == [True, False, False]
    assert one("float_as_int", 1.0) == 0x3F800000


def test_a_function_that_is_not_known_is_named() -> None:
    with pytest.raises(NotInterpretedError, match="__nv_fadd_rd"):
        function_of("__nv_fadd_rd")
    assert "fadd_rd" not in FUNCTIONS, "it rounds towards minus infinity, which numpy does not"


def test_cuda_is_the_cpu_wherever_torch_is_called_with_it() -> None:
    with CudaAsCpu():
        made = [
            torch.empty(2, device="cuda"),
            torch.ops.aten.full.default([2], 1.0, device=torch.device("cuda", 0)),
            torch.zeros(2).to("cuda:0"),
            torch.ops.prims.device_put.default(torch.zeros(2), torch.device("cuda:0")),
        ]
    assert {tensor.device.type for tensor in made} == {"cpu"}


def test_the_result_of_an_operator_is_laid_out_as_the_wrapper_asserts() -> None:
    relaid = set[str]()
    check = size_and_stride(torch._C._dynamo.guards.assert_size_stride, relaid)
    tensor = torch.arange(24.0).view(1, 2, 3, 4)
    expected = tensor.clone()
    check(tensor, (1, 2, 3, 4), (24, 1, 8, 2), "torch.ops.aten.convolution.default")
    assert tensor.stride() == (24, 1, 8, 2)
    assert torch.equal(tensor, expected)
    assert relaid == {"torch.ops.aten.convolution.default"}
    with pytest.raises(AssertionError):
        check(tensor, (1, 2, 3, 4), (24, 12, 4, 1))  # an input, which the wrapper does not name


def test_four_random_numbers_of_one_count_are_those_of_its_words() -> None:
    words = random_numbers.philox(7, 3, torch.device("cpu"))
    numbers = random_numbers.four_at_a_time(7, 10, torch.device("cpu"), "rand")
    expected = torch.stack([random_numbers.uniform(word) for word in words], 1).view(-1)[:10]
    assert torch.equal(numbers, expected)


def test_constants_of_a_users_kernel_are_not_passed_and_sizes_of_inductors_are() -> None:
    def users(left: Any, count: Any, BLOCK: tl.constexpr) -> None: ...  # type: ignore[name-defined] # noqa: F821, N803

    def inductors(in_ptr0: Any, xnumel: Any, XBLOCK: tl.constexpr) -> None: ...  # type: ignore[name-defined] # noqa: F821, N803

    def passed(function: Any, constants: dict[str, int], config: dict[str, int], count: int) -> list[str]:
        names = list(function.__code__.co_varnames)
        kernel = Interpreted(
            SimpleNamespace(fn=function, arg_names=names), [SimpleNamespace(kwargs=config)], {}, {}
        )
        return kernel._passed(constants, count)

    assert passed(users, {"BLOCK": 64}, {}, 2) == ["left", "count"]
    assert passed(inductors, {"xnumel": 1}, {"XBLOCK": 1}, 2) == ["in_ptr0", "xnumel"]
