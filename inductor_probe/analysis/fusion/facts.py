"""What the IR alone proves about two nodes: their loops, their order, and what they share."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping

from inductor_probe.analysis.fusion.accesses import shared_buffers
from inductor_probe.analysis.fusion.loops import fit_loops
from inductor_probe.analysis.fusion.nodes import GraphNodes
from inductor_probe.model.fusion import Order, PairFacts, Side
from inductor_probe.model.ir import SchedulerNode

_OUTER_LOOPS_SINCE = (2, 4)

Origins = Mapping[str, tuple[str, ...]]


def pair_facts(nodes: GraphNodes, first: str, second: str, origins: Origins) -> PairFacts:
    """Compare the nodes called `first` and `second`; `origins` are FX nodes that the log names.

    Raises:
        NotFoundError: a name that the graph does not have.
    """
    members = (nodes.named(first), nodes.named(second))
    one, other = (
        _side(nodes, name, inside, origins) for name, inside in zip((first, second), members, strict=True)
    )
    order: Order = "none"
    direct, path = _way(nodes, *members)
    if direct or path:
        order = "first"
    else:
        direct, path = _way(nodes, members[1], members[0])
        order = "second" if direct or path else "none"
    places = nodes.places
    reversed_places = places[members[1][0]] < places[members[0][0]]
    swapped = order == "second" or (order == "none" and reversed_places)
    earlier, later = (other, one) if swapped else (one, other)
    fit = fit_loops(
        earlier, later, dependent=order != "none", outer_loops=_joins_outer_loops(nodes.graph.torch_version)
    )
    return PairFacts(
        first=one,
        second=other,
        order=order,
        direct=direct,
        path=path,
        shared=shared_buffers(
            [nodes.leaves[name] for name in members[0]],
            [nodes.leaves[name] for name in members[1]],
            nodes.layouts,
        ),
        loops_fit=fit.fits,
        loops=fit.text,
    )


def _joins_outer_loops(version: str | None) -> bool:
    """Whether a torch can join the outer loops of C++ code alone; one that is not known is a late one."""
    match = re.match(r"(\d+)\.(\d+)", version or "")
    return match is None or (int(match[1]), int(match[2])) >= _OUTER_LOOPS_SINCE


def _side(nodes: GraphNodes, name: str, members: tuple[str, ...], origins: Origins) -> Side:
    leaves = [nodes.leaves[member] for member in members]
    tops = {top.name for member in members if (top := nodes.top_of.get(member))}
    lead = next((leaf for leaf in leaves if _is_reduction(leaf)), leaves[0])
    linked = [link for member in members if (link := nodes.links.get(member))]
    found = [origin for member in members for origin in origins.get(member, ())]
    if not found:
        found = [origin for link in linked for origin in link.fx or link.fx_candidates]
    kernels = {link.kernel for link in linked}
    return Side(
        name=name,
        nodes=members,
        buffers=tuple(buffer.name for leaf in leaves for buffer in leaf.outputs),
        top=tops.pop() if len(tops) == 1 else None,
        kind=" and ".join(dict.fromkeys(kind_of(leaf) for leaf in leaves)),
        device=lead.device,
        iteration=lead.iteration,
        sizes=lead.sizes,
        origins=tuple(dict.fromkeys(found)),
        kernel=kernels.pop() if len(kernels) == 1 else None,
        span=lead.span,
    )


def kind_of(node: SchedulerNode) -> str:
    """`extern`, `nop`, `template`, `reduction` or `pointwise`."""
    if node.kind.startswith("Extern"):
        return "extern"
    if node.kind.startswith("Nop"):
        return "nop"
    if node.ir.endswith("TemplateBuffer"):
        return "template"
    return "reduction" if _is_reduction(node) else "pointwise"


def _is_reduction(node: SchedulerNode) -> bool:
    if node.iteration is None or len(node.iteration) < 2:
        return False
    return node.iteration[1] not in ((), 1)


def _way(nodes: GraphNodes, before: tuple[str, ...], after: tuple[str, ...]) -> tuple[bool, tuple[str, ...]]:
    """Tell whether a node of `after` reads what one of `before` writes, and the shortest way through others.

    The way names nodes and buffers in turn: `op0`, `buf0`, `op1`, `buf1`, `op4`.
    """
    starts, direct = set(before), False
    came: dict[str, tuple[str, str]] = {}
    queue = deque(after)
    inside = set(after)
    while queue:
        name = queue.popleft()
        for dep in nodes.leaves[name].unmet_dependencies + nodes.leaves[name].met_dependencies:
            producer = nodes.producers.get(dep.name)
            if producer is None or producer == name or producer in inside or producer in came:
                continue
            if producer in starts:
                if name in inside:
                    direct = True
                    continue
                return direct, _told(name, (producer, dep.name), came)
            came[producer] = (dep.name, name)
            queue.append(producer)
    return direct, ()


def _told(name: str, start: tuple[str, str], came: dict[str, tuple[str, str]]) -> tuple[str, ...]:
    way = [*start, name]
    while name in came:
        buffer, name = came[name]
        way += [buffer, name]
    return tuple(way)
