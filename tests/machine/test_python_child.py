from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from inductor_probe.errors import RunFailedError
from inductor_probe.machine.python_child import ask_torch, python_command


def test_the_file_runs_as_a_program(tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text("import sys\nprint(__name__, __file__ == sys.argv[0], sys.argv[1:])\nsys.exit(3)\n")
    ran = subprocess.run(
        python_command(file, "--json", "x y"), cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert ran.stdout == "__main__ True ['--json', 'x y']\n"
    assert ran.returncode == 3


def test_nothing_beside_it_is_imported(tmp_path: Path) -> None:
    """A stranger's dump may hold a `json.py`, and a bench file imports json."""
    dump, empty = tmp_path / "dump", tmp_path / "empty"
    dump.mkdir()
    empty.mkdir()
    for name in ("json", "runpy", "ctypes", "argparse"):
        (dump / f"{name}.py").write_text("raise SystemExit('taken in')\n")
    (dump / "f.py").write_text("import argparse, ctypes, json\nprint(json.dumps([1]))\n")
    for cwd in (dump, empty):
        ran = subprocess.run(
            python_command(dump / "f.py"), cwd=cwd, check=False, capture_output=True, text=True
        )
        assert (ran.stdout, ran.stderr) == ("[1]\n", "")


def test_a_crash_shows_the_files_own_lines(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("def f():\n    raise ValueError('out of luck')\nf()\n")
    ran = subprocess.run(python_command(tmp_path / "f.py"), check=False, capture_output=True, text=True)
    assert f'File "{tmp_path / "f.py"}", line 2, in f' in ran.stderr
    assert ran.stderr.endswith("ValueError: out of luck\n")


def test_pythonpath_stays_where_python_adds_no_folder(tmp_path: Path) -> None:
    """With PYTHONSAFEPATH there is no folder of the file on the path to take away."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "operators_of_mine.py").write_text("name = 'mine'\n")
    (tmp_path / "f.py").write_text("import operators_of_mine; print(operators_of_mine.name)")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "mine")}
    for safe in ({}, {"PYTHONSAFEPATH": "1"}):
        ran = subprocess.run(
            python_command(tmp_path / "f.py"),
            env={**environment, **safe},
            check=False,
            capture_output=True,
            text=True,
        )
        assert ran.stdout == "mine\n", ran.stderr


def test_what_a_child_says_of_itself_comes_before_its_answer(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(
        "print('progress: config 1 of 2', flush=True)\nprint('noise')\nprint('{\"a\": 1}')\n"
    )
    said = list[str]()
    assert ask_torch(tmp_path / "child.py", progress=said.append) == {"a": 1}
    assert said == ["config 1 of 2"]
    assert ask_torch(tmp_path / "child.py") == {"a": 1}, "nobody has to listen"


def test_a_child_that_does_not_answer_in_time_is_ended(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text("import time\nprint('progress: begun', flush=True)\ntime.sleep(600)\n")
    with pytest.raises(RunFailedError, match="timed out"):
        ask_torch(tmp_path / "child.py", timeout_s=1.0)


def test_the_last_line_that_a_child_wrote_says_why_it_failed(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text("raise SystemExit('no such kernel')\n")
    with pytest.raises(RunFailedError, match="cannot query torch: no such kernel"):
        ask_torch(tmp_path / "child.py")
