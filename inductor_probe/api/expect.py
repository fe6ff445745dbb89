"""What is expected of graphs, and whether it is so: for tests that what was fixed stays fixed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain

from msgspec import Struct

from inductor_probe.api.on_disk import GraphOnDisk, RunOnDisk, causes_of
from inductor_probe.errors import ExitCode, ProbeError
from inductor_probe.model.cause import Cause
from inductor_probe.model.decision import DecisionKind
from inductor_probe.model.expectation import (
    EXPECTATION_KINDS,
    OF_RUNS,
    Checked,
    Expectation,
    ExpectOutput,
    standing_of,
)
from inductor_probe.model.output import Output
from inductor_probe.model.span import Problem
from inductor_probe.report.document import Document
from inductor_probe.report.pages.expect import expect_page
from inductor_probe.report.shown import Shown


class Expectations(Shown, Struct, frozen=True):
    """What came of all expectations, in a run or a graph."""

    run: RunOnDisk
    graphs: tuple[GraphOnDisk, ...]
    outcomes: tuple[Checked, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all of them hold; one that is not known does not."""
        return standing_of(self.outcomes) == "holds"

    def __bool__(self) -> bool:
        return self.ok

    @property
    def failed(self) -> tuple[Checked, ...]:
        """Those that do not hold, or are not known."""
        return tuple(one for one in self.outcomes if one.standing != "holds")

    @property
    def status(self) -> ExitCode:
        """The exit status of `probe expect`."""
        codes = {"holds": ExitCode.OK, "fails": ExitCode.MISMATCH, "unknown": ExitCode.FAILED}
        return codes[standing_of(self.outcomes)]

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return ExpectOutput(
            path=self.run.path,
            ok=self.ok,
            graphs=tuple(graph.name for graph in self.graphs),
            outcomes=self.outcomes,
            problems=self.problems,
        )

    @property
    def document(self) -> Document:
        """A line for each, and below one that fails what torch decided otherwise."""
        return expect_page(self.outcomes)


def expect(
    run: RunOnDisk,
    graphs: Sequence[GraphOnDisk],
    expected: Sequence[Expectation],
) -> Expectations:
    """Hold expectations against graphs of a run; those about the run against what its manifest says.

    A compile that failed fails them, whatever is expected; of one graph among several only its own counts.

    Raises:
        NotFoundError: no graph has a subject of that name, or the run is empty.
        ProbeError: nothing is expected.
    """
    from inductor_probe.analysis.expect import (
        NO_FAILED_COMPILE,
        GraphExpectations,
        check_compiles,
        check_graphs,
        check_run,
    )
    from inductor_probe.analysis.summary import summarise

    if not expected:
        names = ", ".join(kind.replace("-", "_") for kind in EXPECTATION_KINDS)
        raise ProbeError("nothing is expected", f"expect one of {names}: kernels=1, vectorised=True")
    one_graph = len(graphs) == 1 and len(run.dump_graphs) > 1
    named = [graph.folder.name for graph in graphs] if one_graph else []
    compiles = check_compiles([one.debug_dir for one in (run, *run.others)], named)
    if not graphs and compiles.standing != "fails":
        raise run.empty()
    of_graphs = [
        GraphExpectations(
            graph.compiled, summarise(run.debug_dir, [graph.compiled]).graphs[0].remarks, partial(_why, graph)
        )
        for graph in graphs
    ]
    of_run = [one for one in expected if one.kind in OF_RUNS and one != NO_FAILED_COMPILE]
    outcomes = [compiles] if compiles.standing == "fails" or NO_FAILED_COMPILE in expected else []
    outcomes += [check_run(run.debug_dir, one) for one in of_run]
    for one in expected if graphs else ():
        if one.kind not in OF_RUNS:
            outcomes += check_graphs(of_graphs, one)
    problems = (*run.debug_dir.problems, *chain.from_iterable(graph.compiled.problems for graph in graphs))
    return Expectations(run, tuple(graphs), tuple(outcomes), problems)


def _why(graph: GraphOnDisk, names: Sequence[str], kind: DecisionKind) -> tuple[Cause, ...]:
    """Return the decisions of a kind about names of a graph, about all of it without a name."""
    return causes_of(graph, names, (kind,)).causes
