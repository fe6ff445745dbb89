"""Variables of torch and triton that are set in the environment, and what each does."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from inductor_probe.health.variable_effects import EFFECTS
from inductor_probe.machine.facts import VARIABLE_PREFIXES, is_secret
from inductor_probe.model.health import Fact, Finding, Level, TorchSetup

_MOST_SHOWN = 60
_CONFIGS = ("_inductor", "_dynamo", "_functorch", "compiler")
_OURS = ("TORCHINDUCTOR_", "TORCHDYNAMO_", "TORCH_COMPILE_", "TORCH_DYNAMO_")
"""Nothing but the Python of those rooms of torch reads variables with these prefixes."""
_NAME = re.compile(rf"\b(?:{'|'.join(_OURS)})[A-Z0-9_]+\b")


def variable_findings(setup: TorchSetup, environment: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Yield a finding for each variable that is set, known or of torch's or triton's prefixes."""
    names = sorted(name for name in environment if name in EFFECTS or name.startswith(VARIABLE_PREFIXES))
    if not names:
        nothing = (("name", None), ("value", None), ("known", None))
        yield Finding("variables", "fine", "none of torch, inductor, triton or OpenMP is set", facts=nothing)
        return
    folder = Path(setup.folder) if setup.folder else _folder_of("torch")
    unknown = [name for name in names if name not in EFFECTS and name.startswith(_OURS)]
    readers = variables_in(folder) if unknown and folder else {}
    for name in names:
        yield _finding(name, environment[name], readers, setup.version)


def _finding(name: str, value: str, readers: Mapping[str, str], torch: str | None) -> Finding:
    secret = is_secret(name, value)
    text = f"{name} is set" if secret else f"{name}={_short(value)}"
    facts: tuple[tuple[str, Fact], ...] = (
        ("name", name),
        ("value", None if secret else value),
        ("known", name in EFFECTS or name in readers),
    )
    effect = EFFECTS.get(name)
    does, remedy = readers.get(name), f"unset {name}, unless that is what you want"
    if effect and value in effect.harmless:
        return Finding("variables", "fine", f"{text}: as without it", facts=facts)
    if effect:
        level: Level = "note" if effect.misleads else "fine"
        text = f"{text}: {effect.text}"
        return Finding("variables", level, text, remedy if effect.misleads else None, facts)
    if does is None and name.startswith(_OURS) and readers:
        near = get_close_matches(name, [*readers, *EFFECTS], n=1, cutoff=0.8)
        does, remedy = f"torch {torch or ''} does not read it", f"unset {name}"
        remedy = f"did you mean {near[0]}?" if near else remedy
    if does is None:
        return Finding("variables", "fine", f"{text}: nothing known of it that matters here", facts=facts)
    return Finding("variables", "note", f"{text}: {does}", remedy, facts)


def variables_in(torch: Path) -> dict[str, str]:
    """Return what reads each variable of the compiler: a setting if one takes its value, else a file.

    Nothing is imported: the sources below the folder of torch are read.
    """
    found: dict[str, str] = {}
    for room in _CONFIGS:
        for path in sorted((torch / room).rglob("*.py")):
            text = path.read_text(encoding="utf-8", errors="replace")
            for name in set(_NAME.findall(text)):
                found.setdefault(name, f"read by torch/{path.relative_to(torch)}")
    for room in _CONFIGS:
        config = torch / room / "config.py"
        if config.is_file():
            found |= _settings(f"torch.{room}.config", config.read_text(encoding="utf-8", errors="replace"))
    return found


def _settings(module: str, text: str) -> dict[str, str]:
    """Return `sets torch._inductor.config.triton.cudagraphs` for each variable in an assignment."""
    found: dict[str, str] = {}

    def look(body: list[ast.stmt], prefix: str) -> None:
        for statement in body:
            if isinstance(statement, ast.ClassDef):
                look(statement.body, f"{prefix}.{statement.name}")
            elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
                target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
                for part in ast.walk(statement.value):
                    if isinstance(part, ast.Constant) and _NAME.fullmatch(str(part.value)):
                        found.setdefault(str(part.value), f"sets {prefix}.{ast.unparse(target)}")

    try:
        look(ast.parse(text).body, module)
    except SyntaxError:  # of a later Python than this one
        return {}
    return found


def _folder_of(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else None


def _short(value: str) -> str:
    return value if len(value) <= _MOST_SHOWN else f"{value[: _MOST_SHOWN - 1]}…"
