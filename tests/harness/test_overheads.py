"""Kernels, launches and wrapper, timed in one process."""

from __future__ import annotations

import ctypes
import json
import random
from typing import Any

import pytest
import torch

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.budget import Budget
from inductor_probe.harness.overheads import (
    Flops,
    LibraryCalls,
    empty_kernel,
    flops_of,
    measure_overheads,
    signature,
    steps_of,
    watched_allocators,
)
from inductor_probe.harness.remarks import Remark, sentence
from inductor_probe.harness.replays import Launch


def a_bench(namespace: dict[str, Any], kernels: list[str], graph: Any = None) -> Bench:
    namespace.update(GRAPH="g", KERNELS=kernels, NO_REFERENCE="", make_inputs=lambda inputs: [])
    if graph is not None:
        namespace["AtenGraph"] = graph
    return Bench(namespace)


def test_library_calls_are_noted_but_neither_views_nor_empty_memory() -> None:
    x, out = torch.ones(4, 4), torch.empty(4, 4)
    with LibraryCalls() as library:
        torch.mm(x.t(), x.view(4, 4), out=out)
        torch.empty(3)
        x.add_(1)
    assert [step.name for step in library.steps] == ["aten.mm.out", "aten.add_.Tensor"]
    assert library.steps[1].launch.args[0].tolist() == torch.ones(4, 4).tolist()  # as it was before


def test_pointers_to_memory_of_something_else_leave_kernels_out_with_a_remark() -> None:
    hidden = torch.ones(4)

    def kernel(pointer: Any) -> None:
        assert pointer.value == hidden.data_ptr()

    namespace: dict[str, Any] = {"kernel": kernel}
    namespace["call"] = lambda args: namespace["kernel"](ctypes.c_void_p(hidden.data_ptr())) or args
    remarks: list[Remark] = []
    assert steps_of(a_bench(namespace, ["kernel"]), [torch.ones(2)], remarks) == []
    assert [sentence(remark) for remark in remarks] == [
        "kernels are not timed one by one: launches of kernel pass pointers to memory of something else"
    ]


def test_allocations_of_one_call_are_counted() -> None:
    namespace: dict[str, Any] = {"empty_strided": torch.empty_strided}
    namespace["call"] = lambda args: tuple(namespace["empty_strided"]((2,), (1,)) for _ in range(3))
    allocated: list[Any] = []
    with watched_allocators(namespace, allocated.append):
        namespace["call"]([])
    assert len(allocated) == 3
    assert namespace["empty_strided"] is torch.empty_strided


def test_flops_are_counted_only_where_an_operator_registers_a_count() -> None:
    a, b = torch.ones(2, 3), torch.ones(3, 5)
    with Flops() as mode:
        (a @ b).relu().sum()
    assert mode.counted == [("aten.mm", 2 * 2 * 3 * 5)]
    assert flops_of(a_bench({}, []), [], []) is None


def test_a_graph_that_calls_cond_has_no_count_and_one_sentence_why() -> None:
    class Branches(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x @ x,))

    remarks: list[Remark] = []
    assert flops_of(a_bench({}, [], Branches), [torch.ones(4, 4)], remarks) is None
    (said,) = remarks
    assert sentence(said) == (
        "flops are not counted: the graph calls cond, whose subgraphs are not looked into"
    )


@pytest.mark.compiles
def test_an_empty_kernel_takes_the_arguments_of_the_real_one() -> None:
    launch = Launch(None, (torch.ones(2), 3, 0.5), {})
    assert signature(launch) == "pif"
    kernel = empty_kernel("pif")
    assert kernel(*launch.args) is None
    by_pointers = Launch(None, (torch.ones(2), 3), {}, frozenset({0}))
    assert signature(by_pointers) == "Pi"
    by_pointers.starter(empty_kernel("Pi"))(by_pointers.values())()
    with pytest.raises(RuntimeError, match="requires 3 args"):
        kernel(torch.ones(2))


@pytest.mark.compiles
def test_every_part_of_a_call_is_timed_in_every_round() -> None:
    def kernel(x: Any, out: Any, number: int) -> None:
        torch.mul(x, number, out=out)

    namespace: dict[str, Any] = {"kernel": kernel, "empty_strided_cpu": torch.empty_strided}

    def call(args: list[Any]) -> Any:
        (x,) = args
        args.clear()
        first = namespace["empty_strided_cpu"]((8, 8), (8, 1))
        namespace["kernel"](x, first, 3)
        second = namespace["empty_strided_cpu"]((8, 8), (8, 1))
        return (torch.mm(first, x, out=second),)

    namespace["call"] = call
    graph = lambda: lambda x: ((x * 3) @ x,)  # noqa: E731
    found = measure_overheads(
        a_bench(namespace, ["kernel"], graph),
        [torch.rand(8, 8)],
        Budget(0.05),
        random.Random(0),  # noqa: S311
    )
    kinds = {part["kind"]: part for part in found["parts"]}
    # A Python function for a kernel calls an operator, and so both are seen.
    assert set(kinds) == {"library", "kernel", "call"}
    rounds = len(kinds["call"]["seconds"])
    assert rounds
    assert all(len(part["seconds"]) == rounds for part in found["parts"])
    assert len(kinds["kernel"]["host"]) == rounds
    assert (found["device"], found["allocations"], found["flops"]) == ("cpu", 2, [("aten.mm", 1024)])
    assert found["remarks"] == []
    assert json.loads(json.dumps(found, allow_nan=False))["parts"][-1]["kind"] == "call"
