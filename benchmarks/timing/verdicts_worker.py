"""A server that holds kernels, and forks children which time two of them, for `verdicts.py` and
`fork_spread.py`.

A child loads the kernels itself: code that a server has loaded lies at one address in all children, and what
a core has learned of its branches in one of them, good or bad, holds in the next. Each message on the socket
that is its standard input carries the socket of one new child. A child gets questions as lines of JSON
(`way`, `case`, `seconds`, `precision`) and answers with lines of JSON: quads, or two times.
"""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

import torch  # noqa: TID253 - it times torch programs

from inductor_probe.harness.code_copies import copies_of
from inductor_probe.harness.quads import Side, Subject, make_ring, make_side, time_quads
from inductor_probe.harness.server import place_at_random
from inductor_probe.harness.timing import cpu_clock

SIZE = {"vector": 48_000, "long": 48_000, "scalar": 10_500, "triton": 1 << 24}
STEP = {"vector": 16, "long": 16, "scalar": 1, "triton": 1024}
"""Sizes are multiples of it: what Triton loads at once depends on by what they can be divided."""
CPP = {
    "vector": """
// {name}
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C" void kernel(const float* in_ptr0, float* out_ptr0) {{
    for (int64_t x0 = 0; x0 < {size}L; x0 += 16) {{
        auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + x0, 16);
        auto tmp1 = tmp0.exp() + tmp0.tanh();
        tmp1.store(out_ptr0 + x0);
    }}
}}
""",
    "long": """
// {name}
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C" void kernel(const float* in_ptr0, float* out_ptr0) {{
    for (int64_t x0 = 0; x0 < {size}L; x0 += 16) {{
        auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + x0, 16);
        for (int64_t x1 = 0; x1 < 10; x1++) tmp0 = tmp0.exp().tanh();
        tmp0.store(out_ptr0 + x0);
    }}
}}
""",
    "scalar": """
// {name}
extern "C" void kernel(const float* in, float* out) {{
    for (long i = 0; i < {size}L; i++) {{
        float x = in[i], sum = 0;
        for (int term = 0; term < 24; term++) sum = sum * x + 0.5f;
        out[i] = sum;
    }}
}}
""",
}
BASE_S = [0.0]
"""Seconds that the base of this kind takes here, where lengths of programs are asked for."""
Kernel = Callable[[Any, Any], object]


def kernels(kind: str, names: list[str], comment: str = "") -> dict[str, Kernel]:
    """Compile or load kernels, in that order: `base`, a `copy` of it, or one with a share of its work.

    Each takes an input and an output. C++ with another comment is another library.
    """
    sizes = {name: SIZE[kind] if name in ("base", "copy") else size_of(kind, name) for name in names}
    if kind == "triton":
        return triton_kernels(sizes)
    from torch._inductor.async_compile import AsyncCompile

    compiler = AsyncCompile()
    compiled: dict[str, Any] = {
        name: compiler.cpp_pybinding(
            ["const float*", "float*"], CPP[kind].format(name=name + comment, size=size)
        )
        for name, size in sizes.items()
    }
    compiler.wait(compiled)
    return compiled


def size_of(kind: str, work: str) -> int:
    """Return a size with `work` times as much to do, or that takes as long as `1.2ms` says."""
    times = seconds_of(work) / BASE_S[0] if work[-1:] == "s" else float(work)
    return max(round(SIZE[kind] * times / STEP[kind]), 1) * STEP[kind]


def seconds_of(length: str) -> float:
    """Return `1.2ms` or `30us` in seconds."""
    return float(length[:-2]) * {"ms": 1e-3, "us": 1e-6}[length[-2:]]


def programs_of(works: list[str]) -> list[str]:
    """Return the names of kernels of cases: a share of work is compared with `base`, `3ms:1.2ms` are two."""
    return [*dict.fromkeys(name for work in works for name in work.split(":"))]


def measured_base(kind: str) -> float:
    """Return the seconds that the base of a kind takes, from a process of its own."""
    there, here = os.pipe()
    if not os.fork():
        kernel, values = kernels(kind, ["base"], " of the server")["base"], torch.rand(2, SIZE[kind])
        run = partial(kernel, values[0], values[1])
        os.write(here, repr(min(cpu_clock(run, 1) for _ in range(200))).encode())
        os._exit(0)
    os.wait()
    return float(os.read(there, 64))


