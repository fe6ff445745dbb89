"""What is known of a run, written down as it becomes known: its manifest, and that it was made here."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from inductor_probe.capture.dumping import DumpResult, Request
from inductor_probe.capture.events import EventReader, process_folders
from inductor_probe.capture.folders import (
    TemporaryFolder,
    find_run,
    make_run,
    move_logs,
    runs_below,
    set_run,
)
from inductor_probe.capture.process import INTERRUPTIONS, Ended, signal_name
from inductor_probe.capture.unfollowed import Watch, dumped_graph, graphs_in
from inductor_probe.errors import ProbeError, RunFailedError
from inductor_probe.files import write_whole
from inductor_probe.model.codec import from_json
from inductor_probe.model.debug_dir import TREE
from inductor_probe.model.flip import FlipResult
from inductor_probe.model.manifest import (
    LOGS_DIR,
    MANIFEST_NAME,
    BufferOrigin,
    CompileFailure,
    ConstantFact,
    DumpProcess,
    DumpRecord,
    GraphBreak,
    GraphRecord,
    InputFact,
    LimitHit,
    Manifest,
    Note,
    NotFollowed,
    Outcome,
    SimulatedGpu,
    Substitute,
)
from inductor_probe.reader.failures import Frame, explained, failure_of
from inductor_probe.store.made_here import remember, remember_recipe
from inductor_probe.store.manifest import manifest_to_json

_PART_OF_TIME = 20
"""The manifest is not written again before twenty times as long has passed as writing it took."""

# torch/_dynamo/guards.py, get_and_maybe_log_recompilation_reasons:
#     - 0/0: tensor 'x' size mismatch at index 0. expected 8, actual 12
_GUARD = re.compile(r"^\s*- (!?\d+/.*?: .*\S)\s*$", re.MULTILINE)
# torch/_dynamo/symbolic_convert.py, InstructionTranslatorBase.log_graph_break
_BREAK_AT = re.compile(r"^Graph break.* in user code at (.+:\d+)$", re.MULTILINE)
_BREAK_REASON = re.compile(r"Graph Break Reason: (.*?)(?=^User code traceback:|\Z)", re.DOTALL | re.MULTILINE)
_FRAME = re.compile(r'^\s*File "(.+)", line (\d+)', re.MULTILINE)
# torch/_dynamo/convert_frame.py, _compile
_LIMIT = re.compile(
    r"function: '(?P<function>.*?)' \((?P<where>.*)\)\s*\n\s*last reason: (?P<reason>.*?)\s*^To log all",
    re.DOTALL | re.MULTILINE,
)


class Recording:
    """The records of a dump's processes, from their events: a manifest for each that compiled something.

    Whoever is killed at any time leaves the manifests of what was compiled by then: one is written anew with
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
        rank, world_size = (os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE"))
        self._first = _Process(
            folder.staging,
            EventReader(folder.staging),
            is_first=True,
            command=request.command,
            rank=int(rank) if rank.isdecimal() else None,
            world_size=int(world_size) if world_size.isdecimal() else None,
        )
        self._processes = {folder.staging: self._first}
        self._watch = Watch()
        self._id = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%S.%f}-{os.getpid()}"
        self._not_remembered: str | None = None
        self._refusal: tuple[str, str | None] | None = None
        self._not_before = 0.0

    def update(self, ended: Ended) -> None:
        """Write down what is new while the script runs; `ended` says how it ends if all are killed now."""
        self._add_events(ended, finally_=False)
        self._watch.look(self._followed(), None if self._request.form == "command" else self._first.pid)
        begin = time.monotonic()
        if begin < self._not_before:
            return
        stale = [one for one in self._processes.values() if one.is_stale and one.history.graphs]
        if not stale:
            return
        try:
            for process in stale:
                process.run = _run_of(process)
                self._record(process, ended)
        except ProbeError:
            # A full disk, for one. If it lasts, the last call raises it.
            self._not_remembered = None
        finished = time.monotonic()
        self._not_before = finished + _PART_OF_TIME * (finished - begin)

    def finish(self, ended: Ended) -> DumpResult:
        """Write down everything, with the logs, when the script has ended.

        Raises:
            RunFailedError: the program did not start the script. There is no run then.
            ProbeError: something cannot be written.
        """
        self._add_events(ended, finally_=True)
        if self._refusal:
            raise RunFailedError(*self._refusal)
        if self._request.program.is_debugger and not self._first.history.end and ended.status == 0:
            ended = replace(ended, outcome="interrupted")
        for process in self._processes.values():
            graphs = list(process.history.graphs)
            if graphs or process.is_first or process.rank is not None or process.history.failures:
                process.run = find_run(self._root, process.pid, self._before, graphs)
            if process.run is None and process.history.failures:
                began = datetime.fromtimestamp(process.started).astimezone()
                process.run = make_run(self._root, process.pid, began)
        self._add_unfollowed()
        first, *others = self._of_dump()
        made = None
        if first.run is None:  # nothing was compiled
            made = first.run = make_run(self._root, first.pid, ended.started)
        self._add_unmet_flips(first)
        errors = []
        for process in (first, *others):
            for write in (self._move_logs, lambda one: self._record(one, ended)):
                try:
                    write(process)
                except ProbeError as error:  # a full disk: what is smaller may still be written
                    errors.append(error)
        if errors:
            if made is not None and not (made / MANIFEST_NAME).exists():
                with suppress(OSError):  # nothing is in it, and nothing says what it was to be
                    (made / LOGS_DIR).rmdir()
                    made.rmdir()
            raise errors[0]
        runs = tuple(process.run for process in others if process.run is not None)
        return DumpResult(first.run, self._not_remembered, runs)

    @staticmethod
    def _move_logs(process: _Process) -> None:
        if process.run is not None:
            move_logs(process.folder, process.run)

    def _of_dump(self) -> list[_Process]:
        """Return the processes that the dump is about: see `DumpProcess`."""
        ranks = {one.pid: one.rank for one in self._processes.values()}
        for process in self._processes.values():
            # What a rank starts has inherited its RANK.
            if not process.is_group_member and process.rank == ranks.get(process.parent, -1):
                process.rank = process.world_size = None
        of_dump = (
            one
            for one in self._processes.values()
            if one.is_first
            or one.history.graphs
            or one.history.failures
            or one.rank is not None
            or one.not_followed
        )
        return sorted(of_dump, key=lambda process: process.order)

    def _followed(self) -> set[int]:
        """Return the processes that report: the first one does where probe starts the script itself."""
        return {one.pid for one in self._processes.values() if not one.is_first or one.reports}

    def _add_unfollowed(self) -> None:
        """Add processes that loaded torch unseen, each with what torch dumped for it by itself."""
        for one in self._watch.but(self._followed()):
            process = self._first
            if one.pid != self._first.pid:
                folder = self._folder.staging / "unfollowed" / str(one.pid)
                folder.mkdir(parents=True)
                process = _Process(folder, EventReader(folder), pid=one.pid, parent=one.parent)
                process.command, process.started = one.command, one.started
                self._processes[folder] = process
            process.not_followed = one.why
            process.run = find_run(self._root, one.pid, self._before, [])
            if process.run is not None:
                process.history.graphs.update(
                    (str(path), dumped_graph(path)) for path in graphs_in(process.run)
                )

    def _add_unmet_flips(self, first: _Process) -> None:
        """Say of a flip for a graph of some name that none of that name was compiled."""
        histories = [process.history for process in self._processes.values()]
        graphs = [graph.name for history in histories for graph in history.graphs.values()]
        met = {result.flip for history in histories for result in history.flip_results}
        for flip in self._request.child.flips:
            if flip not in met:
                near = tuple(get_close_matches(flip.graph or "", graphs))
                first.history.flip_results.append(
                    FlipResult(flip, None, "not-met", "no-graph", operands=(("near", near),))
                )

    def _add_events(self, ended: Ended, *, finally_: bool) -> None:
        self._first.pid, self._first.started = ended.pid, ended.started.timestamp()
        self._first.parent = os.getpid()
        for folder in process_folders(self._folder.staging, self._processes):
            self._processes[folder] = _Process(folder, EventReader(folder))
        for process in list(self._processes.values()):
            for event in process.events.new_events(ended=finally_):
                process.reports = True
                if event["event"] == "refused":
                    self._refusal = (event["message"], event["hint"])
                elif event["event"] in ("process", "rank"):
                    process.add(event)
                elif event["event"] == "child-ended":
                    self._set_status(event["pid"], event["status"])
                else:
                    process.history.add(event)
                    is_news = event["event"] in ("graph", "finished", "failed", "inputs")
                    process.is_stale = process.is_stale or is_news

    def _set_status(self, pid: int, status: int) -> None:
        """Remember with which status a process ended; the last one that had this id."""
        for process in reversed(self._processes.values()):
            if process.pid == pid and not process.is_first:
                process.status = status
                return

    def _record(self, process: _Process, ended: Ended) -> None:
        """Write the manifest of a process, after the record of what was made here: see `remember`."""
        run = process.run
        if run is None:
            return
        if not process.has_run:
            set_run(process.folder, run)
            process.has_run = True
        manifest = self._manifest(process, ended)
        data = manifest_to_json(manifest)
        # At the end all are remembered: one whose compile failed was made here, too.
        graphs = [
            Path(path)
            for path, graph in process.history.graphs.items()
            if graph.finished or ended.status is not None
        ]
        try:
            remember(graphs, run, manifest=data, written=process.remembered)
            if manifest.form == "script":
                remember_recipe(run, manifest, Path(manifest.script), written=process.remembered)
        except ProbeError as error:
            self._not_remembered = f"{error.message}; {error.hint}"
        write_whole(run / MANIFEST_NAME, json.dumps(data, indent=1) + "\n")
        process.is_stale = False

    def _ended(self, process: _Process, script: Ended) -> Ended:
        """Return how a process ended; `script` is how the first one did.

        Its status is what the process that started it learnt. Where that one learnt nothing, a process that
        reported its end ended by itself, and one that did not was ended by a signal, or is still there.
        """
        if process.is_first:
            return script
        status, end = process.status, process.history.end
        if status is None and end:
            status = 0
        if status is None and process.not_followed:  # nobody says how it ended
            return replace(script, pid=process.pid, status=None, outcome="ok", ended_by=None)
        started = datetime.fromtimestamp(process.started).astimezone()
        until = end.get("time") or script.started.timestamp() + script.duration_s
        duration = max(until - process.started, 0.0)
        if status is None:
            return Ended(process.pid, None, "interrupted", script.ended_by, started, duration)
        signalled = signal_name(-status) if status < 0 else None
        outcome: Outcome = "failed" if status else "ok"
        if -status in INTERRUPTIONS:
            outcome = "interrupted"
        return Ended(process.pid, status, outcome, signalled, started, duration)

    def _dump_record(self, process: _Process, ended: Ended) -> DumpRecord:
        rows = []
        for one in self._of_dump():
            how = self._ended(one, ended)
            run = one.run
            name = None if run is None else run.name if run.parent == self._root / TREE else str(run)
            rows.append(
                DumpProcess(
                    one.pid, one.parent, one.rank, one.world_size, one.command, name,
                    len(one.history.graphs), how.outcome, how.status, how.ended_by, one.not_followed,
                )
            )  # fmt: skip
        return DumpRecord(self._id, process.pid, self._first.pid, tuple(rows))

    def _manifest(self, process: _Process, ended: Ended) -> Manifest:
        # Slow to import, and not needed before the script runs, which takes longer to import torch.
        from inductor_probe.machine.facts import (  # noqa: PLC0415
            NOT_RECORDED,
            is_secret,
            machine,
            variables,
            versions,
        )

        request, history = self._request, process.history
        dump = self._dump_record(process, ended)
        ended = self._ended(process, ended)
        return Manifest(
            command=self._first.command,
            script=request.script,
            scenario=Path(request.script).stem if request.form in ("script", "command") else request.script,
            form=request.form,
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
            environment=variables({**os.environ, **dict(request.variables)}),
            settings=request.child.settings,
            gpu=self._simulated_gpu(history.substitutes),
            variables=tuple(
                (name, NOT_RECORDED if is_secret(name, value) else value) for name, value in request.variables
            ),
            compile_s=history.end.get("compile_s"),
            flips=request.child.flips,
            flip_results=tuple(history.flip_results),
            dump=dump,
            baseline=request.baseline,
            failures=tuple(history.failures) if history.sees_failures and not process.not_followed else None,
        )

    def _simulated_gpu(self, substitutes: Sequence[Substitute]) -> SimulatedGpu | None:
        """Return the GPU that was simulated, if one was, and what stood in by now."""
        gpu = self._request.child.target
        if gpu is None:
            return None
        return SimulatedGpu(gpu.name, gpu.device, gpu.capability, tuple(dict.fromkeys(substitutes)), gpu)


