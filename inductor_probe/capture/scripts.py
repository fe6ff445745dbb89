"""Which script is meant, and what it is handed."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from inductor_probe.capture.torch_settings import MODULES
from inductor_probe.discovery.discover import lies_in_dump
from inductor_probe.errors import NotFoundError, ProbeError, UnreadableError, near_names

_PACKAGE = Path(__file__).resolve().parent.parent
SCENARIOS = (_PACKAGE.parent / "scenarios", _PACKAGE / "_scenarios")
"""Where the project's scenarios lie: in a checkout, and in an installed wheel."""


def find_script(name: str, cwd: Path) -> Path:
    """Return the script that `name` means: a path, or a bare name here or in scenarios, without `.py` too.

    It is relative to `cwd` if `name` is.

    Raises:
        NotFoundError: there is none; scripts with a similar name are offered.
        ProbeError: it lies in a dump, and nothing in one is run as a script.
    """
    names = [name] if name.endswith(".py") else [name, f"{name}.py"]
    bare = Path(name).name == name
    places: list[Path] = [Path(), *SCENARIOS] if bare else [Path()]
    for folder in places:
        for candidate in names:
            if (cwd / folder / candidate).is_file():
                if dump := lies_in_dump(cwd / folder / candidate):
                    raise ProbeError(
                        f"{name} lies in the dump {dump}: what is in one is read, and not run as a script",
                        "read it, then copy it to another folder and run it there",
                    )
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
        if dotted := next((knob for knob in knobs if "." in knob), None):
            raise _no_setting(dotted)
        option = "--case" if cases else "--set"
        raise ProbeError(
            f"{option} is for scenarios, and {script} does not import inductor_probe.scenario",
            "pass the script's own arguments after --",
        )
    chosen = [word for case in cases for word in ("--case", case)]
    settings = [word for knob, value in knobs.items() for word in ("--set", f"{knob}={value}")]
    return [*chosen, *settings, *args]


def _no_setting(name: str) -> ProbeError:
    """Return what is wrong with a name that has dots, as settings of torch have, and begins as none does."""
    first, *others = name.removeprefix("torch.").replace("config.", "").split(".")
    close = get_close_matches(first.lstrip("_"), MODULES, n=1)
    hint = f"settings of torch begin with {', '.join(MODULES)}; a script's own arguments follow after --"
    if close and others:
        hint = f"did you mean {'.'.join((close[0], *others))}?"
    return ProbeError(f"torch has no setting {name}", hint)
