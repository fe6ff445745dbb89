"""Remarks about runs and about the compiles of their graphs, from what `probe dump` recorded of them.

Codes and their numbers, in order; the subject is the run unless said otherwise:

- `unfinished-compile` of a graph: none. `hazard`.
- `compile-failed` of a graph, of the run where it had none by then: see `failed_compile`. `hazard`.
- `cut-short`: process (`rank1`; None for the only one of a dump), and how it ended (`Manifest.ending`),
  where a signal ended or interrupted it. `hazard`.
- `still-made`: pid, of the process that makes the run, or of its script. `analysis`.
- `setting-overridden`: setting, value that it was given, present: the one that it had as graphs were
  compiled, graphs (names). `hazard`.
- `recompile-limit`: function, where it is if known. `missed`.
- `graph-break`: reason, as dynamo gives it; times; where if known. `missed`.
- `simulated-gpu`: device, target (`SimulatedGpu`). `analysis`.
- what could not be recorded, with the codes and values of `Note`. `analysis`.
- why a run is empty: `compile-failed`, or else, each `analysis`: `empty-graphs`, `no-dump`,
  `ended-before-compile` (how the script ended), `other-backend` (frames that dynamo handed over),
  `ran-eagerly`, `nothing-compiled`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.discovery.dump_processes import name_of_process, runs_of_dump
from inductor_probe.discovery.run_facts import maker
from inductor_probe.model.debug_dir import CompiledGraph, DebugDir
from inductor_probe.model.manifest import CompileFailure
from inductor_probe.model.record import collected
from inductor_probe.model.remark import (
    Knowledge,
    Number,
    Remark,
    RemarkCode,
    RemarkKind,
    Subject,
    failed_compile,
    known_numbers,
)
from inductor_probe.reader.logs.trace import failures_of


def run_remarks(run: DebugDir, compiled: bool) -> tuple[Remark, ...]:
    """Return what was recorded of a run as a whole.

    How its script ended is a remark where something was `compiled`; else it is why the run is empty.
    """
    manifest = run.manifest
    names = {folder.name for folder in run.graphs}
    remarks = [remark for remark in failed_compiles(run) if remark.subject.name not in names]
    if manifest is None:
        return tuple(remarks)
    if compiled and (ending := cut_short(run)):
        remarks.append(ending)
    raised = {one.function for one in manifest.failures or () if one.raised == "FailOnRecompileLimitHit"}
    for hit in manifest.limit_hits:
        if hit.function in raised:  # it did not go on eagerly
            continue
        place = ("where", hit.where or None)
        remarks.append(_remark(run.name, "recompile-limit", "missed", ("function", hit.function), place))
    remarks += overridden_settings(run)
    if gpu := manifest.gpu:
        named = (("device", gpu.device), ("target", gpu.target))
        remarks.append(_remark(run.name, "simulated-gpu", "analysis", *named))
    breaks = Counter((broken.where, broken.reason.splitlines()[0]) for broken in manifest.graph_breaks)
    for (where, reason), times in breaks.items():
        numbers = (("reason", reason), ("times", times), ("where", where or None))
        remarks.append(_remark(run.name, "graph-break", "missed", *numbers))
    remarks += [_remark(run.name, note.code, "analysis", *note.values) for note in manifest.notes]
    return tuple(remarks)


def overridden_settings(run: DebugDir) -> Iterator[Remark]:
    """Yield which settings that a dump was made with were not in force as graphs were compiled."""
    manifest = run.manifest
    asked = dict((*manifest.knobs, *manifest.settings)) if manifest else {}
    graphs = collected(
        (pair, graph.name) for graph in (manifest.graphs if manifest else ()) for pair in graph.overridden
    )
    for (setting, present), names in graphs.items():
        numbers = (("setting", setting), ("value", asked.get(setting)), ("present", present))
        yield _remark(run.name, "setting-overridden", "hazard", *numbers, ("graphs", names))


def failed_compiles(run: DebugDir) -> tuple[Remark, ...]:
    """Return which compiles failed, in the order in which they did."""
    process = name_of_process(run) or None if len(runs_of_dump(run)) > 1 else None
    return tuple(failed_compile(one, run.name, process) for one in failures_of(run.path, run.manifest))


def failed_recorders(run: DebugDir) -> tuple[Remark, ...]:
    """Return which recorders failed inside of torch while the run was dumped: what they record is missing."""
    notes = run.manifest.notes if run.manifest else ()
    return tuple(
        _remark(run.name, note.code, "analysis", *note.values)
        for note in notes
        if note.code == "recorder-failed"
    )


def cut_short(run: DebugDir) -> Remark | None:
    """Return which signal ended or interrupted the process that a run is of, if one did; or that it goes on.

    None of a process that its script ended when it had done its work.
    """
    manifest = run.manifest
    if manifest is None or (manifest.outcome != "interrupted" and (manifest.exit_status or 0) >= 0):
        return None
    if goes_on := still_made(run):
        return goes_on
    dump = manifest.dump
    if dump and dump.process and dump.dismissed(dump.process):
        return None
    process = ("process", name_of_process(run) or None)
    return _remark(run.name, "cut-short", "hazard", process, *manifest.ending)


def still_made(run: DebugDir) -> Remark | None:
    """Return that a run is still made: its manifest is that of one that was cut short until then."""
    pid = maker(run) if run.manifest else None
    return None if pid is None else _remark(run.name, "still-made", "analysis", ("pid", pid))


def unfinished(graph: CompiledGraph) -> Iterator[Remark]:
    """Yield what the compile of a graph failed with, or else a remark where it did not finish."""
    subject = Subject("graph", graph.name)
    for failure in graph.failures:
        yield replace(failed_compile(_with_line(failure, graph), ""), subject=subject)
    if graph.record and not graph.record.finished and not graph.failures:
        yield Remark("unfinished-compile", "hazard", subject, (), knowledge="recorded")


def never_finished(run: DebugDir) -> Iterator[Remark]:
    """Yield that a compile did not finish, of those that no exception is known of, unless it goes on."""
    if run.manifest is None or still_made(run):
        return
    failed = {remark.subject.name for remark in failed_compiles(run)}
    for graph in run.manifest.graphs:
        if not graph.finished and graph.name not in failed:
            subject = Subject("graph", graph.name)
            yield Remark("unfinished-compile", "hazard", subject, (), knowledge="recorded")


def _with_line(failure: CompileFailure, graph: CompiledGraph) -> CompileFailure:
    """Add the line of the user's that a kernel is made from, if it is only one: compilers know of none."""
    rows = kernel_rows(graph) if failure.where is None and failure.node else ()
    sources = next((row.sources for row in rows if row.name == failure.node), ())
    return replace(failure, where=str(sources[0]), line=sources[0].code) if len(sources) == 1 else failure


