"""Nodes of an IR file among each other: who writes what is read, and who reads what is written.

`Scheduler.compute_dependencies` in `torch/_inductor/scheduler.py` makes the users of a buffer from what the
nodes read, and `dead_node_elimination` takes a removed node out of both.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from inductor_probe.analysis.completeness.loop_bodies import body_problems
from inductor_probe.analysis.graph import NodeIndex
from inductor_probe.model.ir import Buffer, MemoryDep, SchedulerNode, WeakDep
from inductor_probe.model.span import Problem, Span

# Torch before 2.5 names nodes by their buffers, and leaves those that it removed among the users.
_OPERATION = re.compile(r"op\d")


def graph_problems(nodes: NodeIndex, text: str, path: Path) -> Iterator[Problem]:
    """Yield what the nodes of an IR file name that is not among them, and what is not complete in each."""
    buffers = nodes.buffers
    renamed = {*nodes.mutated_as, *(buffer.name for buffer in buffers.values() if buffer.mutations)}
    lines = text.split("\n")
    seen: set[str] = set()
    for leaf in nodes.leaves:
        span = _first(leaf.span)
        if leaf.name in seen:
            yield Problem(f"{leaf.name} stands there twice", span)
        seen.add(leaf.name)
        yield from _outputs(leaf, nodes)
        for dep in leaf.unmet_dependencies:
            if dep.name not in buffers:
                yield Problem(f"{leaf.name} waits for {dep.name}, which no node of the file writes", span)
        if leaf.span and leaf.span.path == path:  # not one that a fused node only names
            yield from body_problems(leaf, lines, renamed)
    for top in nodes.tops:
        if top.children:
            yield from _fused(top)
    yield from _readers(nodes, renamed)


def _outputs(leaf: SchedulerNode, nodes: NodeIndex) -> Iterator[Problem]:
    written = {dep.name for dep in leaf.writes}
    for buffer in leaf.outputs:
        if leaf.writes and buffer.name not in written:
            yield Problem(f"{leaf.name} does not write its output {buffer.name}", buffer.span or leaf.span)
        for user in buffer.users:
            if _OPERATION.match(user.node) and user.node not in nodes.leaf:
                yield Problem(
                    f"{buffer.name} has the user {user.node}, which is not in the file", _first(buffer.span)
                )


def _fused(top: SchedulerNode) -> Iterator[Problem]:
    """A fused node prints the outputs of its children again (torch 2.5 and later), and joins their writes."""
    leaves = list(top.leaves())
    if any(buffer.layout for buffer in top.outputs):
        inside = list(chain.from_iterable(leaf.outputs for leaf in leaves))
        if sorted(map(_facts, top.outputs)) != sorted(map(_facts, inside)):
            yield Problem(f"the outputs of {top.name} are not those of the nodes in it", _first(top.span))
    written = {dep.name for leaf in leaves for dep in leaf.writes}
    if {dep.name for dep in top.writes} != written:
        yield Problem(f"the writes of {top.name} are not those of the nodes in it", _first(top.span))
    for leaf in leaves:
        missing = (
            {dep.name for dep in leaf.met_dependencies if isinstance(dep, MemoryDep)}
            - {dep.name for dep in top.reads}
            - written
        )
        if missing:
            yield Problem(
                f"{top.name} does not read {', '.join(sorted(missing))}, which {leaf.name} does",
                _first(top.span),
            )


def _facts(buffer: Buffer) -> tuple[str, ...]:
    return (
        buffer.name,
        repr(buffer.layout),
        repr(buffer.users),
        repr(buffer.aliases),
        repr(buffer.mutations),
    )


def _readers(nodes: NodeIndex, renamed: set[str]) -> Iterator[Problem]:
    buffers = nodes.buffers
    users: defaultdict[str, set[str]] = defaultdict(set)
    for buffer in buffers.values():
        users[buffer.name].update(user.node for user in buffer.users)
    readers: defaultdict[str, set[str]] = defaultdict(set)
    for leaf in nodes.leaves:
        for dep in leaf.reads:
            readers[dep.name].add(leaf.name)
            if isinstance(dep, WeakDep):
                continue
            if dep.name in buffers and leaf.name not in users[dep.name]:
                yield Problem(
                    f"{leaf.name} reads {dep.name}, which does not list it as a user", _first(leaf.span)
                )
    # The users of buffers that share memory are those of all of them.
    shared = renamed | {
        name for buffer in buffers.values() if buffer.aliases for name in (buffer.name, *buffer.aliases)
    }
    for buffer in buffers.values():
        if buffer.name in shared:
            continue
        for user in buffer.users:
            if (
                _OPERATION.match(user.node)
                and not user.is_weak
                and user.kind != "NopKernelSchedulerNode"
                and user.node not in readers[buffer.name]
            ):
                yield Problem(
                    f"{buffer.name} has the user {user.node}, which does not read it", _first(buffer.span)
                )


def _first(span: Span | None) -> Span | None:
    return Span(span.path, span.first, span.first) if span else None
