"""The verbs of `probe` as functions: each finds what its target names, and calls the method of that name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from inductor_probe.api.notebook import dump_function
from inductor_probe.api.session import Graph, Run
from inductor_probe.discovery.discover import find
from inductor_probe.discovery.walk import runs_below
from inductor_probe.errors import AmbiguousError, NotFoundError, ProbeError
from inductor_probe.files import LARGEST_JSON, read_text
from inductor_probe.model.flip import Flip, parse_flip
from inductor_probe.reader.debug_dir import read_run

if TYPE_CHECKING:
    from inductor_probe.api.bench import Bench, CppProgram, WrittenBenchFile
    from inductor_probe.api.diff import Diff
    from inductor_probe.api.expect import Expectations
    from inductor_probe.api.kernel_check import CheckedKernels
    from inductor_probe.api.profile import Profiles
    from inductor_probe.api.rows import (
        Causes,
        ConfigSweeps,
        FusionRows,
        KernelRows,
        LayoutRows,
        NodeRows,
        RewriteRows,
        Tunings,
    )
    from inductor_probe.api.show import Pages
    from inductor_probe.debugging import BreakpointPlan, Endpoint
    from inductor_probe.model.bench import BenchSettings
    from inductor_probe.model.manifest import ScriptForm
    from inductor_probe.model.whatif import Candidate

Target = str | Path | None
"""What names a run or a graph: see `discovery.discover`. None is the latest run."""


def dump(
    script: str | Path | Callable[..., Any],
    *inputs: Any,
    args: Sequence[str] = (),
    cases: Sequence[str] = (),
    knobs: Mapping[str, str] | None = None,
    label: str | None = None,
    save_inputs: bool = False,
    record: bool = True,
    target: str | None = None,
    flips: Sequence[Flip | str] = (),
    out: Path | None = None,
    stdout_to_stderr: bool = False,
    env: Mapping[str, str] | None = None,
    output: Path | None = None,
    form: ScriptForm = "script",
    compile_options: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Run:
    """Run a script that calls `torch.compile` in a child process, and return what inductor dumped.

    How the script ended is in `run.manifest`: a script that failed still leaves a run.

        ip.dump("scenarios/check_hflip.py")
        ip.dump(score, torch.randn(8, 64), mask=None, label="score")

    A function, method or module of this process, as in a notebook, is compiled anew here and called once with
    `inputs` and further named `arguments`; of the others, `label`, `save_inputs`, `record`, `out` and
    `compile_options` are for it. What was compiled of it before stays; for backward graphs see `recording`.

    Args:
        script: a path, or the bare name of a script here or in the project's scenarios; or a function.
        inputs, arguments: what a function is called with.
        args: the script's own arguments.
        cases: of a scenario, to run.
        knobs: to set in the cases, and settings of torch (`{"inductor.cpp.simdlen": "256"}`); of the latter,
            what the script sets itself stands.
        label: a name to find the run by.
        save_inputs: keep the bytes of every graph's real inputs, and constants of any size.
        record: record what inductor decides, and why (`probe why`).
        target: a GPU to generate code for (`h200`, or a TOML file with its figures) in place of the machine's
            own: it is simulated, and what is compiled for it does not run.
        flips: decisions to turn, each for one subject (`"scalar op0"`); `run.manifest.flip_results` says
            what became of them.
        out: folder for `torch_compile_debug`, the working folder by default.
        stdout_to_stderr: keep the script's output off stdout.
        env: variables of the environment for the script alone, set before it imports anything.
        output: a file for all that the script prints, on both streams.
        form: what `script` is: a file; the name of a module, as for `python -m`; or a program, of which each
            Python that it starts is followed (`"torchrun"`).
        compile_options: for `torch.compile` of a function: `{"dynamic": True, "mode": "max-autotune"}`.

    Raises:
        NotFoundError: no such script or target. ProbeError: cases or knobs for a script that has none, or a
            variable that a dump needs itself; options for a script with a function, or the other way round.
    """
    from inductor_probe import capture

    if callable(script):
        of_script = {
            "args": args, "cases": cases, "knobs": knobs, "target": target, "flips": flips, "env": env,
            "output": output,
        }  # fmt: skip
        if given := next((name for name, value in of_script.items() if value), None):
            raise ProbeError(f"{given} is for scripts, and {script!r} is a function", "put it into a script")
        options = {"label": label, "save_inputs": save_inputs, "record": record, "out": out}
        return dump_function(
            script, inputs, arguments, options=options, compile_options=compile_options or {}
        )
    if inputs or arguments or compile_options:
        raise ProbeError(
            f"{script} is a script, and inputs are for functions",
            "name its arguments with args=[...], or dump a function: ip.dump(function, *inputs)",
        )

    result = capture.dump(
        capture.find_script(str(script), Path.cwd()) if form == "script" else str(script),
        form=form,
        args=args,
        cases=cases,
        knobs=knobs or {},
        label=label,
        save_inputs=save_inputs,
        record=record,
        target=target,
        flips=[parse_flip(flip) if isinstance(flip, str) else flip for flip in flips],
        out=out,
        stdout_to_stderr=stdout_to_stderr,
        env=env,
        output=output,
    )
    return Run(read_run(result.run), result.not_remembered, [read_run(other) for other in result.others])


def debug(
    script: str | Path,
    *,
    places: Sequence[str] = (),
    subjects: Sequence[str] = (),
    listen: str | None = "5678",
    before: Callable[[BreakpointPlan, Endpoint | None], None] | None = None,
    **options: Any,
) -> Run:
    """Dump a script as `dump` does, in a child that waits for a debugger and stops for it in the compiler.

    Args:
        script, options: see `dump`.
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
    result = debugging.debug(path, plan.breakpoints, endpoint, **options)
    return Run(read_run(result.run), result.not_remembered, [read_run(other) for other in result.others])


