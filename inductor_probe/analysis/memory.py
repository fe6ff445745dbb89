"""Which memory lives when, in the wrappers of graphs: what they allocate, take over and free, name by name.

A buffer's memory lives while any name for it does, as Python counts references: `buf3 = buf1; del buf1` is
one life with two names, and a view has what it looks at. Inputs, parameters and constants are held by whoever
calls. What a forward saves for its backward is freed there, by the statement that deletes it: a backward is
read behind its forward.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeAlias

from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.index import value_of
from inductor_probe.analysis.links import links
from inductor_probe.analysis.memory_format import size_bytes
from inductor_probe.analysis.symbols import symbol_values
from inductor_probe.model.code import Allocation, ExternCall, Freed, Launch, OutputCode, WrapperFunction
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout
from inductor_probe.model.memory import BufferLife, GraphMemory, HeldBy, MemoryStep
from inductor_probe.model.record import grouped
from inductor_probe.model.span import SourceLine, Span

_Event: TypeAlias = "tuple[int, int, Allocation | Launch | ExternCall | Freed | WrapperFunction]"
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:\[\d+\])?")
_OF_TORCH = ("reinterpret_tensor", "torch", "alloc_from_pool")
_AOT_GRAPH = re.compile(r"model__(?P<number>\d+)_(?P<kind>\w+?)_\d")
"""`get_aot_graph_name` of torch/_functorch: both graphs of a program have its number."""
_TANGENT, _PRIMAL, _SYMBOL = "tangents_", "primals_", re.compile(r"[suz]\d+")


@dataclass
class _Memory:
    """Memory that has names; without one it is free."""

    bytes: int
    device: str
    held: HeldBy
    first: int
    live: set[str]
    names: list[str]
    allocated: Span | None = None
    last: int | None = None
    sources: tuple[SourceLine, ...] = ()


@dataclass
class _Reading:
    """Follows the statements of one wrapper."""

    graph: CompiledGraph
    code: OutputCode
    memories: list[_Memory] = field(default_factory=list)
    of: dict[str, _Memory] = field(default_factory=dict)
    steps: list[tuple[str, Span]] = field(default_factory=list)
    uncounted: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._values = symbol_values(self.graph)
        self._layouts = index_of(self.graph).layouts
        functions = {one.name: one for one in self.code.functions}
        inside = [(one.span, one) for one in self.code.functions] if self.code.language == "python" else []
        events: list[_Event] = [
            *((one.span.first, 0, one) for one in self.code.allocations if one.span is not None),
            *((span.first, 1, functions[name]) for name, span in self.code.entered if name in functions),
            *((one.span.first, 2, one) for one in self.code.launches),
            *((one.span.first, 2, one) for one in self.code.externs),
            *((one.span.first, 3, one) for one in self.code.freed),
        ]

        def function_of(event: _Event) -> str:
            line = event[0]
            return next((one.name for span, one in inside if span.first <= line <= span.last), "")

        self._events: Mapping[str, Sequence[_Event]] = grouped(
            sorted(events, key=lambda event: event[:2]), function_of
        )

    def run(self, function: str = "", depth: int = 0) -> None:
        """Follow a function of the wrapper, and those that it calls; `""` is its entry."""
        for _, _, event in self._events.get(function, ()):
            match event:
                case Allocation():
                    self._name(event)
                case Launch(kernel=name, span=span) | ExternCall(target=name, span=span):
                    self.steps.append((name, span))
                    for output in event.outputs if isinstance(event, ExternCall) else ():
                        self._returned(output, span)
                case Freed(name=name):
                    self.free(name)
                case WrapperFunction() if depth < len(self.code.functions):
                    before = {*self.of}
                    self.run(event.name, depth + 1)
                    left = () if event.is_subgraph else tuple(map(_name_in, event.returns))
                    for name in {*self.of} - before - {*left}:
                        self.free(name)
                case _:
                    pass

    def free(self, name: str) -> None:
        """End a name; memory that has no other is free from the next step on."""
        memory = self.of.pop(name, None)
        if memory is not None:
            memory.live.discard(name)
            if not memory.live:
                memory.last = len(self.steps)

    def add(self, name: str, size: int, device: str, held: HeldBy, allocated: Span | None) -> None:
        """Give memory of its own to a name."""
        memory = _Memory(size, device, held, len(self.steps), {name}, [name], allocated)
        self.memories.append(memory)
        self.of[name] = memory

    def join(self, name: str, memory: _Memory) -> None:
        """Give memory one name more."""
        self.of[name] = memory
        memory.live.add(name)
        if name not in memory.names:
            memory.names.append(name)

    def _name(self, allocation: Allocation) -> None:
        name, of = allocation.name, self.of.get(allocation.of or "")
        if allocation.kind in ("input", "argument", "constant", "copy"):
            return
        if allocation.kind in ("view", "reuse"):
            if of is not None and self.of.get(name) is not of:
                self.free(name)
                self.join(name, of)
        elif name not in self.of:
            self._allocate(name, allocation.layout or self._layouts.get(name), allocation.span)

    def _returned(self, name: str, span: Span) -> None:
        """Count what a call of a library returns, where no statement says its layout."""
        if name not in self.of and name in self._layouts and not name.startswith(("arg", _PRIMAL)):
            self._allocate(name, self._layouts[name], span)

    def _allocate(self, name: str, layout: BufferLayout | None, span: Span | None) -> None:
        known = self._layouts.get(name)
        size = value_of(size_bytes(layout), self._values)
        if size is None:
            size = value_of(size_bytes(known), self._values)
        if size is None:
            self.uncounted.append(name)
            return
        device = (layout and layout.device) or (known and known.device) or ""
        self.add(name, size, _type_of(device), "call", span)

    def nodes_of(self, memory: _Memory) -> tuple[str, ...]:
        """Return the nodes that write into memory, by all its names."""
        producer = index_of(self.graph).nodes.producer
        return tuple(dict.fromkeys(producer[name] for name in memory.names if name in producer))

    def sources_of(self, memory: _Memory) -> tuple[SourceLine, ...]:
        """Return the user's lines of these nodes, or of those of the forward."""
        linked = links(self.graph).nodes
        seen = (source for node in self.nodes_of(memory) if node in linked for source in linked[node].sources)
        return memory.sources or tuple({source.place: source for source in seen}.values())

    def input_bytes(self) -> dict[str, int]:
        """Return the bytes of the inputs that are tensors; of several on one memory each counts."""
        sizes = ((name, size_bytes(self._layouts.get(name))) for name in self.code.inputs)
        known = ((name, value_of(size, self._values)) for name, size in sizes)
        return {name: size for name, size in known if size is not None}


