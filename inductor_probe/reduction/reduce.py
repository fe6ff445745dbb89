"""`probe reduce`: the smallest program that still shows it."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.errors import NotFoundError, ProbeError, StoppedError, near_names
from inductor_probe.executors.child import Event
from inductor_probe.files import seen_from
from inductor_probe.measuring.script_process import OwnChildError, OwnProgram, ScriptProcess
from inductor_probe.model.output import Output
from inductor_probe.model.reduction import ReduceOutput, TriedGraph
from inductor_probe.options.programs import ReduceOptions
from inductor_probe.options.verb import Progress, several, takes
from inductor_probe.reduction.asking import CHILD, PATIENCE_S, asked
from inductor_probe.reduction.child import ReducingOptions
from inductor_probe.reduction.predicates import Shown, predicate_of
from inductor_probe.report import shown as views
from inductor_probe.report.document import Document
from inductor_probe.report.pages.reduce import reduce_page

if TYPE_CHECKING:
    from inductor_probe.api.session import Graph, Run

_ASKED = "asked.json"
_SEARCH = ".reduction"
"""Of the folder of a search, beside its target."""
_VALUES = "VALUES["
_HEAD = "Reduced by probe reduce from "
_OF_THREE = 3


class Reduction(views.Shown, Struct, frozen=True):
    """The program that is left: see `ReduceOutput`."""

    record: ReduceOutput

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return self.record

    @property
    def document(self) -> Document:
        """The program, and what it shows."""
        return reduce_page(self.record)


@takes(ReduceOptions)
def reduce(options: ReduceOptions, progress: Progress) -> Reduction:
    """Reduce a graph of a script while predicates hold, and write it as a script of its own.

    The best so far is in the file from the first step on. What was asked stands in the folder
    `FILE.reduction` until the search has come to its end, for `resume`.

    Raises:
        ProbeError: nothing is to be kept, or what means nothing; the script cannot be run again; says why.
        StoppedError: it was interrupted.
    """
    keep = tuple(several(options.keep))
    if not keep:
        raise ProbeError("nothing is to be kept", "for example --keep wrong, or --keep 'expect: --kernels 3'")
    predicates = [predicate_of(text) for text in keep]
    program, graph = program_of(options)
    target = (options.output or Path(f"{program.script.stem}_small.py")).absolute()
    _check_target(target, program.script)
    begin = time.monotonic()
    folder = _folder(target, options, program, keep)
    script = seen_from(program.script, Path.cwd())
    request = ReducingOptions(
        keep=keep,
        folder=str(folder),
        target=str(target),
        head=f"{_HEAD}{script.name}: --keep {' --keep '.join(map(repr, keep))}".replace('"', "'"),
        budget=options.budget,
        jobs=options.jobs or len(os.sched_getaffinity(0)),
        graph=options.graph or graph,
        settings=program.settings,
        imports=tuple(several(options.imports)),
    )
    events = _searched(program, request, progress, target)
    by_name = {event["event"]: event for event in events}
    graphs = tuple(
        TriedGraph(event["name"], event["nodes"], event["holds"], tuple(event["says"]))
        for event in events
        if event["event"] == "graph"
    )
    captured = by_name.get("captured", {})
    ending, names = captured.get("ending", ""), captured.get("graphs", [])
    if "reduced" not in by_name:
        shutil.rmtree(folder)
        if request.graph and names and not graphs:
            raise NotFoundError(
                f"{script} has no graph {request.graph}; it has {', '.join(names)}",
                near_names(request.graph, names),
            )
        record = ReduceOutput(keep=keep, holds=False, script=script, graphs=graphs, ending=ending)
        return Reduction(record)
    found = by_name["reduced"]
    times = _OF_THREE if any(one.kind == "slow" for one in predicates) else 1
    request = replace(request, failure=tuple(found["failure"]), causes=tuple(found["causes"]))
    shown, back = _final(program, request, times=times, progress=progress)
    text = target.read_text()
    if _VALUES not in text:
        target.with_suffix(".pt").unlink(missing_ok=True)
    if not found["over"]:
        shutil.rmtree(folder)
    return Reduction(
        ReduceOutput(
            keep=keep,
            holds=shown.holds,
            script=script,
            file=seen_from(target, Path.cwd()),
            text=text,
            graph=found["graph"],
            graphs=graphs,
            nodes=found["of"],
            left=_calls(text),
            asked=found["asked"],
            known=found["known"],
            says=shown.says,
            over_budget=found["over"],
            back=back,
            ending=ending,
            seconds=time.monotonic() - begin,
        )
    )


def program_of(options: ReduceOptions) -> tuple[OwnProgram, str]:
    """Return how the script is run, and the compile id of the graph that was named, if one was.

    Raises:
        ProbeError: the script of a run cannot be run again, or may not.
    """
    from inductor_probe.api.meaning import meaning_of
    from inductor_probe.api.session import Graph, Run
    from inductor_probe.api.verbs import open_target
    from inductor_probe.capture.scripts import script_arguments
    from inductor_probe.capture.torch_settings import is_setting

    which: Run | Graph
    if isinstance(options.program, (Run, Graph)):
        which = options.program
    elif options.program is None:
        which = open_target(None)
    else:
        of_script = bool(options.cases or options.knobs or options.env or options.args)
        meaning = meaning_of(str(options.program), Path.cwd(), of_script=of_script)
        if meaning.script is not None:
            settings = {name: value for name, value in options.knobs.items() if is_setting(name)}
            knobs = {name: value for name, value in options.knobs.items() if name not in settings}
            arguments = script_arguments(meaning.script, options.args, options.cases, knobs)
            program = OwnProgram(
                script=meaning.script, arguments=tuple(arguments), settings=tuple(settings.items()),
                variables=options.env, limit_s=PATIENCE_S,
            )  # fmt: skip
            return program, ""
        which = open_target(meaning.target)
    return _of_run(which, trust=options.trust)


def _of_run(which: Run | Graph, *, trust: bool) -> tuple[OwnProgram, str]:
    """Return how the script of a run is run again, if it may be: by the gate of `probe whatif RUN`."""
    from inductor_probe.api.own_call import program_of
    from inductor_probe.api.session import Graph
    from inductor_probe.model.own_call import NoOwnCall
    from inductor_probe.report.words.own_call import why_no_own_call

    run = which.run if isinstance(which, Graph) else which
    program = program_of(run, trust=trust, may_fail=True)
    if isinstance(program, NoOwnCall):
        raise ProbeError(
            f"{run.path.name} cannot be reduced: {why_no_own_call(program)}",
            "probe reduce SCRIPT runs the script",
        )
    record = run.manifest.graph(which.name) if isinstance(which, Graph) and run.manifest else None
    return program, (record.compile_id or "") if record else ""


def _check_target(target: Path, script: Path) -> None:
    """Refuse to overwrite what was not written here."""
    if target == script.absolute():
        raise ProbeError(f"{target.name} is the script itself", "name another file with -o")
    if not target.parent.is_dir():
        raise ProbeError(f"there is no folder {target.parent}", "make it, or name another file with -o")
    if target.is_dir():
        raise ProbeError(f"{target} is a folder", "name a file with -o")
    is_ours = target.exists() and target.read_text(errors="replace").startswith(f'"""{_HEAD}')
    beside = target.with_suffix(".pt")
    for file in (target, beside):
        if file.exists() and not is_ours:
            raise ProbeError(f"{file.name} is there, and not of probe reduce", "name another file with -o")
    folder = target.with_suffix(_SEARCH)
    if folder.exists() and not (folder / _ASKED).exists():
        raise ProbeError(f"{folder.name} is there, and not of probe reduce", "name another file with -o")


