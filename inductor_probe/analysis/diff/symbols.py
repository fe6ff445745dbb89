"""Symbols, sizes and indices in a form that does not depend on how a torch version spells them.

Torch calls the same symbolic size `s0` or `s77`, prints the factors of a product in the order of their names,
and sets its brackets differently from release to release.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.index import parse_index
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import Dim

_SYMBOL = re.compile(r"\b[su]\d+\b")


class Symbols:
    """The symbols of one graph, numbered in the order in which its inputs name them."""

    def __init__(self, graph: CompiledGraph) -> None:
        self._names: dict[str, str] = {}
        for text in _texts(graph):
            for symbol in _SYMBOL.findall(text):
                # The letter stays: a backed size is not the same as an unbacked one.
                self._names.setdefault(symbol, f"{symbol[0]}_{len(self._names)}")

    def rename(self, text: str) -> str:
        """Return `text` with the graph's symbols under their numbers."""
        if not self._names:
            return text
        return _SYMBOL.sub(lambda match: self._names.get(match[0], match[0]), text)

    def dim(self, dim: Dim) -> str:
        """Return a size or stride in normal form."""
        return str(dim) if isinstance(dim, int) else normal_index(self.rename(dim))

    def dims(self, dims: Iterable[Dim] | None) -> tuple[str, ...] | None:
        """Return sizes or strides in normal form."""
        return None if dims is None else tuple(self.dim(dim) for dim in dims)


@lru_cache(maxsize=65536)
def normal_index(text: str) -> str:
    """Return an index expression as a sorted sum of products; as it is when it is no expression."""
    try:
        index = parse_index(text)
    except ValueError:
        return " ".join(text.split())
    products = ["*".join([str(value), *factors]) for factors, value in index.terms]
    return " + ".join(products) or "0"


def _texts(graph: CompiledGraph) -> Iterable[str]:
    """Yield what names symbols, in an order that does not depend on their names."""
    for placeholder in graph.fx.inputs if graph.fx else ():
        yield placeholder.type or ""
    for allocation in graph.code.allocations if graph.code else ():
        if allocation.kind == "input" and allocation.layout:
            for dim in (*(allocation.layout.size or ()), *(allocation.layout.stride or ())):
                yield str(dim)
    for leaf in index_of(graph).nodes.leaves:
        for _, dim in leaf.body.var_ranges if leaf.body else ():
            yield str(dim)
