"""What single operators of ATen ask of the values of their arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from inductor_probe.analysis.operator_call import Call, Need
from inductor_probe.analysis.tensor_type import INTEGERS, TensorType
from inductor_probe.model.ir import Dim

_Found = Iterator[tuple[str, Need]]


def needs_of(call: Call) -> _Found:
    """Return what the operator asks of tensors among its arguments, by their names."""
    rule = _RULES.get(call.op.removesuffix("_"))
    if rule is not None:
        yield from rule(call)


def _below(call: Call, argument: ast.expr | None, size: Dim | None, low: int = 0) -> _Found:
    """Bound each tensor in `argument` that holds whole numbers: from `low` to below `size`."""
    if size is None:
        return
    high: Dim = size - 1 if isinstance(size, int) else f"{size} - 1"
    if isinstance(high, int):
        high = max(high, low)
    for name in call.names(argument):
        if call.types[name].dtype in INTEGERS:
            yield name, Need(low, high, f"aten.{call.op}")


def _indexed(call: Call) -> _Found:
    """`index(self, [i, None, j])`: each bounded by a dimension of self; a mask takes as many as it has."""
    own, at = call.type(0), 0
    place = 2 if call.op.startswith("_unsafe_masked") else 1
    for element in _elements(call.argument(place, "indices")):
        names = call.names(element)
        if own is not None and at < len(own.size):
            yield from _below(call, element, own.size[at])
        mask = bool(names) and call.types[names[0]].dtype in ("b8", "u8")
        at += len(call.types[names[0]].size) if mask else 1


def _along(call: Call) -> _Found:
    """`gather(self, dim, index)`."""
    own, dim = call.type(0), call.number(call.argument(1, "dim"))
    if own is not None and dim is not None:
        yield from _below(call, call.argument(2, "index"), own.size[dim] if own.size else 1)


def _rows(call: Call) -> _Found:
    """`embedding(weight, indices)`."""
    weight = call.type(0)
    if weight is not None and weight.size:
        yield from _below(call, call.argument(1), weight.size[0])


def _row_gradients(call: Call) -> _Found:
    """`embedding_dense_backward(grad, indices, num_weights)`."""
    yield from _below(call, call.argument(1), _dim(call.argument(2)))


def _flat(call: Call) -> _Found:
    """`take(self, index)`."""
    own = call.type(0)
    if own is not None:
        yield from _below(call, call.argument(1), own.numel())


def _classes(at: int) -> Callable[[Call], _Found]:
    """`nll_loss_forward(self, target)`; with the gradient first in its backward."""

    def rule(call: Call) -> _Found:
        own = call.type(at)
        if own is not None and own.size:
            yield from _below(call, call.argument(at + 1), own.size[min(1, len(own.size) - 1)])

    return rule


def _pooled(dims: int) -> Callable[[Call], _Found]:
    """Backward of pooling: its last argument is a place in the last `dims` dimensions of the input."""

    def rule(call: Call) -> _Found:
        own = call.type(1)
        if own is not None:
            window = TensorType(own.dtype, own.size[-dims:])
            yield from _below(call, call.args[-1], window.numel())

    return rule


def _unpooled(call: Call) -> _Found:
    """`max_unpool2d(self, indices, output_size)`."""
    sizes = [_dim(element) for element in _elements(call.argument(2))]
    if sizes and None not in sizes:
        yield from _below(
            call, call.argument(1), TensorType("", tuple(s for s in sizes if s is not None)).numel()
        )


def _window(call: Call) -> _Found:
    """`_low_memory_max_pool_offsets_to_indices(offsets, kernel, input, stride, padding, dilation)`.

    An offset counts places of a window, and none may point into the padding: in all dimensions but the last
    the first row behind it is taken, in the last all places that no window has in its padding.
    """
    numbers = [[call.number(element) for element in _elements(call.argument(at))] for at in range(1, 6)]
    count = len(numbers[0])
    windows = call.result.size[-count:] if call.result and count else (None,) * count
    low = span = 0
    for *of_window, size, made in zip(*(numbers[at] for at in (0, 2, 3, 4, 1)), windows, strict=False):
        known = [number for number in of_window if number is not None]
        if len(known) < len(of_window):
            return
        places, stride, padding, dilation = known
        first = min(-(-padding // dilation), places - 1)
        low, span = low * places + first, 0
        if size is not None and isinstance(made, int):
            last = (size - 1 + padding - (made - 1) * stride) // dilation
            span = max(min(last, places - 1) - first, 0)
    for name in call.names(call.argument(0)) if count else ():
        yield name, Need(low, low + span, f"prims.{call.op}")


def _start(call: Call) -> _Found:
    """`slice(self, dim, start, end)` and `select(self, dim, index)` from a number that a tensor held."""
    own, dim, start = call.type(0), call.number(call.argument(1, "dim")), call.argument(2, "start")
    if own is None or dim is None or not own.size or not isinstance(start, ast.Name):
        return
    size: Dim = own.size[dim]
    taken: Dim = 1 if call.op == "select" or call.result is None else call.result.size[dim]
    both = isinstance(size, int) and isinstance(taken, int)
    yield start.id, Need(0, int(size) - int(taken) if both else f"{size} - {taken}", f"aten.{call.op}")


def _source(call: Call) -> _Found:
    """`masked_scatter(self, mask, source)`: the mask takes no more than source has."""
    source = call.type(2)
    if source is not None:
        for name in call.names(call.argument(1)):
            yield name, Need(0, source.numel(), f"aten.{call.op}", "true")


def _divisor(call: Call) -> _Found:
    """Whole numbers are not divided by zero."""
    if call.result is None or call.result.dtype in INTEGERS:
        for name in call.names(call.argument(1)):
            if call.types[name].dtype in INTEGERS:
                yield name, Need(1, None, f"aten.{call.op}")


def _shift(call: Call) -> _Found:
    if call.result is not None and call.result.dtype in INTEGERS:
        yield from _below(call, call.argument(1), INTEGERS[call.result.dtype])


def _at_least_zero(at: int) -> Callable[[Call], _Found]:
    def rule(call: Call) -> _Found:
        yield from ((name, Need(0, None, f"aten.{call.op}")) for name in call.names(call.argument(at)))

    return rule


def _probability(call: Call) -> _Found:
    yield from ((name, Need(0, 1, f"aten.{call.op}")) for name in call.names(call.argument(0)))


def _edges(at: int) -> Callable[[Call], _Found]:
    """`bucketize(values, edges)` searches in what is sorted."""

    def rule(call: Call) -> _Found:
        for name in call.names(call.argument(at)):
            yield name, Need(None, None, f"aten.{call.op}", "sorted")

    return rule


def _segments(at: int) -> Callable[[Call], _Found]:
    """`segment_reduce(data, reduce, lengths=..., offsets=..., axis=0)`; data is argument `at`."""

    def rule(call: Call) -> _Found:
        own, axis = call.type(at), call.number(call.named.get("axis")) or 0
        if own is not None and axis < len(own.size):
            operator = f"aten.{call.op}"
            for name in call.names(call.named.get("lengths")):
                yield name, Need(0, own.size[axis], operator, "parts")
            for name in call.names(call.named.get("offsets")):
                yield name, Need(0, own.size[axis], operator, "offsets")

    return rule


def _bags(at: int) -> Callable[[Call], _Found]:
    """`_embedding_bag(weight, indices, offsets)`; indices are argument `at`."""

    def rule(call: Call) -> _Found:
        weight, indices = call.type(at - 1), call.type(at)
        rows = (
            _dim(call.argument(6)) if call.op.endswith("g_backward") else weight.size[0] if weight else None
        )
        yield from _below(call, call.argument(at), rows)
        if indices is not None and len(indices.size) == 1:
            for name in call.names(call.argument(at + 1)):
                yield name, Need(0, indices.size[0], f"aten.{call.op}", "offsets")

    return rule


def _repeats(call: Call) -> _Found:
    """`repeat_interleave(repeats, output_size=...)`."""
    total = call.number(call.named.get("output_size"))
    for name in call.names(call.argument(0)):
        yield (
            name,
            Need(0, 3 if total is None else total, f"aten.{call.op}", "any" if total is None else "parts"),
        )


def _factored(call: Call) -> _Found:
    for name in call.names(call.argument(0)):
        yield name, Need(None, None, f"aten.{call.op}", "positive definite")


def _pivots(at: int) -> Callable[[Call], _Found]:
    """Rows of a factorisation count from one."""

    def rule(call: Call) -> _Found:
        own = call.type(0)
        if own is not None and own.size:
            size = own.size[-2] if len(own.size) > 1 else own.size[-1]
            above = size + 1 if isinstance(size, int) else f"{size} + 1"
            yield from _below(call, call.argument(at), above, low=1)

    return rule


_RULES: dict[str, Callable[[Call], _Found]] = {
    **dict.fromkeys(("index", "_unsafe_index", "index_put", "_unsafe_index_put"), _indexed),
    **dict.fromkeys(("_unsafe_masked_index", "_unsafe_masked_index_put_accumulate"), _indexed),
    **dict.fromkeys(("gather", "scatter", "scatter_add", "scatter_reduce", "index_select"), _along),
    **dict.fromkeys(("index_add", "index_copy", "index_fill", "index_reduce"), _along),
    "embedding": _rows,
    **dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only", "_embedding_bag_backward"), _bags(1)),
    "_embedding_bag_per_sample_weights_backward": _bags(2),
    "segment_reduce": _segments(0),
    "_segment_reduce_backward": _segments(2),
    "repeat_interleave": _repeats,
    "embedding_dense_backward": _row_gradients,
    **dict.fromkeys(("take", "put"), _flat),
    **dict.fromkeys(("nll_loss", "nll_loss_forward", "nll_loss2d_forward", "multi_margin_loss"), _classes(0)),
    **dict.fromkeys(("nll_loss_backward", "nll_loss2d_backward", "multi_margin_loss_backward"), _classes(1)),
    "multilabel_margin_loss_forward": _classes(0),
    **dict.fromkeys(("max_pool2d_with_indices_backward", "adaptive_max_pool2d_backward"), _pooled(2)),
    **dict.fromkeys(("max_pool3d_with_indices_backward", "adaptive_max_pool3d_backward"), _pooled(3)),
    "fractional_max_pool2d_backward": _pooled(2),
    "fractional_max_pool3d_backward": _pooled(3),
    **dict.fromkeys(("max_unpool2d", "max_unpool3d"), _unpooled),
    "_low_memory_max_pool_offsets_to_indices": _window,
    **dict.fromkeys(("slice", "select"), _start),
    "masked_scatter": _source,
    **dict.fromkeys(("remainder", "fmod", "floor_divide", "div"), _divisor),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__"), _shift),
    **dict.fromkeys(("bincount", "poisson", "multinomial"), _at_least_zero(0)),
    "normal": _at_least_zero(1),
    "bernoulli": _probability,
    "bucketize": _edges(1),
    "searchsorted": _edges(0),
    **dict.fromkeys(("cholesky", "linalg_cholesky_ex"), _factored),
    **dict.fromkeys(("lu_unpack", "linalg_lu_solve", "linalg_ldl_solve"), _pivots(1)),
}


def _elements(argument: ast.expr | None) -> list[ast.expr]:
    return list(argument.elts) if isinstance(argument, ast.List | ast.Tuple) else []


def _dim(argument: ast.expr | None) -> Dim | None:
    match argument:
        case ast.Constant(value=int() as value):
            return value
    return None
