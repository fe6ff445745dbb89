"""Archives that are damaged, or made to fill a disk: bounded, and said in a sentence."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_probe.discovery import archive
from inductor_probe.discovery.archive import unpack
from inductor_probe.discovery.walk import everything_below
from inductor_probe.errors import ProbeError, UnreadableError
from tests.discovery.test_archive import FILE, tar_of, unpacked_files


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def bomb(path: Path, open_it: Callable[..., io.IOBase], name: str) -> Path:
    with open_it(path, "wb") as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
        info = tarfile.TarInfo(name)
        info.size = 200 << 20
        tar.addfile(info, _Zeros())  # type: ignore[arg-type]  # it reads like a file
    return path


class _Zeros:
    def read(self, size: int) -> bytes:
        return bytes(size)


@pytest.mark.parametrize("name", [FILE, "not_of_a_dump.bin"])
@pytest.mark.parametrize("open_it", [gzip.open, bz2.open, lzma.open])
def test_bombs_are_refused_with_a_sentence(
    tmp_path: Path, cache: Path, open_it: Callable[..., io.IOBase], name: str
) -> None:
    path = bomb(tmp_path / "bomb.tar.gz", open_it, name)
    with pytest.raises(UnreadableError, match="unpacks to more than 300 times its size"):
        unpack(path)
    assert sum(file.stat().st_size for file in cache.rglob("*") if file.is_file()) == 0


def test_a_zip_bomb_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(FILE, bytes(100 << 20))
    with pytest.raises(UnreadableError, match="unpacks to more than 300 times its size"):
        unpack(tmp_path / "bomb.zip")


def test_too_many_entries_files_and_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members = {f"{number}/output_code.py": b"xxxx" for number in range(40)}
    monkeypatch.setattr(archive, "MAX_ENTRIES", 20)
    found = unpack(tar_of(tmp_path / "a.tar", members, "w"))
    assert "has more than 20 entries; what comes before that was read" in found.problems[0].message
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    monkeypatch.setattr(archive, "MAX_FILES", 5)
    assert len(unpacked_files(tar_of(tmp_path / "b.tar", members, "w"))) == 5
    monkeypatch.setattr(archive, "MAX_FILES", 500)
    monkeypatch.setattr(archive, "MAX_UNPACKED", 12 * 4096)  # a folder and a file take three
    assert len(unpacked_files(tar_of(tmp_path / "c.tar", members, "w"))) == 4
    monkeypatch.setattr(archive, "MAX_FILE", 3)
    assert unpacked_files(tar_of(tmp_path / "d.tar", members, "w")) == set()


def on_disk(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def test_an_archive_of_63_kb_does_not_fill_8_gb_with_folders(tmp_path: Path, cache: Path) -> None:
    # A name of 2,000 folders takes 8 MB on the disk, and some hundred bytes in an archive.
    with zipfile.ZipFile(tmp_path / "deep.zip", "w", zipfile.ZIP_DEFLATED) as made:
        for number in range(60):
            made.writestr(f"{number}/{'d/' * 1900}{FILE}", b"x")
        made.writestr(FILE, b"x")
    found = unpack(tmp_path / "deep.zip")
    assert "it lies more than 40 folders deep" in found.problems[0].message
    assert on_disk(cache) < 1 << 20
    names = (f"{number}/{'/'.join(str(number) * 9 for _ in range(30))}/{FILE}" for number in range(2000))
    path = tar_of(tmp_path / "wide.tar.gz", dict.fromkeys(names, b"x"))
    assert "unpacks to more than 300 times its size" in sentence_of(path)
    assert on_disk(cache) < 80 << 20


def test_all_members_of_a_zip_together_are_bounded_by_its_size(tmp_path: Path, cache: Path) -> None:
    # Each member shrinks to a thousandth, is small by itself, and there are many of them.
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as made:
        for number in range(30):
            made.writestr(f"{number}/{FILE}", bytes(8 << 20))
    assert "unpacks to more than 300 times its size" in sentence_of(tmp_path / "bomb.zip")
    assert on_disk(cache) < 80 << 20


def test_large_headers_and_lists_of_members_are_not_read(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "pax.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo(FILE)
        info.pax_headers = {f"key{number}": "x" for number in range(20_000)}
        tar.addfile(info)
    assert "has a header of more than 64 KiB" in sentence_of(tmp_path / "pax.tar")
    with zipfile.ZipFile(tmp_path / "list.zip", "w") as made:
        for number in range(300):
            info_of_zip = zipfile.ZipInfo(f"{number}/x")
            info_of_zip.comment = bytes(60_000)
            made.writestr(info_of_zip, b"")
    assert "lists its members in more than 16 MiB" in sentence_of(tmp_path / "list.zip")


def test_a_sparse_member_is_left_out(tmp_path: Path, cache: Path) -> None:
    with (tmp_path / "output_code.py").open("wb") as file:
        file.truncate(1 << 30)
    subprocess.run(["tar", "-cSf", tmp_path / "sparse.tar", "-C", tmp_path, "output_code.py"], check=True)
    assert "output_code.py was left out: it is not a plain file" in sentence_of(tmp_path / "sparse.tar")
    assert on_disk(cache) < 1 << 20


def test_the_archives_below_a_folder_are_bounded_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d").mkdir()
    for number in range(5):
        tar_of(tmp_path / "d" / f"{number}.tar.gz", {f"{number}/{FILE}": b"x"})
    monkeypatch.setattr(archive, "MAX_UNPACKED", 12 * 4096)
    below = everything_below(tmp_path / "d")
    assert len(below.runs) == 3
    assert [problem.message.partition(": ")[2][:13] for problem in below.problems] == ["not unpacked,"] * 2


def sentence_of(path: Path) -> str:
    """What is said of an archive that is damaged: as an error, or as a problem beside what was read."""
    try:
        return " ".join(problem.message for problem in unpack(path).problems)
    except ProbeError as error:
        return error.message


def test_cut_short_at_any_byte_what_comes_before_is_kept(tmp_path: Path) -> None:
    files = {f"{n}/output_code.py": b"x" * 700 for n in range(3)}
    whole = tar_of(tmp_path / "whole.tar", files, "w").read_bytes()
    gzipped = gzip.compress(whole)
    for data, ends, suffix in (
        (whole, range(0, 3 * (512 + 1024), 256), "tar"),
        (gzipped, range(len(gzipped) - 20), "tar.gz"),
    ):
        for end in ends:
            path = tmp_path / f"cut{end}.{suffix}"
            path.write_bytes(data[:end])
            assert str(path) in sentence_of(path), end
    assert unpacked_files(tmp_path / "cut3584.tar") == {"0/output_code.py", "1/output_code.py"}


def test_flipped_bytes_never_do_more_than_a_sentence(tmp_path: Path) -> None:
    whole = tar_of(tmp_path / "whole.tar", {FILE: b"x" * 700}, "w").read_bytes()
    said = set()
    for at in range(0, 600, 5):
        path = tmp_path / f"flip{at}.tar"
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xA5]) + whole[at + 1 :])
        said.add(bool(sentence_of(path)))
    assert said == {True, False}  # flipped content is not noticed, a flipped header is
