"""Files are read within bounds, written whole or not at all, and nobody's edit is written over."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import signal
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inductor_probe.errors import NotFoundError, ProbeError, UnreadableError

_DAMAGED = "the file was damaged or replaced; dump the script again"
# Python counts all three as line ends, and so do editors: line numbers must mean one thing.
_LINE_ENDS = re.compile(r"\r\n?")

LARGEST_BYTES = 32 << 20
MOST_LINES = 500_000
"""The largest files of whole networks: 6 MB and 120,000 lines of IR, 1 MB of wrapper. A record of a line
takes up to 0.5 kB, so that what is read of one file stays below a quarter of a GB."""
LARGEST_JSON = 16 << 20
"""The largest provenance file of a network has 0.5 MB."""
MOST_OBJECTS, MOST_VALUES = 1_000_000, 4_000_000
"""Of a JSON text: `{}` may become a record of half a kB, `"ab"` a string of 60 bytes. A file of results with
a thousand rows has 0.4 million objects, and 2 million values."""
_LARGEST_OWN = 1 << 30
_FORMULA, _NUMBER = re.compile(r"'*[=+\-@\t\r]"), re.compile(r"[+-]?\d+\.?\d*(?:[eE][+-]?\d+)?")
LONG_NUMBER = re.compile(r"0[xXoObB][0-9a-fA-F_]{1000,}")
"""Python's parser takes such a number however long it is, and then does not print it (`int_max_str_digits`);
of a decimal one it refuses more than 4,300 digits."""


def read_text(path: Path, *, from_dump: bool = True, largest: int = LARGEST_BYTES) -> str:
    """Return the text of `path`, with lines that end in `\\n` however they ended in the file.

    Args:
        path: the file.
        from_dump: whether it may be a stranger's; False for what the user alone writes, whose size has hardly
            a bound.
        largest: its bytes at most, if it may be a stranger's.

    Raises:
        NotFoundError: there is no such file.
        UnreadableError: no permission, not a regular file (a pipe would keep us waiting for ever), too large,
            or bytes that are not UTF-8 text; says the first bad line.
    """
    data, _ = read_bytes(path, largest if from_dump else _LARGEST_OWN)
    lines = data.count(b"\n") + data.count(b"\r")
    if from_dump and lines > MOST_LINES:
        raise UnreadableError(
            f"cannot read {path}: it has {lines:,} lines, more than the limit of {MOST_LINES:,} for a "
            "file of a dump; if torch wrote it, cut it to the part that matters"
        )
    return decoded(data, path)


def json_of(text: str) -> Any:
    """Return what a JSON text stands for, as `json.loads` does, within bounds of memory.

    Raises:
        ValueError: it is not JSON, nested too deeply, or holds more than any file that probe or torch writes.
    """
    objects = text.count("{") + text.count("[")
    if objects > MOST_OBJECTS:
        raise ValueError(f"it holds {objects:,} objects and lists, more than the limit of {MOST_OBJECTS:,}")
    if (values := objects + text.count(",")) > MOST_VALUES:
        raise ValueError(f"it holds {values:,} values, more than the limit of {MOST_VALUES:,}")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def digest_of(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def object_of(text: str) -> dict[str, Any] | None:
    """Return the object that a text is in JSON; None where it is no such text."""
    try:
        value = json_of(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def cell(value: object) -> object:
    """Return a cell of a CSV table: a text that a spreadsheet would compute gets a quote before it."""
    is_formula = isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value)
    return f"'{value}" if is_formula else value


def text_of_cell(text: str) -> str:
    """Return the text that `cell` was given."""
    return text[1:] if text[:1] == "'" and _FORMULA.match(text) else text


def decoded(data: bytes, path: Path) -> str:
    """Return the text that the bytes of `path` are, with lines that end in `\\n`.

    Raises:
        UnreadableError: they are not UTF-8 text; says the first bad line.
    """
    bad = data.find(b"\0")
    if bad < 0:
        try:
            text = unix_lines(data.decode("utf-8"))
        except UnicodeDecodeError as error:
            bad = error.start
        else:
            return text
    line = data.count(b"\n", 0, bad) + 1
    raise UnreadableError(f"{path}:{line}: not text (byte {bad} of {len(data)})", _DAMAGED)


def unix_lines(text: str) -> str:
    """Return `text` with every line ending in `\\n`."""
    return _LINE_ENDS.sub("\n", text) if "\r" in text else text


def refuse_long_numbers(text: str, path: Path) -> str:
    """Return `text`, which is going to be code.

    Raises:
        UnreadableError: it holds a number that Python reads and does not print; says the line.
    """
    if match := LONG_NUMBER.search(text):
        line = text.count("\n", 0, match.start()) + 1
        raise UnreadableError(f"{path}:{line}: a number of more than 1,000 digits", _DAMAGED)
    return text


def read_bytes(path: Path, largest: int = LARGEST_BYTES) -> tuple[bytes, os.stat_result]:
    """Return the bytes of a regular file of at most `largest` bytes, with its owner and mode.

    Raises:
        NotFoundError, UnreadableError: see `read_text`.
    """
    try:
        # Without waiting for somebody to write into a pipe; what it is, is asked of what was opened.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise UnreadableError(f"cannot read {path}: not a regular file")
            if facts.st_size > largest:
                raise UnreadableError(
                    f"cannot read {path}: it has {facts.st_size:,} bytes, more than the limit of {largest:,} "
                    "for such a file; if torch wrote it, cut it to the part that matters"
                )
            # No more if it grows meanwhile; a buffer of `largest` bytes for each small file takes its time.
            return file.read(min(largest, facts.st_size)), facts
    except FileNotFoundError as error:
        raise NotFoundError(f"{path} does not exist") from error
    except OSError as error:
        raise UnreadableError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:  # a name with a NUL byte
        raise UnreadableError(f"cannot read {path}: {error}") from error


_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_NOT_SUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM)
_WAITS, _WAIT_S = 20, 0.05
"""An editor that saves in place has the file open for some milliseconds."""
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.\w{8}\.tmp")


def seen_from(path: Path, folder: Path) -> Path:
    """Return `path` relative to `folder` where it lies below it; else as it is."""
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def written_under(name: str) -> str | None:
    """Return the name of the file that `write_whole` was writing under the temporary `name`; None for others.

    A temporary file stays where its process was killed: it is a whole file or the beginning of one.
    """
    match = _TEMPORARY.fullmatch(name)
    return match["name"] if match else None


def write_whole(path: Path, text: str) -> None:
    """Write `text` to `path` under a temporary name in the same folder, then rename it into place.

    A reader sees the old content or the new one, never a part, whatever happens in between.

    Raises:
        ProbeError: the folder is missing or read-only, or the disk is full. `path` is as it was.
    """
    with _written_beside(path, text) as temporary:
        temporary.replace(path)


def write_bytes_whole(path: Path, data: bytes | memoryview) -> None:
    """Write `data` to `path` as `write_whole` does a text.

    Raises:
        ProbeError: as there.
    """
    with _written_beside(path, data) as temporary:
        temporary.replace(path)


def replace_unchanged(path: Path, text: str, before: bytes | None) -> bool:
    """Write `text` to `path` as `write_whole` does, unless another program has changed the file meanwhile.

    Comparing and then renaming would lose an edit that is saved between the two, so the files change places
    and what came out is compared. If that is not `before`, they change back:

        path: before   ours: text        an editor saves `edit` to path
        path: edit     ours: text        the two change places
        path: text     ours: edit        that is not `before`: they change back
        path: edit     ours: text        removed; False is returned

    Where the system cannot exchange files (`renameat2` of Linux), they are compared right before the rename.

    Args:
        before: the bytes that the file held when `text` was made from it; None if there was no file.

    Returns:
        Whether `text` was written. If not, the file holds what the other program wrote.

    Raises:
        ProbeError: see `write_whole`.
    """
    with _written_beside(path, text) as temporary:
        try:
            if before is None:
                return _put_new(temporary, path)
            return path.read_bytes() == before and _exchanged(temporary, path, text.encode(), before)
        except FileNotFoundError:  # it was deleted meanwhile
            if not path.parent.is_dir():
                raise
            return False


@contextmanager
def _written_beside(path: Path, content: str | bytes | memoryview) -> Iterator[Path]:
    """Write `content` to a temporary file beside `path`, with the mode of `path`, for the body to rename."""
    temporary: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        yield temporary
    except OSError as error:
        raise ProbeError(
            f"cannot write {path}: {error.strerror or error}",
            "free some space or make the folder writable; nothing was changed",
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _put_new(temporary: Path, path: Path) -> bool:
    """Give the file its name, unless something has that name by now: a link is made, or is not."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:  # a file system without links
            raise
        if os.path.lexists(path):
            return False
        temporary.replace(path)
    return True


