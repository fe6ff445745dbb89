"""What a kernel's text says about the values of a node, where its loop body says nothing.

A loop body has `ops.floordiv(a, b)`. That a division by 0 makes the kernel raise is in the C++ that torch
writes for it, `floor_divide_integral(tmp0, tmp1)` (torch/csrc/inductor/cpp_prefix.h); Triton gets other text.
So each answer needs both: an operation of the body whose operands allow for the case, and the text that
inductor writes for it. A text of another form than those below gets no remark.

What torch 2.13 compiled was compared with eager: shifts of 5 dtypes, as vectors of AVX2 and AVX-512 and as
scalars; divisions of int32 and sums of int32 and int64, as vectors and as scalars. For Triton the text alone
was read.

    a << b, a >> b      C++: the same, for each b.  Triton: MLIR calls the result poison from the width on
    a // b, a % b       b = 0: C++ notes it and throws behind the loops, as eager does
    div(.., "trunc")    b = 0: the process ends with SIGFPE, where eager raises
    (a + 1) > a         C++ of scalars: True for the greatest a, where eager wraps around and gives False
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from inductor_probe.analysis.access import LOADS, STORES
from inductor_probe.analysis.annotation.annotate import RowsOfNode, rows_of
from inductor_probe.analysis.formula.body import BodyValues
from inductor_probe.analysis.formula.indices import IndexReader, IndexUse
from inductor_probe.analysis.formula.values import INDEX, INTEGERS
from inductor_probe.analysis.generated_access import GeneratedAccesses
from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.links import links
from inductor_probe.backends import backend_called
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.formula import Convention
from inductor_probe.model.ir import LoopBody, Ref, SchedulerNode

_BITS = {
    "int8": 8, "uint8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64, "uint64": 64,
}  # fmt: skip
_SHIFTS = frozenset({"bitwise_left_shift", "bitwise_right_shift"})
_DIVISIONS = frozenset({"floordiv", "truncdiv", "remainder", "mod"})
_IN_DOUBT = {"truncdiv": (0, -1)}
"""Divisors of which the result is not what mathematics says; of others than `truncdiv` 0 alone."""
_OVERFLOWING = frozenset({"add", "sub", "mul"})

_GUARDED_SHIFT = re.compile(r"\bmax_shift = sizeof\(")
_SHIFT = re.compile(r"= tmp\d+ (?:<<|>>) tmp\d+;?$", re.MULTILINE)
_RAISES = "inductor_cpu_throw_if_integer_div_error("
_CPP_DIVISIONS = {
    "floordiv": re.compile(r"\bfloor_divide_integral\("),
    "remainder": re.compile(r"\b(?:remainder_integral|mod)\("),
    "mod": re.compile(r"\bmod\("),
    "truncdiv": re.compile(r"= tmp\d+ / (?:tmp\d+;|decltype\(tmp\d+\)::set\()"),
}
_GUARDED_DIVISOR = re.compile(
    r"(?P<zero>tmp\d+) = (?P<divisor>tmp\d+) == tmp\d+\n"
    r"\s*tmp\d+ = tl\.where\((?P=zero), tmp\d+, (?P=divisor)\)"
)
"""TritonOverrides.floordiv puts 1 in the place of a divisor of 0, and 0 in that of the result."""
_TRITON_DIVISIONS = {"truncdiv": " // ", "remainder": " % ", "mod": " % ", "floordiv": " // "}

_SCALAR = re.compile(r"auto (?P<name>tmp\d+) = int(?:32|64)_t\((?P<first>tmp\d+) [-+*] tmp\d+\);")
"""CppOverrides.add, sub and mul. Vectors have no type around: `auto tmp2 = tmp0 + tmp1;`, and wrap around."""
_MASK = re.compile(r"^\s*\w*mask = (?P<value>.*)$", re.MULTILINE)


class NodeCode(Struct, frozen=True):
    """The text of the kernel that computes a node.

    Attributes:
        backend, source: of the kernel, which may compute other nodes, too.
        pointers: through which the kernel reaches each buffer.
        rows: which of its lines, from 1, compute for the node, and which do not.
    """

    backend: str
    source: str
    pointers: Mapping[str, frozenset[str]]
    rows: RowsOfNode

    @property
    def own_text(self) -> str:
        """The lines that may be the node's: without those that are shown to be of others alone."""
        lines = enumerate(self.source.split("\n"), 1)
        return "\n".join(line for row, line in lines if row not in self.rows.other)


