from __future__ import annotations

from pathlib import Path

import pytest

from inductor_probe.analysis.trust import trust_of
from inductor_probe.model.manifest import Manifest
from inductor_probe.model.trust import MadeHere, OtherWriters

GRAPH = Path("/d/run_x/torchinductor/model__0_inference_0.0")
CLAIMS = Manifest(
    command=(), script="f.py", scenario="f", cases=(), knobs=(), label=None, versions=(),
    machine=(("host", "here"), ("cpu", "fast")), started="", duration_s=0.0, outcome="ok", exit_status=0,
    compiled_frames=None, graphs=(),
)  # fmt: skip


@pytest.mark.parametrize(
    ("found", "edited", "allowed"),
    [
        (MadeHere(same=True, place=True), False, True),
        (MadeHere(same=True, place=True), True, True),
        (MadeHere(same=True), False, True),
        (MadeHere(same=True), True, False),
        (MadeHere(changed=True), False, False),
        (MadeHere(), False, False),
        (MadeHere(problem="it is others'"), False, False),
        (MadeHere(same=True, place=True, others=OtherWriters("they write")), False, False),
    ],
)
def test_only_what_was_made_here_runs_unasked(found: MadeHere, edited: bool, allowed: bool) -> None:
    decided = trust_of(GRAPH, found, CLAIMS, edited=edited)
    assert decided.allowed is allowed
    assert allowed or "--trust" in str(decided.hint)
    assert trust_of(GRAPH, found, CLAIMS, edited=edited, trusted=True).allowed


def test_a_manifest_that_names_this_machine_is_a_claim_and_no_proof() -> None:
    decided = trust_of(GRAPH, MadeHere(), CLAIMS)
    assert not decided.allowed
    assert decided.why == f"nothing shows that {GRAPH} was made on this machine (it says: on here with fast)"
    assert decided.hint == (
        f"read {GRAPH}/output_code.py, and output_code_bench.py if there is one, then add --trust: "
        "it will be compiled and run as you"
    )


def test_each_reason_has_its_own_sentence() -> None:
    assert trust_of(GRAPH, MadeHere()).why.endswith(", and it was not made by probe dump")
    assert "its files were changed since" in trust_of(GRAPH, MadeHere(changed=True)).why
    assert trust_of(GRAPH, MadeHere(problem="no such luck")).why.endswith(": no such luck")
    edited = trust_of(GRAPH, MadeHere(same=True), edited=True)
    assert edited.why.startswith(f"probe dump made {GRAPH} in another folder: nothing shows whose variants")
    others = trust_of(GRAPH, MadeHere(same=True, place=True, others=OtherWriters("they write", "chmod x")))
    assert others.why == f"{GRAPH} was made on this machine, but they write: it may hold their code"
    assert str(others.hint).startswith(f"chmod x if nobody changed it; or read {GRAPH}/output_code.py, and")