def memory_of(graphs: Iterable[CompiledGraph]) -> tuple[GraphMemory, ...]:
    """Return what each graph allocates and frees; a backward begins with what its forward left."""
    readings: list[_Reading] = []
    forwards: dict[str, _Reading] = {}
    for graph in graphs:
        if graph.code is None or graph.code.entry is None:
            continue
        reading = _Reading(graph, graph.code)
        readings.append(reading)
        named = _AOT_GRAPH.match(graph.name)
        if named and named["kind"] == "backward":
            _begin_backward(reading, forwards.get(graph.folder.process + named["number"]))
        elif named:
            forwards[graph.folder.process + named["number"]] = reading
        reading.run()
        returned = {*map(_name_in, graph.code.returns)}
        for name, memory in [*reading.of.items()]:
            if name not in returned and memory.held == "call":
                reading.free(name)
        for memory in reading.memories:
            if memory.held == "call" and memory.last is None:
                memory.held = "output"
    return tuple(map(_graph_memory, readings))


def _begin_backward(reading: _Reading, forward: _Reading | None) -> None:
    """Put what lives when a backward begins: what its forward left, and the gradients that it is given.

    AOTAutograd returns what is saved behind the outputs, in the order in which the backward takes it
    (`partition_fn` of torch/_functorch).
    """
    sizes = reading.input_bytes()
    given = [name for name in reading.code.inputs if name in sizes and name.startswith(_TANGENT)]
    saved = [name for name in reading.code.inputs if name in sizes and name not in given]
    returns = [text for text in forward.code.returns if not _SYMBOL.fullmatch(text)] if forward else []
    if forward is not None and len(returns) >= len(saved):
        cut = len(returns) - len(saved)
        outputs = {_name_in(text) for text in returns[:cut]}
        names = grouped(zip(map(_name_in, returns[cut:]), saved, strict=True), lambda pair: pair[0])
        for memory in forward.memories:
            if memory.last is None:
                taken = [name for one in memory.names for _, name in names.get(one, ())]
                if not taken or outputs & {*memory.names}:  # the user has it, too
                    taken.append(f"{memory.names[-1]} of the forward")
                elif memory.held == "output":
                    memory.held = "saved"
                reading.add(taken[0], memory.bytes, memory.device, "forward", None)
                reading.of[taken[0]].sources = forward.sources_of(memory)
                for name in taken[1:]:
                    reading.join(name, reading.of[taken[0]])
    else:
        for name in saved:
            if not name.startswith(_PRIMAL):
                reading.add(name, sizes[name], _device(reading, name), "forward", None)
    for name in given:  # whoever runs the backward holds it, whatever the wrapper deletes
        reading.add(name, sizes[name], _device(reading, name), "gradient", None)
        reading.of.pop(name)


