"""Loop bodies: every name is defined before it is used, and what is stored and loaded is what the node's deps
say.

`LoopBody.debug_str` in `torch/_inductor/loop_body.py` prints `var_ranges`, the index expressions and then one
function a block, as torch.fx generates it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from inductor_probe.analysis.completeness.python_names import expression_names
from inductor_probe.model.ir import Block, LoopBody, MemoryDep, Op, Ref, SchedulerNode, StarDep, Value
from inductor_probe.model.span import Problem, Span

_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?!\w*[(.])")
_SET_INDIRECT = re.compile(r"self\.set_(?P<name>indirect\d+)")
_METHOD = re.compile(r"self\.(?P<name>(?:masked_subblock|scan)\d+)")
_CONSTANTS = frozenset(("inf", "nan", "pi", "E", "I", "oo", "zoo"))
_SYMBOL = re.compile(r"(?:zuf|[a-z]{1,3})\d+")
_STORES = ("ops.store", "ops.store_reduction")


def body_problems(node: SchedulerNode, lines: list[str], renamed: Set[str]) -> Iterator[Problem]:
    """Yield what is not complete in the loop body of `node`.

    Args:
        node: an unfused node.
        lines: of its file.
        renamed: buffers that some node changes, and what those nodes write: dependencies name the one for the
            other (`Scheduler.compute_dependencies`, `mutation_renames`), loop bodies do not.
    """
    body = node.body
    if body is None or body.span is None:
        return
    span = body.span
    printed = [line.strip() for line in lines[span.first : span.last]]
    if not any(line.startswith("var_ranges = ") for line in printed):
        yield _problem(node, "has no var_ranges", span)
    yield from _indexes(node, body)
    names = [block.name for block in body.blocks]
    if "body" not in names:
        yield _problem(node, "has no def body", span)
    yield from _returns(node, printed, span)
    called = {
        match["name"] for block in body.blocks for op in block.ops if (match := _METHOD.fullmatch(op.target))
    }
    for name in names:
        if name not in called and name != "body":
            yield _problem(node, f"defines {name}, which nothing calls", span)
    for block in body.blocks:
        yield from _names(node, body, block, names)
    yield from _accesses(node, body, renamed)


def _indexes(node: SchedulerNode, body: LoopBody) -> Iterator[Problem]:
    """`index0`, `index1`, ... each over loop variables, indirect values and symbols of the graph."""
    assert body.span is not None  # noqa: S101 - for the type checker: the caller has asked
    variables = {name for name, _ in body.var_ranges}
    prefix = {re.sub(r"\d+$", "", name) for name in variables}
    indirect = {
        match["name"]
        for block in body.blocks
        for op in block.ops
        if (match := _SET_INDIRECT.fullmatch(op.target))
    }
    for index, (name, text) in enumerate(body.indexes):
        if name != f"index{index}":
            yield _problem(node, f"has {name} where index{index} is due", body.span)
            return
        if problem := expression_names(text, body.span)[1]:
            yield problem
            continue
        for word in _NAME.findall(text):
            if word in variables or word in indirect or word in _CONSTANTS:
                continue
            if (
                word.startswith("indirect")
                or re.sub(r"\d+$", "", word) in prefix
                or not _SYMBOL.fullmatch(word)
            ):
                yield _problem(node, f"uses {word} in {name}, which nothing defines", body.span)


def _returns(node: SchedulerNode, printed: list[str], span: Span) -> Iterator[Problem]:
    """Every function ends with its `return`, and nothing stands behind it."""
    inside = returned = False
    for index, line in enumerate(printed, span.first + 1):
        if line.startswith("def "):
            if inside and not returned:
                yield _problem(node, "has a function without return", Span(span.path, index, index))
            inside, returned = True, False
        elif line.startswith("return"):
            if returned:
                yield _problem(node, "has two returns in one function", Span(span.path, index, index))
            returned = True
        elif returned:
            yield _problem(node, "goes on behind a return", Span(span.path, index, index))
    if inside and not returned:
        yield _problem(node, "has a function without return", Span(span.path, span.last, span.last))


def _names(node: SchedulerNode, body: LoopBody, block: Block, functions: list[str]) -> Iterator[Problem]:
    """The operations are in static single assignment form: a name is defined once, before its uses."""
    known = set(block.params)
    indexes = {name for name, _ in body.indexes}
    for op in block.ops:
        span = body.place(op)
        for name in _refs((*op.args, *(value for _, value in op.kwargs))):
            if name not in known:
                yield _problem(node, f"uses {name} before it is defined", span)
        if op.target == "self.get_index":
            if not op.args or op.args[0] not in indexes:
                yield _problem(
                    node, f"asks for the index {op.args[0] if op.args else ''}, which is not there", span
                )
        elif (
            (match := _METHOD.fullmatch(op.target))
            and match["name"].startswith("masked")
            and match["name"] not in functions
        ):
            yield _problem(node, f"calls {match['name']}, which is not there", span)
        if op.result in known:
            yield _problem(node, f"defines {op.result} twice", span)
        known.add(op.result)
    for name in _refs((block.result,)):
        if name not in known:
            yield _problem(node, f"returns {name}, which is not defined", body.span)


def _refs(values: tuple[Value, ...]) -> Iterator[str]:
    for value in values:
        if isinstance(value, Ref):
            yield value.name
        elif isinstance(value, tuple):
            yield from _refs(value)


def _accesses(node: SchedulerNode, body: LoopBody, renamed: Set[str]) -> Iterator[Problem]:
    """Each dep of a node was recorded by running its body (`extract_read_writes` in `dependencies.py`).

    A `StarDep` of such a node is one of order, added for a mutation.
    """
    ops = [op for block in body.blocks for op in block.ops]
    stored = {_buffer(op) for op in ops if op.target in _STORES}
    loaded = {_buffer(op) for op in ops if op.target == "ops.load"}
    touched = {name for op in ops for name in _texts((*op.args, *(value for _, value in op.kwargs)))}
    read = {dep.name for dep in node.reads if isinstance(dep, MemoryDep)}
    written = {dep.name for dep in node.writes if isinstance(dep, MemoryDep | StarDep)}
    for names, what in (
        (written - stored, "writes {}, which its loop body does not store"),
        (stored - written, "stores {}, which its writes do not list"),
        (read - touched, "reads {}, which its loop body does not load"),
        (loaded - read, "loads {}, which its dependencies do not list"),
    ):
        for name in sorted(names - renamed):
            yield _problem(node, what.format(name), body.span)


def _buffer(op: Op) -> str:
    return str(op.args[0]) if op.args else ""


def _texts(values: tuple[Value, ...]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            yield from _texts(value)


def _problem(node: SchedulerNode, what: str, span: Span | None) -> Problem:
    return Problem(f"the loop body of {node.name} {what}", span)
