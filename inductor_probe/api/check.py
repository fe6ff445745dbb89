"""Whether dumps are complete, and whether this machine is fit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from inductor_probe.analysis.check import check_graph, check_logs
from inductor_probe.analysis.run_remarks import cut_short, failed_compiles, why_empty
from inductor_probe.discovery.discover import find, path_of
from inductor_probe.discovery.dump_processes import OF_PROCESS, runs_of_dump
from inductor_probe.discovery.run_facts import maker
from inductor_probe.discovery.walk import everything_below
from inductor_probe.model.check import CheckOutput, DumpCheck, GraphCheck
from inductor_probe.model.debug_dir import DebugDir, GraphDir
from inductor_probe.model.health import DoctorOutput, MachineHealth
from inductor_probe.model.output import Output
from inductor_probe.model.span import Problem
from inductor_probe.options.reading import CheckOptions, DoctorOptions
from inductor_probe.options.verb import Progress, several, takes
from inductor_probe.reader.debug_dir import read_graph, texts_of, unopened_files
from inductor_probe.reader.logs.run_logs import read_logs
from inductor_probe.reader.tunings import read_tunings
from inductor_probe.report.document import Document
from inductor_probe.report.pages.check import check_page, health_page
from inductor_probe.report.shown import Shown
from inductor_probe.report.words.remarks import failure_sentence, sentence


class Check(Shown, DumpCheck, frozen=True):
    """A check that shows itself."""

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return CheckOutput(check=self, problems=self.problems)

    @property
    def document(self) -> Document:
        """What was read and what is wrong."""
        return check_page(self)


class Health(Shown, MachineHealth, frozen=True):
    """What was seen of the machine; shows itself."""

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return DoctorOutput(health=self)

    @property
    def document(self) -> Document:
        """The diagnostics, and whether the machine is fit."""
        return health_page(self)


@takes(DoctorOptions)
def doctor(options: DoctorOptions, progress: Progress) -> Health:
    """Examine Python, torch, the compiler, caches, variables, GPUs, load and folders of this machine.

    It takes some seconds: torch is asked in a child process, which compiles a small kernel.
    """
    from inductor_probe.capture.torch_places import PLACES
    from inductor_probe.health.examine import examine

    return Health(examine(Path.cwd(), places=[str(place) for place in PLACES]).diagnostics)


@takes(CheckOptions)
def check(options: CheckOptions, progress: Progress) -> Check:
    """Read everything below each path, and each run or graph of that name, and account for every line of it.

    Without a target it is the latest run. A run of several processes is checked with those of the others.
    """
    targets = several(options.targets)
    runs, problems = _runs(targets)
    if not runs:
        problems.append(Problem(f"no dump below {', '.join(map(str, targets))}"))
    graphs: list[GraphCheck] = []
    empty: list[Path] = []
    for run in runs:
        problems.extend(run.problems)
        empty.extend(run.empty_graphs)
        failed = failed_compiles(run)
        problems.extend(Problem(f"{run.path}: {failure_sentence(remark)}") for remark in failed)
        remark = cut_short(run)
        # A script that still runs has a manifest of one that was cut short.
        pid = maker(run) if remark or (run.manifest and not run.graphs) else None
        if pid is not None:
            problems.append(Problem(f"{run.path}: process {pid}, which makes it, is still there"))
        elif not run.graphs and not run.empty_graphs and not failed:
            problems.append(Problem(f"{run.path}: {sentence(why_empty(run))}"))
        elif remark:
            problems.append(Problem(f"{run.path}: {sentence(remark)}"))
        for folder in run.graphs:
            graph = read_graph(folder, run.manifest)
            if pid is not None and not (graph.record and graph.record.finished):
                continue  # its files are still written
            tunings = read_tunings(folder.path)
            graphs.append(check_graph(graph, texts_of(graph), unopened_files(graph), tunings))
    logs = [log for run in runs if (log := check_logs(run, read_logs(run)))]
    return Check(tuple(graphs), tuple(logs), tuple(problems), tuple(empty))


def _runs(targets: Sequence[str | Path]) -> tuple[list[DebugDir], list[Problem]]:
    """Return every run below the paths, or of the names, once, and what kept others from being read."""
    here = Path.cwd()
    if not targets:
        return list(runs_of_dump(find(None, here).run)), []
    runs: dict[tuple[Path, GraphDir | None], DebugDir] = {}
    problems: list[Problem] = []
    for target in map(str, targets):
        if os.path.lexists(path_of(target, here)):
            below = everything_below(Path(os.path.expanduser(target)))  # noqa: PTH111 - does not raise for `~nobody`
            problems.extend(below.problems)
            for run in below:
                runs.setdefault((run.path, None), run)
        else:
            named = find(target, here)
            if named.graph:
                run = replace(named.run, graphs=(named.graph,))
                runs.setdefault((run.path, named.graph), run)
            else:
                others = () if OF_PROCESS.fullmatch(target) else runs_of_dump(named.run)
                for run in others or (named.run,):
                    runs.setdefault((run.path, None), run)
    return list(runs.values()), problems
