"""What a notebook does, in one process: functions and blocks are recorded after torch has been used.

    python in_notebook.py

Prints JSON: what the test looks at.
"""

from __future__ import annotations

import functools
import inspect
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch._inductor.config
from torch import Tensor

import inductor_probe as ip
from inductor_probe.capture.torch_places import PLACES
from inductor_probe.report.words.runs import how_it_ended

SCRIPT = """
import torch
from in_notebook import score
torch.manual_seed(0)
torch.compile(score)(torch.randn(8, 16), torch.randn(16, 16))
"""


def score(x: Tensor, w: Tensor, *, scale: float = 1.0) -> Tensor:
    """Compute a product, which is normalised, then cut."""
    return torch.nn.functional.layer_norm(x @ w, (16,)).relu() * scale


def state() -> dict[str, object]:
    """Return all that a recording touches in this process."""
    places = {}
    for place in PLACES:
        module = sys.modules.get(place.module)
        *owners, last = place.name.split(".")
        try:
            found = inspect.getattr_static(functools.reduce(getattr, owners, module), last)
        except AttributeError:
            continue
        plain = inspect.unwrap(getattr(found, "__func__", found))
        places[str(place)] = (
            id(found),
            id(getattr(plain, "__code__", None)),
        )  # that of what is watched changes
    loggers = {
        name: (log.level, log.propagate, list(map(str, log.handlers)), list(map(str, log.filters)))
        for name, log in logging.root.manager.loggerDict.items()
        if isinstance(log, logging.Logger)
    }
    finders, settings = list(map(str, sys.meta_path)), torch._inductor.config.save_config_portable()
    return {
        "places": places,
        "loggers": loggers,
        "environ": dict(os.environ),
        "finders": finders,
        "set": settings,
    }


def decisions(run: ip.Run) -> list[str]:
    """Return what was decided in the only graph of a run."""
    (causes,) = run.why()
    return sorted(
        " ".join((cause.kind, *(one.name for one in cause.subjects), str(cause.outcome)))
        for cause in causes.causes
    )


def left_open() -> int:
    """Return how many files more are open after twenty recordings, where the system lists them."""
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.glob("*")))
    for _ in range(20):
        with ip.recording():
            pass
    return len(list(descriptors.glob("*"))) - before


def main() -> None:
    """Record several times, and see what stays."""
    facts: dict[str, Any] = {}
    torch.manual_seed(0)
    x, w = torch.randn(8, 16), torch.randn(16, 16)
    fast = torch.compile(score)
    fast(x, w, scale=3.0)
    ip.dump(score, x, w, label="first")  # imports more of torch
    before = state()
    run = ip.dump(score, x, w, scale=2.0, label="second")
    after = state()
    facts["changed"] = [name for name in before if before[name] != after[name]]
    record = run.manifest.graphs[0] if run.manifest else None
    facts["inputs"] = [list(fact.size) for fact in record.inputs] if record else None
    facts["why"] = record.why if record else None
    facts["notes"] = [str(note) for note in run.manifest.notes] if run.manifest else None
    facts["kernels"] = [row.name for row in run.kernels()]
    facts["logs"] = sorted(path.name for path in (run.path / "probe_logs").iterdir())
    facts["decisions"] = decisions(run)
    Path("script.py").write_text(SCRIPT)
    facts["of a script"] = decisions(ip.dump("script.py", env={"PATH": os.environ["PATH"]}))
    facts["found"] = str(ip.open_run("second").path == run.path)

    linear = torch.nn.Linear(16, 4)
    with ip.recording(label="step") as step:
        torch.compile(linear)(x).sum().backward()
    facts["step"] = [graph.name.partition(".")[0].split("_")[3] for graph in step.run.graphs]
    facts["module"] = len(ip.dump(linear, x).graphs)
    with ip.recording() as again:
        fast(x, w, scale=3.0)
        try:
            ip.dump(score, x, w)
        except ip.ProbeError as error:
            facts["nested"] = str(error)
    try:
        again.run.show()
    except ip.NotFoundError as error:
        facts["empty"] = str(error)
    try:
        with ip.recording() as failed:
            torch.compile(lambda x: x + 1)(x)
            raise ValueError("of the user")
    except ValueError as error:
        ended = how_it_ended(failed.run.manifest) if failed.run.manifest else None
        facts["failed"] = [str(error), ended, len(failed.run.graphs)]
    try:
        ip.dump(lambda: 1).show()
    except ip.NotFoundError as error:
        facts["no tensor"] = str(error)
    facts["still compiled"] = bool(torch.equal(fast(x, w, scale=3.0), fast(x, w, scale=3.0)))
    facts["left open"] = left_open()
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
