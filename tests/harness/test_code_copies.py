"""A kernel's time does not rest on where one copy of its code lies."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
import torch
from torch._inductor.async_compile import AsyncCompile

from inductor_probe.harness.code_copies import COPIES, copies_of
from inductor_probe.harness.replays import Launch

KERNEL = """
#include <cstdint>
extern "C" void kernel(const float* in, float* out) { for (int i = 0; i < 64; i++) out[i] = in[i] * 3; }
"""


@pytest.mark.compiles
def test_each_slot_of_a_ring_has_a_copy_of_the_code_at_another_place(tmp_path: Path) -> None:
    """A branch that a core had learned or not made medians of processes differ by 12 %."""
    compiler = AsyncCompile()
    kernel = compiler.cpp_pybinding(["const float*", "float*"], KERNEL)
    compiler.wait({"kernel": kernel})
    kernel = getattr(kernel, "result", lambda: kernel)()
    x = torch.rand(64)
    launch = Launch(None, (x, torch.zeros(64)), {})
    subject = launch.subject("k alone", kernel)
    functions = set()
    for _ in range(2 * COPIES):
        out = torch.zeros(64)
        run = subject.bind(((x, out), {}))
        run()
        assert torch.equal(out, x * 3)
        functions.add(run.func.__self__)  # type: ignore[attr-defined]
    assert len(functions) == COPIES, "and the first again behind the last"
    places = {int(line.split("-")[0], 16) for line in mapped() if "copy-" in line and "r-xp" in line}
    assert len(places) >= COPIES - 1


def mapped() -> list[str]:
    return Path("/proc/self/maps").read_text().splitlines()


def test_what_is_no_function_of_a_library_is_itself() -> None:
    def kernel() -> None:
        pass

    assert list(islice(copies_of(kernel), 3)) == [kernel] * 3
