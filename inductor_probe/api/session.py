"""Runs and graphs with the verbs as methods: what was read of them is held, so that it is read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from inductor_probe.api.on_disk import GraphOnDisk, RunOnDisk
from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.model.debug_dir import DebugDir, GraphDir
from inductor_probe.model.output import Output
from inductor_probe.model.runs import DumpOutput
from inductor_probe.report.document import Document, Picture
from inductor_probe.report.shown import Shown

if TYPE_CHECKING:
    from inductor_probe.analysis.fusion.log import Matched
    from inductor_probe.api.bench import Bench, ConfigSweeps, RewriteRows, WrittenBenchFile
    from inductor_probe.api.diff import Diff
    from inductor_probe.api.drawing import Drawing
    from inductor_probe.api.programs import CppProgram
    from inductor_probe.api.rows import FusionRow, FusionRows, KernelRows, LayoutRows, NodeRows
    from inductor_probe.api.show import Page, Pages
    from inductor_probe.api.tunings import Tunings
    from inductor_probe.model.bench import BenchFile, BenchSettings
    from inductor_probe.model.span import Problem

Answer = TypeVar("Answer")


class Session(Shown):
    """The verbs that read graphs: a `Run` answers for each of its graphs, a `Graph` for itself.

    A name that only some of the graphs have is answered for those. All of them raise NotFoundError where no
    graph has the name, or where the run is empty.
    """

    def _asked(self) -> tuple[RunOnDisk, tuple[GraphOnDisk, ...]]:
        """Return the run, and the graphs of it that are asked."""
        raise NotImplementedError

    def layouts(self, name: str | None = None) -> LayoutRows:
        """Return how the buffer, input or node `name` lies in memory; every buffer without a name."""
        from inductor_probe.analysis.layouts import layouts
        from inductor_probe.api.rows import LayoutRows

        rows, problems = self._each(lambda graph: layouts(graph.generated, name))
        return LayoutRows.of_name(rows, problems) if name is not None else LayoutRows(rows, problems)

    def kernels(self) -> KernelRows:
        """Return the generated kernels and library functions, in the order of their first use."""
        from inductor_probe.analysis.kernels import kernel_rows
        from inductor_probe.api.rows import KernelRows

        return KernelRows(*self._each(lambda graph: kernel_rows(graph.generated)))

    def nodes(self, *, pre: bool = False) -> NodeRows:
        """Return the scheduler's nodes, unfused, in order; with `pre` those before fusion."""
        from inductor_probe.analysis.nodes import node_rows
        from inductor_probe.api.rows import NodeRows

        return NodeRows(
            *self._each(lambda graph: node_rows(graph.compiled if pre else graph.generated, pre), earlier=pre)
        )

    def fusion(self, first: str | None = None, second: str | None = None) -> FusionRows:
        """Return what was fused when, and what was refused why: all of it, of a node, or of a pair.

        Args:
            first, second: a node, a fused node or a buffer.

        Raises:
            ProbeError: both names mean one node.
        """
        from inductor_probe.analysis.fusion.overview import fusion_of_graph, fusion_of_node
        from inductor_probe.analysis.fusion.pair import fusion_of_pair
        from inductor_probe.api.rows import FusionRows

        def answer(graph: GraphOnDisk) -> Iterable[FusionRow]:
            matched = _matched(graph)
            if first is None:
                yield fusion_of_graph(graph.compiled, matched)
            elif second is None:
                yield fusion_of_node(graph.compiled, matched, first)
            else:
                yield fusion_of_pair(graph.compiled, matched, first, second)

        rows, problems = self._each(answer, earlier=True)
        return FusionRows(rows, (*problems, *self._asked()[0].logs.problems))

    def pages(self, name: str | None = None, *, raw: bool = False, code: bool = False) -> Pages:
        """Return the page about `name` in each graph that has it, about each graph without a name.

        Args:
            name: `op3`, `op3_op4`, `buf3`, `arg0_1`, the start of a kernel's name, `add_1`, `file.py:12`.
            raw: loop bodies as dumped instead of formulas.
            code: with a kernel: its text.

        Raises:
            ProbeError: several kernels start so.
        """
        from inductor_probe.api.show import page, pages_of

        run, _ = self._asked()
        return pages_of(run, *self._each(lambda graph: (page(graph, name, raw=raw, code=code),)))

    def _each(
        self, ask: Callable[[GraphOnDisk], Iterable[Answer]], *, earlier: bool = False
    ) -> tuple[list[Answer], list[Problem]]:
        """Return what `ask` answers for each graph that has what it asks for, and what could not be read.

        Args:
            ask: raises NotFoundError where a graph does not have it.
            earlier: it reads also what lies before code generation.
        """
        run, graphs = self._asked()
        if not graphs:
            raise run.empty()
        answers: list[Answer] = []
        missing: list[NotFoundError] = []
        for graph in graphs:
            try:
                answers.extend(ask(graph))
            except NotFoundError as error:
                missing.append(error)
        if len(missing) == len(graphs):
            if len(graphs) == 1:
                raise missing[0]
            message = f"none of the {len(graphs)} graphs of {run.path} has it: {missing[0].message}"
            raise NotFoundError(message, missing[0].hint)
        read = (graph.compiled if earlier else graph.generated for graph in graphs)
        return answers, [*run.debug_dir.problems, *(problem for graph in read for problem in graph.problems)]


