"""The verb that compiles a program twice, and holds one way against the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import inductor_probe as ip
from inductor_probe.cli.completion import CASE, SCRIPT
from inductor_probe.cli.parameters import command, shared_option
from inductor_probe.cli.screen import OutputFormat, give, progress_line, relative, say, warn
from inductor_probe.cli.scripts import SETTINGS
from inductor_probe.errors import ProbeError
from inductor_probe.model.bench import BenchSettings
from inductor_probe.report.words.runs import how_it_ended


@command(
    click.argument("words", nargs=-1, metavar="[SCRIPT [-- ARGS]]", type=SCRIPT),
    click.option(
        "--runs", nargs=2, metavar="A B", help="Two runs that are there already; nothing is dumped."
    ),
    click.option("--case", "cases", multiple=True, type=CASE, help="A case of the scenario."),
    SETTINGS,
    shared_option("--budget", help="Measuring of each graph in all: 500ms, 10s, 2m.  [10s]"),
    shared_option("--margin", default="1%", help="A smaller difference counts as none.  [1%]"),
    click.option("--details", is_flag=True, help="Show overheads, roofline, samples, and all changes, too."),
    shared_option("--trust"),
    shared_option("--out"),
)  # fmt: skip
def whatif(
    words: tuple[str, ...],
    *,
    runs: tuple[str, str] | None,
    cases: tuple[str, ...],
    knobs: dict[str, str],
    budget: float,
    margin: float,
    details: bool,
    trust: bool,
    out: Path | None,
    output_format: OutputFormat,
) -> int:
    """Would the other decision have been better? Compile both ways, check both, and time them in turns.

    A is SCRIPT as it is, B the same with what --set sets; or A and B are two runs. This executes the code of
    both on inputs of A. The answer has the decisions that changed, whether B computes the same, and a verdict
    for the whole call and for each kernel that does the same work in both.

    Exit status 1 if B computes something else.
    """
    settings = BenchSettings(budget=budget, margin=margin)
    if runs:
        if words or cases or knobs:
            raise ProbeError("--runs A B compares two runs as they are: give neither a script nor settings")
        a, b = (ip.open_run(name) for name in runs)
    else:
        if not words:
            raise ProbeError("name a script, or two runs with --runs A B", "see probe whatif --help")
        if not knobs:
            raise ProbeError(
                "nothing is to be different: give a setting",
                f"for example probe whatif {words[0]} --set inductor.cpp.simdlen=256",
            )
        a, b = (
            _dumped(words, {"cases": cases, "knobs": chosen, "out": out}, side)
            for side, chosen in (("A", {}), ("B", knobs))
        )
    say("running both: this executes the code that inductor generated for A and B")
    with progress_line() as progress:
        answer = ip.whatif(a, b, settings, trust=trust, progress=progress)
    status = give(answer.with_details(details), output_format, ok=answer.correct)
    return max(status, warn(answer.problems))


def _dumped(words: tuple[str, ...], options: dict[str, Any], side: str) -> ip.Run:
    """Dump the script once; raise where it fails: the other side is on disk then."""
    knobs = " ".join(f"{name}={value}" for name, value in options["knobs"].items())
    say(f"dumping {side}: {words[0]}{f' with {knobs}' if knobs else ''}")
    run = ip.dump(words[0], args=words[1:], stdout_to_stderr=True, **options)
    manifest = run.manifest
    if manifest and manifest.outcome != "ok":
        raise ProbeError(
            f"{side}: {manifest.script} {how_it_ended(manifest)}; its message is above",
            f"what it had dumped by then is in {relative(run.path)}",
        )
    if not run.graphs:
        raise run.empty()
    say(f"{side} is {relative(run.path)}")
    return run
