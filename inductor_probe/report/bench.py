"""Bench results: JSON, and the table for prompts and notebooks (on a terminal the file prints its own)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from inductor_probe.model.bench import BenchFile, BenchResult

_STATES = {
    "written": "wrote",
    "rewritten": "wrote again (it was not edited)",
    "kept": "kept your edited",
}


def bench_file_text(file: BenchFile, shown_path: Path) -> Text:
    """Say what happened to the bench file, and which of its parts the user edited."""
    text = Text.assemble(_STATES[file.state], " ", (str(shown_path), "bold"))
    if file.edited:
        text.append(f"\nedited in it: {', '.join(file.edited)}")
    if file.pristine_edits:
        text.append("\nwarning: ", style="bold yellow")
        names = ", ".join(file.pristine_edits)
        text.append(f"{names} is not a copy to edit: what the copies are compared to was changed")
    return text


class BenchTable:
    """The table of the bench file, then what is wrong, then the verdicts."""

    def __init__(self, result: BenchResult) -> None:
        self.result = result

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(self.result.table, no_wrap=True)
        for variant in self.result.variants:
            if not variant.correct:
                where = f", first at {list(variant.first_bad)}" if variant.first_bad is not None else ""
                wrong = f"{variant.mismatches} of {variant.elements} elements are wrong{where}"
                yield Text.assemble((f"{variant.name}: WRONG: ", "bold red"), variant.note or wrong)
        for found in self.result.comparisons:
            interval = f"{found.ratio:.3f}x its time ({found.low:.3f} to {found.high:.3f})"
            yield Text(f"{found.candidate} is {found.verdict} against {found.baseline}: {interval}")


def bench_file_json(file: BenchFile) -> dict[str, Any]:
    """Return a bench file with stable keys."""
    return {
        "graph": file.graph,
        "path": str(file.path),
        "state": file.state,
        "kernels": list(file.kernels),
        "edited": list(file.edited),
    }


def bench_json(result: BenchResult) -> dict[str, Any]:
    """Return a result with stable keys, ready for `json.dumps`; times are in seconds a call."""
    return {
        "graph": result.graph,
        "kernels": list(result.kernels),
        "variants": [asdict(variant) for variant in result.variants],
        "measurements": [asdict(measurement) for measurement in result.measurements],
        "comparisons": [asdict(comparison) for comparison in result.comparisons],
        "warnings": list(result.warnings),
    }
