"""Python text as a tree, as far as it can be read, within bounds. Nothing is compiled to code or run.

A tree takes much more memory than its text: 900 bytes for each byte of `x` on lines of their own, 700 of
`f()` and 470 of `(a, a, ...)` (CPython 3.11), and a second for 300 kB. So the words are counted before. That
takes as long as reading the rest of a wrapper, and so is done for large texts only: small ones do no harm.

`read_python_source` is for a file that is going to be run. Python decodes a file by the encoding that a
comment in its first two lines names (PEP 263), so the same bytes can be other code than they show. With
`raw_unicode_escape`, this comment ends in the middle:

    # -*- coding: raw_unicode_escape -*-
    # harmless \\u000aimport os; os.system("...")

What is read here is UTF-8, and is handed to `compile` as text: that ignores such a comment, so what was
compared is what is compiled. The comment is refused all the same, since `python FILE` obeys it.
"""

from __future__ import annotations

import ast
import codecs
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from inductor_probe.errors import UnreadableError
from inductor_probe.files import LONG_NUMBER, decoded, read_bytes
from inductor_probe.model.span import Problem, Span

MOST_WORDS = 300_000
"""Words and signs of a text, 900 bytes of memory each at most. A wrapper of 430 kB has 15,000: each kernel in
it is one string."""
MOST_WORDS_OF_STATEMENT = 50_000
"""The longest statement of a network names each of some thousand inputs: two words each."""
LARGEST_EXPRESSION = 1 << 16
"""Characters of an expression that stands for one value. The longest of 700 IR files has 121."""
LARGEST_EXPRESSIONS = 1_500_000
"""Characters of all values of a file, or of a run's logs, that need a tree. At most a quarter of a file's
text does, and less of large files; the rest has one of the forms that are read by pattern."""
_UNCOUNTED = 1 << 18
_NOT_READ = "number_not_read"
LONGEST_FSTRINGS = 1 << 16
"""Characters. CPython 3.11 takes 27 s for an f-string of 300 kB, and a quarter of that for half of it."""
_DEEPER_THAN_THIS = 1_000
"""Words that a statement has at least which nests too deeply to become a tree."""
_MOST_TRIES = 6
_WORD = re.compile(r"#[^\n]*|(?P<prefix>[rRbBuUfF]{0,2})(?P<quote>\'{3}|\"{3}|[\'\"])|\w+|\n|[^\s\w]")
_IN_STRING = {quote: re.compile(rf"\\.|{quote}", re.DOTALL) for quote in ("'''", '"""')}
_IN_STRING |= {quote: re.compile(rf"\\.|{quote}|\n", re.DOTALL) for quote in ("'", '"')}
_BRACKETS = dict.fromkeys("([{", 1) | dict.fromkeys(")]}", -1)
_FSTRINGS = tuple(f"{f}{r}{quote}" for f in "fF" for r in ("", "r", "R") for quote in "'\"")


class ParsedText(Struct, frozen=True):
    """The statements before the first line that is not Python, or too much, and that line as a problem."""

    tree: ast.Module
    problems: tuple[Problem, ...] = ()


def parse_readable_part(text: str, path: Path) -> ParsedText:
    """Parse `text`; where it is cut off, damaged or too large, parse what stands before that."""
    readable = text
    damaged, why = _too_much(text) or (0, "cut off, or not Python,")
    if damaged:
        readable = _before(text, damaged)
    for _ in range(_MOST_TRIES):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an invalid escape in a string is torch's affair
                tree = ast.parse(readable)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
        except (RecursionError, MemoryError):
            line, _ = _too_much(readable, _DEEPER_THAN_THIS) or (1, "")
            why = "nested too deeply to be read"
        else:
            problems = (_unread(text, path, damaged, why, tree),) if damaged else ()
            return ParsedText(tree, problems)
        damaged = min(damaged or line, line)
        readable = _before(readable, line)
    return ParsedText(ast.Module([], []), (_unread(text, path, 1, why, None),))


parse_once = lru_cache(maxsize=1)(parse_readable_part)
"""The same for a text that is parsed again at once, as by `probe check`. The tree is not to be changed."""


@contextmanager
def expressions_bounded() -> Iterator[None]:
    """Bound what `parse_expression` takes in all within the body: `LARGEST_EXPRESSIONS`."""
    before = _left.set([LARGEST_EXPRESSIONS])
    try:
        yield
    finally:
        _left.reset(before)


_left: ContextVar[list[int]] = ContextVar("characters that may still become trees")


def parse_expression(text: str) -> ast.expr:
    """Parse one expression of a dump. Python may warn of it: to ignore that for each would take longer.

    Raises:
        ValueError: not a Python expression, too long or nested too deeply to be one of inductor's, or there
            were too many before; its message says which of these.
    """
    check_length(text)
    left = _left.get(None)
    if left is not None:
        left[0] -= len(text)
        if left[0] < 0:
            raise ValueError(f"not read: {LARGEST_EXPRESSIONS:,} characters of unusual values came before it")
    if LONG_NUMBER.search(text):  # of a log: those of other files are names by now
        raise ValueError("not read: a number of more than 1,000 digits")
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        shown = text if len(text) <= 80 else f"{text[:77]}..."
        raise ValueError(f"not an expression: {shown}") from error


