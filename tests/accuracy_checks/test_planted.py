"""`probe accuracy` of faults that were planted in torch's layers: which operator, which line, whose fault."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import inductor_probe as ip
from inductor_probe.model.accuracy import CheckedCall, WrongValue
from inductor_probe.report.terminal import to_text
from tests.schemas import schema_faults

pytestmark = [pytest.mark.compiles, pytest.mark.takes(60), pytest.mark.usefixtures("warm")]
SCRIPT = Path(__file__).with_name("planted.py")
LINES = SCRIPT.read_text().splitlines()


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> ip.Accuracy:
    run = ip.dump(SCRIPT, out=tmp_path_factory.mktemp("accuracy"), label="planted")
    with mock.patch.dict(os.environ, CI="1"):  # with which torch refuses some fallbacks
        return ip.accuracy(run, try_s=0.01)


def call(answer: ip.Accuracy, name: str) -> CheckedCall:
    return next(one for one in answer.record.calls if one.name == name)


def wrong(answer: ip.Accuracy, text: str) -> list[WrongValue]:
    """Return what is wrong on the line of the script that has a text."""
    number = next(place for place, line in enumerate(LINES, 1) if text in line)
    values = [*answer.record.wrong, *(value for graph in answer.record.graphs for value in graph.wrong)]
    return [value for value in values if value.user_line and value.user_line.line == number]


@pytest.mark.parametrize(
    ("text", "layer", "operator"),
    [
        ("softplus(x) * 2", "decomposition", "aten.softplus"),
        ("h = (x * 2).tanh()", "lowering", "aten.tanh"),
        ("return (x + 1).sin() * 3", "codegen", "aten.sin"),
        ("return (x - y).relu() + 1", "pass", "aten.sub"),
        ("x.sin_()", "codegen", "aten.sin"),
        ("x.flip(0).tanh()", "lowering", "aten.tanh"),
        ("elu(self.first(x))", "decomposition", "aten.elu_backward"),
        ("between = doubled(x + 1).sin()", "codegen", "aten.sin"),
        ("waves = (x @ w).sin()", "codegen", "aten.sin"),
        ("flipped = x.flip(0) + y", "scheduling", "prims.rev"),
    ],
)
def test_a_planted_fault_is_found(answer: ip.Accuracy, text: str, layer: str, operator: str) -> None:
    found = wrong(answer, text)
    assert [(value.layer, value.operator) for value in found] == [(layer, operator)]
    value = found[0]
    assert value.eager != value.compiled
    assert value.reference == pytest.approx(value.eager, rel=1e-4)
    assert value.wrong > 0
    assert value.user_line is not None
    assert value.user_line.text == LINES[value.user_line.line - 1].strip()
    assert value.buffer.startswith("buf") or "sin_" in text
    assert value.kernel.startswith("cpp_fused")
    assert value.fx


@pytest.mark.parametrize("text", ["shares = waves.exp()", "(shares / shares.sum(", "add_into(between, out)"])
def test_what_follows_from_a_fault_is_not_named(answer: ip.Accuracy, text: str) -> None:
    assert wrong(answer, text) == []


def test_two_faults_of_one_line_are_both_named(answer: ip.Accuracy) -> None:
    found = wrong(answer, "return x.sin() * 2 + (x * 3).tanh()")
    assert {(value.layer, value.operator) for value in found} == {
        ("codegen", "aten.sin"),
        ("lowering", "aten.tanh"),
    }


def test_what_makes_it_right_was_checked(answer: ip.Accuracy) -> None:
    [decomposed] = wrong(answer, "softplus(x) * 2")
    assert [(one.kind, one.setting, one.by) for one in decomposed.right_when] == [
        ("decomposition", "aten.softplus", "program")
    ]
    [coded] = wrong(answer, "return (x + 1).sin() * 3")
    kinds = {(one.kind, one.name) for one in coded.right_when}
    assert ("setting", "inductor.cpp.simdlen=1") in kinds
    assert ("fallback", "aten.sin") in kinds
    [passed] = wrong(answer, "return (x - y).relu() + 1")
    assert [one.setting for one in passed.right_when] == [
        "inductor.disabled_passes=post_grad_custom_post_pass"
    ]
    assert passed.cause == "post_grad_custom_post_pass"
    [lowered] = wrong(answer, "h = (x * 2).tanh()")
    assert [(one.kind, one.setting) for one in lowered.right_when] == [("fallback", "aten.tanh")]
    [fused] = wrong(answer, "flipped = x.flip(0) + y")
    assert [one.setting for one in fused.right_when] == ["inductor.max_fusion_size=1"]


def test_the_steps_end_where_it_goes_wrong(answer: ip.Accuracy) -> None:
    [lowered] = wrong(answer, "h = (x * 2).tanh()")
    verdicts = {step.place: step.verdict for step in lowered.steps}
    assert (verdicts["graph of FX"], verdicts["loop body"], verdicts["kernel"]) == ("right", "wrong", "wrong")
    [coded] = wrong(answer, "return (x + 1).sin() * 3")
    verdicts = {step.place: step.verdict for step in coded.steps}
    assert (verdicts["graph of FX"], verdicts["loop body"], verdicts["kernel"]) == ("right", "right", "wrong")
    assert coded.kernel_line is not None
    assert ".cos()" in coded.kernel_line.text or "store" in coded.kernel_line.text
    text = Path(coded.kernel_line.file).read_text().splitlines()
    assert text[coded.kernel_line.line - 1].strip() == coded.kernel_line.text


def test_right_programs_are_right_and_casts_are_rounding(answer: ip.Accuracy) -> None:
    assert call(answer, "right").verdict == "right"
    rounded = call(answer, "rounded")
    assert rounded.verdict == "rounding"
    assert [value.why for value in rounded.values] == ["elided-cast"]


def test_a_wrong_gradient_names_the_operator_of_the_backward(answer: ip.Accuracy) -> None:
    trained = call(answer, "Trained")
    assert trained.verdict == "wrong"
    assert all(
        value.name.startswith("gradient of first.") for value in trained.values if value.verdict == "wrong"
    )
    [value] = wrong(answer, "elu(self.first(x))")
    graphs = [graph.graph for graph in answer.record.graphs if value in graph.wrong]
    assert ["backward" in name for name in graphs] == [True]


def test_its_json_is_as_it_is_described(answer: ip.Accuracy) -> None:
    data: Any = answer.json
    assert schema_faults("accuracy", data) == []
    assert data["verdict"] == "wrong"
    assert {graph["verdict"] for graph in data["graphs"]} >= {"right", "wrong"}
    keys = {
        "operator", "fx", "node", "buffer", "kernel", "index", "eager", "compiled", "reference", "user_line",
        "kernel_line", "layer", "right_when",
    }  # fmt: skip
    assert all(keys <= set(value) for graph in data["graphs"] for value in graph["wrong"])
    json.dumps(data, allow_nan=False)


def test_its_screen_begins_with_what_is_wrong(answer: ip.Accuracy) -> None:
    text = to_text(answer.document, width=120)
    assert text.startswith("Wrong: ")
    assert "is wrong: aten.softplus (planted.py:" in text
    assert "decomposition, its decomposition computes something else" in text


WRAPPED = """
import torch
from torch._inductor import config
from torch._inductor.codegen.cpp import CppVecOverrides

CppVecOverrides.sin = staticmethod(lambda x: f"{x}.cos()")
config.cpp_wrapper = True
torch.compile(lambda x, w: (x @ w).sin() @ w)(torch.randn(16, 32), torch.randn(32, 32))
"""


def test_a_graph_with_a_wrapper_in_cpp_is_followed_launch_by_launch(tmp_path: Path) -> None:
    script = tmp_path / "wrapped.py"
    script.write_text(WRAPPED)
    answer = ip.accuracy(ip.dump(script, out=tmp_path), tries=False)
    assert [(one.layer, one.operator, one.node) for one in answer.record.graphs[0].wrong] == [
        ("codegen", "aten.sin", "op1")
    ]
