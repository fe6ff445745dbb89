"""A Python file that is going to be run: its text as it will be compiled, read once.

Python decodes a file by the encoding that a comment in its first two lines names (PEP 263), so the same
bytes can be other code than they show. With `raw_unicode_escape`, this comment ends in the middle:

    # -*- coding: raw_unicode_escape -*-
    # harmless \\u000aimport os; os.system("...")

What is read here is UTF-8, and is handed to `compile` as text: that ignores such a comment, so what was
compared is what is compiled. The comment is refused all the same, since `python FILE` obeys it.
"""

from __future__ import annotations

import codecs
import os
import re
from dataclasses import dataclass
from pathlib import Path

from inductor_probe.errors import UnreadableError
from inductor_probe.files import decoded, read_bytes

# `get_coding_spec` of CPython's tokenizer: in a comment that has its line to itself, of line 1 or 2.
_COOKIE = re.compile(r"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class PythonSource:
    """A Python file as it was when it was read.

    Attributes:
        text: what is to be compiled: lines end in `\\n`, and there is no byte order mark.
        data: the bytes it was read from.
        status: owner and mode of the very file that was read, whatever lies at `path` since.
    """

    path: Path
    text: str
    data: bytes
    status: os.stat_result


def read_python_source(path: Path) -> PythonSource:
    """Read a Python file as Python will compile it.

    Raises:
        NotFoundError, UnreadableError: see `read_text`; or it names an encoding other than UTF-8.
    """
    data, status = read_bytes(path)
    text = decoded(data, path).removeprefix(_BOM)
    for number, line in enumerate(text.split("\n", 2)[:2], 1):
        cookie = _COOKIE.match(line)
        if cookie and not _is_utf8(cookie[1]):
            raise UnreadableError(
                f"{path}:{number}: names the encoding {cookie[1]}: to Python it is other code than it shows",
                "the file is read as UTF-8; delete that line if it is yours",
            )
    return PythonSource(path, text, data, status)


def _is_utf8(name: str) -> bool:
    try:
        return codecs.lookup(name).name == "utf-8"
    except LookupError:
        return False
