"""How a verb is made of a function and its records; and names with where to look for them, in any order."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, get_args

import click
from msgspec import Struct

from inductor_probe.cli.options import parameters_of, typed_values
from inductor_probe.cli.screen import FORM, GITHUB, SUBJECT, OutputFormat, relative, say
from inductor_probe.discovery.discover import find
from inductor_probe.errors import AmbiguousError, NotFoundError, ProbeError
from inductor_probe.options.fields import Typed
from inductor_probe.report.json_form import JsonForm
from inductor_probe.report.units import first_names

if TYPE_CHECKING:
    from inductor_probe.api.session import Graph
    from inductor_probe.api.verbs import Target

Answer = TypeVar("Answer")


class Everything(Struct, frozen=True, kw_only=True):
    """How long the answer is: `page` in Python.

    Attributes:
        everything: Show long lists to their end.
    """

    everything: Annotated[bool, Typed(flags="--all")] = False


AsIssue: TypeAlias = Annotated[
    bool, Typed(text="Print it as an issue for PyTorch, in markdown: no path, host or user.")
]


_TARGETS = {
    "[RUN|GRAPH]": "RUN or GRAPH is a path, a graph's name (model__0_inference_0.0), a label, or the start "
    "of one; LABEL:1 is the labelled run's graph .1. The latest run if left out.",
    "[GRAPH]": "GRAPH is a path, a graph's name (model__0_inference_0.0), the start of one, LABEL:1, or a "
    "run for its first graph; the latest run if left out.",
}
"""The word for a target in the usage line of a verb -> the last paragraph of its help."""


def _print_schema(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        from inductor_probe.catalogue.schema import with_causes
        from inductor_probe.model.output import output_schema  # it imports all records

        click.echo(json.dumps(with_causes(output_schema(context.command.name or "")), indent=1))
        context.exit()


_SARIF = "sarif"
_FORMATS = tuple(name for name in get_args(OutputFormat) if name != _SARIF)
_GITHUB = click.Option(
    ["--github"],
    is_flag=True,
    help="Write annotations and a summary of the job for GitHub Actions, too.",
)


_FOR = {"markdown": "for an issue", _SARIF: "for code scanning"}


def _of_form(formats: Sequence[str]) -> Iterator[click.Parameter]:
    """Yield the options that say how an answer is printed: guides/programs.md has those that are hidden."""
    *others, last = (f"{name} ({_FOR[name]})" if name in _FOR else name for name in formats)
    yield click.Option(
        ["output_format", "--format"], type=click.Choice(formats), default="terminal", metavar="FORM",
        help=f"{', '.join(others)} or {last}.",
    )  # fmt: skip
    about = "Print JSON: --json-schema, --fields, --limit, --compact."
    yield click.Option(["--json"], is_flag=True, help=about)
    yield click.Option(
        ["--json-schema"], is_flag=True, is_eager=True, expose_value=False, hidden=True,
        callback=_print_schema,
    )  # fmt: skip
    yield click.Option(["--fields"], default="", metavar="KEYS", hidden=True)
    yield click.Option(["--limit"], type=click.IntRange(min=0), metavar="N", hidden=True)
    yield click.Option(["--compact"], is_flag=True, hidden=True)


def verb(
    record: type[Struct],
    shown: type[Struct] | None = None,
    *further: click.Parameter,
    arguments: bool = True,
    formats: Sequence[str] = _FORMATS,
    github: bool = False,
    cls: type[click.Command] = click.Command,
    **attributes: Any,
) -> Callable[[Callable[..., int]], click.Command]:
    """Make a verb of a function of the record of its options, and of that of how the answer is shown.

    The function gets the value of --format, or `json` with --json, as `output_format`.

    Args:
        record: what the verb is asked for. shown: what the command line alone has.
        further: arguments or options that no record has; the function gets them by name.
        arguments: whether the arguments of the record are typed; else `further` has them.
        formats: of the answer. github: whether it may be written for GitHub Actions, or as SARIF, too.
        cls, attributes: of the command.
    """

    def decorate(function: Callable[..., int]) -> click.Command:
        def run(
            *, json: bool, output_format: str, fields: str, limit: int | None, compact: bool, **values: Any
        ) -> int:
            if json and output_format not in ("terminal", "json"):
                raise ProbeError("--json is --format json: leave out one of them", code="usage")
            if not json and output_format != "json" and (fields or limit is not None or compact):
                raise ProbeError("--fields, --limit and --compact are about JSON", "add --json", code="usage")
            keys = tuple(key for part in fields.split(",") if (key := part.strip()))
            context = click.get_current_context()
            context.meta[FORM] = JsonForm(keys, limit, compact)
            context.meta[GITHUB] = values.pop("github", False)
            records = [kind(**typed_values(context, kind, values)) for kind in (record, shown) if kind]
            return function(*records, **values, output_format="json" if json else output_format)

        parameters = [
            *further,
            *parameters_of(record, arguments=arguments),
            *(parameters_of(shown) if shown else ()),
            *([_GITHUB] if github else []),
            *_of_form((*formats, _SARIF) if github else formats),
        ]
        help_text = cleandoc(function.__doc__ or "")
        metavars = [parameter.metavar or "" for parameter in parameters]
        for target, sentence in _TARGETS.items():
            if any(target in metavar for metavar in metavars):
                help_text += f"\n\n{sentence}"
        name = function.__name__.replace("_", "-")
        return cls(name, callback=run, params=parameters, help=help_text, **attributes)

    return decorate


def resolve(
    words: Sequence[str], limit: int, query: Callable[..., Answer], *, question: bool = False
) -> Answer:
    """Return what `query` returns for the first reading of `words` that it finds something for.

    Names and where to look for them are typed in either order. With `limit` 1, `buf0` is a name in the latest
    run, or else a run or graph; `buf0 aa` is the name buf0 in the run aa, or else the name aa in the run
    buf0. With `limit` 2, `op0 aa` is first the pair of these names in the latest run. A path is never a name.
    What a table puts behind a name, or between two, says nothing: `op10 +3`, `op3 + op4`.

    Args:
        words: as typed.
        limit: how many names the verb takes at most.
        query: is called with the names, None for each that is left out, and the target; raises NotFoundError
            where the run has no such name, or there is no such run or graph, and AmbiguousError where there
            are several.
        question: the verb answers one about the names: `JsonForm` keeps its answer short.

    Raises:
        AmbiguousError: of the first reading that means several things, where no other means one.
        NotFoundError: of the reading that came closest: the run is there, and has no such name.
        click.UsageError: more words than names and a target.
    """
    pair = _PAIR.search(" ".join(words))
    words = tuple(part for word in words for part in _JOINED.split(word) if not _COUNT.fullmatch(part))
    if pair and limit == 1:
        both = " ".join([*pair.groups(), *(word for word in words if word not in pair.groups())])
        raise click.UsageError(f"{pair[0]} is a pair: probe why {both} and probe fusion {both} are about it")
    if len(words) > limit + 1:
        names = "1 name" if limit == 1 else f"{limit} names"
        raise click.UsageError(f"at most {names} and a run or graph, not {len(words)} arguments")
    readings: list[tuple[tuple[str, ...], str | None]] = [(words, None)] if len(words) <= limit else []
    readings += [(words[:-1], words[-1])] if words else []
    readings += [(words[1:], words[0])] if len(words) > 1 else []
    failures: list[tuple[str | None, NotFoundError]] = []
    several: list[AmbiguousError] = []
    for names_read, target in readings:
        if any(map(_is_path, names_read)):
            continue
        try:
            found = query(*names_read, *[None] * (limit - len(names_read)), target)
            if question and (context := click.get_current_context(silent=True)):
                context.meta[SUBJECT] = bool(names_read)
            return found
        except NotFoundError as error:
            failures.append((target, error))
        except AmbiguousError as error:
            several.append(error)
    if several:
        raise several[0]
    if not failures:
        raise click.UsageError(f"only one run or graph can be named, not two: {' and '.join(words)}")
    raise next((error for target, error in failures if target and _exists(target)), failures[0][1])


def first_graph(kernel: str | None, target: Target) -> tuple[Graph, str | None]:
    """Return the graph of a target that a verb is about which runs or writes something, with a kernel of it.

    If several graphs have the kernel, the first is taken, and a message names the others.

    Args:
        kernel: any name that means one kernel; None for all of them.

    Raises:
        NotFoundError: no graph has the kernel. AmbiguousError: it means several kernels.
    """
    from inductor_probe.api.verbs import graphs_with  # slow to import, and not for every verb

    graph = said_first(graphs_with(kernel, target), f" with {kernel}" if kernel else "")
    return graph, graph.kernel(kernel).name if kernel is not None else None


def said_first(graphs: Sequence[Graph], having: str = "") -> Graph:
    """Return the first of some graphs of a run; a message names the others, `having` something."""
    graph, *others = graphs
    if others:
        names = first_names([other.short_name for other in others], _MOST_GRAPHS)
        run = relative(graph.run.path)
        say(
            f"{run} has {len(graphs)} graphs{having}: this is the first, {graph.short_name}; "
            f"the {'other is' if len(others) == 1 else 'others are'} {names}"
        )
    return graph


def first_kernel(kernel: str | None, target: Target) -> tuple[Graph, str]:
    """Return what `first_graph` does; without a name the only kernel of the graph."""
    graph, name = first_graph(kernel, target)
    return graph, name or graph.kernel().name


_MOST_GRAPHS = 4
_JOINED = re.compile(r" \+ ")
_PAIR = re.compile(r"(\S+) \+ (\S+)")
_COUNT = re.compile(r"\+\d*|\(largest\)")
"""What `probe why` prints behind the first of several names, and between those of a pair."""


def _is_path(word: str) -> bool:
    """Whether a word cannot be a name: only a line of the user's (`models/net.py:12`) has a slash in it."""
    return os.sep in word and (not re.fullmatch(r".*\.py(:\d+)?", word) or Path(word).exists())


def _exists(target: str) -> bool:
    """Whether there is a run or graph of this name, or of the part before its last `:` or `/`."""
    for name in (target, target.rpartition("/")[0], target.rpartition(":")[0]):
        try:
            if name:
                find(name, Path.cwd())
                return True
        except ProbeError:
            continue
    return False
