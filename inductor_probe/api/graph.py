"""A compiled graph: read when something of it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inductor_probe.model.debug_dir import CompiledGraph, GraphDir
from inductor_probe.notebook.shown import Renderable, Shown
from inductor_probe.reader.debug_dir import read_graph, with_earlier

if TYPE_CHECKING:
    from inductor_probe.api.bench import Bench
    from inductor_probe.api.diff import Diff
    from inductor_probe.api.drawing import Drawing
    from inductor_probe.api.fusion_rows import FusionRows
    from inductor_probe.api.kernels import KernelRows
    from inductor_probe.api.nodes import NodeRows
    from inductor_probe.api.programs import CppProgram
    from inductor_probe.api.rows import LayoutRows
    from inductor_probe.api.run import Run
    from inductor_probe.api.show import Page
    from inductor_probe.model.bench import BenchFile, BenchSettings


class Graph(Shown):
    """A compiled graph of a run. It is read when something of it is first asked for."""

    def __init__(self, folder: GraphDir, run: Run) -> None:
        self.folder = folder
        self.run = run

    @property
    def name(self) -> str:
        """Name of the graph's folder: `model__0_inference_0.0`."""
        return self.folder.name

    @property
    def path(self) -> Path:
        """The graph's folder."""
        return self.folder.path

    @cached_property
    def compiled(self) -> CompiledGraph:
        """Everything that is in the folder, as records."""
        return with_earlier(self.generated)

    @cached_property
    def generated(self) -> CompiledGraph:
        """What code was generated from: neither the nodes before fusion nor the FX graph before passes."""
        return read_graph(self.folder, self.run.manifest, earlier=False)

    def layouts(self, name: str | None = None) -> LayoutRows:
        """Return how the buffer, input or node `name` lies in memory; every buffer without a name.

        Raises:
            NotFoundError: the graph has nothing of that name.
        """
        from inductor_probe.analysis.layouts import layouts
        from inductor_probe.api.rows import LayoutRows

        return LayoutRows(layouts(self.generated, name), self.generated.problems)

    def fusion(self, first: str | None = None, second: str | None = None) -> FusionRows:
        """Return what was fused when, and what was refused why: all of it, of a node, or of a pair.

        Raises:
            NotFoundError: the graph has no node, fused node or buffer of that name.
            ProbeError: both names mean one node.
        """
        from inductor_probe.api.fusion_rows import fusion_in

        return fusion_in(self.run, (self,), first, second)

    def kernels(self) -> KernelRows:
        """Return the generated kernels and library functions, in the order of their first use."""
        from inductor_probe.analysis.kernels import kernel_rows
        from inductor_probe.api.kernels import KernelRows

        return KernelRows(kernel_rows(self.generated), self.generated.problems)

    def nodes(self, *, pre: bool = False) -> NodeRows:
        """Return the scheduler's nodes, unfused, in order; with `pre` those before fusion."""
        from inductor_probe.analysis.nodes import node_rows
        from inductor_probe.api.nodes import NodeRows

        graph = self.compiled if pre else self.generated
        return NodeRows(node_rows(graph, pre), graph.problems)

    def show(self, name: str | None = None, *, raw: bool = False, code: bool = False) -> Page:
        """Return the page about a node, buffer, kernel, FX node or line of yours; the graph's without a name.

        Args:
            name: `op3`, `op3_op4`, `buf3`, `arg0_1`, the start of a kernel's name, `add_1`, `file.py:12`.
            raw: loop bodies as dumped instead of formulas.
            code: with a kernel: its text.

        Raises:
            NotFoundError: the graph has nothing of that name.
        """
        from inductor_probe.api.show import page

        return page(self, name, raw=raw, code=code)

    def annotate(self, kernel: str, *, line_directives: bool = True) -> str:
        """Return the C++ or Triton text of a kernel, each line with its node, buffer and line of the user's.

        Args:
            kernel: its name.
            line_directives: write `#line` before C++ lines of which one line of the user's is proved.

        Raises:
            NotFoundError: the graph has no such kernel.
        """
        from inductor_probe.analysis.annotate import annotate

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

    def write_bench_file(
        self, *, variants: Sequence[tuple[str, str | None]] = (), rewrites: Sequence[str] = ()
    ) -> BenchFile:
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

    def time_configs(
        self, file: BenchFile, settings: BenchSettings | None = None, text: str = "", *, trust: bool = False
    ) -> tuple[dict[str, Any], ...]:
        """Time every autotuning config of the Triton kernels; see `bench.time_configs`."""
        from inductor_probe.api.bench import time_configs

        return time_configs(self, file, settings, text, trust=trust)

    def cpp_program(
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
            NotFoundError: no such kernel. ProbeError: it is no C++ kernel, or a size is unknown.
        """
        from inductor_probe.api.programs import cpp_program

        return cpp_program(self, kernel, file, sizes=sizes, cxxflags=cxxflags, annotated=annotated)

    def __rich__(self) -> Renderable:
        from inductor_probe.analysis.summary import summarise
        from inductor_probe.report.summary import SummaryTable

        return SummaryTable(summarise(self.run.debug_dir, [self.compiled]))

    def _repr_html_(self) -> str:
        return super()._repr_html_() + self.draw()._repr_html_()
