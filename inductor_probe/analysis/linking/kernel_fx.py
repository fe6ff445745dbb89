"""Every FX node of every kernel: what torch lists for it, what the data flow shows, and where they differ.

Torch's lists are the `origins` of the nodes that a kernel runs (`set_kernel_post_grad_provenance_tracing` in
`torch/_inductor/debug.py`). They lack some of what is inlined: of `where = torch.where(...)` that a sum and a
division read, torch 2.11 lists the sum and the division alone, though both loop bodies have the `ops.where`.
"""

from __future__ import annotations

from collections.abc import Mapping

from inductor_probe.analysis.linking.computed import Computed
from inductor_probe.analysis.linking.fx_index import FxIndex
from inductor_probe.analysis.linking.fx_ops import COPIES
from inductor_probe.model.code import ExternCall, Launch
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fx import Provenance
from inductor_probe.model.links import Conflict, KernelFx, NodeLink
from inductor_probe.model.proof import DATA_FLOW, KERNEL_COMMENT, PROVENANCE_FILE, RECORDED, Proof
from inductor_probe.model.span import Span

_MOVES = COPIES | {"cat"}
_STRONGEST_FIRST = (RECORDED, PROVENANCE_FILE, KERNEL_COMMENT, DATA_FLOW)


def kernel_fx(
    graph: CompiledGraph,
    fx: FxIndex | None,
    nodes: Mapping[str, NodeLink],
    computed: Mapping[str, Computed],
) -> tuple[KernelFx, ...]:
    """Return the FX nodes of each kernel of `graph`. `nodes` and `computed` are by scheduler node."""
    if graph.code is None:
        return ()
    comments = {kernel.name: kernel.comment for kernel in graph.code.kernels}
    members: dict[str, list[NodeLink]] = {name: [] for name in comments}
    members.update((call.target, []) for call in graph.code.externs)
    for link in nodes.values():
        if link.kernel is not None:
            members.setdefault(link.kernel, []).append(link)
    launches: dict[str, list[Launch | ExternCall]] = {}
    for launch in graph.code.launches:
        launches.setdefault(launch.kernel, []).append(launch)
    for call in graph.code.externs:
        launches.setdefault(call.target, []).append(call)
    pairs: list[KernelFx] = []
    for kernel, links in members.items():
        comment = comments.get(kernel)
        proofs: dict[str, list[Proof]] = {}
        for name in graph.provenance.kernels.get(kernel, ()) if graph.provenance else ():
            proofs.setdefault(name, []).append(PROVENANCE_FILE)
        for name in comment.fx_nodes if comment else ():
            proofs.setdefault(name, []).append(KERNEL_COMMENT)
        listed = frozenset(proofs)
        by_node = _by_fx_node(links, computed, proofs)
        differences = _Differences(listed, links, fx) if fx else None
        for name, found in proofs.items():
            own, maybe = by_node.get(name, ([], []))
            spans = own[0].launches if own else ()
            if any(link.launches != spans for link in own):
                spans = tuple(dict.fromkeys(span for link in own for span in link.launches))
            spans = spans or _listed_launches(launches.get(kernel, ()), kernel, name, graph.provenance)
            pairs.append(
                KernelFx(
                    kernel=kernel,
                    fx=name,
                    proofs=tuple(proof for proof in _STRONGEST_FIRST if proof in found),
                    nodes=tuple(link.node for link in own),
                    maybe=tuple(link.node for link in maybe),
                    launches=spans,
                    conflict=differences.of(name) if differences else None,
                )
            )
    return tuple(pairs)


def _by_fx_node(
    links: list[NodeLink], computed: Mapping[str, Computed], proofs: dict[str, list[Proof]]
) -> dict[str, tuple[list[NodeLink], list[NodeLink]]]:
    """Return by FX node the nodes of a kernel that compute it and that may, and add their proofs."""
    by_node: dict[str, tuple[list[NodeLink], list[NodeLink]]] = {}
    for link in links:
        flow = computed[link.node].flow if link.node in computed else frozenset()
        for name in link.fx:
            by_node.setdefault(name, ([], []))[0].append(link)
            found = proofs.setdefault(name, [])
            if RECORDED in link.fx_proofs:
                found.append(RECORDED)
            if name in flow:
                found.append(DATA_FLOW)
        for name in link.fx_candidates:
            by_node.setdefault(name, ([], []))[1].append(link)
    return by_node


class _Differences:
    """Tells for the FX nodes of a kernel whether torch's list and the data flow differ."""

    def __init__(self, listed: frozenset[str], links: list[NodeLink], fx: FxIndex) -> None:
        self._listed = listed
        self._fx = fx
        self._told = {name for link in links for name in (*link.fx, *link.fx_candidates)}
        self._told.update(fx.whole(name) for name in self._told & fx.nodes.keys())
        self._all_known = bool(links) and all(link.fx or link.fx_candidates for link in links)

    def of(self, name: str) -> Conflict | None:
        fx = self._fx
        if name not in fx.nodes:
            return "not-in-fx-graph"
        if name not in self._listed:
            return "not-listed" if self._listed else None
        if name in self._told or not self._all_known:
            return None
        # Nothing is computed for what only hands on what others compute.
        return None if fx.op[name] in _MOVES or name in fx.roots or name in fx.sizes else "not-computed"


def _listed_launches(
    launches: list[Launch | ExternCall] | tuple[()], kernel: str, name: str, provenance: Provenance | None
) -> tuple[Span, ...]:
    """Return the launches of a kernel that torch lists an FX node for, all where it does not number them."""
    lists = provenance.launches if provenance else {}
    listed = [
        launch.span
        for launch in launches
        if launch.comment and name in lists.get(f"{kernel}:{launch.comment.handle}", ())
    ]
    return tuple(listed or (launch.span for launch in launches))