def open_target(target: Target = None) -> Run | Graph:
    """Return the graph that `target` names, or the run; both have the verbs that read.

    Raises, as all verbs that take a target:
        NotFoundError, UnreadableError: there is none, or it cannot be read.
    """
    named = find(None if target is None else str(target), Path.cwd())
    run = Run(named.run, others=named.others)
    if named.graph is None:
        return run
    return next(graph for graph in run.graphs if graph.path == named.graph.path)


def open_run(target: Target = None) -> Run:
    """Return the run that `target` names, or that the graph of that name is in; the latest if None."""
    opened = open_target(target)
    return opened if isinstance(opened, Run) else opened.run


def open_graph(target: Target = None) -> Graph:
    """Return the graph that `target` names; of a run, its only graph. ProbeError: it has several."""
    opened = open_target(target)
    return opened if isinstance(opened, Graph) else _only_graph(opened)


def _only_graph(run: Run) -> Graph:
    if not run.graphs:
        raise run.empty()
    if len(run.graphs) > 1:
        raise run.several_graphs()
    return run.graphs[0]


def open_kernel(kernel: str | None = None, target: Target = None) -> tuple[Graph, str]:
    """Return the graph that has a kernel, and the name of the kernel: see `Graph.kernel`.

    NotFoundError: no graph of the target has it. AmbiguousError: several have it.
    """
    if kernel is None:
        graph = open_graph(target)
        return graph, graph.kernel().name
    graphs = graphs_with(kernel, target)
    if len(graphs) > 1:
        raise graphs[0].run.several_graphs()
    return graphs[0], graphs[0].kernel(kernel).name


