"""Two ways to compile a program: which decisions changed, whether it is right, how long both take."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.api.whatif import whatif_of_runs
from inductor_probe.model.bench import BenchSettings
from inductor_probe.model.own_call import OwnPair
from inductor_probe.report.pages.whatif import whatif_sentence
from tests.cli.test_printed_names import refusals
from tests.schemas import schema_faults
from tests.shared import made_once
from tests.torch_server import TorchServer

SCRIPT = """
import sys
import torch

ADDED = {"one": 1, "two": 2}.get(sys.argv[1], 1)


@torch.compile
def mirrored(image):
    return image + 1 if sys.argv[1] == "add" else image.flip(-1) + ADDED


size = 96 if sys.argv[1] == "wide" else 64
mirrored(torch.zeros(1, 3, 64, size, dtype=torch.uint8))
"""
HEURISTICS = {"inductor.cpp.enable_tiling_heuristics": "False"}
QUICK = BenchSettings(budget=0.3)
pytestmark = [pytest.mark.compiles, pytest.mark.usefixtures("warm")]


@pytest.fixture(scope="session")
def dumps(tmp_path_factory: pytest.TempPathFactory, torch_server: TorchServer) -> Path:
    """Return a folder with runs of the script: as it is, with a setting, and changed in two ways."""

    def make(folder: Path) -> None:
        script = folder / "mirror.py"
        script.write_text(SCRIPT)
        for label, argument, knobs in (
            ("plain", "one", {}),
            ("vectorised", "one", HEURISTICS),
            ("other_values", "two", {}),
            ("adding", "add", {}),
            ("adding_without_vectors", "add", {"inductor.cpp.simdlen": "1"}),
            ("wide", "wide", {}),
        ):
            ip.dump(script, args=[argument], label=label, knobs=knobs, out=folder, stdout_to_stderr=True)

    with torch_server.used():
        return made_once(tmp_path_factory, "whatif", make)


@pytest.fixture
def here(dumps: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(dumps)
    return dumps


def test_a_setting_that_changes_a_decision_is_checked_and_timed(here: Path) -> None:
    a, b = ip.open_run("plain"), ip.open_run("vectorised")
    answer = whatif_of_runs(a, b, QUICK, candidate=ip.Candidate(settings=tuple(HEURISTICS.items())))
    (graph,) = answer.graphs
    assert answer.correct
    assert [change.decision.kind for change in graph.asked if change.a] == ["vectorisation"]
    (pair,) = [
        (each.a.outcome, each.b.outcome)
        for each in graph.diff.decisions
        if each.a and each.b and each.a.kind == "vectorisation"
    ]
    assert pair == ("scalar", "vectorised")
    assert graph.result is not None
    pairs = {(one.baseline, one.candidate) for one in graph.result.comparisons}
    assert ("Compiled call", "call_v3") in pairs
    assert ("cpp_fused_add_flip_0 alone", "cpp_fused_add_flip_0_v3 alone") in pairs
    assert [path.parents[2] for path, _ in graph.ran] == [a.path, b.path]
    shown = answer.markdown
    assert "A and B compute what the graph does in float64" in shown
    assert "scalar" in shown
    assert "cpp_fused_add_flip_0 of B" in shown
    assert "_v3" not in shown
    assert schema_faults("whatif", answer.json) == []
    assert "<svg" in answer._repr_html_()  # the samples, as they were measured


def test_samples_stay_beside_the_graph_and_can_be_judged_again(here: Path) -> None:
    run = ip.open_run("plain")
    answer = whatif_of_runs(run, ip.open_run("vectorised"), QUICK)
    (graph,) = answer.graphs
    assert graph.file is not None
    assert graph.file.parent == run.graphs[0].path
    assert graph.result is not None
    again = ip.verdict(graph.file.with_suffix(".json"))
    assert again.result.comparisons == graph.result.comparisons
    assert "cpp_fused_add_flip_0 of B" in again.markdown
    assert "_v3" not in again.markdown
    (facts,) = [one for one in ip.runs(here) if one.path == run.path]
    assert not ip.plan_removal(facts).blockers
    assert not ip.open_run("plain").summary.problems


def test_other_values_are_wrong_and_never_a_gain(here: Path) -> None:
    answer = whatif_of_runs(ip.open_run("plain"), ip.open_run("other_values"), QUICK)
    assert not answer.correct
    (graph,) = answer.graphs
    assert whatif_sentence(graph).startswith("B is WRONG") or "of B is WRONG" in whatif_sentence(graph)
    assert graph.result is not None
    assert not {"call_v3", "cpp_fused_add_flip_0_v3 alone"} & {
        one.candidate for one in graph.result.comparisons
    }


def test_each_side_is_compiled_for_the_vectors_that_it_is_written_for(here: Path) -> None:
    answer = whatif_of_runs(ip.open_run("adding"), ip.open_run("adding_without_vectors"), QUICK)
    assert answer.correct
    (graph,) = answer.graphs
    assert graph.result is not None
    (call,) = [variant for variant in graph.result.variants if variant.name == "call"]
    assert call.correct


def test_of_graphs_of_other_inputs_the_callables_of_both_programs_are_timed(here: Path) -> None:
    answer = whatif_of_runs(ip.open_run("plain"), ip.open_run("wide"), replace(QUICK, processes=1))
    (graph,) = answer.graphs
    assert isinstance(answer.own, OwnPair)
    assert answer.own.comparison.verdict == "UNDECIDED"  # of one process
    assert (graph.not_timed, graph.result) == ("inputs-differ", None)
    assert whatif_sentence(graph) == "Not timed: B cannot take the inputs of A: arg0_1 differ."


def test_the_same_code_is_not_timed(here: Path) -> None:
    answer = whatif_of_runs(ip.open_run("plain"), ip.open_run("plain"), QUICK)
    assert [graph.not_timed for graph in answer.graphs] == ["same-code"]
    assert json.dumps(answer.json)


def test_a_variable_that_acts_at_run_time_is_named_beside_the_verdict(here: Path) -> None:
    candidate = ip.Candidate(variables=(("ATEN_CPU_CAPABILITY", "avx2"),))
    answer = whatif_of_runs(ip.open_run("plain"), ip.open_run("plain"), QUICK, candidate=candidate)
    assert answer.json["not_timed_with"] == ["ATEN_CPU_CAPABILITY"]
    assert "ATEN_CPU_CAPABILITY also acts while code runs, which is not in these times" in answer.markdown
    assert answer.json["summary"] == ["ATEN_CPU_CAPABILITY=avx2 (for the compile alone): the same code"]
    assert schema_faults("whatif", answer.json) == []


def test_code_that_was_changed_since_it_was_made_here_is_not_run(here: Path, tmp_path: Path) -> None:
    a, b = ip.open_run("plain"), ip.open_run("vectorised")
    moved = tmp_path / "torch_compile_debug" / b.path.name
    shutil.copytree(b.path, moved)
    code = moved / "torchinductor" / b.graphs[0].name / "output_code.py"
    code.write_text(code.read_text().replace("import math", "import math, os", 1))
    before = sorted(a.graphs[0].path.iterdir())
    with pytest.raises(ip.ProbeError, match="nothing shows that"):
        whatif_of_runs(a, ip.open_run(moved), QUICK)
    assert sorted(a.graphs[0].path.iterdir()) == before


TRAINED = """
import torch

