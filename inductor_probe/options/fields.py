"""What a field of a record of options says: its text, how it is typed, its schema, and its words again.

    class Example(Struct, frozen=True):
        '''What `probe example` is asked for.

        Attributes:
            budget: Measuring in all.
        '''

        budget: Seconds = 10.0

is `--budget TIME`, `budget=10.0` and `{"budget": {"type": "number", ...}}`. What several verbs have is a type
of this module: its text is that of each field of it, where the record says nothing else.
"""

from __future__ import annotations

import shlex
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from inspect import cleandoc
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import fields

from inductor_probe.model.record import docstring_parts

Place: TypeAlias = Literal["option", "hidden", "argument", "python"]


class Typed(Struct, frozen=True):
    """How a field is typed on the command line, beyond what its name, its type and its default say.

    Attributes:
        kind: what its words are, a key of `KINDS` in `cli/options.py`: `seconds`, `script`.
        metavar: what the help calls a value.
        flags: how it is spelled, where that is not its name with dashes: `--case`, `--cold/--warm`.
        text: of each field of a type; what the record says of a field of its own comes first.
        alone: the value of an option that stands alone.
        place: an option, one that `--help-all` shows, an argument without a flag, or a field that is not
            typed, but given in Python and by programs.
    """

    kind: str = ""
    metavar: str = ""
    flags: str = ""
    text: str = ""
    alone: str | None = None
    place: Place = "option"


HIDDEN = Typed(place="hidden")
ARGUMENT = Typed(place="argument")
PYTHON = Typed(place="python")
LIST = Typed(kind="list", metavar="LIST")
"""Values between commas; else an option is repeated."""

Seconds: TypeAlias = Annotated[float, Meta(gt=0), Typed("seconds", "TIME")]
Share: TypeAlias = Annotated[float, Meta(gt=0, lt=1), Typed("share", "PERCENT")]
Budget: TypeAlias = Annotated[Seconds, Typed(text="Measuring in all.")]
Margin: TypeAlias = Annotated[Share, Typed(text="A smaller difference counts as none.")]
Trust: TypeAlias = Annotated[bool, Typed(text="Run code that is not known to be made here. Read it first.")]
Out: TypeAlias = Annotated[
    Path, Typed("folder", text="Folder for torch_compile_debug; the working folder if left out.")
]
Cold: TypeAlias = Annotated[
    bool, Typed(flags="--cold/--warm", text="Do calls read their data from memory or from a cache?")
]
Executor: TypeAlias = Annotated[
    Literal["local", "ray"], Typed(text="On this machine, or on the nodes of a Ray cluster.")
]
Sizes: TypeAlias = Annotated[
    Sequence[tuple[str, int]],
    Typed("size", "NAME=SIZE", "--size", "Bind a symbolic size: s77=128."),
]
Imports: TypeAlias = Annotated[
    Sequence[str], Typed("module", "MODULE", "--import", "Import first: it registers custom operators.")
]
CxxFlags: TypeAlias = Annotated[
    Sequence[str], Typed("flags", "FLAGS", text="Flags behind inductor's own: '-O2 -g'.")
]
Inputs: TypeAlias = Literal["random", "zeros", "sequential", "real"]
Count: TypeAlias = Annotated[Annotated[int, Meta(ge=1)], Typed(metavar="N")]
Own: TypeAlias = Annotated[
    bool, Typed(flags="--no-script", text="Run the script again to time its call against eager.")
]

Device: TypeAlias = Literal["cpu", "cuda"]
Cases: TypeAlias = Annotated[Sequence[str], Typed("case", "CASE", "--case", "A case of the scenario.")]
Knobs: TypeAlias = Annotated[
    Mapping[str, str],
    Typed(
        "knob", "NAME=VALUE", "--set",
        "Set a knob of the scenario, or a setting of torch (inductor.cpp.simdlen=256).",
    ),
]  # fmt: skip
Variables: TypeAlias = Annotated[
    Mapping[str, str],
    Typed("variable", "NAME=VALUE", text="Set a variable of the environment, for the script alone."),
]
Simulated: TypeAlias = Annotated[
    str,
    Typed(
        "gpu", "NAME|FILE.toml",
        text="Generate code for this GPU, simulated: h200, h100, a100, l4, rtx4090, t4, or the file's.",
    ),
]  # fmt: skip
Args: TypeAlias = Annotated[Sequence[str], Typed(place="argument", text="The script's own arguments.")]
Script: TypeAlias = Annotated[Any, Meta(extra_json_schema={"type": "string"}), Typed("script"), ARGUMENT]
Target: TypeAlias = Annotated[Any, Meta(extra_json_schema={"type": ["string", "null"]}), ARGUMENT]
"""What names a run or a graph, or in Python one of them."""


