"""Dumps in archives: unpacked once, found again, within bounds whatever a stranger put in them."""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import lzma
import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_probe.discovery import archive
from inductor_probe.discovery.archive import archive_of, archives_folder, unpack
from inductor_probe.discovery.discover import find
from inductor_probe.discovery.walk import everything_below
from inductor_probe.errors import NotFoundError, ProbeError, UnreadableError
from inductor_probe.reader.debug_dir import read_graph
from tests.dumps import FLIP, graph_in, run_in

FILE = f"d/{graph_in(FLIP).name}/output_code.py"


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def tar_of(path: Path, members: dict[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]  # the mode is one of several
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def unpacked_files(path: Path) -> set[str]:
    folder = unpack(path).folder
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    "name",
    [
        "d.tar",
        "d.tar.gz",
        "d.TGZ",
        "d.tar.xz",
        "d.txz",
        "d.tar.bz2",
        "d.tbz2",
        "d.zip",
        "bug 1234 (copy).tar.gz",
    ],
)
@pytest.mark.parametrize("inside", ["torch_compile_debug", "renamed", ""])
def test_a_dump_in_every_kind_of_archive(tmp_path: Path, name: str, inside: str) -> None:
    work = tmp_path / "work"
    shutil.copytree(run_in(FLIP), work / inside / "run")
    kind = {"tar": "tar", "gz": "gztar", "tgz": "gztar", "xz": "xztar", "txz": "xztar", "zip": "zip"}
    made = shutil.make_archive(
        str(tmp_path / "made"), kind.get(name.lower().rpartition(".")[2], "bztar"), work
    )
    target = Path(made).rename(tmp_path / name)
    found = find(name, tmp_path)
    (graph,) = found.run.graphs
    assert not found.run.problems
    assert not read_graph(graph).problems
    assert archive_of(graph.path) == target


def test_a_path_leads_on_into_an_archive(tmp_path: Path) -> None:
    for name in ("flip", "other"):
        shutil.copytree(run_in(FLIP), tmp_path / "work" / name / "run")
    shutil.make_archive(str(tmp_path / "both"), "gztar", tmp_path / "work")
    with pytest.raises(NotFoundError, match="holds 2 dumps: name one") as caught:
        find("both.tar.gz", tmp_path)
    assert caught.value.hint == f"for example {tmp_path}/both.tar.gz/flip; there is flip, other"
    assert len(find("both.tar.gz/flip", tmp_path).run.graphs) == 1
    assert find("both.tar.gz/flip/run/torchinductor", tmp_path).run.name == "run"
    with pytest.raises(NotFoundError, match="holds no dump at flop"):
        find("both.tar.gz/flop", tmp_path)


def test_a_lone_graph_and_an_empty_run(tmp_path: Path) -> None:
    shutil.make_archive(str(tmp_path / "graph"), "zip", graph_in(FLIP).parent, graph_in(FLIP).name)
    found = find("graph.zip", tmp_path)
    assert found.graph is not None
    assert found.graph.name == graph_in(FLIP).name
    (tmp_path / "w" / "run_2026_01_01_10_00_00_000000-pid_1" / "torchinductor").mkdir(parents=True)
    shutil.make_archive(str(tmp_path / "empty"), "gztar", tmp_path / "w")
    assert find("empty.tar.gz", tmp_path).run.graphs == ()


def test_it_is_unpacked_once_and_again_when_it_changes(tmp_path: Path) -> None:
    path = tar_of(tmp_path / "d.tar.gz", {FILE: b"first"})
    first = unpack(path).folder
    unpacked = first.stat().st_ino
    assert unpack(path).folder == first
    assert first.stat().st_ino == unpacked
    tar_of(path, {FILE: b"second, longer"})
    assert (unpack(path).folder / FILE).read_bytes() == b"second, longer"


def test_only_files_that_a_reader_knows_are_unpacked(tmp_path: Path) -> None:
    strange = [
        "d/x.so",
        "d/evil.py",
        "d/__init__.py",
        "d/conftest.py",
        "d/sitecustomize.py",
        "d/a.pth",
        "d/c.pkl",
    ]
    path = tar_of(tmp_path / "d.tar.gz", dict.fromkeys([*strange, FILE, "d/stderr.txt"], b"x"))
    assert unpacked_files(path) == {FILE, "d/stderr.txt"}


