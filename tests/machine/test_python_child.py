from __future__ import annotations

import subprocess
from pathlib import Path

from inductor_probe.machine.python_child import python_command


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
