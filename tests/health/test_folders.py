from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from inductor_probe.health.examine import folder_diagnostics, folder_size
from inductor_probe.model.health import Diagnostic, TorchCaches, TorchSetup
from tests.health.words import remedy, text

CACHES = TorchCaches(
    tempfile.gettempdir(), disabled=False, fx_graph=True, autograd=True, autotune=True, remote=()
)


def read_only(tmp_path: Path) -> Path:
    """A folder that nobody may write to: root may write to any but those of the kernel."""
    if os.geteuid() == 0:
        return Path("/proc/sys/kernel")
    (tmp_path / "shut").mkdir(mode=0o500)
    return tmp_path / "shut"


def by_use(here: Path, environment: dict[str, str], caches: TorchCaches = CACHES) -> dict[str, Diagnostic]:
    found = folder_diagnostics(TorchSetup(version="2.13", caches=caches), here, environment)
    return {str(dict(each.facts)["use"]): each for each in found}


def test_folders_that_can_be_written_tell_their_free_space(tmp_path: Path) -> None:
    found = by_use(tmp_path, {"XDG_STATE_HOME": str(tmp_path / "not" / "yet")})
    assert list(found) == ["dumps", "temporary", "caches", "record"]
    assert all(int(str(dict(each.facts)["free_bytes"])) > 0 for each in found.values())
    assert "(to be made)" in text(found["record"])
    assert list(tmp_path.iterdir()) == []  # nothing is left behind


def test_a_folder_that_cannot_be_written_is_needed_and_has_a_remedy(tmp_path: Path) -> None:
    shut = read_only(tmp_path)
    found = by_use(shut, {"HOME": str(tmp_path)})
    assert found["dumps"].level == "error"
    assert f"cannot be written in {shut}" in text(found["dumps"])
    assert "--out" in str(remedy(found["dumps"]))
    named = by_use(tmp_path, {"TORCH_COMPILE_DEBUG_DIR": str(shut / "below"), "HOME": str(tmp_path)})
    assert named["dumps"].level == "error"


def test_a_record_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    found = by_use(tmp_path, {"XDG_STATE_HOME": str(read_only(tmp_path))})
    assert (found["record"].level, "--trust" in str(remedy(found["record"]))) == ("warning", True)


def test_a_file_in_a_folders_place_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = by_use(tmp_path, {"TORCH_COMPILE_DEBUG_DIR": str(tmp_path / "file")})
    assert found["dumps"].level == "error"


def test_no_temporary_folder_at_all_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    assert by_use(tmp_path, {"HOME": str(tmp_path)})["temporary"].level == "error"


def test_a_cache_is_measured_and_left_where_it_takes_long(tmp_path: Path) -> None:
    for name in ("a/b", "c"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_bytes(b"x" * 100)
    (tmp_path / "c" / "link").symlink_to(tmp_path / "a")
    size, files, whole = folder_size(tmp_path)
    assert (files, whole) == (3, True)
    assert 200 <= size < 400
    assert folder_size(tmp_path / "none") == (0, 0, True)
    assert folder_size(tmp_path, seconds=-1)[2] is False
