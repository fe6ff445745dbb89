"""The harness as text: its modules one below the other, their imports merged."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import libcst as cst

import inductor_probe.harness
from inductor_probe.harness import CORE, ONLY_ON_GPU, REST

_LEFT_OUT = ("inductor_probe", "__future__")
_FOR_OUR_TOOLS = re.compile(r"  # (?:noqa|type: ignore)\b[^\n]*")


@cache
def harness(gpu: bool) -> tuple[tuple[str, ...], str]:
    """Return the import statements of the harness, one for each module, and its code.

    `gpu`: for a graph that runs on one.
    """
    folder = Path(inductor_probe.harness.__file__).parent
    names: dict[str, set[str]] = {}
    parts = []
    for stem in (*CORE, *REST):
        if stem in ONLY_ON_GPU and not gpu:
            continue
        module = cst.parse_module((folder / f"{stem}.py").read_text(encoding="utf-8"))
        kept = []
        for statement in module.body[1:]:  # the first is the docstring
            imported = _imported(module, statement)
            if imported is None:
                kept.append(statement)
            elif imported[0].split(".")[0] not in _LEFT_OUT:
                names.setdefault(imported[0], set()).update(imported[1])
        code = module.with_changes(body=kept, header=[]).code.strip()
        title = "\n".join(f"# {line}".rstrip() for line in (module.get_docstring() or "").splitlines())
        parts.append(f"{title}\n\n\n{_FOR_OUR_TOOLS.sub('', code)}")
    lines = [
        f"from {module} import {', '.join(sorted(taken, key=str.swapcase))}" if taken else f"import {module}"
        for module, taken in names.items()
    ]
    return tuple(sorted(lines, key=_isort)), "\n\n\n".join(parts)


def _imported(module: cst.Module, statement: cst.CSTNode) -> tuple[str, list[str]] | None:
    """Return the module that an import statement names, and what it takes from it (nothing: all of it)."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return None
    match statement.body[0]:
        case cst.Import(names=[alias]):
            return module.code_for_node(alias.name), []
        case cst.ImportFrom(module=cst.Attribute() | cst.Name() as source, names=[*aliases]):
            return module.code_for_node(source), [module.code_for_node(alias.name) for alias in aliases]
    return None


def _isort(line: str) -> tuple[bool, bool, str]:
    """Sort as isort does: the standard library before torch, `import` before `from`."""
    return line.split(maxsplit=2)[1].startswith("torch"), line.startswith("from"), line