def without_long_numbers(text: str, path: Path) -> tuple[str, tuple[Problem, ...]]:
    """Return `text` with a name for each number that Python would not print, and their lines as problems.

    `size=[0xfff..., 3]` becomes `size=[number_not_read, 3]`: the rest of the line and of the file is read.
    """
    lines = [text.count("\n", 0, match.start()) + 1 for match in LONG_NUMBER.finditer(text)]
    if not lines:
        return text, ()
    message = "a number of more than 1,000 digits, not read"
    problems = tuple(Problem(message, Span(path, line, line)) for line in dict.fromkeys(lines))
    return LONG_NUMBER.sub(_NOT_READ, text), problems


def check_length(text: str) -> None:
    """Raise ValueError where a value is too long to be one of inductor's."""
    if len(text) > LARGEST_EXPRESSION:
        raise ValueError(f"not read: a value of {len(text):,} characters, more than {LARGEST_EXPRESSION:,}")


def _too_much(text: str, of_statement: int = MOST_WORDS_OF_STATEMENT) -> tuple[int, str] | None:
    """Return the first line beyond a bound of what a tree may be made of, and which bound; None below all.

    A string is one word, and each escape in it one more. Behind the first f-string each word of a string
    counts: in `f"{a["b"]}"` Python 3.11 sees the strings `f"{a["` and `"]}"`, 3.12 sees one. A line outside
    of brackets begins a statement.
    """
    if (
        of_statement == MOST_WORDS_OF_STATEMENT
        and len(text) <= _UNCOUNTED
        and not any(start in text for start in _FSTRINGS)
    ):
        return None
    words = before = depth = position = fstrings = first = 0  # `before` the statement that begins at `first`
    has_fstring = False
    while match := _WORD.search(text, position):
        position = match.end()
        word = match[0]
        words += 1
        if quote := match["quote"]:
            end, escapes = _string_end(text, position, quote)
            if "f" in match["prefix"].lower():
                has_fstring = True
                fstrings += end - match.start()
            if not has_fstring:
                position, words = end, words + escapes
        elif word in _BRACKETS:
            depth += _BRACKETS[word]
        elif word == "\n" and (depth <= 0 or has_fstring):
            before, first = words, position
        if why := _excess(words, words - before, of_statement, fstrings):
            return text.count("\n", 0, first) + 1, f"not read: {why}, which no wrapper has,"
    return None


def _excess(words: int, in_statement: int, of_statement: int, fstrings: int) -> str | None:
    if words > MOST_WORDS:
        return f"more than {MOST_WORDS:,} words of Python"
    if in_statement > of_statement:
        return f"a statement of more than {of_statement:,} words"
    return f"f-strings of more than {LONGEST_FSTRINGS:,} characters" if fstrings > LONGEST_FSTRINGS else None


def _string_end(text: str, position: int, quote: str) -> tuple[int, int]:
    """Return where the string that `quote` opens before `position` ends, and how many escapes are in it."""
    escapes = 0
    while match := _IN_STRING[quote].search(text, position):
        position = match.end()
        if match[0][0] != "\\":
            return position, escapes
        escapes += 1
        if escapes > MOST_WORDS:
            break
    return len(text), escapes


def _before(text: str, line: int) -> str:
    """Return the lines before `line`; when that is all of them, before the last one as well."""
    lines = text.split("\n")
    return "\n".join(lines[: max(min(line, len(lines)) - 1, 0)])


def _unread(text: str, path: Path, line: int, why: str, tree: ast.Module | None) -> Problem:
    last = text.count("\n") + 1
    read_to = max((statement.end_lineno or 0 for statement in tree.body), default=0) if tree else 0
    first = min(max(read_to + 1, 1), last)
    return Problem(f"{why} from line {line} on", Span(path, first, last))


# `get_coding_spec` of CPython's tokenizer: in a comment that has its line to itself, of line 1 or 2.
_COOKIE = re.compile(r"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)
_BOM = "\ufeff"


class PythonSource(Struct, frozen=True):
    """A Python file as it was when it was read.

    Attributes:
        text: what is to be compiled: lines end in `\\n`, and there is no byte order mark.
        data: the bytes it was read from.
        status: owner and mode of the very file that was read, whatever lies at `path` since.
    """

    path: Path
    text: str
    data: bytes
    status: os.stat_result


def read_python_source(path: Path) -> PythonSource:
    """Read a Python file as Python will compile it.

    Raises:
        NotFoundError, UnreadableError: see `read_text`; or it names an encoding other than UTF-8.
    """
    data, status = read_bytes(path)
    text = decoded(data, path).removeprefix(_BOM)
    for number, line in enumerate(text.split("\n", 2)[:2], 1):
        cookie = _COOKIE.match(line)
        if cookie and not _is_utf8(cookie[1]):
            raise UnreadableError(
                f"{path}:{number}: names the encoding {cookie[1]}: to Python it is other code than it shows",
                "the file is read as UTF-8; delete that line if it is yours",
            )
    return PythonSource(path, text, data, status)


def _is_utf8(name: str) -> bool:
    try:
        return codecs.lookup(name).name == "utf-8"
    except LookupError:
        return False
