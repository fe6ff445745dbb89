"""Getting the text of a file, or a sentence that says why not."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from inductor_probe.errors import NotFoundError, UnreadableError

# Python counts all three as line ends, and so do editors: line numbers must mean one thing.
_LINE_ENDS = re.compile(r"\r\n?")

LARGEST_BYTES = 1 << 30
"""No file of a dump comes near: a larger one is not one, and would fill the memory."""


def read_text(path: Path) -> str:
    """Return the text of `path`, with lines that end in `\\n` however they ended in the file.

    Raises:
        NotFoundError: there is no such file.
        UnreadableError: no permission, not a regular file (a pipe would keep us waiting for ever), too large,
            or bytes that are not UTF-8 text; says the first bad line.
    """
    return decoded(read_bytes(path)[0], path)


def decoded(data: bytes, path: Path) -> str:
    """Return the text that the bytes of `path` are, with lines that end in `\\n`.

    Raises:
        UnreadableError: they are not UTF-8 text; says the first bad line.
    """
    bad = data.find(b"\0")
    if bad < 0:
        try:
            return unix_lines(data.decode("utf-8"))
        except UnicodeDecodeError as error:
            bad = error.start
    line = data.count(b"\n", 0, bad) + 1
    raise UnreadableError(
        f"{path}:{line}: not text (byte {bad} of {len(data)})",
        "the file was damaged or replaced; dump the script again",
    )


def unix_lines(text: str) -> str:
    """Return `text` with every line ending in `\\n`."""
    return _LINE_ENDS.sub("\n", text) if "\r" in text else text


def read_bytes(path: Path) -> tuple[bytes, os.stat_result]:
    """Return the bytes of a regular file, with its owner and mode.

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
            if facts.st_size > LARGEST_BYTES:
                raise UnreadableError(f"cannot read {path}: {facts.st_size:,} bytes are too many for a dump")
            return file.read(), facts
    except FileNotFoundError as error:
        raise NotFoundError(f"{path} does not exist") from error
    except OSError as error:
        raise UnreadableError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:  # a name with a NUL byte
        raise UnreadableError(f"cannot read {path}: {error}") from error
