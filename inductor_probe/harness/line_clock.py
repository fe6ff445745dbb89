"""A wrapper that reads a clock before each of its lines: the same statements, with a mark above each line.

    probe_mark((3, probe_clock()))
    buf0 = empty_strided_cpu((64, 1), (1, 64), torch.bool)
    probe_mark((4, probe_clock()))
    cpp_fused_0(arg0_1, buf0)

The line numbers stay those of the bench file. Two marks above the first line say what a mark takes.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from inductor_probe.harness.judge import ALLOCATORS

MARK = -1  # of the two marks with nothing between them
CHECKS = (
    "assert_size_stride",
    "assert_size_stride_grouped",
    "assert_tensor_metadata",
    "assert_alignment",
)
LIBRARIES = ("extern_kernels.", "torch.ops.", "aten.", "inductor_ops.")
NOT_WORK = ("_alloc_from_pool", "_reinterpret_tensor")
METHODS = ("__init__", "recursively_apply_fns")  # of `Runner`, which no call runs


@dataclass
class Line:
    """A line of the wrapper, from `first` to `last` of the file.

    Attributes:
        kind: `launch` (of `kernel`), `library`, `allocation`, `check`, `free`, or `other`.
        target: what is called, of a launch or a library call.
    """

    first: int
    last: int
    kind: str
    target: str = ""


def with_marks(
    namespace: Mapping[str, Any],
    text: str,
    names: Collection[str],
    kernels: Collection[str],
    clock: Callable[[], int] = time.perf_counter_ns,
) -> tuple[dict[str, Any], list[Line], list[tuple[int, int]]]:
    """Define the wrapper of a bench file once more, with marks, in a copy of its namespace.

    Args:
        namespace: of the loaded file. text: the file.
        names: what the wrapper consists of, at the top level of the file: `Runner`, `runner`, `call`.
        kernels: names of generated kernels.
        clock: what a mark reads, in nanoseconds.

    Returns:
        the new namespace, whose `call` has marks; its lines, by the number in a mark; and the list of marks,
        which each call goes on with: the number of a line, and nanoseconds of `clock`.
    """
    marks: list[tuple[int, int]] = []
    marker = _Marker(kernels)
    body: list[ast.stmt] = []
    anew: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name in names:
            body.append(marker.function(node, first=node.name == "call"))
        elif isinstance(node, ast.ClassDef) and node.name in names:
            methods = [
                marker.function(part, first=part.name == "call")
                if isinstance(part, ast.FunctionDef) and part.name not in METHODS
                else part
                for part in node.body
            ]
            node.body = list(methods)
            body.append(node)
        elif isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name):
            parts = {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
            if target.id in names and parts & anew:  # not a constant, which has been given its value
                body.append(node)
                anew.add(target.id)
            continue
        else:
            continue
        anew.add(node.name)
    module = ast.fix_missing_locations(ast.Module(body, []))
    fresh = {**namespace, "probe_mark": marks.append, "probe_clock": clock}
    exec(compile(module, str(namespace.get("__file__", "")), "exec"), fresh)  # noqa: S102 - the file's own
    return fresh, marker.lines, marks


class _Marker:
    def __init__(self, kernels: Collection[str]) -> None:
        self.lines: list[Line] = []
        self._kernels = kernels

    def function(self, node: ast.FunctionDef, *, first: bool) -> ast.FunctionDef:
        """Put marks into a function; with `first` the two that nothing is between."""
        empty = [_mark(MARK, node), _mark(MARK, node)] if first else []
        node.body = [*empty, *self._marked(node.body)]
        return node

    def _marked(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        group: list[ast.stmt] = []
        for node in [*body, None]:
            if group and (node is None or node.lineno > (group[-1].end_lineno or 0)):
                made += [_mark(self._line(group), group[0]), *map(self._inside, group)]
                group = []
            if node is not None:
                group.append(node)
        return made

    def _inside(self, node: ast.stmt) -> ast.stmt:
        """Put marks into the blocks of a statement that has some."""
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            return node
        for name in ("body", "orelse", "finalbody"):
            if block := getattr(node, name, None):
                marked = self._marked(block)
                if isinstance(node, ast.With):  # what leaving it takes belongs to its line
                    marked.append(_mark(len(self.lines), node))
                    self.lines.append(Line(node.lineno, node.lineno, "other"))
                setattr(node, name, marked)
        return node

    def _line(self, group: list[ast.stmt]) -> int:
        """Note a line; return its number."""
        first, last = group[0].lineno, max(node.end_lineno or node.lineno for node in group)
        if hasattr(group[0], "body"):
            last = first
            kind, target = "other", ""
        else:
            kind, target = self._kind(group)
        self.lines.append(Line(first, last, kind, target))
        return len(self.lines) - 1

    def _kind(self, group: list[ast.stmt]) -> tuple[str, str]:
        called = [name for node in group for name in _called(node)]
        for name in called:
            if (kernel := name.removesuffix(".run")) in self._kernels:
                return "launch", kernel
        for name in called:
            if name.startswith(LIBRARIES) and not name.endswith(NOT_WORK):
                return "library", name
        if any(name in ALLOCATORS or name.endswith(NOT_WORK[0]) for name in called):
            return "allocation", ""
        if any(name in CHECKS for name in called):
            return "check", ""
        return ("free" if all(isinstance(node, ast.Delete) for node in group) else "other"), ""


def _called(node: ast.AST) -> Iterator[str]:
    yield from (ast.unparse(part.func) for part in ast.walk(node) if isinstance(part, ast.Call))


def _mark(number: int, place: ast.stmt) -> ast.stmt:
    node = ast.parse(f"probe_mark(({number}, probe_clock()))").body[0]
    for part in ast.walk(node):
        if isinstance(part, (ast.expr, ast.stmt)):
            part.lineno = part.end_lineno = place.lineno
            part.col_offset = part.end_col_offset = 0
    return node
