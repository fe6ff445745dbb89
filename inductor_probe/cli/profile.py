"""The verb that says where the time of a call goes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click
from msgspec import Struct
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.cli.completion import WORDS
from inductor_probe.cli.parameters import verb
from inductor_probe.cli.screen import (
    OutputFormat,
    give,
    progress_line,
    relative,
    require_new,
    say,
    write_output,
)
from inductor_probe.options.fields import Typed
from inductor_probe.options.programs import ProfileOptions


class ProfileShown(Struct, frozen=True):
    """How the answer is shown, and what is written of it: `with_details`, `chrome` and `flame` in Python.

    Attributes:
        details: Show all loop nests, and each line of the wrapper.
        chrome: Write one call as a trace, for chrome://tracing and Perfetto.
        flame: Write a flame view, as a page of HTML.
        force: Overwrite FILE.
    """

    details: bool = False
    chrome: Annotated[Path | None, Typed("file", "FILE")] = None
    flame: Annotated[Path | None, Typed("file", "FILE")] = None
    force: bool = False


_WORDS = click.Argument(["words"], nargs=-1, metavar="[A [B]]", type=WORDS["script"])


@verb(ProfileOptions, ProfileShown, _WORDS, arguments=False)
def profile(
    options: ProfileOptions, shown: ProfileShown, *, words: tuple[str, ...], output_format: OutputFormat
) -> int:
    """Where does the time of a call go: kernels and their loop nests, launches, the wrapper, guards?

    A is a scenario or another script, which is dumped first, or a RUN or GRAPH, the latest run if left
    out; or a file that --json printed. Each graph is run: this executes the code that inductor generated
    for it. With B, the two are compared kernel by kernel.

    Copies of the C++ kernels read a clock around each loop nest, one of the wrapper at each line; they take
    turns with the code as it is. What reading clocks takes is subtracted; the last line has it.
    """
    for path, name in ((shown.chrome, "--chrome"), (shown.flame, "--flame")):
        if path is not None:
            require_new(path, force=shown.force, option=name)
    if len(words) > 2:
        raise click.UsageError(f"one or two of SCRIPT, RUN, GRAPH and FILE, not {len(words)}")
    with progress_line() as progress:
        first, *others = [
            ip.profile(replace(options, program=word), progress=progress) for word in words or (None,)
        ]
    profiles = first.with_details(shown.details)
    status = give(first.compare(others[0]) if others else profiles, output_format)
    if shown.chrome is not None:
        write_output(shown.chrome, profiles.chrome, force=shown.force)
        say(f"wrote {relative(shown.chrome.absolute())}: open it in https://ui.perfetto.dev")
    if shown.flame is not None:
        write_output(shown.flame, profiles.flame, force=shown.force)
        say(f"wrote {relative(shown.flame.absolute())}: open it in a browser")
    return status