def _run_of(process: _Process) -> Path:
    """Return the run of a process that has compiled something: `<run>/torchinductor/<graph>`."""
    return Path(next(iter(process.history.graphs))).parents[1]


@dataclass
class History:
    """What happened in a run. `end` holds the facts that the child wrote last; empty when it was killed."""

    graphs: dict[str, GraphRecord] = field(default_factory=dict)  # by folder
    graph_breaks: list[GraphBreak] = field(default_factory=list)
    limit_hits: list[LimitHit] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    end: Mapping[str, Any] = field(default_factory=dict)
    substitutes: list[Substitute] = field(default_factory=list)
    flip_results: list[FlipResult] = field(default_factory=list)
    failures: list[CompileFailure] = field(default_factory=list)
    guards: dict[str | None, tuple[str, ...]] = field(default_factory=dict)
    """Of the latest recompile with that compile id."""

    def add(self, event: Mapping[str, Any]) -> None:
        """Add the next event."""
        match event["event"]:
            case "graph":
                self.graphs[event["path"]] = self._graph(event)
            case "origins" | "became":
                self._add_to_graph(event)
            case "inputs":
                self._update(event["path"], inputs=tuple(map(_input_fact, event["inputs"])))
            case "constants":
                self._update(event["path"], constants=tuple(map(_constant_fact, event["constants"])))
            case "finished":
                self._update(event["path"], finished=True)
            case "log" if event["artifact"] == "graph_breaks":
                graph_break = read_graph_break(event["message"], event["compile_id"], event["error"])
                if graph_break not in self.graph_breaks:  # dynamo retraces a frame, and breaks again
                    self.graph_breaks.append(graph_break)
            case "log":
                self.guards[event["compile_id"]] = read_guards(event["message"])
            case "limit":
                self.limit_hits.append(read_limit_hit(event["message"]))
            case "note":
                self.notes.append(Note(event["code"], tuple(event["values"].items())))
            case "substitute" | "flip" | "failed":
                self._append(event)
            case "end":
                self.end = event

    def _add_to_graph(self, event: Mapping[str, Any]) -> None:
        """Add what torch shows of each subgraph by itself."""
        record, path = self.graphs.get(event["path"]), event["path"]
        if event["event"] == "became":
            became = tuple((name, tuple(nodes)) for name, nodes in event["became"].items())
            self._update(path, became=(*(record.became if record else ()), *became))
            return
        origins = [BufferOrigin(buffer, node, tuple(names)) for buffer, node, names in event["origins"]]
        self._update(path, origins=(*(record.origins if record else ()), *origins))

    @property
    def sees_failures(self) -> bool:
        """Whether all that failed was recorded, in whatever part of torch: else its own log has to do."""
        lost = (
            ("module", "torch._dynamo.convert_frame"), ("module", "torch._inductor.debug"),
            ("recorder", "frame_failed"), ("recorder", "graph_closed"),
        )  # fmt: skip
        return not any(value in lost for note in self.notes for value in note.values)

    def _add_failure(self, event: Mapping[str, Any]) -> None:
        """Add a failed compile; the layers of torch that its exception passes each report it."""
        path, compile_id = event["path"], event["compile_id"]
        failure = failure_of(
            event["raised"],
            event["text"],
            [Frame(file, function) for file, function in event["frames"]],
            stack=event.get("stack", ""),
            compile_id=compile_id,
            graph=Path(path).name if path else None,
            function=event["function"],
            node=event.get("node"),
            backward=path is not None and "_backward_" in Path(path).name,
            suppressed=event["suppressed"],
        )
        if path is None and self.failures:
            last = self.failures[-1]
            is_same = (last.exception, last.message) == (failure.exception, failure.message)
            if is_same and compile_id in (None, last.compile_id):
                self.failures[-1] = replace(last, function=last.function or failure.function)
                return
        if failure.stage == "guards":  # they are made when all of the frame's graphs are compiled
            of_frame = [graph.name for graph in self.graphs.values() if graph.compile_id == compile_id]
            failure = replace(failure, graph=of_frame[-1] if of_frame else None)
        if failure not in self.failures:  # a backward is compiled again when it is called
            self.failures.append(failure)

    def _append(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "flip":
            self.flip_results.append(from_json(FlipResult, event["result"]))
        elif event["event"] == "failed":
            self._add_failure(event)
        else:
            self.substitutes.append(event["code"])

    def _update(self, path: str, **changes: Any) -> None:
        if path in self.graphs:
            self.graphs[path] = replace(self.graphs[path], **changes)
        else:
            values = (("graph", Path(path).name), ("facts", ", ".join(changes)))
            self.notes.append(Note("graph-not-opened", values))

    def _graph(self, event: Mapping[str, Any]) -> GraphRecord:
        """Return the record of a graph whose compile begins."""
        name = Path(event["path"]).name
        compile_id = event["compile_id"]
        why: Literal["first", "recompile", "backward"] | None = None
        if "_backward_" in name:
            why = "backward"
        elif compile_id is not None:
            # `1/0` is the first compile of frame 1, `1/2` its second recompile.
            why = "first" if compile_id.rpartition("/")[2] == "0" else "recompile"
        guards = self.guards.get(compile_id, ()) if why == "recompile" else ()
        return GraphRecord(
            *(name, compile_id, why, guards, event["case"]),
            finished=False,
            allows_tf32=event.get("allows_tf32"),
            overridden=tuple((setting, value) for setting, value in event.get("overridden", ())),
        )


@dataclass
class _Process:
    """A process that is followed. Of the first one `pid` is known when it has been started.

    `rank` and `world_size` are what the launcher told it, until it joins a process group; `status` is what
    the process that started it learnt.
    """

    folder: Path
    events: EventReader
    history: History = field(default_factory=History)
    is_first: bool = False
    pid: int = -1
    parent: int = -1
    command: tuple[str, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    is_group_member: bool = False
    started: float = 0.0
    status: int | None = None
    run: Path | None = None
    remembered: set[str] = field(default_factory=set)
    has_run: bool = False
    is_stale: bool = False
    reports: bool = False
    not_followed: NotFollowed | None = None

    def add(self, event: Mapping[str, Any]) -> None:
        """Add an event that is not about what was compiled."""
        if event["event"] == "process":
            self.pid, self.parent = event["pid"], event["parent"]
            self.command = tuple(event["command"])
            self.started = event["time"]
        if event["event"] == "rank":
            self.is_group_member = True
        self.rank = event.get("rank", self.rank)
        self.world_size = event.get("world_size", self.world_size)

    @property
    def order(self) -> tuple[bool, bool, float, float]:
        """Sort key: what compiled something, the script itself, by rank, by age."""
        rank = float("inf") if self.rank is None else self.rank
        return (not self.history.graphs, not self.is_first, rank, self.started)


def _input_fact(fact: Mapping[str, Any]) -> InputFact:
    lists = {key: tuple(fact[key]) for key in ("size", "stride") if key in fact}
    return InputFact(**{**fact, **lists})


def _constant_fact(fact: Mapping[str, Any]) -> ConstantFact:
    lists = {key: tuple(fact[key]) for key in ("size", "stride", "attributes", "arguments") if key in fact}
    return ConstantFact(**{**fact, **lists})


def read_guards(message: str) -> tuple[str, ...]:
    """Return the guards that a recompile message names, each with the compile whose guard it was."""
    # Dynamo pads a guard to a column before the source line that it stands for.
    return tuple(re.sub(r"\s{2,}", "  ", guard) for guard in _GUARD.findall(message))


def read_graph_break(message: str, compile_id: str | None, error: str | None) -> GraphBreak:
    """Return the graph break that a message of the log `graph_breaks` is about.

    Args:
        compile_id: of the compile in which it happened.
        error: text of the exception that came with it, where the whole frame was given up.
    """
    where = _BREAK_AT.search(message)
    reason = _BREAK_REASON.search(message)
    frames = _FRAME.findall(message)
    place = where[1] if where else ":".join(frames[-1]) if frames else None
    return GraphBreak(explained(reason[1] if reason else error or message), place, compile_id)


def read_limit_hit(message: str) -> LimitHit:
    """Return which function hit the recompile limit, from dynamo's warning."""
    match = _LIMIT.search(message)
    if match is None:  # another torch words it differently: its words are the reason
        return LimitHit(function="?", where=None, reason=message)
    guards = read_guards(f"- {match['reason']}")
    return LimitHit(match["function"], match["where"], guards[0] if guards else match["reason"])
