"""The runs below a folder: a list that shows itself, and taking runs away."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from inductor_probe.analysis.run_remarks import why_empty
from inductor_probe.api.rows import Rows
from inductor_probe.discovery.discover import find, path_of
from inductor_probe.discovery.dump_files import is_archive
from inductor_probe.discovery.dump_processes import runs_of_dump
from inductor_probe.discovery.inductor_cache import with_cached_graphs
from inductor_probe.discovery.package import is_package
from inductor_probe.discovery.run_facts import run_facts
from inductor_probe.discovery.walk import everything_below, when_made
from inductor_probe.errors import ProbeError
from inductor_probe.files import read_text
from inductor_probe.model.debug_dir import TREE, DebugDir
from inductor_probe.model.remark import Remark, Subject
from inductor_probe.model.runs import Removal, RunFacts, RunsOutput
from inductor_probe.model.span import Problem
from inductor_probe.options.reading import RunsOptions
from inductor_probe.options.verb import Progress, several, takes
from inductor_probe.reader.debug_dir import is_run, read_run
from inductor_probe.report.document import Document

_NAMED = 4


class RunList(Rows[RunFacts]):
    """Runs, the latest first. `root`: the folder that paths are shown from."""

    record = RunsOutput
    noun = "run"
    root: Path

    @property
    def empty(self) -> str:
        """Why there are none."""
        return f"no run below {self.root}"

    def _view(self) -> Document:
        from inductor_probe.report.pages.runs import runs_table

        return runs_table(self, self.root, time.time())


@takes(RunsOptions)
def runs(options: RunsOptions, progress: Progress) -> RunList:
    """List the runs at and below each target, the latest first; those below the working folder without one.

    A target is a folder, an archive, or what names a run, also of one in a tree further down. With `exact`
    each must be one run, and not a folder that holds runs.
    """
    here = _here()
    targets, older_than = several(options.targets), options.older_than
    known: dict[Path, RunFacts] = {}
    problems: list[Problem] = []
    for target in targets or (here,):
        for run in _runs_of(str(target), here, problems, exact=options.exact):
            try:
                known.setdefault(run.path, _facts(run))
            except FileNotFoundError:  # a script that runs meanwhile cleans up, or `probe runs rm` does
                problems.append(Problem(f"{run.path} was removed while it was read"))
    latest = time.time() - older_than.total_seconds() if older_than else float("inf")
    picked = [
        facts
        for facts in known.values()
        if facts.made <= latest and not (options.empty and (facts.graphs or facts.state == "running"))
    ]
    picked.sort(key=lambda facts: (facts.made, facts.path), reverse=True)
    rows = RunList(picked, problems)
    rows.root = here
    return rows


def plan_removal(facts: RunFacts) -> Removal:
    """Say what removing a run takes away, and what stands against it. Nothing is changed."""
    from inductor_probe.bench_file.bench_file import is_as_made
    from inductor_probe.capture.removal import plan_removal

    def is_unedited(bench_file: Path) -> bool:
        try:
            return is_as_made(read_text(bench_file))
        except ProbeError:
            return False

    run = read_run(facts.path) if is_run(facts.path) else DebugDir(facts.path, (), None)
    return plan_removal(run, is_unedited)


def remove_run(removal: Removal) -> None:
    """Remove a run as planned; ProbeError: something stands against it, or changed meanwhile."""
    from inductor_probe.capture.removal import remove
    from inductor_probe.report.words.runs import blocker_text

    if removal.blockers:
        raise ProbeError(f"{removal.run} is not removed: {blocker_text(removal.blockers[0])}")
    remove(removal)


def _here() -> Path:
    """Return the working folder; from inside of a tree of runs, that tree."""
    here = Path(os.path.realpath(Path.cwd()))
    for folder in (here, *here.parents):
        if folder.name == TREE:
            return folder
        if is_run(folder):
            return folder.parent
    return here


def _runs_of(target: str, here: Path, problems: list[Problem], *, exact: bool) -> Iterator[DebugDir]:
    real = path_of(target, here)
    joined = here / os.path.expanduser(target)  # noqa: PTH111 - does not raise for `~nobody`
    # the path with the links in it: what lies behind one is not removed
    path = real if os.path.normpath(joined) == str(real) else joined
    if not os.path.exists(path):  # noqa: PTH110 - no name is too long for it
        yield from _by_name(target, here, problems, exact=exact)
    elif is_run(path):
        run = read_run(path)
        dump = runs_of_dump(run)
        yield from (run, *dump[1:]) if dump[0].path == run.path else (run,)
    elif not path.is_dir() and not is_archive(path) and not is_package(path):
        raise ProbeError(f"{path} is a file and not a run", "name a run's folder, or one that holds runs")
    else:
        below = everything_below(path, archives=False)
        problems.extend(below.problems)
        if exact and len(below.runs) != 1:
            raise ProbeError(
                f"{path} is not a run: it holds {len(below.runs)}",
                "name one, or select runs with --older-than or --empty",
            )
        yield from below


def _by_name(target: str, here: Path, problems: list[Problem], *, exact: bool) -> tuple[DebugDir, ...]:
    """Return the runs of the dump of that name; ProbeError: a graph has it, or several dumps do."""
    below = everything_below(here, archives=False)
    problems.extend(below.problems)
    named = find(target, here, sorted((run.path for run in below if is_run(run.path)), key=when_made))
    if named.graph is not None:
        raise ProbeError(f"{target} names a graph, not a run", f"its run is {named.run.name}")
    label = named.run.manifest.label if named.run.manifest else None
    dump = (named.run, *named.others)
    same = [run.name for run in below if label and run.manifest and run.manifest.label == label]
    same = [name for name in same if name not in [run.name for run in dump[1:]]]
    if exact and len(same) > 1 and not named.run.name.startswith(target):
        raise ProbeError(
            f"{len(same)} runs have the label {label}", f"name one of {', '.join(same[:_NAMED])}"
        )
    return dump


def _facts(run: DebugDir) -> RunFacts:
    facts = run_facts(run)
    failed = facts.remark is not None and facts.remark.code == "compile-failed"
    if facts.graphs or facts.state == "running" or failed:
        return facts
    cached = with_cached_graphs(run).graphs
    if not cached:
        return replace(facts, remark=why_empty(run))
    path = (("path", str(cached[0].path)),)
    why = Remark("graphs-in-cache", "analysis", Subject("run", run.name), path, knowledge="read")
    return replace(facts, remark=why)
