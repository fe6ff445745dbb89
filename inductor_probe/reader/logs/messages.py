"""Messages of a log: lines that belong together, joined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from inductor_probe.model.span import Span
from inductor_probe.reader.logs.fusion import starts_message
from inductor_probe.reader.logs.lines import LogLine

READ_ARTIFACTS = ("fusion", "loop_ordering", "schedule", "loop_tiling", "perf_hints")
"""Logs whose lines must all be understood."""

_PLAIN = ("torch/_inductor/", "torch._inductor.")
_BEGINNINGS = {
    "schedule": ("Schedule:", "Disabled vectorization:", "Data type propagation:"),
    "loop_tiling": ("Normalized Fused reads:", "zero division error"),
    "perf_hints": (
        "Skip comprehensive padding",
        "Using FallbackKernel",
        "possibly bad tiling",
        "Found optimal tiling",
        "reduction over non-contiguous",
        "Reduction over non-contiguous",
    ),
}


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `line` is its first line; `text` is all of it."""

    path: Path
    line: LogLine
    text: str
    last: int

    @property
    def span(self) -> Span:
        """Its lines."""
        return Span(self.path, self.line.number, self.last)


def messages(lines: Iterable[LogLine], path: Path) -> Iterator[Message]:
    """Join lines of one message: they have one prefix, and the later ones start no message themselves.

    Only messages of inductor are joined; a line of any other log, or without a prefix, is one of its own.
    """
    first: LogLine | None = None
    texts: list[str] = []
    last = 0
    for line in lines:
        if first is not None and line.stamp == first.stamp and not _starts(line):
            texts.append(line.text)
            last = line.number
            continue
        if first is not None:
            yield Message(path, first, "\n".join(texts), last)
        first, texts, last = line, [line.text], line.number
    if first is not None:
        yield Message(path, first, "\n".join(texts), last)


def is_plain(line: LogLine) -> bool:
    """Tell whether a line is inductor's without belonging to a named log."""
    return line.artifact is None and line.source is not None and line.source.startswith(_PLAIN)


def _starts(line: LogLine) -> bool:
    """Tell whether a line is the first of a message, given that the line before has the same prefix."""
    if line.artifact == "fusion":
        return starts_message(line.text)
    if line.artifact in _BEGINNINGS:
        return line.text.startswith(_BEGINNINGS[line.artifact])
    if is_plain(line):
        return bool(line.text.strip()) and line.text[0] not in " )"
    return True