def graphs_with(kernel: str | None = None, target: Target = None) -> tuple[Graph, ...]:
    """Return the graphs of a target that have a kernel of this name, all without one.

    NotFoundError: the run is empty, or none of its graphs has it. AmbiguousError: in none does it mean one.
    """
    opened = open_target(target)
    graphs = (opened,) if isinstance(opened, Graph) else opened.graphs
    if not graphs:
        raise opened.run.empty() if isinstance(opened, Graph) else opened.empty()
    having: list[Graph] = []
    failures: list[NotFoundError | AmbiguousError] = []
    for graph in graphs if kernel is not None else ():
        try:
            graph.kernel(kernel)
        except (NotFoundError, AmbiguousError) as error:
            failures.append(error)
        else:
            having.append(graph)
    if kernel is None or having:
        return tuple(having) if having else graphs
    failure = next((error for error in failures if isinstance(error, AmbiguousError)), failures[0])
    if len(graphs) > 1 and isinstance(failure, NotFoundError):
        raise NotFoundError(
            f"none of the {len(graphs)} graphs of {graphs[0].run.path} has a kernel {kernel}", failure.hint
        )
    raise failure


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


def why(
    first: str | None = None, second: str | None = None, target: Target = None, *, kinds: Sequence[str] = ()
) -> Causes:
    """Return what was decided, and why: all, about a subject, or about a pair; see `Session.why`."""
    return open_target(target).why(*(name for name in (first, second) if name is not None), kinds=kinds)


def expect(target: Target = None, **expected: Any) -> Expectations:
    """Say whether a run or graph is as expected, and where not why; see `Session.expect`."""
    return open_target(target).expect(**expected)


def show(name: str | None = None, target: Target = None, *, raw: bool = False, code: bool = False) -> Pages:
    """Return the page about `name` in each graph of a run or graph that has it; see `Session.pages`."""
    return open_target(target).pages(name, raw=raw, code=code)


def diff(a: Target = None, b: Target = None) -> Diff:
    """Compare two runs or two graphs; without `b`, B is the latest run, without both, A the one before."""
    from inductor_probe.api.diff import Diff

    here = Path.cwd()
    if a is None:
        runs = runs_below(here)
        if len(runs) < 2:
            raise NotFoundError(
                f"there are not two runs below {here} to compare", "name two: probe diff RUN_A RUN_B"
            )
        return Diff(Run(read_run(runs[-2])), Run(read_run(runs[-1])))
    sides = [open_target(a), open_target(b)]
    if b is None and sides[0].path == sides[1].path:  # perhaps there is what `probe whatif` made of it
        sides[1] = open_target(runs_below(here)[-1])
    for side in sides:
        if isinstance(side, Run) and not side.graphs:
            raise side.empty()
    return Diff(*sides)


def tunings(target: Target = None) -> Tunings:
    """Return what was autotuned in a run or graph, or what is in a `.csv` table that was exported."""
    if target is not None and Path(target).suffix == ".csv":
        return _tunings_of_table(Path(target))
    return open_target(target).tunings()


def _tunings_of_table(table: Path) -> Tunings:
    from inductor_probe.api.rows import Tunings
    from inductor_probe.store.choices import tunings_from_csv

    return Tunings(tunings_from_csv(read_text(table, largest=LARGEST_JSON), table))


def rewrites(target: Target = None) -> RewriteRows:
    """Return the named rewrites, and what each applies to in each graph that `target` names."""
    return open_target(target).rewrites()


def rewrite(*specs: str, target: Target = None, tuned: Path | None = None) -> WrittenBenchFile:
    """Add the variants of named rewrites to the bench file of the graph that `target` names; nothing is run.

    `specs` are as `rewrites` lists them. `tuned` is a table of `tunings(...).csv`: its configs become
    variants of the Triton kernels of that name. ProbeError: a rewrite does not apply; nothing was written.
    """
    graph = open_graph(target)
    return graph.write_bench_file(rewrites=(*specs, *(_tuned_rewrites(graph, tuned) if tuned else ())))


