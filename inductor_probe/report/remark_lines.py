"""Remarks as lines, each behind a sign of its kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from inductor_probe.model.remark import Remark, RemarkKind
from inductor_probe.report.words.remarks import folded

_SIGNS: Mapping[RemarkKind, tuple[str, str]] = {
    "passed": ("+", "green"),
    "missed": ("!", "bold yellow"),
    "analysis": ("-", "cyan"),
    "hazard": ("!", "bold red"),
}


def remark_lines(
    remarks: Iterable[Remark], indent: int = 2, about: str | None = None
) -> Iterator[RenderableType]:
    """Yield a line for each remark, repeated ones folded; `about` is a name that needs no saying again."""
    for kind, text in folded(remarks, about):
        yield remark_line(text, kind, indent)


def remark_line(text: str, kind: RemarkKind, indent: int = 2) -> RenderableType:
    """Return `text` behind the sign of its kind, its further lines under its first."""
    sign, style = _SIGNS[kind]
    return _Line(text, f"{' ' * indent}{sign} ", style)


def name_style(remarks: Iterable[Remark]) -> str:
    """Return the style of a name in a table: of one with a remark that is more than a fact."""
    return "bold red" if any(remark.kind in ("missed", "hazard") for remark in remarks) else "bold"


class _Line:
    """A grid of rich's would do, but a run has hundreds of remarks, and it takes ten times as long."""

    def __init__(self, text: str, sign: str, style: str) -> None:
        self.text = text
        self.sign = sign
        self.style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(options.max_width - len(self.sign), 1)
        lines = console.render_str(self.text).wrap(console, room, overflow="ellipsis")
        for number, line in enumerate(lines):
            if number:
                yield Segment(" " * len(self.sign))
            else:
                yield Segment(self.sign, console.get_style(self.style))
            yield from line.render(console)
            yield Segment.line()
