"""Writes what a reader of dumps wants of an archive, and keeps account of what it leaves out."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import IO

from inductor_probe.discovery.archive_members import Member, members, readable, safe_place
from inductor_probe.discovery.dump_files import is_read, is_read_folder
from inductor_probe.errors import ProbeError, UnreadableError
from inductor_probe.model.span import Problem

MAX_FILES = 50_000
MAX_FILE = 256 << 20
MAX_UNPACKED = 1 << 30
"""Bytes that are written for one archive at most."""
_CHUNK = 1 << 20
_SHOWN_PROBLEMS = 5
_BY_HAND = "unpack what you need of it by hand, and name the folder"


def no_room(archive: Path, folder: Path, error: OSError) -> ProbeError:
    """Return the error for an archive that cannot be unpacked to `folder`."""
    return ProbeError(
        f"cannot unpack {archive} to {folder}: {error.strerror or error}",
        "set XDG_CACHE_HOME to a folder with room, or unpack it by hand",
    )


class ArchiveWriter:
    """Writes the members of an archive that are worth it. `problems` tells of the rest; `size` in bytes."""

    def __init__(self, archive: Path, folder: Path) -> None:
        self.archive = archive
        self.folder = folder
        self.size = 0
        self.problems: list[Problem] = []
        self._count = 0
        self._refused = 0

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
        elif member.size > MAX_FILE:
            self._refuse(member.name, f"it is larger than {MAX_FILE >> 20} MiB")
        elif self._count >= MAX_FILES:
            raise UnreadableError(f"{self.archive} holds more than {MAX_FILES:,} files of dumps", _BY_HAND)
        elif self.size + member.size > MAX_UNPACKED:
            raise UnreadableError(
                f"{self.archive} unpacks to more than {MAX_UNPACKED >> 30} GiB of dumps", _BY_HAND
            )
        else:
            self._write(self.folder / place, member)

    def _write(self, target: Path, member: Member) -> None:
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
            self.size += len(data)
            try:
                file.write(data)
            except OSError as error:
                raise no_room(self.archive, self.folder, error) from error

    def _refuse(self, name: str, why: str) -> None:
        self._refused += 1
        if self._refused <= _SHOWN_PROBLEMS:
            self.problems.append(Problem(f"{self.archive}: {name} was left out: {why}"))
