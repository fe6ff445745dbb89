"""Breakpoints: the record, the calls put into modules as they are imported, and what these calls decide.

The call stands in the function itself, so that a debugger which it starts stops in that frame, with its
locals, in any client: breakpoints that a client sends replace what was set for a file by other means. All
other code is compiled from the file as it is, with the lines it has there.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, FrameType, ModuleType
from typing import Any

from msgspec import Struct

CHECKER_NAME = "__inductor_probe_breakpoints__"
"""The global of a module under which its inserted calls find the `Checker`."""
_Positions = Mapping[tuple[int, int], Sequence[int]]
"""(line, column) of a statement -> numbers of the breakpoints before it."""


class Breakpoint(Struct, frozen=True):
    """Before which statement of which module to stop.

    Attributes:
        module: its name, as it is imported.
        path: of its source.
        line, column: where the statement starts, in Python's own counting (from 1, from 0).
        place: the function or line, in words that a user can pass to `--break`.
        condition: a Python expression of the names that the function has there; None stops always.
        event: what happens there, for a breakpoint that the user named by its subject.
    """

    module: str
    path: str
    line: int
    column: int
    place: str
    condition: str | None = None
    event: str | None = None

    def __str__(self) -> str:
        return f"{self.event} ({self.place})" if self.event else self.place


def are_nodes(first: Any, second: Any, some: Collection[str], others: Collection[str]) -> bool:
    """Return whether one scheduler node holds all of `some`, and the other all of `others`, either way round.

    Nodes may be fused already; names are of operations or buffers.
    """
    a, b = ({*node.get_operation_names(), *node.get_buffer_names()} for node in (first, second))
    return (a.issuperset(some) and b.issuperset(others)) or (a.issuperset(others) and b.issuperset(some))


def next_kernel() -> int:
    """Return the number that the next kernel of the graph gets, without taking it.

    Raises:
        AttributeError, ValueError: this torch counts them in another way.
    """
    wrapper = sys.modules["torch._inductor.virtualized"].V.graph.wrapper_code
    while hasattr(wrapper, "parent_wrapper"):  # a subgraph's kernels are counted with the graph's
        wrapper = wrapper.parent_wrapper
    # torch/_inductor/codegen/wrapper.py, PythonWrapperCodegen.__init__: `_names_iter` is itertools.count()
    match = re.fullmatch(r"count\((\d+)\)", repr(wrapper._names_iter))
    if match is None:
        raise ValueError(f"kernels are counted by {wrapper._names_iter!r}")
    return int(match[1])


HELPERS: dict[str, Callable[..., Any]] = {"are_nodes": are_nodes, "next_kernel": next_kernel}
"""What a condition may call, beside the names at its place."""


class Checker:
    """What the inserted calls talk to: `checker.is_hit(numbers) and checker.stop()`.

    Args:
        breakpoints: calls name them by their number.
        stop: stops in the frame that calls it.
        is_attached: whether there is a debugger to stop for.
    """

    def __init__(
        self, breakpoints: Sequence[Breakpoint], stop: Callable[[], Any], is_attached: Callable[[], bool]
    ) -> None:
        self.stop = stop
        self._breakpoints = breakpoints
        self._is_attached = is_attached
        self._conditions = [_Condition(item.condition) if item.condition else None for item in breakpoints]
        self._hit: set[int] = set()
        self._failed: set[int] = set()

    def is_hit(self, *numbers: int) -> bool:
        """Return whether to stop in the caller's frame, for any of the breakpoints `numbers`."""
        if not self._is_attached():
            return False
        frame = sys._getframe(1)
        hit = [number for number in numbers if self._holds(number, frame)]
        self._hit.update(hit)
        for number in hit:
            say(f"stop: {self._breakpoints[number]}")
        return bool(hit)

    def _holds(self, number: int, frame: FrameType) -> bool:
        condition = self._conditions[number]
        if condition is None:
            return True
        try:
            return condition.holds(frame)
        except Exception as error:  # it is the user's, or reads private parts of torch: the compile goes on
            if number not in self._failed:
                say(f"the condition of {self._breakpoints[number]} failed: {type(error).__name__}: {error}")
            self._failed.add(number)
            return False

    def say_never_reached(self) -> None:
        """Say at the end where nothing stopped; the same event may happen at one of several places."""
        events = [item.event or item.place for item in self._breakpoints]
        hit = {events[number] for number in self._hit}
        for event in dict.fromkeys(events):
            if event not in hit:
                say(f"never reached: {event}")


