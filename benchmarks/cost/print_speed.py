"""How fast tables of thousands of rows are printed, in rows per second of CPU time.

    python -m benchmarks.cost.print_speed [--rows N] [--repeat N] [PATH]

The rows of `probe nodes`, `layouts` and `kernels` of the run or graph PATH (without it one of the tests'
dumps) are repeated up to N. Timed is what a verb does with them: record, document, text. Terminals of 80 and
140 columns have colours, a pipe has none and cuts nothing. The fastest of the repetitions counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from io import StringIO
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from msgspec.structs import replace

import inductor_probe
from inductor_probe.api.rows import Rows
from inductor_probe.report.terminal import Terminal, plain_console

DUMP = Path(__file__).parents[2] / "tests" / "fixtures" / "dumps" / "torch-2.13.0-cpu-programs" / "training"
PIPE = 10_000
WIDTHS = (80, 140, PIPE)
VERBS: tuple[Callable[..., Rows[Any]], ...] = (
    inductor_probe.nodes,
    inductor_probe.layouts,
    inductor_probe.kernels,
)


def main() -> None:
    """Print a line per verb."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("path", nargs="?", type=Path, default=DUMP)
    options = parser.parse_args()
    print(f"{'rows per second':<16}{'80 columns':>14}{'140 columns':>14}{'pipe':>14}")
    for verb in VERBS:
        rows = repeated(verb(target=options.path), options.rows)
        rates = [len(rows) / min(seconds(rows, width) for _ in range(options.repeat)) for width in WIDTHS]
        print(f"{verb.__name__:<16}{''.join(f'{rate:>14,.0f}' for rate in rates)}")


def repeated(rows: Rows[Any], number: int) -> Rows[Any]:
    """Return `number` rows of one graph with names of their own, and without the remarks below the table."""
    names = [name for name in ("node", "buffer") if hasattr(rows[0], name)]
    bare = {"remarks": ()} if hasattr(rows[0], "remarks") else {}
    members = [row for row in rows if row.graph == rows[0].graph]
    return type(rows)(
        replace(row, **{name: f"{getattr(row, name)}_{index}" for name in names}, **bare)
        for index, row in enumerate(islice(cycle(members), number))
    )


def seconds(rows: Rows[Any], width: int) -> float:
    """Return the CPU time of printing rows once."""
    colours = width != PIPE
    console = plain_console(
        file=StringIO(), width=width, force_terminal=colours, color_system="truecolor" if colours else None
    )
    begin = time.process_time()
    console.print(Terminal(rows.document), crop=False)
    return time.process_time() - begin


if __name__ == "__main__":
    main()
