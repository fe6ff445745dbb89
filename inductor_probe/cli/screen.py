"""The two streams of the command line: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import RenderableType
from rich.text import Text

from inductor_probe.errors import ExitCode, ProbeError
from inductor_probe.model.codec import to_json
from inductor_probe.model.output import Output
from inductor_probe.model.span import Problem
from inductor_probe.report.shown import plain_console
from inductor_probe.report.visible import VisibleConsole, visible

if TYPE_CHECKING:
    from inductor_probe.api.rows import Rows

_PIPE_WIDTH = 10_000
"""Columns of a pipe: nothing is cut or wrapped there, so that `grep` sees whole lines."""


def show(renderable: RenderableType) -> None:
    """Print a result. Tables pad their lines with spaces; nobody wants those in a pipe.

    Lines of code are longer than a terminal is wide: rich would crop them, the terminal wraps them.
    """
    console = _console(sys.stdout)
    with console.capture() as captured:
        console.print(renderable, crop=False)
    sys.stdout.write("".join(f"{line.rstrip(' ')}\n" for line in captured.get().splitlines()))


def show_json(output: Output) -> None:
    """Print a result as JSON, and nothing else."""
    sys.stdout.write(json.dumps(to_json(output), indent=2) + "\n")


def say(text: RenderableType) -> None:
    """Print what is not a result: progress, notes, errors."""
    _console(sys.stderr).print(text, soft_wrap=True)  # a path cut in two cannot be copied


def give(rows: Rows[Any], *, json: bool) -> ExitCode:
    """Print rows, or why there are none, then what could not be read; return the status that tells so."""
    if json:
        show_json(rows.output)
    elif rows:
        show(rows)
    else:
        say(rows.empty)
    return warn(rows.problems)


def relative(path: Path) -> Path:
    """Return `path` as seen from here, when it is below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def complain(error: ProbeError) -> None:
    """Print an error with its next step."""
    say(Text.assemble(("error: ", "bold red"), _inner(error.message)))
    if error.hint:
        say(Text.assemble(("hint: ", "bold cyan"), _inner(error.hint)))


def warn(problems: Iterable[Problem]) -> ExitCode:
    """Print what could not be read; return the status that tells so."""
    status = ExitCode.OK
    for problem in problems:
        say(Text.assemble(("warning: ", "bold yellow"), _inner(str(problem))))
        status = ExitCode.FAILED
    return status


def _inner(message: str) -> str:
    """Indent what follows the first line: a name with a line end in it cannot pose as a message of ours.

    Acting characters are made visible here already: rich drops some of them, and a name is shown whole.
    """
    return visible(message).replace("\n", "\n  ")


def _console(stream: TextIO) -> VisibleConsole:
    known_width = stream.isatty() or "COLUMNS" in os.environ
    return plain_console(file=stream, width=None if known_width else _PIPE_WIDTH)
