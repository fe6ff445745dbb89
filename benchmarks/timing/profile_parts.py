"""Do the parts of a profile add up, and what do its clocks cost? For programs from one small kernel to many.

    python -m benchmarks.timing.profile_parts [--budget 3] [--repeat 3] [--threads 1] [--device cpu|cuda]

Of each program, medians of `--repeat` profiles in a process each:

    parts / call       everything that has a name, by the call as it is: 1 less the share of `in no part`
    nests / kernels    loop nests by their kernels: what is missing is outside of them
    with clocks        lines that launch C++ kernels, with clocks by without
    notes              nanoseconds that a clock read before and after a loop nest takes, which are subtracted

On CUDA `call` is the host's, and beside it stand

    GPU us             the GPU's time of a call
    kernels / GPU      kernels and library calls, each timed alone, by that: 1 less the share of `in no part`
    by profiler        kernels by what torch.profiler says of one call; both as long as they lie in no cache
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

import inductor_probe as ip
from inductor_probe.model.profile import Profile

PROGRAMS = {
    "one short loop": "torch.compile(lambda x: x * 2 + 1)(torch.randn(64, 64))",
    "one long loop": "torch.compile(lambda x: x.sin().exp())(torch.randn(1024, 1024))",
    "softmax, flip, sum": """
def f(x, y):
    return torch.softmax(x * 2, -1), (y + 1).flip(0), x.sum(0) + y[0]
torch.compile(f)(torch.randn(256, 2048), torch.randn(64, 2048))
""",
    "products between kernels": """
def f(x):
    for _ in range(4):
        x = torch.relu(x @ x) + 1
    return x
torch.compile(f)(torch.randn(128, 128))
""",
    "72 loop nests": """
norms = torch.nn.ModuleList([torch.nn.LayerNorm(64) for _ in range(12)])
pool = torch.nn.AvgPool2d(3, stride=1, padding=1)
def f(x):
    maxima = []
    for norm in norms:
        x = pool(torch.nn.functional.gelu(norm(x)) + x)
        maxima.append(x.amax((2, 3)))
    return torch.cat(maxima, 1).softmax(-1)
with torch.no_grad():
    torch.compile(f)(torch.randn(1, 8, 64, 64))
""",
}


def main() -> None:
    """Profile each program, and print a row for each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--budget", type=float, default=3.0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    titles = (
        f"{'GPU us':>9} {'kernels / GPU':>14} {'by profiler':>12}"
        if on_gpu
        else f"{'nests / kernels':>16} {'with clocks':>12} {'notes ns':>9}"
    )
    print(f"{'':26} {'call us':>9} {'parts / call':>13} {titles}")
    with tempfile.TemporaryDirectory() as name:
        for number, (program, text) in enumerate(PROGRAMS.items()):
            folder = Path(name, str(number))
            folder.mkdir()
            script = folder / "program.py"
            head = f"import torch\ntorch.set_num_threads({options.threads})\n"
            head += 'torch.set_default_device("cuda")\n' if on_gpu else ""
            script.write_text(f"{head}{text}\n")
            graph = ip.dump(script, out=folder, stdout_to_stderr=True).graphs[0]
            settings = ip.BenchSettings(budget=options.budget, threads=options.threads)
            profiles = [graph.profile(settings).profiles[0] for _ in range(options.repeat)]
            rows = [*map(_on_gpu if on_gpu else _figures, profiles)]
            call, parts, *figures = (statistics.median(column) for column in zip(*rows, strict=True))
            a, b, c = figures
            rest = f"{a:9.2f} {b:14.3f} {c:11.3f}x" if on_gpu else f"{a:16.3f} {b:11.3f}x {c:9.0f}"
            print(f"{program:26} {call:9.2f} {parts:13.3f} {rest}")


def _on_gpu(profile: Profile) -> tuple[float, float, float, float, float]:
    host = sum(
        part.seconds
        for part in profile.parts
        if part.side == "host" and part.kind not in ("gap", "call", "guards", "compiled")
    )
    device = [part for part in profile.parts if part.side == "device"]
    call = sum(part.seconds for part in device if part.kind == "call")
    work = sum(part.seconds for part in device if part.kind in ("kernel", "library"))
    recorded = sum(span.end - span.begin for span in profile.timeline if span.kind == "device")
    return (
        profile.call * 1e6,
        host / profile.call,
        call * 1e6,
        work / call if call else 1.0,
        work / recorded if recorded else float("nan"),
    )


def _figures(profile: Profile) -> tuple[float, float, float, float, float]:
    named = ("kernel", "library", "launches", "allocation", "check", "free", "other")
    parts = sum(part.seconds for part in profile.parts if part.kind in named)
    kernels = sum(part.seconds for part in profile.parts if part.kind == "kernel")
    nests = sum(nest.seconds for nest in profile.nests if nest.number is not None)
    pristine = sum(clock.pristine or 0.0 for clock in profile.clocks)
    added = sum(clock.added for clock in profile.clocks)
    note = max((clock.note for clock in profile.clocks), default=0.0)
    clocked = (pristine + added) / pristine if pristine else 1.0
    return profile.call * 1e6, parts / profile.call, nests / kernels if kernels else 1.0, clocked, note * 1e9


if __name__ == "__main__":
    main()
