"""Triton kernels with parts left out, by text."""

from __future__ import annotations

import ast
import re

from inductor_probe.backends.brackets import inside
from inductor_probe.variants.accesses import Access, body_start
from inductor_probe.variants.code import KernelCode, mentioned

CHECK = re.compile(r"^\s*tl\.device_assert\(")
_TYPES = {
    "*fp16": "tl.float16", "*bf16": "tl.bfloat16", "*fp32": "tl.float32", "*fp64": "tl.float64",
    "*i1": "tl.int1", "*i8": "tl.int8", "*i16": "tl.int16", "*i32": "tl.int32", "*i64": "tl.int64",
    "*u8": "tl.uint8", "*u16": "tl.uint16", "*u32": "tl.uint32", "*u64": "tl.uint64",
}  # fmt: skip
# One operand, over the last dimension: `tmp4 = tl.sum(tmp3, 1)[:, None].to(tl.float32)`.
_REDUCED = re.compile(
    r"^(?P<indent>\s*)(?P<name>\w+) = (?:tl\.sum|triton_helpers\.(?:max2|min2|any|prod))"
    r"\((?P<value>\w+), 1\)\[:, None\](?P<cast>(?:\.to\([\w.]+\))*)$"
)
_OTHER_REDUCTION = re.compile(
    r"\btl\.(?:sum|max|min|reduce|associative_scan|argmax|argmin|xor_sum|sort|cumsum)\("
    r"|\btriton_helpers\.(?:max2|min2|any|prod|welford\w*|\w+_with_index|exclusive_scan\w*|online_softmax\w*)\("
)
# torch/_inductor/kernel/templates/triton_mm.py.jinja: what is fused stands below this comment.
MARKER = "# inductor generates a suffix"
_ACCUMULATOR = "acc"


def without_reduction(kernel: KernelCode) -> str:
    """Return the source without the combination across the threads of a block, which costs the most.

    An assembly statement that is not pure takes each value that was to be combined, so that it is computed;
    the result is made from the index. What a loop adds up thread by thread stays.
    """
    lines = kernel.source.split("\n")
    first = kernel.source.count("\n", 0, body_start(kernel.source, "triton")) + 1
    for number, line in enumerate(lines, 1):
        if match := _REDUCED.match(line):
            value, indent = match["value"], match["indent"]
            lines[number - 1] = (
                f"{indent}tl.inline_asm_elementwise('mov.b32 $0, $1;', '=r,r', "
                f"[{value}.to(tl.float32).to(tl.int32, bitcast=True)], "
                "dtype=tl.int32, is_pure=False, pack=1)\n"
                f"{indent}{match['name']} = xindex.to({value}.dtype){match['cast']}"
            )
        elif number > first and _OTHER_REDUCTION.search(line):
            raise kernel.refusal(number, "a reduction in a form that is not known")
    return "\n".join(lines)


def with_index(kernel: KernelCode, pointer: str, kind: str, access: Access) -> tuple[int, int, str]:
    """Return the edit that puts the index of an access in the place of what is loaded or stored.

    The program's id keeps an index without variables from being a constant, and makes a tensor of a plain
    number.
    """
    source = kernel.source
    if kind not in _TYPES:
        raise kernel.refusal(access.line, f"the type {kind} of {pointer} is not known")
    value = f"(({access.index}) + tl.program_id(0)).to({_TYPES[kind]})"
    opening = source.index("(", source.rindex("tl.", 0, access.start))
    if not access.writes:
        end = opening + len(inside(source, opening) or "") + 2
        return source.rindex("tl.load", 0, opening), end, value
    start = end = source.index(",", access.end) + 1
    depth = 0
    while depth or source[end] not in ",)":
        depth += (source[end] in "([{") - (source[end] in ")]}")
        end += 1
    return start, end, f" tl.broadcast_to({value}, ({source[start:end].strip()}).shape)"


def without_epilogue(source: str) -> str:
    """Return the text of a Triton template whose last store writes the accumulator as it is.

    The parameters stay, so that it is launched with the same arguments. What it computes is not what the
    graph asks for: it is for timing.

    Raises ValueError: it is no template of this form, or has no epilogue; says which.
    """
    lines = source.split("\n")
    markers = [row for row, line in enumerate(lines, 1) if line.strip() == MARKER]
    if len(markers) != 1:
        raise ValueError(f"not a template with one suffix: {len(markers)} lines say '{MARKER}'")
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ValueError(f"not Python: {error}") from error
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    suffix = [node for function in functions for node in function.body if node.lineno > markers[0]]
    stores = []
    for row, statement in enumerate(suffix):
        match statement:
            case ast.Expr(ast.Call(ast.Attribute(ast.Name("tl"), "store"), args=[_, _, *_]) as call):
                stores.append((row, call))
    if len(stores) != 1:
        raise ValueError(
            f"its suffix has {len(stores)} stores at its top level: cannot tell which one is the template's"
        )
    row, store = stores[0]
    pointer, value, *rest = [*store.args, *(keyword.value for keyword in store.keywords)]
    if isinstance(value, ast.Name) and value.id == _ACCUMULATOR:
        raise ValueError("it has no epilogue: what it stores is the accumulator")
    if _ACCUMULATOR not in mentioned(tree):
        raise ValueError(f"it has no accumulator called {_ACCUMULATOR}")
    # Of the statements above the store, those that its place and mask are made of.
    needed = {name for part in (pointer, *rest) for name in mentioned(part)}
    statements: list[str] = []
    for statement in reversed(suffix[:row]):
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        if needed & {name.id for name in names if isinstance(name.ctx, ast.Store)}:
            needed |= {name.id for name in names}
            statements[:0] = lines[statement.lineno - 1 : statement.end_lineno]
    text = [ast.unparse(argument) for argument in store.args]
    text[1] = _ACCUMULATOR
    text += [f"{keyword.arg}={ast.unparse(keyword.value)}" for keyword in store.keywords]
    stored = f"{' ' * store.col_offset}tl.store({', '.join(text)})"
    end = max(statement.end_lineno or statement.lineno for statement in suffix)
    return "\n".join([*lines[: markers[0]], *statements, stored, *lines[end:]])
