"""The scheduler IR as inductor prints it in `ir_pre_fusion.txt` and `ir_post_fusion.txt`.

Names are inductor's own. Forms differ between torch versions; a field that a version does not print is
None (or an empty tuple where nothing is a valid answer), never a guess.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, TypeAlias

from msgspec import Struct

from inductor_probe.model.record import Compared
from inductor_probe.model.span import Span

Dim: TypeAlias = int | str
"""A size or stride: a number, or the text of a symbolic expression (`s77*s27`)."""
LARGEST_DIM = (1 << 63) - 1
"""Torch's sizes and strides are int64. A larger number stays text, as a symbolic size does: its bytes would
be beyond a float, and Python does not print a product of thousands of digits."""


def as_dim(text: str) -> Dim:
    """Return a size as a number where it is one, else its text."""
    return dim_of(int(text), text) if text.isdecimal() and len(text) < 20 else text


def dim_of(number: int, text: str) -> Dim:
    """Return a size that is printed as `text`: the number where torch can have it, else the text."""
    return number if abs(number) <= LARGEST_DIM else text


class MemoryDep(Struct, frozen=True):
    """Access to `name` at `index` over `ranges`, in the dep's own normalized variables (`c0`, `d0`)."""

    name: str
    index: str
    ranges: tuple[tuple[str, Dim], ...]
    mode: str | None = None


class StarDep(Struct, frozen=True):
    """Access to the whole buffer (extern kernels, templates)."""

    name: str
    mode: str | None = None


class WeakDep(Struct, frozen=True):
    """Ordering only: `name` must come first because `mutating_buf` is changed afterwards."""

    name: str
    mutating_buf: str | None = None
    is_fake: bool | None = None


Dep: TypeAlias = MemoryDep | StarDep | WeakDep


class BufferLayout(Struct, frozen=True):
    """A layout as printed: `FixedLayout('cpu', torch.float32, size=[2, 3], stride=[3, 1])`.

    Attributes:
        kind: the class inductor names (`FixedLayout`, `NonOwningLayout`, `MultiOutputLayout`, ...), or
            `Allocation` / `Input` where only the wrapper has it (torch before 2.4 prints no layouts), or
            `Constant` of the module.
        device: `cpu`, `cuda:0`, or None.
        dtype: without the `torch.` prefix (`float32`), or None for layouts without one.
        size, stride: in elements, or None for layouts without them. offset: in elements.
        extras: further keyword arguments, verbatim (`is_pinned`, `comm_buffer_type`, `group_name`).
    """

    kind: str
    device: str | None
    dtype: str | None
    size: tuple[Dim, ...] | None
    stride: tuple[Dim, ...] | None
    offset: Dim = 0
    extras: tuple[tuple[str, str], ...] = ()


PRINTED_STRIDE = "printed stride"
"""The name in `BufferLayout.extras` of a stride that cannot be that of the memory: a library packed it."""


class NodeUser(Struct, frozen=True):
    """A reader of a buffer. `node` is its name, or `OUTPUT` for the graph's output."""

    node: str
    kind: str | None
    can_inplace: bool
    is_weak: bool


class Buffer(Compared, frozen=True):
    """An output of a scheduler node."""

    name: str
    kind: str | None
    layout: BufferLayout | None
    users: tuple[NodeUser, ...]
    aliases: tuple[str, ...] = ()
    mutations: tuple[str, ...] = ()
    span: Span | None = None


class Ref(Struct, frozen=True):
    """A value computed earlier in the same block, by name."""

    name: str


class Dotted(Struct, frozen=True):
    """A dotted constant such as `torch.float32`."""

    text: str


Value: TypeAlias = "Ref | Dotted | int | float | bool | str | tuple[Value, ...] | None"
"""An argument of an operation in a loop body."""


