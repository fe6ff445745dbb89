"""Puts a call in front of statements of a module, when it is imported.

The call stands in the function itself, so that a debugger which it starts stops in that frame, with its
locals, in any client: breakpoints that a client sends replace what was set for a file by other means. All
other code is compiled from the file as it is, with the lines it has there.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from inductor_probe.debugging.stops import Stop

ASKED = "__inductor_probe_asked__"
"""The global of a module under which its inserted calls find `Asked`."""
_Places = Mapping[tuple[int, int], Sequence[int]]


class Inserting(MetaPathFinder):
    """Finds the modules that have stops as others would, and loads them with the calls in them.

    Args:
        stops: of any modules; calls name them by their number.
        asked: what the calls talk to.
    """

    def __init__(self, stops: Sequence[Stop], asked: Any) -> None:
        self._asked = asked
        self._places: dict[str, dict[tuple[int, int], list[int]]] = defaultdict(lambda: defaultdict(list))
        for number, stop in enumerate(stops):
            self._places[stop.module][stop.line, stop.column].append(number)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what the finders behind this one find, with a loader of ours."""
        if fullname not in self._places:
            return None
        behind = sys.meta_path[sys.meta_path.index(self) + 1 :]
        specs = (finder.find_spec(fullname, path, target) for finder in behind)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path, self._places[fullname], self._asked)
        return spec


class _Loader(SourceFileLoader):
    """Compiles the source anew: neither reads nor writes the bytecode that others use."""

    def __init__(self, fullname: str, path: str, places: _Places, asked: Any) -> None:
        super().__init__(fullname, path)
        self._places = places
        self._asked = asked

    def get_code(self, fullname: str) -> CodeType:
        return with_calls(self.get_data(self.path), self.path, self._places)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__[ASKED] = self._asked
        super().exec_module(module)


def with_calls(source: bytes, path: str, places: _Places) -> CodeType:
    """Return the code of `source` with a call before the statements at `places`: (line, column) -> stops."""
    tree = ast.parse(source, path)
    for node in list(ast.walk(tree)):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                block[:] = [new for statement in block for new in _with_call(statement, places)]
    return compile(tree, path, "exec", dont_inherit=True)


def _with_call(statement: ast.stmt, places: _Places) -> Sequence[ast.stmt]:
    numbers = places.get((statement.lineno, statement.col_offset))
    return [_call(statement, numbers), statement] if numbers else [statement]


def _call(before: ast.stmt, numbers: Sequence[int]) -> ast.stmt:
    """Return `asked(numbers) and stop()`, on the line above.

    A debugger that is started in the middle of a line stops at the next line that is reached.
    """
    asked = ast.Name(ASKED, ast.Load())
    question = ast.Call(ast.Attribute(asked, "asked", ast.Load()), [ast.Constant(n) for n in numbers], [])
    stop = ast.Call(ast.Attribute(asked, "stop", ast.Load()), [], [])
    call = ast.Expr(ast.BoolOp(ast.And(), [question, stop]))
    line = max(before.lineno - 1, 1)
    for node in ast.walk(call):
        if isinstance(node, (ast.expr, ast.stmt)):
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = 0
    return call
