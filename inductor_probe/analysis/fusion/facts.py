"""What the IR alone proves about two nodes: their loops, their order, and what they share."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from math import prod
from typing import NamedTuple, TypeAlias

from inductor_probe.analysis.graph import GraphIndex, index_of
from inductor_probe.analysis.index import all_numbers, known_sum
from inductor_probe.analysis.links import links, nodes_of
from inductor_probe.analysis.memory_format import ITEM_BYTES
from inductor_probe.analysis.names import ANYTHING, resolve
from inductor_probe.errors import AmbiguousError, NotFoundError
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import CauseCode, Decision, Operand
from inductor_probe.model.fusion import NodeKind, Order, PairFacts, PairMember, Relation, SharedBuffer
from inductor_probe.model.ir import BufferLayout, Dep, Dim, MemoryDep, SchedulerNode, WeakDep

_OUTER_LOOPS_SINCE = (2, 4)
_SYMBOL = re.compile(r"[A-Za-z_]\w*")
_INDIRECT = re.compile(r"(?:tmp|indirect)\d+")

Dims: TypeAlias = tuple[Dim, ...]
Operands: TypeAlias = dict[str, Operand]


class Fit(NamedTuple):
    """Whether loops fit one kernel, None when that is not known; `depth`: as so many common outer loops only.

    `code` and `operands` are those of the refusal where they do not fit.
    """

    fits: bool | None
    depth: int | None = None
    code: CauseCode = "other"
    operands: Operands = {}  # noqa: RUF012 - never changed


def members_of(graph: CompiledGraph, name: str) -> tuple[str, ...]:
    """Return the unfused nodes that `name` means: a node, a fused one, or what makes a buffer or kernel.

    Raises:
        NotFoundError: nothing of that name; similar names are offered.
        AmbiguousError: a kernel, line, FX node or operator that several nodes make.
    """
    before, top = index_of(graph).before, index_of(graph).post.top
    subject = resolve(graph, name, ANYTHING)
    members = tuple(node for node in nodes_of(graph, subject) if node in before.leaf)
    tops = tuple(dict.fromkeys(top[node].name for node in members if node in top))
    if subject.type not in ("node", "buffer") and len(tops) > 1:
        message = f"{subject.name} of {graph.name} is made by {len(tops)} nodes, and fusion is about one"
        raise AmbiguousError(message, f"name one of {', '.join(tops)}")
    if members:
        return members
    raise NotFoundError(
        f"{name} is an input of {graph.name}: no node writes it, so none can be fused"
        if name in before.readers
        else f"{name} of {graph.name} is neither a node before fusion nor written by one",
        f"name a node (op3) or a buffer that one writes (buf3); probe show {name} has what this is",
    )


def pair_facts(
    graph: CompiledGraph, first: str, second: str, origins: Mapping[str, tuple[str, ...]]
) -> PairFacts:
    """Compare the nodes called `first` and `second`; `origins` are FX nodes that the log names.

    Raises:
        NotFoundError: a name that the graph does not have.
    """
    index = index_of(graph)
    nodes = (members_of(graph, first), members_of(graph, second))
    order: Order = "first"
    direct, path = path_between(index, *nodes)
    if not (direct or path):
        direct, path = path_between(index, nodes[1], nodes[0])
        order = "second" if direct or path else "none"
    position = index.before.place
    swapped = order == "second" or (order == "none" and position[nodes[1][0]] < position[nodes[0][0]])
    earlier, later = reversed(nodes) if swapped else nodes
    fit = fit_loops(graph, earlier, later, dependent=order != "none")
    refusal = Decision(
        0, "fusion", "node", (earlier, later), "refused", fit.code, tuple(fit.operands.items()), None,
        knowledge="inferred",
    )  # fmt: skip
    leaves = [index.before.named(members) for members in nodes]
    return PairFacts(
        first=_member(graph, first, nodes[0], origins),
        second=_member(graph, second, nodes[1], origins),
        order=order,
        direct=direct,
        path=path,
        shared=shared_buffers(leaves[0], leaves[1], index.before.layouts),
        loops_fit=fit.fits,
        outer_depth=fit.depth,
        loops=refusal if fit.fits is False else None,
    )


def _member(
    graph: CompiledGraph, name: str, members: tuple[str, ...], origins: Mapping[str, tuple[str, ...]]
) -> PairMember:
    index = index_of(graph)
    leaves = index.before.named(members)
    tops = {top.name for member in members if (top := index.post.top.get(member))}
    lead = lead_of(leaves)
    linked = links(graph).of_nodes(members)
    logged = [origin for member in members for origin in origins.get(member, ())]
    kernels = {link.kernel for link in linked}
    return PairMember(
        name=name,
        nodes=members,
        buffers=tuple(buffer.name for leaf in leaves for buffer in leaf.outputs),
        top=tops.pop() if len(tops) == 1 else None,
        kinds=tuple(dict.fromkeys(map(kind_of, leaves))),
        device=lead.device,
        iteration=lead.iteration,
        sizes=lead.sizes,
        origins=tuple(
            dict.fromkeys(logged or (name for link in linked for name in link.fx or link.fx_candidates))
        ),
        kernel=kernels.pop() if len(kernels) == 1 else None,
        span=lead.span,
    )


def lead_of(leaves: Collection[SchedulerNode]) -> SchedulerNode:
    """Return the node whose loops a fused node has: the one that reduces, if one does."""
    first = next(iter(leaves))
    return next((leaf for leaf in leaves if is_reduction(leaf)), first)


def is_reduction(node: SchedulerNode) -> bool:
    """Whether an unfused node reduces: its loops are `((512,), (1000,))` in C++, `(512, 1000)` in Triton."""
    return node.iteration is not None and len(node.iteration) > 1 and node.iteration[1] not in ((), 1)


def kind_of(node: SchedulerNode) -> NodeKind:
    """Return what an unfused node is to the scheduler."""
    if node.kind.startswith("Extern"):
        return "extern"
    if node.kind.startswith("Nop"):
        return "nop"
    if node.ir.endswith("TemplateBuffer"):
        return "template"
    return "reduction" if is_reduction(node) else "pointwise"


def path_between(
    index: GraphIndex, before: Collection[str], after: Collection[str]
) -> tuple[bool, tuple[str, ...]]:
    """Return whether a node of `after` reads what one of `before` writes, and the shortest path between.

    A breadth-first search backwards from `after`. The path names nodes and buffers in turn: `op0`, `buf0`,
    `op1`, `buf1`, `op4`.
    """
    direct = False
    reached: dict[str, tuple[str, str]] = {}  # by producer, the buffer and the node that led there
    queue = deque(after)
    while queue:
        name = queue.popleft()
        leaf = index.before.leaf[name]
        for dep in leaf.unmet_dependencies + leaf.met_dependencies:
            producer = index.before.producer.get(dep.name)
            if producer is None or producer == name or producer in after or producer in reached:
                continue
            if producer not in before:
                reached[producer] = (dep.name, name)
                queue.append(producer)
            elif name in after:
                direct = True
            else:
                path = [producer, dep.name, name]
                while name in reached:
                    buffer, name = reached[name]
                    path += [buffer, name]
                return direct, tuple(path)
    return direct, ()


def fit_loops(
    graph: CompiledGraph, first: Collection[str], second: Collection[str], *, dependent: bool
) -> Fit:
    """Return whether the loops of two nodes can be one nest, by the rules of the backend in torch 2.13.

    What the rules need of the nodes besides loops is not considered.

    Args:
        graph: which has them.
        first, second: unfused nodes; the first runs first.
        dependent: `second` reads of what `first` writes.
    """
    leaf = index_of(graph).before.leaf
    match [lead_of([leaf[name] for name in names]).iteration for names in (first, second)]:
        case [(tuple(vars1), tuple(reduced1)), (tuple(vars2), tuple(reduced2))]:
            version = re.match(r"(\d+)\.(\d+)", graph.torch_version or "")
            # A torch whose version is not known is a late one.
            outer_loops = version is None or (int(version[1]), int(version[2])) >= _OUTER_LOOPS_SINCE
            return _fit_cpp((vars1, reduced1), (vars2, reduced2), dependent, dependent and outer_loops)
        case [(int() | str() as numel1, rnumel1), (int() | str() as numel2, rnumel2)]:
            return _fit_triton(numel1, rnumel1, numel2, rnumel2)
    return Fit(None)


def _fit_cpp(one: tuple[Dims, Dims], other: tuple[Dims, Dims], dependent: bool, outer_loops: bool) -> Fit:
    """The rules of `can_fuse_vertical` and `_can_fuse_horizontal_impl` in `codegen/cpp.py`.

    For example `((512, 1000), ())` fits `((512,), (1000,))`: the loops of the second with its reduction. With
    the reduction first and its result used by the pointwise node they have one outer loop in common
    (`can_fuse_vertical_outer_loop`): the sum of a row is complete only after the row.
    """
    (vars1, reduced1), (vars2, reduced2) = one, other
    outer_only = dependent and reduced1 != ()
    if not outer_only and (one == other or (not reduced1 and vars1 == vars2 + reduced2)):
        return Fit(True)
    if not reduced1 + reduced2 and 1 in (len(vars1), len(vars2)) and _elements(vars1) == _elements(vars2):
        return Fit(None)  # they fit where the buffers have one size
    depth = min(len(vars1), len(vars2))
    equal = next((n for n in range(depth) if vars1[n] != vars2[n]), depth)
    if outer_loops and depth and equal == depth:
        return Fit(True, depth)
    operands: Operands = {
        "first_ranges": _tuple(vars1), "first_reduction": _tuple(reduced1),
        "second_ranges": _tuple(vars2), "second_reduction": _tuple(reduced2),
    }  # fmt: skip
    if dependent:
        operands["outer_depth"] = equal
    return Fit(False, None, "no-common-outer-loop" if outer_only else "loop-ranges-differ", operands)


def _tuple(dims: Dims) -> str:
    return f"({', '.join(map(str, dims))})"


def _elements(dims: Dims) -> int | str:
    numbers = all_numbers(dims)
    return "*".join(map(str, dims)) if numbers is None else prod(numbers)


def _fit_triton(numel1: Dim, rnumel1: Dim | Dims, numel2: Dim, rnumel2: Dim | Dims) -> Fit:
    """The rules of `can_fuse` in `codegen/simd.py`: one grid and one reduction for a whole kernel."""
    if (numel1, rnumel1) == (numel2, rnumel2):
        return Fit(True)
    operands: Operands = {
        "first_numel": numel1, "second_numel": numel2,
        "first_rnumel": str(rnumel1), "second_rnumel": str(rnumel2),
    }  # fmt: skip
    if (rnumel1 == 1) == (rnumel2 == 1):
        return Fit(False, None, "numels-differ" if rnumel1 == 1 else "reductions-differ", operands)
    pointwise, results, reduced = (numel1, numel2, rnumel2) if rnumel1 == 1 else (numel2, numel1, rnumel1)
    if pointwise == results:
        return Fit(True)
    if isinstance(pointwise, int) and isinstance(results, int) and isinstance(reduced, int):
        return Fit(pointwise == results * reduced, None, "numel-of-neither", operands)
    return Fit(None)


class _Uses:
    """The deps of some nodes by buffer, each once: those that move data, and those of order alone."""

    def __init__(self, nodes: Iterable[SchedulerNode]) -> None:
        self.reads: dict[str, dict[Dep, None]] = {}
        self.writes: dict[str, dict[Dep, None]] = {}
        self.orders: dict[str, dict[Dep, None]] = {}
        for node in nodes:
            for dep in node.reads:
                kind = self.orders if isinstance(dep, WeakDep) else self.reads
                kind.setdefault(dep.name, {})[dep] = None
            for dep in node.writes:
                self.writes.setdefault(dep.name, {})[dep] = None
        self.names = dict.fromkeys((*self.writes, *self.reads, *self.orders))


def shared_buffers(
    first: Iterable[SchedulerNode], second: Iterable[SchedulerNode], layouts: Mapping[str, BufferLayout]
) -> tuple[SharedBuffer, ...]:
    """Return the buffers that both of two sets of nodes use, those with most bytes in common first."""
    one, other = _Uses(first), _Uses(second)
    rows: list[SharedBuffer] = []
    for name in one.names:
        if name not in other.names:
            continue
        firsts, seconds = (uses.writes.get(name, {}) | uses.reads.get(name, {}) for uses in (one, other))
        equal = [dep for dep in firsts if dep in seconds]
        row = SharedBuffer(
            buffer=name,
            relation=_relation(name, one, other),
            first=tuple(firsts or one.orders.get(name, {})),
            second=tuple(seconds or other.orders.get(name, {})),
            matches=bool(equal),
            bytes=known_sum(_bytes(dep, layouts.get(name)) for dep in equal) if equal else None,
        )
        rows.append(row)
    return tuple(sorted(rows, key=lambda row: (not row.matches, -(row.bytes or 0))))


def _relation(name: str, one: _Uses, other: _Uses) -> Relation:
    if name in one.writes:
        if name in other.reads:
            return "first_writes_second_reads"
        return "first_writes_second_writes" if name in other.writes else "first_writes_second_waits"
    if name in other.writes:
        return "second_writes_first_reads" if name in one.reads else "second_writes_first_waits"
    return "both_read" if name in one.reads and name in other.reads else "order_only"


def _bytes(dep: Dep, layout: BufferLayout | None) -> int | None:
    """Bytes of an access by torch's count: each element of the loops in its index once."""
    if layout is None or layout.dtype not in ITEM_BYTES:
        return None
    sizes: Iterable[Dim] | None = layout.size
    if isinstance(dep, MemoryDep) and not _INDIRECT.search(dep.index):
        used = set(_SYMBOL.findall(dep.index))
        sizes = [size for name, size in dep.ranges if name in used]
    numbers = None if sizes is None else all_numbers(sizes)
    return None if numbers is None else ITEM_BYTES[layout.dtype] * prod(numbers)
