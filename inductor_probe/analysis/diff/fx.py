"""Which FX nodes and inputs of two graphs are the same.

Two nodes are the same when they apply the same operation to the same values: values are numbered from the
inputs on, in a table that both graphs share (global value numbering), so that equal numbers are a proof and
not a guess. With inputs 0 and 1 in both, `mul = x * y` of A and `mul_3 = a * b` of B both are 2.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable

from msgspec import Struct

from inductor_probe.analysis.diff.normal_forms import Symbols
from inductor_probe.analysis.diff.pairing import pair_by_levels, pair_equal
from inductor_probe.analysis.operators import operator
from inductor_probe.model.diff import Count
from inductor_probe.model.fx import FxGraph
from inductor_probe.model.record import collected

_NAME = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")


class FxMatch(Struct, frozen=True):
    """FX nodes and inputs of A by their partner in B.

    `outputs_a` and `outputs_b` have the number of each value that is returned, None for None; a number that
    both have is the same value.
    """

    inputs: dict[str, str]
    nodes: dict[str, str]
    outputs_a: list[int | None]
    outputs_b: list[int | None]


def match_fx(a: FxGraph | None, b: FxGraph | None, symbols_a: Symbols, symbols_b: Symbols) -> FxMatch:
    """Match two FX graphs; nothing is matched when one is missing."""
    if a is None or b is None:
        return FxMatch({}, {}, [None] * len(a.outputs if a else ()), [None] * len(b.outputs if b else ()))
    inputs = _match_inputs(a, b, symbols_a, symbols_b)
    table: dict[Hashable, int] = {name: number for number, name in enumerate(inputs)}
    values_a = _values(a, symbols_a, table, {name: table[name] for name in inputs})
    values_b = _values(b, symbols_b, table, {other: table[name] for name, other in inputs.items()})
    names_a, names_b = ([node.name for node in graph.nodes] for graph in (a, b))
    outputs_a, outputs_b = (
        [values.get(name) if name else None for name in graph.outputs]
        for graph, values in ((a, values_a), (b, values_b))
    )
    nodes = dict(pair_equal(names_a, names_b, values_a.get, values_b.get))
    return FxMatch(inputs, nodes, outputs_a, outputs_b)


def changed_operations(a: FxGraph | None, b: FxGraph | None) -> tuple[Count, ...]:
    """Return the operations that the graphs do not use equally often, with their counts."""
    if a is None or b is None:
        return ()
    counts_a, counts_b = (Counter(str(operator(node.target)) for node in graph.nodes) for graph in (a, b))
    names = dict.fromkeys([*counts_a, *counts_b])
    return tuple(
        Count(name, counts_a[name], counts_b[name]) for name in names if counts_a[name] != counts_b[name]
    )


def _match_inputs(a: FxGraph, b: FxGraph, symbols_a: Symbols, symbols_b: Symbols) -> dict[str, str]:
    """By place where the types agree all along; else by type and use, type and name, type, name, order."""
    keys_a, keys_b = _input_keys(a, symbols_a), _input_keys(b, symbols_b)
    if [keys[3] for keys in keys_a.values()] == [keys[3] for keys in keys_b.values()]:
        return dict(zip(keys_a, keys_b, strict=True))
    return pair_by_levels(keys_a, keys_b)


def _input_keys(graph: FxGraph, symbols: Symbols) -> dict[str, tuple[Hashable, ...]]:
    uses = collected(
        (name, (str(operator(node.target)), place))
        for node in graph.nodes
        for place, name in enumerate(node.inputs)
    )
    keys: dict[str, tuple[Hashable, ...]] = {}
    for node in graph.inputs:
        name, type_ = node.name, symbols.rename(node.type or "")
        use, is_number = tuple(sorted(uses.get(name, ()))), type_[:3] == "Sym"
        by_type = (type_, use, name), (type_, use), (type_, name), type_
        keys[name] = (*by_type, (is_number, name), is_number)
    return keys


def _values(
    graph: FxGraph, symbols: Symbols, table: dict[Hashable, int], values: dict[str, int]
) -> dict[str, int]:
    """Number what each input and node of a graph holds; inputs without a partner get numbers of their own."""
    for placeholder in graph.inputs:
        if placeholder.name not in values:
            values[placeholder.name] = table.setdefault((id(graph), placeholder.name), len(table))
    for node in graph.nodes:
        arguments = symbols.rename(node.arguments)
        text = _NAME.sub(lambda match: f"%{values.get(match[0], match[0])}", arguments)
        key = (str(operator(node.target)), "".join(text.split()))
        values[node.name] = table.setdefault(key, len(table))
    return values