def _exchanged(temporary: Path, path: Path, own: bytes, before: bytes) -> bool:
    if not _exchange(temporary, path):
        temporary.replace(path)
        return True
    same = False
    try:
        same = _when_written(temporary) == before
    finally:
        if not same:  # nor if that failed, or Ctrl-C came: what came out may be an edit
            _exchange(temporary, path)
    if same:
        return True
    if _when_written(temporary) == own:
        return False
    # Saved once more, over ours, while that was there: the newest stays, and the one before it, too.
    _exchange(temporary, path)
    saved = path.with_name(f"{path.name}.{temporary.name.split('.')[-2]}.saved")
    temporary.rename(saved)
    raise ProbeError(
        f"{path} was saved twice by other programs while it was written: it holds what was saved last, "
        f"and {saved} what was saved before that",
        "compare the two, then run this again",
    )


def _exchange(one: Path, other: Path) -> bool:
    """Let two files change places in one step; False where the system cannot."""
    import ctypes  # noqa: PLC0415 - slow to import, and only for a file that is written again

    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    names = (os.fsencode(one), os.fsencode(other))
    if rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_SUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(other))


def _when_written(path: Path) -> bytes | None:
    """Return the bytes of a file once nobody has it open for writing; None if somebody keeps it open.

    An editor that saves in place opens the file, and writes after we moved it away: the kernel grants a lease
    for reading (`F_SETLEASE`) only when nobody can write to the file any more.
    """
    with path.open("rb") as file:
        for _ in range(_WAITS):
            if not hasattr(fcntl, "F_SETLEASE"):
                return file.read()
            try:
                # Opening the file makes the kernel send a signal; SIGIO, the usual one, would end us.
                fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)
                fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            except OSError as error:
                if error.errno != errno.EAGAIN:  # a file system without leases, or a file of another user
                    return file.read()
                time.sleep(_WAIT_S)
                continue
            data = file.read()
            # Whoever asked to write since waits for us to let go: the lease is said to be F_UNLCK then.
            return data if fcntl.fcntl(file, fcntl.F_GETLEASE) == fcntl.F_RDLCK else None
    return None


def _umask() -> int:
    """Return the process's umask: it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