def _tuned_rewrites(graph: Graph, table: Path) -> Iterable[str]:
    """Return rewrites that give Triton kernels of a graph the configs of a table of tunings."""
    kernels = {kernel.name for kernel in graph.generated.code.kernels} if graph.generated.code else set()
    specs: dict[str, None] = {}
    for tuning in _tunings_of_table(table):
        chosen = next(
            (choice for choice in tuning.choices if choice.name == tuning.generated), tuning.fastest
        )
        if tuning.of_kernel and tuning.operation in kernels and chosen:
            values = [f"{name}={value}" for name, value in chosen.config if _SETTABLE.fullmatch(name)]
            specs[f"triton:{tuning.operation} {' '.join(values)}"] = None
    if not specs:
        raise ProbeError(
            f"{table} has no config for a Triton kernel of {graph.name}",
            "probe tunings --csv writes such a table; kernels go by their names",
        )
    return specs


_SETTABLE = re.compile(r"[XYZR]\d?_?BLOCK|num_warps|num_stages")


def bench_kernel(
    target: Target = None,
    settings: BenchSettings | None = None,
    *,
    trust: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Bench:
    """Write the bench file of the graph that `target` names, and run it; see `Graph.bench_kernel`."""
    return open_graph(target).bench_kernel(settings, trust=trust, progress=progress)


def check_kernel(
    target: Target = None,
    settings: BenchSettings | None = None,
    *,
    limit: float = 120.0,
    trust: bool = False,
    progress: Callable[[str], None] | None = None,
) -> CheckedKernels:
    """Check the Triton kernels of the graph that `target` names without a GPU; see `Graph.check_kernel`."""
    return open_graph(target).check_kernel(settings, limit=limit, trust=trust, progress=progress)


def sweep_configs(
    target: Target = None, settings: BenchSettings | None = None, text: str = "", *, trust: bool = False
) -> ConfigSweeps:
    """Time every config of the Triton kernels of the graph that `target` names; see `Graph.sweep_configs`."""
    return open_graph(target).sweep_configs(settings, text, trust=trust)


def profile(
    target: Target = None,
    settings: BenchSettings | None = None,
    *,
    trust: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Profiles:
    """Say where the time of a call of a run's graphs, or of a graph, goes; see `Session.profile`."""
    return open_target(target).profile(settings, trust=trust, progress=progress)


def export_cpp(
    kernel: str | None = None,
    target: Target = None,
    *,
    file: str | None = None,
    sizes: Mapping[str, int] | None = None,
    cxxflags: Sequence[str] = (),
) -> CppProgram:
    """Return a C++ kernel as a program, the only one of the graph if None; see `Graph.export_cpp`."""
    graph, name = open_kernel(kernel, target)
    return graph.export_cpp(name, file, sizes=sizes, cxxflags=cxxflags)


def candidates_of(target: Run | Graph, *, threads: int | None = None) -> tuple[Candidate, ...]:
    """Return each change that `probe why` offers for a decision of a run or graph, the cheapest first.

    `threads` is with how many they will be timed: with one, what divides loops among threads is left out.
    """
    from inductor_probe.analysis.causes.candidates import candidates_of

    graphs = target.graphs if isinstance(target, Run) else (target,)
    return candidates_of([graph.compiled for graph in graphs], threads)


def verdict(target: Target = None, *, margin: float | None = None) -> Bench:
    """Make the report of samples that bench-kernel wrote once more; nothing is run.

    `target` is `output_code_bench.json`, the folder that it is in, or what names the graph. What differs by
    less than `margin` is the same; None is the margin of the measurement.
    """
    from inductor_probe.api.bench import Bench
    from inductor_probe.api.whatif import is_whatif
    from inductor_probe.bench.result import result_of
    from inductor_probe.store.samples import read_samples

    path = Path(target or "")
    if target is None or not path.is_file():
        if target is None or not (path / _SAMPLES).is_file():
            path = open_graph(target).path
        path /= _SAMPLES
    samples = read_samples(path)
    result = result_of(samples if margin is None else replace(samples, margin=margin))
    return Bench(None, result, samples.processes, sides=is_whatif(path))


_SAMPLES = "output_code_bench.json"
