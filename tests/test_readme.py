"""The README's commands, run in order in one empty folder, and its Python, with real compiles."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

README = (REPOSITORY / "README.md").read_text()
BIN = Path(sys.executable).parent
# `make test` is what runs this test. `make demo` has a test of its own below.
ELSEWHERE = {"make demo", "make test"}


def commands() -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder with the project's scenarios beside, as in a checkout."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "scenarios").symlink_to(REPOSITORY / "scenarios")
    return folder


def test_the_readme_shows_commands() -> None:
    assert set(commands()) >= ELSEWHERE
    assert len(commands()) > 10


@pytest.mark.compiles
@pytest.mark.parametrize("command", [command for command in commands() if command not in ELSEWHERE])
def test_a_command_of_the_readme_runs(folder: Path, command: str) -> None:
    ran = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout


@pytest.mark.compiles
def test_the_python_of_the_readme_runs(folder: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    ran = subprocess.run(
        [sys.executable, "-c", f"{code}\nprint(run.graphs[0].layouts('buf0'))"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "buf0  channels_last" in ran.stdout


def test_pictures_of_the_readme_are_there() -> None:
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", README):
        assert (REPOSITORY / picture).stat().st_size > 1000


@pytest.mark.compiles
def test_make_demo_ends_by_saying_what_to_try_next(tmp_path: Path) -> None:
    demo = [
        "make",
        "--no-print-directory",
        "demo",
        f"DEMO={tmp_path}",
        "VENV=" + str(BIN.parent),
    ]
    ran = subprocess.run(demo, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    for part in ("channels_last", "contiguous in runs of 3", "cpp_fused_flip_0", "What to try next"):
        assert part in ran.stdout
    assert list(tmp_path.rglob("output_code_bench.py"))
