"""What is expected of a graph held against its records: kernels, nodes, layouts, decisions of torch.

What was generated decides where the dump has it: the kernels and their loop nests, the fused nodes, the
layouts of buffers. Recorded decisions say why it is not as expected; of copies, which nothing else shows,
they decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.layouts import layouts
from inductor_probe.analysis.links import nodes_of
from inductor_probe.analysis.names import ANYTHING, KERNEL_FIRST, not_found, resolve
from inductor_probe.analysis.run_remarks import failed_compiles, never_finished, run_remarks
from inductor_probe.catalogue import kinds_with
from inductor_probe.errors import NotFoundError
from inductor_probe.model.cause import Cause
from inductor_probe.model.code import CppFacts, TritonFacts
from inductor_probe.model.debug_dir import CompiledGraph, DebugDir
from inductor_probe.model.decision import DecisionKind
from inductor_probe.model.expectation import Checked, Expectation, ExpectationKind, Standing
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.remark import Number, Remark

Why = Callable[[Sequence[str], DecisionKind], tuple[Cause, ...]]
"""Returns the decisions of a kind about names, or about all of a graph: `Graph.why`."""

_MOST_CAUSES = 3
_COPYING = ("aten.clone", "aten.copy_", "aten.copy", "aten.contiguous")
_NOT_VECTORISED = ("scalar", "underfilled")
_Numbers = tuple[tuple[str, Number], ...]


class _Answer(NamedTuple):
    """Whether an expectation holds (None: not known), the code of the answer, and what speaks against it."""

    holds: bool | None
    code: str
    numbers: _Numbers = ()
    causes: Sequence[Cause] = ()
    remarks: Sequence[Remark] = ()


class GraphExpectations:
    """A graph that expectations are held against.

    Args:
        graph: as read, with what lies before code generation.
        remarks: about it, as its summary has them.
        why: its decisions.
    """

    def __init__(self, graph: CompiledGraph, remarks: Sequence[Remark], why: Why) -> None:
        self._graph, self._remarks, self._why = graph, remarks, why
        self._checks: dict[ExpectationKind, Callable[[Expectation], _Answer]] = {
            "kernels": self._kernels,
            "vectorised": self._vectorised,
            "fused": self._fused,
            "layout": self._layout,
            "no-copy": self._no_copy,
            "no-extern": self._no_extern,
            "no-fallback": self._no_extern,
            "reduction-hint": self._of_kernels,
            "index-dtype": self._of_kernels,
            "bytes-at-most": self._bytes,
            "cause": self._cause,
            "no-remark": self._no_remark,
            "cudagraphed": self._cudagraphed,
        }

    def check(self, expectation: Expectation) -> Checked:
        """Say whether an expectation about a graph holds, and what torch decided otherwise.

        Raises:
            NotFoundError: the graph has no such subject; near names are offered.
        """
        holds, code, numbers, causes, remarks = self._checks[expectation.kind](expectation)
        standing: Standing = "unknown" if holds is None else "holds" if holds else "fails"
        causes, remarks = ((), ()) if holds else (causes[:_MOST_CAUSES], remarks[:_MOST_CAUSES])
        return Checked(expectation, self._graph.name, standing, code, numbers, tuple(causes), tuple(remarks))

    def _missed(self, names: Sequence[str], kind: DecisionKind) -> list[Cause]:
        return [cause for cause in self._why(names, kind) if cause.kind in ("missed", "hazard")]

    def _rows(self, subjects: Sequence[str] = ()) -> list[KernelRow]:
        """Return the kernels that run the subjects; all of them without one."""
        rows = kernel_rows(self._graph)
        if not subjects:
            return [*rows]
        subject = resolve(self._graph, subjects[0], KERNEL_FIRST)
        if subject.type == "kernel":
            return [row for row in rows if row.name == subject.name]
        nodes = self._nodes(subjects[0])
        return [row for row in rows if nodes & {*row.nodes}]

    def _nodes(self, name: str) -> frozenset[str]:
        """Return the unfused nodes that a name stands for."""
        if nodes := nodes_of(self._graph, resolve(self._graph, name, ANYTHING)):
            return frozenset(nodes)
        raise not_found(self._graph, name, ("node",))

    def _kernels(self, expectation: Expectation) -> _Answer:
        if self._graph.code is None:
            return _Answer(None, "no-code")
        names = tuple(row.name for row in self._rows() if row.backend != "extern" and row.launches)
        holds = len(names) == expectation.limit
        causes = self._missed((), "fusion") if len(names) > expectation.limit else []
        return _Answer(holds, "kernels", (("names", names),), causes=causes)

    def _vectorised(self, expectation: Expectation) -> _Answer:
        rows = [row for row in self._rows(expectation.subjects) if isinstance(row.details, CppFacts)]
        if not rows:
            return _Answer(None, "no-cpp-kernel")
        causes = self._why(expectation.subjects, "vectorisation")
        recorded = [cause for cause in causes if cause.outcome is not None]
        bad = [cause for cause in recorded if cause.outcome in _NOT_VECTORISED]
        scalar = tuple(
            row.name
            for row in rows
            if isinstance(row.details, CppFacts)
            and row.details.count("scalar") + row.details.count("underfilled")
        )
        of_node = bool(expectation.subjects) and bool(recorded)  # a kernel may have nests of other nodes, too
        holds = not bad if of_node else not scalar
        names = scalar or tuple(row.name for row in rows)
        return _Answer(
            holds,
            "vectorised" if holds else "scalar",
            (("names", names),),
            causes=bad or [cause for cause in causes if cause.kind == "missed"],
        )

    def _fused(self, expectation: Expectation) -> _Answer:
        groups = [self._nodes(name) for name in expectation.subjects]
        top = index_of(self._graph).post.top
        tops = tuple(
            dict.fromkeys(top[node].name for group in groups for node in sorted(group) if node in top)
        )
        gone = tuple(
            name
            for name, group in zip(expectation.subjects, groups, strict=True)
            if not any(node in top for node in group)
        )
        if gone:
            return _Answer(None, "not-generated", (("names", gone),))
        causes: list[Cause] = []
        for name, group in zip(expectation.subjects[1:], groups[1:], strict=True):
            if len(tops) > 1 and group != groups[0]:
                causes += self._missed((expectation.subjects[0], name), "fusion")
        return _Answer(len(tops) == 1, "nodes", (("names", tops),), causes=causes)

    def _layout(self, expectation: Expectation) -> _Answer:
        name = resolve(self._graph, expectation.subjects[0], ("buffer",)).name
        rows = layouts(self._graph, name)
        memory_format = rows[0].memory_format if rows else "unknown"
        if memory_format in ("unknown", "none"):
            return _Answer(None, "no-layout", (("buffer", name),))
        strides = tuple(map(str, (rows[0].layout.stride or ()) if rows[0].layout else ()))
        numbers: _Numbers = (("buffer", name), ("format", memory_format), ("strides", strides))
        holds = memory_format == expectation.value
        causes = () if holds else self._why((name,), "layout")
        return _Answer(holds, "layout", numbers, causes=causes)

    def _no_copy(self, expectation: Expectation) -> _Answer:
        copied = [cause for cause in self._why((), "copy") if cause.outcome == "copied"]
        kernels = tuple(row.name for row in self._rows() if row.ops and {*row.ops} <= {*_COPYING})
        about = tuple(dict.fromkeys("+".join(subject.name for subject in one.subjects) for one in copied))
        if copied or kernels:
            return _Answer(False, "copies", (("names", about or kernels),), causes=copied)
        recorded = self._graph.decisions is not None and "copy" in self._graph.decisions.recorders
        return _Answer(True if recorded else None, "no-copies" if recorded else "not-recorded")

    def _no_extern(self, expectation: Expectation) -> _Answer:
        rows = [row for row in self._rows() if row.backend == "extern"]
        if expectation.kind == "no-fallback":
            rows = [row for row in rows if row.kind == "fallback"]
        names, nodes = tuple(row.name for row in rows), {node for row in rows for node in row.nodes}
        causes = [cause for cause in self._why((), "fallback") if cause.outcome in ("extern", None)]
        causes = [one for one in causes if nodes & {subject.name for subject in one.subjects}] or causes
        remarks = [remark for row in rows for remark in row.remarks]
        code = "extern" if names else "no-extern"
        return _Answer(not names, code, (("names", names),) if names else (), causes=causes, remarks=remarks)

    def _of_kernels(self, expectation: Expectation) -> _Answer:
        """Compare what the text of kernels says: the reduction hint, or the width of indices."""
        is_hint = expectation.kind == "reduction-hint"
        values = {}
        for row in self._rows(expectation.subjects):
            if isinstance(row.details, TritonFacts):
                value = row.details.reduction_hint if is_hint else row.details.index_width
                if value is not None:
                    values[row.name] = value
        if not values:
            return _Answer(None, "no-triton-kernel")
        others = {name: value for name, value in values.items() if value != expectation.value}
        named = others or values
        numbers: _Numbers = (("names", (*named,)), ("found", tuple(dict.fromkeys(named.values()))))
        kind: DecisionKind = "reduction" if is_hint else "index-width"
        causes = self._why(expectation.subjects, kind) if others else ()
        return _Answer(not others, "of-kernels", numbers, causes=causes)

    def _bytes(self, expectation: Expectation) -> _Answer:
        total = 0
        for row in self._rows():
            if row.moved is None:
                return _Answer(None, "no-bytes", (("kernel", row.name),))
            total += row.moved
        numbers: _Numbers = (("bytes", total), ("limit", expectation.limit))
        return _Answer(total <= expectation.limit, "bytes", numbers)

    def _cause(self, expectation: Expectation) -> _Answer:
        code = expectation.value or ""
        kinds = kinds_with(code)
        causes = [cause for kind in kinds for cause in self._why(expectation.subjects, kind)]
        mine = [cause for cause in causes if cause.decision and cause.decision.cause == code]
        recorders = self._graph.decisions.recorders if self._graph.decisions else ()
        if not mine and not {*kinds} <= {*recorders}:
            return _Answer(None, "no-recorder", (("kinds", kinds),))
        about = tuple(dict.fromkeys("+".join(subject.name for subject in one.subjects) for one in mine))
        return _Answer(
            bool(mine), "decided" if mine else "other-causes", (("names", about),),
            causes=[cause for cause in causes if cause.kind == "missed"],
        )  # fmt: skip

    def _cudagraphed(self, expectation: Expectation) -> _Answer:
        """Compare what is captured: of the graph all of it, of a node or kernel those of its nodes."""
        (cause,) = self._why((), "cudagraphs")[:1] or (None,)
        if cause is None or cause.decision is None:
            return _Answer(None, "no-cudagraphs")
        outcome = cause.decision.outcome
        if outcome != "partitioned":
            return _Answer(outcome == "captured", f"cudagraphs-{outcome}", causes=[cause])
        names = [self._nodes(name) for name in expectation.subjects]
        cut = tuple(node for node in cause.nodes if not names or node in names[0])
        numbers: _Numbers = (("names", cut), ("partitions", cause.decision.operand("partitions") or 0))
        if names and not cut:
            return _Answer(True, "cudagraphs-captured")
        return _Answer(False, "cudagraphs-partitioned", numbers, causes=[cause])

    def _no_remark(self, expectation: Expectation) -> _Answer:
        remarks = [remark for remark in self._remarks if remark.code == expectation.value]
        code = "remarks" if remarks else "no-remarks"
        return _Answer(not remarks, code, (("number", len(remarks)),), remarks=remarks)


NO_FAILED_COMPILE = Expectation("no-failed-compile")


def check_compiles(runs: Sequence[DebugDir], graphs: Sequence[str] = ()) -> Checked:
    """Say whether no compile failed in the runs of a dump; with `graphs` only theirs count.

    One that did not finish has failed, too: its process died meanwhile.
    """
    failed = tuple(remark for run in runs for remark in (*failed_compiles(run), *never_finished(run)))
    if graphs:
        failed = tuple(remark for remark in failed if remark.subject.name in graphs)
    recorded = all(run.manifest is not None and run.manifest.failures is not None for run in runs)
    standing: Standing = "fails" if failed else "holds" if recorded else "unknown"
    code = "failures" if failed or recorded else "no-failures"
    return Checked(NO_FAILED_COMPILE, None, standing, code, (("number", len(failed)),), remarks=failed)


def check_run(run: DebugDir, expectation: Expectation) -> Checked:
    """Say whether an expectation about a run holds: no graph break, no recompile."""
    manifest = run.manifest
    if manifest is None:
        return Checked(expectation, None, "unknown", "no-manifest")
    remarks = run_remarks(run, compiled=True)
    if expectation.kind == "no-graph-break":
        breaks = tuple(remark for remark in remarks if remark.code == "graph-break")
        return Checked(
            expectation, None, "fails" if breaks else "holds", "breaks",
            (("number", len(manifest.graph_breaks)),), remarks=breaks,
        )  # fmt: skip
    limits = tuple(remark for remark in remarks if remark.code == "recompile-limit")
    again = tuple(graph.name for graph in manifest.graphs if graph.why == "recompile")
    guards = tuple(
        guard for graph in manifest.graphs if graph.why == "recompile" for guard in graph.guards[:1]
    )
    numbers: _Numbers = (("number", len(again)), ("guards", guards))
    return Checked(
        expectation, None, "fails" if again or limits else "holds", "recompiles", numbers, remarks=limits
    )


def check_graphs(graphs: Sequence[GraphExpectations], expectation: Expectation) -> tuple[Checked, ...]:
    """Hold an expectation against each graph that has its subjects; a cause of any is in one of them.

    Raises:
        NotFoundError: none of the graphs has them; near names are offered.
    """
    checked, missing = [], []
    for graph in graphs:
        try:
            checked.append(graph.check(expectation))
        except NotFoundError as error:
            missing.append(error)
    if not checked and missing:
        raise missing[0]
    if expectation.kind == "cause":
        checked = [one for one in checked if one.standing == "holds"] or checked
    return tuple(checked)
