"""Symbols, indices, loop bodies and kernels in forms that do not depend on how a torch version spells them.

Torch calls the same symbolic size `s0` or `s77`, prints the factors of a product in the order of their names,
and sets its brackets differently from release to release.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.index import SYMBOL, parse_index
from inductor_probe.model.code import Kernel
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.diff import Statement
from inductor_probe.model.ir import Block, Dim, Dotted, LoopBody, Op, Ref, Value

_NAME = re.compile(r"\b[A-Za-z_]\w*\b")
_RENAMED = {"div": "truediv"}
"""Operations by the name that an earlier torch had for them."""
_DERIVED = ("src_dtype", "use_compute_types")
"""Arguments that later versions print and earlier ones leave to be worked out."""
_LOADS, _STORES = ("load", "load_seed"), ("store", "store_reduction")
_INDEXED = ("ops.index_expr", "ops.check_bounds")

_RULES: dict[str, tuple[tuple[re.Pattern[str], str], ...]] = {
    "cpp": (
        (re.compile(r"//.*"), ""),
        (re.compile(r'#include\s+(?:"[^"]*"|<[^>]*>)'), "#include"),
        (re.compile(r"\blong long\b|\blong\b"), "int64_t"),
        (re.compile(r"\bunsigned char\b"), "uint8_t"),
        (re.compile(r"\bat::native::div_floor_integer\b"), "c10::div_floor_integer"),
        (re.compile(r"\bi(?=\d+\b)"), "x"),
        # A cast of what is a 64-bit integer already; one of a value (`tmp3`) is a conversion.
        (re.compile(r"\bstatic_cast<int64_t>\((\d+L?|x\d+|size\d+)\)"), r"\1"),
    ),
    "triton": (
        (re.compile(r"^\s*#.*"), ""),
        (re.compile(r"'(?:kernel_name|backend_hash)': '[^']*',? ?"), ""),
        (re.compile(r"\bfilename=[^,]*,"), ""),
    ),
}
_BRACKETS = (
    (re.compile(r"(?<![\w)\]>])\((-\d+L?)\)"), r"\1"),
    # A bracket after a minus sign may hold a product all the same: `-(2*x)` is `-2*x`.
    (re.compile(r"(?<=[-+(,=\[])( ?)\((-?[\w.]+(?:\*[\w.]+)+)\)(?=\s*[+),;\]]| -)"), r"\1\2"),
)
_HASH = re.compile(r"\b(?:[0-9A-Fa-f]{32,}|c[a-z2-7]{51})\b")
_SIZE = re.compile(r"\bks\d+\b")


class Symbols:
    """The symbols of one graph, numbered in the order in which its inputs name them."""

    def __init__(self, graph: CompiledGraph) -> None:
        names = dict.fromkeys(name for text in _texts(graph) for name in SYMBOL.findall(text))
        # The letter stays: a backed size is not the same as an unbacked one.
        self._names = {name: f"{name[0]}_{number}" for number, name in enumerate(names)}

    def rename(self, text: str) -> str:
        """Return `text` with the graph's symbols under their numbers."""
        return SYMBOL.sub(lambda match: self._names.get(match[0], match[0]), text) if self._names else text

    def dim(self, dim: Dim) -> str:
        """Return a size or stride in normal form."""
        return str(dim) if isinstance(dim, int) else normal_index(self.rename(dim))

    def dims(self, dims: Iterable[Dim] | None) -> tuple[str, ...] | None:
        """Return sizes or strides in normal form."""
        return None if dims is None else tuple(self.dim(dim) for dim in dims)


def _texts(graph: CompiledGraph) -> Iterable[str]:
    """Yield what names symbols, in an order that does not depend on their names."""
    for placeholder in graph.fx.inputs if graph.fx else ():
        yield placeholder.type or ""
    for allocation in graph.code.allocations if graph.code else ():
        if allocation.kind == "input" and allocation.layout:
            yield from map(str, (*(allocation.layout.size or ()), *(allocation.layout.stride or ())))
    for leaf in index_of(graph).nodes.leaves:
        yield from (str(dim) for _, dim in (leaf.body.var_ranges if leaf.body else ()))


@lru_cache(maxsize=65536)
def normal_index(text: str) -> str:
    """Return an index expression as a sorted sum of products; as printed if it cannot be parsed."""
    try:
        index = parse_index(text)
    except ValueError:
        return " ".join(text.split())
    return " + ".join("*".join([str(value), *factors]) for factors, value in index.terms) or "0"


