"""A dump in an archive: the files that a reader knows, unpacked to a private folder, kept for next time.

    <cache>/inductor_probe/archives/<archive's name>-<key>/archive.json     what it came from
                                                          /files/...        what is read of it

The record is written last, and holds a digest of each file: what is no longer as it was unpacked, or was
interrupted, is unpacked anew. The key stands for path, size and time of the archive: a changed one is
unpacked anew. `<cache>` is XDG_CACHE_HOME or ~/.cache. The folder that was used longest ago goes first when
all are too big.

Whatever a stranger put in a `.tar`, compressed or not, or a `.zip`: only plain files come out, under names
that stay below the folder they are unpacked to, and never more bytes than the limits allow.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import hashlib
import json
import lzma
import os
import re
import shutil
import stat
import tarfile
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, TypeVar, cast

from msgspec import Struct

from inductor_probe.discovery.dump_files import ARCHIVES, is_read, is_read_folder
from inductor_probe.discovery.package import is_package, is_read_of_package, lay_out
from inductor_probe.errors import ProbeError, UnreadableError
from inductor_probe.model.codec import from_json, to_json
from inductor_probe.model.span import Problem

MAX_ENTRIES = 100_000
MAX_STREAM = 512 << 20
"""Bytes of a tar that are decompressed at most, those of members that nobody wants included."""
MAX_RATIO = 300
"""Dumps shrink to a tenth, alike ones to a hundredth. What shrinks more than this is made to fill a disk."""
SMALL = 64 << 20
"""Bytes below which no ratio is suspicious."""
_LARGEST_HEADER = 1 << 16
"""Bytes of one header of a tar: a path, and attributes, which take twenty times that in memory."""
_LARGEST_DIRECTORY = 16 << 20
"""Bytes of the list at the end of a zip, 50 and more for each member, which Python reads all at once."""
_MAX_NAME = 255
_Header = TypeVar("_Header")
_COMPRESSED = ((b"\x1f\x8b", gzip.open), (b"\xfd7zXZ\x00", lzma.open), (b"BZh", bz2.open))
_DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    ValueError,  # numbers and names in headers
    OverflowError,
    NotImplementedError,  # a way to compress that Python does not know
    RuntimeError,  # a zip with a password
    MemoryError,  # a header that claims to be huge
)


class _Member(Struct, frozen=True):
    """A plain file of an archive, `content` open until the next one is asked for.

    `content` is None for a folder, and for what is left out: then `refused` says why.
    """

    name: str
    size: int
    mtime: float
    content: IO[bytes] | None = None
    refused: str | None = None

    @property
    def is_folder(self) -> bool:
        return self.content is None and self.refused is None


def _members(archive: Path) -> Iterator[_Member]:
    """Yield the members of `archive` in their order."""
    with archive.open("rb") as file:
        if zipfile.is_zipfile(file):
            yield from _zip_members(file)
        else:
            yield from _tar_members(file, archive.stat().st_size)


def _safe_path(name: str) -> PurePosixPath | None:
    """Return `name` as a path that stays below a folder, None when it would leave it or cannot be made."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name or not parts:
        return None
    if any(len(part.encode(errors="surrogateescape")) > _MAX_NAME for part in parts):
        return None
    return PurePosixPath(*parts)


class _TooMuchError(Exception):
    """The archive holds more than anything should; the message says what."""


def _tar_members(file: BinaryIO, size: int) -> Iterator[_Member]:
    with _decompressed(file) as stream:
        limited = _Limited(stream, max(SMALL, MAX_RATIO * size))
        # Opening it reads the first header.
        with limited.header(lambda: tarfile.open(fileobj=cast(IO[bytes], limited), mode="r:")) as tar:
            number = 0
            while (info := limited.header(tar.next)) is not None:
                if len(tar.pax_headers) > _MAX_NAME:
                    raise _TooMuchError("has too many attributes in its headers")
                tar.members = []  # type: ignore[attr-defined]  # it would keep them all
                _count(number := number + 1)
                if info.isdir():
                    yield _Member(info.name + "/", 0, info.mtime)
                elif not info.isreg() or info.issparse():
                    yield _Member(info.name, 0, info.mtime, refused="it is not a plain file")
                else:
                    yield _Member(info.name, info.size, info.mtime, tar.extractfile(info))
        if limited.last != bytes(tarfile.BLOCKSIZE):  # tarfile takes a damaged header for the end
            raise tarfile.ReadError("it ends in the middle, or is damaged there")


@contextmanager
def _decompressed(file: BinaryIO) -> Iterator[IO[bytes]]:
    file.seek(0)
    start = file.read(6)
    file.seek(0)
    decompress = next((reader for magic, reader in _COMPRESSED if start.startswith(magic)), None)
    if decompress is None:
        yield file
        return
    with decompress(file, "rb") as stream:
        yield cast(IO[bytes], stream)


