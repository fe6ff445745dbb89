"""Recorders hold no literal of torch's: what it compares is seen where it compares it."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import inspect
import sys
import textwrap
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from inductor_probe.capture import recorders
from inductor_probe.capture.events import EventLog
from inductor_probe.capture.recorders.decision_log import DecisionLog
from inductor_probe.capture.torch_places import DECISION, PLACES, wraps_undone

pytestmark = pytest.mark.filterwarnings("ignore")
FOLDER = Path(recorders.__file__).parent
NO_LIMIT = (-1, 0, 1, 2)
"""Numbers that stand for nothing in particular: none, the last, one, a pair."""


class _Watches(DecisionLog):
    """A log that keeps which functions of torch each file of recorders watches; `file` is that of now."""

    def __init__(self, folder: Path) -> None:
        super().__init__(EventLog(folder))
        self.of: defaultdict[Path, set[Any]] = defaultdict(set)
        self.file = folder

    def watch(self, module: ModuleType, name: str, *nested: str) -> None:
        function: Any = module
        for part in name.split("."):
            function = getattr(function, part)
        self.of[self.file].add(inspect.unwrap(getattr(function, "__func__", function)))


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, set[Any]]:
    """Return the functions of the installed torch that each file of recorders watches, or may."""
    log = _Watches(tmp_path_factory.mktemp("events"))
    with wraps_undone():
        for recorder in recorders.RECORDERS:
            log.file = Path(inspect.getfile(recorder))
            for name, hook in recorder.of(log).hooks():
                try:
                    module = importlib.import_module(name)
                except ModuleNotFoundError:  # of another release
                    continue
                hook(module)
    for file in FOLDER.glob("*.py"):
        named = held(ast.parse(file.read_text(encoding="utf-8")))
        for place in PLACES:
            if DECISION in place.topics and place.name in named and place.module in sys.modules:
                with contextlib.suppress(AttributeError, TypeError):  # of another release, or no function
                    function = functools.reduce(getattr, place.name.split("."), sys.modules[place.module])
                    log.of[file].add(inspect.unwrap(getattr(function, "__func__", function)))
    return dict(log.of)


def numbers(tree: ast.AST) -> set[int | float]:
    """Return the numbers of a syntax tree; not those that are places or bounds in what is shown."""
    if isinstance(tree, ast.Subscript):
        return numbers(tree.value)
    if isinstance(tree, ast.Assign) and "MOST" in ast.unparse(tree.targets[0]):
        return set()
    own = {tree.value} if isinstance(tree, ast.Constant) and type(tree.value) in (int, float) else set()
    return {number for number in own if number not in NO_LIMIT}.union(
        *map(numbers, ast.iter_child_nodes(tree))
    )


def texts(tree: ast.AST) -> set[str]:
    """Return the texts with which a syntax tree compares, and those of what it holds by name.

    Not those that name operations of a loop body, `load` or `store`: by these its nodes are read.
    """
    from torch._inductor.ops_handler import OpsHandler  # noqa: PLC0415 - all workers import this file

    compared: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            compared += [node.left, *node.comparators]
        elif isinstance(node, ast.Assign):
            compared.append(node.value)
    parts = (
        part
        for one in compared
        for part in (getattr(one, "elts", None) or getattr(one, "keys", None) or (one,))
    )
    values = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    return {value for value in values if not hasattr(OpsHandler, value)}


def held(tree: ast.Module) -> set[str]:
    """Return the texts that a module holds by names: those of functions that it watches later, too."""
    assigned = (node for top in tree.body if isinstance(top, ast.Assign) for node in ast.walk(top.value))
    values = (node.value for node in assigned if isinstance(node, ast.Constant))
    return {value for value in values if isinstance(value, str)}


def parsed(function: Any) -> ast.AST:
    return ast.parse(textwrap.dedent(inspect.getsource(function)))


def imported(tree: ast.AST) -> set[Path]:
    """Return the files of recorders from which one imports."""
    return {
        FOLDER / f"{name}.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and ".recorders" in node.module
        for name in (node.module.rpartition(".")[2], *(one.name for one in node.names))
    }


@pytest.mark.parametrize("file", sorted(path.name for path in FOLDER.glob("*.py")))
def test_a_recorder_has_no_literal_of_what_it_watches(file: str, watched: dict[Path, set[Any]]) -> None:
    tree = ast.parse((FOLDER / file).read_text(encoding="utf-8"))
    own = numbers(tree) | texts(tree)
    for one in {FOLDER / file} | imported(tree):
        for function in watched.get(one, ()):
            theirs = parsed(function)
            assert not own & (numbers(theirs) | texts(theirs)), function


def test_what_is_watched_is_seen(watched: dict[Path, set[Any]]) -> None:
    """Else the test above would hold of nothing."""
    assert sum(map(len, watched.values())) > 60
    assert numbers(ast.parse("x >= 35 and y[2] < 0.12")) == {35, 0.12}
    assert texts(ast.parse("kind in ('one', 'two') or name == f('six')")) == {"one", "two"}
    assert texts(ast.parse("KINDS = ('cpu', 'store')")) == {"cpu"}