@dataclass(slots=True)
class BodyText:
    """The statements of a loop body, as they can be compared with those of another dump.

    Names of results, loop variables, buffers and symbols are replaced by numbers in the order of first use;
    constants and index expressions stand where they are used; operations that torch renamed have one name.

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
    writer = _BodyWriter(body, symbols)
    if "body" in writer.blocks:
        writer.block(writer.blocks["body"], set())
    return writer.text


class _BodyWriter:
    def __init__(self, body: LoopBody, symbols: Symbols) -> None:
        self.symbols = symbols
        self.indexes = dict(body.indexes)
        self.blocks = {block.name: block for block in body.blocks}
        self.names = {name: f"v{number}" for number, (name, _) in enumerate(body.var_ranges)}
        self.text = BodyText(tuple(symbols.dim(dim) for _, dim in body.var_ranges))

    def block(self, block: Block, above: set[str]) -> str:
        """Write the statements of a block; return its result."""
        values: dict[str, str] = {}
        for op in block.ops:
            name = op.target.partition(".")[2] or op.target
            name = _RENAMED.get(name, name)
            numberless = re.sub(r"\d+$", "", name)
            if name == "get_index":
                values[op.result] = self._index(str(op.args[0]))
            elif name == "constant":
                values[op.result] = self._joined(op.args, values)
            elif name.startswith("set_indirect"):
                self.names[f"indirect{name.removeprefix('set_indirect')}"] = self._joined(op.args[:1], values)
            elif name in self.blocks and name not in above:
                self._statement(op, block, numberless, values)
                result = f"return {self.block(self.blocks[name], {*above, block.name})}"
                values[op.result] = self._add(op, block, result, result)
            elif name in _LOADS or name in _STORES:
                buffers = self.text.reads if name in _LOADS else self.text.writes
                number = buffers.setdefault(str(op.args[0]), len(buffers))
                index = self._value(op.args[1], values) if len(op.args) > 1 else ""
                rest = self._joined(op.args[2:], values)
                full, bare = f"{name}({number}, {index}, {rest})", f"{name}({number}, {rest})"
                values[op.result] = self._add(op, block, full, bare)
            else:
                values[op.result] = self._statement(op, block, name, values)
            if name not in ("constant", "get_index"):
                self.text.targets[numberless if op.target.startswith("self.") else name] += 1
        return self._value(block.result, values)

    def _statement(self, op: Op, block: Block, name: str, values: dict[str, str]) -> str:
        named = [f"{key}={self._value(value, values)}" for key, value in op.kwargs if key not in _DERIVED]
        arguments = ", ".join([*([self._joined(op.args, values)] if op.args else []), *named])
        # An index that is computed with, or checked, is an index all the same.
        bare = "" if op.target in _INDEXED else arguments
        return self._add(op, block, f"{name}({arguments})", f"{name}({bare})")

    def _add(self, op: Op, block: Block, full: str, bare: str) -> str:
        self.text.bare.append(bare)
        self.text.full.append(full)
        self.text.ops.append((op, block.name))
        return f"t{len(self.text.full) - 1}"

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


def statement(body: LoopBody, op: Op, block: str) -> Statement:
    """Return an operation as it stands in the dump, index and constants in their places."""
    texts = {}
    for other in (op for part in body.blocks if part.name == block for op in part.ops):
        if other.target == "ops.constant" and other.args:
            texts[other.result] = str(other.args[0])
        elif other.target == "self.get_index" and other.args:
            texts[other.result] = body.index(str(other.args[0])) or str(other.args[0])

    def shown(value: Value) -> str:
        match value:
            case Ref(name):
                return texts.get(name, name)
            case Dotted(text):
                return text
            case tuple():
                return f"({', '.join(shown(item) for item in value)})"
        return repr(value)

    if op.target == "[]":
        return Statement(f"{shown(op.args[0])}[{shown(op.args[1])}]", body.place(op), block)
    arguments = ", ".join([*map(shown, op.args), *(f"{key}={shown(value)}" for key, value in op.kwargs)])
    name = op.target.removeprefix("ops.").removeprefix("self.")
    return Statement(f"{name}({arguments})", body.place(op), block)


def normal_type(text: str) -> str:
    """Return the type of an argument under the one name that all versions of torch could give it."""
    return text.replace("unsigned char", "uint8_t").replace("long", "int64_t")


@lru_cache(maxsize=4096)
def normal_source(kernel: Kernel) -> tuple[str, ...]:
    """Return the lines of a kernel without what differs from dump to dump and from torch to torch.

    Left out are the kernel's name, comments, paths, hashes and empty lines. Size arguments are called by the
    order of their first use, 64-bit integers by one name; casts between them and brackets around a product in
    a sum are dropped.
    """
    text = kernel.source.replace(kernel.name, "KERNEL")
    text = re.sub(r"\bdef triton_\w+\(", "def KERNEL(", text)
    text = _HASH.sub("HASH", text)
    sizes: dict[str, str] = {}
    text = _SIZE.sub(lambda match: sizes.setdefault(match[0], f"size{len(sizes)}"), text)
    lines = []
    for line in text.split("\n"):
        shown = line
        for pattern, replacement in (*_RULES.get(kernel.backend, ()), *_BRACKETS):
            shown = pattern.sub(replacement, shown)
        if words := shown.split():
            lines.append(" " * (len(shown) - len(shown.lstrip())) + " ".join(words))
    return tuple(lines)
