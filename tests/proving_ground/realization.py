"""Why a value becomes a buffer, or is computed within its users: a program for each cause, with its flip."""

from __future__ import annotations

import torch
from torch.nn import functional

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of

Tensors = tuple[torch.Tensor, ...]


def ones(count: int, *size: int) -> Tensors:
    """Return tensors of ones."""
    return tuple(torch.ones(size) for _ in range(count))


def row_sums(values: torch.Tensor) -> torch.Tensor:
    """Return sums of rows, plus one."""
    return values.sum(-1) + 1


def used_twice(value: torch.Tensor, other: torch.Tensor) -> Tensors:
    """Return sums over both dimensions of a value: neither can be computed within the other."""
    return (value * other).sum(0), value.sum(1)


def reads_five(*values: torch.Tensor) -> Tensors:
    """Return what uses a sum of five tensors twice."""
    return used_twice(values[0] + values[1] + values[2] + values[3] + values[4], values[0])


def reads_four(*values: torch.Tensor) -> Tensors:
    """Return what uses a sum of four tensors twice."""
    return used_twice(values[0] + values[1] + values[2] + values[3], values[0])


def chain(values: torch.Tensor, steps: int) -> torch.Tensor:
    """Return the result of three operations a step."""
    result = values
    for step in range(steps):
        result = (result + step) * values
    return result


def many_operations(values: torch.Tensor) -> Tensors:
    """Return what uses the result of more than fifty operations twice."""
    return used_twice(chain(values, 20), values)


def long_chain(values: torch.Tensor) -> torch.Tensor:
    """Return what uses the result of more than a hundred operations once."""
    return chain(values, 35).sum()


def exp_twice(values: torch.Tensor) -> Tensors:
    """Return what uses an exponential twice."""
    return used_twice(values.exp(), values)


def square_twice(values: torch.Tensor) -> Tensors:
    """Return what uses a square twice."""
    return used_twice(values * values, values)


def sum_of_all(*values: torch.Tensor) -> torch.Tensor:
    """Return the sum of all rows of a sum, which has one user."""
    total = values[0]
    for value in values[1:]:
        total = total + value
    return (total * 2).sum()


def sum_of_squares(values: torch.Tensor) -> torch.Tensor:
    """Return the sum of all squares."""
    return (values * values).sum()


def add_one(values: torch.Tensor) -> torch.Tensor:
    """Return the sum of a tensor and one."""
    return values + 1


def sum_one_more(values: torch.Tensor) -> torch.Tensor:
    """Sum what has one more. What is done with the sum comes from that too, and does not compute it."""
    return (values + 1).sum(dim=1) * 2


def strided_sum(values: torch.Tensor) -> torch.Tensor:
    """Return the sum of a strided view of a result."""
    return (values + 1).as_strided((4, 4), (1, 8)).sum()


def sliced_sum(values: torch.Tensor) -> torch.Tensor:
    """Return the sum of a slice of a result."""
    return (values + 1)[:4, :4].sum()


def product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return a matrix product of a sum."""
    return (left + 1) @ right


def product_and_sum(left: torch.Tensor, right: torch.Tensor) -> Tensors:
    """Return a matrix product of a sum of two tensors, and the sum of that."""
    value = left + right
    return value @ right, value.sum()


def pointwise_product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return a product of each element, summed."""
    return ((left + 1) * right).sum()


