from __future__ import annotations

import ctypes
from typing import Any

import torch

from inductor_probe.harness.replays import MOST_ALIKE, kernel_pairs, record
from tests.bench_file.benches import bench, kernels


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
    second.starter(subject.namespace["k"])(second.values())()
    assert second.args[1][0] == 12


def test_triton_launches_are_replayed_through_run() -> None:
    kernel = FakeTriton()

    def call(args: list[Any]) -> tuple[Any]:
        out = torch.empty_like(args[0])
        subject.namespace["k"].run(args[0], out, 2, stream=5)
        return (out,)

    subject = bench({"k": kernel, "call": call}, ["k"])
    (launch,) = record(subject, "call", "k", [torch.ones(64)])
    launch.starter(kernel)(launch.values())()
    assert (launch.method, launch.args[1][0].item()) == ("run", 7.0)
    assert subject.namespace["k"] is kernel


def test_raw_pointers_are_told_by_the_memory_that_they_point_into() -> None:
    """Torch before 2.3 passes them: to an input, to a buffer, into the middle of one."""
    copied: list[float] = []

    def kernel(source: ctypes.c_void_p, out: ctypes.c_void_p, count: ctypes.c_long) -> None:
        assert source.value is not None
        assert out.value is not None
        ctypes.memmove(out.value, source.value, 4 * count.value)
        copied.append(ctypes.c_float.from_address(out.value).value)

    def call(args: list[Any]) -> tuple[Any]:
        (x,) = args
        args.clear()
        out = torch.empty_strided((64,), (1,))
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (x[32:], out)]
        subject.namespace["k"](*pointers, ctypes.c_long(32))
        return (out,)

    subject = bench({"k": kernel, "call": call}, ["k"])
    (launch,) = record(subject, "call", "k", [torch.arange(64.0)])
    assert launch.replayable()
    assert launch.pointers == {0, 1}
    assert [arg.numel() for arg in launch.args[:2]] == [4 * 32, 4 * 64]
    launch.args[0].view(torch.float32)[0] = 7.0
    launch.starter(kernel)(launch.values())()
    assert copied == [32.0, 32.0, 7.0]
    assert launch.args[1].view(torch.float32)[0] == 7.0


def test_pointers_to_memory_of_something_else_cannot_be_replayed() -> None:
    subject, foreign = bench({"k": lambda _: None}, ["k"]), ctypes.c_float(1.0)

    def call(_: list[Any]) -> tuple[()]:
        subject.namespace["k"](ctypes.c_void_p(ctypes.addressof(foreign)))
        return ()

    subject.namespace["call"] = call
    (launch,) = record(subject, "call", "k", [torch.ones(64)])
    assert not launch.replayable()


def test_of_many_launches_one_of_each_form_is_timed() -> None:
    def k(x: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_(x + 1)

    def call(args: list[Any]) -> list[Any]:
        outs = [torch.empty_like(args[0]) for _ in range(count)]
        for number, out in enumerate(outs):
            taken = slice(None) if number < count - 2 else slice(0, 8)
            subject.namespace["k"](args[0][taken], out[taken])
        return outs[:1]

    subject = bench({"k": k, "call": call}, ["k"])
    for count, timed in ((MOST_ALIKE, MOST_ALIKE), (MOST_ALIKE + 3, 2)):
        remarks: list[dict[str, Any]] = []
        pairs = list(kernel_pairs(subject, "k", [torch.ones(64)], set(), remarks.append))
        assert len(pairs) == timed
        numbers = [remark["numbers"] for remark in remarks if remark["code"] == "launches-alike"]
        assert numbers == ([] if timed == count else [{"launches": count, "timed": 2}])
    assert [pair[0].name for pair in pairs] == ["k alone #1", f"k alone #{count - 1}"]
