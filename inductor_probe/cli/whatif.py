"""The verb that compiles a program otherwise, once or in many ways, and holds that against how it is."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.api.baseline import (
    DumpFailedError,
    DumpInterruptedError,
    Recipe,
    check_same_program,
    dumped_to_the_end,
    recipe_of,
    why_not_as_it_is,
)
from inductor_probe.api.candidate import candidate_of, with_meaning
from inductor_probe.api.candidates import try_candidates
from inductor_probe.api.trials import Trials
from inductor_probe.api.trust import WITHOUT_GPU, why_not_launched
from inductor_probe.cli.alternatives import WithAlternatives, alternatives
from inductor_probe.cli.completion import CASE, SCRIPT
from inductor_probe.cli.flips import flip_options
from inductor_probe.cli.parameters import command, percent, seconds, shared_option
from inductor_probe.cli.screen import (
    OutputFormat,
    give,
    progress_line,
    relative,
    say,
    say_warning,
    warn,
)
from inductor_probe.cli.scripts import SETTINGS, SIMULATED, VARIABLES
from inductor_probe.errors import ExitCode, ProbeError, StoppedError
from inductor_probe.model.bench import INPUTS, BenchSettings
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.flip import Flip, at_once
from inductor_probe.model.own_call import OwnPair
from inductor_probe.model.whatif import Candidate
from inductor_probe.report.pages.whatif import whatif_sentence
from inductor_probe.report.units import counted, one_word

_ONE, _ALL, _MARGIN = "10s", "5m", "1%"


@command(
    click.argument("words", nargs=-1, metavar="[SCRIPT|RUN [-- ARGS]]", type=SCRIPT),
    click.option(
        "--runs", nargs=2, metavar="A B", help="Two runs that are there already; nothing is dumped."
    ),
    click.option("--case", "cases", multiple=True, type=CASE, help="A case of the scenario."),
    SETTINGS,
    VARIABLES,
    SIMULATED,
    flip_options,
    click.option(
        "--or", "others", is_flag=True, callback=alternatives,
        help="What is set behind this is another candidate: --set X=1 --or --set X=2.",
    ),
    click.option(
        "--try-all", is_flag=True, help="Try each change that probe why offers, then the gains together."
    ),
    click.option(
        "--again", is_flag=True, help="With --try-all of a run: what was tried before is tried again.",
    ),
    click.option(
        "--fail-if-faster", metavar="PERCENT", callback=lambda ctx, parameter, text: text and percent(text),
        help="Exit status 1 if a candidate takes less time by more than this, its whole interval.",
    ),
    click.option(
        "--budget", metavar="TIME", callback=lambda ctx, parameter, text: text and seconds(text),
        help=f"Measuring of each graph: 500ms, 10s, 2m.  [{_ONE}]  With --try-all everything.  [{_ALL}]",
    ),
    shared_option(
        "--margin", default=_MARGIN, help=f"A smaller difference counts as none.  [{_MARGIN}]"
    ),
    click.option(
        "--timed-threads", type=click.IntRange(min=1), default=1, metavar="N",
        help="Threads of torch and OpenMP while both are timed.  [1]",
    ),
    click.option(
        "--inputs", type=click.Choice(INPUTS), default=INPUTS[0], metavar="KIND",
        help=f"Both take {', '.join(INPUTS[:-1])} inputs, or the {INPUTS[-1]} ones of A.  [{INPUTS[0]}]",
    ),
    shared_option("--size", "sizes"),
    shared_option("--import", "imports"),
    click.option("--details", is_flag=True, help="Show overheads, roofline, samples, and all changes, too."),
    shared_option("--trust"),
    shared_option("--out"),
    cls=WithAlternatives,
)  # fmt: skip
def whatif(
    words: tuple[str, ...],
    *,
    runs: tuple[str, str] | None,
    cases: tuple[str, ...],
    knobs: dict[str, str],
    env: dict[str, str],
    target: str | None,
    flips: tuple[Flip, ...],
    others: tuple[dict[str, Any], ...],
    try_all: bool,
    again: bool,
    fail_if_faster: float | None,
    budget: float | None,
    margin: float,
    timed_threads: int,
    inputs: str,
    sizes: tuple[tuple[str, int], ...],
    imports: tuple[str, ...],
    details: bool,
    trust: bool,
    out: Path | None,
    output_format: OutputFormat,
) -> int:
    """Would the other decision have been better? Compile both ways, check both, and time them in turns.

    A is SCRIPT as it is, or RUN, made before; B is the same with what --set and --env change, and with
    decisions turned by name (--scalar op0), all of it at once. Or A and B are two runs. This executes the
    code of both on inputs of A. The answer has the decisions that changed, whether B computes the same, and a
    verdict for the whole call and for each kernel that does the same work in both. --env holds while B is
    compiled: both are timed as this command is.

    Exit status 1 if A or B does not compute what the graph does, 2 if nothing could be compared; with --or
    and --try-all 1 only where --fail-if-faster says so.
    """
    named = [_candidate(knobs, env, flips), *(_candidate(**other) for other in others)]
    given = [candidate for candidate in named if candidate.words]
    settings = BenchSettings(
        budget=budget or seconds(_ONE), margin=margin, threads=timed_threads,
        inputs=inputs, sizes=sizes, imports=imports,
    )  # fmt: skip
    if runs:
        if words or cases or given or try_all or target:
            raise ProbeError("--runs A B compares two runs as they are: give neither a script nor settings")
        a, b = (ip.open_run(name) for name in runs)
        return _one(
            a, b, None, settings, fail_if_faster, details=details, trust=trust, output_format=output_format
        )
    if not words:
        raise ProbeError("name a script or a run, or two runs with --runs A B", "see probe whatif --help")
    if not (given or try_all):
        raise ProbeError(
            "nothing is to be different: give a setting",
            f"for example probe whatif {words[0]} --set inductor.cpp.simdlen=256, or --try-all",
        )
    recipe, known = _baseline(words, cases, target, out, save_inputs=inputs == "real", trust=trust)
    recipe.check(given)  # before A is dumped for nothing
    a = known or _dumped("A", recipe, Candidate())
    recipe = replace(recipe, baseline=a.path.name)
    given = _with_meaning(given, a, dumped=known is None)
    if len(given) == 1 and not try_all:
        b = _dumped("B", recipe, given[0], a)
        changed = check_same_program(a, b, given[0], lambda: _dumped("A once more", recipe, Candidate()))
        if changed:
            say_warning(f"{given[0]} changes what inductor is given: {changed}")
        return _one(
            a, b, given[0], settings, fail_if_faster,
            details=details, trust=trust, output_format=output_format,
        )  # fmt: skip
    candidates = list(given)
    if try_all and (why := next(filter(None, map(why_not_launched, a.graphs)), None)):
        raise ProbeError(
            why, f"probe whatif {relative(a.path)} --persistent shows what one candidate changes in its code"
        )
    if try_all:
        offered = ip.candidates_of(a, threads=timed_threads)
        candidates += [one for one in offered if one not in candidates]
        if left_out := len(ip.candidates_of(a)) - len(offered):
            say(
                f"{counted(left_out, 'candidate')} that would change how many threads a loop has: left out, "
                "as all is timed with one thread (--timed-threads 2 tries them)"
            )
    if not candidates:
        say("there is nothing to try: probe why offers no setting for what was decided")
        return ExitCode.OK
    say("this executes the code that inductor generated for each candidate")
    with progress_line() as progress:
        trials = try_candidates(
            a, candidates, recipe, ip.Run, settings, again=again, trust=trust, progress=progress, tell=say,
            budget=(budget or seconds(_ALL)) if try_all else None,
        )  # fmt: skip
    goes_on = f"probe whatif {relative(a.path)}{_options(given)} --try-all" if try_all else None
    if goes_on:
        goes_on += _timed_as(settings)
    return _give_trials(trials, output_format, fail_if_faster, details=details, goes_on=goes_on)


def _options(candidates: Sequence[Candidate]) -> str:
    """Return candidates as they were given, each but the first behind `--or`."""
    return "".join(f" {candidate.command} --or" for candidate in candidates).removesuffix(" --or")


def _candidate(knobs: dict[str, str], env: dict[str, str], flips: tuple[Flip, ...]) -> Candidate:
    return replace(candidate_of({"set": knobs, "env": env}), flips=at_once(flips))


def _with_meaning(candidates: Sequence[Candidate], a: ip.Run, *, dumped: bool) -> list[Candidate]:
    """Return candidates whose flips mean something in A, which was `dumped` for this or is known."""
    try:
        return [with_meaning(candidate, a.graphs) for candidate in candidates]
    except ProbeError as error:
        if dumped:
            beside = f"A is there: probe whatif {relative(a.path)} goes on from it"
            error.hint = f"{error.hint}; {beside}" if error.hint else beside
        raise


def _timed_as(settings: BenchSettings) -> str:
    """Return the options that say how both are timed: what was timed otherwise is timed anew."""
    options = [f" --margin {settings.margin}"] if settings.margin != percent(_MARGIN) else []
    options += [f" --timed-threads {settings.threads}"] if settings.threads > 1 else []
    options += [f" --inputs {settings.inputs}"] if settings.inputs != INPUTS[0] else []
    options += [f" --size {name}={size}" for name, size in settings.sizes]
    options += [f" --import {shlex.quote(module)}" for module in settings.imports]
    return "".join(options)


def _baseline(
    words: Sequence[str],
    cases: tuple[str, ...],
    target: str | None,
    out: Path | None,
    *,
    save_inputs: bool,
    trust: bool,
) -> tuple[Recipe, ip.Run | None]:
    """Return how A is made, and A, if it is a run that is there and is as a new one would be."""
    from inductor_probe.api.meaning import meaning_of
    from inductor_probe.machine.targets import find_gpu_target

    gpu = find_gpu_target(target) if target else None
    meaning = meaning_of(words[0], Path.cwd(), of_script=bool(cases or words[1:] or target))
    if meaning.beside:
        say(meaning.beside)
    if meaning.script is None:
        run = ip.open_run(meaning.target)
        recipe = replace(recipe_of(run, out, trust=trust), save_inputs=save_inputs)
        if (why := why_not_as_it_is(run, recipe)) is None:
            say(f"A is {relative(run.path)}")
            return recipe, run
        say_warning(f"{relative(run.path)} is not compared as it is: {why}; it is dumped again")
        return recipe, None
    args = tuple(words[1:])
    return Recipe(
        script=meaning.script, args=args, cases=cases, target=gpu, save_inputs=save_inputs, out=out
    ), None


def _dumped(side: str, recipe: Recipe, candidate: Candidate, a: ip.Run | None = None) -> ip.Run:
    """Dump the script once; raise where it fails: the other side, `a`, is on disk then."""
    change = str(candidate)
    say(f"dumping {side}: {recipe.script}{f' with {change}' if change else ''}")
    try:
        run = dumped_to_the_end(recipe, ip.Run, candidate)
    except DumpInterruptedError as interruption:
        goes_on = f"; probe whatif {relative(a.path)} {candidate.command} goes on from A" if a else ""
        raise StoppedError(
            f"interrupted while {side} was dumped",
            f"what was compiled is in {relative(interruption.run.path)}{goes_on}",
        ) from None
    except DumpFailedError as error:
        raise ProbeError(
            f"{side}: {recipe.script} {error.how}; its message is above",
            (f"A is whole, in {relative(a.path)}; " if a else "")
            + f"what {side if a else 'it'} had dumped by then is in {relative(error.run.path)}",
        ) from error
    if not run.graphs:
        raise run.empty()
    say(f"{side} is {relative(run.path)}")
    return run


def _one(
    a: ip.Run,
    b: ip.Run,
    candidate: Candidate | None,
    settings: BenchSettings,
    fail_if_faster: float | None,
    *,
    details: bool,
    trust: bool,
    output_format: OutputFormat,
) -> int:
    """Compare A with B, and show all of it; return 1 where B is wrong, or faster than it may be."""
    if not all(map(why_not_launched, a.graphs)):
        say("running both: this executes the code that inductor generated for A and B")
    before = set(a.path.glob(_SAMPLES))
    try:
        with progress_line() as progress:
            answer = ip.whatif(a, b, settings, candidate=candidate, trust=trust, progress=progress)
    except KeyboardInterrupt:
        raise StoppedError("interrupted", _what_was_measured(a, b, before)) from None
    status = give(answer.with_details(details), output_format, ok=answer.correct)
    timed = isinstance(answer.own, OwnPair)
    if not (timed or any(graph.result or graph.not_timed == "same-code" for graph in answer.graphs)):
        status = ExitCode.FAILED  # nothing could be compared: the answer says why
        if any(map(why_not_launched, b.graphs)):
            say(f"{WITHOUT_GPU}: {one_word(f'probe check-kernel {relative(b.path)}')}")
    for graph in answer.graphs:
        if graph.correct and _is_faster(graph.call, fail_if_faster):
            name = f"{graph.diff.a.name}: " if len(answer.graphs) > 1 else ""
            say_warning(_left_on_the_table(fail_if_faster, f"{name}{whatif_sentence(graph, candidate)}"))
            status = max(status, ExitCode.MISMATCH)
    return max(status, warn(answer.problems))


_SAMPLES = "torchinductor/*/output_code_bench.whatif_*.json"


def _what_was_measured(a: ip.Run, b: ip.Run, before: set[Path]) -> str:
    new = sorted(set(a.path.glob(_SAMPLES)) - before)
    if not new:
        again = f"probe whatif --runs {relative(a.path)} {relative(b.path)}"
        return f"nothing had been measured yet; both runs are there: {again} goes on with them"
    return f"probe verdict {relative(new[-1])} judges what was measured by then"


def _give_trials(
    trials: Trials,
    output_format: OutputFormat,
    fail_if_faster: float | None,
    *,
    details: bool,
    goes_on: str | None,
) -> int:
    """Show what came of all candidates; return 1 where one is faster than it may be.

    `goes_on` is the command that tries the rest after Ctrl-C; None where it would begin anew.
    """
    if trials.trials:
        give(trials.with_details(details), output_format)
        say(f"all of it is in {relative(trials.path)}")
    if trials.interrupted:
        done = "nothing was known yet"
        if trials.trials:
            done = f"what was known by then is in {relative(trials.path)}"
        raise StoppedError("interrupted", f"{done}; {goes_on} goes on" if goes_on else done)
    faster = [trial for trial in trials.gains if _is_faster(trial.call, fail_if_faster)]
    codes = {(gain.same_as or gain.candidate, gain.graph): gain for gain in reversed(faster)}
    for gain in reversed(codes.values()):
        say_warning(_left_on_the_table(fail_if_faster, trials.sentence(gain)))
    return ExitCode.MISMATCH if faster else ExitCode.OK


def _is_faster(call: Comparison | None, share: float | None) -> bool:
    return share is not None and call is not None and call.verdict == "FASTER" and 1 - call.high > share


def _left_on_the_table(share: float | None, line: str) -> str:
    return f"over {(share or 0.0) * 100:.3g} % is left on the table: {line}"