def _zip_members(file: BinaryIO) -> Iterator[_Member]:
    with zipfile.ZipFile(cast(IO[bytes], _Directory(file))) as archive:
        for number, info in enumerate(archive.infolist(), start=1):
            _count(number)
            mode = info.external_attr >> 16
            if info.is_dir():
                yield _Member(info.filename, 0, 0)
            elif stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                yield _Member(info.filename, 0, 0, refused="it is not a plain file")
            elif info.flag_bits & 1:
                yield _Member(info.filename, 0, 0, refused="it has a password")
            else:
                if info.file_size > max(SMALL, MAX_RATIO * info.compress_size):
                    raise _TooMuchError(f"unpacks to more than {MAX_RATIO} times its size")
                with archive.open(info) as content:
                    yield _Member(info.filename, info.file_size, _zip_time(info), content)


def _zip_time(info: zipfile.ZipInfo) -> float:
    """Return when the file was written, as far as zip says; 0 when it says nonsense."""
    try:
        return time.mktime((*info.date_time, 0, 0, -1))
    except (ValueError, OverflowError):
        return 0


def _count(number: int) -> None:
    if number > MAX_ENTRIES:
        raise _TooMuchError(f"has more than {MAX_ENTRIES:,} entries")


class _Limited:
    """A stream, as tarfile uses one, that ends with an exception where the limit is reached.

    `last` is what was read last. It is read forward only. Seeking forward reads, so that skipping over a huge
    member counts as well.
    """

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stream = stream
        self._limit = min(limit, MAX_STREAM)
        self._why = f"{MAX_RATIO} times its size" if limit < MAX_STREAM else f"{MAX_STREAM >> 20} MiB"
        self._at = 0
        self._in_header = False
        self.last = b""

    def header(self, read: Callable[[], _Header]) -> _Header:
        """Return what `read` reads, which is a header and no content: it asks for no large pieces."""
        self._in_header = True
        try:
            return read()
        finally:
            self._in_header = False

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int) -> int:
        if offset < self._at:
            raise tarfile.ReadError("a member begins before the end of the one above it")
        while self._at < offset and self.read(min(offset - self._at, _LARGEST_HEADER)):
            pass
        return self._at

    def read(self, size: int) -> bytes:
        if self._in_header and size > _LARGEST_HEADER:
            raise _TooMuchError(f"has a header of more than {_LARGEST_HEADER >> 10} KiB")
        data = self._stream.read(size)
        self._at += len(data)
        self.last = data
        if self._at > self._limit:
            raise _TooMuchError(f"unpacks to more than {self._why}")
        return data


class _Directory:
    """A zip, as zipfile uses it, that ends with an exception where its list of members is too large."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > _LARGEST_DIRECTORY:
            raise _TooMuchError(f"lists its members in more than {_LARGEST_DIRECTORY >> 20} MiB")
        return self._file.read(size)


MAX_FILES = 20_000
MAX_FILE = 128 << 20
"""Bytes of a member: a log may have as many; other files of a dump are not read when they are as large."""
MAX_UNPACKED = 512 << 20
"""Bytes on the disk that one archive may take, or all those that one command meets. The largest corpus of
dumps that we know unpacks to 60 MB."""
_MAX_PARTS = 40
"""Folders in folders, of which `walk` looks 24 deep: a short name can make thousands."""
_BLOCK = 4096
_SHOWN_PROBLEMS = 5
_SHOWN_NAME = 80
_BY_HAND = "if you trust it, unpack what you need of it by hand, and name the folder"


def _no_room(archive: Path, folder: Path, error: OSError) -> ProbeError:
    """Return the error for an archive that cannot be unpacked to `folder`."""
    return ProbeError(
        f"cannot unpack {archive} to {folder}: {error.strerror or error}",
        "set XDG_CACHE_HOME to a folder with room, or unpack it by hand",
    )


@contextmanager
def _damage_named(archive: Path) -> Iterator[None]:
    """Raise UnreadableError for what goes wrong in an archive: it is damaged, or beyond the limits."""
    try:
        yield
    except _TooMuchError as error:
        raise UnreadableError(f"{archive} {error}", _BY_HAND) from error
    except _DAMAGE as error:
        raise UnreadableError(
            f"cannot read {archive}: {error or 'it is damaged'}",
            "it was cut short, or is not a package: aoti_compile_and_package writes a zip"
            if is_package(archive)
            else "it was cut short, or is not a .tar or .zip; make or fetch it again",
        ) from error


def members_of(archive: Path, wanted: Callable[[str], int]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of members, nothing unpacked: `wanted` says how many bytes at most.

    Raises:
        UnreadableError: it is no archive, or damaged, or beyond the limits.
    """
    with _damage_named(archive):
        for member in _members(archive):
            if member.content is not None and (most := wanted(member.name)):
                yield member.name, member.content.read(most)


