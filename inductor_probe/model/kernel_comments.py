"""What inductor writes in the comments above a kernel, a launch or a library call."""

from __future__ import annotations

from dataclasses import dataclass, field

from inductor_probe.model.span import Span


@dataclass(frozen=True, slots=True)
class FragmentNode:
    """A node of the `Graph fragment` above a Triton kernel: `%add = call_function[target=...](args = ...)`.

    `target` is `PlaceHolder` for a value that comes from outside of the kernel. `type` is as printed:
    `f32[512, 1000][1000, 1]cuda:0`, None where none is.
    """

    name: str
    target: str
    type: str | None = None
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelComment:
    """The comment lines above a kernel's definition, a launch or a library call.

    Attributes:
        source_nodes: nodes of the graph that dynamo traced, without empty names.
        sorted: whether the source nodes stand in topological order; None when the comment does not say.
        aten: operators as the user called them: `aten.add`.
        mapping: source node -> FX nodes after the passes.
        fragment: the FX nodes that the kernel computes, and the placeholders it reads.
        returns: what the kernel writes, in the order of its nodes: FX nodes, or buffers where none is known.
        handle: number of the launch in torch's provenance: `[Provenance debug handles] mm:3`.
        path: where the kernel was cached.
        lines: the text, without `# `.
    """

    source_nodes: tuple[str, ...] = ()
    sorted: bool | None = None
    aten: tuple[str, ...] = ()
    mapping: tuple[tuple[str, tuple[str, ...]], ...] = ()
    fragment: tuple[FragmentNode, ...] = ()
    returns: tuple[str, ...] = ()
    handle: int | None = None
    path: str | None = None
    lines: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False)

    @property
    def fx_nodes(self) -> tuple[str, ...]:
        """FX nodes that the kernel computes: those of the fragment, or else of the mapping, each once."""
        computed = [node.name for node in self.fragment if node.target != PLACEHOLDER]
        mapped = [name for _, names in self.mapping for name in names]
        return tuple(dict.fromkeys(computed or mapped))


PLACEHOLDER = "PlaceHolder"
