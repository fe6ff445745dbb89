"""The members of an archive one after the other, whatever a stranger put in it: nothing is trusted.

A `.tar`, compressed or not, or a `.zip`. Only plain files come out, under names that stay below the folder
they are unpacked to, and never more bytes than the limits allow.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import stat
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, TypeVar, cast

from inductor_probe.errors import UnreadableError

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


@dataclass(frozen=True, slots=True)
class Member:
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
        """Whether this is a folder; its name ends with a slash."""
        return self.content is None and self.refused is None


@contextmanager
def readable(archive: Path) -> Iterator[None]:
    """Turn whatever reading `archive` and its members raises into a sentence.

    Raises:
        UnreadableError: it is no archive, is damaged, or unpacks to more than the limits allow.
    """
    try:
        yield
    except _TooMuchError as error:
        raise UnreadableError(
            f"{archive} {error}", "unpack it by hand if you trust it, and name the folder"
        ) from None
    except _DAMAGE as error:
        raise UnreadableError(
            f"cannot read {archive}: {error or 'it is damaged'}",
            "it was cut short, or is no .tar or .zip; make or fetch it again",
        ) from error


def members(archive: Path) -> Iterator[Member]:
    """Yield the members of `archive` in their order; to be used below `readable`."""
    with archive.open("rb") as file:
        if zipfile.is_zipfile(file):
            yield from _zip_members(file)
        else:
            yield from _tar_members(file, archive.stat().st_size)


def safe_place(name: str) -> PurePosixPath | None:
    """Return `name` as a path that stays below a folder, None when it would leave it or cannot be made."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name or not parts:
        return None
    if any(len(part.encode(errors="surrogateescape")) > _MAX_NAME for part in parts):
        return None
    return PurePosixPath(*parts)


class _TooMuchError(Exception):
    """The archive holds more than anything should; the message says what."""


def _tar_members(file: BinaryIO, size: int) -> Iterator[Member]:
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
                    yield Member(info.name + "/", 0, info.mtime)
                elif not info.isreg() or info.issparse():
                    yield Member(info.name, 0, info.mtime, refused="it is not a plain file")
                else:
                    yield Member(info.name, info.size, info.mtime, tar.extractfile(info))
        if limited.last != bytes(tarfile.BLOCKSIZE):  # tarfile takes a damaged header for the end
            raise tarfile.ReadError("it ends in the middle, or is damaged there")


@contextmanager
def _decompressed(file: BinaryIO) -> Iterator[IO[bytes]]:
    file.seek(0)
    start = file.read(6)
    file.seek(0)
    for magic, open_it in _COMPRESSED:
        if start.startswith(magic):
            with open_it(file, "rb") as stream:
                yield cast(IO[bytes], stream)
            return
    yield file


def _zip_members(file: BinaryIO) -> Iterator[Member]:
    with zipfile.ZipFile(cast(IO[bytes], _Directory(file))) as archive:
        for number, info in enumerate(archive.infolist(), start=1):
            _count(number)
            mode = info.external_attr >> 16
            if info.is_dir():
                yield Member(info.filename, 0, 0)
            elif stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                yield Member(info.filename, 0, 0, refused="it is not a plain file")
            elif info.flag_bits & 1:
                yield Member(info.filename, 0, 0, refused="it has a password")
            else:
                if info.file_size > max(SMALL, MAX_RATIO * info.compress_size):
                    raise _TooMuchError(f"unpacks to more than {MAX_RATIO} times its size")
                with archive.open(info) as content:
                    yield Member(info.filename, info.file_size, _zip_time(info), content)


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
            raise tarfile.ReadError("a member lies before where it should")
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
