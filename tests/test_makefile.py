"""What the Makefile says when the machine lacks something: one sentence with the package to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY


@pytest.mark.parametrize(
    ("lacking", "sentence"),
    [
        ({"PYTHON": "no-such-python"}, "error: no no-such-python: install Python 3.10 or later (Debian: "),
        ({"PYTHON": "false"}, "error: false is older than 3.10: install a later one"),
        (
            {"CXX": "no-such-compiler"},
            "error: no C++ compiler: inductor needs one (Debian: ",
        ),
    ],
)
def test_a_missing_tool_is_named_with_its_package(lacking: dict[str, str], sentence: str) -> None:
    ran = subprocess.run(
        ["make", "check-tools"],
        cwd=REPOSITORY,
        env={**os.environ, **lacking},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith(sentence)


def test_a_release_that_pip_may_not_install_is_named_with_what_lifts_it(tmp_path: Path) -> None:
    held = tmp_path / "constraints.txt"
    held.write_text("# of this machine\ntorch<=2.14.1\nnumpy\n")
    command = [sys.executable, str(REPOSITORY / "benchmarks" / "project" / "releases.py"), "99.0.0"]
    environment = {**os.environ, "PIP_CONSTRAINT": str(held)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr.splitlines()) == (
        1,
        [
            f"error: pip may not install torch 99.0.0 here: {held} says torch<=2.14.1, and pip's "
            "configuration names that file",
            "hint: PIP_CONSTRAINT=/dev/null make compat TORCH=99.0.0 lifts that for this command",
        ],
    )
    assert not (REPOSITORY / "build" / "compat" / "torch-99.0.0").exists()
