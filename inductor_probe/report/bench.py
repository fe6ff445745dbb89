"""Bench results: JSON, and a table for notebooks (the bench file prints its own on a terminal)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.text import Text

from inductor_probe.model.bench import BenchFile, BenchResult

_STATES = {
    "written": "wrote",
    "rewritten": "wrote again (it was not edited)",
    "kept": "kept your edited",
}


def bench_file_text(file: BenchFile) -> Text:
    """Say what happened to the bench file, and which of its parts the user edited."""
    text = Text.assemble(_STATES[file.state], " ", (str(file.path), "bold"))
    if file.edited:
        text.append(f"\nedited in it: {', '.join(file.edited)}")
    return text


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
