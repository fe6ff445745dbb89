"""What memory a compiled call takes: which buffers live when, what the peak is, and eager's beside it.

Two kinds of knowledge: what the wrapper allocates and frees is read (`GraphMemory`); what torch's allocator
gave while the script's own call ran, compiled and in eager, is measured (`MeasuredMemory`), with what
libraries take for themselves.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.output import Output
from inductor_probe.model.own_call import NoOwnCall
from inductor_probe.model.span import SourceLine, Span

HeldBy: TypeAlias = Literal["call", "output", "saved", "forward", "gradient"]
"""Why memory is there: the call allocated it for itself; it is returned; it is saved for the backward
alone; the forward left it, for the user or for this backward; whoever runs the backward made it, a gradient.
"""


class BufferLife(Struct, frozen=True):
    """Memory from where it is allocated to where its last name ends.

    Attributes:
        names: that it has one after the other, or beside each other: the buffer that it was allocated for,
            what takes it over, views.
        bytes: that are asked for; symbolic sizes as when the graph was compiled.
        first, last: places in `GraphMemory.steps`: it lives at both and between them.
        at_peak: it lives where the most memory is taken.
        nodes: that write what `names` are. sources: the user's lines of these.
        allocated: the line of `output_code.py`; None of what was there before.
    """

    names: tuple[str, ...]
    bytes: int
    held: HeldBy
    first: int
    last: int
    at_peak: bool
    nodes: tuple[str, ...] = ()
    sources: tuple[SourceLine, ...] = ()
    allocated: Span | None = None


class MemoryStep(Struct, frozen=True):
    """A kernel or function of a library that the wrapper runs, and the most that is allocated up to it.

    `bytes` live from what is allocated for it until the next one begins; `span` is its line.
    """

    name: str
    bytes: int
    span: Span


class GraphMemory(Struct, frozen=True):
    """What a graph allocates and frees, as read in its wrapper.

    Attributes:
        device: that it is counted of, the one with most of it.
        peak: the most bytes at any time, beyond the inputs, parameters and constants, which the caller holds.
        at: the place in `steps` where that is first; None where nothing is run.
        inputs: bytes of those. left: bytes at the end: what is returned.
        lives: of all memory, the largest first. elsewhere: bytes that are allocated on other devices.
        uncounted: names whose size no file says; they are not counted.
    """

    graph: str
    device: str
    peak: int
    at: int | None
    inputs: int
    left: int
    steps: tuple[MemoryStep, ...]
    lives: tuple[BufferLife, ...]
    elsewhere: int = 0
    uncounted: tuple[str, ...] = ()


class LiveResult(Struct, frozen=True):
    """Memory that lives at a measured peak, by the operator in which it was allocated, all of it together.

    `operator` is as torch.profiler names it, the outermost (`aten.softmax`); empty for what no operator asked
    for, as the wrapper of a graph. Of a compiled call the others are libraries' own memory.
    """

    operator: str
    bytes: int
    count: int


class SideMemory(Struct, frozen=True):
    """What one side of a measured call took, beyond what was there when it began.

    Attributes:
        peak: the most bytes. left: bytes at its end, with what it returned still there.
        allocated: bytes of all allocations together.
        live: what lives at the peak, the largest first.
    """

    peak: int
    left: int
    allocated: int
    live: tuple[LiveResult, ...] = ()


class MeasuredMemory(Struct, frozen=True, kw_only=True):
    """A call of the user's compiled callable and of what it was compiled from, as torch's allocator saw both.

    Attributes:
        name, where: of the callable. graphs: compile ids. call: the number of the call that was made.
        backward: forward and backward are one call. device: whose allocator.
        read: the peak that is read of these graphs together; None where it is of another device, or which of
            several compiles of a function the call runs is not known.
    """

    name: str
    where: str | None
    graphs: tuple[str, ...]
    call: int
    inputs: str
    device: str
    backward: bool
    eager: SideMemory
    compiled: SideMemory
    read: int | None = None


class MemoryOutput(Output, frozen=True, kw_only=True):
    """What memory the graphs of a run take.

    Attributes:
        rows: what is read, a graph a row. measured: of each callable. not_measured: why one, or all, are not.
    """

    verb: Literal["memory"] = "memory"
    rows: tuple[GraphMemory, ...] = ()
    measured: tuple[MeasuredMemory, ...] = ()
    not_measured: NoOwnCall | None = None
