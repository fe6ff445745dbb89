"""What the linking concludes: user's line <-> FX node <-> scheduler node <-> kernel <-> launch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct, field

from inductor_probe.model.layouts import Origin
from inductor_probe.model.proof import Proof
from inductor_probe.model.record import Compared, collected
from inductor_probe.model.span import SourceLine, Span


class NodeLink(Compared, frozen=True):
    """Everything that is linked to one unfused scheduler node.

    Attributes:
        node: its name (`op3`).
        top: the node after fusion that holds it (`op3_op4`), itself when it is not fused.
        buffers: what it writes.
        kernel: the generated kernel or the library call (`extern_kernels.mm`) that runs it; None when it
            needs none (a nop), or none could be proved.
        kernel_proof: what shows the kernel, or that it needs none; None when nothing does: it is unlinked.
        kernel_candidates: the kernels that are possible when more than one is: then `kernel` is None.
        launches: where the wrapper launches or calls it; every possible place when it is not known.
        fx: the FX nodes it computes, of the graph after inductor's passes.
        fx_proofs: what shows them; a further proof names the FX nodes that it is about.
        fx_candidates: further FX nodes that it may compute; whether it does is not known.
        sources: the user's lines of `fx`, or of `fx_candidates`, each once.
    """

    uncompared: ClassVar[tuple[str, ...]] = ("launches",)

    node: str
    top: str
    buffers: tuple[str, ...]
    kernel: str | None
    kernel_proof: Proof | None
    kernel_candidates: tuple[str, ...] = ()
    launches: tuple[Span, ...] = ()
    fx: tuple[str, ...] = ()
    fx_proofs: tuple[Proof, ...] = ()
    fx_candidates: tuple[str, ...] = ()
    sources: tuple[SourceLine, ...] = ()

    @property
    def is_unlinked(self) -> bool:
        """Whether it must run somewhere, and nothing shows where."""
        return self.kernel_proof is None


Conflict: TypeAlias = Literal["not-listed", "not-computed", "not-in-fx-graph"]
"""Where torch's list for a kernel and the data flow differ; `KernelFx` says how."""


class KernelFx(Compared, frozen=True):
    """An FX node of a kernel or library function, with all that says so.

    Attributes:
        kernel: the generated kernel or library function. fx: the FX node, of the graph after the passes.
        proofs: what shows that the kernel computes it, records first: `RECORDED`, `PROVENANCE_FILE`,
            `KERNEL_COMMENT`, `DATA_FLOW` of `model/proof.py`.
        nodes: the scheduler nodes of the kernel that compute it. maybe: those that may, where it is not
            known which do.
        launches: of the kernel; where torch lists FX nodes by launch, those that it lists this one for.
        conflict: `not-listed` where the data flow shows that the kernel computes it, and torch's list for
            the kernel does not have it; `not-computed` where torch lists it, and by the data flow and the
            operations of their bodies no node of the kernel computes it; `not-in-fx-graph` where torch
            lists it, and the dumped graph has no node of that name.
    """

    uncompared: ClassVar[tuple[str, ...]] = ("launches",)

    kernel: str
    fx: str
    proofs: tuple[Proof, ...]
    nodes: tuple[str, ...] = ()
    maybe: tuple[str, ...] = ()
    launches: tuple[Span, ...] = ()
    conflict: Conflict | None = None


class Links(Struct, frozen=True, dict=True):
    """The links of a graph.

    Attributes:
        nodes: by unfused node, in the order of the IR file.
        origins: by buffer: the FX node whose value it holds, or candidates.
        kernel_fx: every FX node of every kernel, kernels in the order of the code.
    """

    nodes: Mapping[str, NodeLink]
    origins: Mapping[str, Origin] = field(default_factory=dict)
    kernel_fx: tuple[KernelFx, ...] = ()

    def of_kernel(self, kernel: str) -> tuple[NodeLink, ...]:
        """Return the nodes that run in `kernel`, in order."""
        return self._nodes_by_kernel.get(kernel, ())

    def of_nodes(self, names: Iterable[str]) -> tuple[NodeLink, ...]:
        """Return the links of some nodes, as far as they have one."""
        return tuple(self.nodes[name] for name in names if name in self.nodes)

    def fx_of_kernel(self, kernel: str) -> tuple[KernelFx, ...]:
        """Return the FX nodes of `kernel`, those that torch lists first."""
        return self._by_kernel.get(kernel, ())

    def kernels_of_fx(self, fx: str) -> tuple[KernelFx, ...]:
        """Return the kernels of the FX node `fx`, in the order of the code."""
        return self._by_fx.get(fx, ())

    @cached_property
    def _nodes_by_kernel(self) -> Mapping[str | None, tuple[NodeLink, ...]]:
        return collected((link.kernel, link) for link in self.nodes.values())

    @cached_property
    def _by_kernel(self) -> Mapping[str, tuple[KernelFx, ...]]:
        return collected((pair.kernel, pair) for pair in self.kernel_fx)

    @cached_property
    def _by_fx(self) -> Mapping[str, tuple[KernelFx, ...]]:
        return collected((pair.fx, pair) for pair in self.kernel_fx)

    @property
    def unlinked(self) -> tuple[NodeLink, ...]:
        """Nodes that must run somewhere, and whose kernel could not be proved."""
        return tuple(link for link in self.nodes.values() if link.is_unlinked)
