"""Edits that a person might make in a bench file."""

from __future__ import annotations

import re
from pathlib import Path

COPY = re.compile(r"(?ms)^(?P<name>\w+_v2) = async_compile\.cpp_pybinding.*?^'''\)$")


def edit_copy(path: Path, pattern: str, replacement: str) -> None:
    """Change the C++ text of the copied kernel, and nothing else."""
    text = path.read_text()
    (match,) = COPY.finditer(text)
    changed, count = re.subn(pattern, replacement, match[0])
    assert count >= 1
    path.write_text(text[: match.start()] + changed + text[match.end() :])
