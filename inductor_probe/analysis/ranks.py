"""What the processes of one dump have in common: which graphs ranks share, and where ranks first differ.

Ranks of a group run the same program on different data. If one of them calls a collective that another does
not, or calls it in another place, all of them wait for ever: so the collectives are compared first, over the
whole run, then graph by graph what the wrappers call.

Remarks about a dump; the subject is the run that stands for it:

- `ranks-same`: ranks (names), graphs (how many each). `analysis`.
- `ranks-differ`: first, second (names of processes), what (`collective`, `graph`, `call`), place (from 1), of
  the graph if it is one's, and what each has there (a, b), left out where it has nothing. `hazard` for
  collectives, else `missed`.
- `process-ended`: process, and how it ended (`Manifest.ending`). `hazard`, `analysis` of one that its script
  ended when it had done its work.
- `idle-rank`: process: a rank that compiled nothing, while others did. `hazard`.
- `not-followed`: process, command, why (`NotFollowed`), graphs: it loaded torch without our hooks. `hazard`.
- `run-missing`: process, run: it compiled, and its run is not beside the others. `hazard`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from msgspec import Struct

from inductor_probe.analysis.diff.normal_forms import normal_source
from inductor_probe.analysis.graph import once_per_graph
from inductor_probe.analysis.operators import collective
from inductor_probe.discovery.dump_processes import process_name
from inductor_probe.model.debug_dir import CompiledGraph, DebugDir, GraphDir
from inductor_probe.model.manifest import DumpProcess, DumpRecord
from inductor_probe.model.remark import (
    Number,
    Remark,
    RemarkCode,
    RemarkKind,
    Subject,
    known_numbers,
)

_DEVICE = re.compile(r"\b(cuda|xpu|hpu)(:|, index=)\d+|\bindex=\d+|\bstream\d+\b")
"""Each rank has a device of its own."""
_GROUP = re.compile(r"'\d+'|'[0-9a-f]{32,}'")
"""Names of process groups, numbered or hashed: ranks may be in different groups of the same shape."""
_OFFSET = re.compile(r"(?<=\), )\d+(?=\))")
"""That of a view: what a bucket gathers lies in each rank's own part of the result."""
_MEMORY = re.compile(r"\b(?:buf|arg|primals_|tangents_|assert_)\d+(?:_\d+)?\b")


class WrapperCall(Struct, frozen=True):
    """What the wrapper of a graph calls somewhere: `name` as shown, `key` equal for what does the same."""

    name: str
    key: tuple[str, ...]
    is_collective: bool


class ProcessGraphs(Struct, frozen=True):
    """A process of a dump, what to call it, and its graphs in the order of compilation."""

    name: str
    process: DumpProcess
    graphs: tuple[CompiledGraph, ...]


@once_per_graph
def wrapper_calls(graph: CompiledGraph) -> tuple[WrapperCall, ...]:
    """Return what the wrapper calls, in order: generated kernels, library functions, collectives."""
    code = graph.code
    if code is None:
        return ()
    calls: list[tuple[int, WrapperCall]] = []
    sources: dict[str, tuple[str, ...]] = {}
    for launch in code.launches:
        kernel = code.kernel(launch.kernel)
        if kernel is not None and kernel.name not in sources:
            sources[kernel.name] = tuple(_DEVICE.sub("DEVICE", line) for line in normal_source(kernel))
        key = (*sources.get(launch.kernel, (launch.kernel,)), str(len(launch.args)))
        calls.append((launch.span.first, WrapperCall(launch.kernel, key, is_collective=False)))
    for extern in code.externs:
        communicates = collective(extern.target)
        arguments = [
            _OFFSET.sub("OFFSET", _GROUP.sub("GROUP", _DEVICE.sub("DEVICE", text))) for text in extern.args
        ]
        key = (extern.target, *(_MEMORY.sub("BUFFER", text) for text in arguments))
        name = communicates or extern.target
        call = WrapperCall(name.removesuffix("_"), key, is_collective=communicates is not None)
        calls.append((extern.span.first, call))
    calls.sort(key=lambda item: item[0])
    return tuple(call for _, call in calls)


def is_same(a: CompiledGraph, b: CompiledGraph) -> bool:
    """Return whether two ranks' graphs of one name call the same kernels in the same order."""
    keys_a, keys_b = ([call.key for call in wrapper_calls(graph)] for graph in (a, b))
    return a.code is not None and b.code is not None and keys_a == keys_b


