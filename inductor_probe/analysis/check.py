"""Whether everything of a graph is there, read and linked, and every line of a run's logs understood."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from inductor_probe.analysis.completeness.files import check_files
from inductor_probe.analysis.completeness.ir import lacks_members
from inductor_probe.analysis.completeness.wrapper import inputs_left_out
from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.linking.steps import NodeStep
from inductor_probe.analysis.links import node_steps
from inductor_probe.analysis.run_remarks import added_code
from inductor_probe.model.autotuning import TuningsRead
from inductor_probe.model.check import FileCheck, GraphCheck, LogCheck
from inductor_probe.model.debug_dir import CompiledGraph, DebugDir
from inductor_probe.model.decision import DECISIONS_NAME
from inductor_probe.model.logs import CompilerLogs
from inductor_probe.model.remark import Remark, Subject
from inductor_probe.model.span import Problem, Span

_FX_FILES = ("fx_graph_readable.py", "fx_graph_transformed.py")
"""The reader is content with one of them."""


def check_graph(
    graph: CompiledGraph,
    texts: Mapping[str, str],
    unopened: Sequence[Path] = (),
    tunings: TuningsRead | None = None,
) -> GraphCheck:
    """Count what was read of `graph`, and list what is missing, damaged, unknown or unlinked.

    `texts` are those of its files by name, of others the lines are only counted; nothing reads `unopened`,
    but what was autotuned (`tunings`) and decided, which is in files of their own.
    """
    steps = node_steps(graph)
    checked = check_files(graph, texts)
    decisions, tuned = _check_decisions(graph), _check_tunings(tunings or TuningsRead(()))
    read_apart = {file.kind for file in (*decisions, *tuned)}
    # Without a wrapper nothing can be linked, and what is wrong with it is reported anyhow.
    searched = steps if graph.code and graph.code.entry else {}
    unlinked = tuple(name for name, step in searched.items() if step.proof is None)
    return GraphCheck(
        graph=graph.folder.path,
        nodes=len(index_of(graph).nodes.leaves),
        kernels=len(graph.code.kernels) if graph.code else 0,
        launches=len(graph.code.launches) if graph.code else 0,
        files=(*checked.files, *decisions, *tuned),
        unopened=tuple(path for path in unopened if path.name not in read_apart),
        unlinked=unlinked,
        remarks=tuple(_remarks(graph, steps)),
        problems=tuple(
            dict.fromkeys(
                [
                    *graph.problems,
                    *_unknown_fields(graph),
                    *_unfinished(graph),
                    *checked.problems,
                    *(graph.decisions.problems if graph.decisions else ()),
                    *(tunings.problems if tunings else ()),
                ]
            )
        ),
    )


def _check_decisions(graph: CompiledGraph) -> tuple[FileCheck, ...]:
    """Count the lines of the recorded decisions: a header, a line each, the end."""
    recorded = graph.decisions
    if recorded is None:
        return ()
    read = bool(recorded.torch) + len(recorded.decisions) + recorded.complete
    unread = len({problem.span.first for problem in recorded.problems if problem.span})
    return (FileCheck(DECISIONS_NAME, 1, read + unread, read=read, unread=unread),)


def _check_tunings(tunings: TuningsRead) -> tuple[FileCheck, ...]:
    """Count the lines of what was autotuned: one an operation, or one a choice."""
    if tunings.path is None:
        return ()
    unread = len({problem.span.first for problem in tunings.problems if problem.span})
    lines = tunings.lines
    return (FileCheck(tunings.path.name, 1, lines, read=lines - unread, unread=unread),)


def _remarks(graph: CompiledGraph, steps: Mapping[str, NodeStep]) -> Iterator[Remark]:
    """Yield what torch itself left out.

    - `members-left-out`: nodes (fused ones of which no member is printed).
    - `input-left-out`: names.
    - `kernels-without-ir`: kernels. Torch writes the IR files once for each subgraph, into the same place:
      the last one remains.
    """
    yield from added_code(graph)
    subject = Subject("graph", graph.name)
    without_members = [top for top in graph.post if lacks_members(top)]
    if without_members:
        numbers = (("nodes", len(without_members)),)
        evidence = tuple(top.span for top in without_members if top.span)
        yield Remark("members-left-out", "analysis", subject, numbers, evidence=evidence, knowledge="read")
    if graph.fx and graph.code and graph.code.entry and (names := inputs_left_out(graph.fx, graph.code)):
        yield Remark("input-left-out", "analysis", subject, (("names", names),), knowledge="read")
    if graph.code is None or not graph.code.functions or graph.folder.in_package:
        return
    run = {step.kernel for step in steps.values()}
    run.update(one.name for step in steps.values() if not step.kernel for one in step.candidates)
    launched = (launch.kernel for launch in graph.code.launches)
    without = [name for name in launched if name not in run and not graph.code.folds(name)]
    if without:
        yield Remark(
            "kernels-without-ir",
            "analysis",
            subject,
            (("kernels", len(set(without))),),
            evidence=tuple(launch.span for launch in graph.code.launches if launch.kernel in without),
            knowledge="read",
        )


def _unknown_fields(graph: CompiledGraph) -> Iterator[Problem]:
    """A field of the IR that this version of the reader has no attribute for: kept, but not understood."""
    for top in graph.nodes:
        for node in (top, *top.leaves()) if top.children else (top,):
            line = Span(node.span.path, node.span.first, node.span.first) if node.span else None
            for key, value in node.fields:
                yield Problem(f"unknown field {node.name}.{key} = {value[:60]}", line)


def _unfinished(graph: CompiledGraph) -> Iterator[Problem]:
    """A compile that was stopped leaves files that end early without a trace in them.

    One that failed has written what it had by then.
    """
    if graph.failures:
        return
    path = graph.folder.path
    files = {file.path.name for file in graph.files}
    if graph.record and not graph.record.finished:
        yield Problem(f"{path}: its compile did not finish")
    for name in _FX_FILES if not graph.folder.in_package else ():
        if name not in files:
            yield Problem(f"{path / name} does not exist")
    if graph.pre and not graph.post and "ir_post_fusion.txt" in files:
        span = Span(path / "ir_post_fusion.txt", 1, 1)
        yield Problem("no node after fusion, though there are some before it", span)
    if graph.code is None or graph.code.entry is None:
        return
    runs = any(leaf.body or leaf.kernel for leaf in index_of(graph).nodes.leaves)
    if runs and not graph.code.launches and not graph.code.externs:
        span = Span(path / "output_code.py", 1, 1)
        yield Problem("the wrapper launches nothing, though there are nodes to run", span)


def check_logs(run: DebugDir, logs: CompilerLogs) -> LogCheck | None:
    """Count the lines of `logs`, and list those that are not understood; None for a run without logs."""
    if not logs.files and not logs.problems:
        return None
    files = tuple(
        FileCheck("compiler logs", 1, file.lines, read=file.lines - file.unread, unread=file.unread)
        for file in logs.files
    )
    return LogCheck(run.path, files, logs.problems)
