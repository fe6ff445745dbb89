"""Which script is meant, and what it is handed."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from inductor_probe.errors import NotFoundError, ProbeError, UnreadableError, near_names

_PACKAGE = Path(__file__).resolve().parent.parent
SCENARIOS = (_PACKAGE.parent / "scenarios", _PACKAGE / "_scenarios")
"""Where the project's scenarios lie: in a checkout, and in an installed wheel."""


def find_script(name: str, cwd: Path) -> Path:
    """Return the script that `name` means: a path, or a bare name here or in scenarios, without `.py` too.

    It is relative to `cwd` if `name` is.

    Raises:
        NotFoundError: there is none; scripts with a similar name are offered.
    """
    names = [name] if name.endswith(".py") else [name, f"{name}.py"]
    bare = Path(name).name == name
    places: list[Path] = [Path(), *SCENARIOS] if bare else [Path()]
    for folder in places:
        for candidate in names:
            if (cwd / folder / candidate).is_file():
                return folder / candidate
    known = [
        *(cwd / Path(name).parent).glob("*.py"),
        *(path for s in SCENARIOS for path in s.glob("check_*.py")),
    ]
    near = near_names(Path(name).name, sorted({path.name for path in known}))
    if bare and shutil.which(name):
        near = f"for a command put -- in front of it: probe dump -- {name} ..."
    raise NotFoundError(f"there is no script {name}", near)


def is_scenario(script: Path) -> bool:
    """Return whether `script` imports `inductor_probe.scenario`. It is parsed, not run.

    Raises:
        UnreadableError: the file cannot be read.
    """
    try:
        tree = ast.parse(script.read_bytes())
    except OSError as error:
        raise UnreadableError(f"cannot read {script}: {error.strerror or error}") from error
    except (SyntaxError, ValueError):
        return False  # Python says where it is wrong when it is run
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imported |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return "inductor_probe.scenario" in imported


def script_arguments(
    script: Path, args: Sequence[str], cases: Sequence[str], knobs: Mapping[str, str]
) -> list[str]:
    """Return the script's command line: its own arguments, with cases and knobs in a scenario's spelling.

    Raises:
        ProbeError: cases or knobs for a script that is not a scenario.
    """
    if (cases or knobs) and not is_scenario(script):
        option = "--case" if cases else "--set"
        raise ProbeError(
            f"{option} is for scenarios, and {script} does not import inductor_probe.scenario",
            "pass the script's own arguments after --",
        )
    chosen = [word for case in cases for word in ("--case", case)]
    settings = [word for knob, value in knobs.items() for word in ("--set", f"{knob}={value}")]
    return [*chosen, *settings, *args]
