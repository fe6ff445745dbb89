"""The two streams of the command line: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, cast

import click
from rich.console import Console

from inductor_probe.errors import ExitCode, ProbeError
from inductor_probe.files import seen_from
from inductor_probe.model.codec import to_json
from inductor_probe.model.output import Failure, FailureOutput, Output
from inductor_probe.model.span import Problem
from inductor_probe.options.verb import Progress
from inductor_probe.report.document import Document, Inline, Line
from inductor_probe.report.json_form import JsonForm
from inductor_probe.report.markdown import to_markdown
from inductor_probe.report.shown import Shown
from inductor_probe.report.terminal import Terminal, plain_console
from inductor_probe.report.units import one_word
from inductor_probe.report.visible import visible

if TYPE_CHECKING:
    from inductor_probe.api.rows import Rows

OutputFormat = Literal["terminal", "markdown", "json", "sarif"]
"""How a verb prints its result; those that have annotations for GitHub have SARIF, too."""

FORM, SUBJECT, GITHUB = "json form", "about one subject", "for GitHub"
"""In click's context of a verb: how its JSON is printed, whether a name in its arguments was found, and
whether GitHub Actions is to show its result."""
_PIPE_WIDTH = 10_000
"""Columns of a pipe: nothing is cut or wrapped there, so that `grep` sees whole lines."""


def give(
    view: Shown, output_format: OutputFormat, *, document: Document | None = None, ok: bool = True
) -> ExitCode:
    """Print a view; return MISMATCH unless `ok`. `document` takes its place unless it is printed as JSON."""
    if output_format == "json":
        show_json(view.output)
    elif output_format == "sarif":
        from inductor_probe.report.sarif import to_sarif

        sys.stdout.write(json.dumps(to_sarif(view.output, Path.cwd()), indent=1) + "\n")
    else:
        show(view.document if document is None else document, output_format)
    context = click.get_current_context(silent=True)
    if context and context.meta.get(GITHUB):
        _show_in_github(view)
    return ExitCode.OK if ok else ExitCode.MISMATCH


def give_issue(answer: Any, output_format: OutputFormat, **about: Any) -> None:
    """Print an answer as an issue for PyTorch; `about` are further arguments of `issue_of`.

    Raises:
        ProbeError: it was to be JSON, or there is nothing to report.
    """
    from inductor_probe.api.issue import issue_of

    if output_format == "json":
        raise ProbeError(
            "--issue prints markdown", "leave out --json; --json without it has the facts", code="usage"
        )
    command = shlex.join(["probe", *click.get_current_context().find_root().obj])
    sys.stdout.write(issue_of(answer, command, **about))


def _show_in_github(view: Shown) -> None:
    """Print annotations, and add what a verb shows to the summary of the job.

    Raises:
        ProbeError: the file of the summary cannot be written.
    """
    from inductor_probe.report.github import MOST_BYTES, annotation_lines, annotations_of, summary_text

    title = click.get_current_context().command_path
    for line in annotation_lines(annotations_of(view.output), title, Path.cwd()):
        sys.stderr.write(f"{line}\n")
    if not (name := os.environ.get("GITHUB_STEP_SUMMARY")):
        say_warning("GITHUB_STEP_SUMMARY is not set, as GitHub Actions does: no summary is written")
        return
    path = Path(name)
    try:
        written = path.stat().st_size if path.exists() else 0
        with path.open("a", encoding="utf-8") as file:
            file.write(summary_text(view.document, title, MOST_BYTES - written))
    except OSError as error:
        raise ProbeError(f"cannot write the summary of the job to {path}: {error.strerror}") from error


def give_rows(rows: Rows[Any], output_format: OutputFormat, *, document: Document | None = None) -> ExitCode:
    """Print rows, or why there are none, then what could not be read; return FAILED if there is such."""
    if rows or output_format in ("json", "sarif"):
        give(rows, output_format, document=document)
    else:
        say(rows.empty)
    return warn(rows.problems)


def show(document: Document, output_format: OutputFormat = "terminal") -> None:
    """Print a result. Tables pad their lines with spaces; nobody wants those in a pipe.

    Lines of code are longer than a terminal is wide: rich would crop them, the terminal wraps them.
    """
    if output_format == "markdown":
        sys.stdout.write(to_markdown(document))
        return
    console = _console(sys.stdout)
    with console.capture() as captured:
        console.print(Terminal(document), crop=False)
    text = "".join(f"{line.rstrip(' ')}\n" for line in captured.get().splitlines())
    if (template := os.environ.get("PROBE_EDITOR_URL")) and _knows_links():
        from inductor_probe.report.editor_links import with_links

        text = with_links(text, template)
    sys.stdout.write(text)


def _knows_links() -> bool:
    """Whether standard output is a terminal that follows escape sequences."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "linux")


