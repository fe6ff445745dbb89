"""What a name means in a graph."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from inductor_probe.errors import NotFoundError, ProbeError, near_names
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.span import SourceLine

SubjectKind: TypeAlias = Literal["node", "buffer", "kernel", "fx", "line"]

_NODE = re.compile(r"op(?P<number>\d{1,18})")
_LINE = re.compile(r"(?P<path>.*):(?P<line>\d{1,18})")


@dataclass(frozen=True, slots=True)
class Subject:
    """What is asked for. `name` is complete, also where the start of it was given."""

    kind: SubjectKind
    name: str


def subject(graph: CompiledGraph, name: str) -> Subject:
    """Return what `name` means: a node, a buffer or input, a kernel, an FX node, or a line of the user's.

    In this order, for some names mean several things: torch before 2.5 calls nodes after their buffers. The
    start of a kernel's name will do where no other starts so.

    Raises:
        NotFoundError: nothing is called that; near names are offered.
        ProbeError: several kernels start so.
    """
    known = _known(graph)
    if name in known:
        return Subject(known[name], name)
    if lines := lines_at(graph, name):
        return Subject("line", str(lines[0]) if len(lines) == 1 else name)
    kernels = [other for other, kind in known.items() if kind == "kernel" and name and other.startswith(name)]
    if len(kernels) == 1:
        return Subject("kernel", kernels[0])
    if kernels:
        raise ProbeError(
            f"{len(kernels)} kernels of {graph.name} start with {name}", near_names(name, kernels)
        )
    if (match := _NODE.fullmatch(name)) and f"buf{match['number']}" in known:
        hint = f"torch before 2.5 calls nodes after their buffers: buf{match['number']}"
        raise NotFoundError(f"{graph.name} has no node {name}", hint)
    what = "line of yours" if _LINE.fullmatch(name) else "node, buffer, kernel or FX node"
    raise NotFoundError(f"{graph.name} has no {what} {name}", near_names(name, _offered(graph, known, name)))


def lines_at(graph: CompiledGraph, place: str) -> tuple[SourceLine, ...]:
    """Return the lines that `file.py:12` may mean: those of any folder."""
    match = _LINE.fullmatch(place)
    if match is None:
        return ()
    path, number = match["path"], int(match["line"])
    return tuple(
        line
        for line in source_lines(graph)
        if line.line == number and (not path or line.path == path or line.path.endswith(f"/{path}"))
    )


def source_lines(graph: CompiledGraph) -> tuple[SourceLine, ...]:
    """Return the user's lines that FX nodes name, each once, in the order of the graph."""
    graphs = [found for found in (graph.fx, graph.fx_before) if found is not None]
    sources = (node.source for found in graphs for node in found.nodes)
    by_place = {(source.path, source.line): source for source in sources if source is not None}
    return tuple(by_place.values())


def _known(graph: CompiledGraph) -> dict[str, SubjectKind]:
    """Return everything that has a name, with what it is; what comes first in `subject` is put in last."""
    known: dict[str, SubjectKind] = {}
    for found in (graph.fx_before, graph.fx):
        if found is not None:
            known.update(dict.fromkeys((node.name for node in found.nodes), "fx"))
    if graph.code is not None:
        known.update(dict.fromkeys((kernel.name for kernel in graph.code.kernels), "kernel"))
        known.update(dict.fromkeys((call.target for call in graph.code.externs), "kernel"))
        known.update(
            (found.name, "buffer") for found in graph.code.allocations if found.how in ("input", "constant")
        )
    tops = (*graph.pre, *graph.nodes)
    leaves = [leaf for top in tops for leaf in top.leaves()]
    known.update(dict.fromkeys((name for leaf in leaves for name, _, _ in leaf.layouts), "buffer"))
    known.update(dict.fromkeys((buffer.name for leaf in leaves for buffer in leaf.outputs), "buffer"))
    for top in tops:
        known.update(dict.fromkeys((node.name for node in (top, *top.children)), "node"))
    known.update(dict.fromkeys((leaf.name for leaf in leaves), "node"))
    return known


def _offered(graph: CompiledGraph, known: dict[str, SubjectKind], name: str) -> list[str]:
    """Return names to choose the near ones from: of what was asked for, as far as it can be told."""
    if _LINE.fullmatch(name):
        lines = source_lines(graph)
        return [f"{line.path.rpartition('/')[2]}:{line.line}" for line in lines]
    return list(known)
