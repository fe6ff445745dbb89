"""Which values the inputs of a graph may take: what its operations ask of their arguments, followed back.

An index has to lie inside the dimension that it picks from, a divisor must not be zero, a shift stays below
the width of its type. Such a need is carried from the operation back to the graph's inputs, through the
operations that only move values or add and multiply constants: a backward dataflow analysis. For example

    add = aten.add(arg1, 2);  embedding = aten.embedding(arg0, add)      arg0: f32[10, 4], arg1: i64[8]

needs 0 <= add <= 9, so -2 <= arg1 <= 7.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.analysis.index import all_numbers
from inductor_probe.analysis.operators import Operator, operator
from inductor_probe.analysis.symbols import INTEGERS, TensorType, numel, parse_type
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fx import FxNode
from inductor_probe.model.ir import Dim
from inductor_probe.model.layouts import Form, InputBound
from inductor_probe.reader.python_text import parse_expression

_MOVES = frozenset((
    "view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "expand", "permute", "transpose", "t",
    "slice", "select", "clone", "alias", "detach", "lift_fresh", "lift_fresh_copy", "repeat", "flip",
    "as_strided", "unbind", "split", "split_with_sizes", "chunk", "unfold", "roll", "contiguous",
    "convert_element_type", "_to_copy", "sort", "topk", "amax", "amin", "max", "min", "cummax",
    "cummin", "rev", "diagonal", "select_copy", "squeeze_copy", "view_copy", "copy", "index_select",
    "gather", "index", "_unsafe_index", "constant_pad_nd", "force_stride_order", "broadcast_in_dim",
    "masked_select", "masked_fill", "_local_scalar_dense",
))  # fmt: skip
"""Operations that move values and keep them: the need of the result is that of the first argument."""
_COPIES = frozenset(("clone", "alias", "detach", "convert_element_type", "_to_copy", "lift_fresh_copy"))
"""Those that keep their order as well."""
_ENDS = frozenset((
    "clamp", "clamp_min", "clamp_max", "remainder", "fmod", "eq", "ne", "lt", "le", "gt", "ge", "sign",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "logical_and", "logical_or",
    "logical_not", "logical_xor", "isnan", "any", "all", "argmax", "argmin", "sym_size", "iota",
    "arange", "full", "zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "bucketize",
    "searchsorted",
))  # fmt: skip
"""Whatever goes in, what comes out is inside bounds of its own, or no number to pick with."""


class _Need(Struct, frozen=True):
    """Bounds of a value, both allowed; None is no bound."""

    low: Dim | None = None
    high: Dim | None = None
    operator: str = ""
    form: Form = "any"

    def both(self, other: _Need) -> _Need:
        """Return the need that satisfies both; the first if none can (a branch that is not taken)."""
        low = _tighter(self.low, other.low, "max")
        high = _tighter(self.high, other.high, "min")
        if isinstance(low, int) and isinstance(high, int) and low > high:
            return self
        form = other.form if self.form == "any" else self.form
        return _Need(low, high, self.operator or other.operator, form)


def _tighter(a: Dim | None, b: Dim | None, choose: str) -> Dim | None:
    if a is None or b is None or a == b:
        return b if a is None else a
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b) if choose == "max" else min(a, b)
    return f"{choose}({a}, {b})"


_Needs = Iterator[tuple[str, _Need]]
Rule = TypeVar("Rule")


class _Call(Struct, frozen=True):
    """A call of an operator in an FX graph: its arguments parsed, and the types of the graph."""

    operator: Operator
    args: tuple[ast.expr, ...]
    named: Mapping[str, ast.expr]
    types: Mapping[str, TensorType]
    result: TensorType | None

    @property
    def kind(self) -> str:
        """The operator, whether it works in place or not."""
        return self.operator.name.removesuffix("_")

    def argument(self, place: int, name: str = "") -> ast.expr | None:
        """Return an argument by its place, or by its name."""
        return self.args[place] if -len(self.args) <= place < len(self.args) else self.named.get(name)

    def names(self, argument: ast.expr | None) -> tuple[str, ...]:
        """Return the tensors that an argument names: one, several in a list, or none."""
        if isinstance(argument, ast.Name):
            return (argument.id,) if argument.id in self.types else ()
        return tuple(name for element in _elements(argument) for name in self.names(element))

    def integers(self, argument: ast.expr | None) -> list[str]:
        """Return those of whole numbers."""
        return [name for name in self.names(argument) if self.types[name].dtype in INTEGERS]

    def size(self, place: int) -> tuple[Dim, ...]:
        """Return the size of the tensor at a place; empty where there is none."""
        names = self.names(self.argument(place))
        return self.types[names[0]].size if names else ()


def _elements(argument: ast.expr | None) -> list[ast.expr]:
    return list(argument.elts) if isinstance(argument, ast.List | ast.Tuple) else []


def _number(argument: ast.expr | None) -> int | None:
    match argument:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
            return -value
    return None


def input_bounds(graph: CompiledGraph) -> tuple[InputBound, ...]:
    """Return what is known of inputs, in calling order; those that may be anything are left out.

    Empty when the dump has no FX graph.
    """
    if graph.fx is None:
        return ()
    fx = graph.fx
    types = {node.name: type_ for node in (*fx.inputs, *fx.nodes) if (type_ := parse_type(node.type))}
    needs: dict[str, _Need] = {}
    lost: set[str] = set()
    for node in reversed(fx.nodes):
        call = _call(node, types)
        need = needs.get(node.name)
        before = [] if need is None else list(_before(node, call, need))
        packet = operator(node.target).packet
        of_call = ((name, replace(other, operator=packet)) for name, other in _needs(call))
        for name, other in (*of_call, *before):
            needs[name] = needs.get(name, _Need()).both(other)
        lost.update(name for name, other in before if other == _Need())
        if need is None and node.name in lost:
            lost.update(name for name in node.inputs if name in types and types[name].dtype in INTEGERS)
    return tuple(
        InputBound(node.name, need.low, need.high, need.operator, need.form, node.name in lost)
        for node in fx.inputs
        if node.name in types
        if (need := needs.get(node.name, _Need())) != _Need() or node.name in lost
    )


def _call(node: FxNode, types: dict[str, TensorType]) -> _Call | None:
    """Parse the arguments of a node that calls an operator."""
    if not node.target.startswith("torch.ops."):
        return None
    try:
        tree = parse_expression(f"f({node.arguments})")
    except ValueError:
        return None  # a damaged line: the reader reports those
    if not isinstance(tree, ast.Call):
        return None
    named = {keyword.arg: keyword.value for keyword in tree.keywords if keyword.arg}
    return _Call(operator(node.target), tuple(tree.args), named, types, types.get(node.name))


def _before(node: FxNode, call: _Call | None, need: _Need) -> _Needs:
    """Yield what `need` of a node's result asks of its arguments; an empty one says that it is lost."""
    if node.target == "[]":
        yield from ((name, need) for name in node.inputs[:1])
        return
    if call is None:
        return
    plain = replace(need, form="any")  # an order does not outlive a change of shape or value
    if call.kind in ("cat", "stack", "where", "maximum", "minimum", "masked_scatter"):
        for argument in call.args[1:] if call.kind == "where" else call.args[:2]:
            yield from ((name, plain) for name in call.names(argument))
    elif call.kind in _MOVES:
        yield from ((name, need if call.kind in _COPIES else plain) for name in call.names(call.argument(0)))
    elif call.kind in ("add", "sub", "mul", "floor_divide", "div", "neg"):
        yield from _arithmetic(call, plain)
    elif call.kind not in _ENDS:
        integers = dict.fromkeys(name for argument in call.args for name in call.integers(argument))
        yield from ((name, _Need()) for name in integers)


