"""The verbs of `probe` as functions: each finds what its target names, and calls the method of that name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from inductor_probe.api.notebook import dump_function
from inductor_probe.api.session import Graph, Run
from inductor_probe.discovery.discover import find
from inductor_probe.discovery.walk import runs_below
from inductor_probe.errors import AmbiguousError, NotFoundError, ProbeError
from inductor_probe.files import LARGEST_JSON, read_text
from inductor_probe.options.fields import shared
from inductor_probe.options.kernels import (
    CheckKernelOptions,
    ExportCppOptions,
    RewriteOptions,
    SweepConfigsOptions,
    VerdictOptions,
)
from inductor_probe.options.programs import DebugOptions, DumpOptions
from inductor_probe.options.reading import (
    DiffOptions,
    ExplainOptions,
    FusionOptions,
    KernelsOptions,
    LayoutsOptions,
    NodesOptions,
    ShowOptions,
    TuningsOptions,
    WhyOptions,
)
from inductor_probe.options.verb import Progress, several, takes
from inductor_probe.reader.debug_dir import read_run

if TYPE_CHECKING:
    from inductor_probe.api.bench import Bench, CppProgram, WrittenBenchFile
    from inductor_probe.api.diff import Diff
    from inductor_probe.api.kernel_check import CheckedKernels
    from inductor_probe.api.rows import (
        Causes,
        ConfigSweeps,
        Explanations,
        FusionRows,
        KernelRows,
        LayoutRows,
        NodeRows,
        RewriteRows,
        Tunings,
    )
    from inductor_probe.api.show import Pages
    from inductor_probe.debugging import BreakpointPlan, Endpoint
    from inductor_probe.model.whatif import Candidate

Target = str | Path | Run | Graph | None
"""A run or graph, or what names one: see `discovery.discover`. None is the latest run."""


def dump(
    script: str | Path | Callable[..., Any] | DumpOptions,
    *inputs: Any,
    progress: Callable[[str], object] | None = None,
    compile_options: Mapping[str, Any] | None = None,
    **keywords: Any,
) -> Run:
    """Run a script that calls `torch.compile` in a child process, and return what inductor dumped.

    How the script ended is in `run.manifest`: a script that failed still leaves a run.

        ip.dump("scenarios/check_hflip.py")
        ip.dump(score, torch.randn(8, 64), mask=None, label="score")

    A function, method or module of this process, as in a notebook, is compiled anew here and called once with
    `inputs` and further named arguments; of the options, `label`, `save_inputs`, `record` and `out` are for
    it. What was compiled of it before stays; for backward graphs see `recording`.

    Args:
        script: what is run, or all options as a record.
        inputs: what a function is called with.
        progress: is called with what is done next.
        compile_options: for `torch.compile` of a function: `{"dynamic": True, "mode": "max-autotune"}`.
        keywords: of a script, the fields of `DumpOptions`: `cases`, `knobs`, `args` ...

    Raises:
        NotFoundError: no such script or target. ProbeError: cases or knobs for a script that has none, or a
            variable that a dump needs itself; options for a script with a function, or the other way round.
    """
    from inductor_probe.capture import dump, find_script

    if callable(script):
        of_both = ("label", "save_inputs", "record", "out")
        of_script = ("args", "cases", "knobs", "target", "env", "output", "form")
        if given := next((name for name in of_script if keywords.get(name)), None):
            raise ProbeError(f"{given} is for scripts, and {script!r} is a function", "put it into a script")
        options = {name: keywords.pop(name) for name in of_both if name in keywords}
        return dump_function(script, inputs, keywords, options=options, compile_options=compile_options or {})
    if isinstance(script, DumpOptions):
        asked = script
    elif inputs or compile_options or not {*keywords} <= {*DumpOptions.__struct_fields__}:
        raise ProbeError(
            f"{script} is a script, and inputs are for functions",
            "name its arguments with args=[...], or dump a function: ip.dump(function, *inputs)",
        )
    else:
        asked = DumpOptions(script, **keywords)
    name, is_file = str(asked.script), asked.form == "script"
    result = dump(
        find_script(name, Path.cwd()) if is_file else name,
        flips=asked.flips,
        **{name: getattr(asked, name) for name in _OF_DUMP},
    )
    return Run(read_run(result.run), result.not_remembered, [read_run(other) for other in result.others])


_OF_DUMP = (
    "form", "args", "cases", "knobs", "label", "save_inputs", "record", "target", "out", "stdout_to_stderr",
    "env", "output",
)  # fmt: skip
dump.__wrapped__ = DumpOptions  # type: ignore[attr-defined] # for its signature: see `options/verb.py`


@takes(DebugOptions)
def debug(options: DebugOptions, progress: Progress) -> Run:
    """Dump a script as `dump` does, in a child that waits for a debugger and stops for it in the compiler.

    A place is `torch._inductor.codegen.cpp:LoopLevel.lines`, with ` if CONDITION` on the function's arguments
    or without; `torch/_inductor/ir.py:123`; or a set of places (`fusion`). A subject is `buf3`, `op3`, the
    pair `op3,op4`, or a kernel. `listen` is PORT or HOST:PORT, this machine alone unless HOST says otherwise.

    Raises:
        NotFoundError: no such script; none of the places is in the installed torch.
        ProbeError: a place, subject or condition is spelled wrongly; debugpy is not installed.
        RunFailedError: the port is taken; no debugger came.
    """
    from inductor_probe import capture, debugging

    if options.pdb and options.listen is not None:
        raise ProbeError("--pdb and --listen exclude each other", "--pdb stays in this terminal")
    cwd = Path.cwd()
    path = capture.find_script(str(options.script), cwd)
    plan = debugging.plan(options.places, options.subjects, cwd, (cwd / path).resolve().parent)
    endpoint = None if options.pdb else debugging.read_endpoint(options.listen or "5678")
    _say_breakpoints(plan, endpoint, progress)
    result = debugging.debug(
        path,
        plan.breakpoints,
        endpoint,
        **{name: getattr(options, name) for name in ("args", "cases", "knobs", "out", "stdout_to_stderr")},
    )
    return Run(read_run(result.run), result.not_remembered, [read_run(other) for other in result.others])


def _say_breakpoints(plan: BreakpointPlan, endpoint: Endpoint | None, progress: Progress) -> None:
    """Say where it will stop, and how an editor attaches."""
    from inductor_probe.debugging import instructions, offer_launch_configuration

    for missing in plan.missing:
        progress.warn(missing)
    for item in plan.breakpoints:
        condition = f" if {item.condition}" if item.condition and not item.event else ""
        progress.say(f"will stop: {item}{condition}, {Path(item.path).name}:{item.line}")
    if endpoint is None:
        return
    if not endpoint.is_loopback:
        progress.warn(f"anyone who can reach {endpoint} can run code as you")
    if sentence := offer_launch_configuration(Path.cwd(), endpoint):
        progress.say(sentence)
    for editor, step in instructions(endpoint):
        progress.say(f"{editor:<9} {step}")


def open_target(target: Target = None) -> Run | Graph:
    """Return the graph that `target` names, or the run; both have the verbs that read.

    Raises, as all verbs that take a target:
        NotFoundError, UnreadableError: there is none, or it cannot be read.
    """
    if isinstance(target, (Run, Graph)):
        return target
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


@takes(LayoutsOptions)
def layouts(options: LayoutsOptions, progress: Progress) -> LayoutRows:
    """Return the layouts of a buffer, input or node, or of all buffers; see `Session.layouts`."""
    return open_target(options.target).layouts(options.name)


@takes(FusionOptions)
def fusion(options: FusionOptions, progress: Progress) -> FusionRows:
    """Return what was fused and refused: all, of a node or buffer, or of a pair; see `Session.fusion`."""
    return open_target(options.target).fusion(options.first, options.second)


@takes(KernelsOptions)
def kernels(options: KernelsOptions, progress: Progress) -> KernelRows:
    """Return the kernels of a run or graph; see `Session.kernels`."""
    rows = open_target(options.target).kernels()
    return rows.only(*several(options.traits)).sorted_by(options.sort)


@takes(NodesOptions)
def nodes(options: NodesOptions, progress: Progress) -> NodeRows:
    """Return the scheduler's nodes of a run or graph; see `Session.nodes`."""
    rows = open_target(options.target).nodes(pre=options.pre)
    names = ("kind", "kernel", "reads", "writes", "op", "source")
    return rows.where(**{name: getattr(options, name) for name in names}).sorted_by(options.sort)


