"""The verb that says where the time of a call goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import inductor_probe as ip
from inductor_probe.api.profile import Profiles, read_profiles
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
    say_duration,
    write_output,
)
from inductor_probe.cli.scripts import SETTINGS, VARIABLES
from inductor_probe.model.bench import INPUTS, BenchSettings


@command(
    click.argument("words", nargs=-1, metavar="[A [B]]", type=SCRIPT),
    click.option("--case", "cases", multiple=True, type=CASE, help="A case of the scenario."),
    SETTINGS,
    VARIABLES,
    shared_option("--budget", default="3s", help="Measuring of each graph: 500ms, 3s, 1m.  [3s]"),
    click.option("--threads", type=click.IntRange(1, 1024), metavar="N",
                 help="Of torch and OpenMP.  [1; of the script's call those that it has]"),
    click.option("--no-script", "own", is_flag=True, flag_value=False, default=True,
                 help="Do not run the script again to time its call against eager."),
    click.option("--inputs", type=click.Choice(INPUTS), default="random", show_default=True,
                 help="Values of the inputs."),
    click.option("--details", is_flag=True, help="Show all loop nests, and each line of the wrapper."),
    click.option("--chrome", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                 help="Write one call as a trace, for chrome://tracing and Perfetto."),
    click.option("--flame", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                 help="Write a flame view, as a page of HTML."),
    click.option("--force", is_flag=True, help="Overwrite FILE."),
    shared_option("--size", "sizes"),
    shared_option("--import", "imports"),
    shared_option("--cxxflags"),
    shared_option("--trust"),
    shared_option("--out"),
)  # fmt: skip
def profile(
    words: tuple[str, ...],
    *,
    cases: tuple[str, ...],
    knobs: dict[str, str],
    env: dict[str, str],
    details: bool,
    chrome: Path | None,
    flame: Path | None,
    force: bool,
    trust: bool,
    out: Path | None,
    output_format: OutputFormat,
    **options: Any,
) -> int:
    """Where does the time of a call go: kernels and their loop nests, launches, the wrapper, guards?

    A is a scenario or another script, which is dumped first, or a RUN or GRAPH, the latest run if left
    out; or a file that --json printed. Each graph is run: this executes the code that inductor generated
    for it. With B, the two are compared kernel by kernel.

    Copies of the C++ kernels read a clock around each loop nest, one of the wrapper at each line; they take
    turns with the code as it is. What reading clocks takes is subtracted; the last line has it.
    """
    written = [(path, name) for path, name in ((chrome, "--chrome"), (flame, "--flame")) if path is not None]
    for path, name in written:
        require_new(path, force=force, option=name)
    if len(words) > 2:
        raise click.UsageError(f"one or two of SCRIPT, RUN, GRAPH and FILE, not {len(words)}")
    threads: int | None = options.pop("threads")
    settings, sides = BenchSettings(threads=threads or 1, own_threads=threads, **options), list[Profiles]()
    for word in words or (None,):
        file = Path(word) if word is not None and word.endswith(".json") else None
        if file is not None:
            sides.append(read_profiles(file))
            continue
        opened = dumped_or_found(() if word is None else (word,), cases, knobs, env, out)
        graphs = [opened] if isinstance(opened, ip.Graph) else [*opened.graphs]
        say_duration(graphs, settings)
        with progress_line() as progress:
            sides.append(opened.profile(settings, trust=trust, progress=progress))
    profiles = sides[0].with_details(details)
    status = give(profiles if len(sides) == 1 else sides[0].compare(sides[1]), output_format)
    if chrome is not None:
        write_output(chrome, profiles.chrome, force=force)
        say(f"wrote {relative(chrome.absolute())}: open it in https://ui.perfetto.dev")
    if flame is not None:
        write_output(flame, profiles.flame, force=force)
        say(f"wrote {relative(flame.absolute())}: open it in a browser")
    return status
