"""`probe reduce` from a script to the file that is left."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import inductor_probe as ip

pytestmark = [pytest.mark.compiles, pytest.mark.filterwarnings("ignore"), pytest.mark.takes(60)]
NETWORK = """
import torch

def function(x, w):
    for place in range(6):
        x = torch.relu(x @ w) + x
        if place == 3:
            x = x.flip(-1) * 2
    return x.softmax(-1)

torch.compile(function)(torch.randn(16, 32), torch.randn(32, 32))
"""
TWO_SIZES = """
import torch

def function(x, w):
    return torch.tanh(torch.relu(x) @ w)

compiled, w = torch.compile(function), torch.randn(4, 4)
compiled(torch.randn(8, 4), w)
compiled(torch.randn(9, 4), w)
"""


TRAINED = """
import torch

def function(x, w):
    for place in range(3):
        x = torch.relu(x @ w) + x
    x = x.cumsum(-1)
    return x.sigmoid()

x, w = torch.randn(16, 32), torch.randn(32, 32, requires_grad=True)
torch.compile(function)(x, w).sum().backward()
"""
DYNAMIC = """
import torch

def function(x, w):
    for place in range(3):
        x = torch.relu(x @ w) + x
    return x.roll(1, 0).reshape(x.shape[0], -1).softmax(-1)

torch.compile(function, dynamic=True)(torch.randn(16, 32), torch.randn(32, 32))
"""
PLANTED = """
import planted_fault
import torch

def function(x, w):
    for place in range(6):
        x = torch.nn.functional.gelu(x @ w) + torch.nn.functional.layer_norm(x, (32,))
        if place == 3:
            x = torch.sinh(x.tanh())
    return x @ w

torch.manual_seed(0)
torch.compile(function)(torch.randn(16, 32), torch.randn(32, 32))
"""
FAULT = """
import torch
from torch._inductor import lowering

sinh, add = (lowering.lowerings[one] for one in (torch.ops.aten.sinh.default, torch.ops.aten.add.Tensor))
lowering.lowerings[torch.ops.aten.sinh.default] = lambda x: add(sinh(x), 0.25)
"""


def runs_alone(script: Path) -> bool:
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    return done.returncode == 0


def test_keep_wrong_ends_though_other_operators_are_wrong_by_rounding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows from a wrong value, and erf, which loses digits, were followed in each program."""
    (tmp_path / "planted_fault.py").write_text(FAULT)
    (tmp_path / "network.py").write_text(PLANTED)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    before = {*Path(tempfile.gettempdir()).glob("reduce-*")}
    record = ip.reduce(
        tmp_path / "network.py", keep=["wrong"], output=tmp_path / "small.py", imports=["planted_fault"]
    ).record
    assert (record.holds, record.left) == (True, 1)
    assert "torch.sinh(" in record.text
    assert record.says == ("its calls are wrong: aten.sinh",)
    assert before == {*Path(tempfile.gettempdir()).glob("reduce-*")}


def test_a_decision_of_a_backward_graph_has_its_backward(tmp_path: Path) -> None:
    (tmp_path / "network.py").write_text(TRAINED)
    keep = ["run: grep -q backward", "expect: --cause no-backend-feature"]
    record = ip.reduce(tmp_path / "network.py", keep=keep, output=tmp_path / "small.py").record
    assert record.holds
    assert record.left <= 2
    assert "cumsum(" in record.text
    assert ".sum().backward()" in record.text
    assert runs_alone(tmp_path / "small.py")


def test_sizes_stay_dynamic_where_they_matter(tmp_path: Path) -> None:
    (tmp_path / "network.py").write_text(DYNAMIC)
    keep = ["run: grep -q dynamic=True", "run: grep -q reshape", "run: grep -q shape.0"]
    record = ip.reduce(tmp_path / "network.py", keep=keep, output=tmp_path / "small.py").record
    assert record.holds
    assert record.left <= 2
    assert runs_alone(tmp_path / "small.py")