torch.manual_seed(0)
weight = torch.randn(16, 24, requires_grad=True)
torch.compile(lambda x: torch.mm(x, weight).sin().sum())(torch.randn(8, 16)).backward()
"""


def test_a_wrapper_in_cpp_may_write_to_a_donated_input(tmp_path: Path) -> None:
    """The backward graph computes in the memory of what was saved for it: that was called wrong."""
    (tmp_path / "train.py").write_text(TRAINED)
    apart = {"inductor.allow_buffer_reuse": "False", "inductor.inplace_buffers": "False"}
    a, b = (
        ip.dump(tmp_path / "train.py", label=label, knobs=knobs, out=tmp_path, stdout_to_stderr=True)
        for label, knobs in (("apart", apart), ("cpp", {"inductor.cpp_wrapper": "True"}))
    )
    code = (b.graphs[-1].path / "output_code.py").read_text()
    assert re.search(r"std::move\(mm\);  // reuse", code)
    assert "# reuse" not in (a.graphs[-1].path / "output_code.py").read_text()
    answer = whatif_of_runs(a, b, QUICK, only=a.graphs[-1])
    (graph,) = answer.graphs
    assert graph.result is not None
    assert graph.file is not None
    assert re.search(r"^DONATED = \[\d\]$", graph.file.read_text(), re.M)
    assert answer.correct, answer.markdown


def test_every_name_of_a_ledger_of_recorded_decisions_is_taken(here: Path) -> None:
    """`op10 +3 (largest)` and `buf10` of `probe why` led nowhere."""
    assert list(refusals(ip.open_run("plain").graphs[0])) == []
