"""The program that a verb is about: a script is dumped first; a run or a graph is there already."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inductor_probe.api.meaning import meaning_of
from inductor_probe.api.session import Graph, Run
from inductor_probe.api.verbs import dump, open_target
from inductor_probe.errors import ProbeError, StoppedError
from inductor_probe.files import seen_from
from inductor_probe.options.fields import shared
from inductor_probe.options.programs import ExpectOptions, ProfileOptions, ProgramOptions
from inductor_probe.options.verb import Progress, takes
from inductor_probe.report.words.runs import how_it_ended

if TYPE_CHECKING:
    from inductor_probe.api.expect import Expectations
    from inductor_probe.api.profile import Profiles


def opened(
    options: ProgramOptions,
    progress: Progress,
    *,
    target: str | None = None,
    compile_may_fail: bool = False,
    may_fail: bool = False,
) -> Run | Graph:
    """Return the run or graph that is named; a script is dumped, and has to end well.

    With `compile_may_fail` it may end with the exception of a compile, with `may_fail` with any. `target` is
    a GPU that is simulated.

    Raises:
        NotFoundError: there is no such script, run or graph. ProbeError: the script did not end well, or what
            only a script takes is given with a run. StoppedError: it was interrupted.
    """
    if options.program is None:
        return open_target(None)
    if isinstance(options.program, (Run, Graph)):
        return options.program
    of_script = bool(options.cases or options.knobs or options.env or target or options.args)
    here = Path.cwd()
    meaning = meaning_of(str(options.program), here, of_script=of_script)
    if meaning.beside:
        progress.say(meaning.beside)
    if meaning.script is None:
        return open_target(meaning.target)
    progress.say(f"dumping {meaning.script}")
    run = dump(
        meaning.script,
        target=target,
        **{name: getattr(options, name) for name in ("args", "cases", "knobs", "env", "out")},
        stdout_to_stderr=True,
    )
    manifest, path = run.manifest, seen_from(run.path, here)
    if manifest and manifest.outcome == "interrupted":
        raise StoppedError("interrupted while it was dumped", f"what was compiled is in {path}")
    if manifest and manifest.outcome != "ok" and not (may_fail or (compile_may_fail and manifest.failures)):
        raise ProbeError(
            f"{manifest.script} {how_it_ended(manifest)}; its message is above",
            f"what it had dumped by then is in {path}",
        )
    progress.say(f"it is {path}")
    return run


@takes(ExpectOptions)
def expect(options: ExpectOptions, progress: Progress) -> Expectations:
    """Say whether a program is compiled as expected, and where not why; see `Session.expect`.

    Raises:
        ProbeError: nothing is expected, or what means nothing.
    """
    if not options.expected:
        first = f" {options.program}" if options.program is not None else ""
        raise ProbeError("nothing is expected", f"for example probe expect{first} --kernels 1 --vectorised")
    return opened(options, progress, compile_may_fail=True).expect(**options.expected)


@takes(ProfileOptions)
def profile(options: ProfileOptions, progress: Progress) -> Profiles:
    """Say where the time of a call of a program's graphs goes; see `Session.profile`.

    The program may be a file, too, that `probe profile --json` printed.
    """
    from inductor_probe.api.own_call import duration_sentence
    from inductor_probe.api.profile import read_profiles
    from inductor_probe.model.bench import BenchSettings

    if str(options.program).endswith(".json"):
        return read_profiles(Path(options.program))
    program = opened(options, progress)
    threads = {"threads": options.threads or 1, "own_threads": options.threads}
    settings = BenchSettings(**{**shared(options, BenchSettings), **threads})
    graphs = [program] if isinstance(program, Graph) else program.graphs
    if sentence := duration_sentence(graphs, settings):
        progress.say(sentence)
    return program.profile(settings, trust=options.trust, progress=progress)