class _ArchiveWriter:
    """Writes the members of an archive that are worth it. `problems` names the rest.

    `size` is what they take on the disk, in bytes: blocks of files, and one for each of them and each folder.
    """

    def __init__(self, archive: Path, folder: Path) -> None:
        self.archive = archive
        self._is_read = is_read_of_package if is_package(archive) else is_read
        self.folder = folder
        self.size = 0
        self._most = min(MAX_UNPACKED, max(SMALL, MAX_RATIO * archive.stat().st_size))
        self.problems: list[Problem] = []
        self._count = 0
        self._refused = 0
        self._folders = {PurePosixPath()}

    def write_all(self) -> None:
        """Write them all. What comes before a damaged part, or before a limit, is kept.

        Raises:
            UnreadableError: it is no archive, or nothing of a dump comes before a damaged part or a limit.
            ProbeError: there is no room.
        """
        self.folder.mkdir()
        problem: UnreadableError | None = None
        try:
            with _damage_named(self.archive):
                for member in _members(self.archive):
                    self._add(member)
        except UnreadableError as error:
            problem = error
        if problem and not self._count:
            raise problem
        if problem:
            self.problems.append(Problem(f"{problem.message}; what comes before that was read"))
        if self._refused > _SHOWN_PROBLEMS:
            rest = self._refused - _SHOWN_PROBLEMS
            self.problems.append(Problem(f"{self.archive}: {rest} more were left out"))

    def _add(self, member: _Member) -> None:
        if not (is_read_folder(member.name) if member.is_folder else self._is_read(member.name)):
            return
        place = _safe_path(member.name)
        if member.refused or place is None:
            self._refuse(member.name, member.refused or "its name leads out of the folder")
        elif len(place.parts) > _MAX_PARTS:
            self._refuse(member.name, f"it lies more than {_MAX_PARTS} folders deep")
        elif member.size > MAX_FILE:
            self._refuse(member.name, f"it is larger than {MAX_FILE >> 20} MiB")
        elif self._count >= MAX_FILES:
            raise UnreadableError(f"{self.archive} holds more than {MAX_FILES:,} files of dumps", _BY_HAND)
        else:
            folders = {*place.parents, *([place] if member.is_folder else [])} - self._folders
            self._folders |= folders
            blocks = 0 if member.is_folder else 1 + -(-member.size // _BLOCK)
            self.size += _BLOCK * (len(folders) + blocks)
            if self.size > self._most:
                limit = f"{self._most >> 20} MiB"
                limit = limit if self._most == MAX_UNPACKED else f"{MAX_RATIO} times its size"
                raise UnreadableError(f"{self.archive} unpacks to more than {limit}", _BY_HAND)
            self._write(place, member)

    def _write(self, place: PurePosixPath, member: _Member) -> None:
        target = self.folder / place
        try:
            folder = target if member.content is None else target.parent
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._count += 1
            if member.content is None:
                return
            target.unlink(missing_ok=True)  # of two members of one name the later one counts
            file = target.open("xb")
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            self._refuse(member.name, "it is a file and a folder")
            return
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                self._refuse(member.name[:_SHOWN_NAME], "its name is too long for this file system")
                return
            raise _no_room(self.archive, self.folder, error) from error
        try:
            with file:
                while data := member.content.read(_CHUNK):
                    try:
                        file.write(data)
                    except OSError as error:
                        raise _no_room(self.archive, self.folder, error) from error
        except BaseException:
            target.unlink()  # half a file would be taken for a whole one
            self._count -= 1
            raise
        with suppress(OSError, ValueError, OverflowError):
            os.utime(target, (member.mtime, member.mtime))  # runs and graphs are at times ordered by it

    def _refuse(self, name: str, why: str) -> None:
        self._refused += 1
        if self._refused <= _SHOWN_PROBLEMS:
            self.problems.append(Problem(f"{self.archive}: {name} was left out: {why}"))


_RECORD = "archive.json"
_FILES = "files"
_CHUNK = 1 << 20
_ABANDONED_S = 24 * 3600


class Unpacked(Struct, frozen=True):
    """An archive's dump files on disk (of `size` bytes), and what was left out or could not be read."""

    folder: Path
    problems: tuple[Problem, ...]
    size: int


def unpack(archive: Path) -> Unpacked:
    """Return `archive` unpacked: from last time when neither it nor what was unpacked has changed since.

    What comes before a damaged part is kept.

    Raises:
        UnreadableError: it is no archive, nothing of a dump can be read in it, or it is beyond all limits.
        ProbeError: there is no room to unpack it to.
    """
    archive = archive.resolve()
    try:
        status = archive.stat()
    except OSError as error:
        raise UnreadableError(f"cannot read {archive}: {error.strerror or error}") from error
    key = hashlib.sha256(os.fsencode(f"{archive}\n{status.st_size}\n{status.st_mtime_ns}")).hexdigest()[:16]
    endings = [ending for ending in ARCHIVES if archive.name.lower().endswith(ending)]
    stem = archive.name[: -len(max(endings, key=len))] if endings else archive.name
    stem = re.sub(r"[^\w.-]", "_", stem, flags=re.ASCII)[:40]
    place = archives_folder() / f"{stem}-{key}"
    if (earlier := _read_record(place)) and earlier.is_as_unpacked(place):
        return earlier.unpacked(place)
    try:
        if os.path.lexists(place):  # under another name first: nobody takes what is left for all of it
            removed = place.with_name(f".{place.name}.{os.getpid()}.tmp")
            place.rename(removed)
            shutil.rmtree(removed, ignore_errors=True)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".", suffix=".tmp", dir=place.parent))
    except OSError as error:
        raise _no_room(archive, place.parent, error) from error
    try:
        writer = _ArchiveWriter(archive, staging / _FILES)
        writer.write_all()
        if is_package(archive):
            lay_out(staging / _FILES, archive)
        problems = tuple(problem.message for problem in writer.problems)
        record = _Record(archive, writer.size, _digests(staging), problems)
        (staging / _RECORD).write_text(json.dumps(to_json(record)), encoding="utf-8")
        if not place.exists():
            staging.rename(place)
    except OSError as error:
        if not place.is_dir():  # else another process was first, which is as well
            raise _no_room(archive, place.parent, error) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    _cut_down(place)
    return record.unpacked(place)


