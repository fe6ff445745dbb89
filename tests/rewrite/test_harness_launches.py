from __future__ import annotations

import ctypes
from typing import Any

import torch

from inductor_probe.rewrite.harness.launches import record
from tests.rewrite.benches import bench, kernels


class FakeTriton:
    def run(self, x: Any, out: Any, n: int, *, stream: int) -> None:
        out.copy_(x * n + stream)


def test_launches_are_recorded_with_what_the_buffers_held_then() -> None:
    subject = kernels()
    first, second = record(subject, "call", "k", [torch.full((64,), 3.0)])
    assert first.args[0][0] == 3
    assert second.args[0][0] == 6
    assert second.args[0].data_ptr() == second.args[1].data_ptr()
    assert second.fits(second)
    assert callable(subject.namespace["k"])
    second.bind(subject.namespace["k"])()
    assert second.args[1][0] == 12


def test_triton_launches_are_replayed_through_run() -> None:
    kernel = FakeTriton()

    def call(args: list[Any]) -> tuple[Any]:
        out = torch.empty_like(args[0])
        subject.namespace["k"].run(args[0], out, 2, stream=5)
        return (out,)

    subject = bench({"k": kernel, "call": call}, ["k"])
    (launch,) = record(subject, "call", "k", [torch.ones(64)])
    launch.bind(kernel)()
    assert (launch.method, launch.args[1][0].item()) == ("run", 7.0)
    assert subject.namespace["k"] is kernel


def test_raw_pointers_cannot_be_replayed() -> None:
    subject = bench({"k": id}, ["k"])

    def call(args: list[Any]) -> tuple[()]:
        subject.namespace["k"](ctypes.c_void_p(args[0].data_ptr()))
        return ()

    subject.namespace["call"] = call
    (launch,) = record(subject, "call", "k", [torch.ones(64)])
    assert not launch.replayable()
