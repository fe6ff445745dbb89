from __future__ import annotations

import json
from pathlib import Path

import pytest

from inductor_probe.errors import ExitCode
from inductor_probe.store.samples import samples_text
from tests.conftest import Probe
from tests.store.test_samples import PROCESS


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / "output_code_bench.json"
    path.write_text(samples_text([PROCESS] * 3, 0.01))
    return path


def test_kept_samples_are_judged_without_torch(probe: Probe, kept: Path) -> None:
    ran = probe("verdict", kept, PYTHONPROFILEIMPORTTIME="1")
    assert ran.status == ExitCode.OK, ran.err
    assert ran.out.splitlines()[0] == "k_v2 takes 2.00x as long as k (2.00 to 2.00x)."
    assert "numpy" in ran.err
    assert "torch" not in ran.err


def test_a_folder_and_another_margin(probe: Probe, kept: Path) -> None:
    ran = probe("verdict", kept.parent, "--margin", "90%", "--json")
    assert json.loads(ran.out)["result"]["margin"] == 0.9
    assert json.loads(ran.out)["result"]["comparisons"][0]["verdict"] == "SLOWER"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--margin", "none"], "invalid share"),
        (["--margin", "100%"], "invalid share"),
    ],
)
def test_a_margin_that_is_none(probe: Probe, kept: Path, arguments: list[str], said: str) -> None:
    ran = probe("verdict", kept, *arguments)
    assert (ran.status, ran.out) == (ExitCode.FAILED, "")
    assert said in ran.err


def test_a_file_that_is_not_there_or_something_else(probe: Probe, tmp_path: Path) -> None:
    assert "does not exist" in probe("verdict", tmp_path / "no.json").err
    other = tmp_path / "other.json"
    other.write_text("{}")
    ran = probe("verdict", other)
    assert ran.status == ExitCode.FAILED
    assert "is not what probe bench-kernel writes" in ran.err


@pytest.mark.parametrize("budget", ["0", "soon", "-1s", "10 x"])
def test_a_budget_that_is_none(probe: Probe, budget: str) -> None:
    ran = probe("bench-kernel", f"--budget={budget}")
    assert ran.status == ExitCode.FAILED
    assert "(examples: 500ms, 10s, 2m)" in ran.err


def test_details_show_what_the_plain_report_folds(probe: Probe, kept: Path) -> None:
    plain, details = probe("verdict", kept).out, probe("verdict", kept, "--details").out
    assert "what the ratios rest on" not in plain
    assert "what the ratios rest on" in details
    assert len(plain.splitlines()) < len(details.splitlines())
    markdown = probe("verdict", kept, "--format", "markdown").out
    assert "<details><summary>what the ratios rest on</summary>" in markdown