def _arithmetic(call: _Call, need: _Need) -> _Needs:
    """Solve `low <= x + c <= high` for x, and the like; of two unknown terms each gets half."""
    left, right = call.argument(0), call.argument(1)
    names = [*call.names(left), *call.names(right)]
    constant = _number(right)
    if constant is None and call.kind in ("add", "mul"):
        constant = _number(left)
    low, high = need.low, need.high
    solved = _Need()
    if constant is not None and call.kind in ("add", "sub"):
        shift = -constant if call.kind == "add" else constant
        solved = replace(need, low=_plus(low, shift), high=_plus(high, shift))
    elif constant is not None and constant > 0 and call.kind == "mul" and not isinstance(high, str):
        least = None if low is None else -(-int(low) // constant)
        solved = replace(need, low=least, high=None if high is None else high // constant)
    elif constant is not None and constant > 0 and call.kind in ("floor_divide", "div"):
        greatest = _plus(_times(high, constant), constant - 1)
        solved = replace(need, low=_times(low, constant), high=greatest)
    elif constant is None and call.kind == "add" and isinstance(high, int):
        solved = replace(need, high=high // 2)
    yield from ((name, solved) for name in names)


def _plus(value: Dim | None, number: int) -> Dim | None:
    if value is None or not number:
        return value
    return value + number if isinstance(value, int) else f"{value} {'-' if number < 0 else '+'} {abs(number)}"


def _times(value: Dim | None, number: int) -> Dim | None:
    if value is None:
        return None
    return value * number if isinstance(value, int) else f"({value})*{number}"


def _needs(call: _Call | None) -> _Needs:
    """Yield what the operator asks of tensors among its arguments, by their names."""
    if call is None:
        return
    if call.kind in _FIXED:
        place, need = _FIXED[call.kind]
        yield from ((name, need) for name in call.names(call.argument(place)))
    elif call.kind in _BELOW:
        place, limit = _BELOW[call.kind]
        yield from _below(call, call.argument(place, "index"), limit(call, place))
    elif call.kind in _RULES:
        yield from _RULES[call.kind](call)


def _below(call: _Call, argument: ast.expr | None, size: Dim | None, low: int = 0) -> _Needs:
    """Bound each tensor in `argument` that holds whole numbers: from `low` to below `size`."""
    if size is not None:
        high = max(size - 1, low) if isinstance(size, int) else f"{size} - 1"
        yield from ((name, _Need(low, high)) for name in call.integers(argument))


def _table(rows: dict[str, Rule]) -> dict[str, Rule]:
    """Return the rule of each operator, of rows by the names of several."""
    return {name: rule for names, rule in rows.items() for name in names.split()}


_FIXED = _table({
    "bincount poisson multinomial": (0, _Need(0)),
    "normal": (1, _Need(0)),
    "bernoulli": (0, _Need(0, 1)),
    "bucketize": (1, _Need(form="sorted")),
    "searchsorted": (0, _Need(form="sorted")),
    "cholesky linalg_cholesky_ex": (0, _Need(form="positive definite")),
})  # fmt: skip
"""By operator, the place of an argument and what it needs whatever the others are."""


def _size_along_dim(call: _Call, _: int) -> Dim | None:
    """`gather(self, dim, index)`."""
    dim, size = _number(call.argument(1, "dim")), call.size(0)
    if dim is None or not call.names(call.argument(0)):
        return None
    return _at(size, dim) if size else 1


def _at(size: tuple[Dim, ...], dim: int) -> Dim | None:
    return size[dim] if -len(size) <= dim < len(size) else None


def _rows(call: _Call, _: int) -> Dim | None:
    """`embedding(weight, indices)`, `embedding_dense_backward(grad, indices, num_weights)`."""
    if call.kind == "embedding_dense_backward":
        return _number(call.argument(2))
    return call.size(0)[0] if call.size(0) else None


def _elements_of_first(call: _Call, _: int) -> Dim | None:
    """`take(self, index)`."""
    return numel(call.size(0)) if call.names(call.argument(0)) else None


def _classes(call: _Call, place: int) -> Dim | None:
    """`nll_loss_forward(self, target)`; with the gradient first in its backward."""
    size = call.size(place - 1)
    return size[min(1, len(size) - 1)] if size else None


def _window(call: _Call, _: int) -> Dim | None:
    """Backward of pooling: its last argument is a place in the last dimensions of the input."""
    return numel(call.size(1)[-3 if "3d" in call.kind else -2 :]) if call.names(call.argument(1)) else None


def _unpooled(call: _Call, _: int) -> Dim | None:
    """`max_unpool2d(self, indices, output_size)`."""
    sizes = all_numbers(_number(element) for element in _elements(call.argument(2)))
    return prod(sizes) if sizes else None


def _bits(call: _Call, _: int) -> Dim | None:
    return INTEGERS.get(call.result.dtype) if call.result else None


_BELOW: dict[str, tuple[int, Callable[[_Call, int], Dim | None]]] = _table({
    "gather scatter scatter_add scatter_reduce index_select index_add index_copy": (2, _size_along_dim),
    "index_fill index_reduce": (2, _size_along_dim),
    "embedding embedding_dense_backward": (1, _rows),
    "take put": (1, _elements_of_first),
    "nll_loss nll_loss_forward nll_loss2d_forward multi_margin_loss": (1, _classes),
    "multilabel_margin_loss_forward": (1, _classes),
    "nll_loss_backward nll_loss2d_backward multi_margin_loss_backward": (2, _classes),
    "max_pool2d_with_indices_backward max_pool3d_with_indices_backward": (-1, _window),
    "adaptive_max_pool2d_backward adaptive_max_pool3d_backward": (-1, _window),
    "fractional_max_pool2d_backward fractional_max_pool3d_backward": (-1, _window),
    "max_unpool2d max_unpool3d": (1, _unpooled),
    "bitwise_left_shift bitwise_right_shift __lshift__ __rshift__": (1, _bits),
})  # fmt: skip
"""By operator, the place of an argument that holds indices, and the size that they are below."""


def _indexed(call: _Call) -> _Needs:
    """`index(self, [i, None, j])`: each bounded by a dimension of self; a mask takes as many as it has."""
    size, dim = call.size(0), 0
    place = 2 if call.kind.startswith("_unsafe_masked") else 1
    for element in _elements(call.argument(place, "indices")):
        names = call.names(element)
        if dim < len(size):
            yield from _below(call, element, size[dim])
        is_mask = bool(names) and call.types[names[0]].dtype in ("b8", "u8")
        dim += len(call.types[names[0]].size) if is_mask else 1


def _pool_offsets(call: _Call) -> _Needs:
    """`_low_memory_max_pool_offsets_to_indices(offsets, kernel, input, stride, padding, dilation)`.

    An offset counts places of a window, and none may point into the padding: in all dimensions but the last
    the first row behind it is taken, in the last all places that no window has in its padding.
    """
    numbers = [[_number(element) for element in _elements(call.argument(place))] for place in range(1, 6)]
    count = len(numbers[0])
    windows = call.result.size[-count:] if call.result and count else (None,) * count
    low = span = 0
    for *of_window, size, made in zip(*(numbers[place] for place in (0, 2, 3, 4, 1)), windows, strict=False):
        known = all_numbers(of_window)
        if not known or not known[-1]:
            return
        places, stride, padding, dilation = known
        first = min(-(-padding // dilation), places - 1)
        low, span = low * places + first, 0
        if size is not None and isinstance(made, int):
            last = (size - 1 + padding - (made - 1) * stride) // dilation
            span = max(min(last, places - 1) - first, 0)
    for name in call.names(call.argument(0)) if count else ():
        yield name, _Need(low, low + span)


def _start(call: _Call) -> _Needs:
    """`slice(self, dim, start, end)` and `select(self, dim, index)` from a number that a tensor held."""
    dim, start = _number(call.argument(1, "dim")), call.argument(2, "start")
    if dim is None or not isinstance(start, ast.Name):
        return
    size = _at(call.size(0), dim)
    length = 1 if call.kind == "select" or call.result is None else _at(call.result.size, dim)
    if size is not None and length is not None:
        both = isinstance(size, int) and isinstance(length, int)
        high = int(size) - int(length) if both else f"{size} - {length}"
        yield start.id, _Need(0, high)


def _mask_of_source(call: _Call) -> _Needs:
    """`masked_scatter(self, mask, source)`: the mask takes no more than source has."""
    for name in call.names(call.argument(1)) if call.names(call.argument(2)) else ():
        yield name, _Need(0, numel(call.size(2)), form="true")


def _divisor(call: _Call) -> _Needs:
    """Whole numbers are not divided by zero."""
    if call.result is None or call.result.dtype in INTEGERS:
        yield from ((name, _Need(1)) for name in call.integers(call.argument(1)))


def _segments(call: _Call) -> _Needs:
    """`segment_reduce(data, reduce, lengths=..., offsets=..., axis=0)`; in its backward data comes third."""
    size = call.size(2 if call.kind.endswith("backward") else 0)
    axis = _number(call.named.get("axis")) or 0
    forms: tuple[tuple[str, Form], ...] = (("lengths", "parts"), ("offsets", "offsets"))
    for argument, form in forms if axis < len(size) else ():
        for name in call.names(call.named.get(argument)):
            yield name, _Need(0, size[axis], form=form)


def _bags(call: _Call) -> _Needs:
    """`_embedding_bag(weight, indices, offsets)`; the gradient comes first in that of the sample weights."""
    place = 2 if call.kind == "_embedding_bag_per_sample_weights_backward" else 1
    weight, indices = call.size(place - 1), call.size(place)
    rows = _number(call.argument(6)) if call.kind.endswith("g_backward") else weight[0] if weight else None
    yield from _below(call, call.argument(place), rows)
    for name in call.names(call.argument(place + 1)) if len(indices) == 1 else ():
        yield name, _Need(0, indices[0], form="offsets")


def _repeats(call: _Call) -> _Needs:
    """`repeat_interleave(repeats, output_size=...)`."""
    total = _number(call.named.get("output_size"))
    need = _Need(0, 3) if total is None else _Need(0, total, form="parts")
    yield from ((name, need) for name in call.names(call.argument(0)))


def _pivots(call: _Call) -> _Needs:
    """Rows of a factorisation count from one."""
    if size := call.size(0):
        rows = size[-2:][0]
        above = rows + 1 if isinstance(rows, int) else f"{rows} + 1"
        yield from _below(call, call.argument(1), above, low=1)


_RULES: dict[str, Callable[[_Call], _Needs]] = _table({
    "index _unsafe_index index_put _unsafe_index_put": _indexed,
    "_unsafe_masked_index _unsafe_masked_index_put_accumulate": _indexed,
    "_embedding_bag _embedding_bag_forward_only _embedding_bag_backward": _bags,
    "_embedding_bag_per_sample_weights_backward": _bags,
    "segment_reduce _segment_reduce_backward": _segments,
    "repeat_interleave": _repeats,
    "_low_memory_max_pool_offsets_to_indices": _pool_offsets,
    "slice select": _start,
    "masked_scatter": _mask_of_source,
    "remainder fmod floor_divide div": _divisor,
    "lu_unpack linalg_lu_solve linalg_ldl_solve": _pivots,
})  # fmt: skip
