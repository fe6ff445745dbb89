"""What torch itself says of FX nodes: those of each kernel and library call, and those that buffers hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from inductor_probe.analysis.graph import buffer_in, index_of
from inductor_probe.analysis.linking.fx_index import FxIndex, Shape
from inductor_probe.analysis.linking.fx_ops import VIEWS
from inductor_probe.analysis.linking.steps import ITEM_OF_CALL, NodeStep, Step
from inductor_probe.analysis.operators import C10D, WAITS, operator
from inductor_probe.model.code import ExternCall, Launch, OutputCode
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fx import FxNode
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.manifest import BufferOrigin
from inductor_probe.model.proof import KERNEL_COMMENT, RECORDED, Proof, read
from inductor_probe.model.record import collected

_RETURNED = read("returned-position")
_IN_PLACE = 4  # the wait, an item of several results, the collective in place, what filled its buffer


def of_subgraph(origin: BufferOrigin, subgraph: str | None, fx: Container[str]) -> BufferOrigin:
    """Return `origin` with the names of its subgraph's FX nodes as `FxGraph` has them."""
    if subgraph is None:
        return origin
    (node,) = names_in((origin.origin_node,), subgraph, fx) if origin.origin_node else (None,)
    return replace(origin, origin_node=node, origins=names_in(origin.origins, subgraph, fx))


def names_in(names: tuple[str, ...], subgraph: str | None, fx: Container[str]) -> tuple[str, ...]:
    """Return the FX nodes that torch lists for what is in `subgraph`, by their names in `FxGraph`.

    Torch lists them without the subgraph's name, and nodes of the graph that calls it (`while_loop`) with
    them. None is the graph itself.
    """
    if subgraph is None:
        return names
    return tuple(own if (own := f"{subgraph}_{name}") in fx else name for name in names)


def without_waits(names: Iterable[str], kernel: str, fx: Mapping[str, FxNode]) -> tuple[str, ...]:
    """Return what torch lists for a `kernel`, with what was waited for in place of the wait.

    `wait_tensor` returns the buffer that it waits for, and `GraphLowering.run_node` makes it the origin of
    the call that filled that buffer: of an all_gather, or of the addmm whose result is reduced in place.
    """
    called = operator(kernel).name.removesuffix("_")
    listed = dict.fromkeys(_waited_for(name, called, fx) for name in names)
    return tuple(name for name in listed if name not in fx or may_run(kernel, fx[name].target))


def may_run(kernel: str, target: str) -> bool:
    """Return whether a kernel or library call may run an operator: a collective has a call to itself."""
    wanted = operator(target)
    return wanted.namespace != C10D or operator(kernel).name.removesuffix("_") == wanted.name.removesuffix(
        "_"
    )


def _waited_for(name: str, called: str, fx: Mapping[str, FxNode]) -> str:
    node = fx.get(name)
    if node is None or called in WAITS or operator(node.target).name not in WAITS:
        return name
    for _ in range(_IN_PLACE):
        node = fx.get(node.inputs[0]) if node.inputs else None
        if node is None:
            break
        if operator(node.target).name.removesuffix("_") == called:
            return node.name
    return name


class KernelNodes:
    """What torch's provenance says of a step, or else the comment above its kernel.

    Attributes:
        leaves: the scheduler nodes, in order.
        members: those that each step runs, items of results left out.
    """

    def __init__(
        self, graph: CompiledGraph, leaves: Sequence[SchedulerNode], runs: Mapping[str, NodeStep]
    ) -> None:
        self.leaves = leaves
        code = graph.code
        self._provenance = graph.provenance
        self._fx = index_of(graph).fx
        self._comments = {name: kernel.comment for name, kernel in index_of(graph).kernels.items()}
        launches: list[Launch | ExternCall] = [*code.launches, *code.externs] if code else []
        self._above = {launch.span.first: launch.comment for launch in launches}
        located = ((runs[leaf.name].step, leaf) for leaf in leaves if leaf.ir != ITEM_OF_CALL)
        self.members = collected((step, leaf) for step, leaf in located if step is not None)
        steps = sorted(self.members, key=lambda step: step.order, reverse=True)
        self._times = Counter(step.name for step in steps)
        self._first = {step.name: step for step in steps}

    def of(self, step: Step | None) -> tuple[str, ...] | None:
        """Return the FX nodes that `step` computes; None when torch does not say."""
        listed = self._listed(step) if step is not None else None
        return self._named(step, listed) if step is not None and listed else None

    def _named(self, step: Step, names: tuple[str, ...]) -> tuple[str, ...]:
        return without_waits(names_in(names, step.subgraph, self._fx), step.name, self._fx)

    def _listed(self, step: Step) -> tuple[str, ...] | None:
        if self._provenance is not None:
            above = self._above.get(step.span.first)
            listed = self._provenance.launches.get(f"{step.name}:{above.handle if above else None}")
            if not listed and self._times[step.name] == 1:
                listed = self._provenance.kernels.get(step.name)
            if listed:
                return listed
        # A kernel is defined once, and its comment is about the nodes of its first launch.
        comment = self._comments.get(step.name) if self._first.get(step.name) is step else None
        return (comment.fx_nodes or None) if comment else None

    def written(self, step: Step) -> tuple[str, ...]:
        """Return the FX nodes that the comment above the kernel says it writes, in the order of its nodes."""
        comment = self._comments.get(step.name) if self._first.get(step.name) is step else None
        return self._named(step, comment.returns) if comment else ()


def proved_values(
    code: OutputCode | None,
    fx: FxIndex,
    shapes: Mapping[str, Shape],
    kernels: KernelNodes,
    origins: Mapping[str, BufferOrigin],
) -> dict[str, tuple[str, Proof]]:
    """Return the FX node of each buffer that is recorded or read, and what says so; stronger proofs win.

    What is returned is what the memory holds in the end: of the node that changed it last, not of the first.
    """
    last = {
        old: buffer.name for leaf in kernels.leaves for buffer in leaf.outputs for old in buffer.mutations
    }

    def fits(buffer: str, node: str) -> bool:
        known = node in fx.nodes
        return known and (buffer not in shapes or shapes[buffer].may_hold(fx.shape[node]))

    returned = [(last.get(buffer, buffer), node) for buffer, node in (_returned(code, fx) if code else ())]
    proved = {buffer: (node, _RETURNED) for buffer, node in returned if fits(buffer, node)}
    for step, members in kernels.members.items():
        written = kernels.written(step)
        buffers = [buffer.name for leaf in members for buffer in leaf.outputs]
        if len(written) == len(buffers):
            pairs = zip(buffers, written, strict=True)
            proved.update((buffer, (node, KERNEL_COMMENT)) for buffer, node in pairs if fits(buffer, node))
    for buffer, origin in origins.items():
        if origin.origin_node is not None and origin.origin_node in fx.nodes:
            proved[buffer] = (origin.origin_node, RECORDED)
    return proved


def _returned(code: OutputCode, fx: FxIndex) -> Iterator[tuple[str, str]]:
    """What the graph returns is at the same position in the wrapper, a view as one of its buffer."""
    if len(code.returns) != len(fx.graph.outputs):
        return
    for text, node in zip(code.returns, fx.graph.outputs, strict=True):
        buffer = buffer_in(text)
        value = node
        while text != buffer and value in fx.nodes and fx.op[value] in VIEWS:
            needs = fx.needs[value]
            base = fx.nodes.get(needs[0]) if needs else None  # the base may be a node of another module
            if base is None or base.name in fx.inputs or base.type is None:
                break
            value = base.name
        if value is not None and value in fx.nodes and value not in fx.inputs:
            yield buffer, value
