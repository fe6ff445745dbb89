"""The message when something cannot be done: one sentence, where, and what to do next."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit status of `probe`."""

    OK = 0
    MISMATCH = 1
    """A wrong variant, a regression or a difference was found, or something needed is missing."""
    FAILED = 2
    """What was asked for could not be done."""
    INTERRUPTED = 130
    """Ctrl-C ended it: the status that shells give."""


class ProbeError(Exception):
    """A failure with a sentence for the user.

    Args:
        message: what is wrong and where (`path:line` when a file is at fault), without a final period.
        hint: the next step, or None when there is none to offer.
        code: what kind of failure it is, for programs; that of the class if left out.
    """

    exit_code = ExitCode.FAILED
    code = "failed"

    def __init__(self, message: str, hint: str | None = None, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or type(self).code


class NotFoundError(ProbeError):
    """A run, graph, buffer, kernel or script of that name is not there."""

    code = "not-found"


class UnreadableError(ProbeError):
    """A file is there but cannot be read: permissions, truncation, not text, not a debug dir."""

    code = "unreadable"


class RunFailedError(ProbeError):
    """A child process (a dumped script, a bench file) did not end well."""

    code = "run-failed"


class StoppedError(ProbeError):
    """Ctrl-C ended what was going on; what was done by then is kept."""

    exit_code = ExitCode.INTERRUPTED
    code = "interrupted"


class VariantTextError(ProbeError):
    """The text for a variant of a bench file does not fit.

    Args:
        name: the variant.
        line: of the text, from 1.
        what: what is wrong there.
    """

    def __init__(self, name: str, line: int, what: str, hint: str) -> None:
        super().__init__(f"line {line} of the text for {name}: {what}", hint)
        self.name = name
        self.line = line
        self.what = what


class AmbiguousError(ProbeError):
    """A name means several things; the hint names each by what means it alone."""

    code = "ambiguous"


_LEFT_OUT = re.compile(r"…|\.\.\.")


def names_meant(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return which of `known` a name means: the one that is called so, or else all that it is short for.

    Short is the start of a name, or one with an ellipsis for what a screen left out: `triton_poi_…_3`. That
    is something: `…op3` is op2_op3, and not op3.
    """
    names = tuple(dict.fromkeys(known))
    if name in names or not name:
        return (name,) if name else ()
    form = re.compile(pattern_of(name), re.DOTALL)
    return tuple(filter(form.fullmatch, names)) or tuple(filter(form.match, names))


def pattern_of(name: str) -> str:
    """Return the regular expression of a name in which an ellipsis stands for what was left out."""
    return ".+".join(map(re.escape, _LEFT_OUT.split(name)))


def shortened(name: str) -> bool:
    """Whether a screen left out a part of a name."""
    return _LEFT_OUT.search(name) is not None


def near_names(name: str, known: Iterable[str]) -> str | None:
    """Return a hint that offers the names nearest to `name`, or all of them when they are few."""
    from difflib import get_close_matches  # noqa: PLC0415 - slow to import, and only for a slip

    names = list(dict.fromkeys(known))
    close = get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(close)}?"
    if not names:
        return None
    shown = ", ".join(names[:8])
    return f"there is {shown}" + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def signal_name(number: int) -> str:
    """Return what a signal is called: `signal 9 (SIGKILL)`."""
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
