"""Kernels of two devices beside each other: by what they compute, with the times of a profile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from inline_snapshot import snapshot
from msgspec.structs import replace

from inductor_probe.analysis.diff.devices import compare_devices
from inductor_probe.model.profile import Profile, ProfilePart
from inductor_probe.model.timing import PeakRate, Roofline
from tests.conftest import DUMPS, Ran
from tests.dumps import folder_of, read_at

ON_CPU = "torch-2.1.2-cpu/layernorm_grad"
ON_GPU = "torch-2.11.0-cuda/layernorm_grad"


def backward(program: str) -> Path:
    return next((DUMPS / program).glob("run_*/torchinductor/*backward*"))


def profile_of(kernels: dict[str, float], uncertainty: float = 0.0) -> Profile:
    parts = [
        ProfilePart("kernel", name, "host", seconds, uncertainty, 0.5, 1, moved=8 << 20)
        for name, seconds in kernels.items()
    ]
    copies = PeakRate("copy", "memory", 1 << 30, 10e9, 5)
    return Profile(
        "backward", "2.1.2", "cpu", 1, "tsc", 1.0, 1.0, 0.0, 3, tuple(parts), (), (),
        roofline=Roofline("2.1.2", "cpu", 1, 1 << 20, 1 << 21, (copies,)),
    )  # fmt: skip


def test_three_kernels_of_a_gpu_stand_beside_the_one_of_a_cpu_that_computes_the_same() -> None:
    a, b = read_at(backward(ON_CPU)), read_at(backward(ON_GPU))
    (group,) = compare_devices(a, b, None, None).groups
    assert len(group.a) == 1
    assert len(group.b) == 3
    moved = [kernel.moved or 0 for kernel in group.b]
    assert sum(moved) > (group.a[0].moved or 0)
    turned = compare_devices(b, a, None, None).groups[0]
    assert (turned.a, turned.b) == (group.b, group.a)


def test_a_time_is_held_against_what_its_machine_copies_and_a_short_one_is_not() -> None:
    a, b = read_at(backward(ON_CPU)), read_at(backward(ON_GPU))
    name = compare_devices(a, b, None, None).groups[0].a[0].name
    diff = compare_devices(a, b, profile_of({name: 2e-3}), None)
    kernel = diff.groups[0].a[0]
    assert (diff.timed_a, diff.timed_b) == (True, False)
    assert kernel.share == pytest.approx((8 << 20) / 2e-3 / 10e9)
    short = compare_devices(a, b, profile_of({name: 2e-6}, 5e-6), None).groups[0].a[0]
    assert short.share is None


def test_every_kernel_of_both_is_in_one_group_whatever_is_missing() -> None:
    a, b = read_at(backward(ON_CPU)), read_at(folder_of("torch-2.13.0-cpu/hflip_cl"))
    for first, second in (
        (a, b),
        (replace(a, fx=None), read_at(backward(ON_GPU))),
        (a, replace(a, code=None)),
    ):
        groups = compare_devices(first, second, None, None).groups
        for side, graph in (("a", first), ("b", second)):
            names = [kernel.name for group in groups for kernel in getattr(group, side)]
            assert len(names) == len(set(names)), side
            assert len(names) == len(graph.code.kernels if graph.code else ())


def test_the_screen_says_which_side_fuses_and_what_was_not_timed(probe: Callable[..., Ran]) -> None:
    ran = probe("diff", backward(ON_CPU), backward(ON_GPU), "--devices", COLUMNS="100")
    assert ran.status == 1
    table, _, untimed = ran.out.partition("\n  A was not timed: probe profile")
    assert "\n  B was not timed: probe profile" in untimed
    assert "\n".join(line.rstrip() for line in table.splitlines()) == snapshot("""\
model__0_backward_57.1 -> model__0_backward_3.1
  A  cpu: 1 kernel or library call
  B  cuda:0: 3 kernels and library calls

   kernel                                            nodes     bytes  computes
A  cpp_fused_gelu_gelu_…layer_norm_backward_0            7    12 MiB  sub, mul, add +4
B  triton_per_fused_gelu_gelu…layer_norm_backward_0      5    12 MiB  -
B  triton_red_fused_gelu_gelu…layer_norm_backward_1      2  9.05 MiB  -
B  triton_per_fused_gelu_gelu…layer_norm_backward_2      2    54 KiB  -
B: 3 kernels for 1 of A, which move 9.09 MiB more (cpp_fused_gelu_gelu_…layer_norm_backward_0)\
""")
