"""What each symbolic size stands for, and what bytes were with the recorded values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from inductor_probe.analysis.expression import evaluate, parse_expression
from inductor_probe.analysis.graph import once_per_graph
from inductor_probe.analysis.tensor_type import parse_type
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import Dim
from inductor_probe.model.layouts import Symbol

_SYMBOL = re.compile(r"\b[su]\d+\b")


@once_per_graph
def symbols(graph: CompiledGraph) -> tuple[Symbol, ...]:
    """Return the symbolic sizes of a graph, in the order in which its inputs name them.

    FX prints an input as `arg0_1: "Sym(s77)"` and as `arg2_1: "f32[s77, s27]"`; the wrapper names the number
    (`s77 = arg0_1`). A size of a tensor says more than the number that is passed beside it. Values are those
    of the manifest, else those that the runnable begins with.
    """
    numbers = {} if graph.code is None else {symbol.name: symbol.value for symbol in graph.code.symbols}
    passed = set(graph.code.inputs) if graph.code else set()
    sources: dict[str, str | None] = {
        name: value if value in passed else None for name, value in numbers.items() if _SYMBOL.fullmatch(name)
    }
    values = dict(graph.runnable.symbols) if graph.runnable else {}
    facts = {fact.name: fact for fact in graph.record.inputs} if graph.record else {}
    of_tensors: dict[str, str] = {}
    order: dict[str, None] = {}
    for placeholder in graph.fx.inputs if graph.fx else ():
        fact, tensor = facts.get(placeholder.name), parse_type(placeholder.type)
        order.update(dict.fromkeys(_SYMBOL.findall(placeholder.type or "")))
        if tensor is None and fact is not None and fact.value is not None:
            for name in _SYMBOL.findall(placeholder.type or ""):
                values[name] = fact.value
        for dim, size in enumerate(tensor.size if tensor else ()):
            if isinstance(size, str) and _SYMBOL.fullmatch(size):
                of_tensors.setdefault(size, f"{placeholder.name}.size({dim})")
                if fact is not None and fact.size is not None and dim < len(fact.size):
                    values[size] = fact.size[dim]
    names = dict.fromkeys([*order, *sources])
    return tuple(Symbol(name, of_tensors.get(name, sources.get(name)), values.get(name)) for name in names)


def used_symbols(graph: CompiledGraph, sizes: Iterable[Dim | None]) -> tuple[Symbol, ...]:
    """Return the symbols that sizes name."""
    texts = [size for size in sizes if isinstance(size, str)]
    if not texts:  # fixed shapes are the rule: nothing to work out
        return ()
    named = {name for text in texts for name in _SYMBOL.findall(text)}
    return tuple(symbol for symbol in symbols(graph) if symbol.name in named)


def recorded(size: Dim | None, known: Iterable[Symbol]) -> int | None:
    """Return what a symbolic size was when the graph was compiled; None for a number, or where not known."""
    if not isinstance(size, str):
        return None
    return value_of(size, {symbol.name: symbol.value for symbol in known if symbol.value is not None})


def value_of(size: Dim | None, values: Mapping[str, int]) -> int | None:
    """Return a size as a number; None where it names something that `values` does not hold."""
    if not isinstance(size, str):
        return size
    try:
        return evaluate(parse_expression(size), values)
    except ValueError:
        return None
