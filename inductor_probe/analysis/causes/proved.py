"""What a dump proves of decisions that it does not record: read in generated code and IR, or inferred.

For example of a Triton graph that torch dumped alone: `op3_op4_op5 are fused` (the IR after fusion), `a
persistent reduction, hint INNER` (the kernel's text), `op1 reads arg0_1 non-contiguously` (its accesses).
None of it says why.
"""

from __future__ import annotations

from collections.abc import Iterator

from inductor_probe.analysis.graph import index_of, once_per_graph
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.layouts import layout_rows
from inductor_probe.analysis.work import node_traffic
from inductor_probe.model.code import CppFacts, TritonFacts
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import DecisionKind
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.remark import Remark, RemarkCode, Subject

_KINDS: dict[RemarkCode, DecisionKind] = {
    "scalar-loops": "vectorisation",
    "underfilled-loops": "vectorisation",
    "int64-indices": "index-width",
    "fallback": "fallback",
    "noncontiguous-access": "layout",
    "short-contiguous-runs": "layout",
    "layout-change": "layout",
}
"""Remarks of kernels and buffers by what they say was decided."""
KINDS: frozenset[DecisionKind] = frozenset((*_KINDS.values(), "fusion", "reduction"))
"""Decisions of which a dump alone proves something."""

Proved = tuple[DecisionKind, Remark, tuple[str, ...]]
"""The kind of decision, what is proved, and the unfused nodes that it is about."""


@once_per_graph
def proved(graph: CompiledGraph) -> tuple[Proved, ...]:
    """Return what is proved of the decisions in a graph; each question about a name asks for all of it."""
    return tuple(_proved(graph))


def _proved(graph: CompiledGraph) -> Iterator[Proved]:
    for row in kernel_rows(graph):
        for remark in row.remarks:
            if kind := _KINDS.get(remark.code):
                yield kind, remark, row.nodes
        yield from _of_text(row)
    for remark in dict.fromkeys(remark for row in layout_rows(graph).values() for remark in row.remarks):
        names = (subject.name for subject in remark.subjects if subject.type == "node")
        yield _KINDS.get(remark.code, "layout"), remark, tuple(names)
    for top in graph.post:
        nodes = index_of(graph).post.members[top.name]
        if len(nodes) > 1:
            evidence = (top.span,) if top.span else ()
            cost = node_traffic(graph, nodes)
            numbers = (("nodes", len(nodes)),)
            subject = Subject("node", top.name)
            yield (
                "fusion",
                Remark("fused-nodes", "passed", subject, numbers, cost, evidence, knowledge="read"),
                nodes,
            )


def _of_text(row: KernelRow) -> Iterator[Proved]:
    """Yield how a kernel was generated, by its text."""
    sizes = [size for size in (row.bytes_read, row.bytes_written) if isinstance(size, int)]
    cost = sum(sizes) if sizes else None
    evidence = (row.span,) if row.span else ()
    subject = Subject("kernel", row.name)
    match row.details:
        case CppFacts() as facts if vectorised := facts.count("vectorised"):
            numbers = (("vectorised", vectorised), ("nests", len(facts.decided_nests)))
            remark = Remark("vectorised-loops", "passed", subject, numbers, cost, evidence, knowledge="read")
            yield "vectorisation", remark, row.nodes
        case TritonFacts(heuristic=str(heuristic), reduction_hint=hint) if "reduction" in heuristic:
            words = (("heuristic", heuristic.replace("_", " ")), ("hint", hint or "none"))
            remark = Remark("reduction-kernel", "analysis", subject, words, cost, evidence, knowledge="read")
            yield "reduction", remark, row.nodes
