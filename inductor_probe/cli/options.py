"""Click's parameters of a verb, made from the record of its options (`inductor_probe/options/`)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem
from msgspec import NODEFAULT, Struct

from inductor_probe.cli import completion
from inductor_probe.errors import ProbeError
from inductor_probe.options.fields import Option, options_of


def percent(text: str) -> float:
    """Return `1%` or `0.01` as a number over 0 and under 1."""
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+) ?(%?)", text)
    share = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < share < 1:
        raise click.BadParameter(
            f"invalid share {text!r}: it must be over 0 and under 1 (examples: 1%, 0.01)"
        )
    return share


def seconds(text: str) -> float:
    """Return `500ms`, `10s`, `2m` or a number of seconds in seconds."""
    units = {"ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0}
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+) ?(ms|s|min|m|)", text)
    if match is None or not (number := float(match[1]) * units[match[2]]):
        raise click.BadParameter(f"invalid duration {text!r} (examples: 500ms, 10s, 2m)")
    return number


def _size(text: str) -> tuple[str, int]:
    match = re.fullmatch(r"(\w+)=(\d{1,18})", text)
    if match is None:
        raise click.BadParameter(f"invalid size {text!r} (example: s77=128)")
    return match[1], int(match[2])


def _flags(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise click.BadParameter(f"invalid flags {text!r}: {error}") from error


def _python(text: str) -> Path:
    """Return an interpreter's path as it can be started from elsewhere; links in it stay: they say which."""
    return Path(text).expanduser().absolute()


def _age(text: str) -> timedelta:
    units = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
    match = re.fullmatch(r"(\d{1,6})\s*([smhdw])", text)
    if not match:
        raise ProbeError(f"invalid age {text!r}", "for example 30m, 12h, 7d, 2w")
    return timedelta(**{units[match[2]]: int(match[1])})


class CommaList(click.ParamType):  # type: ignore[type-arg]
    """`random,zeros`, or numbers over 0 (`1,2`); each once.

    Args:
        words: that are known, if any; None for numbers.
    """

    name = "list"

    def __init__(self, words: Sequence[str] | None = None) -> None:
        self.words = words

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return what the last word of the list may be."""
        head, comma, last = incomplete.rpartition(",")
        return [CompletionItem(head + comma + word) for word in self.words or () if word.startswith(last)]

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int | str, ...]:
        """Return the words or numbers."""
        parts = [part.strip() for part in str(value).split(",")]
        if self.words is not None and all(parts):
            return tuple(dict.fromkeys(parts))
        if self.words is not None or not all(part.isdecimal() and int(part) for part in parts):
            words = self.words or ("eager", "compiled")
            example = "1 or 1,2" if self.words is None else f"{words[0]} or {','.join(words[:2])}"
            self.fail(f"invalid list {value!r} (examples: {example})", param, ctx)
        return tuple(dict.fromkeys(map(int, parts)))


class _KindList(CommaList):
    """Kinds of decisions, each completed with what is decided."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return what the last word of the list may be."""
        from inductor_probe.catalogue import KINDS, kind_of

        decides = {kind: kind_of(kind).decides for kind in KINDS}
        items = super().shell_complete(ctx, param, incomplete)
        return [CompletionItem(one.value, help=decides[one.value.rpartition(",")[2]]) for one in items]


def _knobs(pairs: Sequence[str]) -> dict[str, str]:
    """Return what `--set NAME=VALUE` sets: knobs of the scenario, and settings of torch."""
    for pair in pairs:
        if not re.match("[^=]+=", pair):
            raise ProbeError(
                f"invalid setting --set {pair}: write NAME=VALUE",
                "for example --set dtype=float32, --set inductor.cpp.simdlen=256",
            )
    return _pairs(pairs)


def _variables(pairs: Sequence[str]) -> dict[str, str]:
    """Return what `--env NAME=VALUE` sets."""
    for pair in pairs:
        if not re.match("[^=]+=", pair):
            raise ProbeError(
                f"invalid variable --env {pair}: write NAME=VALUE", "for example --env OMP_NUM_THREADS=1"
            )
    if pairs:
        from inductor_probe.capture.process import check_variables

        check_variables(_pairs(pairs))
    return _pairs(pairs)


