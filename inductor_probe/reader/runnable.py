"""`fx_graph_runnable.py`: what torch notes in it about itself."""

from __future__ import annotations

import re

_VERSION = re.compile(r"^# torch version: (\S+)", re.MULTILINE)


def torch_version(text: str) -> str | None:
    """Return the version of the torch that wrote the file; every release notes it there."""
    match = _VERSION.search(text)
    return match[1] if match else None