def rank_groups(processes: Sequence[ProcessGraphs]) -> Iterator[list[ProcessGraphs]]:
    """Yield the ranks that ran beside each other, two or more, by rank.

    A script may start a group of ranks again and again, as tests do: the first process that was rank 1 ran
    beside the first that was rank 0.
    """
    groups: list[dict[int, ProcessGraphs]] = []
    for one in processes:
        rank = one.process.rank
        if rank is None:
            continue
        group = next((group for group in groups if rank not in group), None)
        if group is None:
            groups.append(group := {})
        group[rank] = one
    yield from ([group[rank] for rank in sorted(group)] for group in groups if len(group) > 1)


def dump_remarks(run: DebugDir, processes: Sequence[ProcessGraphs]) -> tuple[Remark, ...]:
    """Return the remarks about the processes of a dump; none for a dump of one process.

    Args:
        run: that which stands for the dump.
        processes: those whose runs are there.
    """
    record = run.manifest.dump if run.manifest else None
    if record is None or (len(record.processes) < 2 and not record.processes[0].not_followed):
        return ()
    return tuple(
        Remark(
            code,
            kind,
            Subject("run", run.name),
            known_numbers(numbers.items()),
            knowledge="recorded" if code in _RECORDED else "read",
        )
        for code, kind, numbers in (*_of_processes(record, processes), *_of_ranks(processes))
    )


_RECORDED = ("process-ended", "idle-rank", "run-missing", "not-followed")
_Conclusion = tuple[RemarkCode, RemarkKind, Mapping[str, Number | None]]


def _of_processes(record: DumpRecord, there: Sequence[ProcessGraphs]) -> Iterator[_Conclusion]:
    processes = record.processes
    names = {one.process: one.name for one in there}
    ranks_compiled = any(process.graphs for process in processes if process.rank is not None)
    for process in processes:
        name = names.get(process) or process_name(process)
        if process.outcome != "ok" and process is not processes[0]:
            ending = {
                "outcome": process.outcome, "exit_status": process.exit_status, "signal": process.ended_by
            }  # fmt: skip
            how: RemarkKind = "analysis" if record.dismissed(process) else "hazard"
            yield "process-ended", how, {"process": name, **ending}
        if process.rank is not None and not process.graphs and ranks_compiled:
            yield "idle-rank", "hazard", {"process": name}
        if process.not_followed:
            numbers: dict[str, Number | None] = {
                "command": " ".join(process.command), "why": process.not_followed, "graphs": process.graphs
            }  # fmt: skip
            yield "not-followed", "hazard", {"process": name, **numbers}
        if process.graphs and process not in names:
            yield "run-missing", "hazard", {"process": name, "run": process.run}


def _of_ranks(processes: Sequence[ProcessGraphs]) -> Iterator[_Conclusion]:
    for group in rank_groups(processes):
        first, *others = group
        same = [first.name]
        for other in others:
            difference = first_difference(first, other)
            if difference is None:
                same.append(other.name)
            else:
                kind: RemarkKind = "hazard" if difference["what"] == "collective" else "missed"
                yield "ranks-differ", kind, {"first": first.name, "second": other.name, **difference}
        whole = first.graphs and all(graph.code is not None for one in group for graph in one.graphs)
        if len(same) > 1 and whole:  # what a rank that failed would have called is not known
            yield "ranks-same", "analysis", {"ranks": tuple(same), "graphs": len(first.graphs)}


def first_difference(a: ProcessGraphs, b: ProcessGraphs) -> dict[str, Number | None] | None:
    """Return where two ranks first differ, as numbers of `ranks-differ`; None where they do not."""
    left, right = _collectives(a), _collectives(b)
    for place, (first, second) in enumerate(zip_longest(left, right), 1):
        if first is None or second is None or first[1].key != second[1].key:
            graph, _ = first or second or ("", None)
            return _difference("collective", place, graph, first and first[1], second and second[1])
    for place, (one, other) in enumerate(zip_longest(a.graphs, b.graphs), 1):
        if one is None or other is None or one.folder.name != other.folder.name:
            left_graph, right_graph = (graph.folder if graph else None for graph in (one, other))
            return _difference("graph", place, None, left_graph, right_graph)
        pairs = zip_longest(wrapper_calls(one), wrapper_calls(other))
        for number, (call, partner) in enumerate(pairs, 1):
            if call is None or partner is None or call.key != partner.key:
                return _difference("call", number, one.folder.name, call, partner)
    return None


def _collectives(one: ProcessGraphs) -> list[tuple[str, WrapperCall]]:
    return [
        (graph.folder.name, call)
        for graph in one.graphs
        for call in wrapper_calls(graph)
        if call.is_collective
    ]


def _difference(
    what: str,
    place: int,
    graph: str | None,
    a: WrapperCall | GraphDir | None,
    b: WrapperCall | GraphDir | None,
) -> dict[str, Number | None]:
    names = {"a": a.name if a else None, "b": b.name if b else None}
    return {"what": what, "place": place, "graph": graph, **names}
