"""What shows a conclusion, typed: a link, a match of a log or of two nodes.

A proof holds no sentence: `report/words` makes one of its code and operands.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.remark import Knowledge, Number

KernelCode: TypeAlias = Literal[
    "writes-buffer",  # step (`launch`, `call`), buffer: it writes the node's buffer, or is passed it to write
    "mutates-buffer",  # step, buffer, mutated: it is passed `mutated`, which the node's `buffer` mutates
    "fused-with-linked",  # another node of its fused node is linked to the kernel
    "mutation-order",  # as many nodes as steps mutate a buffer: they belong together in order
    "inlined-into-reader",  # buffer: no step is passed it, so the kernel that reads it computes it
    "only-step-in-order",  # the only step that the order of nodes and what the node reads allow
    "steps-in-order",  # the order of nodes allows several
    "node-names-call",  # an extern node prints the call that it makes
    "node-names-one-of-calls",  # the same, and the wrapper makes several such calls
    "item-of-call",  # buffer: it is an item of what the call returns as `buffer`
    "no-kernel",  # a nop: it names memory that others write
    "removed-node",  # it is there before fusion, and not after it
    "wrapper-statement",  # ir: the wrapper does it itself
]
"""What links a node to its kernel, or shows that it needs none; with the names of the operands."""

FxCode: TypeAlias = Literal[
    "recorded",  # `probe dump` recorded the origins of the buffer while torch compiled
    "provenance-file",  # `inductor_provenance_tracking_node_mappings.json`
    "kernel-comment",  # the comment above the kernel or its launch
    "data-flow",  # it lies on the way from the values that are read to the value that is written
    "only-fx-of-kernel",
    "all-fx-of-kernel",  # the kernel runs no other node
    "fx-of-shared-kernel",  # the kernel runs other nodes as well
    "between-reads-and-writes",
    "may-be-between",  # which value is written is not known
    "value-written",  # how much of what leads to the value was done by nodes before is not known
    "copy-for-call",  # it copies what the library call reads
    "operations-allow",  # the only FX node of the kernel that the operations of the loop body allow
    "listed-for-kernel",  # torch lists it for the kernel, and no other node of the kernel may compute it
]
"""What links a node or kernel to FX nodes."""

ValueCode: TypeAlias = Literal[
    "graph-input",
    "constant",
    "returned-position",  # the graph and the wrapper return it at the same position
    "only-value",  # the only FX node that the node's reads, the shape and the operations allow
    "possible-values",  # several are
    "only-item",  # fx: the only item of the result of `fx` that has the buffer's shape
    "possible-items",  # fx: several are
    "last-fx-of-node",  # node: the last FX node that it computes
    "only-of-shape",  # of those that the proof before names, the only one that has the buffer's shape
    "of-shape",  # of those that the proof before names, the ones that have it
]
"""What says which FX node's value a buffer holds."""

LogCode: TypeAlias = Literal[
    "log-position",  # part, parts: graph and part have the same position, and the same nodes before fusion
    "log-position-and-groups",  # the same, and the part's fusions lead to the graph's nodes after fusion
    "only-log-part",  # the only part with the graph's nodes before fusion and after
    "equal-log-parts",  # parts: several fit, and say the same
    "differing-log-parts",  # parts, lines: several fit, and differ
    "log-part-by-names",  # the only part with the nodes before fusion; it ends with others
    "log-parts-by-names",  # parts: several have them, and none ends with the nodes after fusion
    "no-log-part",
    "torch-logs-no-fusion",  # version: torch 2.1
    "no-fusion-lines",
    "no-log",
]
"""What says which part of a log is about a graph, or why there is none."""

MatchCode: TypeAlias = Literal[
    "same-input",
    "same-return-position",
    "same-fx-value",
    "same-computation-and-inputs",
    "same-computation-and-users",
    "same-computation",
    "same-operations",
    "same-returned-value",
    "same-fx-nodes",
    "same-neighbours",
    "same-nodes",  # of kernels: the nodes that they run are matched
    "same-code",
    "only-kernel",
]
"""What makes nodes, buffers or kernels of two graphs the same."""

ProofCode: TypeAlias = KernelCode | FxCode | ValueCode | LogCode | MatchCode

Operand: TypeAlias = Number | tuple[str, ...]


class Proof(Struct, frozen=True):
    """What shows a conclusion.

    Attributes:
        code: which kind of proof.
        knowledge: torch recorded it, it stands in the dump, or it is inferred from what stands there.
        operands: named values: the buffer, the kernel, the FX nodes that it is about where it is not about
            all. Their names stand beside the code.
    """

    code: ProofCode
    knowledge: Knowledge
    operands: tuple[tuple[str, Operand], ...] = ()

    def operand(self, name: str) -> Operand | None:
        """Return the operand called `name`, None where it has none."""
        return dict(self.operands).get(name)


RECORDED = Proof("recorded", "recorded")
PROVENANCE_FILE = Proof("provenance-file", "recorded")
KERNEL_COMMENT = Proof("kernel-comment", "recorded")
DATA_FLOW = Proof("data-flow", "inferred")
"""The proofs that FX nodes of kernels have, strongest first: three records of torch, and a conclusion."""


def read(code: ProofCode, **operands: Operand) -> Proof:
    """Return a proof that stands in the dump."""
    return Proof(code, "read", tuple(operands.items()))


def inferred(code: ProofCode, **operands: Operand) -> Proof:
    """Return a proof that is consistent with the dump, and stands nowhere in it."""
    return Proof(code, "inferred", tuple(operands.items()))
