"""From the samples of a call to parts that add up to it."""

from __future__ import annotations

from typing import Any

import pytest
from inline_snapshot import snapshot

from inductor_probe.bench.call_parts import call_parts_of
from inductor_probe.model.call_parts import CallParts
from inductor_probe.model.codec import from_json
from inductor_probe.model.timing import CallSamples
from inductor_probe.report.pages.call_parts import call_parts_sentence, call_parts_table
from inductor_probe.report.terminal import to_text


def timed(kind: str, us: float, name: str = "", host: float | None = None, launches: int = 1) -> Any:
    factors = (1.0, 1.0, 1.0, 3.0)  # the last round was on a busy machine
    return {
        "kind": kind,
        "name": name or kind,
        "seconds": [factor * us * 1e-6 for factor in factors],
        "host": [] if host is None else [factor * host * 1e-6 for factor in factors],
        "launches": launches,
    }


def parts_of(*timed_parts: Any, device: str = "cpu", graphs: int = 1) -> CallParts:
    data = {"device": device, "allocations": 2, "graphs": graphs, "parts": [*timed_parts], "remarks": []}
    return call_parts_of([from_json(CallSamples, data)])


INFERENCE = (
    timed("guards", 9.0, host=8.0), timed("compiled", 20.5), timed("dynamo", 9.0), timed("fx", 7.0),
    timed("call", 6.0), timed("kernel", 2.0, "cpp_fused_0", host=0.5, launches=2),
    timed("library", 1.0, "extern_kernels.mm"),
)  # fmt: skip


def seconds(parts: CallParts, side: str = "host") -> dict[str, float]:
    return {row.kind: round(row.seconds * 1e6, 3) for row in parts.rows if row.side == side}


def test_each_part_is_what_a_function_takes_more_than_what_it_calls() -> None:
    parts = parts_of(*INFERENCE)
    assert seconds(parts) == {
        "guards": 1.0, "entry": 10.5, "autograd": 2.0, "inductor": 1.0, "wrapper": 3.0, "launches": 0.5,
        "kernel": 1.5, "library": 1.0, "remainder": 0.0, "compiled": 20.5,
    }  # fmt: skip
    assert sum(row.seconds for row in parts.rows[:-1]) == pytest.approx(parts.rows[-1].seconds)
    assert to_text(call_parts_table(parts), 80) == snapshot("""\
                            time       MAD    share
guards                  1.000 us  0.000 us    4.9 %
dynamo's entry          10.50 us  0.000 us   51.2 %
AOTAutograd's runtime   2.000 us  0.000 us    9.8 %
inductor's entry        1.000 us  0.000 us    4.9 %
wrapper, 2 allocations  3.000 us  0.000 us   14.6 %
launches                0.500 us  0.000 us    2.4 %
cpp_fused_0 x2          1.500 us  0.000 us    7.3 %
extern_kernels.mm       1.000 us  0.000 us    4.9 %
remainder               0.000 us  0.000 us    0.0 %
The call                20.50 us  0.000 us  100.0 %\
""")
    assert call_parts_sentence(parts) == (
        "The call takes 20.50 us: dynamo's entry 10.50 us, wrapper, 2 allocations 3.000 us, "
        "AOTAutograd's runtime 2.000 us."
    )


def test_a_backward_has_its_own_graphs_and_autograd_around_them() -> None:
    both = (timed("forward", 15.0), timed("fx-backward", 2.0), timed("call-backward", 1.5))
    found = seconds(parts_of(*INFERENCE, *both))
    assert (found["entry"], found["backward"], found["inductor"]) == (5.0, 3.5, 1.5)
    assert sum(found.values()) == pytest.approx(2 * found["compiled"])


def test_parts_that_exceed_the_call_are_its_shares_and_none_is_negative() -> None:
    """`wrapper -42.33 us` is no time, nor is a kernel of 270 ms in a call of 4 ms."""
    parts = parts_of(timed("compiled", 20.0), timed("dynamo", 21.0), timed("fx", 22.0), timed("call", 30.0))
    found = seconds(parts)
    assert min(found.values()) >= 0.0
    assert max(found.values()) == found["compiled"] == 20.0
    assert parts.scale < 1


def test_another_backend_and_a_call_that_was_not_looked_into_are_named() -> None:
    other = seconds(parts_of(timed("compiled", 20.0), timed("dynamo", 9.0)))
    assert (other["backend"], "autograd" in other) == (9.0, False)
    assert seconds(parts_of(*INFERENCE[:5]))["graph"] == 6.0


def test_python_between_graphs_is_a_part_where_there_are_several() -> None:
    parts = parts_of(*INFERENCE, timed("between", 4.0), graphs=3)
    assert (seconds(parts)["between"], seconds(parts)["entry"]) == (4.0, 6.5)
    assert "the call runs 3 graphs of dynamo" in to_text(call_parts_table(parts), 80)


def test_a_gpu_has_kernels_copies_and_gaps_of_its_own() -> None:
    gpu = (
        timed("gpu-kernel", 4.0, "triton_0"),
        timed("gpu-copy", 1.0),
        timed("gpu-gap", 0.5),
        timed("gpu-wall", 21.0),
    )
    parts = parts_of(*INFERENCE, *gpu, device="cuda")
    device = seconds(parts, "device")
    assert device["call"] == pytest.approx(device["kernel"] + device["copy"] + device["gap"], abs=2e-3)
    assert seconds(parts)["launches"] == 3.0
    assert parts.wall == pytest.approx(21e-6, rel=0.02)