def added_code(graph: CompiledGraph) -> Iterator[Remark]:
    """Yield a remark where somebody added code of his own to `output_code.py`."""
    if graph.code is None or not graph.code.added:
        return
    spans = graph.code.added
    numbers = (
        ("lines", len({line for span in spans for line in range(span.first, span.last + 1)})),
        ("first", f"in line {spans[0].first}"),
    )
    subject = Subject("graph", graph.name)
    yield Remark("added-code", "analysis", subject, numbers, evidence=spans, knowledge="inferred")


_OF_NOTEBOOK: Mapping[str, RemarkCode] = {"recording": "compiled-before", "function": "no-frame"}


def why_empty(run: DebugDir) -> Remark:
    """Return why nothing was dumped, as far as the manifest shows."""
    manifest = run.manifest
    dump = runs_of_dump(run)  # what stands for a dump of several processes stands for what each of them did
    failed = [
        remark for one in (dump if dump[0].path == run.path else [run]) for remark in failed_compiles(one)
    ]
    if failed:
        return failed[0]
    if run.empty_graphs:
        return _remark(run.name, "empty-graphs", "analysis", knowledge="read")
    if manifest is None:
        return _remark(run.name, "no-dump", "analysis", knowledge="inferred")
    if goes_on := still_made(run):
        return goes_on
    if manifest.outcome != "ok":
        return _remark(run.name, "ended-before-compile", "analysis", *manifest.ending)
    if manifest.dump and (unseen := [one for one in manifest.dump.processes if one.not_followed]):
        names = ", ".join(" ".join(one.command) for one in unseen[:2])
        numbers = (("others", len(unseen)), ("names", names), ("why", unseen[0].not_followed))
        return _remark(run.name, "none-followed-compiled", "hazard", *numbers)
    manifests = [one.manifest for one in dump if one.manifest] if dump[0].path == run.path else [manifest]
    if frames := sum(one.compiled_frames or 0 for one in manifests):
        return _remark(run.name, "other-backend", "analysis", ("frames", frames), knowledge="inferred")
    if any(one.limit_hits or one.graph_breaks for one in manifests):
        return _remark(run.name, "ran-eagerly", "analysis")
    code = _OF_NOTEBOOK.get(manifest.form, "nothing-compiled")
    return _remark(run.name, code, "analysis", knowledge="inferred")


def _remark(
    run: str,
    code: RemarkCode,
    kind: RemarkKind,
    *numbers: tuple[str, Number | None],
    knowledge: Knowledge = "recorded",
) -> Remark:
    return Remark(code, kind, Subject("run", run), known_numbers(numbers), knowledge=knowledge)
