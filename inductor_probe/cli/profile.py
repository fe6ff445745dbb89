"""The verb that says where the time of a call goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from inductor_probe.cli.completion import CASE, SCRIPT
from inductor_probe.cli.expect import dumped_or_found
from inductor_probe.cli.parameters import command, shared_option
from inductor_probe.cli.screen import (
    OutputFormat,
    give,
    progress_line,
    relative,
    require_new,
    say,
    write_output,
)
from inductor_probe.cli.scripts import SETTINGS, VARIABLES
from inductor_probe.model.bench import INPUTS, BenchSettings


@command(
    click.argument("target", required=False, metavar="[SCRIPT|RUN|GRAPH]", type=SCRIPT),
    click.option("--case", "cases", multiple=True, type=CASE, help="A case of the scenario."),
    SETTINGS,
    VARIABLES,
    shared_option("--budget", default="3s", help="Measuring of each graph: 500ms, 3s, 1m.  [3s]"),
    click.option("--threads", type=click.IntRange(1, 1024), default=1, metavar="N", show_default=True,
                 help="Of torch and OpenMP."),
    click.option("--inputs", type=click.Choice(INPUTS), default="random", show_default=True,
                 help="Values of the inputs."),
    click.option("--details", is_flag=True, help="Show all loop nests, and each line of the wrapper."),
    click.option("--chrome", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                 help="Write one call as a trace, for chrome://tracing and Perfetto."),
    click.option("--force", is_flag=True, help="Overwrite FILE."),
    shared_option("--size", "sizes"),
    shared_option("--import", "imports"),
    shared_option("--cxxflags"),
    shared_option("--trust"),
    shared_option("--out"),
)  # fmt: skip
def profile(
    target: str | None,
    *,
    cases: tuple[str, ...],
    knobs: dict[str, str],
    env: dict[str, str],
    details: bool,
    chrome: Path | None,
    force: bool,
    trust: bool,
    out: Path | None,
    output_format: OutputFormat,
    **options: Any,
) -> int:
    """Where does the time of a call go: kernels and their loop nests, launches, the wrapper, guards?

    SCRIPT is dumped first; RUN and GRAPH are there already, the latest run if left out. Each graph is run:
    this executes the code that inductor generated for it.

    Copies of the C++ kernels read a clock around each loop nest, one of the wrapper at each line; they take
    turns with the code as it is. What reading clocks takes is subtracted; the last line has it.
    """
    if chrome is not None:
        require_new(chrome, force=force, option="--chrome")
    words = (target,) if target else ()
    opened = dumped_or_found(words, cases, knobs, env, out)
    with progress_line() as progress:
        profiles = opened.profile(BenchSettings(**options), trust=trust, progress=progress)
    status = give(profiles.with_details(details), output_format)
    if chrome is not None:
        write_output(chrome, profiles.chrome, force=force)
        say(f"wrote {relative(chrome.absolute())}: open it in https://ui.perfetto.dev")
    return status