@takes(WhyOptions)
def why(options: WhyOptions, progress: Progress) -> Causes:
    """Return what was decided, and why: all, about a subject, or about a pair; see `Session.why`."""
    names = (name for name in (options.first, options.second) if name is not None)
    return open_target(options.target).why(*names, kinds=options.kinds)


@takes(ExplainOptions)
def explain(options: ExplainOptions, progress: Progress) -> Explanations:
    """Return what a code of `why` means: what torch compares and where, and what changes it; all without one.

        ip.explain("few-shared-bytes")

    Raises:
        NotFoundError: no cause has the code; near ones are offered.
    """
    from inductor_probe.api.rows import Explanations

    return Explanations.of_code(options.code, options.kinds)


@takes(ShowOptions)
def show(options: ShowOptions, progress: Progress) -> Pages:
    """Return the page about a name in each graph of a run or graph that has it; see `Session.pages`."""
    return open_target(options.target).pages(options.name, raw=options.raw, code=options.code)


@takes(DiffOptions)
def diff(options: DiffOptions, progress: Progress) -> Diff:
    """Compare two runs or two graphs; without `b`, B is the latest run, without both, A the one before."""
    from inductor_probe.api.diff import Diff

    a, b, here = options.a, options.b, Path.cwd()
    if a is None:
        runs = runs_below(here)
        if len(runs) < 2:
            raise NotFoundError(
                f"there are not two runs below {here} to compare", "name two: probe diff RUN_A RUN_B"
            )
        return Diff(Run(read_run(runs[-2])), Run(read_run(runs[-1])), devices=options.devices)
    sides = [open_target(a), open_target(b)]
    if b is None and sides[0].path == sides[1].path:  # perhaps there is what `probe whatif` made of it
        sides[1] = open_target(runs_below(here)[-1])
    for side in sides:
        if isinstance(side, Run) and not side.graphs:
            raise side.empty()
    return Diff(*sides, devices=options.devices)


