"""Words for links: what shows a node's kernel and FX nodes, and where torch's lists and data flow differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from inductor_probe.catalogue.templates import fill
from inductor_probe.model.layouts import Origin
from inductor_probe.model.links import Conflict, KernelFx, NodeLink
from inductor_probe.model.proof import DATA_FLOW, RECORDED, Proof, ProofCode
from inductor_probe.model.record import grouped

_STATEMENTS = {
    "AssertScalar": "the wrapper makes the check itself",
    "Conditional": "the wrapper branches itself",
    "DynamicScalar": "the wrapper reads the number out of the tensor itself",
    "DynamicSelectStorageOffset": "the wrapper computes the offset itself",
    "DynamicSliceSize": "the wrapper computes the size itself",
    "InvokeSubgraph": "the wrapper calls a subgraph",
    "Switch": "the wrapper branches itself",
    "WhileLoop": "the wrapper loops itself",
}

_PROOFS: Mapping[ProofCode, str] = {
    # the kernel of a node
    "writes-buffer": "the {step} writes {buffer}",
    "mutates-buffer": "the {step} is passed {mutated}, which {buffer} mutates",
    "inlined-into-reader": "no launch is passed {buffer}, so the kernel that reads it computes it",
    "item-of-call": "a result of the call that returns {buffer}",
    "wrapper-statement": "needs no kernel[: {statement}]",
    "fused-with-linked": "fused with nodes that run in this kernel",
    "mutation-order": "as many nodes as launches or calls mutate the buffer, matched in order",
    "only-step-in-order": "the only launch or call that fits its position among the nodes and what it reads",
    "steps-in-order": "its position among the nodes allows each of these",
    "node-names-call": "the node names the call it makes",
    "node-names-one-of-calls": "the node names the call it makes, one of several such calls",
    "no-kernel": "needs no kernel: it only names memory that other nodes write",
    "removed-node": "needs no kernel: it was removed before code was generated",
    # the FX nodes of a node or kernel
    "recorded": "recorded while compiling",
    "provenance-file": "torch's provenance file",
    "kernel-comment": "the comment above its kernel",
    "data-flow": "data flow",
    "only-fx-of-kernel": "the only FX node of its kernel",
    "all-fx-of-kernel": "all FX nodes of its kernel, which runs no other node",
    "fx-of-shared-kernel": "FX nodes of its kernel, which runs other nodes too",
    "between-reads-and-writes": "between what it reads and what it writes",
    "may-be-between": "between what it reads and what it may write",
    "value-written": "its value is written; how much of what leads to it nodes before compute is not known",
    "copy-for-call": "it copies what the library call that computes this reads",
    "operations-allow": "the only FX node of its kernel that its operations allow",
    # the value of a buffer
    "graph-input": "graph input",
    "constant": "constant",
    "returned-position": "its position in the graph's return",
    "only-value": "the only FX node that what it reads, its shape and its operations allow",
    "possible-values": "FX nodes that what it reads, its shape and its operations allow",
    "only-of-shape": "the only one with its shape",
    "of-shape": "with its shape",
    "only-item": "the only item of {fx} with its shape",
    "possible-items": "items of {fx} with its shape",
    "last-fx-of-node": "the last FX node that {node} computes",
    "listed-for-kernel": "torch lists {fx} for the kernel, and no other node of it may compute them",
}


def proof_text(proof: Proof) -> str:
    """`the launch writes buf5`; `inferred: the only FX node of its kernel that its operations allow`."""
    values = dict(proof.operands)
    statement = _STATEMENTS.get(str(values.get("ir")))
    text = fill(_PROOFS[proof.code], values | {"statement": statement})
    return f"inferred: {text}" if proof.knowledge == "inferred" else text


def proofs_text(proofs: Iterable[Proof]) -> str:
    """Proofs that go together, each narrowing the one before it."""
    return "; ".join(map(proof_text, proofs))


def kernel_proof_text(link: NodeLink) -> str:
    """What shows the kernel of a node; empty where nothing does."""
    return proof_text(link.kernel_proof) if link.kernel_proof else ""


def origin_text(origin: Origin) -> str:
    """`sum_3 (recorded while compiling)`."""
    shown = f" ({proofs_text(origin.proofs)})" if origin.proofs else ""
    candidates = f"AMBIGUOUS: {', '.join(origin.candidates)}" if origin.candidates else origin.node
    return f"{candidates}{shown}"


def sources_of_fx(pairs: Iterable[KernelFx]) -> str:
    """What shows that a kernel computes FX nodes: `recorded, inferred from data flow`."""
    proofs = dict.fromkeys(proof for pair in pairs for proof in pair.proofs)
    return ", ".join("recorded" if proof == RECORDED else _source(proof) for proof in proofs)


def counted_sources_of_fx(pairs: Iterable[KernelFx]) -> str:
    """`12 in torch's provenance file, 10 inferred from data flow`."""
    counts = Counter(proof for pair in pairs for proof in pair.proofs)
    prefixes = {"provenance-file": "in ", "kernel-comment": "in "}
    return ", ".join(
        f"{count} {prefixes.get(proof.code, '')}{_source(proof)}" for proof, count in counts.items()
    )


def searched_text(proofs: Iterable[Proof]) -> str:
    """Where an FX node was searched for: `torch's provenance file or data flow`."""
    return " or ".join(_PROOFS[proof.code] for proof in (*proofs, DATA_FLOW))


_CONFLICTS: Mapping[Conflict, str] = {
    "not-listed": "torch does not list {fx} for {kernel}: {source} for {nodes}",
    "not-computed": "{list} lists {fx} for {kernel}, but by the data flow none of its nodes computes it",
    "not-in-fx-graph": "{list} lists {fx} for {kernel}, but the dumped FX graph has no such node",
}


def conflict_texts(pairs: Iterable[KernelFx], kernel: str | None = None) -> Iterator[str]:
    """Say where torch's lists and the data flow differ, a sentence for each kernel and kind of difference.

    `kernel` is the one that the page is about, which needs no name.
    """
    groups = grouped(pairs, lambda pair: (pair.kernel, pair.conflict))
    for (name, conflict), group in groups.items():
        if conflict is None:
            continue
        recorded = any(RECORDED in pair.proofs for pair in group)
        values = {
            "kernel": "the kernel" if name == kernel else name,
            "fx": tuple(pair.fx for pair in group),
            "nodes": tuple(dict.fromkeys(node for pair in group for node in pair.nodes)),
            "source": _source(RECORDED if recorded else DATA_FLOW),
            "list": _source(group[0].proofs[0]) if group[0].proofs else None,
        }
        yield fill(_CONFLICTS[conflict], values)


def _source(proof: Proof) -> str:
    return "inferred from data flow" if proof == DATA_FLOW else _PROOFS[proof.code]
