"""The verbs of `probe` as functions: each finds what its target names, and calls the method of that name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from inductor_probe.api.session import Graph, Run
from inductor_probe.discovery.discover import find
from inductor_probe.discovery.walk import runs_below
from inductor_probe.errors import NotFoundError
from inductor_probe.reader.debug_dir import read_run

if TYPE_CHECKING:
    from inductor_probe.api.bench import Bench, ConfigSweeps, RewriteRows, WrittenBenchFile
    from inductor_probe.api.diff import Diff
    from inductor_probe.api.programs import CppProgram
    from inductor_probe.api.rows import FusionRows, KernelRows, LayoutRows, NodeRows
    from inductor_probe.api.show import Pages
    from inductor_probe.api.tunings import Tunings
    from inductor_probe.debugging import BreakpointPlan, Endpoint
    from inductor_probe.model.bench import BenchSettings

Target = str | Path | None
"""What names a run or a graph: see `discovery.discover`. None is the latest run."""


def dump(
    script: str | Path,
    *,
    args: Sequence[str] = (),
    cases: Sequence[str] = (),
    knobs: Mapping[str, str] | None = None,
    label: str | None = None,
    save_inputs: bool = False,
    out: Path | None = None,
    stdout_to_stderr: bool = False,
) -> Run:
    """Run a script that calls `torch.compile` in a child process, and return what inductor dumped.

    How the script ended is in `run.manifest`: a script that failed still leaves a run.

    Args:
        script: a path, or the bare name of a script here or in the project's scenarios.
        args: the script's own arguments.
        cases, knobs: of a scenario: which cases to run, and knobs to set in them.
        label: a name to find the run by.
        save_inputs: keep the bytes of every graph's real inputs.
        out: folder for `torch_compile_debug`, the working folder by default.
        stdout_to_stderr: keep the script's output off stdout.

    Raises:
        NotFoundError: no such script. ProbeError: cases or knobs for a script that has none.
    """
    from inductor_probe import capture

    result = capture.dump(
        capture.find_script(str(script), Path.cwd()),
        args=args,
        cases=cases,
        knobs=knobs or {},
        label=label,
        save_inputs=save_inputs,
        out=out,
        stdout_to_stderr=stdout_to_stderr,
    )
    return Run(read_run(result.run), result.not_remembered)


def debug(
    script: str | Path,
    *,
    places: Sequence[str] = (),
    subjects: Sequence[str] = (),
    listen: str | None = "5678",
    args: Sequence[str] = (),
    cases: Sequence[str] = (),
    knobs: Mapping[str, str] | None = None,
    out: Path | None = None,
    stdout_to_stderr: bool = False,
    before: Callable[[BreakpointPlan, Endpoint | None], None] | None = None,
) -> Run:
    """Dump a script as `dump` does, in a child that waits for a debugger and stops for it in the compiler.

    Args:
        script, args, cases, knobs, out, stdout_to_stderr: see `dump`.
        places: where to stop: `torch._inductor.codegen.cpp:LoopLevel.lines`, with ` if CONDITION` on the
            function's arguments or without; `torch/_inductor/ir.py:123`; a set of places (`fusion`).
        subjects: stop when something happens to `buf3`, `op3`, the pair `op3,op4`, or a kernel of that name.
        listen: PORT or HOST:PORT, this machine alone unless HOST says otherwise; None is pdb in the terminal.
        before: called with the stops and the endpoint, before the child starts.

    Raises:
        NotFoundError: no such script; none of the places is in the installed torch.
        ProbeError: a place, subject or condition is spelled wrongly; debugpy is not installed.
        RunFailedError: the port is taken; no debugger came.
    """
    from inductor_probe import capture, debugging

    cwd = Path.cwd()
    path = capture.find_script(str(script), cwd)
    plan = debugging.plan(places, subjects, cwd, (cwd / path).resolve().parent)
    endpoint = None if listen is None else debugging.read_endpoint(listen)
    if before is not None:
        before(plan, endpoint)
    result = debugging.debug(
        path,
        plan.breakpoints,
        endpoint,
        args=args,
        cases=cases,
        knobs=knobs,
        out=out,
        stdout_to_stderr=stdout_to_stderr,
    )
    return Run(read_run(result.run), result.not_remembered)


def open_target(target: Target = None) -> Run | Graph:
    """Return the graph that `target` names, or the run; both have the verbs that read.

    Raises:
        NotFoundError, UnreadableError: there is none, or it cannot be read.
    """
    named = find(None if target is None else str(target), Path.cwd())
    run = Run(named.run)
    return run if named.graph is None else run.graph_at(named.graph.path)


def open_run(target: Target = None) -> Run:
    """Return the run that `target` names, or that the graph of that name is in; the latest if None.

    Raises:
        NotFoundError, UnreadableError: there is none, or it cannot be read.
    """
    opened = open_target(target)
    return opened if isinstance(opened, Run) else opened.run


def open_graph(target: Target = None) -> Graph:
    """Return the graph that `target` names; for a run, or None, the only graph of it.

    Raises:
        NotFoundError: no such graph. ProbeError: the run has several graphs.
    """
    opened = open_target(target)
    if isinstance(opened, Graph):
        return opened
    if not opened.graphs:
        raise opened.empty()
    if len(opened.graphs) > 1:
        raise opened.several_graphs()
    return opened.graphs[0]


def open_kernel(kernel: str | None = None, target: Target = None) -> tuple[Graph, str]:
    """Return the graph that has a kernel, and the name of the kernel; the only C++ kernel if None.

    Args:
        kernel: its name, or the start of it. target: a graph, or a run of which one graph has the kernel.

    Raises:
        NotFoundError: no graph has it, or several kernels start so. ProbeError: several graphs have it.
    """
    from inductor_probe.api.programs import kernel_of

    opened = open_target(target)
    if kernel is None or isinstance(opened, Graph) or len(opened.graphs) < 2:
        graph = opened if isinstance(opened, Graph) else open_graph(target)
        return graph, kernel_of(graph, kernel).name
    named: list[tuple[Graph, str]] = []
    missing: NotFoundError | None = None
    for graph in opened.graphs:
        try:
            named.append((graph, kernel_of(graph, kernel).name))
        except NotFoundError as error:
            missing = missing or error
    if len(named) > 1:
        raise opened.several_graphs()
    if not named:
        raise NotFoundError(
            f"none of the {len(opened.graphs)} graphs of {opened.path} has a kernel {kernel}",
            missing.hint if missing else None,
        )
    return named[0]


def layouts(name: str | None = None, target: Target = None) -> LayoutRows:
    """Return the layouts of `name` (buffer, input or node), or of all buffers; see `Session.layouts`."""
    return open_target(target).layouts(name)


def fusion(first: str | None = None, second: str | None = None, target: Target = None) -> FusionRows:
    """Return what was fused and refused: all, of a node or buffer, or of a pair; see `Session.fusion`."""
    return open_target(target).fusion(first, second)


def kernels(target: Target = None) -> KernelRows:
    """Return the kernels of a run or graph; see `Session.kernels`."""
    return open_target(target).kernels()


def nodes(target: Target = None, *, pre: bool = False) -> NodeRows:
    """Return the scheduler's nodes of a run or graph, with `pre` those before fusion; see `Session.nodes`."""
    return open_target(target).nodes(pre=pre)