def node_code(graph: CompiledGraph, leaf: SchedulerNode, kernel: str | None) -> NodeCode | None:
    """Return the text of a node's kernel; None where that is a library's, or in a form that is not read."""
    made = index_of(graph).kernels.get(kernel or "")
    if made is None or leaf.body is None or made.backend not in ("cpp", "triton"):
        return None
    accesses = GeneratedAccesses(graph, links(graph))
    names = _indirect_buffers(leaf.body)
    pointers = {name: accesses.pointers(leaf.name, made.name, name) for name in names}
    source = made.source.strip("\n")
    operations = {op.target.removeprefix("ops.") for op in leaf.ops}
    is_asked = bool(names or operations & (_SHIFTS | _DIVISIONS) or _SCALAR.search(source))
    rows = rows_of(graph, made.name, leaf.name) if is_asked else RowsOfNode(frozenset(), frozenset())
    return NodeCode(made.backend, source, pointers, rows)


def code_conventions(body: LoopBody, read: BodyValues, code: NodeCode | None) -> Iterator[Convention]:
    """Yield what the text of a node's kernel says beyond the node's loop body."""
    if any(op.target.startswith("self.set_indirect") for op in body.ops):
        yield from _indices(body, code)
    if code is None:
        return
    operations = _operations(body, read)
    if _SHIFTS & operations:
        yield from _shifts(code)
    divisions = _DIVISIONS & operations
    if divisions:
        yield from _divisions(code, divisions)
    if code.backend == "cpp" and _OVERFLOWING & operations and _has_scalar_sum(code):
        yield "overflow-open"
    masks = _MASK.findall(code.source) if code.backend == "triton" else []
    if masks and all(value.startswith("tl.full(") and "True" in value for value in masks):
        yield "constant-block-mask"


def _operations(body: LoopBody, read: BodyValues) -> set[str]:
    """Return the operations on integers whose result may be that of an operand without a proper one.

    Left out are a shift by a number within the type's width, a division by one that is not 0, and sums that
    depend on the loops alone, as those of torch's decompositions (`min(p2 * 2, 345) - p2`).
    """
    table, dtypes = read.values.table, read.values.dtypes
    targets = {op.line: op.target.removeprefix("ops.") for op in body.ops}
    found = set()
    loaded: list[bool] = []
    for value, dtype, lines in zip(table, dtypes, read.values.lines, strict=True):
        loaded.append(value.kind == "load" or any(loaded[arg] for arg in value.args))
        # Index arithmetic has a `floordiv`, too, which no line of the body computes.
        if len(value.args) != 2 or value.kind not in {targets[line] for line in lines}:
            continue
        types = {dtypes[arg] for arg in value.args}
        if not types <= INTEGERS or dtype not in INTEGERS:
            continue
        constant = read.values.constant_text(value.args[1])
        if constant is not None and constant.lstrip("-").isdecimal():
            bits = _BITS["int64" if dtype == INDEX else str(dtype)]
            if value.kind in _SHIFTS and 0 <= int(constant) < bits:
                continue
            if value.kind in _DIVISIONS and int(constant) not in _IN_DOUBT.get(value.kind, (0,)):
                continue
        if value.kind in _OVERFLOWING and not (types & {"int32", "int64"} and loaded[-1]):
            continue
        found.add(value.kind)
    return found