@pytest.mark.parametrize(
    "name",
    ["/etc/output_code.py", "../output_code.py", "a/../../output_code.py", "a" * 300 + "/output_code.py"],
)
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_names_that_lead_out_are_left_out_and_named(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / f"d.{kind}"
    if kind == "tar":
        tar_of(path, {name: b"x", FILE: b"y"}, "w")
    else:
        with zipfile.ZipFile(path, "w") as made:
            made.writestr(name, "x")
            made.writestr(FILE, "y")
    assert unpacked_files(path) == {FILE}
    (problem,) = unpack(path).problems
    assert "was left out: its name leads out of the folder" in problem.message
    assert not (tmp_path / "output_code.py").exists()


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE]
)
def test_links_and_devices_are_left_out_and_named(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "d.tar"
    with tarfile.open(path, "w") as tar:
        info = tarfile.TarInfo("g/output_code.py")
        info.type, info.linkname = kind, "/etc/passwd"
        tar.addfile(info)
        info = tarfile.TarInfo("g/ir_pre_fusion.txt")
        tar.addfile(info)
    assert unpacked_files(path) == {"g/ir_pre_fusion.txt"}
    assert "not a plain file" in unpack(path).problems[0].message


def test_a_link_to_a_folder_cannot_lead_a_later_file_out(tmp_path: Path) -> None:
    path = tmp_path / "d.tar"
    (tmp_path / "outside").mkdir()
    with tarfile.open(path, "w") as tar:
        info = tarfile.TarInfo("g__0_1.0")
        info.type, info.linkname = tarfile.SYMTYPE, str(tmp_path / "outside")
        tar.addfile(info)
        info = tarfile.TarInfo("g__0_1.0/output_code.py")
        info.size = 1
        tar.addfile(info, io.BytesIO(b"x"))
    assert unpacked_files(path) == {"g__0_1.0/output_code.py"}
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_zip_link_and_a_file_that_is_also_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "d.zip"
    with zipfile.ZipFile(path, "w") as made:
        link = zipfile.ZipInfo("a/output_code.py")
        link.external_attr = 0o120777 << 16
        made.writestr(link, "/etc/passwd")
        made.writestr("b/output_code.py", "x")
        made.writestr("b/output_code.py/output_code.py", "x")
    assert unpacked_files(path) == {"b/output_code.py"}
    assert len(unpack(path).problems) == 2


@pytest.mark.parametrize("data", [b"", b"hello", bytes(2000), b"PK\x05\x06" + bytes(18), b"\x1f\x8b\x08\x00"])
def test_what_is_no_archive_is_said(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.tar.gz").write_bytes(data)
    with pytest.raises((UnreadableError, NotFoundError)) as caught:
        find("x.tar.gz", tmp_path)
    assert "x.tar.gz" in caught.value.message


def test_a_zip_with_a_password_says_so(tmp_path: Path) -> None:
    if not shutil.which("zip"):
        pytest.skip("no zip command to make one with")
    (tmp_path / "output_code.py").write_text("x")
    subprocess.run(["zip", "-q", "-P", "secret", "d.zip", "output_code.py"], cwd=tmp_path, check=True)
    assert "has a password" in unpack(tmp_path / "d.zip").problems[0].message


def test_no_room_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ProbeError, match="cannot unpack") as caught:
        unpack(tar_of(tmp_path / "d.tar", {FILE: b"x"}, "w"))
    assert caught.value.hint is not None
    assert "XDG_CACHE_HOME" in caught.value.hint


_ON_DISK = 4 * 4096
"""What an archive of one small file takes: two folders, the block of the file, and one for its entry."""


@pytest.mark.parametrize("damage", ["removed", "edited", "added", "a link", "cut record", "no record"])
def test_the_cache_of_unpacked_archives_is_checked(tmp_path: Path, damage: str) -> None:
    path = tar_of(tmp_path / "d.tar.gz", {FILE: b"first", f"e/{FILE}": b"other"})
    folder = unpack(path).folder
    record = folder.parent / "archive.json"
    match damage:
        case "removed":
            (folder / FILE).unlink()
        case "edited":
            about = (folder / FILE).stat()
            (folder / FILE).write_bytes(b"FIRST")
            os.utime(folder / FILE, ns=(about.st_atime_ns, about.st_mtime_ns))
        case "added":
            (folder / FILE).with_name("ir_post_fusion.txt").touch()
        case "a link":
            (folder / FILE).unlink()
            (folder / FILE).symlink_to(folder / "e" / FILE)
        case "cut record":
            record.write_text(record.read_text()[:-20])
        case "no record":
            record.unlink()
    assert unpacked_files(path) == {FILE, f"e/{FILE}"}
    assert (unpack(path).folder / FILE).read_bytes() == b"first"
    assert [entry.name for entry in archives_folder().iterdir()] == [folder.parent.name]


def test_what_was_used_longest_ago_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_UNPACKED", 2 * _ON_DISK)
    folders = []
    for number in range(3):
        folders.append(unpack(tar_of(tmp_path / f"{number}.tar", {FILE: b"x" * 100}, "w")).folder)
        os.utime(folders[-1].parent / "archive.json", (number, number))
        (archives_folder() / ".left.tmp").mkdir(exist_ok=True)
        os.utime(archives_folder() / ".left.tmp", (0, 0))
    assert [folder.exists() for folder in folders] == [False, True, True]
    unpack(tar_of(tmp_path / "last.tar", {FILE: b"x" * 100}, "w"))
    assert not (archives_folder() / ".left.tmp").exists()


def test_the_cache_is_private(tmp_path: Path) -> None:
    folder = unpack(tar_of(tmp_path / "d.tar", {FILE: b"x"}, "w")).folder
    assert archives_folder().stat().st_mode & 0o077 == 0
    assert folder.parent.stat().st_mode & 0o077 == 0
    assert archive_of(archives_folder()) is None
    assert archive_of(tmp_path) is None


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
@pytest.mark.parametrize(
    "open_it",
    [gzip.open, functools.partial(bz2.open, compresslevel=1), functools.partial(lzma.open, preset=0)],
    ids=["gzip", "bz2", "lzma"],
)
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
