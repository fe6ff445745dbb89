"""The programs with which torch tests the compiler: built once, and found by the next dump."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inductor_probe.capture.isa_checks import checks_folder, isa_checks_kept

CHECK = 'extern "C" void __avx_chk_kernel() {}\n'
KERNEL = 'extern "C" void kernel(const float* in_ptr0) {}\n'


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    return checks_folder()


def built(cache: Path, name: str, text: str) -> None:
    """Put a program into a cache as torch does."""
    (cache / name[1:3]).mkdir(parents=True, exist_ok=True)
    (cache / name[1:3] / f"{name}.cpp").write_text(text)
    (cache / name[1:3] / f"{name}.so").write_bytes(text.encode())


def files(folder: Path) -> set[str]:
    """Return the names of the files below a folder."""
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_checks_are_kept_and_kernels_are_not(kept: Path, tmp_path: Path) -> None:
    with isa_checks_kept(tmp_path / "first"):
        built(tmp_path / "first", "cab", CHECK)
        built(tmp_path / "first", "cde", KERNEL)
    assert files(kept) == {"cab.cpp", "cab.so"}
    assert kept.stat().st_mode & 0o077 == 0
    with isa_checks_kept(tmp_path / "second"):
        assert files(tmp_path / "second") == {"cab.cpp", "cab.so"}


def test_a_check_that_did_not_compile_is_not_kept(kept: Path, tmp_path: Path) -> None:
    with isa_checks_kept(tmp_path / "first"):
        built(tmp_path / "first", "cab", CHECK)
        (tmp_path / "first" / "ab" / "cab.so").unlink()
    assert files(kept) == set()


def test_a_folder_that_others_may_write_is_left_alone(kept: Path, tmp_path: Path) -> None:
    built(kept, "cab", CHECK)
    kept.chmod(0o777)
    with isa_checks_kept(tmp_path / "first"):
        assert files(tmp_path / "first") == set()
        built(tmp_path / "first", "cxy", CHECK)
    assert files(kept) == {"cab.cpp", "cab.so"}


def test_a_folder_that_cannot_be_made_ends_nothing(kept: Path, tmp_path: Path) -> None:
    kept.parent.mkdir(parents=True)
    kept.write_text("a file is in the way")
    with isa_checks_kept(tmp_path / "first"):
        built(tmp_path / "first", "cab", CHECK)
    assert kept.read_text() == "a file is in the way"


ASKS = """
import sys
from torch._inductor import cpu_vec_isa
print(cpu_vec_isa.pick_vec_isa())
"""


@pytest.mark.compiles
def test_torch_finds_what_was_kept_and_compiles_none_of_it(kept: Path, tmp_path: Path) -> None:
    log, compiler = tmp_path / "log", tmp_path / "g++"
    compiler.write_text(f'#!/bin/sh\ncase "$*" in *.cpp*) echo "$*" >> {log};; esac\nexec g++ "$@"\n')
    compiler.chmod(0o755)
    answers, calls = [], []
    for number in range(2):
        cache = tmp_path / f"inductor{number}"
        log.write_text("")
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache), "CXX": str(compiler)}
        with isa_checks_kept(cache):
            ran = subprocess.run(
                [sys.executable, "-c", ASKS], env=environment, capture_output=True, text=True, check=True
            )
        answers.append(ran.stdout)
        calls.append(len(log.read_text().splitlines()))
    assert answers[0] == answers[1]
    assert calls[0] == len(files(kept)) / 2 > 0
    assert calls[1] == 0
