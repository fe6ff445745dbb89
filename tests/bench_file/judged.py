"""Bench objects for the judge: a call, its copy and a graph, of eight numbers; and what is said of them."""

from __future__ import annotations

from typing import Any

import torch

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.checks import Check
from inductor_probe.harness.inputs import Inputs
from inductor_probe.harness.judge import POISON
from inductor_probe.harness.references import judge, prepare


class Double(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
        return (torch.ops.aten.mul.Tensor(x, 2),)


def bench(call: Any, call_v2: Any, aten_graph: Any = Double, dtype: torch.dtype = torch.float32) -> Bench:
    def make_inputs(inputs: Inputs) -> list[Any]:
        return [inputs.tensor("x", (8,), (1,), dtype, "cpu", high=50)]

    namespace = {"empty_strided": torch.empty_strided, "call": call, "call_v2": call_v2}
    names = {"GRAPH": "g", "KERNELS": [], "NO_REFERENCE": "none here", "make_inputs": make_inputs}
    return Bench({**namespace, **names, **({"AtenGraph": aten_graph} if aten_graph else {})})


def verdicts(subject: Bench) -> tuple[Any, Any]:
    prepared = [prepare(subject, at, pattern) for at, pattern in enumerate(POISON)]
    variant = judge("call_v2", [each for each, _ in prepared])
    return next((check for _, check in prepared if not check.correct), prepared[0][1]), variant


def double(args: list[Any]) -> tuple[Any, ...]:
    (x,) = args
    args.clear()
    return (x * 2,)


def reasons(check: Check) -> str:
    """Say why a check ended as it did."""
    return "; ".join(sentence.format(**numbers) for sentence, numbers in check.remarks)
