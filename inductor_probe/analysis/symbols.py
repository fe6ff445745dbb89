"""Sizes as FX prints them (`f32[4, s77]`), and what each symbolic size stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import prod

from msgspec import Struct

from inductor_probe.analysis.graph import once_per_graph
from inductor_probe.analysis.index import SYMBOL, all_numbers, value_of
from inductor_probe.backends.brackets import split_arguments
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import Dim, as_dim
from inductor_probe.model.layouts import Symbol

INTEGERS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "u16": 16, "u32": 32, "u64": 64}
"""Integer types as FX abbreviates them (`dtype_abbrs` in torch/utils/_dtype_abbrs.py), and their bits."""

_TYPE = re.compile(r"(?P<dtype>[a-z]+\d\w*)\[(?P<size>[^\]]*)\].*")


class TensorType(Struct, frozen=True):
    """A tensor's type: `dtype` as FX abbreviates it, `size` in numbers and symbolic expressions."""

    dtype: str
    size: tuple[Dim, ...]


def parse_type(text: str | None) -> TensorType | None:
    """Parse the printed type of an FX node; None for anything but one tensor."""
    match = _TYPE.fullmatch(text or "")
    if match is None:
        return None
    return TensorType(match["dtype"], tuple(_dim(part) for part in split_arguments(match["size"])))


def _dim(text: str) -> Dim:
    size = as_dim(text.removeprefix("-"))
    return text if isinstance(size, str) else -size if text.startswith("-") else size


def numel(size: Iterable[Dim]) -> Dim:
    """Return the number of elements: `6` for (2, 3), `(s0)*(3)` for (s0, 3)."""
    size = tuple(size)
    numbers = all_numbers(size)
    return "*".join(f"({length})" for length in size) if numbers is None else prod(numbers)


@once_per_graph
def symbols(graph: CompiledGraph) -> tuple[Symbol, ...]:
    """Return the symbolic sizes of a graph, in the order in which its inputs name them.

    FX prints an input as `arg0_1: "Sym(s77)"` and as `arg2_1: "f32[s77, s27]"`; the wrapper names the number
    (`s77 = arg0_1`). A size of a tensor says more than the number that is passed beside it. Values are those
    of the manifest, else those that the runnable begins with.
    """
    passed = set(graph.code.inputs) if graph.code else set()
    sources: dict[str, str | None] = {
        symbol.name: symbol.value if symbol.value.partition(".")[0] in passed else None
        for symbol in (graph.code.symbols if graph.code else ())
        if SYMBOL.fullmatch(symbol.name)
    }
    values = dict(graph.runnable.symbols) if graph.runnable else {}
    facts = {fact.name: fact for fact in graph.record.inputs} if graph.record else {}
    of_tensors: dict[str, str] = {}
    order: dict[str, None] = {}
    for placeholder in graph.fx.inputs if graph.fx else ():
        fact, tensor = facts.get(placeholder.name), parse_type(placeholder.type)
        # of a tensor its sizes: `u8[4, 3]` has a dtype that looks like a symbol
        text = " ".join(map(str, tensor.size)) if tensor else placeholder.type or ""
        names = SYMBOL.findall(text)
        order.update(dict.fromkeys(names))
        if tensor is None and fact is not None and fact.value is not None:
            values.update(dict.fromkeys(names, fact.value))
        for dim, size in enumerate(tensor.size if tensor else ()):
            if isinstance(size, str) and SYMBOL.fullmatch(size):
                of_tensors.setdefault(size, f"{placeholder.name}.size({dim})")
                if fact is not None and fact.size is not None and dim < len(fact.size):
                    values[size] = fact.size[dim]
    return tuple(
        Symbol(name, of_tensors.get(name, sources.get(name)), values.get(name))
        for name in dict.fromkeys([*order, *sources])
    )


def symbol_values(graph: CompiledGraph) -> dict[str, int]:
    """Return what the symbolic sizes of a graph were when it was compiled, as far as that is known."""
    return {symbol.name: symbol.value for symbol in symbols(graph) if symbol.value is not None}


def used_symbols(graph: CompiledGraph, *sizes: Dim | None) -> tuple[Symbol, ...]:
    """Return the symbols that sizes name."""
    names = {name for size in sizes if isinstance(size, str) for name in SYMBOL.findall(size)}
    return tuple(symbol for symbol in symbols(graph) if symbol.name in names) if names else ()


def recorded(size: Dim | None, known: Iterable[Symbol]) -> int | None:
    """Return what a symbolic size was when the graph was compiled; None for a number, or where not known."""
    if not isinstance(size, str):
        return None
    return value_of(size, {symbol.name: symbol.value for symbol in known if symbol.value is not None})
