"""`probe accuracy` of scripts that are not as one would wish."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import inductor_probe as ip
from tests.conftest import Probe

pytestmark = [pytest.mark.compiles, pytest.mark.takes(60), pytest.mark.usefixtures("warm")]
ODD = """
import random
import torch

torch.set_num_threads(1)

def several(x):
    return {"twice": x * 2, "name": "x", "none": None}

def drawn(x):
    return x * random.random()

def broken(x):
    y = x.sin()
    print("a graph break")
    return y + 1

def many(x):
    return x + 1

def fails(x):
    return x.reshape(7, 7)

x = torch.randn(4, 5)
torch.compile(several)(x)
torch.compile(drawn)(x)
torch.compile(broken)(x)
called = torch.compile(many)
for number in range(1000):
    called(x)
try:
    torch.compile(fails)(x)
except Exception:
    pass
assert called(x).sum() == 0, "the user compares, and stops"
"""


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> ip.Accuracy:
    folder = tmp_path_factory.mktemp("odd")
    (folder / "odd.py").write_text(ODD)
    return ip.accuracy(ip.dump(folder / "odd.py", out=folder), budget=0.5)


def test_a_script_that_fails_is_judged_up_to_there(odd: ip.Accuracy) -> None:
    assert odd.record.problem.startswith("the script ended with an exception")
    assert "the user compares, and stops" in odd.record.problem


def test_what_is_no_tensor_is_left_out(odd: ip.Accuracy) -> None:
    [call] = [call for call in odd.record.calls if call.name == "several"]
    assert call.verdict == "right"
    assert [value.name for value in call.values] == ["output 0"]


def test_random_numbers_from_outside_of_torch_are_said_to_be_drawn_or_are_the_same(odd: ip.Accuracy) -> None:
    [call] = [call for call in odd.record.calls if call.name == "drawn"]
    assert call.verdict in ("right", "undecided")


def test_of_a_thousand_calls_some_are_judged(odd: ip.Accuracy) -> None:
    [call] = [call for call in odd.record.calls if call.name == "many"]
    assert 5 <= call.calls < 1001
    assert call.verdict == "right"


def test_both_graphs_around_a_break_are_there(odd: ip.Accuracy) -> None:
    assert len(odd.record.graphs) >= 4
    assert all(graph.verdict == "right" for graph in odd.record.graphs)


def test_a_call_that_raises_is_said_not_to_be_judged(odd: ip.Accuracy) -> None:
    assert any("fails" in text for text in odd.record.not_judged)


def test_a_script_that_compiles_nothing_is_said_to(tmp_path: Path, probe: Probe) -> None:
    (tmp_path / "none.py").write_text("import torch\nprint(torch.ones(2))\n")
    ran = probe("accuracy", "none.py", cwd=tmp_path)
    assert ran.status == 2
    assert "compiled" in ran.err
    assert "Traceback" not in ran.err


def test_a_script_that_needs_a_gpu_is_said_to_fail(tmp_path: Path, probe: Probe) -> None:
    (tmp_path / "gpu.py").write_text(
        "import torch\nf = torch.compile(lambda x: x + 1)\nf(torch.ones(2))\nf(torch.ones(2).to('cuda:7'))\n"
    )
    ran = probe("accuracy", "gpu.py", "--json", "--no-try", cwd=tmp_path)
    data = json.loads(ran.out)
    assert data["verdict"] == "right"
    assert "ended with an exception" in data["problem"]


def test_a_dump_that_was_not_made_here_is_not_run(tmp_path: Path, probe: Probe) -> None:
    dump = Path(__file__).parents[1] / "fixtures" / "dumps" / "torch-2.13.0-cpu" / "hflip_cl"
    ran = probe("accuracy", str(dump), cwd=tmp_path)
    assert ran.status == 2
    assert "cannot be judged" in ran.err


def test_a_package_that_is_compiled_ahead_of_time_is_made_as_it_is(tmp_path: Path, probe: Probe) -> None:
    """What `compile_fx` returns there is looked at by its type: a function in its place ended the script."""
    (tmp_path / "ahead.py").write_text(
        "import torch\n"
        "made = torch.export.export(torch.nn.Linear(4, 4), (torch.randn(2, 4),))\n"
        "torch._inductor.aoti_compile_and_package(made, package_path='ahead.pt2')\n"
    )
    ran = probe("accuracy", "ahead.py", "--no-try", cwd=tmp_path)
    assert "no call of what torch.compile returned was made" in ran.out, ran.err
    assert (tmp_path / "ahead.pt2").exists()


def test_what_is_right_when_it_is_only_compiled_again_is_credited_to_no_change(tmp_path: Path) -> None:
    """A frozen weight that is changed later: any setting made it right, as the call was compiled anew."""
    (tmp_path / "stale.py").write_text(
        "import torch\n"
        "import torch._inductor.config\n"
        "torch._inductor.config.freezing = True\n"
        "net = torch.nn.Linear(8, 8).eval()\n"
        "compiled, x = torch.compile(net), torch.randn(4, 8)\n"
        "with torch.no_grad():\n"
        "    compiled(x)\n"
        "    net.weight.mul_(3)\n"
        "    compiled(x)\n"
    )
    answer = ip.accuracy(ip.dump(tmp_path / "stale.py", out=tmp_path))
    [wrong] = answer.record.wrong
    assert (wrong.layer, wrong.cause, wrong.right_when, wrong.not_right_when) == ("pass", "freezing", (), ())
    assert wrong.steps[-1].place == "the same, compiled again"