def archive_of(path: Path) -> Path | None:
    """Return the archive that the file or folder `path` was unpacked from; None for any other path."""
    folder = archives_folder()
    if not path.is_relative_to(folder) or path == folder:
        return None
    record = _read_record(folder / path.relative_to(folder).parts[0])
    return record.archive if record else None


def archives_folder() -> Path:
    """Return the folder that archives are unpacked to."""
    cache = os.environ.get("XDG_CACHE_HOME") or ""
    base = Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache"
    return base.resolve() / "inductor_probe" / "archives"


class _Record(Struct, frozen=True):
    """What `archive.json` says. `files`: the digest of each file by its path; see `_digest`."""

    archive: Path
    bytes: int
    files: Mapping[str, str | None]
    problems: tuple[str, ...]

    def unpacked(self, place: Path) -> Unpacked:
        return Unpacked(place / _FILES, tuple(map(Problem, self.problems)), self.bytes)

    def is_as_unpacked(self, place: Path) -> bool:
        try:
            return _digests(place) == self.files
        except OSError:
            return False


def _read_record(place: Path) -> _Record | None:
    """Read the record of what was unpacked to `place`, and remember that it was used."""
    path = place / _RECORD
    try:
        record = from_json(_Record, json.loads(path.read_text(encoding="utf-8")))
        os.utime(path)
    except (OSError, ValueError):
        return None
    return record


def _digests(place: Path) -> dict[str, str | None]:
    """Return the digest of everything below the folder of files, by its place there."""
    files = place / _FILES
    return {path.relative_to(files).as_posix(): _digest(path) for path in files.rglob("*")}


def _digest(path: Path) -> str | None:
    """Return the SHA-256 of a file, an empty text for a folder, None for a link, a pipe and the like."""
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode):
        return ""
    if not stat.S_ISREG(mode):
        return None
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while data := file.read(_CHUNK):
            digest.update(data)
    return digest.hexdigest()


def _cut_down(newest: Path) -> None:
    """Remove what was used longest ago while all folders together are too big, and what a kill left."""
    used = []
    for folder in newest.parent.iterdir():
        try:
            if folder.name.startswith("."):
                if time.time() - folder.stat().st_mtime > _ABANDONED_S:
                    shutil.rmtree(folder, ignore_errors=True)
                continue
            record = folder / _RECORD
            size = from_json(_Record, json.loads(record.read_text(encoding="utf-8"))).bytes
            used.append((record.stat().st_mtime, size, folder))
        except (OSError, ValueError):
            continue  # another process is at it
    total = 0
    for _, size, folder in sorted(used, reverse=True):
        total += size
        if total > MAX_UNPACKED and folder != newest:
            shutil.rmtree(folder, ignore_errors=True)
