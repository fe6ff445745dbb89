"""What is recorded of fusion is what torch tested, also by a torch whose rules were changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import inductor_probe as ip
from inductor_probe.model.decision import Decision
from inductor_probe.report.terminal import to_text
from tests.capture.test_changed_torch import CPP, WITHOUT_KERNELS, torch_with

pytestmark = [pytest.mark.compiles, pytest.mark.takes(20)]
SCHEDULER = "_inductor/scheduler.py"
CHOICES = "_inductor/choices.py"
TWO_READERS = f"""{WITHOUT_KERNELS}
torch.compile(lambda x: (x + 1, x * 2))(torch.ones(64, 64))
"""
ONE_MIRRORED = f"""{WITHOUT_KERNELS}
torch.compile(lambda x, y: (x + y, x * y.flip(0)))(torch.ones(64, 64), torch.ones(64, 64))
"""
AND_PRODUCT_BETWEEN = f"""{TWO_READERS}
torch.compile(lambda x: (x + 1, torch.mm(torch.mm(x, x), x) * x))(torch.ones(64, 64))
"""
ROWS_AND_COLUMNS = """import torch
torch._inductor.config.triton.mix_order_reduction = True
torch.compile(lambda x: (x.sum(-1), x.sum(0)))(torch.zeros(128, 32, device="cuda"))
"""
Recorded = tuple[Decision, str]


def decided(folder: Path, monkeypatch: pytest.MonkeyPatch, file: str, edit: tuple[str, str]) -> Recorded:
    """Return what a changed torch decided about two nodes in the end, and what `probe fusion` prints."""
    torch_with(folder / "changed", {file: [edit]})
    monkeypatch.setenv("PYTHONPATH", str(folder / "changed"), prepend=os.pathsep)
    [found] = recorded(folder, TWO_READERS)
    return found


def recorded(folder: Path, script: str, **dumped: Any) -> list[Recorded]:
    """Return the same of each graph of a script, by the torch that is imported."""
    (folder / "script.py").write_text(script)
    return [of_graph(graph) for graph in ip.dump(folder / "script.py", out=folder, **dumped).graphs]


def of_graph(graph: ip.Graph) -> Recorded:
    """Return what was decided of the first and the last node of a graph, and what `probe fusion` prints."""
    assert graph.compiled.decisions is not None
    names = {"op0", [leaf.name for top in graph.compiled.post for leaf in top.leaves()][-1]}
    [decision] = [
        one
        for one in graph.compiled.decisions.decisions
        if one.kind == "fusion"
        and not one.speculative
        and {name for side in one.subjects for name in side} == names
    ]
    return decision, to_text(graph.fusion(*sorted(names)).document)


@pytest.fixture(scope="module")
def limits(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recorded]:
    """Return what was decided by a torch with three changed limits: in each graph, one is reached."""
    folder = tmp_path_factory.mktemp("limits")
    edits = {
        CPP: [("> config.cpp.max_horizontal_fusion_size", "> 1")],
        SCHEDULER: [
            ("return proximity_score > 64", "return proximity_score > 1"),
            ("size_thres = 5 * 2**20", "size_thres = 7 * 2**10"),
        ],
    }
    torch_with(folder / "changed", edits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder / "changed"), prepend=os.pathsep)
        backend, scheduler = recorded(folder, AND_PRODUCT_BETWEEN)
        [literal] = recorded(folder, ROWS_AND_COLUMNS, target="h100")
    return {"backend": backend, "scheduler": scheduler, "literal": literal}


@pytest.mark.usefixtures("warm_here")
def test_the_buffers_named_for_shared_bytes_are_those_that_torch_counted(tmp_path: Path) -> None:
    """Of 41 steps 8 named a buffer that both use, at other indices: torch counts none of its bytes."""
    [(decision, text)] = recorded(tmp_path, ONE_MIRRORED)
    assert decision.cause == "common-buffer"
    assert (decision.operand("buffers"), decision.operand("shared_bytes")) == (("arg0_1",), 64 * 64 * 4)
    assert "both use arg0_1; torch counts 16 KiB as shared" in " ".join(text.split())


def test_a_changed_limit_of_the_backend_is_the_one_that_is_recorded(limits: dict[str, Recorded]) -> None:
    decision, text = limits["backend"]
    assert decision.cause == "horizontal-size-limit"
    assert (decision.operand("nodes"), decision.operand("limit")) == (2, 1)
    assert "the C++ backend fuses at most 1 that way" in text


def test_a_changed_limit_of_the_choices_is_the_one_that_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decision, text = decided(tmp_path, monkeypatch, CHOICES, ("> config.max_fusion_size", "> 1"))
    assert decision.cause == "fusion-size-limit"
    assert (decision.operand("nodes"), decision.operand("limit")) == (2, 1)
    assert "they would be 2 nodes, and a fused node has at most 1" in " ".join(text.split())


def test_a_changed_limit_of_the_scheduler_is_the_one_that_is_recorded(limits: dict[str, Recorded]) -> None:
    decision, text = limits["scheduler"]
    assert decision.cause == "distant-nodes"
    assert decision.operand("limit") == 1
    assert decision.operand("distance") in (2, 3)
    assert "nodes apart, more than 1" in text


def test_a_test_of_the_backend_that_is_unknown_is_shown_as_torch_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = "return self._can_fuse_horizontal_impl(node1, node2)\n"
    edit = (before, f"if len(node1.get_nodes()) < 77: return False\n        {before}")
    decision, text = decided(tmp_path, monkeypatch, CPP, edit)
    assert (decision.outcome, decision.cause) == ("refused", "unlisted-test")
    assert "op0 and op1 are not fused: len(node1.get_nodes()) < 77 is true (1, 77)" in text


def test_a_test_of_the_scheduler_that_says_nothing_is_seen_from_the_second_time_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = "        why = WhyNoFuse(node1, node2)\n\n        if node1.is_template() and self.get_backend("
    edit = (before, f"        if len(node2.get_nodes()) < 78:\n            return False\n{before}")
    decision, text = decided(tmp_path, monkeypatch, SCHEDULER, edit)
    assert (decision.outcome, decision.cause, decision.times) == ("refused", "unlisted-test", 2)
    assert "op0 and op1 are not fused: len(node2.get_nodes()) < 78 is true (1, 78)" in text


def test_a_changed_literal_of_mixed_reductions_is_the_one_that_is_recorded(
    limits: dict[str, Recorded],
) -> None:
    decision, text = limits["literal"]
    assert decision.cause == "mix-order-limit"
    assert (decision.operand("value"), decision.operand("limit")) == (4096, 7168)
    assert "only from 7,168 elements on, and these are 4,096" in " ".join(text.split())
