"""Every FX node of every kernel: what torch lists for it, what the data flow shows, and where they differ.

Torch's lists are the `origins` of the nodes that a kernel runs (`set_kernel_post_grad_provenance_tracing` in
`torch/_inductor/debug.py`). They lack some of what is inlined: of `where = torch.where(...)` that a sum and a
division read, torch 2.11 lists the sum and the division alone, though both loop bodies have the `ops.where`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence, Set

from inductor_probe.analysis.linking.computed import Computed
from inductor_probe.analysis.linking.fx_index import FxIndex
from inductor_probe.analysis.linking.fx_ops import COPIES
from inductor_probe.analysis.linking.provenance import names_in, without_waits
from inductor_probe.model.code import ExternCall, Launch
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.links import Conflict, KernelFx, NodeLink
from inductor_probe.model.proof import DATA_FLOW, KERNEL_COMMENT, PROVENANCE_FILE, RECORDED, Proof
from inductor_probe.model.record import collected, grouped
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
    known = fx.nodes if fx else {}
    places: list[Launch | ExternCall] = [*graph.code.launches, *graph.code.externs]
    launches = grouped(places, lambda place: place.kernel if isinstance(place, Launch) else place.target)
    members: dict[str, Sequence[NodeLink]] = dict.fromkeys(comments, ())
    members |= dict.fromkeys((call.target for call in graph.code.externs), ())
    members |= collected((link.kernel, link) for link in nodes.values() if link.kernel is not None)
    pairs: list[KernelFx] = []
    for kernel, links in members.items():
        comment = comments.get(kernel)
        proofs: defaultdict[str, set[Proof]] = defaultdict(set)  # by FX node, those that torch lists first
        subgraphs = {graph.code.subgraph_at(place.span.first) for place in launches.get(kernel, ())} or {None}
        for proof, names in (
            (PROVENANCE_FILE, graph.provenance.kernels.get(kernel, ()) if graph.provenance else ()),
            (KERNEL_COMMENT, comment.fx_nodes if comment else ()),
        ):
            for name in (name for subgraph in subgraphs for name in names_in(names, subgraph, known)):
                proofs[name].add(proof)
        listed = frozenset(proofs)
        meant = frozenset(without_waits(listed, kernel, known))
        certain = collected((name, link) for link in links for name in link.fx)
        possible = collected((name, link) for link in links for name in link.fx_candidates)
        for link in links:
            flow = computed[link.node].flow if link.node in computed else frozenset()
            for name in link.fx:
                proofs[name].update({RECORDED} & {*link.fx_proofs}, {DATA_FLOW} if name in flow else ())
        named = {name for link in links for name in (*link.fx, *link.fx_candidates)}
        if fx:
            named.update([fx.result(name) for name in named & fx.nodes.keys()])
        all_known = bool(links) and all(link.fx or link.fx_candidates for link in links)
        for name, shown in proofs.items():
            spans = tuple(dict.fromkeys(span for link in certain.get(name, ()) for span in link.launches))
            pairs.append(
                KernelFx(
                    kernel=kernel,
                    fx=name,
                    proofs=tuple(proof for proof in _STRONGEST_FIRST if proof in shown),
                    nodes=tuple(link.node for link in certain.get(name, ())),
                    maybe=tuple(link.node for link in possible.get(name, ())),
                    launches=spans or _listed_launches(graph, launches.get(kernel, ()), kernel, name, known),
                    conflict=_conflict(name, fx, listed, named, meant=meant, all_known=all_known)
                    if fx
                    else None,
                )
            )
    return tuple(pairs)


def _conflict(
    name: str, fx: FxIndex, listed: Set[str], named: Set[str], *, meant: Set[str], all_known: bool
) -> Conflict | None:
    """Return whether torch's list for a kernel and the data flow (`named`: all that it names) differ.

    `meant` is that list with collectives in place of the waits for them: see `without_waits`.
    """
    if name not in fx.nodes:
        return "not-in-fx-graph"
    if name in listed ^ meant:
        return None
    if name not in listed:
        return "not-listed" if listed else None
    if not all_known or name in named:
        return None
    # Nothing is computed for what only hands on what others compute.
    return None if fx.op[name] in _MOVES or name in fx.roots or name in fx.sizes else "not-computed"


def _listed_launches(
    graph: CompiledGraph,
    launches: Iterable[Launch | ExternCall],
    kernel: str,
    name: str,
    known: Container[str],
) -> tuple[Span, ...]:
    """Return the launches of a kernel that torch lists an FX node for, all where it does not number them."""
    lists = graph.provenance.launches if graph.provenance else {}

    def names(launch: Launch | ExternCall) -> tuple[str, ...]:
        subgraph = graph.code.subgraph_at(launch.span.first) if graph.code else None
        handle = launch.comment.handle if launch.comment else None
        return names_in(lists.get(f"{kernel}:{handle}", ()), subgraph, known)

    listed = [launch.span for launch in launches if launch.comment and name in names(launch)]
    return tuple(listed or (launch.span for launch in launches))