def show(name: str | None = None, target: Target = None, *, raw: bool = False, code: bool = False) -> Pages:
    """Return the page about `name` in each graph of a run or graph that has it; see `Session.pages`."""
    return open_target(target).pages(name, raw=raw, code=code)


def diff(a: Target = None, b: Target = None) -> Diff:
    """Compare two runs or two graphs.

    Without `b`, the latest run is B; without both, the run before the latest is A.

    Raises:
        NotFoundError, UnreadableError: there is none, or it cannot be read.
    """
    from inductor_probe.api.diff import Diff

    here = Path.cwd()
    if a is None:
        runs = runs_below(here)
        if len(runs) < 2:
            raise NotFoundError(
                f"there are not two runs below {here} to compare", "name two: probe diff RUN_A RUN_B"
            )
        return Diff(Run(read_run(runs[-2])), Run(read_run(runs[-1])))
    sides = open_target(a), open_target(b)
    for side in sides:
        if isinstance(side, Run) and not side.graphs:
            raise side.empty()
    return Diff(*sides)


def tunings(target: Target = None) -> Tunings:
    """Return what was autotuned in the graph that `target` names; see `Graph.tunings`.

    A `.csv` file is a table that was exported before.

    Raises:
        UnreadableError: the table is something else.
    """
    if target is not None and Path(target).suffix == ".csv":
        from inductor_probe.api.tunings import tunings_of_table

        return tunings_of_table(Path(target))
    return open_graph(target).tunings()


