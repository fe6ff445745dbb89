"""Formulas as they are shown: kept texts of some fixtures, any width, and JSON.

`PROBE_WRITE_FORMULAS=1 python -m pytest tests/report/test_formula.py` writes the kept texts anew; read the
difference before keeping it.
"""

from __future__ import annotations

import os

import pytest

from inductor_probe.analysis.formula.formula import formula
from inductor_probe.model.codec import to_json
from inductor_probe.reader.ir import parse_ir
from inductor_probe.report.document import FormulaBlock
from inductor_probe.report.formula import formula_lines
from inductor_probe.report.terminal import to_text
from tests.analysis.bodies import all_bodies, formula_text
from tests.conftest import DUMPS, FIXTURES

KEPT = FIXTURES / "formulas"
CASES = (
    "torch-2.1.2-cpu/hflip_cl",
    "torch-2.11.0-cuda/layernorm_grad",
    "torch-2.13.0-cpu/aa_separable_cl",
    "torch-2.13.0-cpu/dynamic_shapes",
    "torch-2.13.0-cpu/hflip_cf",
    "torch-2.13.0-cpu/mlp_train",
    "torch-2.13.0-cpu/multi_output_no_fuse",
)


def formulas_of(case: str, width: int) -> str:
    """Return the formulas of all graphs of a run, in the order of its nodes."""
    pages = []
    for path in sorted((DUMPS / case).glob("run_*/torchinductor/*/ir_pre_fusion.txt")):
        for top in parse_ir(path.read_text(), path).nodes:
            for node in top.leaves():
                if node.body is not None:
                    pages.append(f"{path.parent.name} {node.name}\n{formula_text(formula(node), width)}\n")
    return "\n".join(pages)


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("case", CASES)
def test_formulas_are_as_kept(case: str, width: int) -> None:
    kept = KEPT / f"{case.replace('/', '_')}_{width}.txt"
    text = formulas_of(case, width)
    if os.environ.get("PROBE_WRITE_FORMULAS"):
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(text)
    assert text == kept.read_text()


def test_lines_fit_the_terminal() -> None:
    for where, node in all_bodies():
        for width in (80, 140):
            long = [line for line in formula_lines(formula(node), width) if len(line) > width]
            assert not long, where


def test_a_terminal_shows_what_the_text_says() -> None:
    _, node = all_bodies()[0]
    assert to_text([FormulaBlock(formula(node), 0)], 60).splitlines() == formula_lines(formula(node), 60)


def test_json_says_all_that_the_text_says() -> None:
    for _, node in all_bodies():
        found = to_json(formula(node))
        assert isinstance(found, dict)
        text = " ".join(formula_text(formula(node)).split())
        for statement in found["statements"]:  # type: ignore[union-attr]
            assert statement["record"] in {"Definition", "Store", "BoundsCheck", "Effect"}
            assert statement["lines"]
            assert statement["record"] == "BoundsCheck" or statement["value"] in text
