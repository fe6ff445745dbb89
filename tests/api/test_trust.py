from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.api.trust import lacks_gpu, trust_of
from inductor_probe.api.whatif import whatif_of_runs
from inductor_probe.model.manifest import Manifest, SimulatedGpu
from inductor_probe.model.runs import MadeHere, OtherWriters, RecordProblem
from inductor_probe.report.words.runs import refusal

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
        (MadeHere(problem=RecordProblem("other-writers", Path("record"))), False, False),
        (MadeHere(same=True, place=True, others=OtherWriters(GRAPH, mode=0o777)), False, False),
    ],
)
def test_only_what_was_made_here_runs_unasked(found: MadeHere, edited: bool, allowed: bool) -> None:
    decided = trust_of(GRAPH, found, CLAIMS, edited=edited)
    assert decided.allowed is allowed
    assert allowed or "--trust" in refusal(decided)[1]


def test_a_manifest_that_names_this_machine_is_a_claim_and_no_proof() -> None:
    decided = trust_of(GRAPH, MadeHere(), CLAIMS)
    assert not decided.allowed
    why, hint = refusal(decided)
    assert why == f"nothing shows that {GRAPH} was made on this machine (it says: on here with fast)"
    assert hint == (
        f"read {GRAPH}/output_code.py, and output_code_bench.py if there is one, then add --trust: "
        "it will be compiled and run as you"
    )


def test_each_reason_has_its_own_sentence() -> None:
    assert refusal(trust_of(GRAPH, MadeHere()))[0].endswith(", and it was not made by probe dump")
    assert "its files were changed since" in refusal(trust_of(GRAPH, MadeHere(changed=True)))[0]
    problem = RecordProblem("unreadable", Path("record"), "no such luck")
    assert refusal(trust_of(GRAPH, MadeHere(problem=problem)))[0].endswith(
        ": record cannot be read: no such luck"
    )
    edited = trust_of(GRAPH, MadeHere(same=True), edited=True)
    assert refusal(edited)[0].startswith(
        f"probe dump made {GRAPH} in another folder, and nothing records who wrote the variants"
    )
    others = trust_of(GRAPH, MadeHere(same=True, place=True, others=OtherWriters(GRAPH, mode=0o777)))
    why, hint = refusal(others)
    assert why == (
        f"{GRAPH} was made on this machine, but other users may write to {GRAPH} (mode 0777): "
        "it may hold their code"
    )
    assert hint.startswith(f"chmod go-w {GRAPH} if nobody changed it; or read {GRAPH}/output_code.py, and")


def test_what_changed_is_shown_where_no_gpu_can_time_it(tmp_path: Path) -> None:
    """It was all refused, though only the times need a GPU."""
    dumps = Path(__file__).parent.parent / "fixtures/dumps/torch-2.11.0-cuda/layernorm_grad"
    (run,) = dumps.glob("run_*")
    sides = []
    for side in "AB":
        shutil.copytree(run, tmp_path / side / run.name)
        sides.append(ip.open_run(tmp_path / side / run.name))
    for code in sides[1].path.rglob("output_code.py"):
        code.write_text(code.read_text().replace("ReductionHint.INNER", "ReductionHint.OUTER"))
    a, b = sides[0], ip.open_run(sides[1].path)
    if not lacks_gpu(a.graphs[0]):
        pytest.skip("this machine has a GPU, on which the kernels could be launched")
    gpu = SimulatedGpu("h200", "NVIDIA H200", "9.0", ())
    for side in (a, b):
        side.debug_dir = replace(side.debug_dir, manifest=replace(CLAIMS, gpu=gpu))
    graph = whatif_of_runs(a, b).graphs[0]
    assert graph.not_timed == "no-gpu"
    assert graph.subjects == ("NVIDIA H200",)
    assert "reduction_hint" in {fact.name for match in graph.diff.kernels for fact in match.facts}
