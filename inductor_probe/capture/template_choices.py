"""Every choice that inductor times for a template: written beside the graph that it is for."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inductor_probe.capture.events import EventLog
from inductor_probe.capture.torch_state import debug_folder
from inductor_probe.model.autotuning import CHOICES_NAME


def keep_choices(select_algorithm: Any, events: EventLog) -> None:
    """Ask to be told of each operation that is autotuned, with the times of all choices."""
    select_algorithm.add_feedback_saver(_saver(events, _timed_so_far))


def _timed_so_far() -> int:
    """Return how often choices were timed; times from a cache do not count."""
    utils: Any = sys.modules.get("torch._dynamo.utils")
    return int(utils.counters["inductor"]["select_algorithm_autotune"]) if utils is not None else 0


def _saver(events: EventLog, timed: Callable[[], int]) -> Callable[..., None]:
    seen = timed()

    def save(timings: dict[Any, float], operation: str, nodes: list[Any], *_: Any) -> None:
        nonlocal seen
        try:
            now = timed()
            cached, seen = now == seen, now
            folder = debug_folder()
            if folder is None or not Path(folder).is_dir():
                return
            line = {
                "operation": operation,
                "inputs": [_input_text(node) for node in nodes],
                "cached": cached,
                "choices": [_choice(choice, seconds) for choice, seconds in timings.items()],
            }
            with (Path(folder) / CHOICES_NAME).open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        except Exception as error:  # the user's compile must not end for it
            events.note(f"choices of {operation} could not be recorded: {type(error).__name__}: {error}")

    return save


def _choice(choice: Any, ms: float) -> dict[str, Any]:
    return {
        "name": str(choice.name),
        "ms": float(ms) if math.isfinite(ms) else None,
        "kind": str(choice.info_dict().get("backend", "")).lower() or None,
        "config": str(choice.description or ""),
    }


def _input_text(node: Any) -> str:
    size = "x".join(map(str, node.get_size())) or "scalar"
    return f"{size} {str(node.get_dtype()).removeprefix('torch.')}"
