"""`probe overview`: one screen about a program, from what was measured, or from what bounds its time."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import inductor_probe as ip
from inductor_probe.analysis.causes.candidates import candidates_of
from inductor_probe.api import own_call
from inductor_probe.api.overview import overview_of
from inductor_probe.model.bench import BenchSettings
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.profile import PROFILE_NAME
from inductor_probe.model.whatif import Trial
from inductor_probe.report.terminal import to_text
from inductor_probe.store.trials import write_trials
from tests.conftest import Probe
from tests.dumps import run_in
from tests.schemas import schema_faults

pytestmark = pytest.mark.usefixtures("warm")
OWN_CALLS = own_call.own_calls
SCRIPT = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2.0

    def forward(self, x):
        y = torch.flip(x, [-1]).sin()
        return y * self.scale

torch.set_num_threads(1)  # a busy machine takes the core of one of two threads
net = Net()
compiled = torch.compile(net)
for size in (64, 96):
    compiled(torch.randn(size, 300))
net.scale = 3.0
compiled(torch.randn(96, 300))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ip.Run:
    folder = tmp_path_factory.mktemp("overview")
    (folder / "net.py").write_text(SCRIPT)
    return ip.dump(folder / "net.py", out=folder, label="net")


@pytest.fixture(scope="module")
def answer(run: ip.Run) -> ip.Overview:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_call, "own_calls", OWN_CALLS)  # that other tests leave out
        return overview_of(run, BenchSettings(budget=3.0, processes=1))


def keys(answer: ip.Overview) -> dict[str, Any]:
    data: Any = answer.json
    return dict(data)


@pytest.mark.compiles
def test_the_call_is_held_against_eager_and_its_parts_add_up(answer: ip.Overview) -> None:
    data = keys(answer)
    assert schema_faults("overview", data) == []
    assert (data["basis"], data["device"], data["name"]) == ("time", "cpu", "Net"), data["left_out"]
    assert data["call"] > 0
    assert data["eager"] > 0
    assert data["threads"] >= 1
    assert data["parts"]
    assert sum(part["share"] for part in data["parts"]) <= 1 + 1e-9
    shares = [part["share"] for part in data["parts"]]
    assert shares == sorted(shares, reverse=True)
    assert not data["wrong"]
    assert len(json.dumps(data)) < 8000  # some 2,000 tokens


@pytest.mark.compiles
def test_what_cost_most_and_what_to_try_are_about_the_scalar_loop(answer: ip.Overview) -> None:
    data = keys(answer)
    assert data["costs"][0]["cause"] == "non-contiguous-accesses"
    assert data["costs"][0]["text"].startswith("op0 is scalar")
    assert 0 < data["costs"][0]["share"] <= 1
    assert data["try"][0]["command"].startswith("probe whatif ")
    assert "--set inductor.cpp.enable_tiling_heuristics=False" in data["try"][0]["command"]
    assert 0 < data["try"][0]["at_most"] <= 1
    assert data["try_all"].endswith("--try-all")


@pytest.mark.compiles
def test_recompiles_name_the_users_value_and_a_remedy_that_was_tried(answer: ip.Overview) -> None:
    found = {one["value"]: one for one in keys(answer)["interruptions"]}
    assert found["x"]["cause"] == "size"
    assert found["x"]["text"] == "compiled again: the size of x changed"
    assert {one["code"]: one["checked"] for one in found["x"]["remedies"]} == {
        "mark-dynamic": None,
        "dynamic": True,
    }
    assert found["self.scale"]["where"] == "net.py:11"
    assert found["self.scale"]["code"] == "return y * self.scale"


@pytest.mark.compiles
@pytest.mark.parametrize("width", [80, 140])
def test_it_is_one_screen(answer: ip.Overview, width: int) -> None:
    lines = to_text(answer.document, width).splitlines()
    assert len(lines) <= (40 if width == 80 else 25), "\n".join(lines)
    assert all(len(line) <= width for line in lines)
    assert lines[0].startswith(("Net (net.py:", "no verdict for Net", "Net "))


@pytest.mark.compiles
def test_what_was_measured_is_kept_for_the_next_question(
    run: ip.Run, answer: ip.Overview, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger ranked by bytes that no loop nest waits for, and `overview` would measure each time."""
    assert (run.path / PROFILE_NAME).is_file()
    monkeypatch.setattr("inductor_probe.api.profile.profile_graphs", None)  # it is not to be called
    again = ip.overview(ip.open_run(run.path))
    assert keys(again)["call"] == keys(answer)["call"]
    assert keys(again)["interruptions"] == keys(answer)["interruptions"]
    ledger = ip.open_run(run.path).graphs[0].why()
    assert any(cause.seconds for row in ledger for cause in row.causes)
    assert probe("check", run.path).status == 0
    (facts,) = [one for one in ip.runs(run.path.parent.parent) if one.path == run.path]
    assert not ip.plan_removal(facts).blockers


@pytest.mark.compiles
def test_an_edit_of_the_code_makes_its_times_unknown(
    run: ip.Run, answer: ip.Overview, tmp_path: Path
) -> None:
    assert answer.record.call
    copy = Path(shutil.copytree(run.path, tmp_path / run.path.name))
    code = ip.open_run(copy).graphs[0].path / "output_code.py"
    assert ip.open_run(copy).graphs[0].times.call
    newer = (copy / PROFILE_NAME).stat().st_mtime + 10
    code.write_text(code.read_text() + "\n")
    os.utime(code, (newer, newer))
    assert ip.open_run(copy).graphs[0].times.call is None