def test_a_run_is_reduced_by_its_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("network.py").write_text(NETWORK)
    run = ip.dump("network.py")
    for which in (run, run.graphs[0]):
        record = ip.reduce(which, keep=["run: grep -q softmax"], output=Path("small.py")).record
        assert (record.holds, record.left) == (True, 1)
        assert record.script.name == "network.py"


def test_a_decision_in_a_network_becomes_a_program_that_runs_alone(tmp_path: Path) -> None:
    (tmp_path / "network.py").write_text(NETWORK)
    small = tmp_path / "small.py"
    keep = ["not expect: --vectorised", "run: grep -q flip"]
    record = ip.reduce(tmp_path / "network.py", keep=keep, output=small).record
    assert record.holds
    assert (record.nodes, record.left) == (21, 1)
    assert small.read_text() == record.text
    assert "x.flip(-1)" in record.text
    assert "aten" not in record.text
    done = subprocess.run([sys.executable, small], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not small.with_suffix(".reduction").exists()


def test_a_recompile_has_both_calls(tmp_path: Path) -> None:
    (tmp_path / "sizes.py").write_text(TWO_SIZES)
    record = ip.reduce(tmp_path / "sizes.py", keep=["recompiles"], output=tmp_path / "small.py").record
    assert record.holds
    assert record.left == 1
    assert record.text.count("\ncompiled(") == 2


def test_what_does_not_hold_to_begin_with_is_said(tmp_path: Path) -> None:
    (tmp_path / "network.py").write_text(NETWORK)
    small = tmp_path / "small.py"
    reduction = ip.reduce(tmp_path / "network.py", keep=["fails"], output=small)
    assert not reduction.record.holds
    assert "no graph of" in repr(reduction)
    assert "it compiles" in repr(reduction)
    assert not small.exists()


def test_a_search_goes_on_where_its_budget_was_over(tmp_path: Path) -> None:
    (tmp_path / "network.py").write_text(NETWORK)
    small, keep = tmp_path / "small.py", ["run: grep -q flip"]
    first = ip.reduce(tmp_path / "network.py", keep=keep, output=small, budget=0.001).record
    assert first.over_budget
    assert first.holds
    with pytest.raises(ip.ProbeError, match="another script or predicate"):
        ip.reduce(tmp_path / "network.py", keep=["fails"], output=small, resume=True)
    second = ip.reduce(tmp_path / "network.py", keep=keep, output=small, resume=True).record
    assert second.known
    assert second.left < first.left


def test_a_file_that_is_not_of_it_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "network.py").write_text(NETWORK)
    with pytest.raises(ip.ProbeError, match="is the script itself"):
        ip.reduce(tmp_path / "network.py", keep=["fails"], output=tmp_path / "network.py")
    (tmp_path / "mine.py").write_text("mine = 1\n")
    with pytest.raises(ip.ProbeError, match="not of probe reduce"):
        ip.reduce(tmp_path / "network.py", keep=["fails"], output=tmp_path / "mine.py")
    with pytest.raises(ip.ProbeError, match="nothing is to be kept"):
        ip.reduce(tmp_path / "network.py")


@pytest.mark.parametrize("name", ["small.py", "small.pt", "small.reduction"])
def test_nothing_of_the_users_beside_the_target_is_overwritten_or_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "net.py").write_text("import torch\n")
    precious = tmp_path / name
    if precious.suffix == ".reduction":
        precious.mkdir()
        precious = precious / "mine.txt"
    precious.write_text("precious")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ip.ProbeError, match=f"{name} is there, and not of probe reduce"):
        ip.reduce("net.py", keep=["fails"], output=Path("small.py"))
    assert precious.read_text() == "precious"


def test_a_folder_is_no_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net.py").write_text("import torch\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ip.ProbeError, match="is a folder"):
        ip.reduce("net.py", keep=["fails"], output=Path())
