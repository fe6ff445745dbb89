"""Which FX nodes and inputs of two graphs are the same.

Two nodes are the same when they apply the same operation to the same values: values are numbered from the
inputs on, in a table that both graphs share, so that equal numbers are a proof and not a guess.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from inductor_probe.analysis.diff.symbols import Symbols
from inductor_probe.analysis.operators import operator
from inductor_probe.model.diff import Count
from inductor_probe.model.fx import FxGraph, FxNode

_NAME = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")

Table = dict[tuple[object, ...], int]


@dataclass(frozen=True, slots=True)
class FxMatch:
    """FX nodes and inputs of A by their partner in B.

    `values_a` and `values_b` number what each node computes; a number that both have is the same value.
    """

    inputs: dict[str, str]
    nodes: dict[str, str]
    values_a: dict[str, int]
    values_b: dict[str, int]

    def output_values(
        self, a: FxGraph | None, b: FxGraph | None
    ) -> tuple[list[int | None], list[int | None]]:
        """Return the number of each returned value, None for None."""
        return _returned(a, self.values_a), _returned(b, self.values_b)


def _returned(graph: FxGraph | None, values: dict[str, int]) -> list[int | None]:
    return [values.get(name) if name else None for name in graph.outputs] if graph else []


def match_fx(a: FxGraph | None, b: FxGraph | None, symbols_a: Symbols, symbols_b: Symbols) -> FxMatch:
    """Match two FX graphs; nothing is matched when one is missing."""
    if a is None or b is None:
        return FxMatch({}, {}, {}, {})
    inputs = _match_inputs(a, b, symbols_a, symbols_b)
    table: Table = {}
    start_a: dict[str, int] = {}
    start_b: dict[str, int] = {}
    for name, other in inputs.items():
        start_a[name] = start_b[other] = len(table)
        table["input", name] = len(table)
    values_a = _values(a, symbols_a, table, start_a, "a")
    values_b = _values(b, symbols_b, table, start_b, "b")
    by_value: dict[int, list[str]] = {}
    for node in b.nodes:
        by_value.setdefault(values_b[node.name], []).append(node.name)
    nodes: dict[str, str] = {}
    for waiting in by_value.values():
        waiting.reverse()
    for node in a.nodes:
        if others := by_value.get(values_a[node.name]):
            nodes[node.name] = others.pop()
    return FxMatch(inputs, nodes, values_a, values_b)


def changed_operations(a: FxGraph | None, b: FxGraph | None) -> tuple[Count, ...]:
    """Return the operations that the graphs do not use equally often, with their counts."""
    if a is None or b is None:
        return ()
    counts_a = Counter(str(operator(node.target)) for node in a.nodes)
    counts_b = Counter(str(operator(node.target)) for node in b.nodes)
    names = dict.fromkeys([*counts_a, *counts_b])
    return tuple(
        Count(name, counts_a[name], counts_b[name]) for name in names if counts_a[name] != counts_b[name]
    )


def _match_inputs(a: FxGraph, b: FxGraph, symbols_a: Symbols, symbols_b: Symbols) -> dict[str, str]:
    """By place where the types agree all along; else by type and use, type and name, type, name, order."""
    left_a, left_b = list(a.inputs), list(b.inputs)
    types_a = [symbols_a.rename(node.type or "") for node in left_a]
    if types_a == [symbols_b.rename(node.type or "") for node in left_b]:
        return {mine.name: other.name for mine, other in zip(left_a, left_b, strict=True)}
    uses_a, uses_b = _uses(a), _uses(b)
    matched: dict[str, str] = {}
    for with_type, with_use, with_name in (
        (True, True, True),
        (True, True, False),
        (True, False, True),
        (True, False, False),
        (False, False, True),
        (False, False, False),
    ):

        def key(node: FxNode, symbols: Symbols, uses: dict[str, object]) -> tuple[object, ...]:
            text = node.type or ""
            kind = symbols.rename(text) if with_type else text[:3] == "Sym"  # noqa: B023 - used in this round
            use = uses.get(node.name) if with_use else None  # noqa: B023
            return kind, use, node.name if with_name else ""  # noqa: B023

        waiting: dict[tuple[object, ...], list[FxNode]] = {}
        for node in reversed(left_b):
            waiting.setdefault(key(node, symbols_b, uses_b), []).append(node)
        for node in left_a:
            if others := waiting.get(key(node, symbols_a, uses_a)):
                matched[node.name] = others.pop().name
        taken = set(matched.values())
        left_a = [node for node in left_a if node.name not in matched]
        left_b = [node for node in left_b if node.name not in taken]
    return matched


def _uses(graph: FxGraph) -> dict[str, object]:
    uses: dict[str, list[tuple[str, int]]] = {}
    for node in graph.nodes:
        for at, name in enumerate(node.inputs):
            uses.setdefault(name, []).append((str(operator(node.target)), at))
    return {name: tuple(sorted(found)) for name, found in uses.items()}


def _values(
    graph: FxGraph, symbols: Symbols, table: Table, values: dict[str, int], side: str
) -> dict[str, int]:
    for placeholder in graph.inputs:
        if placeholder.name not in values:
            values[placeholder.name] = table.setdefault((side, placeholder.name), len(table))
    for node in graph.nodes:
        arguments = symbols.rename(node.arguments)
        text = _NAME.sub(lambda match: f"%{values.get(match[0], match[0])}", arguments)
        key = (str(operator(node.target)), "".join(text.split()))
        values[node.name] = table.setdefault(key, len(table))
    return values
