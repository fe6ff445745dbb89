"""Running Python in a process of its own, so that nothing else in the folder of a file is run."""

from __future__ import annotations

import sys
from pathlib import Path

_SOURCE_CHILD = Path(__file__).with_name("source_child.py")
_START = (
    "import sys; getattr(sys.flags, 'safe_path', False) or sys.path.pop(0); sys.argv.pop(0); "
    "import runpy; runpy.run_path(sys.argv[0], run_name='__main__')"
)


def python_command(file: Path, *arguments: str) -> list[str]:
    """Return the command that runs `file` as a program, without its folder on the path for imports.

    `python FILE` puts that first, so that a `torch.py` or `json.py` which lies beside FILE would be run, too.
    Give the process a working folder that is empty: what it starts itself may look there.
    """
    return [sys.executable, "-c", _START, str(file.resolve()), *arguments]


def source_command(file: Path, *arguments: str) -> list[str]:
    """Return the command that runs as the program `file` the text that it gets on stdin, in UTF-8.

    `file` itself is not read: another program may write to it between one process and the next.
    """
    return python_command(_SOURCE_CHILD, str(file.resolve()), *arguments)
