"""`--or` on the command line: what follows it is another candidate, of the options that make candidates."""

from __future__ import annotations

from collections import deque
from typing import Any

import click

from inductor_probe.model.flip import FLIP_KINDS

_OR = "--or"
_CANDIDATES = "probe.candidates"
_MAKING = ("knobs", "env", *(kind.replace("-", "_") for kind in FLIP_KINDS))
"""The parameters of options that make a candidate."""


def alternatives(ctx: click.Context, parameter: click.Parameter, value: object) -> tuple[dict[str, Any], ...]:
    """Return the parameters of each candidate behind an `--or`: the callback of that option."""
    return tuple(ctx.meta.get(_CANDIDATES, ()))


class WithAlternatives(click.Command):
    """A verb with `--or`: an option behind it belongs to another candidate, if it is one that makes some.

    All other options are those of the verb wherever they stand.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take what is behind each `--or` out of the words, and parse it by itself."""
        options = [
            parameter
            for parameter in self.params
            if isinstance(parameter, click.Option) and parameter.name in _MAKING
        ]
        named = {name: option for option in options for name in option.opts}
        rest: list[str] = []
        parts: list[list[str]] = []
        words = deque(args)
        while words:
            word = words.popleft()
            name, equals, _ = word.partition("=")
            if word == "--":
                rest += [word, *words]
                break
            if word == _OR:
                parts.append([])
            elif parts and name in named:
                parts[-1].append(word)
                # `--persistent` may stand alone, by its flag value.
                alone = named[name].flag_value == "" and (not words or words[0].startswith("-"))
                if not equals and not alone and words:
                    parts[-1].append(words.popleft())
            else:
                rest.append(word)
        behind = click.Command(self.name, params=list(options), add_help_option=False)
        made = []
        for part in parts:
            if not part:
                raise click.UsageError(f"{_OR} begins another candidate: give it a setting", ctx)
            made.append(dict(behind.make_context(ctx.info_name, part, parent=ctx).params))
        ctx.meta[_CANDIDATES] = made
        return super().parse_args(ctx, rest)
