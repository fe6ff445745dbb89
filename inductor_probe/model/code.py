"""`output_code.py` as read: kernels, and what the wrapper does with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from inductor_probe.model.ir import BufferLayout
from inductor_probe.model.kernel_comments import KernelComment
from inductor_probe.model.kernel_facts import KernelDetails
from inductor_probe.model.span import Problem, Span

Role: TypeAlias = Literal["in", "out", "inout", "size", "workspace", "pointer"]
"""What a kernel does with an argument; `pointer` when the text does not tell the direction."""


@dataclass(frozen=True, slots=True)
class KernelArg:
    """A parameter of a generated kernel: `const float* in_ptr0`, or `in_ptr0` of type `*fp32` in Triton."""

    name: str
    role: Role
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Kernel:
    """A generated kernel.

    Attributes:
        name: the variable that `output_code.py` binds it to.
        backend: `cpp` or `triton`.
        source: its C++ or Triton text.
        facts: what its backend reads off the text, in display order: `("vectorised", "1")`.
        chooses: the kernels that it runs one of, when it is but a choice among others.
        details: the same with structure, where the backend's text is understood.
        comment: what inductor wrote above it: its path, source nodes, and the FX nodes it was made from.
    """

    name: str
    backend: str
    source: str = field(repr=False)
    args: tuple[KernelArg, ...]
    facts: tuple[tuple[str, str], ...] = ()
    span: Span | None = field(default=None, compare=False)
    details: KernelDetails | None = field(default=None, repr=False)
    chooses: tuple[str, ...] = ()
    comment: KernelComment | None = field(default=None, compare=False, repr=False)

    @property
    def comments(self) -> tuple[str, ...]:
        """The lines of its comment, without `# `."""
        return self.comment.lines if self.comment else ()


@dataclass(frozen=True, slots=True)
class Launch:
    """A call of a generated kernel in the wrapper; `args` are the texts passed, in order.

    `keywords` are those passed by name: `("stream", "stream0")`, and `grid` on torch before 2.7.
    """

    kernel: str
    args: tuple[str, ...]
    span: Span = field(compare=False)
    keywords: tuple[tuple[str, str], ...] = ()
    comment: KernelComment | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ExternCall:
    """A call of a library kernel: `extern_kernels.mm(a, b, out=buf0)`, `buf0 = torch.ops.aten.cumsum...`."""

    target: str
    args: tuple[str, ...]
    outputs: tuple[str, ...]
    span: Span = field(compare=False)
    comment: KernelComment | None = field(default=None, compare=False, repr=False)

    @property
    def source_nodes(self) -> tuple[str, ...]:
        """Nodes of the traced graph that the comment above the call names."""
        return self.comment.source_nodes if self.comment else ()


@dataclass(frozen=True, slots=True)
class Allocation:
    """Memory that the wrapper names.

    Attributes:
        name: the buffer.
        how: `new`, `reuse` (takes over `of`), `view` (`reinterpret_tensor` of `of`), `alias`, `input`,
            `constant` (of the module, set when it is loaded), or `copy` (of an input that is not aligned).
        layout: size, stride, dtype and device as far as the statement tells; kind `Allocation` or `Input`.
        of: the buffer whose memory it is, where it is not new.
    """

    name: str
    how: Literal["new", "reuse", "view", "alias", "input", "constant", "copy"]
    layout: BufferLayout | None
    of: str | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SizeSymbol:
    """A size that the wrapper computes or takes from an input: `s77 = arg0_1`, `u0 = buf1.item()`."""

    name: str
    value: str
    span: Span = field(compare=False)


@dataclass(frozen=True)
class OutputCode:
    """What `output_code.py` says.

    Attributes:
        entry: `call` (torch before 2.9) or `Runner.call`.
        inputs: names of the graph's inputs in calling order, symbolic sizes among them.
        returns: texts of the returned values in order.
        symbols: sizes that the wrapper names, in order.
        functions: functions of the wrapper beside its entry: partitions, branches of conditionals, bodies
            of loops. What they launch and allocate is listed with the rest.
    """

    entry: str | None
    inputs: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    launches: tuple[Launch, ...]
    externs: tuple[ExternCall, ...]
    allocations: tuple[Allocation, ...]
    returns: tuple[str, ...]
    symbols: tuple[SizeSymbol, ...] = ()
    functions: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    def kernel(self, name: str) -> Kernel | None:
        """Return the kernel called `name`."""
        return self.by_name.get(name)

    @cached_property  # which needs a `__dict__`, so this record has no slots
    def by_name(self) -> dict[str, Kernel]:
        """The kernels by name."""
        return {kernel.name: kernel for kernel in self.kernels}