def show_json(output: Output) -> None:
    """Print a result as JSON, and nothing else: as much of it as `--fields` and `--limit` say."""
    context = click.get_current_context()
    form: JsonForm = context.meta[FORM]
    rest = shlex.join(["probe", *_without_limit(context.find_root().obj), "--limit", "0"])
    data = cast("dict[str, Any]", to_json(output))
    sys.stdout.write(form.text(data, subject=context.meta.get(SUBJECT, False), rest=rest) + "\n")


def _without_limit(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a verb without `--limit` and its number."""
    behind = {place + 1 for place, word in enumerate(arguments) if word == "--limit"}
    return [
        word
        for place, word in enumerate(arguments)
        if place not in behind and word != "--limit" and not word.startswith("--limit=")
    ]


def show_failure(error: ProbeError, verb: str) -> None:
    """Print why a verb failed as JSON."""
    failure = Failure(error.code, error.message, (error.hint,) if error.hint else ())
    sys.stdout.write(json.dumps(to_json(FailureOutput(verb, failure)), indent=2) + "\n")


def say(text: Inline) -> None:
    """Print what is not a result: progress, notes, errors, what to do next.

    On a terminal it is broken between words. What is there to be copied stays whole: a path; a command
    (`units.one_word`) goes on in the next line behind a backslash.
    """
    console = plain_console(file=sys.stderr, width=None if sys.stderr.isatty() else _PIPE_WIDTH)
    console.print(Terminal([Line(text, whole=True)]), crop=False)


class Screen(Progress):
    """Shows on standard error what a verb does: in a line that the next one replaces, if it is a terminal."""

    def __init__(self, show: Callable[[Shown], None] | None = None) -> None:
        super().__init__()
        self._show = show
        self._width = plain_console(file=sys.stderr).width if sys.stderr.isatty() else 0
        self._begin: float | None = None

    def __call__(self, text: str) -> None:
        """Show what is done now, and for how long such is shown already."""
        if not self._width:  # nobody waits there
            return
        self._begin = time.monotonic() if self._begin is None else self._begin
        seconds = time.monotonic() - self._begin
        line = visible(f"{text} ... ({seconds:.0f} s)" if seconds >= 1 else f"{text} ...")
        sys.stderr.write(f"\r{line[: self._width - 1]}\x1b[K")
        sys.stderr.flush()

    def part(self, view: Shown) -> None:
        """Show a part of the answer, where the verb shows parts."""
        self.clear()
        if self._show is not None:
            self._show(view)

    def say(self, text: Inline) -> None:
        """Print it, in the place of the line."""
        self.clear()
        say(text)

    def warn(self, text: str) -> None:
        """Print a warning, in the place of the line."""
        self.clear()
        say_warning(text)

    def clear(self) -> None:
        """Take the line away."""
        if self._begin is not None:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        self._begin = None


@contextmanager
def progress_line(show: Callable[[Shown], None] | None = None) -> Iterator[Screen]:
    """Give what shows progress; its line vanishes at the end. `show` is called with parts of the answer."""
    screen = Screen(show)
    try:
        yield screen
    finally:
        screen.clear()


def say_warning(text: str) -> None:
    """Print a warning."""
    say([("warning: ", "bold yellow"), text])


def relative(path: Path) -> Path:
    """Return `path` as seen from here, when it is below."""
    return seen_from(path, Path.cwd())


def write_output(path: Path, text: str, *, force: bool) -> None:
    """Write the file that `-o` names; one that exists only with --force.

    Raises:
        ProbeError: it exists, or cannot be written.
    """
    from inductor_probe.files import write_whole  # slow to import, and most verbs write no file

    require_new(path, force=force)
    write_whole(path, text)


def require_new(path: Path, *, force: bool, option: str = "-o") -> None:
    """Refuse a file that exists, unless --force was given: before anything takes long.

    Raises:
        ProbeError: it exists.
    """
    if path.exists() and not force:
        raise ProbeError(
            f"{path} exists already", f"choose another name with {option}, or overwrite it with --force"
        )


def complain(error: ProbeError) -> None:
    """Print an error with its next step."""
    say([("error: ", "bold red"), _indented(error.message)])
    if error.hint:
        hint = re.sub(r"`[^`\n]+`", lambda match: one_word(match[0]), error.hint)
        say([("hint: ", "bold cyan"), _indented(hint)])


def warn(problems: Iterable[Problem]) -> ExitCode:
    """Print what could not be read; return FAILED if there is such."""
    status = ExitCode.OK
    for problem in problems:
        say_warning(_indented(str(problem)))
        status = ExitCode.FAILED
    return status


def _indented(message: str) -> str:
    """Indent what follows the first line: a name with a line end in it cannot pose as a message of ours."""
    return message.replace("\n", "\n  ")


def _console(stream: TextIO) -> Console:
    known_width = stream.isatty() or "COLUMNS" in os.environ
    return plain_console(file=stream, width=None if known_width else _PIPE_WIDTH)
