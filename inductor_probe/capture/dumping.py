"""`dump`: run a script, keep what inductor wrote, and write down how that came about."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inductor_probe.capture.events import read_events
from inductor_probe.capture.history import History, read_history
from inductor_probe.capture.process import SCRIPT_ALONE, Ended, Program, environment, run_child
from inductor_probe.capture.run_dir import find_run, make_folder, make_run, move_logs, runs_below
from inductor_probe.capture.scripts import script_arguments
from inductor_probe.errors import ProbeError, RunFailedError
from inductor_probe.files import write_whole
from inductor_probe.machine.facts import machine, versions
from inductor_probe.model.manifest import MANIFEST_NAME, Manifest
from inductor_probe.store.made_here import remember
from inductor_probe.store.manifest import manifest_to_json


@dataclass(frozen=True, slots=True)
class DumpResult:
    """What a dump left on disk.

    Attributes:
        run: the run's directory; there is one even when nothing was compiled.
        manifest: what stands in its `probe.json`.
        others: runs that other processes made in the same tree meanwhile: as a rule those that the script
            started. They have no manifest.
        not_remembered: why it could not be written down that these graphs were made here, if so.
    """

    run: Path
    manifest: Manifest
    others: tuple[Path, ...] = ()
    not_remembered: str | None = None


def dump(
    script: Path,
    *,
    args: Sequence[str] = (),
    cases: Sequence[str] = (),
    knobs: Mapping[str, str] | None = None,
    label: str | None = None,
    save_inputs: bool = False,
    out: Path | None = None,
    stdout_to_stderr: bool = False,
    program: Program = SCRIPT_ALONE,
) -> DumpResult:
    """Run `script` in a child process with empty inductor caches, and keep what inductor dumps.

    The script's output, traceback and reaction to Ctrl-C are its own. However it ends, what it had dumped is
    kept; the manifest's `outcome` and `exit_status` say how.

    Args:
        script: any Python script that calls `torch.compile`.
        args: its own arguments.
        cases, knobs: of a scenario: which cases to run, and the knobs to set in them.
        label: a name for the run, kept in the manifest.
        save_inputs: keep the bytes of the storages that every graph was first called with.
        out: folder for `torch_compile_debug`; else TORCH_COMPILE_DEBUG_DIR, else the working folder.
        stdout_to_stderr: send what the script prints to stderr.
        program: what runs the script in the child, if not `child.py` itself.

    Raises:
        UnreadableError, ProbeError: the script cannot be read; cases or knobs for a script that is not a
            scenario; nothing can be written to `out`.
        RunFailedError: Python could not be started, or the program did not start the script.
    """
    knobs = knobs or {}
    arguments = script_arguments(script, args, cases, knobs)
    root = Path(out or os.environ.get("TORCH_COMPILE_DEBUG_DIR") or Path.cwd()).absolute()
    make_folder(root)
    before = runs_below(root)
    # Leftovers of a killed child's compile workers must not turn its end into an error of ours.
    with tempfile.TemporaryDirectory(prefix="inductor_probe_", ignore_cleanup_errors=True) as temporary:
        staging = Path(temporary, "staging")
        staging.mkdir()
        ended = run_child(
            staging,
            script,
            arguments,
            environment(root, Path(temporary)),
            program=program,
            save_inputs=save_inputs,
            stdout_to_stderr=stdout_to_stderr,
        )
        events = read_events(staging)
        for event in events:
            if event["event"] == "refused":
                raise RunFailedError(event["message"], event["hint"])
        history = read_history(events)
        if program.is_debugger and not history.end and ended.status == 0:
            ended = replace(ended, outcome="interrupted")
        run = find_run(root, ended.pid, before, list(history.graphs)) or make_run(
            root, ended.pid, ended.started
        )
        move_logs(staging, run)
    command = (sys.executable, str(script), *arguments)
    manifest = _manifest(
        command, script, ended, history, cases=tuple(cases), knobs=tuple(knobs.items()), label=label
    )
    write_whole(run / MANIFEST_NAME, json.dumps(manifest_to_json(manifest), indent=1) + "\n")
    others = sorted(runs_below(root) - before - {run})
    return DumpResult(run, manifest, tuple(others), _remembered(history, run))


def _remembered(history: History, run: Path) -> str | None:
    """Write down that the graphs were made here; return why that was not possible."""
    try:
        remember(map(Path, history.graphs), run)
    except ProbeError as error:
        return f"{error.message}; {error.hint}"
    return None


def _manifest(
    command: tuple[str, ...],
    script: Path,
    ended: Ended,
    history: History,
    *,
    cases: tuple[str, ...],
    knobs: tuple[tuple[str, str], ...],
    label: str | None,
) -> Manifest:
    """Return the manifest of a child that has ended. `command` is what runs the script without us."""
    return Manifest(
        command=command,
        script=str(script),
        scenario=script.stem,
        cases=cases,
        knobs=knobs,
        label=label,
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
    )
