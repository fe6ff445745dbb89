"""A process that has three kernels, and times two of them in the way it is asked, for `verdicts.py`.

Each line on its standard input is a way, a case and seconds; a line of JSON answers: quads, or two times.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch  # noqa: TID253 - it times torch programs

from inductor_probe.harness.timing import Subject, make_ring, make_side, time_quads

MORE = 1.02
SIZE = {"cpu": 10_500, "cuda": 1 << 24}
CPP = """
// {name}
#include <cmath>
extern "C" void kernel(const float* in, float* out) {{
    for (long i = 0; i < {size}L; i++) {{
        float x = in[i], sum = 0;
        for (int term = 0; term < 24; term++) sum = sum * x + 0.5f;
        out[i] = sum;
    }}
}}
"""


def kernels(device: str, size: int) -> dict[str, Callable[[Any, Any], object]]:
    """Compile the kernel, a second copy, and one with more work; each takes an input and an output."""
    sizes = {"base": size, "copy": size, "more": more(size)}
    if device == "cuda":
        return triton_kernels(sizes)
    from torch._inductor.async_compile import AsyncCompile

    compiler = AsyncCompile()
    made: dict[str, Any] = {
        name: compiler.cpp_pybinding(["const float*", "float*"], CPP.format(name=name, size=count))
        for name, count in sizes.items()
    }
    compiler.wait(made)
    return made


def more(size: int) -> int:
    """Return a size with 2 % more work, divided by 16 as often as `size` is: Triton's loads depend on it."""
    step = 1024 if size % 1024 == 0 else 1
    return round(size * MORE / step) * step


def triton_kernels(sizes: dict[str, int]) -> dict[str, Callable[[Any, Any], object]]:
    """Return launchers of Triton kernels; the copy is another function with the same text."""
    import triton
    import triton.language as tl

    def polynomial(source, out, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: N803
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(source + at, mask=at < size)
        total = x * 0
        for _ in range(24):
            total = total * x + 0.5
        tl.store(out + at, total, mask=at < size)

    def launcher(size: int) -> Callable[[Any, Any], object]:
        compiled = triton.jit(polynomial)
        return lambda x, out: compiled[(triton.cdiv(size, 1024),)](x, out, size, BLOCK=1024)

    return {name: launcher(size) for name, size in sizes.items()}


def work(device: str, size: int) -> None:
    """Answer questions on stdin, one a line, until it ends."""
    answers = sys.stdout
    sys.stdout = sys.stderr  # print_performance prints
    torch.set_num_threads(1)
    made = kernels(device, size)
    x = torch.rand(more(size), device=device)
    values, rng = (x, torch.empty_like(x)), random.Random(os.getpid())  # noqa: S311 - no secret

    def bound(kernel: Callable[[Any, Any], object]) -> Callable[[Any], Callable[[], object]]:
        return lambda values: lambda: kernel(*values)

    ring = make_ring(values, False, rng, lambda text: None)
    sides = {name: make_side(Subject(name, bound(kernel), values), ring) for name, kernel in made.items()}
    for line in sys.stdin:
        way, case, seconds = line.split()
        a, b = "base", "base" if case == "same" else case
        if way == "quads":
            quads = time_quads(sides[a], sides[b], float(seconds), 0.0, rng)
            answer: Any = [asdict(quad) for quad in quads]
        else:
            answer = [time_alone(way, bound(made[name])(values), float(seconds) / 2) for name in (a, b)]
        print(json.dumps(answer), file=answers, flush=True)


def time_alone(way: str, run: Callable[[], object], seconds: float) -> float:
    """Return the seconds a call takes, as one of the usual ways has it."""
    if way == "autorange":
        from torch.utils.benchmark import Timer

        timer = Timer("run()", globals={"run": run})
        return float(timer.blocked_autorange(min_run_time=seconds).median)
    if way == "do_bench":
        from triton.testing import do_bench

        return float(do_bench(run, rep=round(seconds * 1e3), return_mode="median")) / 1e3
    from torch._inductor.utils import print_performance

    device = "cuda" if torch.cuda.is_available() else "cpu"
    return print_performance(lambda: (run(), True), device=device)


if __name__ == "__main__":
    work(sys.argv[1], SIZE[sys.argv[1]])
