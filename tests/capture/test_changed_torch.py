"""Dumps by a torch whose sources were changed: what is recorded is what that torch tested."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

import inductor_probe as ip
from inductor_probe.model.decision import Decision
from inductor_probe.report.terminal import to_text

pytestmark = [pytest.mark.compiles, pytest.mark.takes(20)]
CPP = "_inductor/codegen/cpp.py"
FLIP = """import torch
image = torch.zeros(1, 3, 64, 64, dtype=torch.uint8).contiguous(memory_format=torch.{layout})
torch.compile(lambda x: x.flip(-1))(image)
"""


def torch_with(folder: Path, file: str, edits: Sequence[tuple[str, str]]) -> None:
    """Make a torch in a folder in which a file is changed; all else of it is the installed one, by links."""
    spec = importlib.util.find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    here, there = Path(spec.origin).parent, folder / "torch"
    for part in Path(file).parts:
        there.mkdir(parents=True)
        own = (part, "__pycache__") if part == Path(file).name else (part,)
        for entry in here.iterdir():
            if entry.name not in own:
                (there / entry.name).symlink_to(entry)
        here, there = here / part, there / part
    text = here.read_text()
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    there.write_text(text)


def decided(
    folder: Path, monkeypatch: pytest.MonkeyPatch, edits: Sequence[tuple[str, str]], layout: str
) -> tuple[Decision, str]:
    """Return the decision about the loop nest of a flip by a changed torch, and what `probe why` prints."""
    torch_with(folder / "changed", CPP, edits)
    monkeypatch.setenv("PYTHONPATH", str(folder / "changed"), prepend=os.pathsep)
    (folder / "flip.py").write_text(FLIP.format(layout=layout))
    run = ip.dump(folder / "flip.py", out=folder)
    [graph] = run.graphs
    assert graph.compiled.decisions is not None
    nests = [one for one in graph.compiled.decisions.decisions if one.kind == "vectorisation"]
    return nests[0], to_text(graph.why("op0").document)


def test_a_changed_limit_is_the_one_that_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = (">= stats.OVERHEAD_RATIO_THRESHOLD", ">= 0.37")
    decision, text = decided(tmp_path, monkeypatch, [limit], "contiguous_format")
    assert decision.cause == "non-contiguous-accesses"
    assert (decision.operand("share"), decision.operand("share_limit")) == (0.5, 0.37)
    assert "37%" in text


def test_a_further_leg_of_a_test_is_shown_as_torch_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leg = ("tiling_factor / 4\n", "tiling_factor / 2\n and op_num != 77\n")
    decision, text = decided(tmp_path, monkeypatch, [leg], "channels_last")
    assert decision.cause == "short-inner-range"
    assert decision.operand("range_limit") == pytest.approx(float(str(decision.operand("factor"))) / 2)
    assert "op_num != 77 is true (2, 77)" in text


def test_a_test_that_is_unknown_is_shown_as_torch_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = "quantity_threshold = 35\n"
    edit = (before, f"{before}{' ' * 16}if op_num <= 77: return [], [], stats\n")
    decision, text = decided(tmp_path, monkeypatch, [edit], "channels_last")
    assert (decision.outcome, decision.cause) == ("scalar", "unlisted-test")
    assert "op0 is scalar: op_num <= 77 is true (2, 77)" in text
    assert "cpp.py:" in text
