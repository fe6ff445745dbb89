"""Bench objects made by hand: wrappers and kernels in Python, without a graph."""

from __future__ import annotations

from typing import Any

import torch

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.inputs import Inputs


def bench(namespace: dict[str, Any], kernels: list[str]) -> Bench:
    def make_inputs(inputs: Inputs) -> list[Any]:
        return [inputs.tensor("x", (64,), (1,), torch.float32, "cpu")]

    made = {"GRAPH": "g", "KERNELS": kernels, "NO_REFERENCE": "none here", "make_inputs": make_inputs}
    namespace.update(made)
    return Bench(namespace)


def kernels(wrong: bool = False) -> Bench:
    def wrapper(kernel: str) -> Any:
        def call(args: list[Any]) -> tuple[Any]:
            (x,) = args
            args.clear()
            out = subject.namespace["empty_strided"]((64,), (1,))
            subject.namespace[kernel](x, out)
            subject.namespace[kernel](out, out)
            return (out,)

        return call

    def double(x: Any, out: Any) -> None:
        out.copy_(x * 2)

    def triple(x: Any, out: Any) -> None:
        out.copy_(x * 3)

    subject = bench({"empty_strided": torch.empty_strided, "k": double}, ["k"])
    subject.namespace.update(k_v2=triple if wrong else double, call=wrapper("k"), call_v2=wrapper("k_v2"))
    return subject
