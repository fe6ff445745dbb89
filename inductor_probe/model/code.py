"""`output_code.py` as read: kernels, and what the wrapper does with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from inductor_probe.model.ir import BufferLayout
from inductor_probe.model.span import Problem, Span

Role: TypeAlias = Literal["in", "out", "inout", "size", "workspace"]
"""What a kernel does with an argument."""


@dataclass(frozen=True, slots=True)
class KernelArg:
    """A parameter of a generated kernel: `const float* in_ptr0`, or `in_ptr0`."""

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
        facts: what its backend reads off the text, in display order: `("vectorised", "yes")`.
    """

    name: str
    backend: str
    source: str = field(repr=False)
    args: tuple[KernelArg, ...]
    facts: tuple[tuple[str, str], ...] = ()
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Launch:
    """A call of a generated kernel in the wrapper; `args` are the texts passed, in order."""

    kernel: str
    args: tuple[str, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class ExternCall:
    """A call of a library kernel: `extern_kernels.mm(a, b, out=buf0)`, `buf0 = torch.ops.aten.cumsum...`."""

    target: str
    args: tuple[str, ...]
    outputs: tuple[str, ...]
    span: Span = field(compare=False)
    source_nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Allocation:
    """Memory that the wrapper names.

    Attributes:
        name: the buffer.
        how: `new`, `reuse` (takes over `of`), `view` (`reinterpret_tensor` of `of`), `alias`, or `input`.
        layout: size, stride, dtype and device as far as the statement tells; kind `Allocation` or `Input`.
        of: the buffer whose memory it is, where it is not new.
    """

    name: str
    how: Literal["new", "reuse", "view", "alias", "input"]
    layout: BufferLayout | None
    of: str | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class OutputCode:
    """What `output_code.py` says.

    Attributes:
        entry: `call` (torch before 2.9) or `Runner.call`.
        inputs: names of the graph's inputs in calling order, symbolic sizes among them.
        returns: texts of the returned values in order.
    """

    entry: str | None
    inputs: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    launches: tuple[Launch, ...]
    externs: tuple[ExternCall, ...]
    allocations: tuple[Allocation, ...]
    returns: tuple[str, ...]
    problems: tuple[Problem, ...] = ()

    def kernel(self, name: str) -> Kernel | None:
        """Return the kernel called `name`."""
        return next((kernel for kernel in self.kernels if kernel.name == name), None)
