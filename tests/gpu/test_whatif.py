"""`probe whatif` on a GPU: decisions about Triton's kernels are turned, both sides are right and timed.

`make test-gpu` runs this; without a CUDA device every test is skipped and says so.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import inductor_probe as ip
from inductor_probe.api.baseline import as_it_is
from inductor_probe.api.candidates import try_candidates
from inductor_probe.model.bench import BenchSettings
from inductor_probe.model.decision import DECISIONS_NAME
from inductor_probe.model.flip import parse_flip
from inductor_probe.model.whatif import Candidate
from inductor_probe.store.decisions import read_decisions

pytestmark = [
    pytest.mark.compiles,
    pytest.mark.takes(60),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
SCRIPT = """
import torch

@torch.compile
def program(rows, columns, channels):
    squares = rows.square().sum(-1)
    running = columns.cumsum(-1)
    padded = torch.nn.functional.pad(channels, (1, 1))
    return torch.softmax(rows, -1), squares, running, padded.flip(-1) + 1

torch.manual_seed(0)
program(*(torch.randn(*size, device="cuda") for size in ((2048, 512), (2048, 2048), (4, 3, 64, 64))))
"""
BUDGET_S = 0.5


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whatif") / "program.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture(scope="module")
def graph(script: Path) -> ip.Graph:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(script.parent)
        return ip.dump(script).graphs[0]


def subject(graph: ip.Graph, kind: str, outcome: str) -> str:
    """Return a scheduler node about which was decided so."""
    for decision in read_decisions(graph.path / DECISIONS_NAME).decisions:
        if (decision.kind, decision.outcome) == (kind, outcome):
            return decision.subjects[0][0]
    raise AssertionError(f"nothing was decided to be {outcome}")


@pytest.mark.parametrize(
    ("flip", "kind", "before"),
    [
        ("looped {node}", "reduction", "persistent"),
        ("persistent {node}", "reduction", "looped"),
        ("index-dtype {node}=int64", "index-width", "int32"),
    ],
)
def test_a_decision_about_a_kernel_is_turned_and_both_sides_are_right(
    graph: ip.Graph, monkeypatch: pytest.MonkeyPatch, flip: str, kind: str, before: str
) -> None:
    monkeypatch.chdir(graph.path.parents[2])
    turn = parse_flip(flip.format(node=subject(graph, kind, before)))
    found = graph.whatif(Candidate(flips=(turn,)), BenchSettings(budget=BUDGET_S)).graphs[0]
    assert found.correct
    assert found.call is not None
    (turned,) = (change.b for change in found.asked if change.b and change.b.kind == kind)
    assert turned.outcome in flip


@pytest.mark.alone  # in a budget that others would use up
def test_candidates_are_tried_and_none_is_called_wrong(
    graph: ip.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(graph.path.parents[2])
    trials = graph.try_all(budget=90).trials
    ranks = {trial.rank for trial in trials}
    assert "wrong" not in ranks, [trial for trial in trials if trial.rank == "wrong"]
    assert any(trial.looks for trial in trials)


def test_what_was_compiled_for_a_simulated_gpu_is_timed_here(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ip.dump(script, target="h100")
    recipe, candidates = as_it_is(run), ip.candidates_of(run)[:4]
    with monkeypatch.context() as patch:
        patch.setattr("inductor_probe.api.whatif.missing_gpu", lambda _graph: "a GPU")
        compiled = try_candidates(run, candidates, recipe, ip.Run, BenchSettings(), budget=600, timed=False)
    left = [trial.candidate for trial in compiled.trials if trial.reason and trial.reason.code == "no-gpu"]
    assert left
    timed = try_candidates(run, candidates, recipe, ip.Run, BenchSettings(), budget=60, first_look=BUDGET_S)
    assert not [trial for trial in timed.trials if trial.reason and trial.reason.code == "no-gpu"]
    assert any(trial.looks for trial in timed.trials if trial.candidate in left)
