"""Do the Triton kernels of dumps agree with eager in triton's interpreter, and are planted edits found?

    python -m benchmarks.gpu.kernel_checks FOLDER... [--plant] [--limit 120]

Each FOLDER has dumps of CUDA below it, real or simulated; graphs are copied before anything is written
beside them. This executes the code in them. With `--plant`, three edits are made of each kernel, one at a
time: the first sum or product of two values becomes another (`operator`), the last store loses its mask
(`mask`), and writes one element further (`index`). Some compute the same: a store needs no mask where blocks
fill the tensor, and an index that is never negative is not wrapped. What is not found is named. Prints a
table as Markdown.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import inductor_probe as ip
from inductor_probe.bench_file.bench_file import write_bench_file
from inductor_probe.errors import ProbeError
from inductor_probe.model.bench import BenchSettings
from inductor_probe.model.kernel_check import is_interpreted
from inductor_probe.report.words.kernel_check import summary

OPERATOR = re.compile(r"^(?P<before> +tmp\d+ = tmp\d+) (?P<operator>[+*]) (?P<after>tmp\d+)$", re.MULTILINE)
STORE = re.compile(r"^(?P<before>    +tl\.(?:store|atomic_add)\(\w+ \+ )(?P<rest>\(.*)$", re.MULTILINE)
MASK = re.compile(r", (?P<mask>[a-z0-9_]*mask[a-z0-9_ &]*)(?P<end>\)|, eviction_policy=.*\)|, sem=.*\))$")
EDITS = ("operator", "mask", "index")


def main() -> int:
    """Check every graph; return 1 if something that was not edited is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--plant", action="store_true", help="edit each kernel, too")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for a run of a call")
    options = parser.parse_args()
    print("| dump | graph | kernels | largest error | programs | seconds | edits found |")
    print("|---|---|---|---|---|---|---|")
    wrong = 0
    for folder in options.folders:
        for code in sorted(folder.rglob("output_code.py")):
            wrong += check(folder, code.parent, options)
    return 1 if wrong else 0


def check(folder: Path, graph: Path, options: argparse.Namespace) -> bool:
    """Print the row of a graph; return whether a kernel that inductor made is wrong."""
    run = graph.parent.parent
    name = str(graph.relative_to(folder).parts[0])
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(shutil.copytree(run, Path(temporary, run.name)), graph.parent.name, graph.name)
        opened = ip.open_graph(copy)
        planted: dict[str, str] = {}
        try:
            if options.plant:
                planted = plant(opened)
            checked = opened.check_kernel(BenchSettings(), limit=options.limit, trust=True).record
        except ProbeError as error:
            print(f"| {name} | {graph.name} | not checked: {error.message} | | | | |", flush=True)
            return False
    if checked.call.correct:
        kernels = f"{sum(kernel.verdict == 'right' for kernel in checked.kernels)} right"
        unlaunched = [kernel.name for kernel in checked.kernels if kernel.verdict != "right"]
        kernels += f"; not launched: {', '.join(unlaunched)}" if unlaunched else ""
    else:
        kernels = summary(checked)
    wrong = [one.name for one in checked.variants if not one.correct and is_interpreted(one)]
    found = [name for name in planted if name in wrong]
    missed = ", ".join(f"{planted[one]} in {one}" for one in planted if one not in found)
    edits = f"{len(found)} of {len(planted)}" + (f"; not: {missed}" if missed else "") if planted else ""
    largest = "" if checked.call.max_error is None else f"{checked.call.max_error:.2g}"
    programs = sum(kernel.programs for kernel in checked.kernels)
    seconds = f"{time.monotonic() - begun:.0f}"
    print(f"| {name} | {graph.name} | {kernels} | {largest} | {programs} | {seconds} | {edits} |", flush=True)
    return not checked.call.correct and is_interpreted(checked.call)


def plant(graph: ip.Graph) -> dict[str, str]:
    """Add edited copies of the kernels to a graph's bench file; return what each is."""
    planted: dict[str, str] = {}
    variants: list[tuple[str, str]] = []
    for kernel in graph.generated.code.kernels if graph.generated.code else ():
        if kernel.backend == "triton":
            for number, (edit, text) in enumerate(edited(kernel.source), 3):
                planted[f"{kernel.name}_v{number}"] = edit
                variants.append((f"{kernel.name}_v{number}", text))
    graph.write_bench_file()
    write_bench_file(graph.path, graph.inputs, variants)
    return planted


def edited(source: str) -> Iterator[tuple[str, str]]:
    """Yield the edits of a kernel that there is a place for."""
    if match := OPERATOR.search(source):
        other = "-" if match["operator"] == "+" else "+"
        yield EDITS[0], f"{source[: match.end('before')]} {other} {source[match.start('after') :]}"
    stores = list(STORE.finditer(source))
    if stores and (mask := MASK.search(stores[-1]["rest"])):
        start = stores[-1].start("rest")
        yield EDITS[1], f"{source[: start + mask.start('mask')]}None{source[start + mask.end('mask') :]}"
    if stores:
        start = stores[-1].start("rest")
        yield EDITS[2], f"{source[:start]}1 + {source[start:]}"


if __name__ == "__main__":
    sys.exit(main())