def pooled(image: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return the maxima of a sum of two images."""
    return functional.max_pool2d(image + other, 3)


def pooled_one(image: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return the maxima of a sum of one image: one read."""
    return functional.max_pool2d(image + 1, 3)


def concatenated(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return two sums beside each other."""
    return torch.cat([left + 1, right + 2])


def added_in_place(values: torch.Tensor) -> torch.Tensor:
    """Return the sum of a tensor that has been increased."""
    values.add_(1)
    return values.sum()


def put_into_rows(values: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return a sum, some rows of which are replaced."""
    return torch.index_put(values + 1, (rows,), values)


def rows_of_sum(values: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return some rows of a sum."""
    return (values + 1)[rows]


def product_of_elements(left: torch.Tensor, right: torch.Tensor) -> Tensors:
    """Return sums over each dimension, one of a product with a sum of two tensors."""
    return used_twice(left + right, right)


def rows_and_ones() -> Tensors:
    """Return a matrix, and numbers of its rows."""
    return torch.ones(8, 8), torch.arange(8)


CHEAP = ("inlined", "cheap")
SINGLE_USER = ("inlined", "single-user")

PROGRAMS = {
    "reduction": Program(
        code="reduction",
        function=row_sums,
        inputs=lambda: ones(1, 8, 64),
        about=("buf0",),
        operands={"type": "Reduction", "node": "sum_1", "stored": True},
        flipped_inputs=lambda: ones(1, 8, 4),
        flipped_about=("sum_1",),
        turned=SINGLE_USER,
    ),
    "reads": Program(
        code="reads",
        function=reads_five,
        inputs=lambda: ones(5, 8, 64),
        about=("buf0",),
        operands={"reads": 5, "reads_limit": 4, "users": 2, "node": "add_3"},
        flip={"realize_reads_threshold": 5},
        flipped_about=("add_3",),
        turned=CHEAP,
    ),
    "fewer_reads": Program(
        code="reads",
        function=reads_five,
        inputs=lambda: ones(5, 8, 64),
        about=("buf0",),
        flipped_function=reads_four,
        flipped_about=("add_2",),
        turned=CHEAP,
    ),
    "operations": Program(
        code="operations",
        function=many_operations,
        inputs=lambda: ones(1, 8, 64),
        about=("buf0",),
        settings={"realize_opcount_threshold": 40},
        operands={"operations_limit": 40, "users": 2, "setting": "realize_opcount_threshold"},
        flip={"realize_opcount_threshold": 100},
        flipped_about=("mul_19",),
        turned=CHEAP,
    ),
    "operations_of_one_user": Program(
        code="operations",
        function=long_chain,
        inputs=lambda: ones(1, 8, 64),
        about=("buf0",),
        operands={"operations_limit": 100},
        flip={"realize_opcount_threshold": 200},
        flipped_about=("mul_34",),
        turned=SINGLE_USER,
    ),
    "heavy_operations": Program(
        code="heavy-operations",
        function=exp_twice,
        inputs=lambda: ones(1, 8, 64),
        about=("buf0",),
        operands={"heavy": ("exp",), "users": 2, "node": "exp"},
        flipped_function=square_twice,
        flipped_about=("mul",),
        turned=CHEAP,
    ),
    "accumulated_reads": Program(
        code="accumulated-reads",
        function=sum_of_all,
        inputs=lambda: ones(14, 8, 64),
        about=("buf0",),
        settings={"realize_acc_reads_threshold": 12},
        operands={"reads": 13, "reads_limit": 12, "setting": "realize_acc_reads_threshold", "stored": False},
        flip={"realize_acc_reads_threshold": 20},
        flipped_about=("add_11",),
        turned=SINGLE_USER,
    ),
    "split_reduction": Program(
        code="split-reduction",
        function=sum_of_squares,
        inputs=lambda: (torch.ones(1 << 22, device="cuda"),),
        about=("buf0",),
        operands={"operator": "aten.sum.default"},
        flipped_inputs=lambda: (torch.ones(1 << 10, device="cuda"),),
        flipped_about=("mul",),
        turned=SINGLE_USER,
        device="cuda",
    ),
    "output": Program(
        code="output",
        function=add_one,
        inputs=lambda: ones(1, 8, 64),
        about=("buf0",),
        operands={"node": "add", "asker": "output"},
        flipped_function=sum_one_more,
        flipped_about=("add",),
        turned=SINGLE_USER,
    ),
    "as_strided_input": Program(
        code="as-strided-input",
        function=strided_sum,
        inputs=lambda: ones(1, 8, 64),
        about=("buf0",),
        operands={"node": "add"},
        flipped_function=sliced_sum,
        flipped_about=("add",),
        turned=SINGLE_USER,
    ),
    "extern_operand": Program(
        code="extern-operand",
        function=product,
        inputs=lambda: ones(2, 8, 8),
        about=("buf0",),
        operands={"node": "add", "operator": "aten.mm.default"},
        flipped_function=pointwise_product,
        flipped_about=("add",),
        turned=SINGLE_USER,
    ),
    "user_needs_buffer": Program(
        code="user-needs-buffer",
        function=product_and_sum,
        inputs=lambda: ones(2, 8, 8),
        about=("buf0",),
        operands={"user": "aten.mm.default", "users": 2},
        flipped_function=product_of_elements,
        flipped_about=("add",),
        turned=CHEAP,
    ),
    "hint": Program(
        code="hint",
        function=pooled,
        inputs=lambda: ones(2, 1, 4, 9, 9),
        about=("buf0",),
        operands={"node": "add"},
        flipped_function=pooled_one,
        flipped_about=("add",),
        turned=SINGLE_USER,
    ),
    "concatenation": Program(
        code="concatenation",
        function=concatenated,
        inputs=lambda: ones(2, 8, 8),
        about=("buf0",),
        operands={"node": "add", "operator": "aten.cat.default"},
        flip={"force_pointwise_cat": True},
        flipped_about=("add",),
        turned=SINGLE_USER,
    ),
    "mutation": Program(
        code="mutation",
        function=added_in_place,
        inputs=lambda: ones(1, 8, 8),
        about=("buf2",),
        operands={"operator": "aten.copy_.default"},
        flipped_function=sum_one_more,
        flipped_about=("add",),
        turned=SINGLE_USER,
    ),
    "lowering": Program(
        code="lowering",
        function=put_into_rows,
        inputs=rows_and_ones,
        about=("buf0",),
        operands={"node": "add", "function": "index_put_impl_"},
        flipped_function=rows_of_sum,
        flipped_about=("add",),
        turned=SINGLE_USER,
    ),
    "single_user": Program(
        code="single-user",
        function=sum_one_more,
        inputs=lambda: ones(1, 8, 8),
        about=("add",),
        operands={"into": ("buf0",)},
        flipped_function=add_one,
        flipped_about=("buf0",),
        turned=("realised", "output"),
    ),
    "cheap": Program(
        code="cheap",
        function=square_twice,
        inputs=lambda: ones(1, 8, 8),
        about=("mul",),
        operands={"users": 2, "reads": 1, "reads_limit": 4, "into": ("buf0", "buf1")},
        flip={"realize_opcount_threshold": 1},
        flipped_about=("buf0",),
        turned=("realised", "operations"),
    ),
}
scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
