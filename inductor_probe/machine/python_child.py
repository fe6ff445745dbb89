"""Running a Python file of a dump so that nothing else of the dump is run."""

from __future__ import annotations

import sys
from pathlib import Path

_START = (
    "import sys; sys.path.pop(0); sys.argv.pop(0); "
    "import runpy; runpy.run_path(sys.argv[0], run_name='__main__')"
)


def python_command(file: Path, *arguments: str) -> list[str]:
    """Return the command that runs `file` as a program, without its folder on the path for imports.

    `python FILE` puts that first, so that a `torch.py` or `json.py` which lies beside FILE would be run, too.
    Give the process a working folder that is empty: what it starts itself may look there.
    """
    return [sys.executable, "-c", _START, str(file.resolve()), *arguments]
