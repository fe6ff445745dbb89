"""Nodes that run in one step of the wrapper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from inductor_probe.analysis.graph import read_names
from inductor_probe.analysis.linking.steps import Step
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.proof import Proof

_NOP = "NopKernelSchedulerNode"
_EXTERN = "ExternKernelSchedulerNode"
_SPLIT = ("ForeachKernelSchedulerNode", "GroupedSchedulerNode")
"""Groups whose members may run in different steps: torch cuts a long list into several launches."""
_GENERATED_EXTERN = ("UserDefinedTritonKernel",)
_ITEM = "MultiOutput"

_LOADS = {"ops.load": 0, "ops.load_seed": 0, "ops.bucketize": 1}
"""Operations that load, with the place of the buffer among their arguments."""

STATEMENTS = frozenset(
    (
        *("AssertScalar", "Conditional", "DynamicScalar", "DynamicSelectStorageOffset", "DynamicSliceSize"),
        *("InvokeSubgraph", "WhileLoop"),
    )
)
"""Library nodes that are statements of the wrapper, not calls."""


@dataclass(slots=True)
class Unit:
    """Nodes that run in one step, while the step is looked for.

    Attributes:
        generated: they run in a kernel that inductor generated.
        shares: other units may run in the same step: C++ kernels hold many nodes, Triton kernels one each.
        proofs: for each node, what shows the step.
    """

    leaves: tuple[SchedulerNode, ...]
    generated: bool
    shares: bool
    step: Step | None = None
    proofs: dict[str, Proof] = field(default_factory=dict)
    candidates: tuple[Step, ...] = ()

    def settle(self, step: Step, proof: Proof) -> None:
        """Say that `step` runs the unit; `proof` holds for the nodes that have none of their own."""
        self.step = step
        self.candidates = ()
        self.proofs = {leaf.name: self.proofs.get(leaf.name, proof) for leaf in self.leaves}


def units(top: SchedulerNode, split: bool = False) -> Iterator[Unit]:
    """Yield the units of a node of the scheduler; what needs no step is in none. `split` is for recursion."""
    if top.kind in _SPLIT:
        for child in top.children:
            yield from units(child, split=True)
        return
    leaves = tuple(
        leaf for leaf in top.leaves() if not is_nop(leaf) and leaf.ir != _ITEM and leaf.ir not in STATEMENTS
    )
    if leaves:
        generated = any(leaf.kind != _EXTERN or leaf.ir in _GENERATED_EXTERN for leaf in leaves)
        yield Unit(leaves, generated, shares=split or leaves[0].device in (None, "cpu"))


def is_nop(leaf: SchedulerNode) -> bool:
    """Whether nothing runs for `leaf`: a concatenation whose pieces others write, or an empty tensor."""
    return leaf.kind == _NOP


def loaded_names(leaf: SchedulerNode) -> tuple[str, ...]:
    """Return the buffers whose elements `leaf` computes with: what its loop body loads, else what it reads.

    A node that overwrites a buffer depends on it without loading it.
    """
    if leaf.body is None:
        return read_names(leaf)
    names = (
        op.args[at]
        for block in leaf.body.blocks
        for op in block.ops
        if (at := _LOADS.get(op.target)) is not None and len(op.args) > at
    )
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))