@pytest.mark.parametrize("name", ["torch-2.13.0-cpu/hflip_cl", "torch-2.11.0-cuda/layernorm_grad"])
def test_a_dump_of_somebody_else_is_ranked_by_what_bounds_its_time(name: str, probe: Probe) -> None:
    ran = probe("overview", run_in(name), "--json")
    assert ran.status == 0, ran.err
    data = json.loads(ran.out)
    assert schema_faults("overview", data) == []
    assert (data["call"], data["eager"]) == (None, None)
    assert data["basis"] == "bytes"  # figures of the GPU that made the other are not known
    assert data["parts"]
    assert sum(part["share"] for part in data["parts"]) == pytest.approx(1.0, abs=0.05)
    assert any(text.startswith("nothing was measured: ") for text in data["left_out"])
    assert all(one["at_most"] is None for one in data["try"])


def test_nothing_is_run_where_that_is_asked_for(probe: Probe) -> None:
    ran = probe("overview", run_in("torch-2.13.0-cpu/hflip_cl"), "--no-measure")
    assert ran.status == 0, ran.err
    assert "nothing was measured." in ran.out.splitlines()[0]
    assert "not looked at: nothing was measured: probe overview " in ran.out


@pytest.mark.compiles
def test_a_script_that_compiles_nothing_says_so(probe: Probe, tmp_path: Path) -> None:
    (tmp_path / "nothing.py").write_text("import torch\nprint(torch.ones(2))\n")
    ran = probe("overview", "nothing.py", cwd=tmp_path)
    assert ran.status == 2
    assert "error: " in ran.err
    assert "empty run" in ran.err


@pytest.mark.compiles
def test_of_many_graphs_those_that_move_most_are_measured(tmp_path: Path) -> None:
    (tmp_path / "many.py").write_text(
        "import torch\n"
        "def f(x):\n    return (x + 1).relu()\n"
        "for n in (1000, 3000, 10, 20, 30, 40, 50):\n"
        "    torch._dynamo.reset()\n    torch.compile(f)(torch.randn(n, 64))\n"
    )
    run = ip.dump(tmp_path / "many.py", out=tmp_path)
    data = keys(ip.overview(run, measure=False))
    assert data["parts"][0]["bytes"] > 0
    assert any(text.startswith("3 graphs of 7") for text in data["left_out"])


@pytest.mark.compiles
def test_operators_that_were_decomposed_stand_beside_eagers_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_call, "own_calls", OWN_CALLS)
    (tmp_path / "sampled.py").write_text(
        "import torch\n"
        "import torch.nn.functional as F\n"
        "def sampled(image, grid):\n"
        "    return F.grid_sample(image, grid, mode='bicubic', align_corners=False)\n"
        "torch.set_num_threads(1)\n"
        "compiled = torch.compile(sampled)\n"
        "for _ in range(2):\n"
        "    compiled(torch.rand(1, 3, 90, 80), torch.rand(1, 90, 80, 2) * 2 - 1)\n"
    )
    run = ip.dump(tmp_path / "sampled.py", out=tmp_path)
    answer = overview_of(run, BenchSettings(budget=3.0, processes=1), operators=True)
    data = keys(answer)
    assert schema_faults("overview", data) == []
    (operator,) = data["operators"]
    assert operator["name"] == "aten.grid_sampler_2d"
    figures = {row["code"]: row for row in operator["figures"]}
    image, grid = 4 * 3 * 90 * 80, 4 * 2 * 90 * 80
    assert figures["operand-bytes"]["eager"] == figures["operand-bytes"]["compiled"] == 2 * image + grid
    assert (figures["operand-bytes"]["eager_source"], figures["loads"]["eager_source"]) == (
        "recorded",
        "not-known",
    )
    assert 0 < figures["seconds"]["eager"] <= data["eager"]
    assert figures["between-bytes"]["eager"] == 0 < figures["between-bytes"]["compiled"]
    assert (figures["without-vectors"]["eager"] is None) == (operator["capability"] == "DEFAULT")
    assert operator["works"]
    assert operator["tries"] >= len(operator["try"]) > 0
    text = to_text(answer.document, 200)
    assert "do not depend on p0" in text
    assert "only another decomposition has" in text
    short = keys(ip.overview(run, measure=False))["operators"]
    assert [(one["name"], one["figures"]) for one in short] == [("aten.grid_sampler_2d", [])]
    (known,) = keys(ip.overview(run, operators=True))["operators"]  # nothing is measured again
    assert known["figures"] == operator["figures"]
    assert (known["tried"], known["gain"]) == (0, None)
    settings = BenchSettings()
    compared = Comparison("call", "other call", 0.8, 0.7, 0.9, "FASTER", (), 9, 0)
    candidates = candidates_of([graph.compiled for graph in run.graphs])
    write_trials(run.path, [Trial(one, "gain", call=compared) for one in candidates], settings, torch="2.13")
    (known,) = keys(ip.overview(run, measure=False, operators=True))["operators"]
    assert (known["tried"], known["gain"]) == (known["tries"], 0.8)