@takes(TuningsOptions)
def tunings(options: TuningsOptions, progress: Progress) -> Tunings:
    """Return what was autotuned in a run or graph, or what is in a `.csv` table that was exported."""
    target = options.target
    if isinstance(target, (str, Path)) and Path(target).suffix == ".csv":
        return _tunings_of_table(Path(target))
    return open_target(target).tunings()


def _tunings_of_table(table: Path) -> Tunings:
    from inductor_probe.api.rows import Tunings
    from inductor_probe.store.choices import tunings_from_csv

    return Tunings(tunings_from_csv(read_text(table, largest=LARGEST_JSON), table))


def rewrites(target: Target = None) -> RewriteRows:
    """Return the named rewrites, and what each applies to in each graph that `target` names."""
    return open_target(target).rewrites()


@takes(RewriteOptions)
def rewrite(options: RewriteOptions, progress: Progress) -> WrittenBenchFile:
    """Add the variants of named rewrites to the bench file of a graph; nothing is run.

    With `tuned`, a table of `tunings(...).csv`, its configs become variants of Triton kernels.

    Raises:
        ProbeError: a rewrite does not apply; nothing was written.
    """
    graph = open_graph(options.target)
    tuned = _tuned_rewrites(graph, options.tuned) if options.tuned else ()
    return graph.write_bench_file(rewrites=(*several(options.specs), *tuned))


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


@takes(CheckKernelOptions)
def check_kernel(options: CheckKernelOptions, progress: Progress) -> CheckedKernels:
    """Check the Triton kernels of a graph without a GPU; see `Graph.check_kernel`."""
    from inductor_probe.model.bench import BenchSettings

    settings = BenchSettings(**shared(options, BenchSettings))
    return open_graph(options.target).check_kernel(
        settings, limit=options.limit_s, trust=options.trust, progress=progress
    )


@takes(SweepConfigsOptions)
def sweep_configs(options: SweepConfigsOptions, progress: Progress) -> ConfigSweeps:
    """Time every config of the Triton kernels of a graph; see `Graph.sweep_configs`."""
    from inductor_probe.api.trust import require_trust
    from inductor_probe.model.bench import BenchSettings

    graph = open_graph(options.target)
    settings = BenchSettings(**shared(options, BenchSettings))
    require_trust(graph, trust=options.trust, imports=settings.imports, rewriting=True)
    progress.say(f"running the kernels: this executes the code that inductor generated for {graph.name}")
    return graph.sweep_configs(settings, options.text, trust=options.trust)


@takes(ExportCppOptions)
def export_cpp(options: ExportCppOptions, progress: Progress) -> CppProgram:
    """Return a C++ kernel as a program, the only one of the graph if none is named; see `Graph.export_cpp`.

    `output` names the file that it is for, and is not written.
    """
    graph, name = open_kernel(options.kernel, options.target)
    file = options.output.name if options.output else None
    return graph.export_cpp(name, file, sizes=dict(options.sizes), cxxflags=options.cxxflags)


def candidates_of(target: Run | Graph, *, threads: int | None = None) -> tuple[Candidate, ...]:
    """Return each change that `probe why` offers for a decision of a run or graph, the cheapest first.

    `threads` is with how many they will be timed: with one, what divides loops among threads is left out.
    """
    from inductor_probe.analysis.causes.candidates import candidates_of

    graphs = target.graphs if isinstance(target, Run) else (target,)
    return candidates_of([graph.compiled for graph in graphs], threads)


@takes(VerdictOptions)
def verdict(options: VerdictOptions, progress: Progress) -> Bench:
    """Make the report of samples that bench-kernel wrote once more; nothing is run."""
    from inductor_probe.api.bench import Bench
    from inductor_probe.api.whatif import is_whatif
    from inductor_probe.bench.result import result_of
    from inductor_probe.store.samples import read_samples

    target, margin = options.target, options.margin
    path = Path(target or "")
    if target is None or not path.is_file():
        if target is None or not (path / _SAMPLES).is_file():
            path = open_graph(target).path
        path /= _SAMPLES
    samples = read_samples(path)
    result = result_of(samples if margin is None else replace(samples, margin=margin))
    return Bench(None, result, samples.processes, sides=is_whatif(path))


_SAMPLES = "output_code_bench.json"
