"""Why two graphs were not timed against each other."""

from __future__ import annotations

from collections.abc import Mapping

from inductor_probe.model.bench import BenchResult
from inductor_probe.model.whatif import NotTimed


def same_result(result: BenchResult) -> str | None:
    """Return how it is known that both sides compute the same; None where B computes something else."""
    if not all(variant.correct for variant in result.variants):
        return None
    pristine = next((variant for variant in result.variants if variant.name == "call"), None)
    if pristine is None or pristine.remarks:
        return "B computes what A does, on two sets of inputs."
    return "A and B compute what the graph does in float64, on two sets of inputs."


NOT_TIMED: Mapping[NotTimed, str] = {
    "same-code": "Not timed: names and spelling aside, A and B are the same code.",
    "no-code": "Not timed: a side has no output_code.py; its compile did not come to an end.",
    "inputs-differ": "Not timed: B cannot take the inputs of A: {subjects} differ.",
    "constants-differ": "Not timed: the graphs hold other constants: {subjects}.",
}
