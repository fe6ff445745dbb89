"""Every benchmark: what it measures, and where its last figures stand. `python -m benchmarks` prints it.

A line of `results/*.md` that names a benchmark's command is where its figures are; the date is the last one
above or in that line, or else that of the last change of the file.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
_DATE = re.compile(r"20\d\d-\d\d-\d\d")


def main() -> None:
    """Print a row for each."""
    table = Table("python benchmarks/", "what it measures", "last figures", box=None, pad_edge=False)
    for path in sorted(HERE.glob("[a-z]*.py")):
        text = path.read_text()
        if "__main__" in text and not path.stem.endswith("_worker"):  # the others are parts of these
            first = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
            table.add_row(
                path.name, first, "\n".join(f"{place} ({when})" for place, when in results(path.name))
            )
    Console().print(table)


def results(name: str) -> Iterator[tuple[str, str]]:
    """Yield the files that have figures of a benchmark, each with the day of them."""
    for path in sorted((HERE / "results").glob("*.md")):
        date, found = "", False
        for line in path.read_text().splitlines():
            date = max(_DATE.findall(line), default=date)
            if f"benchmarks/{name}" in line:
                found = True
                break
        if found:
            yield path.name, date or _changed(path)


def _changed(path: Path) -> str:
    command = ["git", "log", "-1", "--format=%cs", "--", str(path)]
    ran = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    return ran.stdout.strip() or "not dated"


if __name__ == "__main__":
    main()
