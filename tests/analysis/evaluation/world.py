"""What stands in memory, the points at which it is asked for, and what was stored there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from inductor_probe.analysis.index import evaluate, parse_expression
from inductor_probe.model.ir import BufferLayout, SchedulerNode
from tests.analysis.evaluation.operations import INTEGERS, cast, made_up


class NotEvaluatedError(Exception):
    """An index with a function that only sympy knows."""


@dataclass
class World:
    """What stands in memory.

    Attributes:
        layouts: of the buffers, as far as printed.
        loaded: the places that were loaded from.
    """

    layouts: dict[str, BufferLayout]
    loaded: set[tuple[str, int]] = field(default_factory=set)

    def load(self, buffer: str, place: int) -> Any:
        self.loaded.add((buffer, place))
        layout = self.layouts.get(buffer)
        dtype = layout.dtype if layout else None
        number = made_up(buffer, place)
        if dtype == "bool":
            return number > 0
        if dtype in INTEGERS or dtype is None:
            return abs(int(number * 3))
        return cast(number, "f32")

    def size(self, size: int | str) -> int:
        return size if isinstance(size, int) else self.index(size, {})

    def index(self, text: str, values: dict[str, Any]) -> int:
        node = parse_expression(text)
        symbols = (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
        numbers = {name: 5 + int(abs(made_up(name)) * 8) for name in symbols}  # one of its own for each
        result = evaluate(node, numbers | {name: int(value) for name, value in values.items()})
        if result is None:
            raise NotEvaluatedError(text)
        return result


Stored = tuple[str, int, str, str | None]


def points(world: World, node: SchedulerNode) -> Iterator[tuple[dict[str, int], list[dict[str, int]]]]:
    """Yield a few points of the outer loops, each with a few points of the reduced ones."""
    assert node.body is not None
    sizes = [(name, world.size(size)) for name, size in node.body.var_ranges]
    reduced = len(node.sizes[1]) if node.sizes and len(node.sizes) > 1 else 0
    outer, inner = sizes[: len(sizes) - reduced], sizes[len(sizes) - reduced :]
    for turn in range(4):
        point = {name: _pick(size, turn, name) for name, size in outer}
        yield (
            point,
            [{name: _pick(size, at, name) for name, size in inner} for at in range(3 if inner else 1)],
        )


def _pick(size: int, turn: int, name: str) -> int:
    return (0, size - 1)[turn] if turn < 2 else int(abs(made_up(name, turn)) * 1e6) % max(size, 1)
