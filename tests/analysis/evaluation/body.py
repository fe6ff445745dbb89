"""Runs the operations of a loop body one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from inductor_probe.model.ir import Block, Dotted, LoopBody, Op, Ref
from tests.analysis.evaluation.operations import PARTS, cast, made_up, number_text, operate, reduce_all
from tests.analysis.evaluation.world import Stored, World


class BodyMachine:
    """Runs the operations of a body one by one at one point."""

    def __init__(self, world: World, body: LoopBody) -> None:
        self._world = world
        self._body = body
        self._blocks = {block.name: block for block in body.blocks}
        self._indexes = dict(body.indexes)

    def run(self, outer: dict[str, int], inner: list[dict[str, int]]) -> list[Stored]:
        collected: list[dict[int, Any]] = []
        for point in inner:
            self._collecting: dict[int, Any] = {}
            self._results: list[dict[int, Any]] | None = None
            self._start({**outer, **point})
            collected.append(self._collecting)
        stored: list[Stored] = []
        for at, point in enumerate(inner):
            self._results, self._at = collected, at
            self._start({**outer, **point})
            stored += self._stored
        return stored

    def _start(self, point: dict[str, int]) -> None:
        self._point: dict[str, Any] = dict(point)
        self._stored: list[Stored] = []
        self._block(self._body.blocks[0])

    def _block(self, block: Block) -> Any:
        names: dict[str, Any] = {}
        for op in block.ops:
            names[op.result] = self._op(op, names)
        return self._value(block.result, names)

    def _value(self, arg: Any, names: dict[str, Any]) -> Any:
        return names[arg.name] if isinstance(arg, Ref) else arg

    def _op(self, op: Op, names: dict[str, Any]) -> Any:
        args = [self._value(arg, names) for arg in op.args]
        name = op.target.removeprefix("ops.")
        if op.target == "self.get_index":
            text = self._indexes[args[0]]
            return lambda: self._world.index(text, self._point)
        if op.target.startswith("self.set_indirect"):
            self._point[op.target.removeprefix("self.set_")] = args[0]
            return args[0]
        if op.target.startswith("self.masked_subblock"):
            return self._block(self._blocks[op.target.removeprefix("self.")]) if args[0] else args[1]
        if op.target == "[]":
            return args[0][args[1]] if isinstance(args[0], tuple) else made_up("item", args[0], args[1])
        args = [arg() if callable(arg) else arg for arg in args]
        if name == "constant":
            return cast(args[0], args[1].text.removeprefix("torch."))
        if name in {"to_dtype", "index_expr", "value_expr"}:
            return self._cast(args, dict(op.kwargs))
        if name == "load":
            return self._world.load(args[0], args[1])
        if name in {"store", "store_reduction"}:
            self._stored.append((args[0], args[1], number_text(args[2]), args[3] if len(args) > 3 else None))
            return None
        if name in {"reduction", "sort"} or op.target.startswith("self.scan"):
            return self._reduction(op, args, names)
        return operate(
            name, list(_numbers(op.args, names)) + list(_numbers([v for _, v in op.kwargs], names))
        )

    def _cast(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        source = kwargs.get("src_dtype")
        dtype = args[1].text.removeprefix("torch.")
        return args[0] if source == args[1] else cast(args[0], dtype)

    def _reduction(self, op: Op, args: list[Any], names: dict[str, Any]) -> Any:
        kind = str(args[2]).removesuffix("_reduce") if op.target == "ops.reduction" else "scan"
        given = op.args[3] if op.target == "ops.reduction" else op.args[1]
        if op.target == "ops.sort":
            kind, given = "sort", op.args[1]
        values = list(_numbers(given if isinstance(given, tuple) else (given,), names))
        if self._results is None:
            self._collecting[op.line] = values
            return tuple([math.nan] * 3) if _has_parts(kind) else math.nan
        columns = [result[op.line] for result in self._results]
        if not _has_parts(kind):
            return reduce_all(kind, columns, self._at, None)
        parts = PARTS.get(kind, ("0", "1", "2"))
        return tuple(reduce_all(kind, columns, self._at, part) for part in parts)


def _has_parts(kind: str) -> bool:
    return kind in {*PARTS, "scan", "sort"}


def _numbers(args: Sequence[Any], names: dict[str, Any]) -> Iterator[Any]:
    """Yield the numbers among arguments, those in tuples too."""
    for arg in args:
        value = names[arg.name] if isinstance(arg, Ref) else arg
        value = value() if callable(value) else value
        if isinstance(value, tuple):
            yield from _numbers(value, names)
        elif not isinstance(value, Dotted | str | None):
            yield value
