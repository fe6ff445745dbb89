"""What a comparison of two graphs or runs concludes. `a` is what was given first, `b` what was given second.

A `Weight` says what a change is worth: `major` changes what is computed, how results lie in memory or how
much work is done, `minor` changes how the same work is done, `cosmetic` is another spelling of the same.
Only major and minor changes make two programs different.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal, TypeAlias, cast

from msgspec import Struct

from inductor_probe.model.codec import written
from inductor_probe.model.decision import Decision
from inductor_probe.model.ir import BufferLayout
from inductor_probe.model.output import Output
from inductor_probe.model.proof import Proof
from inductor_probe.model.record import Compared
from inductor_probe.model.span import Problem, Span

Weight: TypeAlias = Literal["major", "minor", "cosmetic"]
Relation: TypeAlias = Literal["same", "changed", "split", "merged", "regrouped", "added", "removed"]


class FactChange(Struct, frozen=True):
    """A named fact with its two values; None on the side that has no such fact."""

    name: str
    a: str | None
    b: str | None
    weight: Weight = "minor"


class Count(Struct, frozen=True):
    """How many of something each side has; None where the side does not record it.

    `name` is `kernels`, `launches`, `library_calls`, `fused_groups`, `nodes`, `copies`, `allocations`,
    `bytes_allocated` or `reused_buffers` of a graph, `graphs`, `graph_breaks` or `recompile_limits_hit` of a
    run.
    """

    name: str
    a: int | None
    b: int | None

    @property
    def changed(self) -> bool:
        """Whether both sides have it, and differ."""
        return self.a is not None and self.b is not None and self.a != self.b


class BufferChange(Struct, frozen=True):
    """A buffer of both sides that differs, or one that only one side has (`a` or `b` is None).

    Attributes:
        role: what it is to the graph.
        position_a, position_b: of an input or output, in calling order.
        layout_a, layout_b: as far as known.
        facts: what differs: `value`, `format`, `size`, `stride`, `dtype`, `device`, `offset`, `position`,
            `memory`.
        proof: what makes it the same buffer; None for one that only one side has.
    """

    a: str | None
    b: str | None
    role: Literal["input", "output", "intermediate"]
    facts: tuple[FactChange, ...]
    proof: Proof | None = None
    position_a: int | None = None
    position_b: int | None = None
    layout_a: BufferLayout | None = None
    layout_b: BufferLayout | None = None

    @property
    @written
    def weight(self) -> Weight:
        """The weight of its weightiest fact."""
        return heaviest(self.facts)


class Statement(Compared, frozen=True):
    """A line of a loop body as dumped, and where; `block` is `body` or a sub-block.

    Of a node without a loop body it is the call that it makes; where it makes none, `generated` is set, and
    it is the class of the IR node that inductor generates code for.
    """

    text: str
    span: Span | None = None
    block: str = "body"
    generated: bool = False


class NodeChange(Struct, frozen=True):
    """A scheduler node of both sides whose bodies differ, or one that only one side has.

    Attributes:
        kind: `computes`: other operations or constants; `indexes`: the same operations at other indices;
            `loops`: the same operations in loops of another order or size; `calls`: another library call;
            `added`, `removed`.
        proof: what makes it the same node; None for one that only one side has.
        loops: trip counts on both sides, outermost first, when they differ.
        first_a, first_b: the first statements that differ; None on a side that has no more.
        operations: operations that one side has more of.
    """

    a: str | None
    b: str | None
    kind: Literal["computes", "indexes", "loops", "calls", "added", "removed"]
    proof: Proof | None = None
    loops: FactChange | None = None
    first_a: Statement | None = None
    first_b: Statement | None = None
    operations: tuple[Count, ...] = ()


class FusionChange(Struct, frozen=True):
    """Fused groups that hold the same nodes in another grouping.

    Attributes:
        relation: `split`: what was one group is several; `merged`: the reverse; `regrouped`: neither.
        a, b: the groups of each side, the names of the unfused nodes in each.
    """

    relation: Literal["split", "merged", "regrouped"]
    a: tuple[tuple[str, ...], ...]
    b: tuple[tuple[str, ...], ...]


class CodeChange(Struct, frozen=True):
    """How far the code of two kernels is apart, names and spelling aside: lines of A only, and of B only."""

    removed: int
    added: int


class KernelMatch(Struct, frozen=True):
    """Kernels of A and of B that do the same work.

    Attributes:
        relation: `same`, `changed`, `split` (one of A is several of B), `merged`, `regrouped`, `added`,
            `removed`.
        proof: what makes them the same work; None for `added` and `removed`.
        facts: facts of their text that differ.
        code: None when the normalised code is equal, or was not compared (other backend, split, merged).
    """

    relation: Relation
    a: tuple[str, ...]
    b: tuple[str, ...]
    proof: Proof | None = None
    facts: tuple[FactChange, ...] = ()
    code: CodeChange | None = None


class CallChange(Compared, frozen=True):
    """A library call of both sides with another target or other arguments, or one that one side has."""

    uncompared: ClassVar[tuple[str, ...]] = ("span_a", "span_b")

    a: str | None
    b: str | None
    facts: tuple[FactChange, ...]
    span_a: Span | None = None
    span_b: Span | None = None


class DecisionChange(Struct, frozen=True):
    """A recorded decision about matched nodes or buffers, or the graph, with another outcome or cause.

    None: on that side, which has the subject and recorded that kind, torch took no such decision.
    """

    a: Decision | None
    b: Decision | None

    @property
    def decision(self) -> Decision:
        """The decision of A, or that of B where A has none."""
        return cast(Decision, self.a or self.b)


class MissingPart(Struct, frozen=True):
    """A part that a graph of the comparison lacks."""

    graph: Literal["a", "b"]
    part: Literal["nodes_after_fusion", "output_code", "fx_graph"]


class DiffSide(Compared, frozen=True):
    """Whose graph it is. `label` is that of its run, where the sides are of two runs."""

    uncompared: ClassVar[tuple[str, ...]] = ("path",)

    name: str
    path: Path
    torch_version: str | None
    kind: str | None
    devices: tuple[str, ...]
    backends: tuple[str, ...]
    label: str | None = None


class GraphDiff(Compared, frozen=True):
    """What changed between two graphs.

    Attributes:
        environment: torch version, backend, device, settings of torch (`default` where the runnable does not
            set them), variables: what explains changes. It makes no difference itself.
        inputs, outputs, buffers: by what each side calls them; weightiest first.
        nodes: unfused scheduler nodes. fusion: their groups.
        kernels: every kernel of both sides, equal ones too. calls: library calls.
        decisions: of the compiler that fell otherwise, as far as both graphs record them.
        operations: FX operations (`aten.mul.Tensor`) with their counts, where they differ.
        counts: sums over each graph, equal ones too.
        cosmetic: other spellings of the same, counted: `kernel_names`, `unit_dim_strides` (of dimensions of
            size 1), `library_calls`, `graph_name`, and facts of kernels.
        matched_nodes, matched_buffers: how many have a partner.
        missing: what could not be compared, since a graph lacks it.
    """

    uncompared: ClassVar[tuple[str, ...]] = ("problems",)

    a: DiffSide
    b: DiffSide
    environment: tuple[FactChange, ...] = ()
    inputs: tuple[BufferChange, ...] = ()
    outputs: tuple[BufferChange, ...] = ()
    buffers: tuple[BufferChange, ...] = ()
    nodes: tuple[NodeChange, ...] = ()
    fusion: tuple[FusionChange, ...] = ()
    kernels: tuple[KernelMatch, ...] = ()
    calls: tuple[CallChange, ...] = ()
    operations: tuple[Count, ...] = ()
    counts: tuple[Count, ...] = ()
    cosmetic: tuple[tuple[str, int], ...] = ()
    matched_nodes: int = 0
    matched_buffers: int = 0
    missing: tuple[MissingPart, ...] = ()
    decisions: tuple[DecisionChange, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    @written
    def equal(self) -> bool:
        """Whether both graphs compute the same with the same code, names and spelling aside.

        FX graphs that were lowered to the same nodes and code may differ.
        """
        return not (
            any(change.weight != "cosmetic" for change in (*self.inputs, *self.outputs, *self.buffers))
            or self.nodes
            or self.fusion
            or any(kernel.relation != "same" for kernel in self.kernels)
            or self.calls
            or any(count.changed for count in self.counts)
        )

    def kernel(self, name: str) -> KernelMatch | None:
        """Return the match that holds the kernel called `name` on either side."""
        return next((match for match in self.kernels if name in match.a or name in match.b), None)


class RunDiff(Compared, frozen=True):
    """What changed between two runs: their graphs in pairs, and graphs that only one run has.

    Attributes:
        environment: versions, knobs, devices, variables, and the settings of torch that changed alike in all
            graphs: what explains changes.
        counts: graphs, graph breaks, recompiles and the like.
        removed, added: graphs of A and of B without a partner.
    """

    uncompared: ClassVar[tuple[str, ...]] = ("a", "b")

    a: Path
    b: Path
    environment: tuple[FactChange, ...]
    counts: tuple[Count, ...]
    graphs: tuple[GraphDiff, ...]
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    label_a: str | None = None
    label_b: str | None = None

    @property
    @written
    def equal(self) -> bool:
        """Whether all graphs have an equal partner."""
        return (
            not self.removed
            and not self.added
            and all(graph.equal for graph in self.graphs)
            and not any(count.changed for count in self.counts)
        )


def heaviest(facts: tuple[FactChange, ...]) -> Weight:
    """Return the weight of the weightiest fact; `cosmetic` when there is none."""
    weights = {fact.weight for fact in facts}
    return "major" if "major" in weights else "minor" if "minor" in weights else "cosmetic"


class DeviceKernel(Struct, frozen=True):
    """A kernel or library function on one of two devices.

    Attributes:
        nodes: scheduler nodes in it. moved: bytes that it reads and writes over all launches; None where
            they are not known as a number.
        seconds: that it took in a call, as its run was profiled, and by how much that may be off. bound: the
            least time that it can take on the GPU that it was compiled for.
        share: of what the machine that was profiled copies or multiplies, whichever is nearer.
    """

    name: str
    nodes: tuple[str, ...]
    moved: int | None = None
    seconds: float | None = None
    uncertainty: float = 0.0
    bound: float | None = None
    share: float | None = None


class DeviceGroup(Struct, frozen=True):
    """Kernels of both devices that compute the same part of the program; one side may have none.

    `operators` of that part: `aten.mm`, as A has them, or B where A has no kernel.
    """

    a: tuple[DeviceKernel, ...]
    b: tuple[DeviceKernel, ...]
    operators: tuple[str, ...]


class DeviceDiff(Struct, frozen=True):
    """The kernels of a graph for two devices, what takes most of A first.

    `timed_a`, `timed_b`: whether the run of that side was profiled, on its machine.
    """

    a: DiffSide
    b: DiffSide
    groups: tuple[DeviceGroup, ...]
    timed_a: bool
    timed_b: bool


class DiffOutput(Output, frozen=True, kw_only=True):
    """What changed: `GraphDiff` where two graphs were compared, `RunDiff` where two runs were.

    Attributes:
        summary: the first lines of what is shown, in words.
        devices: with `--devices`, the kernels of each pair of graphs beside each other.
    """

    verb: Literal["diff"] = "diff"
    diff: GraphDiff | RunDiff
    summary: tuple[str, ...]
    devices: tuple[DeviceDiff, ...] = ()
