"""The loop order of the antialias scenario's horizontal pass: the right variants found, a wrong one rejected.

The pass writes rows, channels, columns, from an image that lies rows, columns, channels. This dumps the
scenario, lets the named rewrites make

    loops     columns before channels in the pass, the buffer between the passes as it was,
    stride    that buffer channels-last, in its writer and in all three loads of the vertical pass,
    both      one and the other,

and runs the bench file, which checks each before it times it. Then the mistake that is easy to make: one of
the three loads keeps the index of the old layout. That must be rejected, with the count of wrong elements.

    python -m benchmarks.timing.antialias_loop_order [--case NAME] [--budget SECONDS] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

import inductor_probe as ip
from inductor_probe.model.bench import BenchResult, BenchSettings

SCENARIO = "check_interpolate_bilinear_aa.py"
BUFFER, PASS = "buf1", 2  # what the horizontal pass writes, and which nest of the kernel it is
LOADED = re.compile(r"tmpbuf\[x3_inner\] = out_ptr1\[static_cast<int64_t>\((?P<index>.*)\)\];")


def main() -> int:
    """Print what was found; 1 when a right variant is called wrong, or the wrong one right."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", default="separable_channels_last", help="of the scenario")
    parser.add_argument("--budget", type=float, default=30.0, help="seconds of timing")
    parser.add_argument("--keep", type=Path, help="folder for the dump, kept afterwards")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        script = Path(__file__).parents[2] / "scenarios" / SCENARIO
        graph = ip.dump(script, cases=[options.case], out=folder).graphs[0]
        return 0 if right(graph, options.budget) & wrong(graph, options.budget) else 1


def right(graph: ip.Graph, budget: float) -> bool:
    """Make the right variants, check and time them; print a line for each."""
    kernel = kernel_of(graph)
    rewrites = {
        "_v3": ("loops", f"loops:{kernel} x1,x2 nest={PASS}"),
        "_v4": ("stride", f"stride:{BUFFER}=channels_last"),
        "_v5": ("both", f"loops@v4:{kernel} x1,x2 nest={PASS}"),
    }
    file = graph.write_bench_file(rewrites=[spec for _, spec in rewrites.values()])
    result = graph.run_bench_file(file, BenchSettings(kernel, budget), trust=True).result
    found = {each.name: each for each in result.variants}
    for suffix, (name, spec) in rewrites.items():
        variant = found[kernel + suffix]
        said = "correct" if variant.correct else "WRONG"
        print(f"{name:7} {said}  {times(result, kernel + suffix)}  {spec.replace(kernel, 'KERNEL')}")
    return all(found[kernel + suffix].correct for suffix in rewrites)


def wrong(graph: ip.Graph, budget: float) -> bool:
    """Leave the index of one load as it was; print what the bench file says of it."""
    file = graph.write_bench_file()
    text = file.path.read_text(encoding="utf-8")
    kernel = kernel_of(graph)
    start = text.index(f"{kernel}_v5 = ")
    load = LOADED.search(text, start)
    row = re.search(r"tmp\d+", load["index"]) if load else None
    if load is None or row is None:
        sys.exit(f"{kernel} has no load of {BUFFER} in the form that is known")
    layout = graph.layouts(BUFFER)[0].layout
    stride = layout.stride if layout and layout.stride else ()
    where = ("x0", "x1", row[0], "x3 + x3_inner")
    before = " + ".join(f"{step}L*({at})" for step, at in zip(stride, where, strict=True))
    mistaken = text[: load.start("index")] + before + text[load.end("index") :]
    file.path.write_text(mistaken, encoding="utf-8")
    file = graph.write_bench_file()  # takes the edit over
    result = graph.run_bench_file(file, BenchSettings(kernel, budget), trust=True).result
    variant = next(each for each in result.variants if each.name == "call_v5")
    share = variant.mismatches / max(variant.elements, 1)
    timed, said = times(result, f"{kernel}_v5"), "ACCEPTED" if variant.correct else "rejected"
    print(f"mistake {said}: {variant.mismatches} of {variant.elements} elements wrong ({share:.1%}), {timed}")
    return not variant.correct and timed == "not timed"


def kernel_of(graph: ip.Graph) -> str:
    """Return the name of the only kernel."""
    (row,) = graph.kernels()
    return row.name


def times(result: BenchResult, name: str) -> str:
    """Return how a variant of the kernel compares to the kernel, or that it was not timed."""
    for each in result.comparisons:
        if each.candidate.split(" ")[0] == name:
            speed = f"{1 / each.ratio:.2f} times as fast ({1 / each.high:.2f} to {1 / each.low:.2f})"
            return f"{each.verdict} {speed}"
    return "not timed"


if __name__ == "__main__":
    sys.exit(main())
