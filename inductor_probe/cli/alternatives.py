"""`--or` on the command line: what follows it is another candidate, of the options that make candidates."""

from __future__ import annotations

from itertools import islice
from typing import Any

import click

_OR = "--or"
CANDIDATE_OPTIONS = "probe.candidate_options"


def alternatives(ctx: click.Context, parameter: click.Parameter, value: object) -> tuple[dict[str, Any], ...]:
    """Return the parameters of each candidate behind an `--or`: the callback of that option."""
    return tuple(ctx.meta.get(CANDIDATE_OPTIONS, ()))


class WithAlternatives(click.Command):
    """A verb with `--or`: an option behind it belongs to another candidate, if it is one that makes some.

    `makes_candidates` names them by their parameters; all others are those of the verb wherever they stand.
    """

    makes_candidates: tuple[str, ...] = ("knobs", "env", "flips")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take what is behind each `--or` out of the words, and parse it by itself."""
        options = [
            parameter
            for parameter in self.params
            if isinstance(parameter, click.Option) and parameter.name in self.makes_candidates
        ]
        flags = {name: option for option in options for name in option.opts}
        rest: list[str] = []
        parts: list[list[str]] = []
        words = iter(args)
        for word in words:
            name, equals, _ = word.partition("=")
            if word == "--":
                rest += [word, *words]
            elif word == _OR:
                parts.append([])
            elif parts and name in flags:
                option = flags[name]
                takes = 0 if equals or option.is_flag else option.nargs
                parts[-1] += [word, *islice(words, takes)]
            else:
                rest.append(word)
        behind = click.Command(self.name, params=list(options), add_help_option=False)
        made = []
        for part in parts:
            if not part:
                raise click.UsageError(f"{_OR} begins another candidate: give it a setting", ctx)
            made.append(dict(behind.make_context(ctx.info_name, part, parent=ctx).params))
        ctx.meta[CANDIDATE_OPTIONS] = made
        return super().parse_args(ctx, rest)
