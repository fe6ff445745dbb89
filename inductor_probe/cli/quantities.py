"""Quantities on the command line: durations, shares, lists, sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

_UNITS = {"ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0}


class Duration(click.ParamType):  # type: ignore[type-arg]
    """`500ms`, `10s`, `2m`, or a number of seconds; gives seconds."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+\.?\d*|\.\d+) ?(ms|s|min|m|)", str(value))
        if match is None or not (seconds := float(match[1]) * _UNITS[match[2]]):
            self.fail(f"invalid duration {value!r} (examples: 500ms, 10s, 2m)", param, ctx)
        return seconds


class Share(click.ParamType):  # type: ignore[type-arg]
    """`1%` or `0.01`; gives the number."""

    name = "percent"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the share, which is over 0 and under 1."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+\.?\d*|\.\d+) ?(%?)", str(value))
        share = float(match[1]) / (100 if match[2] else 1) if match else 0.0
        if not 0 < share < 1:
            self.fail(
                f"invalid share {value!r}: it must be over 0 and under 1 (examples: 1%, 0.01)", param, ctx
            )
        return share


class Names(click.ParamType):  # type: ignore[type-arg]
    """`1,2` or `random,zeros`: one or several of a kind."""

    name = "list"

    def __init__(self, kind: type[int] | type[str], words: Sequence[str] = ()) -> None:
        """Take numbers or words; `words` are completed."""
        self.kind = kind
        self.words = words

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return what the last word of the list may be."""
        head, comma, last = incomplete.rpartition(",")
        return [CompletionItem(head + comma + word) for word in self.words if word.startswith(last)]

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int | str, ...]:
        """Return them in order, each once."""
        if isinstance(value, tuple):
            return value
        parts = [part.strip() for part in str(value).split(",")]
        numbers = self.kind is int
        example = "1 or 1,2" if numbers else "random or random,zeros"
        if not all(parts) or (numbers and not all(part.isdecimal() and int(part) for part in parts)):
            self.fail(f"invalid list {value!r} (examples: {example})", param, ctx)
        return tuple(dict.fromkeys(self.kind(part) for part in parts))


class Sizes(click.ParamType):  # type: ignore[type-arg]
    """`s77=128`; gives the name and the number."""

    name = "s77=128"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Return name and number."""
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"(\w+)=(\d{1,18})", str(value))
        if match is None:
            self.fail(f"invalid size {value!r} (example: s77=128)", param, ctx)
        return match[1], int(match[2])
