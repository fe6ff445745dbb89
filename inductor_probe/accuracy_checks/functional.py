"""A graph in which no operator writes to its operands: one that does gives what it wrote, in copies.

So each value of a graph has one name. Of an operator of the user's own, `add_into(x, out)`, which torch calls
in place at the end of its passes (`decompose_auto_functionalized`):

    full_default = aten.full(...)               full_default = aten.full(...)
    add_into_default = mine.add_into(           add_into_default = Written(mine.add_into)(
        sin, full_default)                          sin, full_default)
    ...                                         add_into_default_full_default = add_into_default[0]
    return full_default                         return add_into_default_full_default
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

_TRITON = "triton_kernel_wrapper_mutation"


class Written:
    """Calls an operator on copies of what it writes; returns those, in the order of its operands.

    Args:
        places: among its operands, flat, those that it writes.
    """

    def __init__(self, target: Any, places: tuple[int, ...]) -> None:
        self.target, self._places = target, places
        self.__name__ = str(getattr(target, "__name__", target))

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return what it wrote."""
        flat, spec = tree_flatten((args, kwargs))
        for place in self._places:
            flat[place] = flat[place].clone()
        args, kwargs = tree_unflatten(flat, spec)
        self.target(*args, **kwargs)
        return tuple(flat[place] for place in self._places)


def written_name(node: str, operand: str) -> str:
    """Return the name of what a node wrote to an operand."""
    return f"{node}_{operand}"


def writes_only(node: Any) -> bool:
    """Whether a node calls an operator that returns nothing, and writes to its operands."""
    if node.op != "call_function":
        return False
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return getattr(node.target, "__name__", "") == _TRITON
    return not schema.returns and any(_is_written(one) for one in schema.arguments)


def written_places(target: Any) -> set[int]:
    """Return which arguments an operator writes, by their places."""
    schema = getattr(target, "_schema", None)
    arguments = schema.arguments if schema is not None else ()
    return {place for place, one in enumerate(arguments) if _is_written(one)}


def functional(graph: Any) -> Any:
    """Return a graph whose operators write to none of their operands; the same one, where they do not."""
    if not any(writes_only(node) or _out_of_place(node) for node in graph.graph.nodes):
        return graph
    made, now = torch.fx.Graph(), dict[Any, Any]()
    for node in graph.graph.nodes:
        copy = now[node] = made.node_copy(node, now.__getitem__)
        copy.target = _out_of_place(node) or copy.target
        if not writes_only(node):
            continue
        places = [*_places(node)]
        copy.target = Written(node.target, tuple(place for place, _ in places))
        for number, (_, operand) in enumerate(places):
            value = made.call_function(operator.getitem, (copy, number))
            value.name = written_name(node.name, operand.name)
            value.meta = {**node.meta, "val": operand.meta.get("val")}
            now[operand] = value
    return torch.fx.GraphModule(graph, made)


def _out_of_place(node: Any) -> Any:
    """Return the operator that gives what one in place leaves: `aten.index_put` of `aten.index_put_`.

    None of others. A copy to an input, with which a graph ends, stays as it is.
    """
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.returns or not any(map(_is_written, schema.arguments)):
        return None
    packet = node.target.overloadpacket
    name = packet.__name__
    if not name.endswith("_") or name == "copy_":
        return None
    other = getattr(getattr(torch.ops, node.target.namespace), name[:-1], None)
    return getattr(other, node.target._overloadname, None)


def _places(node: Any) -> Iterator[tuple[int, Any]]:
    """Yield the operands that a node writes: of a kernel of the user's own in Triton it may be each."""
    flat, _ = tree_flatten((node.args, node.kwargs))
    schema = getattr(node.target, "_schema", None)
    names = [one.name for one in schema.arguments if _is_written(one)] if schema is not None else []
    order = [one.name for one in schema.arguments] if schema is not None else []
    given = {**dict(zip(order, node.args, strict=False)), **node.kwargs}
    wanted = [given.get(name) for name in names] if schema is not None else flat
    wanted, _ = tree_flatten(wanted)
    for place, one in enumerate(flat):
        is_tensor = isinstance(one, torch.fx.Node) and isinstance(one.meta.get("val"), torch.Tensor)
        if is_tensor and any(one is other for other in wanted):
            yield place, one


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write
