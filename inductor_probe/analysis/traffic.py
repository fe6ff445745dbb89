"""How many bytes a kernel reads and writes, as far as layouts and dependencies tell."""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod
from typing import Literal

from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.memory_format import ITEM_BYTES, size_bytes
from inductor_probe.model.code import Role
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import Dep, Dim, MemoryDep, SchedulerNode, WeakDep
from inductor_probe.model.kernels import KernelLaunch, Passed

_NAME = re.compile(r"[A-Za-z_]\w*")
_READS: tuple[Role, ...] = ("in", "inout")
_WRITES: tuple[Role, ...] = ("out", "inout")


class Traffic:
    """Answers for one graph; build it once."""

    def __init__(self, graph: CompiledGraph) -> None:
        self._index = index_of(graph)
        self._leaves = self._index.nodes.leaf
        self._producer = self._index.nodes.producer

    def of_kernel(
        self, launches: tuple[KernelLaunch, ...], nodes: tuple[str, ...]
    ) -> tuple[Dim | None, Dim | None]:
        """Return the bytes read and written over all launches by the kernel that runs `nodes`."""
        leaves = [self._leaves[node] for node in nodes if node in self._leaves]
        reads, writes = _Reach(leaves, "reads"), _Reach(leaves, "writes")
        own = {leaf.name for leaf in leaves}
        read: list[Dim | None] = []
        written: list[Dim | None] = []
        for launch in launches:
            for buffer, passed in _once(launch, _READS).items():
                names = self._with_mutations(self._index.memory_names(buffer), own)
                in_place = passed.arg is not None and passed.arg.role == "inout"
                if not (in_place and self._is_new(names, own)):
                    read.append(reads.bytes(passed, names))
            for buffer, passed in _once(launch, _WRITES).items():
                written.append(
                    writes.bytes(passed, self._with_mutations(self._index.memory_names(buffer), own))
                )
        return _total(read), _total(written)

    def of_calls(
        self, launches: tuple[KernelLaunch, ...], nodes: tuple[str, ...]
    ) -> tuple[Dim | None, Dim | None]:
        """Return the bytes that library calls are passed to read, and those that `nodes` get from them."""
        outputs = {
            buffer.name: self._index.layouts.get(buffer.name, buffer.layout)
            for node in nodes
            if node in self._leaves
            for buffer in self._leaves[node].outputs
        }
        read = [
            size_bytes(passed.layout)
            for launch in launches
            for passed in {at.buffer: at for at in launch.passed if at.buffer is not None}.values()
            if passed.buffer not in outputs
        ]
        written = [
            size_bytes(layout)
            for layout in outputs.values()
            if layout is None or layout.kind != "MultiOutputLayout"  # its items are buffers of their own
        ]
        return _total(read), _total(written) if written else None

    def _is_new(self, names: tuple[str, ...], own: set[str]) -> bool:
        """Whether the kernel itself makes all that the memory held: it reads nothing from outside then."""
        return all(self._producer.get(name) in own for name in names)

    def _with_mutations(self, names: tuple[str, ...], own: set[str]) -> tuple[str, ...]:
        """Add the names under which the kernel's nodes know memory that they mutate."""
        added = (new for name in names for new in self._index.nodes.mutated_as.get(name, ()))
        return (*names, *(name for name in added if self._producer.get(name) in own))


def _once(launch: KernelLaunch, roles: tuple[Role, ...]) -> dict[str, Passed]:
    """Return the buffers that are passed for parameters of these roles, each once."""
    return {
        passed.buffer: passed
        for passed in launch.passed
        if passed.buffer is not None and passed.arg is not None and passed.arg.role in roles
    }


class _Reach:
    """How many elements of each buffer some nodes reach at most."""

    def __init__(self, leaves: list[SchedulerNode], side: Literal["reads", "writes"]) -> None:
        self._elements: dict[str, int | None] = {}
        deps = {dep: leaf for leaf in leaves for dep in (leaf.reads if side == "reads" else leaf.writes)}
        for dep, leaf in deps.items():
            if not isinstance(dep, WeakDep):
                number, known = _elements(dep, leaf), self._elements.get(dep.name, 0)
                self._elements[dep.name] = None if number is None or known is None else known + number

    def bytes(self, passed: Passed, names: tuple[str, ...]) -> Dim | None:
        """Return the bytes of what is passed that are reached; all of it where that is not known."""
        whole = size_bytes(passed.layout)
        reached = [self._elements[name] for name in names if name in self._elements]
        if passed.layout is None or not isinstance(whole, int) or not reached:
            return whole
        elements = 0
        for number in reached:
            if number is None:
                return whole
            elements += number
        return min(whole, elements * ITEM_BYTES[passed.layout.dtype or ""])


def _elements(dep: Dep, leaf: SchedulerNode) -> int | None:
    """As many as there are steps of the loops that the index varies with.

    With an indirect index they are all loops of the node: the dependency names only some.
    """
    if not isinstance(dep, MemoryDep):
        return None
    used = _names(dep.index)
    sizes: list[Dim] = [size for name, size in dep.ranges if name in used]
    if any(name.startswith(("tmp", "indirect")) for name in used):
        if leaf.sizes is None:
            return None
        sizes = [size for group in leaf.sizes for size in group]
    numbers = [size for size in sizes if isinstance(size, int)]
    return prod(numbers) if len(numbers) == len(sizes) else None


@lru_cache(maxsize=4096)  # the layers of a network reach their buffers alike
def _names(index: str) -> frozenset[str]:
    return frozenset(_NAME.findall(index))


def _total(sizes: list[Dim | None]) -> Dim | None:
    if any(size is None for size in sizes):
        return None
    number = sum(size for size in sizes if isinstance(size, int))
    symbolic = [size for size in sizes if isinstance(size, str)]
    if not symbolic:
        return number
    return " + ".join([*symbolic, *([str(number)] if number else [])])
