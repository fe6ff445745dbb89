"""The fixture `inductor_probe` in a pytest of its own, with scripts that torch compiles."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

TESTS = """
import pytest

def test_one_kernel(inductor_probe):
    answer = inductor_probe.expect("mirror.py", args=["plain"], kernels=1, no_copy=True, no_graph_break=True)
    assert answer.ok

def test_vectorised(inductor_probe):
    inductor_probe.expect("mirror.py", args=["plain"], kernels=1, vectorised="op0")

def test_it_was_dumped_once(inductor_probe):
    run = inductor_probe.dump("mirror.py", args=["plain"])
    inductor_probe.expect(run.graphs[0], kernels=1)
    assert len(list(inductor_probe.folder.glob("torch_compile_debug/run_*"))) == 1

def test_a_name_that_is_not_there(inductor_probe):
    inductor_probe.expect("mirror.py", args=["plain"], fused="op0+op9")

def test_a_script_that_fails(inductor_probe):
    inductor_probe.expect("mirror.py", args=["fail"], kernels=1)
"""
SCRIPT = """
import sys
import torch

assert sys.argv[1:] == ["plain"], "what it prints is shown"


@torch.compile
def mirrored(image):
    return image.flip(-1) + 1


mirrored(torch.zeros(1, 3, 64, 64, dtype=torch.uint8))
"""
# An environment that was made before the package had an entry point for pytest: its plugin has to be named.
LOADED = any(each.name == "inductor_probe" for each in entry_points(group="pytest11"))
NAMED = () if LOADED else ("-p", "inductor_probe.pytest_plugin")
PLUGIN = (*NAMED, "-p", "no:cacheprovider", "-p", "no:randomly")


def ran(folder: Path, *words: str, python: str = "import sys, pytest; ") -> subprocess.CompletedProcess[str]:
    """Run pytest in a process of its own, as in a project that has nothing but these tests."""
    program = f"{python}sys.exit(pytest.main({[*PLUGIN, *words]!r}))"
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=dict(os.environ), capture_output=True, text=True,
        check=False,
    )  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "mirror.py").write_text(SCRIPT)
    (tmp_path / "test_mirror.py").write_text(TESTS)
    return tmp_path


@pytest.mark.compiles
def test_a_failed_expectation_shows_the_decision_and_its_cause(project: Path) -> None:
    answer = ran(project, "-q")
    assert answer.returncode == 1
    assert "2 passed" in answer.stdout
    assert "3 failed" in answer.stdout
    assert (
        "--vectorised op0 FAILS: cpp_fused_add_flip_0 has a loop nest that is not vectorised" in answer.stdout
    )
    assert "op0 is scalar: along x1" in answer.stdout
    assert "enable_tiling_heuristics" in answer.stdout
    assert "or operator op9" in answer.stdout
    assert "mirror.py did not end well:" in answer.stdout
    assert "AssertionError: what it prints is shown" in answer.stdout


def test_where_torch_is_not_installed_what_is_to_be_compiled_is_skipped(project: Path) -> None:
    answer = ran(project, "-q", "-rs", python="import sys, pytest; sys.modules['torch'] = None; ")
    assert answer.returncode == 0, answer.stdout
    assert "5 skipped" in answer.stdout
    assert "torch is not installed, and mirror.py is to be compiled" in answer.stdout


def test_a_run_without_the_fixture_imports_neither_torch_nor_the_package(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(
        "import sys\n\ndef test_other():\n"
        "    assert 'torch' not in sys.modules\n"
        "    assert not [name for name in sys.modules if name.startswith('inductor_probe.api')]\n"
    )
    assert ran(tmp_path, "-q").returncode == 0


def test_the_package_names_the_plugin_to_pytest() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\ninductor_probe = "inductor_probe.pytest_plugin"' in text
