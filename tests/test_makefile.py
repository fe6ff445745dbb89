"""What the Makefile says when the machine lacks something: one sentence with the package to install."""

from __future__ import annotations

import os
import subprocess

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
