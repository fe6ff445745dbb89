"""Every benchmark by subject: what it measures, its last figure and when. `python -m benchmarks` prints it.

Figures and days are those of `results/README.md`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
PARTS = ("worker", "bench_worker", "recorders_worker", "verdicts_worker", "asked", "patches", "run")
"""Files that others start or import, and that measure nothing by themselves."""
_ROW = re.compile(r"^\| `([\w.]+)` \| (.+?) \| ([\d-]+) \| \[(\w[\w-]*)\]", re.MULTILINE)


def main() -> None:
    """Print a row for each."""
    table = Table("python -m", "what it measures", "last figure", "when, and where", box=None, pad_edge=False)
    figures = last_figures()
    for name, text in benchmarks().items():
        figure, when = figures.get(name, ("none is written down", ""))
        table.add_row(f"benchmarks.{name}", text, figure, when)
    Console().print(table)


def benchmarks() -> dict[str, str]:
    """Return the first line of each file that runs, by its name below `benchmarks`."""
    texts = {
        ".".join(path.relative_to(HERE).with_suffix("").parts): path.read_text()
        for path in sorted(HERE.glob("*/*.py"))
        if path.stem not in PARTS
    }
    return {
        name: (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
        for name, text in texts.items()
        if "__main__" in text
    }


def last_figures() -> dict[str, tuple[str, str]]:
    """Return the last figure of each, with its day and page."""
    rows = _ROW.findall((HERE / "results" / "README.md").read_text())
    return {name: (figure, f"{when}, {page}") for name, figure, when, page in rows}


if __name__ == "__main__":
    main()
