"""What the linking concludes: user's line <-> FX node <-> scheduler node <-> kernel <-> launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from inductor_probe.model.layouts import Origin
from inductor_probe.model.span import SourceLine, Span


@dataclass(frozen=True, slots=True)
class NodeLink:
    """Everything that is linked to one unfused scheduler node.

    Attributes:
        node: its name (`op3`).
        top: the node after fusion that holds it (`op3_op4`), itself when it is not fused.
        buffers: what it writes.
        kernel: the generated kernel or the library call (`extern_kernels.mm`) that runs it; None when it
            needs none (a nop), or none could be proved.
        kernel_how: what proves the kernel, in words.
        kernel_candidates: the kernels that are possible when more than one is: then `kernel` is None.
        launches: where the wrapper launches or calls it; every possible place when it could not be told.
        fx: the FX nodes it computes, of the graph after inductor's passes.
        fx_how: what proves them.
        fx_candidates: the FX nodes that are possible when they cannot be told apart: then `fx` is empty.
        sources: the user's lines of `fx`, or of `fx_candidates`, each once.
    """

    node: str
    top: str
    buffers: tuple[str, ...]
    kernel: str | None
    kernel_how: str
    kernel_candidates: tuple[str, ...] = ()
    launches: tuple[Span, ...] = field(default=(), compare=False)
    fx: tuple[str, ...] = ()
    fx_how: str | None = None
    fx_candidates: tuple[str, ...] = ()
    sources: tuple[SourceLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Links:
    """The links of a graph.

    Attributes:
        nodes: by unfused node, in the order of the IR file.
        origins: by buffer: the FX node whose value it holds, or candidates.
    """

    nodes: Mapping[str, NodeLink]
    origins: Mapping[str, Origin] = field(default_factory=dict)

    def of_kernel(self, kernel: str) -> tuple[NodeLink, ...]:
        """Return the nodes that run in `kernel`, in order."""
        return tuple(link for link in self.nodes.values() if link.kernel == kernel)

    @property
    def unlinked(self) -> tuple[NodeLink, ...]:
        """Nodes that must run somewhere, and whose kernel could not be proved."""
        return tuple(link for link in self.nodes.values() if link.kernel is None and link.kernel_how == "")