class Option(Struct, frozen=True):
    """A field of a record of options, as every door to the verb needs it.

    Attributes:
        name: of the field. kind: its type, without None and what annotates it. text: what it is about.
        default: `NODEFAULT` where it has to be given. least, most: bounds of a number.
    """

    name: str
    kind: Any
    text: str
    default: Any
    typed: Typed
    least: float | None = None
    most: float | None = None

    @property
    def flags(self) -> tuple[str, ...]:
        """How it is spelled; what is on by default has an option that turns it off."""
        dashed = self.name.replace("_", "-")
        return tuple((self.typed.flags or f"--{'no-' if self.default is True else ''}{dashed}").split())

    @property
    def is_list(self) -> bool:
        """Whether it holds any number of values."""
        return get_origin(self.kind) is Sequence

    @property
    def in_one(self) -> bool:
        """Whether one word holds all of its values."""
        return self.typed.kind in ("list", "kinds", "flags")

    @property
    def help(self) -> str:
        """What is said of it on the command line, where `--no-record` turns off what is on by default."""
        return f"Do not {self.text[0].lower()}{self.text[1:]}" if self.default is True else self.text

    @property
    def default_text(self) -> str:
        """What the help says of its default: `10s`, `1%`; nothing where it has none to show."""
        if self.default in (NODEFAULT, None, (), "") or isinstance(self.default, (bool, dict)):
            return ""
        return self.written(self.default)

    def written(self, value: Any) -> str:
        """Return a value as it is typed."""
        match self.typed.kind:
            case "seconds":
                return f"{value / 60:g}m" if value >= 120 and not value % 60 else f"{value:g}s"
            case "share":
                return f"{100 * value:.6g}%"
            case "size":
                return f"{value[0]}={value[1]}"
            case "flags":
                return shlex.join(value)
            case "list" | "kinds":
                return ",".join(map(str, value))
        return str(value)

    def words(self, value: Any) -> list[str]:
        """Return the words that give it this value; none for its default."""
        if value == self.default:
            return []
        if self.typed.place == "argument":
            return [*map(str, value)] if self.is_list else [str(value)]
        flag = self.flags[0]
        if self.kind is bool:
            on, _, off = flag.partition("/")
            return [on if value or not off else off]
        if get_origin(self.kind) is Mapping:
            return [word for pair in value.items() for word in (flag, "=".join(map(str, pair)))]
        if get_origin(self.kind) is tuple:
            return [flag, *map(str, value)]
        several = value if self.is_list and not self.in_one else (value,)
        return [word for each in several for word in (flag, self.written(each))]


@cache
def options_of(record: type[Struct]) -> tuple[Option, ...]:
    """Return the options of a record, arguments first."""
    hints = typing.get_type_hints(record, include_extras=True)
    texts: dict[str, str] = {}
    for parent in record.__mro__:
        texts = {**texts_of(parent), **texts}
    made = [_option(field.name, hints[field.name], field, texts) for field in fields(record)]
    return tuple(sorted(made, key=lambda option: option.typed.place != "argument"))


def _option(name: str, hint: Any, field: Any, texts: Mapping[str, str]) -> Option:
    typed: dict[str, Any] = {}
    bounds: list[Meta] = []

    def look(kind: Any) -> Any:
        if get_origin(kind) is Annotated:
            inner = look(kind.__origin__)
            for extra in kind.__metadata__:
                if isinstance(extra, Meta):
                    bounds.append(extra)
                elif isinstance(extra, Typed):
                    given = {key: getattr(extra, key) for key in Typed.__struct_fields__}
                    typed.update({key: value for key, value in given.items() if value != _PLAIN[key]})
            return inner
        if get_origin(kind) in (typing.Union, UnionType):
            parts = [part for part in get_args(kind) if part is not NoneType]
            return look(parts[0]) if len(parts) == 1 else kind
        return kind

    kind = look(hint)
    default = field.default if field.default_factory is NODEFAULT else field.default_factory()
    text = texts.get(name) or typed.get("text", "")
    least = next((bound.ge for bound in bounds if bound.ge is not None), None)
    most = next((bound.le for bound in bounds if bound.le is not None), None)
    return Option(name, kind, text, default, Typed(**typed), least, most)


_PLAIN = {name: getattr(Typed(), name) for name in Typed.__struct_fields__}


def texts_of(record: type) -> dict[str, str]:
    """Return what the docstring of a record says of each of its fields."""
    _, entries = docstring_parts(cleandoc(record.__doc__ or ""))
    pairs = (entry.partition(": ") for entry in entries)
    return {name: " ".join(text.split()) for name, _, text in pairs}


def words_of(options: Struct, *names: str) -> tuple[str, ...]:
    """Return the words that a verb is given for these options, or for the named ones; none for defaults."""
    asked = [option for option in options_of(type(options)) if not names or option.name in names]
    words: dict[bool, list[str]] = {True: [], False: []}
    for option in asked:
        if option.typed.place != "python":
            is_argument = option.typed.place == "argument"
            words[is_argument] += option.words(getattr(options, option.name))
    return (*words[True], *words[False])


def shared(options: Struct, record: type[Struct]) -> dict[str, Any]:
    """Return the values of the options that are fields of a record, too; lists as tuples."""
    names = {*options.__struct_fields__} & {*record.__struct_fields__}
    values = {name: getattr(options, name) for name in names}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def input_schema(record: type[Struct]) -> dict[str, Any]:
    """Return a JSON Schema of what a verb may be asked for, with the texts and defaults of its options."""
    from msgspec.json import schema  # noqa: PLC0415 - for programs alone

    made = schema(record, schema_hook=lambda kind: {"type": "string"} if kind is Path else {})
    definition = made["$defs"][record.__name__]
    definition["description"] = docstring_parts(cleandoc(record.__doc__ or ""))[0]
    for option in options_of(record):
        unit = " (in seconds)" if option.typed.kind == "seconds" else ""
        form = f" ({option.typed.metavar})" if {*"=,"} & {*option.typed.metavar} else ""
        definition["properties"][option.name]["description"] = f"{option.text}{form}{unit}"
    return made
