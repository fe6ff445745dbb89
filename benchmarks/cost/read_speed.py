"""How fast a dump is read, how much memory it takes, and how long to a first answer beside tlparse.

    python -m benchmarks.cost.read_speed [--pairs N] [PATH]

PATH is a tree, run or graph; without it the dumps of the tests are read. Targets: 5 MB/s; memory under 20
times the text; the first answer on a run of 5 MB in half the time that importing torch takes. tlparse
(`pip install tlparse`) answers other questions from another log; it is timed on the same run where that
run has the log (torch 2.12 and later).
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

from benchmarks.cost.pairs import Command, compare
from inductor_probe.model.debug_dir import CompiledGraph, GraphDir
from inductor_probe.reader.debug_dir import graph_dir, read_graph

DUMPS = Path(__file__).parents[2] / "tests" / "fixtures" / "dumps"
MB = 1e6


def main() -> None:
    """Read everything once for the speed, the largest graph again for the memory, then time commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("path", nargs="?", type=Path, default=DUMPS)
    options = parser.parse_args()
    folders = list(graphs_below(options.path))
    if not folders:
        sys.exit(f"no graph below {options.path}")
    speed(folders)
    memory(max(folders, key=text_bytes))
    runs = {folder.path.parents[1] for folder in folders if folder.path.parent.name == "torchinductor"}
    if runs:
        first_answer(max(runs, key=run_bytes), options.pairs)


def graphs_below(path: Path) -> Iterator[GraphDir]:
    """Yield the graphs at or below `path`."""
    for file in sorted(path.rglob("output_code.py")):
        if folder := graph_dir(file.parent):
            yield folder


def text_bytes(folder: GraphDir) -> int:
    """Return the size of the files of a graph that are read, in bytes."""
    return sum(file.path.stat().st_size for file in read_graph(folder).files)


def run_bytes(run: Path) -> int:
    """Return the size of what is read of all graphs of a run, in bytes."""
    return sum(text_bytes(folder) for folder in graphs_below(run))


def speed(folders: list[GraphDir]) -> None:
    """Print how fast all of `folders` are read, each once, nothing remembered from before."""
    begin = time.process_time()
    total = 0
    for folder in folders:
        total += sum(file.path.stat().st_size for file in read_graph(folder).files)
    taken = time.process_time() - begin
    print(f"read {len(folders)} graphs, {total / MB:.1f} MB in {taken:.2f} s: {total / MB / taken:.1f} MB/s")


def memory(folder: GraphDir) -> None:
    """Print what the records of one graph weigh, next to its text."""
    size = text_bytes(folder)
    tracemalloc.start()
    graph: CompiledGraph = read_graph(folder)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    begin = time.process_time()
    read_graph(folder)
    taken = time.process_time() - begin
    print(
        f"largest graph {graph.name}: {size / MB:.2f} MB of text in {taken:.2f} s, "
        f"records {kept / size:.1f}x, peak {peak / size:.1f}x"
    )


def first_answer(run: Path, pairs: int) -> None:
    """Time whole commands on one run, each in turn with `import torch`, and tlparse on its log."""
    print(f"on {run.name}, {run_bytes(run) / MB:.1f} MB:")
    torch = Command("import torch", [sys.executable, "-c", "import torch"], Path.cwd(), {})
    for verb in (["layouts", "buf0"], ["nodes"], ["show"]):
        probe = [sys.executable, "-m", "inductor_probe", *verb, str(run)]
        compare(Command(f"probe {' '.join(verb)}", probe, Path.cwd(), {}), torch, pairs)
    tlparse = shutil.which("tlparse") or shutil.which("tlparse", path=str(Path(sys.executable).parent))
    logs = sorted(run.parent.glob("tlparse/*.log")) + sorted(run.glob("tlparse/*.log"))
    if not tlparse or not logs:
        print(f"tlparse is not timed: {'no trace log in the run' if tlparse else 'it is not installed'}")
        return
    out = run.parent / "tlparse_out"
    page = [tlparse, str(logs[0]), "-o", str(out), "--overwrite", "--no-browser"]
    nodes = [sys.executable, "-m", "inductor_probe", "nodes", str(run)]
    compare(Command("probe nodes", nodes, Path.cwd(), {}), Command("tlparse", page, Path.cwd(), {}), pairs)
    shutil.rmtree(out, ignore_errors=True)


if __name__ == "__main__":
    main()
