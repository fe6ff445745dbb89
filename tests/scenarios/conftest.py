"""Scenario scripts as modules: their folder is on the path when they are loaded, as when Python runs them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SCRIPTS = sorted(path.stem for path in SCENARIOS.glob("check_*.py"))


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCENARIOS))
    spec = importlib.util.spec_from_file_location(name, SCENARIOS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def cases_on(device: str) -> list[tuple[str, str]]:
    """Every script's cases for `device`."""
    with pytest.MonkeyPatch.context() as patch:
        scenarios = {script: load(script, patch).scenario for script in SCRIPTS}
    return [
        (script, case)
        for script, scenario in scenarios.items()
        for case in scenario.cases
        if scenario.case(case)["device"] == device
    ]


@pytest.fixture
def aa(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load("check_interpolate_bilinear_aa", monkeypatch)


@pytest.fixture(params=["check_hflip", "check_vflip"])
def flip(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load(request.param, monkeypatch)
