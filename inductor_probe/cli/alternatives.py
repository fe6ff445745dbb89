"""`--or` on the command line: what follows it is another candidate, of the options that make candidates."""

from __future__ import annotations

from collections import deque

import click
from click.core import ParameterSource

from inductor_probe.cli.options import parameters_of, typed_values
from inductor_probe.options.programs import CandidateOptions

_OR = "--or"


class WithAlternatives(click.Command):
    """A verb with `--or`: an option behind it belongs to another candidate, if it is one that makes some.

    All other options are those of the verb wherever they stand.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take what is behind each `--or` out of the words, and make `others` of it."""
        options = [one for one in parameters_of(CandidateOptions) if isinstance(one, click.Option)]
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
        others = []
        for part in parts:
            if not part:
                raise click.UsageError(f"{_OR} begins another candidate: give it a setting", ctx)
            context = behind.make_context(ctx.info_name, part, parent=ctx)
            others.append(CandidateOptions(**typed_values(context, CandidateOptions, context.params)))
        unread = super().parse_args(ctx, rest)
        if others:
            ctx.params["others"] = tuple(others)
            ctx.set_parameter_source("others", ParameterSource.COMMANDLINE)
        return unread
