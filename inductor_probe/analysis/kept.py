"""Conclusions about the graphs asked for last, kept: a page and its looks ask for the same ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from inductor_probe.model.debug_dir import CompiledGraph

Conclusion = TypeVar("Conclusion")
_GRAPHS = 2


@dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """A graph that equals itself only: comparing all that was read would take longer than concluding."""

    graph: CompiledGraph

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.graph is self.graph

    def __hash__(self) -> int:
        return id(self.graph)


def kept(conclude: Callable[[CompiledGraph], Conclusion]) -> Callable[[CompiledGraph], Conclusion]:
    """Return `conclude` with a memory of the last graphs."""

    @lru_cache(maxsize=_GRAPHS)
    def of_same(same: _Same) -> Conclusion:
        return conclude(same.graph)

    return lambda graph: of_same(_Same(graph))
