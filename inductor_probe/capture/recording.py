"""What is known of a run, written down as it becomes known: its manifest, and that it was made here."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from inductor_probe.capture.events import EventReader
from inductor_probe.capture.history import History
from inductor_probe.capture.leftovers import TemporaryFolder
from inductor_probe.capture.process import Ended
from inductor_probe.capture.request import Request
from inductor_probe.capture.run_dir import find_run, make_run, move_logs, runs_below
from inductor_probe.errors import ProbeError, RunFailedError
from inductor_probe.files import write_whole
from inductor_probe.model.manifest import MANIFEST_NAME, Manifest
from inductor_probe.store.made_here import remember
from inductor_probe.store.manifest import manifest_to_json

_PART_OF_TIME = 20
"""The manifest is not written again before twenty times as long has passed as writing it took."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run that is written down; attributes as those of `DumpResult`."""

    run: Path
    others: tuple[Path, ...]
    not_remembered: str | None


class Recording:
    """The record of one run, from the events of its script.

    Whoever is killed at any time leaves the manifest of what was compiled by then: it is written anew with
    every graph that is opened, finished, or first called.

    Args:
        request: what is run.
        folder: where the script writes events and logs.
    """

    def __init__(self, request: Request, folder: TemporaryFolder) -> None:
        self._request = request
        self._folder = folder
        self._root = Path(request.root)
        self._before = runs_below(self._root)
        self._events = EventReader(folder.staging)
        self._history = History()
        self._remembered: set[str] = set()
        self._not_remembered: str | None = None
        self._recorded: Path | None = None
        self._refused: tuple[str, str | None] | None = None
        self._is_stale = False
        self._not_before = 0.0

    def update(self, ended: Ended) -> None:
        """Write down what is new while the script runs; `ended` says how it ends if all are killed now."""
        self._add_events(ended=False)
        begin = time.monotonic()
        if not self._is_stale or not self._history.graphs or begin < self._not_before:
            return
        try:
            self._record(Path(next(iter(self._history.graphs))).parents[1], ended)
        except ProbeError:
            # A full disk, for one. If it lasts, the last call meets it again, and the user is told.
            self._not_remembered = None
        finished = time.monotonic()
        self._not_before = finished + _PART_OF_TIME * (finished - begin)

    def finish(self, ended: Ended) -> Recorded:
        """Write down everything, with the logs, when the script has ended.

        Raises:
            RunFailedError: the program did not start the script. There is no run then.
            ProbeError: something cannot be written.
        """
        self._add_events(ended=True)
        if self._refused:
            raise RunFailedError(*self._refused)
        history = self._history
        if self._request.program.is_debugger and not history.end and ended.status == 0:
            ended = replace(ended, outcome="interrupted")
        run = find_run(self._root, ended.pid, self._before, list(history.graphs)) or make_run(
            self._root, ended.pid, ended.started
        )
        move_logs(self._folder.staging, run)
        self._record(run, ended)
        others = sorted(runs_below(self._root) - self._before - {run})
        return Recorded(run, tuple(others), self._not_remembered)

    def _add_events(self, *, ended: bool) -> None:
        for event in self._events.new_events(ended=ended):
            if event["event"] == "refused":
                self._refused = (event["message"], event["hint"])
                continue
            self._history.add(event)
            self._is_stale = self._is_stale or event["event"] in ("graph", "finished", "inputs")

    def _record(self, run: Path, ended: Ended) -> None:
        """Write the manifest, after the record of what was made here: see `remember`."""
        if self._recorded is None:
            self._folder.belongs_to(run)
            self._recorded = run
        manifest = self._manifest(ended)
        data = manifest_to_json(manifest)
        # At the end all are remembered: one whose compile failed was made here, too.
        graphs = [
            Path(path)
            for path, graph in self._history.graphs.items()
            if graph.finished or ended.status is not None
        ]
        try:
            remember(graphs, run, manifest=data, written=self._remembered)
        except ProbeError as error:
            self._not_remembered = f"{error.message}; {error.hint}"
        write_whole(run / MANIFEST_NAME, json.dumps(data, indent=1) + "\n")
        self._is_stale = False

    def _manifest(self, ended: Ended) -> Manifest:
        # Slow to import, and not needed before the script runs, which takes longer to import torch.
        from inductor_probe.machine.facts import machine, variables, versions  # noqa: PLC0415

        request, history = self._request, self._history
        return Manifest(
            command=(sys.executable, request.script, *request.arguments),
            script=request.script,
            scenario=Path(request.script).stem,
            cases=request.cases,
            knobs=request.knobs,
            label=request.label,
            versions=versions(history.end),
            machine=machine(history.end),
            started=ended.started.isoformat(timespec="seconds"),
            duration_s=round(ended.duration_s, 3),
            outcome=ended.outcome,
            exit_status=ended.status,
            compiled_frames=history.end.get("compiled_frames"),
            graphs=tuple(history.graphs.values()),
            graph_breaks=tuple(history.graph_breaks),
            limit_hits=tuple(history.limit_hits),
            notes=tuple(dict.fromkeys(history.notes)),
            ended_by=ended.ended_by,
            environment=variables(os.environ),
        )