def _pairs(pairs: Sequence[str]) -> dict[str, str]:
    return dict(pair.partition("=")[::2] for pair in pairs)


class _Kind(NamedTuple):
    """Words of a kind: how click reads and completes each, and what is made of all of them."""

    type: Any
    all: Callable[[Sequence[str]], Any] | None = None


KINDS: Mapping[str, _Kind] = {
    "seconds": _Kind(seconds),
    "share": _Kind(percent),
    "size": _Kind(_size),
    "flags": _Kind(_flags),
    "python": _Kind(_python),
    "folder": _Kind(click.Path(file_okay=False, path_type=Path)),
    "file": _Kind(click.Path(dir_okay=False, path_type=Path)),
    "age": _Kind(_age),
    **{name: _Kind(words) for name, words in completion.WORDS.items()},
    "knob": _Kind(completion.WORDS["knob"], _knobs),
    "variable": _Kind(str, _variables),
}
"""What `kind` of an option says -> what that is here."""


def parameters_of(record: type[Struct], *, arguments: bool = True) -> Iterator[click.Parameter]:
    """Yield click's parameters for the fields of a record; its arguments only where those are wanted.

    None has a default: what is not typed is that of the record.
    """
    for option in options_of(record):
        if option.typed.place == "argument":
            if arguments:
                yield _argument(option)
        elif option.typed.place != "python":
            yield _option(option)


def _argument(option: Option) -> click.Argument:
    kind = KINDS.get(option.typed.kind, _Kind(str)).type
    needed = option.default is NODEFAULT
    return click.Argument(
        [option.name], type=kind, metavar=option.typed.metavar or None, required=needed,
        nargs=-1 if option.is_list else 1,
    )  # fmt: skip


_DEFAULT = re.compile(r" (?=\[[^]]+\]$)")
"""Before what a text says of a default that depends."""


def _option(option: Option) -> click.Option:
    typed, default = option.typed, option.default_text
    form: dict[str, Any] = {
        "help": f"{option.help}  [{default}]" if default else _DEFAULT.sub("  ", option.help),
        "hidden": typed.place == "hidden",
        "metavar": typed.metavar or None,
    }
    if option.kind is bool and "/" in typed.flags:
        form["default"] = None
    elif option.kind is bool:
        form |= {"is_flag": True, "flag_value": not option.default, "default": option.default}
    elif typed.kind == "candidates":  # what stands behind it was taken out: see `alternatives`
        form["is_flag"] = True
    else:
        form |= _form(option)
    return click.Option([option.name, *option.flags], **form)


def _form(option: Option) -> dict[str, Any]:
    """Return how click reads an option that has a value, or several."""
    kind = KINDS.get(option.typed.kind)
    form: dict[str, Any] = {"type": _type(option) if kind is None else kind.type}
    if get_origin(option.kind) is tuple:
        form["nargs"] = len(get_args(option.kind))
    if (option.is_list or get_origin(option.kind) is Mapping) and not option.in_one:
        form["multiple"] = True
    if kind is not None and (all_of := kind.all) is not None:
        form["callback"] = lambda ctx, parameter, values: all_of(values)
    if option.typed.alone is not None:
        form |= {"is_flag": False, "flag_value": option.typed.alone}
    return form


def _type(option: Option) -> Any:
    """Return click's type for that of a field, or of what it is a list of."""
    parts = get_args(option.kind)
    kind = parts[0] if get_origin(option.kind) in (Sequence, tuple) else option.kind
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    if option.typed.kind == "kinds":
        return _KindList(choices)
    if option.typed.kind == "list":
        return CommaList(None if kind is int else choices)
    if choices:
        return click.Choice(choices)
    if kind is int:
        least, most = (None if bound is None else int(bound) for bound in (option.least, option.most))
        return click.IntRange(least, most)
    return click.Path(path_type=Path) if kind is Path else str


def typed_values(context: click.Context, record: type[Struct], values: dict[str, Any]) -> dict[str, Any]:
    """Take what was typed for a record out of the values of a verb."""
    typed = {name: values.pop(name) for name in record.__struct_fields__ if name in values}
    return {
        name: value
        for name, value in typed.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
