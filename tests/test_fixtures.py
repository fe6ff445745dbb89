"""The fixtures are what torch prints, not what somebody once typed."""

from __future__ import annotations

import filecmp
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.conftest import DUMPS, FIXTURES, REPOSITORY

PROGRAMS = DUMPS / f"torch-{version('torch').partition('+')[0]}-cpu-programs"


@pytest.mark.compiles
@pytest.mark.skipif(not PROGRAMS.is_dir(), reason=f"no fixtures of this torch: {PROGRAMS.name}")
def test_fixtures_of_the_installed_torch_are_what_it_prints(tmp_path: Path) -> None:
    names = ["low_precision"]
    command = [sys.executable, str(FIXTURES / "make_dumps.py"), "--out", str(tmp_path), *names]
    subprocess.run(command, check=True, cwd=REPOSITORY, env=None)
    for name in names:
        stored = sorted(path.relative_to(PROGRAMS) for path in (PROGRAMS / name).rglob("*") if path.is_file())
        made = sorted(path.relative_to(tmp_path) for path in (tmp_path / name).rglob("*") if path.is_file())
        assert made == stored
        _, different, unreadable = filecmp.cmpfiles(PROGRAMS, tmp_path, map(str, stored), shallow=False)
        assert (different, unreadable) == ([], [])
