"""The user's own callables: which call is timed, what is put back, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from inductor_probe.harness.own_calls import COMPILED, EAGER, OwnCall
from inductor_probe.harness.own_state import State
from inductor_probe.measuring.own_calls import time_own_calls
from inductor_probe.measuring.script_process import OwnProgram
from inductor_probe.model.flip import Flip, parse_flip
from inductor_probe.model.own_call import NoOwnCall

SCRIPT = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8))
cache = []

def step(x):
    cache.append(1)
    return net(x).relu()

compiled = torch.compile(step)
with torch.no_grad():
    for number in range(9):
        compiled(torch.randn(4, 8))
        open("calls.txt", "a").write(str(number))
"""


def test_a_call_is_put_back_as_it_was() -> None:
    """Buffers, lists and gradients that a call changes have their first values again."""
    net, seen = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), list[int]()

    def step(x: torch.Tensor) -> torch.Tensor:
        seen.append(len(seen))
        return net(x)

    x, mean = torch.randn(3, 4), net[1].running_mean.clone()
    state = State(step, (x,), {})
    step(x).sum().backward()
    assert seen
    assert net[0].weight.grad is not None
    state.see()
    assert not seen
    assert net[0].weight.grad is None
    assert torch.equal(net[1].running_mean, mean)
    assert {kept.what for kept in state.changed} >= {"objects", "buffers", "gradients"}
    assert state.counts


def test_an_optimizer_is_found_by_the_name_of_a_global() -> None:
    """Its parameters and its state are not arguments of the step."""
    namespace = {"opt": torch.optim.SGD([nn.Parameter(torch.ones(2))], 0.1, momentum=0.9)}
    exec("def step():\n    opt.step()", namespace)  # noqa: S102 - a function with globals of its own
    parameter = namespace["opt"].param_groups[0]["params"][0]
    parameter.grad = torch.ones(2)
    state = State(namespace["step"], (), {})
    namespace["step"]()  # type: ignore[operator]
    state.see()
    assert torch.equal(parameter, torch.ones(2))


@pytest.mark.parametrize(
    ("eager", "compiled", "code"),
    [
        (lambda x: x * 2, lambda x: x * 2, None),
        (lambda x: x * 2, lambda x: x * 3, "differs"),
        (lambda x: x + torch.rand_like(x), lambda x: x + torch.rand_like(x), "draws"),
        (lambda x: x, lambda x: x[:1], "other-form"),
    ],
)
def test_what_a_check_says(eager: object, compiled: object, code: str | None) -> None:
    """The compiled call is checked against eager before a clock starts."""
    own = OwnCall(eager, compiled, (torch.ones(4),), {}, backward=False)  # type: ignore[arg-type]
    assert [remark for remark, _ in own.check()] == ([code] if code else [])


def test_both_are_timed_in_turns() -> None:
    """The series is of eager and of the compiled callable, in quads."""
    own = OwnCall(torch.sin, torch.sin, (torch.ones(64),), {}, backward=False)
    own.check()
    series = own.time(0.05, 0.01, 0, candidate_first=True)
    assert (series["baseline"], series["candidate"]) == (EAGER, COMPILED)
    assert series["quads"]


def test_long_calls_count_as_their_median_and_not_the_fastest() -> None:
    """Eager of a U-Net took 5.8 ms, the fastest of ten 3.9: pages were cleared in some calls only."""
    own = OwnCall(torch.sin, torch.sin, (torch.ones(64),), {}, backward=False)
    side = own.sides()[EAGER]
    seconds = [9.0, 3.0, 3.0, 1.0]  # the first one warms up
    clock = iter(seconds)
    side.clock, side.calls, side.burst = lambda run, calls: next(clock), 1, 3
    assert side.lap(0) == 3.0


@pytest.mark.compiles
def test_the_script_runs_up_to_the_call_and_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its second call compiles nothing: it is timed before it is made, and the script ends there."""
    monkeypatch.chdir(tmp_path)
    Path("steps.py").write_text(SCRIPT)
    program = OwnProgram(script=Path("steps.py"), variables={})
    (call,), why = time_own_calls(program, [("0/0", False)], budget=0.3, margin=0.01, processes=1)
    assert why is None
    assert (call.name, call.call, call.after, call.backward) == ("step", 2, None, False)
    assert call.where is not None
    assert call.where.endswith("steps.py:6")
    assert {"buffers", "objects"} <= set(call.changes)
    assert Path("calls.txt").read_text() == "0"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("import torch", "nothing-compiled"),
        ("raise ValueError('no data')", "script-failed"),
        ("import os; os._exit(0)", "script-ended"),
        ("import torch; torch.compile(torch.sin)", "not-called"),
    ],
)
@pytest.mark.usefixtures("warm_here")
def test_why_a_script_gives_no_call(text: str, code: str, tmp_path: Path) -> None:
    """A script that compiles nothing, fails, or ends its process is said to."""
    script = tmp_path / "script.py"
    script.write_text(text)
    program = OwnProgram(script=script, variables={})
    calls, why = time_own_calls(program, [("0/0", False)], budget=0.3, margin=0.01, processes=1)
    assert not calls
    assert isinstance(why, NoOwnCall)
    assert why.code == code


OF_FLIP = """
import pathlib, sys
import torch

def f(x):
    return x.exp() + 1

compiled = torch.compile(f)
with torch.no_grad():
    for number in range(3):
        compiled(torch.randn(4, 64))
        code = sys.modules["torch._inductor.codecache"].PyCodeCache.modules[-1].__file__
        pathlib.Path(__file__).with_name("code.txt").write_text(pathlib.Path(code).read_text())
"""


@pytest.mark.compiles
@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("flips", [(), (parse_flip("scalar op0"),)], ids=["as it is", "scalar"])
def test_a_flip_holds_where_nothing_is_dumped(tmp_path: Path, flips: tuple[Flip, ...]) -> None:
    """A flip is about a graph, which inductor names only where it traces."""
    script = tmp_path / "flip.py"
    script.write_text(OF_FLIP)
    program = OwnProgram(script=script, variables={}, flips=flips)
    time_own_calls(program, [("0/0", False)], budget=0.2, margin=0.01, processes=1)
    code = (tmp_path / "code.txt").read_text()
    assert ("at::vec::Vectorized" in code) is not bool(flips)
