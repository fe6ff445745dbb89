"""The two streams of the command line: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

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
    from inductor_probe.notebook.shown import Shown

OutputFormat = Literal["terminal", "json"]
"""How a verb prints its result."""

_PIPE_WIDTH = 10_000
"""Columns of a pipe: nothing is cut or wrapped there, so that `grep` sees whole lines."""


def give(
    view: Shown, output_format: OutputFormat, *, text: RenderableType | None = None, ok: bool = True
) -> ExitCode:
    """Print a view; return MISMATCH unless `ok`. `text` takes its place where it is not printed as JSON."""
    if output_format == "json":
        show_json(view.output)
    else:
        show(view if text is None else text)
    return ExitCode.OK if ok else ExitCode.MISMATCH


def give_rows(
    rows: Rows[Any], output_format: OutputFormat, *, text: RenderableType | None = None
) -> ExitCode:
    """Print rows, or why there are none, then what could not be read; return FAILED if there is such."""
    if rows or output_format == "json":
        give(rows, output_format, text=text)
    else:
        say(rows.empty)
    return warn(rows.problems)


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


def say_warning(text: str | Text) -> None:
    """Print a warning."""
    say(Text.assemble(("warning: ", "bold yellow"), text))


def relative(path: Path) -> Path:
    """Return `path` as seen from here, when it is below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def write_output(path: Path, text: str, *, force: bool) -> None:
    """Write the file that `-o` names; one that exists only with --force.

    Raises:
        ProbeError: it exists, or cannot be written.
    """
    from inductor_probe.files import write_whole  # slow to import, and most verbs write no file

    if path.exists() and not force:
        raise ProbeError(
            f"{path} exists already", "choose another name with -o, or overwrite it with --force"
        )
    write_whole(path, text)


def complain(error: ProbeError) -> None:
    """Print an error with its next step."""
    say(Text.assemble(("error: ", "bold red"), _indented(error.message)))
    if error.hint:
        say(Text.assemble(("hint: ", "bold cyan"), _indented(error.hint)))


def warn(problems: Iterable[Problem]) -> ExitCode:
    """Print what could not be read; return FAILED if there is such."""
    status = ExitCode.OK
    for problem in problems:
        say_warning(_indented(str(problem)))
        status = ExitCode.FAILED
    return status


def _indented(message: str) -> str:
    """Indent what follows the first line: a name with a line end in it cannot pose as a message of ours.

    Acting characters are made visible here already: rich drops some of them, and a name is shown whole.
    """
    return visible(message).replace("\n", "\n  ")


def _console(stream: TextIO) -> VisibleConsole:
    known_width = stream.isatty() or "COLUMNS" in os.environ
    return plain_console(file=stream, width=None if known_width else _PIPE_WIDTH)
