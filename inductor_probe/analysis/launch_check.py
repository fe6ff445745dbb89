"""Launch arguments against the kernel's signature: count, types, order, sizes, grid, promises.

What does not fit is a remark. Codes and their numbers, after `aspect`, in order:

- `argument-count`: parameters, grid (further ones), passed. `argument-type`: argument, type, passed, and
  dtype of the buffer where that is what differs.
- `other-buffer`: argument, buffer, access (`read`, `write`): no node of the kernel reaches the buffer so.
  `swapped-buffers`: argument, buffer, other_argument, other_buffer, access.
- those of sizes and grids are in `launch_sizes.py`, those of addresses in `launch_addresses.py`.

Works on what was read, for Triton kernels that inductor wrote; a user's own kernel follows other rules. What
cannot be told (symbolic sizes without values, nodes that no IR file holds) is not compared, and not counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from inductor_probe.analysis.graph import GraphIndex, index_of
from inductor_probe.analysis.launch_addresses import number
from inductor_probe.analysis.launch_sizes import Sizes
from inductor_probe.analysis.launches import launches
from inductor_probe.analysis.links import links
from inductor_probe.model.code import Kernel, TritonFacts
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import Op, SchedulerNode, WeakDep
from inductor_probe.model.kernels import Aspect, KernelLaunch, LaunchCheck, Mismatch, Passed
from inductor_probe.model.remark import Remark, Subject

ASPECTS: tuple[Aspect, ...] = ("count", "type", "order", "numel", "grid", "divisibility", "index width")
_USERS = ("user_autotune",)
_POINTER = re.compile(r"(?:in|out)_ptr(\d+)")
_READING = ("ops.load", "ops.load_seed", "ops.bucketize")
_TYPES = {
    "fp16": ("float16",), "bf16": ("bfloat16",), "fp32": ("float32", "complex64"),
    "fp64": ("float64", "complex128"),
    "i1": ("bool",), "i8": ("int8", "bool"), "i16": ("int16",), "i32": ("int32",), "i64": ("int64",),
    "u8": ("uint8", "bool"), "u16": ("uint16",), "u32": ("uint32",), "u64": ("uint64",),
    "fp8e4nv": ("float8_e4m3fn",), "fp8e5": ("float8_e5m2",), "fp8e4b8": ("float8_e4m3fnuz",),
    "fp8e5b16": ("float8_e5m2fnuz",),
}  # fmt: skip
"""Dtypes of a buffer that a pointer of this type may be given."""

_Add = Callable[[Aspect, Mismatch], None]


def check_launches(graph: CompiledGraph) -> LaunchCheck:
    """Check every launch of a Triton kernel of `graph`."""
    checker = _Checker(graph)
    for name, placed in launches(graph).items():
        kernel = index_of(graph).kernels.get(name)
        if kernel is None or not isinstance(kernel.details, TritonFacts) or kernel.chooses:
            continue
        if kernel.details.heuristic is None or kernel.details.heuristic in _USERS:
            continue
        for launch in placed:
            checker.check(kernel, kernel.details, launch)
    checker.remarks.sort(key=lambda remark: remark.evidence[0].first)
    compared = tuple((aspect, checker.compared[aspect]) for aspect in ASPECTS)
    return LaunchCheck(graph.name, checker.launches, compared, tuple(checker.remarks))


@dataclass(slots=True)
class _Checker:
    graph: CompiledGraph
    remarks: list[Remark] = field(default_factory=list)
    compared: Counter[Aspect] = field(default_factory=Counter)
    launches: int = 0
    _index: GraphIndex = field(init=False)
    _sizes: Sizes = field(init=False)
    _nodes: dict[tuple[str, int], list[SchedulerNode]] = field(init=False)

    def __post_init__(self) -> None:
        self._index = index_of(self.graph)
        self._sizes = Sizes(self.graph)
        self._nodes = {}
        for link in links(self.graph).nodes.values():
            if link.kernel is not None and len(link.launches) == 1:
                place = (link.kernel, link.launches[0].first)
                self._nodes.setdefault(place, []).append(self._index.nodes.leaf[link.node])

    def check(self, kernel: Kernel, facts: TritonFacts, launch: KernelLaunch) -> None:
        """Check one launch. With the wrong number of arguments nothing else can be said of them."""
        self.launches += 1
        before = len(self.remarks)

        def add(aspect: Aspect, mismatch: Mismatch) -> None:
            subject, numbers = Subject("kernel", kernel.name), (("aspect", aspect), *mismatch.numbers)
            evidence = (launch.span,)
            self.remarks.append(
                Remark(mismatch.code, "hazard", subject, numbers, evidence=evidence, knowledge="read")
            )

        self._count(kernel, facts, launch, add)
        if len(self.remarks) > before:
            return
        nodes = self._nodes.get((kernel.name, launch.span.first), [])
        self._types(facts, launch, add)
        self._order(launch, nodes, add)
        for aspect, mismatch in self._sizes.check(kernel, facts, launch, nodes, self.compared):
            add(aspect, mismatch)

    def _count(self, kernel: Kernel, facts: TritonFacts, launch: KernelLaunch, add: _Add) -> None:
        extra = 3 if dict(facts.meta).get("grid_type") == "FixedGrid" else 0
        self.compared["count"] += 1
        if len(launch.passed) != len(kernel.args) + extra:
            numbers = (("parameters", len(kernel.args)), ("grid", extra), ("passed", len(launch.passed)))
            add("count", Mismatch("argument-count", numbers))

    def _types(self, facts: TritonFacts, launch: KernelLaunch, add: _Add) -> None:
        types = dict(facts.signature)
        for passed in launch.passed:
            kind = types.get(passed.arg.name) if passed.arg else None
            if kind is None or passed.arg is None:
                continue
            self.compared["type"] += 1
            numbers = (("argument", passed.arg.name), ("type", kind), ("passed", passed.text))
            if (kind.startswith("*") and number(passed.text) is not None) or (
                not kind.startswith("*") and passed.text in self._sizes.buffers
            ):
                add("type", Mismatch("argument-type", numbers))
            elif kind.startswith("*") and passed.layout and passed.layout.dtype:
                wanted = _TYPES.get(kind.removeprefix("*"))
                if wanted and passed.layout.dtype not in wanted and ".view" not in passed.text:
                    dtype = (*numbers, ("dtype", passed.layout.dtype))
                    add("type", Mismatch("argument-type", dtype))

    def _order(self, launch: KernelLaunch, nodes: list[SchedulerNode], add: _Add) -> None:
        """Inductor numbers `in_ptr` by the first load of each buffer, `out_ptr` by the first store."""
        if not nodes:
            return
        bodies = all(node.body is not None for node in nodes)
        deps = [dep.name for node in nodes for dep in node.reads if not isinstance(dep, WeakDep)]
        loads = [op.args[0] for node in nodes for op in _ops(node) if op.target in _READING]
        read = _numbered([*loads, *deps])
        written = _numbered([buffer.name for node in nodes for buffer in node.outputs])
        for role, known, verb in (
            ("in", read, "read"),
            ("out", written, "write"),
            ("inout", written, "write"),
        ):
            placed: list[tuple[int, Passed, int]] = []
            for passed in launch.passed:
                if passed.arg is None or passed.arg.role != role or passed.buffer is None:
                    continue
                self.compared["order"] += 1
                found = [known[name] for name in self._names(passed.buffer) if name in known]
                if not found:
                    numbers = (("argument", passed.arg.name), ("buffer", passed.buffer), ("access", verb))
                    add("order", Mismatch("other-buffer", numbers))
                elif bodies and (match := _POINTER.fullmatch(passed.arg.name)):
                    placed.append((int(match[1]), passed, min(found)))
            placed.sort(key=lambda item: item[0])
            for (_, first, at), (_, second, then) in pairwise(placed):
                if then < at and first.arg and second.arg and first.buffer and second.buffer:
                    swapped = (
                        ("argument", first.arg.name),
                        ("buffer", first.buffer),
                        ("other_argument", second.arg.name),
                        ("other_buffer", second.buffer),
                        ("access", verb),
                    )
                    add("order", Mismatch("swapped-buffers", swapped))

    def _names(self, buffer: str) -> Iterator[str]:
        """Yield the names that nodes may have for what the wrapper calls `buffer`."""
        for name in self._index.memory_names(buffer):
            yield name
            yield from self._index.nodes.mutated_as.get(name, ())


def _ops(node: SchedulerNode) -> Iterator[Op]:
    for block in node.body.blocks if node.body else ():
        yield from block.ops


def _numbered(names: Iterable[object]) -> dict[str, int]:
    """Number names by their first mention."""
    known: dict[str, int] = {}
    for name in names:
        if isinstance(name, str):
            known.setdefault(name, len(known))
    return known