def _device(reading: _Reading, name: str) -> str:
    layout = index_of(reading.graph).layouts.get(name)
    return _type_of((layout.device if layout else None) or "")


def _type_of(device: str) -> str:
    return device.partition(":")[0] or "cpu"


def _name_in(text: str) -> str:
    """Return the buffer in `buf3` and `reinterpret_tensor(buf3, (4, 3), (3, 1), 0)`."""
    names = (match.group() for match in _IDENTIFIER.finditer(text))
    return next((name for name in names if name not in _OF_TORCH), text)


def _graph_memory(reading: _Reading) -> GraphMemory:
    by_device = grouped(reading.memories, lambda memory: memory.device)
    totals = {device: sum(one.bytes for one in memories) for device, memories in by_device.items()}
    device = max(totals, key=lambda name: totals[name], default="cpu")
    memories = by_device.get(device, [])
    count = max(len(reading.steps), 1)
    changes = [0] * (count + 1)
    for memory in memories:
        places = _places(memory, count)
        changes[places[0]] += memory.bytes
        changes[places[-1] + 1] -= memory.bytes
    live = [*accumulate(changes)]
    at = live.index(max(live))
    counted = {name for memory in reading.memories for name in memory.names}
    lives = [_life(reading, memory, count, at) for memory in memories if memory.bytes]
    return GraphMemory(
        graph=reading.graph.name,
        device=device,
        peak=live[at],
        at=at if reading.steps else None,
        inputs=sum(size for name, size in reading.input_bytes().items() if name not in counted),
        left=sum(memory.bytes for memory in memories if memory.last is None),
        steps=tuple(
            MemoryStep(name, size, span) for (name, span), size in zip(reading.steps, live, strict=False)
        ),
        lives=tuple(sorted(lives, key=lambda life: (-life.bytes, life.first))),
        elsewhere=sum(totals.values()) - totals.get(device, 0),
        uncounted=tuple(dict.fromkeys(reading.uncounted)),
    )


def _places(memory: _Memory, count: int) -> range:
    """Return the steps at which memory lives; what is freed after a step lived at it."""
    last = count - 1 if memory.last is None else memory.last - 1
    return range(min(memory.first, count - 1), max(last, min(memory.first, count - 1)) + 1)


def _life(reading: _Reading, memory: _Memory, count: int, at: int) -> BufferLife:
    places = _places(memory, count)
    return BufferLife(
        names=tuple(memory.names),
        bytes=memory.bytes,
        held=memory.held,
        first=places[0],
        last=places[-1],
        at_peak=at in places,
        nodes=reading.nodes_of(memory),
        sources=reading.sources_of(memory),
        allocated=memory.allocated,
    )