class Op(Compared, frozen=True):
    """One line of a loop body: `result = target(*args, **kwargs)`, or `result = args[0][args[1]]` for `[]`.

    `target` is `ops.load`, `self.get_index`, `self.set_indirect0`, `self.masked_subblock1` or `[]`.
    `line` counts from the body's first line, so that a body that both IR files print is one record;
    `LoopBody.place` makes a span of it.
    """

    uncompared: ClassVar[tuple[str, ...]] = ("line",)

    result: str
    target: str
    args: tuple[Value, ...]
    kwargs: tuple[tuple[str, Value], ...] = ()
    line: int = 0


class Block(Struct, frozen=True):
    """A function of a loop body: `body`, or a sub-block such as `masked_subblock1`."""

    name: str
    params: tuple[str, ...]
    ops: tuple[Op, ...]
    result: Value = None


class LoopBody(Compared, frozen=True):
    """What a node computes per point of its iteration space.

    `var_ranges` is in loop order, outermost first, reduction variables last. `indexes` names the index
    expressions (`index0`); they may use `indirect0`, whose value a `set_indirect0` in a block defines.
    """

    var_ranges: tuple[tuple[str, Dim], ...]
    indexes: tuple[tuple[str, str], ...]
    blocks: tuple[Block, ...]
    span: Span | None = None

    @property
    def ops(self) -> tuple[Op, ...]:
        """The operations of all blocks, in order."""
        return tuple(op for block in self.blocks for op in block.ops)

    def index(self, name: str) -> str | None:
        """Return the expression called `name`."""
        return dict(self.indexes).get(name)

    def place(self, op: Op) -> Span | None:
        """Return the line that `op` was read from."""
        if self.span is None:
            return None
        line = self.span.first + op.line
        return Span(self.span.path, line, line)


class SchedulerNode(Compared, frozen=True):
    """A node of the scheduler: of one IR operation, extern, or fused of others (`children`).

    Attributes:
        name: `op3` (torch 2.5 and later), `buf3` (before), or the joined names of fused nodes.
        kind: the class inductor names: `SchedulerNode`, `FusedSchedulerNode`, `ExternKernelSchedulerNode` ...
        ir: what stands in the brackets of the header: `ComputedBuffer`, `FallbackKernel`, ...
        iteration: the node's group: `((1024,), (768,))` from the C++ backend, `(1024, 768)` from Triton's.
        sizes: iteration and reduction sizes, or None where the node prints none.
        min_input_distance, max_input_distance: steps from the graph's inputs (torch 2.12 and later).
        layouts: the `<name>_layout = ` lines below the node, each buffer once, in order.
        kernel: the extern kernel (`extern_kernels.mm`), where there is one.
        fields: `key = value` lines that no other attribute holds, verbatim.
    """

    uncompared: ClassVar[tuple[str, ...]] = ("layouts", "span")

    name: str
    kind: str
    ir: str
    writes: tuple[Dep, ...] = ()
    unmet_dependencies: tuple[Dep, ...] = ()
    met_dependencies: tuple[Dep, ...] = ()
    outputs: tuple[Buffer, ...] = ()
    device: str | None = None
    iteration: tuple[Dim | tuple[Dim, ...], ...] | None = None
    sizes: tuple[tuple[Dim, ...], ...] | None = None
    layouts: tuple[tuple[str, BufferLayout, Span], ...] = ()
    body: LoopBody | None = None
    kernel: str | None = None
    children: tuple[SchedulerNode, ...] = ()
    min_input_distance: int | None = None
    max_input_distance: int | None = None
    fields: tuple[tuple[str, str], ...] = ()
    span: Span | None = None

    def leaves(self) -> Iterator[SchedulerNode]:
        """Yield the unfused nodes in it, in order; itself when it is not fused."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()

    @property
    def ops(self) -> tuple[Op, ...]:
        """The operations of its loop body; none without one."""
        return self.body.ops if self.body else ()

    @property
    def reads(self) -> tuple[Dep, ...]:
        """Dependencies that stand for reads or ordering, met or not."""
        return self.met_dependencies + self.unmet_dependencies
