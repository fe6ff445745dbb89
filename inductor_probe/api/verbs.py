"""The verbs of `probe` as functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from inductor_probe.api.graph import Graph
from inductor_probe.api.run import Run
from inductor_probe.discovery.discover import Found, find
from inductor_probe.errors import ProbeError
from inductor_probe.reader.debug_dir import read_run

if TYPE_CHECKING:
    from inductor_probe.api.bench import Bench
    from inductor_probe.api.fusion_rows import FusionRows
    from inductor_probe.api.kernels import KernelRows
    from inductor_probe.api.nodes import NodeRows
    from inductor_probe.api.rows import LayoutRows
    from inductor_probe.api.show import Pages
    from inductor_probe.model.bench import BenchSettings


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


def open_run(target: str | Path | None = None) -> Run:
    """Return the run that `target` names: a path, a run's name or label, or a graph; the latest if None.

    Raises:
        NotFoundError, UnreadableError: there is none, or it cannot be read.
    """
    return Run(_find(target).run)


def open_graph(target: str | Path | None = None) -> Graph:
    """Return the graph that `target` names; for a run, or None, the only graph of it.

    Raises:
        NotFoundError: no such graph. ProbeError: the run has several graphs.
    """
    found = _find(target)
    run = Run(found.run)
    if found.graph:
        return next(graph for graph in run.graphs if graph.path == found.graph.path)
    if len(run.graphs) == 1:
        return run.graphs[0]
    names = [graph.name for graph in run.graphs]
    if not names:
        raise run.empty()
    raise ProbeError(f"{run.path} has {len(names)} graphs: name one", f"one of {', '.join(names)}")


def layouts(name: str | None = None, target: str | Path | None = None) -> LayoutRows:
    """Return the layouts of `name` (buffer, input or node), or of all buffers, in a run or graph.

    Raises:
        NotFoundError, UnreadableError: see `open_run` and `Run.layouts`.
    """
    return _open(target).layouts(name)


def fusion(
    first: str | None = None, second: str | None = None, target: str | Path | None = None
) -> FusionRows:
    """Return what was fused and refused in a run or graph: all of it, of a node or buffer, or of a pair.

    Raises:
        NotFoundError, UnreadableError, ProbeError: see `open_run` and `Graph.fusion`.
    """
    return _open(target).fusion(first, second)


def kernels(target: str | Path | None = None) -> KernelRows:
    """Return the kernels of a run or graph, the latest run if None.

    Raises:
        NotFoundError, UnreadableError: see `open_run` and `Run.kernels`.
    """
    return _open(target).kernels()


def nodes(target: str | Path | None = None, *, pre: bool = False) -> NodeRows:
    """Return the scheduler's nodes of a run or graph, the latest run if None; with `pre` those before fusion.

    Raises:
        NotFoundError, UnreadableError: see `open_run` and `Run.nodes`.
    """
    return _open(target).nodes(pre=pre)


def show(
    name: str | None = None, target: str | Path | None = None, *, raw: bool = False, code: bool = False
) -> Pages:
    """Return the page about `name` in each graph of a run or graph that has it; see `Graph.show`.

    Raises:
        NotFoundError, UnreadableError: nothing is called that; see `open_run`.
        ProbeError: several kernels start so.
    """
    found = _find(target)
    run = Run(found.run)
    if not run.graphs:
        raise run.empty()
    graphs = run.graphs
    if found.graph is not None:
        graphs = tuple(graph for graph in graphs if graph.path == found.graph.path)
    from inductor_probe.api.show import pages

    return pages(graphs, name, raw=raw, code=code)


def _open(target: str | Path | None) -> Run | Graph:
    """Return the graph that `target` names, or the run; both have the same verbs."""
    found = _find(target)
    run = Run(found.run)
    if found.graph is None:
        return run
    return next(graph for graph in run.graphs if graph.path == found.graph.path)


def _find(target: str | Path | None) -> Found:
    return find(None if target is None else str(target), Path.cwd())


def bench_kernel(
    target: str | Path | None = None,
    settings: BenchSettings | None = None,
    *,
    trust: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Bench:
    """Write the bench file of the graph that `target` names, and run it; see `Graph.bench_kernel`."""
    return open_graph(target).bench_kernel(settings, trust=trust, progress=progress)
