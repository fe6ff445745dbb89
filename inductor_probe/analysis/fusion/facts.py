"""What the IR alone proves about two nodes: their loops, their order, and what they share."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping

from inductor_probe.analysis.fusion.accesses import shared_buffers
from inductor_probe.analysis.fusion.loops import fit_loops
from inductor_probe.analysis.fusion.refusals import is_reduction
from inductor_probe.analysis.graph import GraphIndex, index_of
from inductor_probe.analysis.links import links
from inductor_probe.analysis.names import resolve
from inductor_probe.errors import NotFoundError
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fusion import NodeKind, Order, PairFacts, PairMember
from inductor_probe.model.ir import SchedulerNode

_OUTER_LOOPS_SINCE = (2, 4)

Origins = Mapping[str, tuple[str, ...]]


def members_of(graph: CompiledGraph, name: str) -> tuple[str, ...]:
    """Return the unfused nodes that `name` means: a node, a fused one, or the node that writes a buffer.

    A log names nodes together (`op3_op4`) that no file of the dump has as one.

    Raises:
        NotFoundError: nothing of that name; near names are offered.
    """
    index = index_of(graph)
    before = index.before
    if node := before.node.get(name) or index.post.node.get(name):
        members = tuple(leaf.name for leaf in node.leaves() if leaf.name in before.leaf)
    else:
        parts = tuple(name.split("_"))
        members = parts if all(part in before.leaf for part in parts) else ()
    if not members and name in before.producer:
        members = (before.producer[name],)
    if members:
        return members
    resolve(graph, name, ("node", "buffer"))
    raise NotFoundError(
        f"{name} is an input of {graph.name}: no node makes it, so that none can be fused"
        if name in before.readers
        else f"{name} of {graph.name} is neither a node before fusion nor written by one",
        "name a node (op3) or a buffer that one writes (buf3)",
    )


def pair_facts(graph: CompiledGraph, first: str, second: str, origins: Origins) -> PairFacts:
    """Compare the nodes called `first` and `second`; `origins` are FX nodes that the log names.

    Raises:
        NotFoundError: a name that the graph does not have.
    """
    index = index_of(graph)
    members = (members_of(graph, first), members_of(graph, second))
    one, other = (
        _member(graph, name, inside, origins) for name, inside in zip((first, second), members, strict=True)
    )
    order: Order = "none"
    direct, path = _way(index, *members)
    if direct or path:
        order = "first"
    else:
        direct, path = _way(index, members[1], members[0])
        order = "second" if direct or path else "none"
    places = index.before.place
    reversed_places = places[members[1][0]] < places[members[0][0]]
    swapped = order == "second" or (order == "none" and reversed_places)
    earlier, later = (other, one) if swapped else (one, other)
    fits, loops = fit_loops(
        earlier, later, dependent=order != "none", outer_loops=_joins_outer_loops(graph.torch_version)
    )
    return PairFacts(
        first=one,
        second=other,
        order=order,
        direct=direct,
        path=path,
        shared=shared_buffers(
            [index.before.leaf[name] for name in members[0]],
            [index.before.leaf[name] for name in members[1]],
            index.before.layouts,
        ),
        loops_fit=fits,
        loops=loops,
    )


def _joins_outer_loops(version: str | None) -> bool:
    """Whether a torch can join the outer loops of C++ code alone; one that is not known is a late one."""
    match = re.match(r"(\d+)\.(\d+)", version or "")
    return match is None or (int(match[1]), int(match[2])) >= _OUTER_LOOPS_SINCE


def _member(graph: CompiledGraph, name: str, members: tuple[str, ...], origins: Origins) -> PairMember:
    index = index_of(graph)
    leaves = [index.before.leaf[member] for member in members]
    tops = {top.name for member in members if (top := index.post.top.get(member))}
    lead = next((leaf for leaf in leaves if is_reduction(leaf)), leaves[0])
    linked = [link for member in members if (link := links(graph).nodes.get(member))]
    found = [origin for member in members for origin in origins.get(member, ())]
    if not found:
        found = [origin for link in linked for origin in link.fx or link.fx_candidates]
    kernels = {link.kernel for link in linked}
    return PairMember(
        name=name,
        nodes=members,
        buffers=tuple(buffer.name for leaf in leaves for buffer in leaf.outputs),
        top=tops.pop() if len(tops) == 1 else None,
        kinds=tuple(dict.fromkeys(kind_of(leaf) for leaf in leaves)),
        device=lead.device,
        iteration=lead.iteration,
        sizes=lead.sizes,
        origins=tuple(dict.fromkeys(found)),
        kernel=kernels.pop() if len(kernels) == 1 else None,
        span=lead.span,
    )


def kind_of(node: SchedulerNode) -> NodeKind:
    """`extern`, `nop`, `template`, `reduction` or `pointwise`."""
    if node.kind.startswith("Extern"):
        return "extern"
    if node.kind.startswith("Nop"):
        return "nop"
    if node.ir.endswith("TemplateBuffer"):
        return "template"
    return "reduction" if is_reduction(node) else "pointwise"


def _way(index: GraphIndex, before: tuple[str, ...], after: tuple[str, ...]) -> tuple[bool, tuple[str, ...]]:
    """Tell whether a node of `after` reads what one of `before` writes, and the shortest way through others.

    The way names nodes and buffers in turn: `op0`, `buf0`, `op1`, `buf1`, `op4`.
    """
    starts, direct = set(before), False
    came: dict[str, tuple[str, str]] = {}
    queue = deque(after)
    inside = set(after)
    while queue:
        name = queue.popleft()
        leaf = index.before.leaf[name]
        for dep in leaf.unmet_dependencies + leaf.met_dependencies:
            producer = index.before.producer.get(dep.name)
            if producer is None or producer == name or producer in inside or producer in came:
                continue
            if producer in starts:
                if name in inside:
                    direct = True
                    continue
                return direct, _steps(name, (producer, dep.name), came)
            came[producer] = (dep.name, name)
            queue.append(producer)
    return direct, ()


def _steps(name: str, start: tuple[str, str], came: dict[str, tuple[str, str]]) -> tuple[str, ...]:
    way = [*start, name]
    while name in came:
        buffer, name = came[name]
        way += [buffer, name]
    return tuple(way)
