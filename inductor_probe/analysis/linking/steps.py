"""What the wrapper runs, in order: launches of kernels and library calls, and the buffers each reaches."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from inductor_probe.analysis.graph import buffer_in
from inductor_probe.model.code import ExternCall, Kernel, Launch, OutputCode
from inductor_probe.model.span import Span

_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Step:
    """One launch or library call.

    Attributes:
        order: its place among all steps.
        name: the kernel, or the target of the library call.
        generated: True for a kernel that inductor generated.
        writes: buffers that it is handed to write, or that it returns.
        reaches: every buffer among its arguments, written ones too.
        roles: False where the text of the kernel does not tell which arguments it writes.
    """

    order: int
    name: str
    generated: bool
    writes: frozenset[str]
    reaches: frozenset[str]
    roles: bool = True
    span: Span | None = field(default=None, compare=False)

    @property
    def what(self) -> str:
        """`launch` or `call`."""
        return "launch" if self.generated else "call"


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The steps of a wrapper, by what they write.

    Attributes:
        writers: for each buffer, the steps that write it, in order.
        reachers: for each buffer, the steps that have it among their arguments, in order.
        handed: buffers that are an argument of a step, seen through a view or returned. One that is not
            lives inside one kernel: it has no memory of its own, or another takes its memory over there.
        inputs: of the graph.
    """

    steps: tuple[Step, ...] = ()
    writers: dict[str, tuple[Step, ...]] = field(default_factory=dict)
    reachers: dict[str, tuple[Step, ...]] = field(default_factory=dict)
    handed: frozenset[str] = frozenset()
    inputs: frozenset[str] = frozenset()


def read_steps(code: OutputCode | None) -> Wrapper:
    """Put launches and library calls in the order in which the wrapper makes them."""
    if code is None:
        return Wrapper()
    places: list[Launch | ExternCall] = [*code.launches, *code.externs]
    places.sort(key=lambda place: place.span.first)
    steps = tuple(_step(order, place, code.by_name) for order, place in enumerate(places))
    reachers = _by_buffer(steps, lambda step: step.reaches)
    handed = set(reachers)
    handed.update(name for text in code.returns for name in _NAME.findall(text))
    handed.update(found.of for found in code.allocations if found.kind in ("view", "alias") and found.of)
    return Wrapper(
        steps=steps,
        writers=_by_buffer(steps, lambda step: step.writes),
        reachers=reachers,
        handed=frozenset(handed),
        inputs=frozenset(code.inputs),
    )


def _by_buffer(
    steps: tuple[Step, ...], buffers: Callable[[Step], frozenset[str]]
) -> dict[str, tuple[Step, ...]]:
    found: dict[str, list[Step]] = {}
    for step in steps:
        for name in buffers(step):
            found.setdefault(name, []).append(step)
    return {name: tuple(those) for name, those in found.items()}


def _step(order: int, place: Launch | ExternCall, kernels: dict[str, Kernel]) -> Step:
    reached = {name for text in place.args for name in _NAME.findall(text)}
    if isinstance(place, ExternCall):
        written = {name for text in place.outputs for name in _NAME.findall(text)}
        return Step(
            order, place.target, False, frozenset(written), frozenset(reached | written), span=place.span
        )
    kernel = kernels.get(place.kernel)
    args = kernel.args if kernel else ()
    writes = {
        buffer_in(text) for arg, text in zip(args, place.args, strict=False) if arg.role in ("out", "inout")
    }
    return Step(order, place.kernel, True, frozenset(writes), frozenset(reached), bool(writes), place.span)