def _shifts(code: NodeCode) -> Iterator[Convention]:
    if code.backend == "triton":
        if _SHIFT.search(code.source):
            yield "shift-open"
    elif _GUARDED_SHIFT.search(code.source) or _SHIFT.search(code.source):
        # ATen shifts with the same guard, and the same vectors (BinaryOpsKernel.cpp, lshift_kernel). Of a
        # scalar shift without the guard, `decltype(tmp0)(tmp0 << tmp1)` of older releases, no remark.
        yield "shift-as-eager"


def _divisions(code: NodeCode, divisions: frozenset[str]) -> Iterator[Convention]:
    text = code.own_text
    if code.backend == "cpp":
        written = {name for name in divisions if _CPP_DIVISIONS[name].search(text)}
        if written - {"truncdiv"} and _RAISES in code.source:
            yield "zero-division-raises"
        if "truncdiv" in written:
            yield "division-open"
        return
    is_guarded = _GUARDED_DIVISOR.search(code.source) is not None
    written = {name for name in divisions if _TRITON_DIVISIONS[name] in text}
    if is_guarded and "floordiv" in written:
        yield "zero-division-is-zero"
    if written - ({"floordiv"} if is_guarded else set()):
        yield "division-open"


def _has_scalar_sum(code: NodeCode) -> bool:
    """Whether a line of the node adds, subtracts or multiplies signed integers that are no vectors.

    Not so what inductor adds itself, in `tmp4 ? tmp3 : tmp0` of an index `tmp0` that it wraps or of a
    remainder: of those it is sure that nothing overflows.
    """
    text = "\n".join(line for row, line in enumerate(code.source.split("\n"), 1) if row in code.rows.sure)
    return any(
        not re.search(rf"tmp\d+ \? {match['name']} : {match['first']};", text)
        for match in _SCALAR.finditer(text)
    )


def _indices(body: LoopBody, code: NodeCode | None) -> Iterator[Convention]:
    """Yield what is done with the indices, where it is the same with all."""
    backend = backend_called(code.backend) if code is not None else None
    uses: set[IndexUse] = set()
    if code is not None and backend is not None:
        reader = IndexReader(code.source)
        like_wrapped = _is_like_wrapped(body)
        for pointers in code.pointers.values():
            accesses = backend.pointer_uses(code.source, pointers)
            mine = [access for access in accesses if access.line not in code.rows.other]
            reached = reader.uses(mine, like_wrapped)
            uses |= reached or {IndexUse(None, False)}
    wrapped, checked = {use.wrapped for use in uses}, {use.checked for use in uses}
    if len(wrapped) != 1 or len(checked) != 1 or None in wrapped:
        yield "indirect-index"
        return
    yield "index-wrapped" if True in wrapped else "index-as-loaded"
    yield "index-checked" if True in checked else "index-not-checked"


def _indirect_buffers(body: LoopBody) -> tuple[str, ...]:
    """Return the buffers that a body reaches at an index with a loaded value in it."""
    indexes = dict(body.indexes)
    found: dict[str, None] = {}
    for block in body.blocks:
        texts = {op.result: indexes.get(str(op.args[0]), "") for op in block.ops if op.target == _GET_INDEX}
        for op in block.ops:
            if op.target not in LOADS and op.target not in STORES:
                continue
            if any(isinstance(arg, Ref) and "indirect" in texts.get(arg.name, "") for arg in op.args[1:2]):
                found[str(op.args[0])] = None
    return tuple(found)


_GET_INDEX = "self.get_index"
_LIKE_WRAPPED = ("ops.where", "ops.add")


def _is_like_wrapped(body: LoopBody) -> bool:
    """Whether an index is a sum or a selection of the program's own, which looks like one that is wrapped."""
    return any(
        op.target.startswith("self.set_indirect") and isinstance(source, Ref) and made.get(source.name)
        for block in body.blocks
        for made in [{op.result: op.target in _LIKE_WRAPPED for op in block.ops}]
        for op in block.ops
        for source in op.args[:1]
    )
