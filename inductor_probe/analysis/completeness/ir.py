"""`ir_pre_fusion.txt` and `ir_post_fusion.txt`: fields, nodes among each other, loop bodies, and both files.

The fields: `BaseSchedulerNode.debug_str`, `SchedulerBuffer.debug_str` and `SchedulerNode.debug_str_extra` in
`torch/_inductor/scheduler.py` print them without a condition, but for `aliases` and `mutations`.

The nodes: `Scheduler.compute_dependencies` makes the users of a buffer from what the nodes read.
`dead_node_elimination` takes a removed node out of the file, but in some releases not from among the users of
what it read: a user that is in neither file was removed.

The loop bodies: `LoopBody.debug_str` in `torch/_inductor/loop_body.py` prints `var_ranges`, the index
expressions and then one function a block, as torch.fx generates it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import pairwise
from pathlib import Path

from inductor_probe.analysis.access import STORES
from inductor_probe.analysis.completeness import Defect, SoundTexts
from inductor_probe.analysis.completeness.python_names import expression_names
from inductor_probe.analysis.graph import NodeIndex
from inductor_probe.model.ir import (
    Block,
    Buffer,
    LoopBody,
    MemoryDep,
    Op,
    Ref,
    SchedulerNode,
    StarDep,
    Value,
    WeakDep,
)
from inductor_probe.model.span import Span
from inductor_probe.reader.blocks import LAYOUT_LINE, OUTPUT_HEADER, NodeBlock, Statement, split
from inductor_probe.reader.ir import lacks_children
from inductor_probe.reader.values import shorten

_OUTPUTS = "outputs"
_DEPS = ("writes", "unmet_dependencies", "met_dependencies")
_DISTANCES = ("min_input_distance", "max_input_distance")
_LOOPS = ("group.device", "group.iteration", "sizes")
_KERNEL = "node.kernel"
_OPTIONAL = ("aliases", "mutations")
_FIELDS = (*_DEPS, *_DISTANCES, "users", _OUTPUTS, *_LOOPS, LAYOUT_LINE, *_OPTIONAL, _KERNEL, "body")
_ORDER = {key: position for position, key in enumerate(_FIELDS)}
_OUTPUT_ORDER = {key: position for position, key in enumerate(("layout", *_OPTIONAL, "users"))}
_DEP_NAME = re.compile(r"(?:MemoryDep\(|StarDep\(name=)'(?P<name>\w+)'")
_DISTANCE = re.compile(r"-?\d+|inf")
# Templates have no loop body that torch prints.
_NO_BODY = re.compile(r"\w*Template\w*")

_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?!\w*[(.])")
_METHOD = re.compile(r"self\.(?P<name>(?:masked_subblock|scan)\d+)")
_CONSTANTS = frozenset(("inf", "nan", "pi", "E", "I", "oo", "zoo"))
_SYMBOL = re.compile(r"(?:zuf|[a-z]{1,3})\d+")

# What `Scheduler.fuse_nodes` and the passes behind it do not change. Loops, and the deps made of them, are
# merged and reordered, and deps are pruned.
_SAME_OF_NODE = ("kind", "ir", "kernel", "device", "min_input_distance", "max_input_distance")
_SAME_OF_BUFFER = ("layout", "aliases", "mutations", "users")


def field_defects(text: str) -> Iterator[Defect]:
    """Yield what an IR file lacks of the lines that torch prints for every node."""
    lines = text.split("\n")
    if text:
        yield from _separators(lines)
    blocks: list[NodeBlock] = []
    stack = split(text).nodes[::-1]
    while stack:
        blocks.append(stack.pop())
        stack += blocks[-1].children[::-1]
    keys = {statement.key for block in blocks for statement in block.statements}
    # These came and went with releases of torch: if one node of a file has it, each of them has.
    required = {*_DEPS, *(key for key in (*_DISTANCES, "users") if key in keys)}
    if any(block.outputs for block in blocks):
        required.add(_OUTPUTS)
    for block in blocks:
        yield from _missing(block, required, LAYOUT_LINE in keys)
        if block.outputs:
            first = block.outputs[0].first - 1
            if lines[first - 1].strip() != f"{block.name}.{_OUTPUTS} = [":
                yield first, f"not understood: {shorten(lines[first - 1].strip())}"
        yield from _field_order(block)
        yield from _outputs(block.outputs)
        yield from _children(block)


def _separators(lines: list[str]) -> Iterator[Defect]:
    """Torch joins the nodes with two empty lines between them and as many behind the last (`debug.py`)."""
    empty = 0
    for number, line in enumerate(lines, 1):
        if not line:
            empty += 1
            continue
        if empty not in (0, 2) or (empty and number == empty + 1):
            yield number, "expected two empty lines between nodes"
        empty = 0
    if empty != 3:
        yield len(lines), "cut off: expected two empty lines after the last node"


def _missing(block: NodeBlock, everywhere: Set[str], layouts: bool) -> Iterator[Defect]:
    present = {statement.key for statement in block.statements} | ({_OUTPUTS} if block.outputs else set())
    required = set(everywhere)
    if block.kind == "SchedulerNode":
        required.update(_LOOPS)
        if not block.body and not _NO_BODY.fullmatch(block.ir):
            yield block.first, f"{block.name} has no loop body"
        if layouts:
            yield from _layouts(block)
    elif block.kind == "ExternKernelSchedulerNode":
        required.add(_KERNEL)
    for key in sorted(required - present):
        yield block.first, f"{block.name} has no line {block.name}.{key}"
    for statement in block.statements:
        if statement.key in _DISTANCES and not _DISTANCE.fullmatch(statement.value.strip()):
            yield statement.first, f"not a distance: {shorten(statement.value)}"


def _layouts(block: NodeBlock) -> Iterator[Defect]:
    """A layout is printed for each dependency except those of order, even where the buffer is the same."""
    printed: Counter[str] = Counter()
    deps: Counter[str] = Counter()
    for statement in block.statements:
        if statement.key == LAYOUT_LINE:
            printed[statement.owner] += 1
        elif statement.key in _DEPS:
            deps.update(match["name"] for match in _DEP_NAME.finditer(statement.value))
    for name, count in deps.items():
        # There may be more of them: a dependency was pruned (foreach of torch 2.4).
        if printed[name] < count:
            yield (
                block.first,
                f"{block.name} has {printed[name]} lines {name}_layout for {count} dependencies",
            )


def _field_order(block: NodeBlock) -> Iterator[Defect]:
    """A field before its predecessor was moved, or begins a node that lost its header."""
    fields = [(statement.first, statement.key) for statement in block.statements if statement.key in _ORDER]
    if block.outputs:
        fields.append((block.outputs[0].first - 1, _OUTPUTS))
    if block.body:
        fields.append((block.body_first, "body"))
    for (_, before), (line, key) in pairwise(sorted(fields)):
        if _ORDER[key] < _ORDER[before] or (key == before and key != LAYOUT_LINE):
            yield line, f"{block.name}.{key} comes after {block.name}.{before}"


def _outputs(statements: list[Statement]) -> Iterator[Defect]:
    keys: list[str] = []
    header: Statement | None = None
    for statement in (*statements, None):
        if statement is not None and statement.key != OUTPUT_HEADER:
            if header is not None and statement.owner != header.owner:
                yield statement.first, f"{statement.owner}.{statement.key} is in the output {header.owner}"
            keys.append(statement.key)
            continue
        if header is not None:
            for key in ("layout", "users"):
                if key not in keys:
                    yield header.first, f"output {header.owner} has no line {header.owner}.{key}"
            positions = [_OUTPUT_ORDER[key] for key in keys if key in _OUTPUT_ORDER]
            if any(first >= second for first, second in pairwise(positions)):
                yield header.first, f"the lines of output {header.owner} are out of order"
        header, keys = statement, []


def _children(block: NodeBlock) -> Iterator[Defect]:
    """`op0_op1: FusedSchedulerNode(SchedulerNode,SchedulerNode)` joins names, and lists classes."""
    if not block.children:  # torch printed all of them or, where it failed on the way, none
        return
    kinds = ",".join(child.kind for child in block.children)
    if block.ir not in ("NoneType", kinds):
        yield block.first, f"{block.name} lists {block.ir}, but {kinds or 'no node'} follows"
    names = "_".join(child.name for child in block.children)
    if names != block.name:
        yield block.first, f"{block.name} contains {names or 'no node'}"


def lacks_members(top: SchedulerNode) -> bool:
    """Return whether a fused node stands in its file without its members, or one of those without its own.

    The reader may have taken them from the file before fusion: see `with_children`.
    """
    if not top.children:
        return lacks_children(top)
    first = top.children[0].span
    elsewhere = first is not None and top.span is not None and first.path != top.span.path
    return elsewhere or any(lacks_members(child) for child in top.children)


def graph_defects(nodes: NodeIndex, text: str, path: Path) -> Iterator[Defect]:
    """Yield what the nodes of an IR file name that is not among them, and what is not complete in each."""
    buffers = nodes.buffers
    mutated = {*nodes.mutated_as, *(buffer.name for buffer in buffers.values() if buffer.mutations)}
    lines = text.split("\n")
    seen: set[str] = set()
    for leaf in nodes.leaves:
        span = _first(leaf.span)
        if leaf.name in seen:
            yield span, f"{leaf.name} appears twice"
        seen.add(leaf.name)
        yield from _written(leaf, nodes)
        for dep in leaf.unmet_dependencies:
            if dep.name not in buffers:
                yield span, f"{leaf.name} depends on {dep.name}, which no node in the file writes"
        if leaf.body and leaf.span and leaf.span.path == path:  # not one that a fused node only names
            for place, message in _body_defects(leaf, leaf.body, lines, mutated):
                yield place, f"the loop body of {leaf.name} {message}"
    for top in nodes.tops:
        if top.children:
            for message in _fused(top):
                yield _first(top.span), message
    yield from _readers(nodes, mutated)


def _written(leaf: SchedulerNode, nodes: NodeIndex) -> Iterator[Defect]:
    written = {dep.name for dep in leaf.writes}
    for buffer in leaf.outputs:
        # A template changes further buffers in place (the logsumexp of flex attention): no write is printed.
        in_place = buffer.kind == "MutationOutput" and len(leaf.outputs) > 1
        if written and buffer.name not in written and not in_place:
            yield buffer.span or leaf.span, f"{leaf.name} does not write its output {buffer.name}"


def _fused(top: SchedulerNode) -> Iterator[str]:
    """A fused node prints the outputs of its children again (torch 2.5 and later), and joins their writes."""
    leaves = list(top.leaves())
    if any(buffer.layout for buffer in top.outputs):
        outputs = (buffer for leaf in leaves for buffer in leaf.outputs)
        if sorted(map(_facts, top.outputs)) != sorted(map(_facts, outputs)):
            yield f"the outputs of {top.name} are not those of the nodes in it"
    written = {dep.name for leaf in leaves for dep in leaf.writes}
    if {dep.name for dep in top.writes} != written:
        yield f"the writes of {top.name} are not those of the nodes in it"
    read = written.union(dep.name for dep in top.reads)
    for leaf in leaves:
        missing = {dep.name for dep in leaf.met_dependencies if isinstance(dep, MemoryDep)} - read
        if missing:
            yield f"{top.name} does not read {', '.join(sorted(missing))}, which {leaf.name} does"


def _facts(buffer: Buffer) -> str:
    return repr((buffer.name, *(getattr(buffer, key) for key in _SAME_OF_BUFFER)))


def _readers(nodes: NodeIndex, mutated: Set[str]) -> Iterator[Defect]:
    buffers = nodes.buffers
    users = _users(buffers)
    readers: defaultdict[str, set[str]] = defaultdict(set)
    for leaf in nodes.leaves:
        for dep in leaf.reads:
            readers[dep.name].add(leaf.name)
            if not isinstance(dep, WeakDep) and leaf.name not in users.get(dep.name, {leaf.name}):
                yield _first(leaf.span), f"{leaf.name} reads {dep.name}, which does not list it as a user"
    # The users of buffers that share memory are those of all of them.
    aliased = (
        name for buffer in buffers.values() if buffer.aliases for name in (buffer.name, *buffer.aliases)
    )
    shared = {*mutated, *aliased}
    for buffer in buffers.values():
        for user in buffer.users if buffer.name not in shared else ():
            if (
                user.node in nodes.leaf
                and user.node not in buffers  # torch before 2.5 names nodes so, and keeps users it removed
                and not user.is_weak
                and user.kind != "NopKernelSchedulerNode"
                and user.node not in readers[buffer.name]
            ):
                yield buffer.span, f"{buffer.name} has the user {user.node}, which does not read it"


def _users(buffers: Mapping[str, Buffer]) -> dict[str, set[str]]:
    """Return the users of each buffer, with those of buffers that stand for it once it was changed in place.

    A scatter into buf12 makes buf13, which has the users from there on. A node that reads what the scatter
    left reads buf13, but buf12 again where C++ recomputed its loops to fuse it (`recompute_size_and_body`
    in torch/_inductor/scheduler.py does not rename what `_compute_attrs` found).
    """
    users = {name: {user.node for user in buffer.users} for name, buffer in buffers.items()}
    for name, buffer in reversed(list(buffers.items())):  # a buffer that changes another comes after it
        for changed in buffer.mutations:
            users.get(changed, set()).update(users[name])
    return users


def _body_defects(
    node: SchedulerNode, body: LoopBody, lines: list[str], mutated: Set[str]
) -> Iterator[Defect]:
    """Yield what is not complete in a loop body.

    `mutated` are buffers that some node changes, and what those nodes write: dependencies name the one for
    the other (`Scheduler.compute_dependencies`, `mutation_renames`), loop bodies do not.
    """
    span = body.span
    if span is None:
        return
    text = "\n".join(lines[span.first : span.last])
    yield from _bodies.defects(text, lambda: _text_defects(body, text, span))
    for message in _accesses(node, body, mutated):
        yield span, message


_bodies = SoundTexts()
"""Most are in both files, and in further graphs."""


def _text_defects(body: LoopBody, text: str, span: Span) -> Iterator[Defect]:
    """Yield what the text of a loop body lacks by itself."""
    printed = [line.strip() for line in text.split("\n")]
    if not any(line.startswith("var_ranges = ") for line in printed):
        yield span, "has no var_ranges"
    for message in _indexes(body):
        yield span, message
    blocks = {block.name for block in body.blocks}
    if "body" not in blocks:
        yield span, "has no def body"
    yield from _returns(printed, span)
    called = {match["name"] for op in body.ops if (match := _METHOD.fullmatch(op.target))}
    for name in dict.fromkeys(block.name for block in body.blocks):
        if name not in called and name != "body":
            yield span, f"defines {name}, which nothing calls"
    for block in body.blocks:
        yield from _block_names(body, block, blocks)


def _indexes(body: LoopBody) -> Iterator[str]:
    """`index0`, `index1`, ... each over loop variables, indirect values and symbols of the graph."""
    variables = {name for name, _ in body.var_ranges}
    prefixes = {name.rstrip("0123456789") for name in variables}
    # `self.set_indirect0(...)` defines indirect0
    indirect = {op.target.removeprefix("self.set_") for op in body.ops}
    for number, (name, text) in enumerate(body.indexes):
        if name != f"index{number}":
            yield f"has {name} where index{number} is expected"
            return
        if expression_names(text) is None:
            yield f"has {name}, which is not understood: {shorten(text)}"
            continue
        for word in _NAME.findall(text):
            if word in variables or word in _CONSTANTS:
                continue
            if word.startswith("indirect"):
                known = word in indirect
            else:
                known = word.rstrip("0123456789") not in prefixes and _SYMBOL.fullmatch(word) is not None
            if not known:
                yield f"uses {word} in {name}, which nothing defines"


def _returns(printed: list[str], span: Span) -> Iterator[Defect]:
    """Every function ends with its `return`, and nothing is behind it."""
    inside = returned = False
    for number, line in enumerate(printed, span.first + 1):
        if line.startswith("def "):
            if inside and not returned:
                yield number, "has a function without return"
            inside, returned = True, False
        elif line.startswith("return"):
            if returned:
                yield number, "has two returns in one function"
            returned = True
        elif returned:
            yield number, "continues after a return"
    if inside and not returned:
        yield span.last, "has a function without return"


def _block_names(body: LoopBody, block: Block, blocks: Set[str]) -> Iterator[Defect]:
    """The operations are in static single assignment form: a name is defined once, before its uses."""
    known = set(block.params)
    indexes = {name for name, _ in body.indexes}
    for op in block.ops:
        for value in _values(op):
            refs = (value,) if type(value) is Ref else _flat(value) if type(value) is tuple else ()
            for ref in refs:
                if isinstance(ref, Ref) and ref.name not in known:
                    yield body.place(op), f"uses {ref.name} before it is defined"
        if op.target == "self.get_index":
            if not op.args or op.args[0] not in indexes:
                yield body.place(op), f"uses the index {op.args[0] if op.args else ''}, which is not defined"
        elif op.target.startswith("self.masked_") and op.target.removeprefix("self.") not in blocks:
            yield body.place(op), f"calls {op.target.removeprefix('self.')}, which is not defined"
        if op.result in known:
            yield body.place(op), f"defines {op.result} twice"
        known.add(op.result)
    for value in _flat((block.result,)):
        if isinstance(value, Ref) and value.name not in known:
            yield body.span, f"returns {value.name}, which is not defined"


def _accesses(node: SchedulerNode, body: LoopBody, mutated: Set[str]) -> Iterator[str]:
    """Each dep of a node was recorded by running its body (`extract_read_writes` in `dependencies.py`).

    A `StarDep` of such a node is one of order, added for a mutation.
    """
    ops = body.ops
    stored = {str(op.args[0]) for op in ops if op.target in STORES and op.args}
    loaded = {str(op.args[0]) for op in ops if op.target == "ops.load" and op.args}
    read = {dep.name for dep in node.reads if isinstance(dep, MemoryDep)}
    written = {dep.name for dep in node.writes if isinstance(dep, MemoryDep | StarDep)}
    named = loaded
    if not read <= loaded:  # `ops.bucketize` and others name what they read
        named = {value for op in ops for value in _flat(_values(op)) if isinstance(value, str)}
    for names, message in (
        (written - stored, "writes {}, which its loop body does not store"),
        (stored - written, "stores {}, which its writes do not list"),
        (read - named, "reads {}, which its loop body does not load"),
        (loaded - read, "loads {}, which its dependencies do not list"),
    ):
        yield from (message.format(name) for name in sorted(names - mutated))


def _values(op: Op) -> tuple[Value, ...]:
    return (*op.args, *(value for _, value in op.kwargs)) if op.kwargs else op.args


def _flat(values: Iterable[Value]) -> Iterator[Value]:
    for value in values:
        if isinstance(value, tuple):
            yield from _flat(value)
        else:
            yield value


def fusion_defects(before: NodeIndex, after: NodeIndex) -> Iterator[Defect]:
    """Yield nodes that one IR file has and the other lacks, or that differ; places are those after fusion."""
    for name in before.leaf.keys() - after.leaf.keys():
        yield 1, f"{name} is missing: ir_pre_fusion.txt has it"
    for name, leaf in after.leaf.items():
        earlier = before.leaf.get(name)
        if earlier is None:
            yield _first(leaf.span), f"{name} is not in ir_pre_fusion.txt"
        elif "Template" not in leaf.ir + earlier.ir:  # whose choice is made while nodes are fused
            for message in _changed(earlier, leaf):
                yield _first(leaf.span), message


def _changed(before: SchedulerNode, after: SchedulerNode) -> Iterator[str]:
    for key in _SAME_OF_NODE:
        if getattr(before, key) != getattr(after, key):
            yield f"{key} of {after.name} differs from ir_pre_fusion.txt"
    if before.body and after.body and _operations(before.body) != _operations(after.body):
        yield f"the operations in the loop body of {after.name} differ from ir_pre_fusion.txt"
    earlier = {buffer.name: buffer for buffer in before.outputs}
    later = {buffer.name: buffer for buffer in after.outputs}
    for name in earlier.keys() ^ later.keys():
        yield f"only one of the IR files has the output {name} of {after.name}"
    for name in earlier.keys() & later.keys():
        for key in _SAME_OF_BUFFER:
            if getattr(earlier[name], key) != getattr(later[name], key):
                yield f"{key} of {name} differs from ir_pre_fusion.txt"


def _operations(body: LoopBody) -> Counter[str]:
    """How often a body does what; merging and reordering its loops traces it again, with other indexes."""
    return Counter(op.target for op in body.ops if op.target.startswith("ops."))


def _first(span: Span | None) -> Span | None:
    return Span(span.path, span.first, span.first) if span else None
