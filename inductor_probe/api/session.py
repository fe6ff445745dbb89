"""Runs and graphs with the verbs as methods: what was read of them is held, so that it is read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import astuple, replace

from inductor_probe.api.on_disk import GraphOnDisk, RunOnDisk, causes_of
from inductor_probe.discovery.dump_processes import name_of_process
from inductor_probe.errors import NotFoundError, ProbeError, near_names
from inductor_probe.files import read_text
from inductor_probe.model.debug_dir import DebugDir, GraphDir
from inductor_probe.model.output import Output
from inductor_probe.model.runs import DumpOutput
from inductor_probe.report.document import Document, Picture
from inductor_probe.report.shown import Shown

if TYPE_CHECKING:
    from inductor_probe.api.bench import Bench, CppProgram, WrittenBenchFile
    from inductor_probe.api.diff import Diff
    from inductor_probe.api.expect import Expectations
    from inductor_probe.api.kernel_check import CheckedKernels
    from inductor_probe.api.profile import Profiles
    from inductor_probe.api.rows import (
        Causes,
        ConfigSweeps,
        FusionRow,
        FusionRows,
        KernelRows,
        LayoutRows,
        NodeRows,
        RewriteRows,
        Tunings,
    )
    from inductor_probe.api.show import Drawing, Page, Pages
    from inductor_probe.api.trials import Trials
    from inductor_probe.api.whatif import WhatIf
    from inductor_probe.model.bench import BenchFile, BenchSettings
    from inductor_probe.model.cause import GraphCauses
    from inductor_probe.model.kernels import KernelRow
    from inductor_probe.model.layouts import LayoutRow
    from inductor_probe.model.span import Problem
    from inductor_probe.model.whatif import Candidate

Row = TypeVar("Row")


class Session(Shown):
    """The verbs that read graphs: a `Run` answers for each of its graphs, a `Graph` for itself.

    A name that only some graphs have is answered for those. NotFoundError: none has it, or the run is empty.
    """

    def _scope(self) -> tuple[RunOnDisk, tuple[GraphOnDisk, ...]]:
        """Return the run, and the graphs of it that the verbs read."""
        raise NotImplementedError

    def layouts(self, name: str | None = None) -> LayoutRows:
        """Return how the buffer, input or node `name` lies in memory; every buffer without a name."""
        from inductor_probe.analysis.causes.causes import with_causes
        from inductor_probe.analysis.layouts import layouts
        from inductor_probe.api.rows import LayoutRows

        def rows_of(graph: GraphOnDisk) -> Iterable[LayoutRow]:
            rows = layouts(graph.generated, name)
            return rows if name is None else with_causes(graph.generated, rows)

        rows = LayoutRows(*self._each(rows_of))
        rows.named = name is not None
        return rows if rows.named else rows.beside(self._scope()[1])

    def kernels(self) -> KernelRows:
        """Return the generated kernels and library functions, in the order of their first use."""
        from inductor_probe.analysis.kernels import kernel_rows
        from inductor_probe.api.rows import KernelRows

        rows = KernelRows(*self._each(lambda graph: kernel_rows(graph.generated)))
        return rows.beside(self._scope()[1])

    def nodes(self, *, pre: bool = False) -> NodeRows:
        """Return the scheduler's nodes, unfused, in order; with `pre` those before fusion."""
        from inductor_probe.analysis.nodes import node_rows
        from inductor_probe.api.rows import NodeRows

        read = "compiled" if pre else "generated"
        rows = self._each(lambda graph: node_rows(getattr(graph, read), pre), earlier=pre)
        return NodeRows(*rows).beside(self._scope()[1])

    def fusion(self, first: str | None = None, second: str | None = None) -> FusionRows:
        """Return what was fused when, and what was refused why: all of it, of a node, or of a pair.

        A name is that of a node, a fused node or a buffer. ProbeError: both names mean one node.
        """
        from inductor_probe.analysis.fusion.overview import fusion_of_graph, fusion_of_node, fusion_of_pair
        from inductor_probe.api.rows import FusionRows

        def rows_of(graph: GraphOnDisk) -> Iterable[FusionRow]:
            compiled, log, decisions = graph.compiled, graph.matched_log, graph.fusion_decisions
            names = [name for name in (first, second) if name is not None]
            why = partial(causes_of, graph, names, ("fusion",))
            if first is None:
                yield fusion_of_graph(compiled, log, decisions, why().causes)
            elif second is None:
                yield fusion_of_node(compiled, log, first, decisions, why=why)
            else:
                yield fusion_of_pair(compiled, log, first, second, decisions, why=why)

        rows, problems = self._each(rows_of, earlier=True)
        return FusionRows(rows, (*problems, *self._scope()[0].logs.problems))

    def why(self, *names: str, kinds: Sequence[str] = ()) -> Causes:
        """Return what torch decided about `names`, and why; all that it decided without a name.

        Args:
            names: one subject (`op3`, `op3_op4`, `buf3`, a kernel or the start of its name, `add_1`,
                `file.py:12`, `aten.cumprod`), or two for what was decided about the pair.
            kinds: only these kinds of decisions: `vectorisation`, ...

        Raises:
            NotFoundError: there is no such kind; the hint has near names. ProbeError: more than two names.
        """
        from inductor_probe.analysis.run_remarks import failed_recorders
        from inductor_probe.api.on_disk import with_compiler
        from inductor_probe.api.rows import Causes
        from inductor_probe.catalogue import check_kinds

        check_kinds(kinds)
        if len(names) > 2:
            raise ProbeError(f"{len(names)} names: a decision is about one subject, or about a pair")

        def rows_of(graph: GraphOnDisk) -> Iterable[GraphCauses]:
            row = causes_of(graph, names, kinds)
            yield with_compiler(row, graph) if not kinds or "vectorisation" in kinds else row

        rows, problems = self._each(rows_of, earlier=True)
        failed = failed_recorders(self._scope()[0].debug_dir)
        return Causes((replace(row, failed=failed) for row in rows), problems)

    def expect(self, **expected: Any) -> Expectations:
        """Say whether each graph is as expected, and where not, what torch decided otherwise and why.

            graph.expect(kernels=1, vectorised=True, fused="op0+op1", layout="buf3=channels_last")

        Args:
            expected: as the options of `probe expect`: `no_copy=True`, `vectorised=["op0", "op3"]`.

        Raises:
            NotFoundError: no graph has such a subject. ProbeError: a keyword or its value means nothing.
        """
        from inductor_probe.api.expect import expect
        from inductor_probe.model.expectation import expectations_of

        return expect(*self._scope(), expectations_of(expected))

    def profile(
        self,
        settings: BenchSettings | None = None,
        *,
        trust: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> Profiles:
        """Say where the time of a call of each graph goes: this executes the generated code, in children.

        Args:
            settings: `budget` (for each graph), `threads`, `inputs`, `sizes`, `cxxflags` and `imports` count.
            trust: run it even if nothing shows that the dump was made on this machine.
            progress: called with what is done next.

        Raises:
            ProbeError: the code may not run, or does not.
        """
        from inductor_probe.api.profile import profile_graphs

        run, graphs = self._scope()
        if not graphs:
            raise run.empty()
        pairs = [(graph, graph.write_bench_file) for graph in graphs if isinstance(graph, Graph)]
        return profile_graphs(pairs, settings, trust=trust, progress=progress)

    def pages(self, name: str | None = None, *, raw: bool = False, code: bool = False) -> Pages:
        """Return the page about `name` in each graph that has it, about each graph without a name.

        `name` is `op3`, `op3_op4`, `buf3`, `arg0_1`, the start of a kernel's name, `add_1` or `file.py:12`.
        With `raw` loop bodies as dumped instead of formulas, with `code` the text of kernels.
        ProbeError: several kernels start so.
        """
        from inductor_probe.api.show import Pages, page

        run, _ = self._scope()
        return Pages.of_run(run, *self._each(lambda graph: (page(graph, name, raw=raw, code=code),)))

    def tunings(self) -> Tunings:
        """Return what was autotuned, templates and Triton configs; empty if not recorded."""
        from inductor_probe.api.rows import Tunings, tunings_of_graph

        return Tunings.of_graphs(*self._scope(), tunings_of_graph)

    def rewrites(self) -> RewriteRows:
        """Return the rewrites that make variants, each with the kernels and buffers that it applies to."""
        from inductor_probe.api.rows import RewriteRows, rewrite_rows

        return RewriteRows.of_graphs(*self._scope(), rewrite_rows)

    def _each(
        self, rows_of: Callable[[GraphOnDisk], Iterable[Row]], *, earlier: bool = False
    ) -> tuple[list[Row], list[Problem]]:
        """Return the rows of all graphs, and what could not be read.

        `rows_of` raises NotFoundError where a graph lacks the name. With `earlier` it reads also what lies
        before code generation.
        """
        run, graphs = self._scope()
        if not graphs:
            raise run.empty()
        rows: list[Row] = []
        missing: list[NotFoundError] = []
        for graph in graphs:
            try:
                rows.extend(rows_of(graph))
            except NotFoundError as error:
                missing.append(error)
        if len(missing) == len(graphs):
            if len(graphs) == 1:
                raise missing[0]
            message = f"none of the {len(graphs)} graphs of {run.path} has it: {missing[0].message}"
            raise NotFoundError(message, missing[0].hint)
        read = (graph.compiled if earlier else graph.generated for graph in graphs)
        return rows, [*run.debug_dir.problems, *(problem for graph in read for problem in graph.problems)]


class Graph(GraphOnDisk, Session):
    """A compiled graph of a run. It is read when something of it is first asked for."""

    run: Run

    def __init__(self, folder: GraphDir, run: Run) -> None:
        super().__init__(folder, run)

    def _scope(self) -> tuple[RunOnDisk, tuple[GraphOnDisk, ...]]:
        return self.run, (self,)

    def show(self, name: str | None = None, *, raw: bool = False, code: bool = False) -> Page:
        """Return the page about a node, buffer, kernel, FX node or source line, as `pages` does."""
        return self.pages(name, raw=raw, code=code)[0]

    def annotate(self, kernel: str, *, line_directives: bool = True) -> str:
        """Return the C++ or Triton text of a kernel, each line with its node, buffer and line of the user's.

        With `line_directives`, `#line` stands before C++ lines of which one line of the user's is proved.
        """
        from inductor_probe.analysis.annotation.annotate import annotate
        from inductor_probe.report.pages.why import cause_sentence

        return annotate(self.generated, kernel, line_directives=line_directives, sentence=cause_sentence)

    def draw(self, around: str | None = None) -> Drawing:
        """Return the graph as a drawing for a notebook: nodes, buffers, kernels, and who reads what.

        `around` names a node, buffer or kernel (or its start): only that and its neighbours are drawn.
        """
        from inductor_probe.api.show import Drawing

        return Drawing(self, around)

    def diff(self, other: Graph | Run) -> Diff:
        """Compare with another graph, or with its partner in a run: this one is A, the other is B."""
        from inductor_probe.api.diff import Diff

        return Diff(self, other)

    def whatif(
        self,
        candidate: Candidate | None = None,
        settings: BenchSettings | None = None,
        *,
        trust: bool = False,
        progress: Callable[[str], None] | None = None,
        **changes: Any,
    ) -> WhatIf:
        """Compile the graph's script otherwise, and check and time this graph against that in turns.

            graph.whatif(vectorise="op0")
            graph.whatif(set={"inductor.cpp.simdlen": 256}, env={"ATEN_CPU_CAPABILITY": "avx2"})

        Args:
            candidate: what is different, instead of `changes`.
            settings: for how long, in how many processes.
            trust: make again, and run, what is not known to be made here.
            changes: `set`: settings of torch and knobs of the scenario; `env`: variables of the environment;
                or a decision by name: `scalar="op0"`, `fuse="op3,op4"`, `persistent=True`.

        Raises:
            ProbeError: nothing, or nothing that is known, is to be different; the run is not as a new one
                would be; the script, or torch, fails.
        """
        from inductor_probe.api.candidate import dumped_otherwise
        from inductor_probe.api.whatif import whatif_of_runs

        candidate, other = dumped_otherwise(self, Run, candidate, changes, trust=trust)
        return whatif_of_runs(
            self.run, other, settings, candidate=candidate, only=self, trust=trust, progress=progress
        )

    def try_all(
        self,
        settings: BenchSettings | None = None,
        *,
        budget: float = 300.0,
        timed: bool = True,
        again: bool = False,
        trust: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> Trials:
        """Try each change that `why` offers for this graph, then the gains together: `whatif --try-all`.

        `budget` is seconds for everything; `settings` has the margin and the threads. With `timed=False` all
        is compiled and nothing timed: a later call does that. What one found before stands, unless `again`.

        Raises:
            ProbeError: the run is not as a new one would be, or `budget` is not a number of seconds.
        """
        if isinstance(budget, bool) or not isinstance(budget, (int, float)) or budget <= 0:
            raise ProbeError(f"invalid budget {budget!r}: give seconds", "for example budget=300.0")
        from inductor_probe.analysis.causes.candidates import candidates_of
        from inductor_probe.api.baseline import as_it_is
        from inductor_probe.api.candidates import try_candidates
        from inductor_probe.model.bench import BenchSettings

        settings = settings or BenchSettings()
        return try_candidates(
            self.run,
            candidates_of([self.compiled], settings.threads),
            as_it_is(self.run, trust=trust),
            Run,
            settings,
            budget=budget,
            only=self,
            timed=timed,
            again=again,
            trust=trust,
            progress=progress,
        )

    def kernel(self, name: str | None = None) -> KernelRow:
        """Return the kernel that `name` means; if None the only one of C++, else of Triton.

        That is its name, the start of it, or anything that it alone computes: a node, a buffer, an FX node.

        Raises:
            NotFoundError: no kernel has the name; the hint offers near names. AmbiguousError: several match.
        """
        from inductor_probe.analysis.kernels import kernel_called

        return kernel_called(self.generated, name)

    def _with_kernel(self, settings: BenchSettings | None) -> BenchSettings:
        """Return settings with the complete name of their kernel."""
        from inductor_probe.model.bench import BenchSettings

        settings = settings or BenchSettings()
        if settings.kernel is None:
            return settings
        return replace(settings, kernel=self.kernel(settings.kernel).name)

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
        from inductor_probe.analysis.input_bounds import input_bounds
        from inductor_probe.api.bench import WrittenBenchFile
        from inductor_probe.api.trust import refuse_archive
        from inductor_probe.bench_file.bench_file import write_bench_file

        refuse_archive(self)
        known, bounds = self.constants, input_bounds(self.generated)
        written = write_bench_file(self.path, self.inputs, variants, rewrites, bounds=bounds, constants=known)
        return WrittenBenchFile(*astuple(written))

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
            progress: called with what comes next, before each process.

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
        from inductor_probe.api.bench import run_file

        return run_file(self, file, self._with_kernel(settings), trust=trust, progress=progress)

    def check_kernel(
        self,
        settings: BenchSettings | None = None,
        *,
        limit: float = 120.0,
        trust: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> CheckedKernels:
        """Write the bench file, and check its Triton kernels and their variants without a GPU.

        Kernels run in triton's interpreter, in a child process, on CPU tensors, with the launch arguments of
        the wrapper; what comes out is compared with the graph in float64. This executes the generated code.

        Args:
            settings: `kernel`, `inputs`, `sizes`, `threads` and `imports` count.
            limit: seconds for one run of the call; what takes longer is not judged.
            trust: run it even if nothing shows that the dump was made on this machine.
            progress: called with what comes next.

        Raises:
            NotFoundError: no such kernel or size. ProbeError: there is no Triton; see also `bench_kernel`.
        """
        from inductor_probe.api.kernel_check import check_graph, require_checkable

        settings = self._with_kernel(settings)
        require_checkable(self, settings, trust=trust)
        file = self.write_bench_file()
        return check_graph(self, file, settings, limit=limit, trust=trust, progress=progress)

    def sweep_configs(
        self, settings: BenchSettings | None = None, text: str = "", *, trust: bool = False
    ) -> ConfigSweeps:
        """Write the bench file, and time every autotuning config of the Triton kernels in one process.

        Args:
            settings: `kernel`, `budget` (for each kernel), `cold`, `inputs`, `sizes` and `threads` count.
            text: more configs: `XBLOCK=1,8 num_warps=4` for each combination.

        Raises:
            NotFoundError: no such kernel, or no Triton kernels. ProbeError: see `bench_kernel`, also `trust`.
        """
        from inductor_probe.api.rows import ConfigSweeps
        from inductor_probe.api.trust import require_trust, source_to_run
        from inductor_probe.bench import session
        from inductor_probe.bench_file.source import other_harness

        settings = self._with_kernel(settings)
        require_trust(self, trust=trust, imports=settings.imports, rewriting=True)
        file = self.write_bench_file()
        source = source_to_run(self, settings, trust=trust)
        other = other_harness(source)
        sweeps = session.sweep_configs(file.path, settings, text, source=source, other_harness=other)
        return ConfigSweeps(sweeps)

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
        from inductor_probe.api.bench import CppProgram
        from inductor_probe.bench_file.compile_settings import vector_bits
        from inductor_probe.cpp_program.memory import recorded_sizes
        from inductor_probe.cpp_program.program import cpp_program
        from inductor_probe.machine.toolchain import compile_command

        row = self.kernel(kernel)
        code = self.path / "output_code.py"  # of AOTInductor there is none, and no examples to read in it
        recorded = recorded_sizes(self.generated, read_text(code) if code.exists() else "")
        source = file or f"{row.name}.cpp"
        program = source.rpartition(".")[0] or f"{source}.out"
        command = compile_command(vector_bits([row.details])).program(source, program, cxxflags)
        text = cpp_program(
            row,
            sizes={**recorded, **(sizes or {})},
            inputs=self.inputs,
            command=command,
            torch_version=self.generated.torch_version,
            annotated=self.annotate(row.name) if annotated else None,
        )
        return CppProgram(row.name, source, text, tuple(command))

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

    def __init__(
        self,
        debug_dir: DebugDir,
        not_remembered: str | None = None,
        others: Sequence[DebugDir] = (),
        process: str = "",
    ) -> None:
        super().__init__(debug_dir)
        self.not_remembered = not_remembered  # why the record of what was made here could not be written
        self.graphs = tuple(Graph(replace(folder, process=process), self) for folder in debug_dir.graphs)
        self.others = tuple(Run(other, process=f"@{name_of_process(other)}") for other in others)

    def _scope(self) -> tuple[RunOnDisk, tuple[GraphOnDisk, ...]]:
        return self, self.dump_graphs

    def graph(self, name: str) -> Graph:
        """Return the graph called `name`; NotFoundError offers near names."""
        graphs = {graph.name: graph for graph in self.graphs}
        if name not in graphs:
            raise NotFoundError(f"{self.path} has no graph {name}", near_names(name, list(graphs)))
        return graphs[name]

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
        manifest = self.manifest.of_script() if self.manifest else None
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
