"""Changes that make a wrong call right: decisions turned for one of several graphs, and what they cost."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.api.accuracy_trials import Costs
from inductor_probe.api.own_call import program_of
from inductor_probe.measuring.script_process import OwnProgram
from inductor_probe.report.terminal import to_text
from tests.schemas import schema_faults

pytestmark = [pytest.mark.compiles, pytest.mark.takes(30), pytest.mark.usefixtures("warm")]
SCRIPT = """
import torch
from torch._inductor.codegen.cpp import CppVecOverrides

CppVecOverrides.sin = staticmethod(lambda x: f"{x}.cos()")
torch.set_num_threads(1)


def waves(x):
    return (x + 1).sin() * 3


x = torch.randn(8, 64)
torch.compile(waves)(x)
torch.compile(waves)(x[:, :48].contiguous())
"""


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> ip.Accuracy:
    folder = tmp_path_factory.mktemp("trials")
    script = folder / "planted.py"
    script.write_text(SCRIPT)
    return ip.accuracy(ip.dump(script, out=folder), try_s=0.01)


def test_a_flip_that_makes_one_of_two_graphs_right_is_credited(answer: ip.Accuracy) -> None:
    """The values of all calls of a callable counted as one: the other graph's stayed wrong."""
    found = [one for graph in answer.record.graphs for one in graph.wrong]
    assert [(one.layer, one.operator) for one in found] == [("codegen", "aten.sin")] * len(found)
    assert found
    assert [one.right_when[0].name for one in found] == ["scalar op0"] * len(found)


def test_what_a_change_costs_is_the_own_call_against_that_as_it_is(answer: ip.Accuracy) -> None:
    graph = answer.record.graphs[0]
    changes = tuple(one for one in graph.wrong[0].right_when if one.kind in ("flip", "fallback"))
    value = replace(graph.wrong[0], right_when=changes)
    record = replace(answer.record, graphs=(replace(graph, wrong=(value,)),))
    run = ip.open_run(answer.record.run)
    program = program_of(run)
    assert isinstance(program, OwnProgram)
    timed = ip.Accuracy(Costs(run, program, lambda text: None).measured(record))
    flip, fallback = timed.record.graphs[0].wrong[0].right_when
    assert flip.cost is not None
    assert flip.cost.a.name == flip.cost.b.name == "waves"
    assert flip.cost.comparison.low <= flip.cost.comparison.ratio <= flip.cost.comparison.high
    assert fallback.cost is None  # no option of `probe dump` makes it
    assert "waves with --scalar op0" in " ".join(to_text(timed.document, width=200).split())
    assert schema_faults("accuracy", timed.json) == []
