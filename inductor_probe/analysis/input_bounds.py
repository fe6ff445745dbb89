"""Which values the inputs of a graph may take: what its operations ask of their arguments, followed back.

An index has to lie inside the dimension that it picks from, a divisor must not be zero, a shift stays below
the width of its type. Such a need is carried from the operation back to the graph's inputs, through the
operations that only move values or add and multiply constants.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from inductor_probe.analysis.input_needs import needs_of
from inductor_probe.analysis.operator_call import Call, Need
from inductor_probe.analysis.operators import operator
from inductor_probe.analysis.tensor_type import INTEGERS, TensorType, parse_type
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fx import FxGraph, FxNode
from inductor_probe.model.ir import Dim
from inductor_probe.model.layouts import InputBound

# Operations that move values and keep them: the need of the result is that of the first argument.
_MOVES = frozenset(
    (
        *("view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "expand", "permute", "transpose", "t"),
        *("slice", "select", "clone", "alias", "detach", "lift_fresh", "lift_fresh_copy", "repeat", "flip"),
        *("as_strided", "unbind", "split", "split_with_sizes", "chunk", "unfold", "roll", "contiguous"),
        *(
            "convert_element_type",
            "_to_copy",
            "sort",
            "topk",
            "amax",
            "amin",
            "max",
            "min",
            "cummax",
            "cummin",
        ),
        *("rev", "diagonal", "select_copy", "squeeze_copy", "view_copy", "copy", "index_select", "gather"),
        *("index", "_unsafe_index", "constant_pad_nd", "force_stride_order", "broadcast_in_dim"),
        *("masked_select", "masked_fill", "_local_scalar_dense"),
    )
)
# Those that keep their order as well.
_COPIES = frozenset(("clone", "alias", "detach", "convert_element_type", "_to_copy", "lift_fresh_copy"))
# Whatever goes in, what comes out is inside bounds of its own, or no number to pick with.
_ENDS = frozenset(
    (
        *("clamp", "clamp_min", "clamp_max", "remainder", "fmod", "eq", "ne", "lt", "le", "gt", "ge", "sign"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "logical_and", "logical_or"),
        *("logical_not", "logical_xor", "isnan", "any", "all", "argmax", "argmin", "sym_size", "iota"),
        *("arange", "full", "zeros_like", "ones_like", "full_like", "empty_like", "new_zeros"),
        *("bucketize", "searchsorted"),
    )
)


def input_bounds(graph: CompiledGraph) -> tuple[InputBound, ...]:
    """Return what is known of inputs, in calling order; those that may be anything are left out.

    Empty when the dump has no FX graph.
    """
    if graph.fx is None:
        return ()
    search = _Search(graph.fx)
    search.run()
    return tuple(
        InputBound(each.name, need.low, need.high, need.operator, need.form, each.name in search.lost)
        for each in graph.fx.inputs
        if each.name in search.types
        if (need := search.needs.get(each.name, Need())) != Need() or each.name in search.lost
    )


class _Search:
    """Carries needs back through a graph, from its last node to its first."""

    def __init__(self, fx: FxGraph) -> None:
        self.fx = fx
        self.types = {
            node.name: type_ for node in (*fx.inputs, *fx.nodes) if (type_ := parse_type(node.type))
        }
        self.needs: dict[str, Need] = {}
        self.lost: set[str] = set()

    def run(self) -> None:
        for node in reversed(self.fx.nodes):
            call = _call(node, self.types)
            wanted = self.needs.get(node.name)
            if call is not None:
                for name, need in needs_of(call):
                    self._add(name, need)
            if wanted is not None:
                self._back(node, call, wanted)
            elif node.name in self.lost:
                self.lost.update(self._integers(node.inputs))

    def _back(self, node: FxNode, call: Call | None, need: Need) -> None:
        for name, before in _before(node, call, need, self.types):
            self._add(name, before)
            if before == Need():
                self.lost.add(name)

    def _add(self, name: str, need: Need) -> None:
        self.needs[name] = self.needs.get(name, Need()).both(need)

    def _integers(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name in self.types and self.types[name].dtype in INTEGERS]


def _call(node: FxNode, types: dict[str, TensorType]) -> Call | None:
    """Parse the arguments of a node that calls an operator."""
    if not node.target.startswith("torch.ops."):
        return None
    try:
        tree = ast.parse(f"f({node.arguments})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # a damaged line: the reader reports those
    if not isinstance(tree, ast.Call):
        return None
    called = operator(node.target)
    named = {keyword.arg: keyword.value for keyword in tree.keywords if keyword.arg}
    return Call(called.name, called.overload, tuple(tree.args), named, types, types.get(node.name))


def _before(
    node: FxNode, call: Call | None, need: Need, types: dict[str, TensorType]
) -> Iterable[tuple[str, Need]]:
    """Return what `need` of a node's result asks of its arguments; an empty one says that it is lost."""
    if node.target == "[]":
        yield from ((name, need) for name in node.inputs[:1])
        return
    if call is None:
        return
    kind = call.op.removesuffix("_")
    plain = Need(need.low, need.high, need.operator)  # an order does not outlive a change of shape or value
    if kind in ("cat", "stack", "where", "maximum", "minimum", "masked_scatter"):
        arguments = call.args[1:] if kind == "where" else call.args[:2]
        for argument in arguments:
            yield from ((name, plain) for name in call.names(argument))
    elif kind in _MOVES:
        yield from ((name, need if kind in _COPIES else plain) for name in call.names(call.argument(0)))
    elif kind in ("add", "sub", "mul", "floor_divide", "div", "neg"):
        yield from _arithmetic(kind, call, plain)
    elif kind not in _ENDS:
        yield from (
            (name, Need())
            for name in dict.fromkeys(each for argument in call.args for each in call.names(argument))
            if name in types and types[name].dtype in INTEGERS
        )


def _arithmetic(kind: str, call: Call, need: Need) -> Iterable[tuple[str, Need]]:
    """Solve `low <= x + c <= high` for x, and the like; of two unknown terms each gets half."""
    left, right = call.argument(0), call.argument(1)
    names = [*call.names(left), *call.names(right)]
    constant = call.number(right)
    if constant is None and kind in ("add", "mul") and (swapped := call.number(left)) is not None:
        constant, left = swapped, right
    low, high = need.low, need.high
    solved: tuple[Dim | None, Dim | None] | None = None
    if constant is not None and kind in ("add", "sub"):
        shift = -constant if kind == "add" else constant
        solved = _plus(low, shift), _plus(high, shift)
    elif constant is not None and constant > 0 and kind == "mul" and not isinstance(high, str):
        solved = None if low is None else -(-int(low) // constant), None if high is None else high // constant
    elif constant is not None and constant > 0 and kind in ("floor_divide", "div"):
        solved = _times(low, constant), _plus(_times(high, constant), constant - 1)
    elif constant is None and kind == "add" and isinstance(high, int):
        solved = low, high // 2
    if solved is None:
        yield from ((name, Need()) for name in names)
        return
    yield from ((name, Need(*solved, need.operator)) for name in names)


def _plus(value: Dim | None, number: int) -> Dim | None:
    if value is None or not number:
        return value
    return value + number if isinstance(value, int) else f"{value} {'-' if number < 0 else '+'} {abs(number)}"


def _times(value: Dim | None, number: int) -> Dim | None:
    if value is None:
        return None
    return value * number if isinstance(value, int) else f"({value})*{number}"
