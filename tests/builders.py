"""One builder for each record that tests make up: what a test is not about has a default."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inductor_probe.executors.server import Server
from inductor_probe.model.bench import BenchResult, Measurement
from inductor_probe.model.comparison import Comparison, Verdict
from inductor_probe.model.decision import CauseCode, Decision, DecisionKind, Operand, Outcome, TorchFrame
from inductor_probe.model.manifest import Manifest
from inductor_probe.model.timing import Roofline
from inductor_probe.store.manifest import manifest_to_json

PLACE = TorchFrame("torch/_inductor/codegen/cpp.py", "TilingSelect.select_tiling", 3934)


def manifest(**changes: Any) -> Manifest:
    """Return what `probe dump` writes of a script that ended well and compiled nothing."""
    facts: dict[str, Any] = {
        "command": ("python", "x.py"),
        "script": "x.py",
        "scenario": "x",
        "cases": (),
        "knobs": (),
        "label": None,
        "versions": (),
        "machine": (),
        "started": "2026-01-01T10:00:00+00:00",
        "duration_s": 1.0,
        "outcome": "ok",
        "exit_status": 0,
        "compiled_frames": 0,
        "graphs": (),
    }
    return Manifest(**{**facts, **changes})


def manifest_text(**changes: Any) -> str:
    """Return the text of such a `probe.json`."""
    return json.dumps(manifest_to_json(manifest(**changes)))


def decision(
    kind: DecisionKind,
    subjects: str,
    outcome: Outcome,
    cause: CauseCode,
    *,
    operands: dict[str, Operand] | None = None,
    **changes: Any,
) -> Decision:
    """Return a decision. `subjects` are groups with commas between them: `op0 op1, op2`."""
    facts: dict[str, Any] = {
        "number": 1,
        "kind": kind,
        "subject_type": "node",
        "subjects": tuple(tuple(group.split()) for group in subjects.split(",")),
        "outcome": outcome,
        "cause": cause,
        "operands": tuple((operands or {}).items()),
        "place": PLACE,
    }
    return Decision(**{**facts, **changes})


def comparison(
    low: float,
    high: float,
    verdict: Verdict,
    *,
    names: tuple[str, str] = ("k alone", "k_v2 alone"),
    **changes: Any,
) -> Comparison:
    """Return a comparison whose ratio lies in the middle of its interval."""
    ratio = math.sqrt(low * high)
    facts: dict[str, Any] = {"process_ratios": (ratio,) * 3, "quads": 412, "excluded": 0}
    return Comparison(*names, ratio, low, high, verdict, **{**facts, **changes})


def bench_result(*comparisons: Comparison, **changes: Any) -> BenchResult:
    """Return what `probe bench-kernel` measured of a kernel: baselines take 10 us."""
    times = {
        name: Measurement(name, seconds, 2e-7, 800, "quads")
        for pair in comparisons
        for name, seconds in ((pair.baseline, 1e-5), (pair.candidate, pair.ratio * 1e-5))
    }
    facts: dict[str, Any] = {
        "graph": "model__0_inference_0.0",
        "kernels": ("k",),
        "inputs": "1x3x224x224 uint8 contiguous",
        "values": "random",
        "data": "warm",
        "threads": 1,
        "processes": 3,
        "margin": 0.01,
        "variants": (),
        "comparisons": comparisons,
        "times": tuple(times.values()),
        "warnings": (),
    }
    return BenchResult(**{**facts, **changes})


def roofline_of_device(device: str = "cpu", *, dtypes: Sequence[str] = ()) -> Roofline:
    """Measure what a device of this machine reaches on one thread, beside a bench file."""
    with Server(Path("roofline"), "", environment={}) as server:
        return server.roofline(device, 1, dtypes, 1.5)


def with_jobs_in(folder: Path) -> dict[str, str]:
    """Return variables by which a `Server` can import modules of a folder, whose functions are jobs."""
    return {"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])}


def text_of_job(server: Server, job: str) -> str:
    """Return what a job says in its only event."""
    (event,) = server.events({"job": job})
    return str(event["text"])
