"""A program compiled otherwise, once or in many ways, and held against how it is."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

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
from inductor_probe.api.meaning import meaning_of
from inductor_probe.api.session import Graph, Run
from inductor_probe.api.trials import Trials
from inductor_probe.api.trust import why_not_launched
from inductor_probe.api.verbs import candidates_of, open_run
from inductor_probe.api.whatif import WhatIf, whatif_of_runs
from inductor_probe.errors import ProbeError, StoppedError
from inductor_probe.files import seen_from
from inductor_probe.model.bench import BenchSettings
from inductor_probe.model.flip import at_once
from inductor_probe.model.whatif import Candidate
from inductor_probe.options.fields import shared, words_of
from inductor_probe.options.programs import CandidateOptions, WhatifOptions
from inductor_probe.options.verb import Progress, takes
from inductor_probe.report.units import counted

_ONE_S, _ALL_S = 10.0, 300.0
_SAMPLES = "torchinductor/*/output_code_bench.whatif_*.json"


@takes(WhatifOptions)
def whatif(options: WhatifOptions, progress: Progress) -> WhatIf | Trials:
    """Compile a program both ways, check both, and time them in turns; or try many ways, one after the other.

    This executes the code of both. With one candidate, or two `runs`, the answer is a `WhatIf`, else a
    `Trials`.

    Raises:
        ProbeError: nothing is to be different, options exclude each other, or a dump failed.
        StoppedError: it was interrupted; says what is there, and what goes on with it.
    """
    made = [_candidate(one) for one in (options, *options.others)]
    given = [candidate for candidate in made if candidate.words]
    of_all = {"budget": options.budget or _ONE_S, "threads": options.timed_threads}
    settings = BenchSettings(**{**shared(options, BenchSettings), **of_all})
    if options.runs:
        if options.program or options.cases or given or options.try_all or options.target:
            raise ProbeError("--runs A B compares two runs as they are: give neither a script nor settings")
        a, b = (run if isinstance(run, Run) else open_run(run) for run in options.runs)
        return _compared(a, b, None, settings, trust=options.trust, progress=progress)
    if options.program is None:
        raise ProbeError("name a script or a run, or two runs with --runs A B", "see probe whatif --help")
    if not (given or options.try_all):
        raise ProbeError(
            "nothing is to be different: give a setting",
            f"for example probe whatif {options.program} --set inductor.cpp.simdlen=256, or --try-all",
        )
    recipe, known = _baseline(options, progress)
    recipe.check(given)  # before A is dumped for nothing
    a = known or _dumped("A", recipe, Candidate(), progress)
    recipe = replace(recipe, baseline=a.path.name)
    given = _with_meaning(given, a, dumped=known is None)
    if len(given) == 1 and not options.try_all:
        b = _dumped("B", recipe, given[0], progress, a)
        again = partial(_dumped, "A once more", recipe, Candidate(), progress)
        if changed := check_same_program(a, b, given[0], again):
            progress.warn(f"{given[0]} changes what inductor is given: {changed}")
        return _compared(a, b, given[0], settings, trust=options.trust, progress=progress)
    candidates = [*given, *(_offered(a, given, options, progress) if options.try_all else ())]
    if not candidates:
        progress.say("there is nothing to try: probe why offers no setting for what was decided")
        return Trials(a, ())
    progress.say("this executes the code that inductor generated for each candidate")
    trials = try_candidates(
        a, candidates, recipe, Run, settings, again=options.again, trust=options.trust, progress=progress,
        tell=progress.say, budget=(options.budget or _ALL_S) if options.try_all else None,
    )  # fmt: skip
    if not options.try_all:
        return trials
    # What was timed otherwise is timed anew: the options that say how belong to the command that goes on.
    timed_as = words_of(options, "margin", "timed_threads", "inputs", "sizes", "imports")
    words = " --or".join(f" {candidate.command}" for candidate in given)
    goes_on = f"probe whatif {_seen(a.path)}{words} {shlex.join(['--try-all', *timed_as])}"
    return replace(trials, goes_on=goes_on)


def _seen(path: Path) -> Path:
    return seen_from(path, Path.cwd())


def _candidate(options: CandidateOptions) -> Candidate:
    return replace(candidate_of({"set": options.knobs, "env": options.env}), flips=at_once(options.flips))


def _offered(
    a: Run, given: Sequence[Candidate], options: WhatifOptions, progress: Progress
) -> list[Candidate]:
    """Return what `why` offers beside the candidates that are given.

    Raises:
        ProbeError: the kernels of a graph cannot be launched here.
    """
    if why := next(filter(None, map(why_not_launched, a.graphs)), None):
        raise ProbeError(
            why, f"probe whatif {_seen(a.path)} --persistent shows what one candidate changes in its code"
        )
    offered = candidates_of(a, threads=options.timed_threads)
    if left_out := len(candidates_of(a)) - len(offered):
        progress.say(
            f"{counted(left_out, 'candidate')} that would change how many threads a loop has: left out, "
            "as all is timed with one thread (--timed-threads 2 tries them)"
        )
    return [candidate for candidate in offered if candidate not in given]


def _with_meaning(candidates: Sequence[Candidate], a: Run, *, dumped: bool) -> list[Candidate]:
    """Return candidates whose flips mean something in A, which was `dumped` for this or is known."""
    try:
        return [with_meaning(candidate, a.graphs) for candidate in candidates]
    except ProbeError as error:
        if dumped:
            beside = f"A is there: probe whatif {_seen(a.path)} goes on from it"
            error.hint = f"{error.hint}; {beside}" if error.hint else beside
        raise


def _baseline(options: WhatifOptions, progress: Progress) -> tuple[Recipe, Run | None]:
    """Return how A is made, and A, if it is a run that is there and is as a new one would be."""
    from inductor_probe.machine.targets import find_gpu_target

    gpu = find_gpu_target(options.target) if options.target else None
    save_inputs, run = options.inputs == "real", None
    if isinstance(options.program, (Run, Graph)):
        run = options.program if isinstance(options.program, Run) else options.program.run
    else:
        of_script = bool(options.cases or options.args or options.target)
        meaning = meaning_of(str(options.program), Path.cwd(), of_script=of_script)
        if meaning.beside:
            progress.say(meaning.beside)
        if meaning.script is not None:
            recipe = Recipe(
                script=meaning.script, args=tuple(options.args), cases=tuple(options.cases), target=gpu,
                save_inputs=save_inputs, out=options.out,
            )  # fmt: skip
            return recipe, None
        run = open_run(meaning.target)
    recipe = replace(recipe_of(run, options.out, trust=options.trust), save_inputs=save_inputs)
    if (why := why_not_as_it_is(run, recipe)) is None:
        progress.say(f"A is {_seen(run.path)}")
        return recipe, run
    progress.warn(f"{_seen(run.path)} is not compared as it is: {why}; it is dumped again")
    return recipe, None


def _dumped(side: str, recipe: Recipe, candidate: Candidate, progress: Progress, a: Run | None = None) -> Run:
    """Dump the script once; raise where it fails: the other side, `a`, is on disk then."""
    change = str(candidate)
    progress.say(f"dumping {side}: {recipe.script}{f' with {change}' if change else ''}")
    try:
        run = dumped_to_the_end(recipe, Run, candidate)
    except DumpInterruptedError as interruption:
        goes_on = f"; probe whatif {_seen(a.path)} {candidate.command} goes on from A" if a else ""
        raise StoppedError(
            f"interrupted while {side} was dumped",
            f"what was compiled is in {_seen(interruption.run.path)}{goes_on}",
        ) from None
    except DumpFailedError as error:
        raise ProbeError(
            f"{side}: {recipe.script} {error.how}; its message is above",
            (f"A is whole, in {_seen(a.path)}; " if a else "")
            + f"what {side if a else 'it'} had dumped by then is in {_seen(error.run.path)}",
        ) from error
    if not run.graphs:
        raise run.empty()
    progress.say(f"{side} is {_seen(run.path)}")
    return run


def _compared(
    a: Run,
    b: Run,
    candidate: Candidate | None,
    settings: BenchSettings,
    *,
    trust: bool,
    progress: Progress,
) -> WhatIf:
    """Compare A with B; an interruption says what was measured by then."""
    if not all(map(why_not_launched, a.graphs)):
        progress.say("running both: this executes the code that inductor generated for A and B")
    before = set(a.path.glob(_SAMPLES))
    try:
        return whatif_of_runs(a, b, settings, candidate=candidate, trust=trust, progress=progress)
    except KeyboardInterrupt:
        again = f"probe whatif --runs {_seen(a.path)} {_seen(b.path)}"
        hint = f"nothing had been measured yet; both runs are there: {again} goes on with them"
        if new := sorted(set(a.path.glob(_SAMPLES)) - before):
            hint = f"probe verdict {_seen(new[-1])} judges what was measured by then"
        raise StoppedError("interrupted", hint) from None
