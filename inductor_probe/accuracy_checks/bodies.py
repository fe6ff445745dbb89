"""Loop bodies evaluated as they stand: what the IR of inductor computes, whatever code is generated of it.

A body runs with a handler of its operations (`V.set_ops_handler`) that computes with tensors, for all points
of the loops at once, or for those alone that store one element. What it reads is what eager has there.

Operations have the meaning that `torch/_inductor/ops_handler.py` gives them. Half precision is computed in
float32, as both backends do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import sympy  # type: ignore[import-untyped] # torch brings it, without types
import torch

from inductor_probe.accuracy_checks.launches import stands_for
from inductor_probe.accuracy_checks.stages import Lowered
from inductor_probe.accuracy_checks.values import Values

MOST_POINTS = 1 << 22  # of loops that are evaluated at once
CHUNK = 1 << 20  # points whose place of storing is computed at once
_HALF = (torch.float16, torch.bfloat16)
_INDEX: dict[str, Callable[..., Any]] = {
    "FloorDiv": lambda a, b: a // b,
    "CleanDiv": lambda a, b: a // b,
    "IntTrueDiv": lambda a, b: a / b,
    "CeilDiv": lambda a, b: -(-a // b),
    "ModularIndexing": lambda a, b, c: (a // b) % c,
    "PythonMod": lambda a, b: a % b,
    "Mod": lambda a, b: a % b,
    "Where": lambda c, a, b: torch.where(torch.as_tensor(c), torch.as_tensor(a), torch.as_tensor(b)),
    "Identity": lambda a: a,
    "Max": lambda *a: reduce(lambda x, y: torch.maximum(torch.as_tensor(x), torch.as_tensor(y)), a),
    "Min": lambda *a: reduce(lambda x, y: torch.minimum(torch.as_tensor(x), torch.as_tensor(y)), a),
    "TruncToInt": lambda a: torch.as_tensor(a).trunc().long(),
    "FloorToInt": lambda a: torch.as_tensor(a).floor().long(),
    "ToFloat": lambda a: torch.as_tensor(a).double(),
}


class NotEvaluableError(Exception):
    """A body has an operation that has no value here: a random number, code of an assembler."""


class Bodies:
    """The loop bodies of a graph, for the inputs of a call."""

    def __init__(self, lowered: Lowered, inputs: list[Any]) -> None:
        self._lowering, self._inputs = lowered.lowering, inputs
        self._stands = stands_for(lowered)
        written = {node for writes in self._stands.writes.values() for _, node in writes}
        nodes = (node for node in lowered.reference.graph.nodes if node.name in written)
        self._first = {node.name: node.all_input_nodes[0].name for node in nodes if node.all_input_nodes}
        kept = {*self._stands.node.values(), *written, *self._first.values()}
        self._values = Values(lowered.reference, inputs, kept)
        self._all = self._values.all()
        self._operations = {
            operation.get_name(): operation
            for scheduled in self._lowering.scheduler.nodes
            for operation in scheduled.get_nodes()
        }
        self._of = {
            buffer.get_name(): operation
            for operation in self._operations.values()
            for buffer in operation.get_outputs()
        }
        self._sizes = _sizes(self._lowering, inputs)
        self._memory: dict[str, torch.Tensor] = {}

    def value(self, buffer: str, index: tuple[int, ...]) -> Any:
        """Return what the loop body that stores a buffer gives for one element of it.

        Raises:
            NotEvaluableError: it is no loop, or too large, or has an operation without a value.
        """
        operation = self._of[buffer]
        self.ranges(operation)
        offset = self._offset(operation.node.get_layout(), index)
        run = _Run(self, operation, buffer, offset)
        return run.stored[offset]

    def value_of(self, node: str, index: tuple[int, ...]) -> tuple[Any, torch.Tensor]:
        """Return what the body gives whose buffer stands for an FX node, and what that node gives.

        Raises:
            NotEvaluableError: see `value`; or no buffer stands for it.
        """
        right = self._all.get(node)
        for operation, writes in self._stands.writes.items():
            buffer = next((name for name, of in writes if of == node), None)
            if buffer is None or right is None:
                continue
            if self._of.get(buffer) is self._operations[operation]:
                return self.value(buffer, index), right
            return self._after(self._operations[operation], buffer, node, index), right
        raise NotEvaluableError(f"{node} is in no buffer")

    def _after(self, operation: Any, buffer: str, node: str, index: tuple[int, ...]) -> Any:
        """Return an element of what another operation made, after one that writes to it: what a scatter adds.

        Raises:
            NotEvaluableError: see `value`; or what it held before is not known.
        """
        before = self._all.get(self._stands.node.get(buffer) or self._first.get(node, ""))
        [name] = [one.get_name() for one in operation.get_outputs()]
        if before is None or len(self._stands.written.get(buffer, ())) > 1:
            raise NotEvaluableError(f"what {buffer} held before {operation.get_name()} is not known")
        offset = self._offset(operation.node.get_layout(), index)
        run = _Run(self, operation, name, None)
        return run.stored.get(offset, before[index]) + run.added.get(offset, 0)

    def _offset(self, layout: Any, index: tuple[int, ...]) -> int:
        steps = (place * self._int(step) for place, step in zip(index, layout.stride, strict=True))
        return self._int(layout.offset) + sum(steps)

    def memory(self, name: str) -> torch.Tensor:
        """Return what a buffer, input or constant holds, as its memory lies."""
        if name not in self._memory:
            self._memory[name] = self._of_name(name)
        return self._memory[name]

    def _of_name(self, name: str) -> torch.Tensor:
        names = list(self._lowering.graph_input_names)
        value: Any = None
        if name in names:
            value = self._inputs[names.index(name)]
            return torch.empty(0, dtype=value.dtype, device=value.device).set_(value.untyped_storage())
        if name in self._lowering.constants:
            return self._lowering.constants[name].contiguous().reshape(-1)
        if name not in self._of:
            raise NotEvaluableError(f"{name} is not known")
        operation = self._of[name]
        node = self._stands.node.get(name)
        if node in self._all:
            layout = next(one for one in operation.get_outputs() if one.get_name() == name).node.get_layout()
            right = self._all[node]
            flat = self._empty(layout)
            steps = [self._int(step) for step in layout.stride]
            sizes = [self._int(size) for size in layout.size]
            if sizes == list(right.shape):
                flat.as_strided(sizes, steps, self._int(layout.offset)).copy_(right)
                return flat
        flat = self._empty(operation.node.get_layout())
        for place, stored in _Run(self, operation, name, None).stored.items():
            flat[place] = stored
        return flat

    def _empty(self, layout: Any) -> torch.Tensor:
        last = sum(
            (self._int(size) - 1) * self._int(step)
            for size, step in zip(layout.size, layout.stride, strict=True)
        )
        return torch.zeros(self._int(layout.offset) + last + 1, dtype=layout.dtype)

    def _int(self, expression: Any) -> int:
        return int(sympy.sympify(expression).subs(self._sizes))

    def dtype(self, name: str) -> torch.dtype:
        """Return the dtype of a buffer."""
        dtype: torch.dtype = self._lowering.get_dtype(name)
        return dtype

    def ranges(self, operation: Any) -> tuple[list[int], list[int]]:
        """Return the lengths of the loops of an operation: outer ones, and those that are reduced."""
        body = getattr(operation, "_body", None)
        if body is None:
            raise NotEvaluableError(f"{operation.get_name()} has no loops")
        return tuple([self._int(size) for size in sizes] for sizes in body.sizes)  # type: ignore[return-value]

    @property
    def sizes(self) -> dict[Any, int]:
        """What symbolic sizes are in this call."""
        return self._sizes


class _Run:
    """A body evaluated: `stored` has what it gives by place in the memory of `buffer`."""

    def __init__(self, bodies: Bodies, operation: Any, buffer: str, offset: int | None) -> None:
        from torch._inductor.virtualized import V  # noqa: PLC0415 - not before torch is set up

        self._bodies, self._buffer = bodies, buffer
        outer, inner = bodies.ranges(operation)
        body = operation._body
        names = [sympy.Symbol(f"i{place}", integer=True) for place in range(len(outer) + len(inner))]
        self._symbols, self._dims = names, len(outer)
        self.stored: dict[int, Any] = {}
        self.added: dict[int, Any] = {}
        self._temporaries = 0
        shape = [*outer, *inner]
        points = 1
        for size in shape:
            points *= size
        self._inner = inner
        if offset is None:
            if points > MOST_POINTS:
                raise NotEvaluableError(f"{operation.get_name()} has {points} points")
            grid = [torch.arange(size) for size in outer]
            flat = torch.meshgrid(*grid, indexing="ij") if grid else ()
            columns = [one.reshape(-1) for one in flat]
        else:
            columns = self._points_of(operation, outer, offset)
        count = columns[0].numel() if columns else 1
        reduced = 1
        for size in inner:
            reduced *= size
        if count * reduced > MOST_POINTS:
            raise NotEvaluableError(f"{operation.get_name()} has {count * reduced} points")
        # Points of the outer loops are the first dimension; each reduced loop has one of its own.
        rank = len(inner)
        self._env = {
            name: column.reshape(-1, *[1] * rank) for name, column in zip(names, columns, strict=False)
        }
        for place, size in enumerate(inner):
            view = [1] * (rank + 1)
            view[place + 1] = size
            self._env[names[len(outer) + place]] = torch.arange(size).reshape(view)
        self._shape = [count, *inner]
        with V.set_ops_handler(_Ops(self)):
            body(names[: len(outer)], names[len(outer) :])

    def _points_of(self, operation: Any, outer: list[int], offset: int) -> list[torch.Tensor]:
        """Return the points of the outer loops that store one place."""
        body = operation._body
        names = self._symbols[: len(outer)]
        writes = [one for one in operation.read_writes.writes if one.name == self._buffer]
        if not writes or not hasattr(writes[0], "index"):
            raise NotEvaluableError(f"where {operation.get_name()} stores is not known")
        indexing = body.indexing_from_args((names, self._symbols[len(outer) :]))
        stores = [one.index_name for one in _stores(body) if one.buffer_name == self._buffer]
        if not stores:
            raise NotEvaluableError(f"{operation.get_name()} does not store {self._buffer}")
        expression = indexing[stores[0]]
        total = 1
        for size in outer:
            total *= size
        found: list[torch.Tensor] = []
        for begin in range(0, max(total, 1), CHUNK):
            flat = torch.arange(begin, min(begin + CHUNK, total))
            columns = list(torch.unravel_index(flat, outer)) if outer else []
            places = self.index(expression, dict(zip(names, columns, strict=True)))
            hits = (torch.as_tensor(places).expand(flat.shape) == offset).nonzero().reshape(-1)
            if hits.numel():
                found.append(flat[hits])
        if not found:
            raise NotEvaluableError(f"{operation.get_name()} does not store that element")
        flat = torch.cat(found)[-1:]  # the last one that stores it counts
        return list(torch.unravel_index(flat, outer)) if outer else []

    def index(self, expression: Any, env: dict[Any, torch.Tensor] | None = None) -> Any:
        """Evaluate an index of a body."""
        env = self._env if env is None else env
        expression = sympy.sympify(expression).subs(self._bodies.sizes)
        symbols = sorted(expression.free_symbols, key=str)
        missing = [one for one in symbols if one not in env]
        if missing:
            raise NotEvaluableError(f"{missing[0]} has no value")
        function = sympy.lambdify(symbols, expression, modules=[_INDEX, {"floor": torch.floor}])
        return function(*(env[one] for one in symbols))

    def indirect(self, value: torch.Tensor, size: Any, wrap: bool) -> sympy.Symbol:
        """Return a name for an index that is computed."""
        self._temporaries += 1
        symbol = sympy.Symbol(f"t{self._temporaries}", integer=True)
        length = (
            int(sympy.sympify(size).subs(self._bodies.sizes)) if not isinstance(size, torch.Tensor) else size
        )
        self._env[symbol] = torch.where(value < 0, value + length, value) if wrap else value
        return symbol

    def load(self, name: str, index: Any) -> torch.Tensor:
        """Read a buffer; outside of it, under a mask, anything."""
        memory = self._bodies.memory(name)
        place = torch.as_tensor(self.index(index)).long().clamp(0, max(memory.numel() - 1, 0))
        value = memory[place.to(memory.device)].cpu()
        return value.float() if value.dtype in _HALF else value

    def store(self, name: str, index: Any, value: Any, mode: str | None = None) -> None:
        """Note what is stored, or added to what is there (`atomic_add`)."""
        if name != self._buffer:
            return
        dtype = self._bodies.dtype(name)
        place = torch.as_tensor(self.index(index)).long()
        value, place = torch.broadcast_tensors(torch.as_tensor(value).to(dtype), place)
        pairs = zip(place.reshape(-1).tolist(), value.reshape(-1), strict=True)
        if mode is None:
            self.stored.update(pairs)
            return
        for one, more in pairs:
            self.added[one] = self.added.get(one, 0) + more

    def full(self, value: Any) -> torch.Tensor:
        """Return a value at all points, those that are reduced, too."""
        return torch.as_tensor(value).expand(self._shape)

    @property
    def rank(self) -> int:
        """How many loops are reduced."""
        return len(self._inner)


def _stores(body: Any) -> list[Any]:
    """Return the places where a body stores (`LoopBody.memory_usage`)."""
    usage = body.memory_usage
    return [entry for kind, entries in usage.items() if "STORE" in str(kind).upper() for entry in entries]


class _Ops:
    """Operations of loop bodies on tensors: see `torch/_inductor/ops_handler.py`."""

    def __init__(self, run: _Run) -> None:
        self._run = run

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = _FUNCTIONS.get(name) or getattr(torch, name, None) or getattr(torch.special, name, None)
        if function is None:
            raise NotEvaluableError(f"ops.{name}")

        def run(*args: Any, **kwargs: Any) -> Any:
            return function(*map(_tensor, args), **kwargs)

        return run

    def load(self, name: str, index: Any) -> torch.Tensor:
        return self._run.load(name, index)

    def store(self, name: str, index: Any, value: Any, mode: Any = None) -> None:
        self._run.store(name, index, value, mode)

    def store_reduction(self, name: str, index: Any, value: Any) -> None:
        value = torch.as_tensor(value)
        self._run.store(name, index, value.reshape(value.shape[0], *[1] * self._run.rank))

    def constant(self, value: Any, dtype: torch.dtype) -> torch.Tensor:
        return torch.tensor(value, dtype=torch.float32 if dtype in _HALF else dtype)

    def index_expr(self, expression: Any, dtype: torch.dtype) -> torch.Tensor:
        return torch.as_tensor(self._run.index(expression)).to(dtype)

    value_expr = index_expr

    def to_dtype(
        self, value: Any, dtype: torch.dtype, src_dtype: Any = None, use_compute_types: bool = True
    ) -> Any:
        if dtype in _HALF and use_compute_types:
            return value.float()
        return value.to(dtype)

    def to_dtype_bitcast(self, value: Any, dtype: torch.dtype, src_dtype: torch.dtype) -> Any:
        return value.to(src_dtype).view(dtype)

    def masked(self, mask: Any, body: Callable[[], Any], other: Any) -> Any:
        value = torch.as_tensor(body())
        return torch.where(mask, value, torch.as_tensor(other, dtype=value.dtype))

    def indirect_indexing(
        self, value: Any, size: Any, check: bool = True, wrap_neg: bool = True
    ) -> sympy.Symbol:
        return self._run.indirect(value, size, wrap_neg)

    def check_bounds(self, *args: Any) -> None:
        """Nothing: an index outside of a buffer is an error of its own."""

    device_assert_async = check_bounds

    def output(self, *args: Any) -> None:
        """Nothing is given back."""

    def bucketize(  # noqa: PLR0917 - as torch calls it
        self, values: Any, boundaries: Any, boundary_indices: Any, indexing_dtype: torch.dtype, right: bool,
        sorter: Any = None, sorter_indices: Any = None,
    ) -> Any:  # fmt: skip
        if sorter is not None:
            raise NotEvaluableError("ops.bucketize with a sorter")
        edges = self._run._bodies.memory(boundaries[0])[: int(boundaries[1])]
        return torch.bucketize(values, edges, right=right).to(indexing_dtype)

    def reduction(self, dtype: torch.dtype, src_dtype: torch.dtype, kind: str, value: Any) -> Any:
        values = value if isinstance(value, tuple) else (value,)
        flat = [self._run.full(one).reshape(self._run._shape[0], -1) for one in values]
        return _reduced(kind, flat, dtype)

    def scan(self, dtypes: Any, combine: Callable[..., Any], values: tuple[Any, ...]) -> tuple[Any, ...]:
        full = [self._run.full(one).clone() for one in values]
        last = full[0].dim() - 1
        for place in range(1, full[0].shape[last]):
            before = tuple(one.select(last, place - 1) for one in full)
            here = tuple(one.select(last, place) for one in full)
            for one, new in zip(full, combine(before, here), strict=True):
                one.select(last, place).copy_(new)
        return tuple(full)

    def sort(self, dtypes: Any, values: tuple[Any, ...], stable: bool, descending: bool) -> tuple[Any, ...]:
        full = [self._run.full(one) for one in values]
        order = full[0].sort(dim=-1, stable=True, descending=descending).indices
        return tuple(one.gather(-1, order) for one in full)


def _tensor(value: Any) -> Any:
    return torch.as_tensor(value) if isinstance(value, (bool, int, float)) else value


def _reduced(kind: str, values: list[torch.Tensor], dtype: torch.dtype) -> Any:
    """Reduce the last dimension, as `kind` says."""
    value = values[0]
    if kind in ("sum", "prod"):
        result: torch.Tensor = getattr(torch, kind)(value, dim=1)
        return result.to(value.dtype if dtype in _HALF else dtype)
    if kind in ("max", "min"):
        return getattr(torch, f"a{kind}")(value, dim=1)
    if kind in ("argmax", "argmin"):
        return getattr(torch, kind)(value, dim=1)
    if kind == "any":
        return value.to(torch.bool).any(dim=1)
    if kind == "xor_sum":
        return reduce(torch.bitwise_xor, value.unbind(1))
    if kind == "dot":
        return (value * values[-1]).sum(dim=1)
    if kind == "welford_reduce":
        mean = value.mean(dim=1)
        square = (value - mean[:, None]).square().sum(dim=1)
        return mean, square, torch.full_like(mean, value.shape[1])
    if kind == "welford_combine":
        means, squares, weights = values
        weight = weights.sum(dim=1)
        mean = (means * weights).sum(dim=1) / weight
        return mean, (squares + weights * (means - mean[:, None]).square()).sum(dim=1), weight
    if kind == "online_softmax_reduce":
        largest = value.amax(dim=1)
        return largest, (value - largest[:, None]).exp().sum(dim=1)
    raise NotEvaluableError(f"reduction {kind}")


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "and_": torch.bitwise_and,
    "or_": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "lshift": torch.bitwise_left_shift,
    "rshift": torch.bitwise_right_shift,
    "truediv": torch.true_divide,
    "div_rn": torch.true_divide,
    "int_truediv": lambda a, b: a.double() / b.double(),
    "mul_rn": torch.mul,
    "floordiv": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "truncdiv": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "mod": torch.fmod,
    "fma": lambda a, b, c: torch.addcmul(c, a, b),
    "relu": torch.relu,
    "identity": lambda a: a,
    "floor_to_int": lambda a, dtype: a.floor().to(dtype),
    "ceil_to_int": lambda a, dtype: a.ceil().to(dtype),
    "trunc_to_int": lambda a, dtype: a.trunc().to(dtype),
    "round_to_int": lambda a, dtype: a.round().to(dtype),
    "pow": torch.pow,
}


def _sizes(lowering: Any, inputs: list[Any]) -> dict[Any, int]:
    """Return what symbols are in a call: inputs that are sizes, and sizes of inputs."""
    sizes: dict[Any, int] = {}
    for name, given in zip(lowering.graph_input_names, inputs, strict=False):
        symbolic = lowering.graph_inputs[name]
        if isinstance(symbolic, sympy.Symbol) and isinstance(given, int):
            sizes[symbolic] = given
        elif isinstance(given, torch.Tensor) and hasattr(symbolic, "get_size"):
            for symbol, size in zip(symbolic.get_size(), given.shape, strict=False):
                if isinstance(symbol, sympy.Symbol):
                    sizes.setdefault(symbol, size)
    return sizes
