"""Writes what a reader of dumps wants of an archive, and keeps account of what it leaves out."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO

from inductor_probe.discovery.archive_members import MAX_RATIO, SMALL, Member, members, readable, safe_place
from inductor_probe.discovery.dump_files import is_read, is_read_folder
from inductor_probe.errors import ProbeError, UnreadableError
from inductor_probe.model.span import Problem

MAX_FILES = 20_000
MAX_FILE = 128 << 20
"""Bytes of a member: a log may have as many; other files of a dump are not read when they are as large."""
MAX_UNPACKED = 512 << 20
"""Bytes on the disk that one archive may take, or all those that one command meets. The largest corpus of
dumps that we know unpacks to 60 MB."""
_MAX_PARTS = 40
"""Folders in folders, of which `walk` looks 24 deep: a short name can make thousands."""
_BLOCK = 4096
_CHUNK = 1 << 20
_SHOWN_PROBLEMS = 5
_SHOWN_NAME = 80
_BY_HAND = "unpack what you need of it by hand, and name the folder"


def no_room(archive: Path, folder: Path, error: OSError) -> ProbeError:
    """Return the error for an archive that cannot be unpacked to `folder`."""
    return ProbeError(
        f"cannot unpack {archive} to {folder}: {error.strerror or error}",
        "set XDG_CACHE_HOME to a folder with room, or unpack it by hand",
    )


class ArchiveWriter:
    """Writes the members of an archive that are worth it. `problems` tells of the rest.

    `size` is what they take on the disk, in bytes: blocks of files, and one for each of them and each folder.
    """

    def __init__(self, archive: Path, folder: Path) -> None:
        self.archive = archive
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
            UnreadableError: nothing of a dump comes before that. ProbeError: there is no room.
        """
        self.folder.mkdir()
        try:
            with readable(self.archive):
                for member in members(self.archive):
                    self._add(member)
        except UnreadableError as error:
            if not self._count:
                raise
            self.problems.append(Problem(f"{error.message}; what comes before that was read"))
        if self._refused > _SHOWN_PROBLEMS:
            self.problems.append(
                Problem(f"{self.archive}: {self._refused - _SHOWN_PROBLEMS} more were left out")
            )

    def _add(self, member: Member) -> None:
        if not (is_read_folder(member.name) if member.is_folder else is_read(member.name)):
            return
        place = safe_place(member.name)
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
                why = (
                    f"{MAX_RATIO} times its size" if self._most < MAX_UNPACKED else f"{self._most >> 20} MiB"
                )
                raise UnreadableError(f"{self.archive} unpacks to more than {why}", _BY_HAND)
            self._write(place, member)

    def _write(self, place: PurePosixPath, member: Member) -> None:
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
            raise no_room(self.archive, self.folder, error) from error
        try:
            with file:
                self._copy(member.content, file)
        except BaseException:
            target.unlink()  # half a file would be taken for a whole one
            self._count -= 1
            raise
        with suppress(OSError, ValueError, OverflowError):
            os.utime(target, (member.mtime, member.mtime))  # runs and graphs are at times ordered by it

    def _copy(self, content: IO[bytes], file: IO[bytes]) -> None:
        while data := content.read(_CHUNK):
            try:
                file.write(data)
            except OSError as error:
                raise no_room(self.archive, self.folder, error) from error

    def _refuse(self, name: str, why: str) -> None:
        self._refused += 1
        if self._refused <= _SHOWN_PROBLEMS:
            self.problems.append(Problem(f"{self.archive}: {name} was left out: {why}"))
