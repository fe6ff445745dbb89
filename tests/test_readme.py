"""The README's commands, run in order in one empty folder, and its Python, with real compiles."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.documents import BIN, Command, Reader, check, commands_of, follower
from tests.fork_server import ForkServer

pytestmark = pytest.mark.usefixtures("warm")

README = REPOSITORY / "README.md"
# `make test` is what runs this test. `make demo` has a test of its own below.
ELSEWHERE = {"make demo", "make test"}
COMMANDS = commands_of(README)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Reader:
    """A reader in an empty folder with the project's scenarios beside, as in a checkout."""
    base = tmp_path_factory.mktemp("readme")
    return follower(base / "here", base / "state", {}, fork_server)


def test_the_readme_shows_commands() -> None:
    assert {command.text for command in COMMANDS} >= ELSEWHERE
    assert len(COMMANDS) > 10


@pytest.mark.compiles
@pytest.mark.parametrize("command", [each for each in COMMANDS if each.text not in ELSEWHERE], ids=str)
def test_a_command_of_the_readme_runs(reader: Reader, command: Command) -> None:
    ran = reader.follow(command)
    check(command, ran)
    assert ran.stdout


@pytest.mark.compiles
def test_the_python_of_the_readme_runs(reader: Reader) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    ran = reader.run([sys.executable, "-c", f"{code}\nprint(run.graphs[0].layouts('buf0'))"])
    assert ran.returncode == 0, ran.stderr
    assert "buf0  channels_last" in ran.stdout


def test_pictures_of_the_readme_are_there() -> None:
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", README.read_text()):
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
    environment = {name: value for name, value in os.environ.items() if name != "TORCHINDUCTOR_VEC_ISA_OK"}
    ran = subprocess.run(demo, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    for part in ("channels_last", "contiguous in runs of 3", "cpp_fused_flip_0", "What to try next"):
        assert part in ran.stdout
    assert list(tmp_path.rglob("output_code_bench.py"))