def _matched(graph: GraphOnDisk) -> Matched:
    """Return the part of the run's fusion log that is about a graph."""
    from inductor_probe.analysis.fusion.log import match_log

    graphs = graph.run.graphs
    place = next(number for number, other in enumerate(graphs) if other.path == graph.path)
    everyone = lambda: [other.compiled for other in graphs]  # noqa: E731 - read only if the log needs it
    return match_log(graph.compiled, place, graph.run.logs, everyone, len(graphs))


class Graph(GraphOnDisk, Session):
    """A compiled graph of a run. It is read when something of it is first asked for."""

    run: Run

    def __init__(self, folder: GraphDir, run: Run) -> None:
        super().__init__(folder, run)

    def _asked(self) -> tuple[RunOnDisk, tuple[GraphOnDisk, ...]]:
        return self.run, (self,)

    def show(self, name: str | None = None, *, raw: bool = False, code: bool = False) -> Page:
        """Return the page about a node, buffer, kernel, FX node or source line; the graph's without a name.

        Args:
            name, raw, code: see `pages`.
        """
        return self.pages(name, raw=raw, code=code)[0]

    def annotate(self, kernel: str, *, line_directives: bool = True) -> str:
        """Return the C++ or Triton text of a kernel, each line with its node, buffer and line of the user's.

        Args:
            kernel: its name.
            line_directives: write `#line` before C++ lines of which one line of the user's is proved.

        Raises:
            NotFoundError: the graph has no such kernel.
        """
        from inductor_probe.analysis.annotation.annotate import annotate

        return annotate(self.generated, kernel, line_directives=line_directives)

    def draw(self, around: str | None = None) -> Drawing:
        """Return the graph as a drawing for a notebook: nodes, buffers, kernels, and who reads what.

        Args:
            around: a node, buffer, kernel or the start of its name: only what has to do with it, and who is
                next to that.

        Raises:
            NotFoundError: the graph has nothing of that name.
        """
        from inductor_probe.api.drawing import Drawing

        return Drawing(self, around)

    def diff(self, other: Graph | Run) -> Diff:
        """Compare with another graph, or with its partner in a run: this one is A, the other is B."""
        from inductor_probe.api.diff import Diff

        return Diff(self, other)

    def tunings(self) -> Tunings:
        """Return what was autotuned in the graph; empty where it was not recorded."""
        from inductor_probe.api.tunings import tunings_of

        return tunings_of(self)

    def rewrites(self) -> RewriteRows:
        """Return the rewrites that make variants, each with the kernels and buffers that it applies to."""
        from inductor_probe.api.bench import rewrites_of

        return rewrites_of(self)

    def write_bench_file(
        self, *, variants: Sequence[tuple[str, str | None]] = (), rewrites: Sequence[str] = ()
    ) -> WrittenBenchFile:
        """Write `output_code_bench.py` beside `output_code.py`, with the variants that you made in it.

        Args:
            variants: variants to add by name (`cpp_fused_flip_0_v3`), each with its text, or None for a copy.
            rewrites: named rewrites to make variants by: `loops:cpp_fused_flip_0 x1,x2`.

        Raises:
            ProbeError: nothing to write it from, or the folder cannot be written; the graph is in an archive;
                a variant cannot be made.
        """
        from inductor_probe.api.bench import write_bench_file

        return write_bench_file(self, variants, rewrites)

    def bench_kernel(
        self,
        settings: BenchSettings | None = None,
        *,
        trust: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> Bench:
        """Write the bench file and run it: this executes the generated code, in child processes.

        Args:
            settings: which kernel, for how long, in how many processes, with which inputs.
            trust: run it even if nothing shows that the dump was made on this machine.
            progress: is told what comes next, before each process.

        Raises:
            NotFoundError: the graph has no such kernel.
            ProbeError: the file may not run (then nothing was written), cannot be written, or does not run.
        """
        from inductor_probe.api.trust import require_trust

        imports = settings.imports if settings else ()
        require_trust(self, trust=trust, imports=imports, rewriting=True)
        return self.run_bench_file(self.write_bench_file(), settings, trust=trust, progress=progress)

    def run_bench_file(
        self,
        file: BenchFile,
        settings: BenchSettings | None = None,
        *,
        trust: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> Bench:
        """Run the graph's bench file as it stands; see `bench_kernel`."""
        from inductor_probe.api.bench import run_bench_file

        return run_bench_file(self, file, settings, trust=trust, progress=progress)

    def sweep_configs(
        self, settings: BenchSettings | None = None, text: str = "", *, trust: bool = False
    ) -> ConfigSweeps:
        """Write the bench file, and time every autotuning config of the Triton kernels in one process.

        Args:
            settings: `kernel`, `budget` (for each kernel), `cold`, `inputs`, `sizes` and `threads` count.
            text: more configs: `XBLOCK=1,8 num_warps=4` for each combination.
            trust: see `bench_kernel`.

        Raises:
            NotFoundError: no such kernel, or the graph has no Triton kernels.
            ProbeError: see `bench_kernel`.
        """
        from inductor_probe.api.bench import sweep_configs

        return sweep_configs(self, settings, text, trust=trust)

    def export_cpp(
        self,
        kernel: str,
        file: str | None = None,
        *,
        sizes: Mapping[str, int] | None = None,
        cxxflags: Sequence[str] = (),
        annotated: bool = False,
    ) -> CppProgram:
        """Return a C++ kernel as a program of its own, for perf, gdb and Compiler Explorer.

        The command that compiles it comes with it, and stands at its top. Nothing of the dump is run.

        Args:
            kernel: its name, or the start of it.
            file: name of the file it will be in; that of the kernel if None.
            sizes: symbolic sizes to bind otherwise than they were recorded.
            cxxflags: compiler flags behind inductor's own.
            annotated: each line of the kernel with where it comes from.

        Raises:
            NotFoundError: no such kernel. ProbeError: it is not a C++ kernel, or a size is unknown.
        """
        from inductor_probe.api.programs import cpp_program

        return cpp_program(self, kernel, file, sizes=sizes, cxxflags=cxxflags, annotated=annotated)

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return self.pages().output

    @property
    def document(self) -> Document:
        """The graph in a line, its remarks, and where pictures are shown a drawing of it."""
        from inductor_probe.analysis.summary import summarise
        from inductor_probe.report.pages.runs import summary_page

        yield from summary_page(summarise(self.run.debug_dir, [self.compiled]))
        yield Picture(lambda: self.draw().html)


class Run(RunOnDisk, Session):
    """A `run_*` directory: its graphs in the order they were compiled."""

    graphs: tuple[Graph, ...]

    def __init__(self, debug_dir: DebugDir, not_remembered: str | None = None) -> None:
        super().__init__(debug_dir)
        self.not_remembered = not_remembered
        """Why it could not be written down that the run was made here, after a dump."""
        self.graphs = tuple(Graph(folder, self) for folder in debug_dir.graphs)

    def _asked(self) -> tuple[RunOnDisk, tuple[GraphOnDisk, ...]]:
        return self, self.graphs

    def graph(self, name: str) -> Graph:
        """Return the graph called `name`.

        Raises:
            NotFoundError: there is none; near names are offered.
        """
        for graph in self.graphs:
            if graph.name == name:
                return graph
        raise NotFoundError(
            f"{self.path} has no graph {name}", near_names(name, [graph.name for graph in self.graphs])
        )

    def graph_at(self, path: Path) -> Graph:
        """Return the graph in the folder `path`."""
        return next(graph for graph in self.graphs if graph.path == path)

    def show(self, name: str | None = None, *, raw: bool = False, code: bool = False) -> Pages:
        """Return the page about `name` in each graph that has it: see `pages`."""
        return self.pages(name, raw=raw, code=code)

    def diff(self, other: Graph | Run) -> Diff:
        """Compare with another run, graph by graph: this one is A, the other is B."""
        from inductor_probe.api.diff import Diff

        return Diff(self, other)

    @property
    def output(self) -> Output:
        """What `probe dump --json` prints of the run, as a record."""
        manifest = self.manifest
        return DumpOutput(
            path=self.path,
            label=manifest.label if manifest else None,
            outcome=manifest.outcome if manifest else None,
            exit_status=manifest.exit_status if manifest else None,
            summary=self.summary,
        )

    @property
    def document(self) -> Document:
        """The graphs in a table, and remarks."""
        from inductor_probe.report.pages.runs import summary_page

        return summary_page(self.summary)
