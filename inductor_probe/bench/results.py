"""The JSON of a bench file as records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from inductor_probe.errors import RunFailedError
from inductor_probe.model.bench import BenchResult, Comparison, Measurement, Variant


def read_results(text: str, path: Path) -> BenchResult:
    """Read what a bench file wrote with `--json`; `path` is the file that an error names.

    Raises:
        RunFailedError: it is not the JSON of a bench file (the harness in it was edited).
    """
    try:
        found = json.loads(text)
        return BenchResult(
            graph=found["graph"],
            kernels=tuple(found["kernels"]),
            variants=tuple(_variant(each) for each in found["variants"]),
            measurements=tuple(
                Measurement(each["name"], tuple(each["samples"]), each["median"], each["mad"])
                for each in found["measurements"]
            ),
            comparisons=tuple(_comparison(each) for each in found["comparisons"]),
            warnings=tuple(found["warnings"]),
            table=found["table"],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise RunFailedError(
            f"{path} wrote results that cannot be read: {type(error).__name__}: {error}",
            f"if its harness was edited, mend it, or delete {path.name} to have it made afresh",
        ) from error


def _variant(each: dict[str, Any]) -> Variant:
    return Variant(
        name=each["name"],
        correct=each["correct"],
        max_error=each["max_error"],
        mismatches=each["mismatches"],
        elements=each["elements"],
        first_bad=None if each["first_bad"] is None else tuple(each["first_bad"]),
        first_bad_output=each["first_bad_output"],
        note=each["note"],
    )


def _comparison(each: dict[str, Any]) -> Comparison:
    return Comparison(
        baseline=each["baseline"],
        candidate=each["candidate"],
        ratio=each["ratio"],
        low=each["low"],
        high=each["high"],
        verdict=each["verdict"],
        quads=sum(not quad["guard"] for quad in each["quads"]),
        excluded=each["excluded"],
        note=each["note"],
    )
