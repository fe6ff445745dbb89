"""Recorders change nothing of what is compiled, and one that fails is a note and costs no compile."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from inductor_probe.model.decision import DECISIONS_NAME
from inductor_probe.store.decisions import read_decisions
from tests.capture.conftest import Dumped, run_dump

WAYS = Path(__file__).with_name("compiled_ways.py")
CACHE = re.compile(rb"# kernel path: .*/inductor_probe_dump_[^/]*/")
GRAPHS = 9
"""That it compiles, at least."""

FAILING = """\
import torch
from inductor_probe.capture.recorders import threads

def fail(*args):
    raise RuntimeError("torch is not what it was")

threads._decision = fail

for size in (64, 65):
    torch.compile(lambda values: values + 1, dynamic=False)(torch.ones(size))
"""


def codes(dumped: Dumped) -> dict[str, bytes]:
    """Return the code of each graph; a comment of each Triton kernel has the folder of this dump's caches."""
    files = (dumped.run / "torchinductor").glob("*/output_code.py")
    return {path.parent.name: CACHE.sub(b"# kernel path: ", path.read_bytes()) for path in files}


@pytest.mark.compiles
@pytest.mark.takes(18)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.usefixtures("warm_here")
def test_code_and_guards_are_the_same_with_recorders_and_without(tmp_path: Path, device: str) -> None:
    target = "h200" if device == "cuda" and not torch.cuda.is_available() else None
    recorded, plain = (
        run_dump(tmp_path, WAYS, args=[device], record=record, target=target) for record in (True, False)
    )
    names = "\n".join(codes(recorded))
    assert len(codes(recorded)) >= GRAPHS
    assert "backward" in names
    assert codes(recorded) == codes(plain)
    printed = json.loads(recorded.stdout)
    assert any(one["guards"] for one in printed["sizes"])
    assert min(printed["frames"]) > 0
    assert printed == json.loads(plain.stdout)
    written = [read_decisions(path) for path in recorded.run.rglob(DECISIONS_NAME)]
    assert len(written) == len(codes(recorded))
    assert not list(plain.run.rglob(DECISIONS_NAME))


@pytest.mark.compiles
@pytest.mark.usefixtures("warm_here")
def test_a_recorder_that_fails_is_noted_once_and_the_compile_goes_on(
    dump_source: Callable[..., Dumped],
) -> None:
    dumped = dump_source(FAILING)
    [note] = dumped.manifest.notes
    assert note.code == "recorder-failed"
    assert dict(note.values) == {
        "recorder": "threads.Threads.finalized",
        "error": "RuntimeError: torch is not what it was",
    }
    assert len(codes(dumped)) == 2
    for path in dumped.run.rglob(DECISIONS_NAME):
        kinds = {decision.kind for decision in read_decisions(path).decisions}
        assert "vectorisation" in kinds
        assert "threads" not in kinds
