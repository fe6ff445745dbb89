"""A loop body as statements that can be compared with those of another dump.

Names of results, loop variables, buffers and symbols are replaced by numbers in the order of first use;
constants and index expressions stand where they are used; operations that torch renamed have one name.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from inductor_probe.analysis.diff.symbols import Symbols, normal_index
from inductor_probe.model.diff import Statement
from inductor_probe.model.ir import Block, Dotted, LoopBody, Op, Ref, Value

_RENAMED = {"div": "truediv"}
"""Operations by the name that an earlier torch had for them."""
_DERIVED = ("src_dtype", "use_compute_types")
"""Arguments that later versions print and earlier ones leave to be worked out."""
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")
_LOADS, _STORES = ("load", "load_seed"), ("store", "store_reduction")
_INDEXED = ("ops.index_expr", "ops.check_bounds")
_SILENT = ("constant", "get_index")


@dataclass(slots=True)
class BodyText:
    """The statements of a body.

    Attributes:
        loops: trip counts, outermost first.
        full: statements with their indices. bare: the same without.
        reads, writes: buffers in the order of first use.
        ops: what each statement was made from, and the block it stands in.
        targets: how often each operation occurs.
    """

    loops: tuple[str, ...]
    full: list[str] = field(default_factory=list)
    bare: list[str] = field(default_factory=list)
    reads: dict[str, int] = field(default_factory=dict)
    writes: dict[str, int] = field(default_factory=dict)
    ops: list[tuple[Op, str]] = field(default_factory=list)
    targets: Counter[str] = field(default_factory=Counter)

    @property
    def copies(self) -> bool:
        """Whether nothing is computed: values are loaded and stored."""
        return bool(self.targets) and set(self.targets) <= {*_LOADS, *_STORES}

    @property
    def reduces(self) -> bool:
        """Whether it stores the result of a reduction."""
        return "store_reduction" in self.targets


def body_text(body: LoopBody, symbols: Symbols) -> BodyText:
    """Write a body as statements."""
    return _Writer(body, symbols).write()


def statement(body: LoopBody, op: Op, block: str) -> Statement:
    """Return an operation as it stands in the dump, index and constants in their places."""
    constants = {
        other.result: other.args[0]
        for part in body.blocks
        for other in part.ops
        if part.name == block and other.target == "ops.constant" and other.args
    }
    indexes = {
        other.result: body.index(str(other.args[0])) or str(other.args[0])
        for part in body.blocks
        for other in part.ops
        if part.name == block and other.target == "self.get_index" and other.args
    }

    def shown(value: Value) -> str:
        match value:
            case Ref(name):
                return indexes.get(name) or str(constants.get(name, name))
            case Dotted(text):
                return text
            case tuple():
                return f"({', '.join(shown(item) for item in value)})"
        return repr(value)

    if op.target == "[]":
        text = f"{shown(op.args[0])}[{shown(op.args[1])}]"
    else:
        arguments = [*map(shown, op.args), *(f"{key}={shown(value)}" for key, value in op.kwargs)]
        text = f"{op.target.removeprefix('ops.').removeprefix('self.')}({', '.join(arguments)})"
    return Statement(text, body.place(op), block)


class _Writer:
    def __init__(self, body: LoopBody, symbols: Symbols) -> None:
        self.body = body
        self.symbols = symbols
        self.indexes = dict(body.indexes)
        self.blocks = {block.name: block for block in body.blocks}
        self.names = {name: f"v{at}" for at, (name, _) in enumerate(body.var_ranges)}
        self.text = BodyText(tuple(symbols.dim(dim) for _, dim in body.var_ranges))

    def write(self) -> BodyText:
        if "body" in self.blocks:
            self._block(self.blocks["body"], set())
        return self.text

    def _block(self, block: Block, above: set[str]) -> str:
        """Write the statements of a block; return its result."""
        values: dict[str, str] = {}
        for op in block.ops:
            name = op.target.partition(".")[2] or op.target
            name = _RENAMED.get(name, name)
            if name == "get_index":
                values[op.result] = self._index(str(op.args[0]))
            elif name == "constant":
                values[op.result] = self._joined(op.args, values)
            elif name.startswith("set_indirect"):
                self.names[f"indirect{name.removeprefix('set_indirect')}"] = self._joined(op.args[:1], values)
            elif name in self.blocks and name not in above:
                self._add(op, block, re.sub(r"\d+$", "", name), self._arguments(op, values))
                result = self._block(self.blocks[name], {*above, block.name})
                values[op.result] = self._number(f"return {result}", op, block)
            elif name in _LOADS or name in _STORES:
                values[op.result] = self._access(op, block, name, values)
            else:
                values[op.result] = self._add(op, block, name, self._arguments(op, values))
            if name not in _SILENT:
                self.text.targets[re.sub(r"\d+$", "", name) if op.target.startswith("self.") else name] += 1
        return self._value(block.result, values)

    def _access(self, op: Op, block: Block, name: str, values: dict[str, str]) -> str:
        buffers = self.text.reads if name in _LOADS else self.text.writes
        buffer = str(op.args[0])
        number = buffers.setdefault(buffer, len(buffers))
        index = self._value(op.args[1], values) if len(op.args) > 1 else ""
        rest = self._joined(op.args[2:], values)
        self.text.bare.append(f"{name}({number}, {rest})")
        return self._number(f"{name}({number}, {index}, {rest})", op, block)

    def _add(self, op: Op, block: Block, name: str, arguments: str) -> str:
        # An index that is computed with, or checked, is an index all the same.
        indexed = op.target in _INDEXED
        self.text.bare.append(f"{name}({'' if indexed else arguments})")
        return self._number(f"{name}({arguments})", op, block)

    def _number(self, text: str, op: Op, block: Block) -> str:
        if text.startswith("return "):
            self.text.bare.append(text)
        self.text.full.append(text)
        self.text.ops.append((op, block.name))
        return f"t{len(self.text.full) - 1}"

    def _arguments(self, op: Op, values: dict[str, str]) -> str:
        named = [f"{key}={self._value(value, values)}" for key, value in op.kwargs if key not in _DERIVED]
        return ", ".join([*([self._joined(op.args, values)] if op.args else []), *named])

    def _joined(self, arguments: tuple[Value, ...], values: dict[str, str]) -> str:
        return ", ".join(self._value(argument, values) for argument in arguments)

    def _value(self, value: Value, values: dict[str, str]) -> str:
        match value:
            case Ref(name):
                return values.get(name, name)
            case Dotted(text):
                return text
            case tuple():
                return f"({self._joined(value, values)})"
            case str():
                return repr(self.symbols.rename(value))
        return repr(value)

    def _index(self, name: str) -> str:
        text = self.symbols.rename(self.indexes.get(name, name))
        return normal_index(_NAME.sub(lambda match: self.names.get(match[0], match[0]), text))
