"""A run as the baseline of others: how it was made, and whether what is made anew can be compared with it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field

from inductor_probe.api.on_disk import GraphOnDisk, RunOnDisk
from inductor_probe.errors import ProbeError, RunFailedError
from inductor_probe.model.debug_dir import DebugDir
from inductor_probe.model.flip import Flip, instead
from inductor_probe.model.gpu_target import GpuTarget
from inductor_probe.model.whatif import Candidate
from inductor_probe.report.units import counted
from inductor_probe.report.words.runs import how_it_ended

AnyRun = TypeVar("AnyRun", bound=RunOnDisk)
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_THREADS = "TORCHINDUCTOR_COMPILE_THREADS"
_FACTS = ("cpu", "vector_bits", "host")


class Recipe(Struct, frozen=True, kw_only=True):
    """What `probe dump` is asked for. `knobs` are those of a scenario and settings of torch.

    `save_inputs` holds for the baseline alone; `baseline` is its folder's name, once it is there. `caches` is
    a folder for compiled kernels, so that one whose text was compiled before is not compiled again; None for
    empty ones each time.
    """

    script: Path
    args: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    knobs: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    flips: tuple[Flip, ...] = ()
    target: str | GpuTarget | None = None
    save_inputs: bool = False
    out: Path | None = None
    baseline: str | None = None
    caches: Path | None = None

    def check(self, candidates: Sequence[Candidate]) -> None:
        """Refuse settings and knobs of candidates that none of the dumps could be made with.

        Raises:
            ProbeError: torch or the scenario has none of that name, or takes no such value.
        """
        from inductor_probe import capture

        each = [{**self.knobs, **dict((*one.knobs, *one.settings))} for one in candidates]
        capture.check_knobs(self.script, self.args, self.cases, each)

    def dump(
        self,
        kind: Callable[[DebugDir, str | None], AnyRun],
        candidate: Candidate | None = None,
        *,
        output: Path | None = None,
        beside_others: bool = False,
    ) -> AnyRun:
        """Dump the script with what a candidate changes.

        Args:
            kind: `Run`, the class of what is returned.
            output: a file for what the script prints; None leaves it on standard error.
            beside_others: other dumps have the other cores: inductor compiles kernels in the process of the
                script, without a pool of workers, each of which would import torch first.

        Raises:
            ProbeError: an unknown setting, a knob that the scenario does not have.
        """
        from inductor_probe import capture
        from inductor_probe.reader.debug_dir import read_run

        other = candidate or Candidate()
        settings = {} if not beside_others or _THREADS in os.environ else {_THREADS: "1"}
        if self.caches is not None:  # of graphs they hold none: each is lowered anew
            settings |= capture.kernel_caches(self.caches)
        result = capture.dump(
            self.script,
            args=self.args,
            cases=self.cases,
            knobs={**self.knobs, **dict((*other.knobs, *other.settings))},
            env={**self.variables, **dict(other.variables)},
            flips=instead(self.flips, other.flips),
            target=self.target,
            save_inputs=self.save_inputs and not other.words,  # both are timed on inputs of A
            out=self.out,
            stdout_to_stderr=True,
            program=capture.Program(settings={**settings, **dict(other.variables)}),
            output=output,
            baseline=self.baseline,
        )
        return kind(read_run(result.run), result.not_remembered)


class DumpInterruptedError(KeyboardInterrupt):
    """Ctrl-C, or another signal, ended the script of a dump. `run` is what it left."""

    def __init__(self, run: RunOnDisk) -> None:
        super().__init__()
        self.run = run


class DumpFailedError(RunFailedError):
    """The script of a dump did not end well. `run` is what it left, `how` how it ended."""

    def __init__(self, run: RunOnDisk, how: str, candidate: Candidate | None) -> None:
        change = f"with {candidate}" if candidate else "when it was dumped as it is"
        script = run.manifest.script if run.manifest else "the script"
        super().__init__(
            f"{script} {how} {change}; its message is above", f"what was dumped by then is in {run.path}"
        )
        self.run, self.how = run, how


def dumped_to_the_end(
    recipe: Recipe,
    kind: Callable[[DebugDir, str | None], AnyRun],
    candidate: Candidate | None = None,
    *,
    output: Path | None = None,
    beside_others: bool = False,
) -> AnyRun:
    """Return a new run whose script came to its end: of the baseline, or of a candidate; see `Recipe.dump`.

    Raises:
        ProbeError: as `Recipe.dump`. DumpFailedError: the script did not end well.
        DumpInterruptedError: it was interrupted.
    """
    run = recipe.dump(kind, candidate, output=output, beside_others=beside_others)
    ending = run.manifest.of_script() if run.manifest else None
    if ending is not None and ending.outcome == "interrupted":
        raise DumpInterruptedError(run)
    if ending is not None and ending.outcome != "ok":
        raise DumpFailedError(run, how_it_ended(ending), candidate)
    return run


def recipe_of(
    run: RunOnDisk, out: Path | None = None, *, trust: bool = False, may_fail: bool = False
) -> Recipe:
    """Return how a run was made, by its manifest; `out` is for runs that are made from it.

    `may_fail`: its script may have ended with an exception.

    Raises:
        ProbeError: `probe dump` did not make it, or its script did not end well; nothing shows that it was
            made here so, and there is no `trust`.
        NotFoundError: its script is not where it was.
    """
    from inductor_probe.api.trust import script_to_run
    from inductor_probe.discovery.run_facts import maker
    from inductor_probe.machine.facts import NOT_RECORDED

    manifest = run.manifest
    if manifest is None:
        raise ProbeError(
            f"{run.path} has no manifest: it is not known which script made it",
            "name the script: probe whatif SCRIPT --set NAME=VALUE",
        )
    if manifest.form != "script":
        raise ProbeError(
            f"{run.path} is of the {manifest.form} {manifest.script}, and only scripts are dumped again",
            "name a script: probe whatif SCRIPT --set NAME=VALUE",
        )
    if (pid := maker(run.debug_dir)) is not None:
        raise ProbeError(f"process {pid}, which makes {run.path}, is still there", "wait for its end")
    if manifest.of_script().outcome not in (("ok", "failed") if may_fail else ("ok",)):
        raise ProbeError(
            f"{manifest.script} did not end well in {run.path}", "dump it again, or name the script"
        )
    words = [word for case in manifest.cases for word in ("--case", case)]
    words += [word for name, value in manifest.knobs for word in ("--set", f"{name}={value}")]
    secret = [name for name, value in manifest.variables if value == NOT_RECORDED]
    if secret:
        raise ProbeError(
            f"{run.path} was dumped with --env {secret[0]}, whose value was not recorded: it may be a secret",
            "name the script, and give the variable again",
        )
    return Recipe(
        script=script_to_run(run, manifest, trust=trust),
        args=tuple(manifest.command[2 + len(words) :]),
        cases=manifest.cases,
        knobs=dict((*manifest.knobs, *manifest.settings)),
        variables=dict(manifest.variables),
        flips=manifest.flips,
        target=(manifest.gpu.figures or manifest.gpu.target) if manifest.gpu else None,
        out=out,
    )


def why_not_as_it_is(run: RunOnDisk, recipe: Recipe) -> str | None:
    """Return why a run is to be dumped again to be compared with a new one; None if it is as a new one is."""
    from inductor_probe.discovery.archive import archive_of
    from inductor_probe.machine.facts import installed, machine, variables
    from inductor_probe.store.made_here import script_changed

    manifest = run.manifest
    if manifest is None:
        return "it has no manifest"
    if archive_of(run.path) is not None:
        return "it is in an archive"
    torch, here = dict(manifest.versions).get("torch", ""), installed("torch") or ""
    if torch.partition("+")[0] != here.partition("+")[0]:
        return f"it was dumped with torch {torch}, and this is torch {here}"
    before, now = dict(manifest.machine), dict(machine({}))
    for fact in _FACTS:
        if fact in before and before[fact] != now.get(fact):
            return f"it was dumped on another machine ({fact} {before[fact]}, here {now.get(fact)})"
    present = dict(variables({**os.environ, **recipe.variables}))
    past = dict(manifest.environment if manifest.environment is not None else present.items())
    if others := [name for name in {**past, **present} if past.get(name) != present.get(name)]:
        name = others[0]
        return f"{name} was {past.get(name, 'not set')}, and is {present.get(name, 'not set')} here"
    changed = script_changed(run.path, recipe.script)
    if changed is None:
        changed = _time(manifest.started) < recipe.script.stat().st_mtime
    if changed:
        return f"{recipe.script} was changed since"
    return None


def _time(text: str) -> float:
    """Return when a run was started, at the end of the second; never where it does not say."""
    try:
        return datetime.fromisoformat(text).timestamp() + 1
    except ValueError:
        return float("-inf")


def other_program(a: RunOnDisk, b: RunOnDisk) -> str | None:
    """Return how what inductor was given differs between two runs of a script; None where it is the same.

    It is given FX graphs: they are compared as they are before its passes, in any order, with the types of
    their inputs.
    """
    left = list(b.graphs)
    alone = []
    for graph in a.graphs:
        partner = next((other for other in left if _given(graph) == _given(other)), None)
        if partner is None:
            alone.append(graph)
        else:
            left.remove(partner)
    if len(a.graphs) != len(b.graphs):
        return f"it compiled {counted(len(a.graphs), 'graph')}, and then {len(b.graphs)}"
    for graph, other in zip(alone, left, strict=True):
        for node, others in zip_longest(_given(graph), _given(other), fillvalue=("nothing",)):
            if node != others:
                return f"{graph.name} had {' '.join(node)}, and then {' '.join(others)}"
    return None


def _given(graph: GraphOnDisk) -> list[tuple[str, ...]]:
    """Return the nodes of the FX graph that inductor was given, each as words."""
    fx = graph.compiled.fx_before or graph.compiled.fx
    inputs = [("the input", node.name, f"of type {node.type}") for node in (fx.inputs if fx else ())]
    nodes = (f"{node.target}({node.arguments})" for node in (fx.nodes if fx else ()))
    return [*inputs, *((_ADDRESS.sub("0x", text),) for text in nodes)]


def check_same_program(
    a: RunOnDisk, b: RunOnDisk, candidate: Candidate, again: Callable[[], RunOnDisk]
) -> str | None:
    """Refuse a script that compiles something else each time; return how a candidate changes the program.

    A flip turns a decision about what inductor is given, and leaves that as it is. A setting or a variable
    may change it, so that A is made again to tell; a knob is there to change it, and says nothing.

    Args:
        again: dumps A once more.

    Raises:
        ProbeError: it was given something else though nothing asked for that.
    """
    if candidate.knobs or (how := other_program(a, b)) is None:
        return None
    other = b
    if candidate.settings or candidate.variables:
        other = again()
        if (changed := other_program(a, other)) is None:
            return how
        how = changed
    script = a.manifest.script if a.manifest else a.path
    raise ProbeError(
        f"{script} does not compile the same program each time, so nothing can be compared: {how}",
        "give what is random in it a seed, and sizes that are fixed: probe diff "
        f"{a.path.name} {other.path.name} shows all that differs",
    )


def as_it_is(run: RunOnDisk, *, trust: bool = False) -> Recipe:
    """Return how a run was made, if a new run can be compared with it.

    Raises:
        ProbeError: as `recipe_of`; or it is not as a new one would be, and says why.
    """
    recipe = recipe_of(run, trust=trust)
    if why := why_not_as_it_is(run, recipe):
        raise ProbeError(f"{run.path} cannot be compared with a new run: {why}", "dump it again here")
    return recipe
