"""Getting the text of a file, or a sentence that says why not."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from inductor_probe.errors import NotFoundError, UnreadableError
from inductor_probe.model.span import Problem, Span

_DAMAGED = "the file was damaged or replaced; dump the script again"
# Python counts all three as line ends, and so do editors: line numbers must mean one thing.
_LINE_ENDS = re.compile(r"\r\n?")

LARGEST_BYTES = 32 << 20
MOST_LINES = 500_000
"""The largest files of whole networks: 6 MB and 120,000 lines of IR, 1 MB of wrapper. A record of a line
takes up to 0.5 kB, so that what is read of one file stays below a quarter of a GB."""
LARGEST_JSON = 16 << 20
"""`[[],[],...` takes 27 bytes of memory a byte. The largest provenance file of a network has 0.5 MB."""
MOST_PROBLEMS = 10_000
"""Of a file, before its reader stops: each takes memory, and no dump is misunderstood as often."""
_LARGEST_OWN = 1 << 30
_LONG_NUMBER = re.compile(r"0[xXoObB][0-9a-fA-F_]{1000}")
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
            bytes that are not UTF-8 text, or a number that Python could not print; says the first bad line.
    """
    data, _ = read_bytes(path, largest if from_dump else _LARGEST_OWN)
    lines = data.count(b"\n") + data.count(b"\r")
    if from_dump and lines > MOST_LINES:
        raise UnreadableError(
            f"cannot read {path}: of {lines:,} lines, more than the {MOST_LINES:,} that are read of a "
            "file of a dump; if torch wrote it, cut it to the part that matters"
        )
    return decoded(data, path)


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
            if match := _LONG_NUMBER.search(text):
                line = text.count("\n", 0, match.start()) + 1
                raise UnreadableError(f"{path}:{line}: a number of more than 1,000 digits", _DAMAGED)
            return text
    line = data.count(b"\n", 0, bad) + 1
    raise UnreadableError(f"{path}:{line}: not text (byte {bad} of {len(data)})", _DAMAGED)


def too_many_problems(path: Path, line: int, text: str) -> Problem:
    """Return the problem of a file whose reader stopped before `line`: the rest of it is not read."""
    message = f"not read from here on: more than {MOST_PROBLEMS:,} lines before are not understood"
    return Problem(message, Span(path, line, max(line, text.count("\n") + 1)))


def unix_lines(text: str) -> str:
    """Return `text` with every line ending in `\\n`."""
    return _LINE_ENDS.sub("\n", text) if "\r" in text else text


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
                    f"cannot read {path}: of {facts.st_size:,} bytes, more than the {largest:,} that are "
                    "read of such a file of a dump; if torch wrote it, cut it to the part that matters"
                )
            # No more if it grows meanwhile; a buffer of `largest` bytes for each small file takes its time.
            return file.read(min(largest, facts.st_size)), facts
    except FileNotFoundError as error:
        raise NotFoundError(f"{path} does not exist") from error
    except OSError as error:
        raise UnreadableError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:  # a name with a NUL byte
        raise UnreadableError(f"cannot read {path}: {error}") from error
