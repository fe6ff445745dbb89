"""Dump training on several ranks, check it, and say whether the ranks agree: through NCCL, or gloo.

    python -m benchmarks.gpu.ranks                       a GPU for each rank: NCCL
    python -m benchmarks.gpu.ranks --backend gloo        here
    python -m benchmarks.gpu.ranks --kinds tensor --ranks 4

For each kind of `scenarios/train_ranks.py` a row: runs and graphs of the dump, collectives in them, lines
that were not read, problems, and what is said of the ranks. Exit status 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import inductor_probe as ip
from inductor_probe.analysis.collectives import collectives
from inductor_probe.report.words.remarks import sentence

SCRIPT = Path(__file__).parents[2] / "scenarios" / "train_ranks.py"
KINDS = ("data", "sharded", "tensor")


def row(kind: str, ranks: int, backend: str | None, out: Path) -> tuple[list[str], bool]:
    """Dump one kind into `out`; return its row of the table, and whether all is well."""
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), str(SCRIPT), kind]
    words += ["--backend", backend] if backend else []
    output = out / f"{kind}.txt"
    run = ip.dump(sys.executable, form="command", args=words, out=out, output=output)
    runs = [run, *run.others]
    check = ip.check([one.path for one in runs])
    called = [one for each in runs for graph in each.graphs for one in collectives(graph.generated)]
    said = [
        sentence(remark) for remark in run.summary.remarks if remark.code in ("ranks-same", "ranks-differ")
    ]
    unread = sum(file.unread for graph in check.graphs for file in graph.files)
    fine = check.sound and len(runs) == ranks and any("same graphs" in text for text in said)
    if not run.graphs:
        print(output.read_text(errors="replace")[-2000:], file=sys.stderr)
    names = ", ".join(sorted({one.name for one in called})) or "none in a graph"
    graphs = sum(len(one.graphs) for one in runs)
    numbers = [kind, str(len(runs)), str(graphs), str(len(called)), str(unread), str(len(check.problems))]
    return [*numbers, names, "; ".join(said) or "not compared"], fine


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--backend", choices=("gloo", "nccl"))
    options = parser.parse_args()
    print("| kind | runs | graphs | collectives | unread lines | problems | which | ranks |")
    print("|---|---|---|---|---|---|---|---|")
    fine = True
    for kind in options.kinds:
        with tempfile.TemporaryDirectory() as folder:
            cells, well = row(kind, options.ranks, options.backend, Path(folder))
        print(f"| {' | '.join(cells)} |", flush=True)
        fine = fine and well
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
