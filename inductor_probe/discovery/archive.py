"""A dump in an archive: the files that a reader knows, unpacked to a private folder, kept for next time.

    <cache>/inductor_probe/archives/<archive's name>-<key>/archive.json     what it came from
                                                          /files/...        what is read of it

The record is written last, and holds a digest of each file: what is no longer as it was unpacked, or was
interrupted, is unpacked anew. The key stands for path, size and time of the archive: a changed one is
unpacked anew. `<cache>` is XDG_CACHE_HOME or ~/.cache. The folder that was used longest ago goes first when
all are too big.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from inductor_probe.discovery.archive_writer import MAX_UNPACKED, ArchiveWriter, no_room
from inductor_probe.discovery.dump_files import ARCHIVES
from inductor_probe.errors import UnreadableError
from inductor_probe.model.span import Problem

_RECORD = "archive.json"
_FILES = "files"
_CHUNK = 1 << 20
_ABANDONED_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class Unpacked:
    """An archive's dump files on disk, and what of it was left out or could not be read.

    `size`: bytes on the disk.
    """

    archive: Path
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
        about = archive.stat()
    except OSError as error:
        raise UnreadableError(f"cannot read {archive}: {error.strerror or error}") from error
    key = hashlib.sha256(os.fsencode(f"{archive}\n{about.st_size}\n{about.st_mtime_ns}")).hexdigest()[:16]
    stem = re.sub(r"[^\w.-]", "_", _stem(archive), flags=re.ASCII)[:40]
    place = archives_folder() / f"{stem}-{key}"
    if (known := _known(place)) and _is_as_unpacked(place):
        return known
    try:
        _discard(place)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".", suffix=".tmp", dir=place.parent))
    except OSError as error:
        raise no_room(archive, place.parent, error) from error
    try:
        writer = ArchiveWriter(archive, staging / _FILES)
        writer.write_all()
        record = {
            "archive": str(archive),
            "bytes": writer.size,
            "files": _digests(staging),
            "problems": [problem.message for problem in writer.problems],
        }
        (staging / _RECORD).write_text(json.dumps(record), encoding="utf-8")
        if not place.exists():
            staging.rename(place)
    except OSError as error:
        if not place.is_dir():  # else another process was first, which is as well
            raise no_room(archive, place.parent, error) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    _cut_down(place)
    return Unpacked(archive, place / _FILES, tuple(writer.problems), writer.size)


def archive_of(path: Path) -> Path | None:
    """Return the archive that the file or folder `path` was unpacked from; None for any other path."""
    folder = archives_folder()
    if not path.is_relative_to(folder) or path == folder:
        return None
    known = _known(folder / path.relative_to(folder).parts[0])
    return known.archive if known else None


def archives_folder() -> Path:
    """Return the folder that archives are unpacked to."""
    cache = os.environ.get("XDG_CACHE_HOME") or ""
    base = Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache"
    return base.resolve() / "inductor_probe" / "archives"


def _stem(archive: Path) -> str:
    ends = [end for end in ARCHIVES if archive.name.lower().endswith(end)]
    return archive.name[: -len(max(ends, key=len))] if ends else archive.name


def _known(place: Path) -> Unpacked | None:
    """Return what was unpacked to `place` before, and remember that it was used."""
    record = place / _RECORD
    try:
        data = json.loads(record.read_text(encoding="utf-8"))
        os.utime(record)
        problems = tuple(map(Problem, data["problems"]))
        return Unpacked(Path(data["archive"]), place / _FILES, problems, int(data["bytes"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_as_unpacked(place: Path) -> bool:
    """Tell whether the files below `place` are those that the record names, each as it was written."""
    try:
        recorded = json.loads((place / _RECORD).read_text(encoding="utf-8"))["files"]
        return bool(_digests(place) == recorded)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _digests(place: Path) -> dict[str, str | None]:
    """Return the digest of everything below the folder of files, by its place there."""
    files = place / _FILES
    return {path.relative_to(files).as_posix(): _digest(path) for path in files.rglob("*")}


def _digest(path: Path) -> str | None:
    """Return the SHA-256 of a file, an empty text for a folder, None for a link, a pipe and the like."""
    about = path.lstat()
    if stat.S_ISDIR(about.st_mode):
        return ""
    if not stat.S_ISREG(about.st_mode):
        return None
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while data := file.read(_CHUNK):
            digest.update(data)
    return digest.hexdigest()


def _discard(place: Path) -> None:
    """Take away what cannot be used, under another name first: nobody takes the rest for the whole."""
    if os.path.lexists(place):
        away = place.with_name(f".{place.name}.{os.getpid()}.tmp")
        place.rename(away)
        shutil.rmtree(away, ignore_errors=True)


def _cut_down(newest: Path) -> None:
    """Remove what was used longest ago while all folders together are too big, and what a kill left."""
    kept = []
    for folder in newest.parent.iterdir():
        try:
            if folder.name.startswith("."):
                if time.time() - folder.stat().st_mtime > _ABANDONED_S:
                    shutil.rmtree(folder, ignore_errors=True)
                continue
            record = folder / _RECORD
            size = int(json.loads(record.read_text(encoding="utf-8"))["bytes"])
            kept.append((record.stat().st_mtime, size, folder))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # another process is at it
    total = 0
    for _, size, folder in sorted(kept, reverse=True):
        total += size
        if total > MAX_UNPACKED and folder != newest:
            shutil.rmtree(folder, ignore_errors=True)