def rewrites(target: Target = None) -> RewriteRows:
    """Return the named rewrites, and what each applies to in the graph that `target` names."""
    return open_graph(target).rewrites()


def rewrite(*specs: str, target: Target = None, tuned: Path | None = None) -> WrittenBenchFile:
    """Add the variants of named rewrites to the bench file of the graph that `target` names; nothing is run.

    Args:
        specs: `loops:cpp_fused_flip_0 x1,x2`; `rewrites` lists them.
        tuned: a table of `tunings(...).csv`: its configs become variants of the Triton kernels of that name.

    Raises:
        NotFoundError: no such rewrite, kernel or buffer. ProbeError: one does not apply; nothing was written.
    """
    from inductor_probe.api.tunings import tuned_rewrites

    graph = open_graph(target)
    from_table = tuned_rewrites(graph, tuned) if tuned is not None else ()
    return graph.write_bench_file(rewrites=(*specs, *from_table))


def bench_kernel(
    target: Target = None,
    settings: BenchSettings | None = None,
    *,
    trust: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Bench:
    """Write the bench file of the graph that `target` names, and run it; see `Graph.bench_kernel`."""
    return open_graph(target).bench_kernel(settings, trust=trust, progress=progress)


def sweep_configs(
    target: Target = None, settings: BenchSettings | None = None, text: str = "", *, trust: bool = False
) -> ConfigSweeps:
    """Time every config of the Triton kernels of the graph that `target` names; see `Graph.sweep_configs`."""
    return open_graph(target).sweep_configs(settings, text, trust=trust)


def export_cpp(
    kernel: str | None = None,
    target: Target = None,
    *,
    file: str | None = None,
    sizes: Mapping[str, int] | None = None,
    cxxflags: Sequence[str] = (),
) -> CppProgram:
    """Return a C++ kernel as a program of its own, with the command that compiles it; see `Graph.export_cpp`.

    Args:
        kernel: its name, or the start of it; the only C++ kernel of the graph if None.
    """
    graph, name = open_kernel(kernel, target)
    return graph.export_cpp(name, file, sizes=sizes, cxxflags=cxxflags)


def verdict(target: Target = None, *, margin: float | None = None) -> Bench:
    """Make the report of samples that bench-kernel wrote once more; nothing is run.

    Args:
        target: `output_code_bench.json`, the folder that it is in, or what names the graph.
        margin: what differs by less is the same; as it was when they were taken if None.

    Raises:
        NotFoundError, UnreadableError: there is none, or it is something else.
    """
    from inductor_probe.api.bench import verdict_of

    path = Path(target or "")
    if target is not None and path.is_file():
        return verdict_of(path, margin)
    if target is None or not (path / _SAMPLES).is_file():
        path = open_graph(target).path
    return verdict_of(path / _SAMPLES, margin)


_SAMPLES = "output_code_bench.json"