def _folder(target: Path, options: ReduceOptions, program: OwnProgram, keep: tuple[str, ...]) -> Path:
    """Return the folder for what is asked; of an interrupted search with `resume`.

    Raises:
        ProbeError: there is nothing to go on with, or it was another search.
    """
    folder = target.with_suffix(_SEARCH)
    what = (program.arguments, keep, program.settings, options.graph, tuple(several(options.imports)))
    asked = json.dumps([str(program.script), *what, sorted(program.variables.items())])
    if options.resume:
        if not (folder / _ASKED).exists():
            raise ProbeError(f"no search for {target.name} was interrupted", "leave out --resume")
        if (folder / _ASKED).read_text() != asked:
            raise ProbeError(
                f"the search for {target.name} was of another script or predicate", "leave out --resume"
            )
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / _ASKED).write_text(asked)
    return folder


def _searched(program: OwnProgram, request: ReducingOptions, progress: Progress, target: Path) -> list[Event]:
    """Let a child search; say how far it is.

    Raises:
        StoppedError: it was interrupted. ProbeError: the child ended otherwise.
    """
    progress(f"running {program.script.name}")
    events: list[Event] = []
    with ScriptProcess(program, CHILD, lambda _: request, patience=request.budget + PATIENCE_S) as process:
        try:
            for event in process.events():
                events.append(event)
                if event["event"] == "better":
                    progress(
                        f"{event['lines']} calls, {event['inputs']} inputs are left ({event['phase']}, "
                        f"{event['asked']} tried)"
                    )
        except OwnChildError as error:
            raise ProbeError(f"the search ended: {error.message or error.code}") from error
        except KeyboardInterrupt:
            if not any(event["event"] == "better" for event in events):
                raise
            raise StoppedError(
                "interrupted", f"{seen_from(target, Path.cwd())} is the smallest so far; --resume goes on"
            ) from None
    return events


def _final(
    program: OwnProgram, request: ReducingOptions, *, times: int, progress: Progress
) -> tuple[Shown, int]:
    """Ask the file alone, in fresh processes; where it does not show it, the step before, and so on.

    Returns:
        what the file shows, and how many steps were taken back.
    """
    target, folder, shown = Path(request.target), Path(request.folder), Shown(False)
    alone = replace(program, script=target, arguments=(), settings=(), variables={})
    final = replace(request, final=True, settings=())
    for back, step in enumerate(_steps(folder)):
        if back:
            shutil.copyfile(step, target)
        for number in range(times):
            progress(f"asking {target.name} alone ({number + 1} of {times})")
            if not (shown := asked(alone, final)).holds:
                break
        else:
            return shown, back
    return shown, len([*_steps(folder)])


def _steps(folder: Path) -> Iterator[Path]:
    return iter(sorted(folder.glob("step-*.py"), reverse=True))


def _calls(text: str) -> int:
    """Return how many lines of the function call torch."""
    body = text.partition("def function(")[2].partition("return ")[0]
    return len(body.strip().splitlines()) - 1