def triton_kernels(sizes: dict[str, int]) -> dict[str, Kernel]:
    """Return launchers of Triton kernels; the copy is another function with the same text."""
    import triton
    import triton.language as tl

    def polynomial(source, out, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: N803
        index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(source + index, mask=index < size)
        total = x * 0
        for _ in range(24):
            total = total * x + 0.5
        tl.store(out + index, total, mask=index < size)

    def launcher(size: int) -> Kernel:
        compiled = triton.jit(polynomial)
        return lambda x, out: compiled[(triton.cdiv(size, 1024),)](x, out, size, BLOCK=1024)

    return {name: launcher(size) for name, size in sizes.items()}


def bound(kernel: Kernel) -> Callable[[Any], Callable[[], object]]:
    """Return what binds a kernel to an input and an output."""
    return lambda values: lambda: kernel(*values)


class Child:
    """A process that times. Its seed says where its memory lies; a negative one leaves that to the system."""

    def __init__(self, kind: str, seed: int, works: list[str]) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - no secret
        self.padding = place_at_random(self.rng) if seed >= 0 else []
        names = ["base", "copy", *programs_of(works)]
        self.rng.shuffle(names)
        self.kernels = kernels(kind, names)
        device = "cuda" if kind == "triton" else "cpu"
        x = torch.rand(max(size_of(kind, work) for work in ["1", *programs_of(works)]), device=device)
        self.values = (x, torch.empty_like(x))
        self.ring = make_ring(self.values, False, self.rng, lambda remark: None)
        self.sides: dict[str, Side] = {}

    def side(self, name: str) -> Side:
        """Return a kernel bound to the ring, the same one whenever it is asked for."""
        if name not in self.sides:
            copies = copies_of(self.kernels[name])

            def bind(values: Any) -> Callable[[], object]:  # each slot of the ring has a copy of the code
                return bound(next(copies))(values)

            subject = Subject(name, bind, self.values)
            self.sides[name] = make_side(subject, self.ring)
        return self.sides[name]

    def answer(self, way: str, case: str, seconds: float, precision: float) -> Any:
        """Time a case in one way: quads, or seconds a call of each side."""
        a, b = case.split(":") if ":" in case else ("base", "base" if case == "same" else case)
        if way == "quads":
            sides = [self.side(name) for name in ((a, b) if self.rng.random() < 0.5 else (b, a))]
            by_name = {side.name: side for side in sides}
            gc.disable()
            begin, cpu = time.perf_counter(), time.thread_time()
            quads = time_quads(by_name[a], by_name[b], seconds, precision, self.rng)
            core = (time.thread_time() - cpu) / (time.perf_counter() - begin)
            gc.enable()
            return {"quads": [asdict(quad) for quad in quads], "core": min(core, 1.0)}
        return [time_alone(way, bound(self.kernels[name])(self.values), seconds / 2) for name in (a, b)]


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
    return float(print_performance(lambda: (run(), True), device=device))


def answer_all(child: Child, connection: socket.socket) -> None:
    """Answer questions until the other end is closed."""
    sys.stdout = sys.stderr  # print_performance prints
    with connection.makefile("rw", encoding="utf-8") as lines:
        for line in lines:
            print(json.dumps(child.answer(**json.loads(line))), file=lines, flush=True)


def serve(kind: str, works: list[str]) -> None:
    """Fork a child for each socket that comes, until no more can come. Nothing of CUDA is touched before."""
    torch.set_num_threads(1)
    if kind in CPP:
        kernels(kind, ["base"], " of the server")  # imports, and what inductor asks of the compiler once
        BASE_S[0] = measured_base(kind)
        if not os.fork():  # compiles what children will load; none of that lies in this process
            kernels(kind, ["base", "copy", *programs_of(works)])
            os._exit(0)
        os.wait()
    else:
        import triton.testing  # noqa: F401 - so that children have it
    doors = socket.socket(fileno=0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    while True:
        message, sockets, _, _ = socket.recv_fds(doors, 64, 1)
        if not message:
            return
        if os.fork():
            os.close(sockets[0])
            continue
        doors.close()
        try:
            answer_all(Child(kind, int(message), works), socket.socket(fileno=sockets[0]))
        finally:
            os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2].split(",") if sys.argv[2] else [])