class _Condition:
    """An expression of names in a frame. Only those it uses are looked up, local ones first."""

    def __init__(self, text: str) -> None:
        tree = ast.parse(text, f"<condition {text}>", "eval")
        self._names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        self._code: CodeType = compile(tree, f"<condition {text}>", "eval", dont_inherit=True)

    def holds(self, frame: FrameType) -> bool:
        scopes = (HELPERS, frame.f_globals, frame.f_locals)
        # As globals, not as locals: a comprehension in the expression sees only those.
        values = {name: scope[name] for scope in scopes for name in self._names if name in scope}
        return bool(eval(self._code, {**values, "__builtins__": frame.f_builtins}))  # noqa: S307 - the user's own


class Inserter(MetaPathFinder):
    """Finds the modules that have breakpoints as others would, and loads them with the calls in them.

    Args:
        breakpoints: of any modules; calls name them by their number.
        checker: what the calls talk to.
    """

    def __init__(self, breakpoints: Sequence[Breakpoint], checker: Any) -> None:
        self._checker = checker
        self._positions: dict[str, dict[tuple[int, int], list[int]]] = defaultdict(lambda: defaultdict(list))
        for number, item in enumerate(breakpoints):
            self._positions[item.module][item.line, item.column].append(number)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what the finders behind this one find, with a loader of ours."""
        if fullname not in self._positions:
            return None
        finders = sys.meta_path[sys.meta_path.index(self) + 1 :]
        specs = (finder.find_spec(fullname, path, target) for finder in finders)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path, self._positions[fullname], self._checker)
        return spec


class _Loader(SourceFileLoader):
    """Compiles the source anew: neither reads nor writes the bytecode that others use."""

    def __init__(self, fullname: str, path: str, positions: _Positions, checker: Any) -> None:
        super().__init__(fullname, path)
        self._positions = positions
        self._checker = checker

    def get_code(self, fullname: str) -> CodeType:
        return with_calls(self.get_data(self.path), self.path, self._positions)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__[CHECKER_NAME] = self._checker
        super().exec_module(module)


def with_calls(source: bytes, path: str, positions: _Positions) -> CodeType:
    """Return the code of `source` with a call before the statements at `positions`.

    For example breakpoints 0 and 3 at (2, 4) make of `def f(x):\\n    return x` what `def f(x):
    __inductor_probe_breakpoints__.is_hit(0, 3) and __inductor_probe_breakpoints__.stop(); return x` would be.
    """
    tree = ast.parse(source, path)
    for node in list(ast.walk(tree)):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                block[:] = [new for statement in block for new in _with_call(statement, positions)]
    return compile(tree, path, "exec", dont_inherit=True)


def _with_call(statement: ast.stmt, positions: _Positions) -> list[ast.stmt]:
    numbers = positions.get((statement.lineno, statement.col_offset))
    if not numbers:
        return [statement]
    text = f"{CHECKER_NAME}.is_hit({', '.join(map(str, numbers))}) and {CHECKER_NAME}.stop()"
    (call,) = ast.parse(text).body
    # On the line above: a debugger that is started in the middle of a line stops at the next one reached.
    line = max(statement.lineno - 1, 1)
    for node in ast.walk(call):
        if isinstance(node, (ast.expr, ast.stmt)):
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = 0
    return [call, statement]


def say(text: str) -> None:
    """Print to the user, among the output of the script."""
    print(f"probe debug: {text}", file=sys.stderr, flush=True)
