"""Modules inside the graph (branches of a conditional, bodies of loops), from `fx_graph_readable.py`.

`fx_graph_runnable.py` holds only `self.true_graph_0 = <lambda>()` for them, which is not Python.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field

_CLASS = re.compile(r"(?P<indent> *)class (?P<name>\S+)\(torch\.nn\.Module\):")
_MADE = re.compile(r"self\.(?P<name>\w+) = (?:<lambda>|GraphModule)\((?:\n.*?\n)?\)", re.DOTALL)
_INDENT = 4


@dataclass(slots=True)
class _Module:
    name: str
    lines: list[str] = field(default_factory=list)
    children: list[_Module] = field(default_factory=list)


def with_submodules(repro: str, readable: str | None) -> tuple[str, str]:
    """Return the text of the module `Repro` with its submodules made, and the classes that it needs for that.

    Args:
        repro: text of the class, in which the submodules are `<lambda>()`.
        readable: text of `fx_graph_readable.py`, or None when there is none; then nothing changes.
    """
    if not _MADE.search(repro) or readable is None:
        return repro, ""
    classes: list[str] = []
    known = {child.name for child in _parse(readable).children}
    for child in _parse(readable).children:
        _write(child, "AtenGraph", classes)
    made = _MADE.sub(
        lambda match: (
            f"self.{match['name']} = AtenGraph_{match['name']}()" if match["name"] in known else match[0]
        ),
        repro,
    )
    return made, "\n\n\n".join(classes)


def _parse(readable: str) -> _Module:
    """Read which classes stand in which; the outermost is the graph itself."""
    top = _Module("")
    open_: list[_Module] = [top]
    for line in readable.split("\n"):
        if match := _CLASS.fullmatch(line):
            depth = len(match["indent"]) // _INDENT
            del open_[depth + 1 :]
            module = _Module(match["name"])
            open_[-1].children.append(module)
            open_.append(module)
        else:
            open_[-1].lines.append(line)
    return top.children[0] if top.children else top


def _write(module: _Module, parent: str, classes: list[str]) -> None:
    """Write a module as a class of its own, after those inside it."""
    name = f"{parent}_{module.name}"
    for child in module.children:
        _write(child, name, classes)
    made = [f"self.{child.name} = {name}_{child.name}()" for child in module.children]
    body = textwrap.dedent(
        "\n".join(line for line in module.lines if not line.lstrip().startswith("#"))
    ).strip("\n")
    if made:
        first = textwrap.indent("\n".join(["super().__init__()", *made]), " " * _INDENT)
        body = f"def __init__(self):\n{first}\n\n{body}"
    classes.append(f"class {name}(torch.nn.Module):\n{textwrap.indent(body, ' ' * _INDENT)}")
