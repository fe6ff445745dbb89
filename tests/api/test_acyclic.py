"""The modules of `api` import each other in one direction, also where only a type checker follows."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

ROOM = REPOSITORY / "inductor_probe" / "api"
NAME = "inductor_probe.api"


def imports_of(source: str, modules: set[str]) -> set[str]:
    """Return the modules of the room that a text imports, also in functions and under TYPE_CHECKING."""
    imported: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                imported |= {each.name.removeprefix(f"{NAME}.") for each in names}
            case ast.ImportFrom(module=str(module), names=names) if module == NAME:
                imported |= {each.name for each in names}
            case ast.ImportFrom(module=str(module)):
                imported.add(module.removeprefix(f"{NAME}."))
    return imported & modules


def import_graph(folder: Path) -> dict[str, set[str]]:
    modules = {path.stem: path.read_text() for path in folder.glob("*.py") if path.stem != "__init__"}
    return {name: imports_of(source, set(modules)) for name, source in modules.items()}


def test_api_has_no_import_cycle_not_even_for_types() -> None:
    graph = import_graph(ROOM)
    assert graph["session"] >= {"on_disk", "rows", "show", "bench", "diff"}, "the graph is read wrongly"
    order = list(TopologicalSorter(graph).static_order())
    assert order.index("on_disk") < order.index("session") < order.index("verbs")


def test_a_cycle_through_an_import_for_types_would_be_seen() -> None:
    lazy = f"def verb():\n    from {NAME}.a import x\n"
    for_types = f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from {NAME}.b import y\n"
    graph = {"a": imports_of(for_types, {"a", "b"}), "b": imports_of(lazy, {"a", "b"})}
    with pytest.raises(CycleError):
        list(TopologicalSorter(graph).static_order())
