"""Templates of sentences: named values in braces, and in brackets what needs a value that may be missing.

`fill("graph break[ at {where}]: {reason}[ ({repeated} times)]", {"reason": "call to print", "repeated": 2})`
gives `graph break: call to print (2 times)`: `where` is not known, so its brackets are left out.

| in braces | gives |
|---|---|
| `{share:.0%}` | the value, with any format of Python's; a tuple as `a, b, c` |
| `{lines:4}` of a tuple | `a, b, c, d and 3 more`; without a number at most 12 are named |
| `{isa\\|flag}` | the first of several values that is known |
| `{files:# file}`, `{n:# launch/launches}` | a number with its noun: `1 file`, `12,345 files` |
| `{files:?is/are}` | only the word that goes with the number |
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from inductor_probe.model.remark import Remark

MOST_SUBJECTS = 3
_MOST_LISTED = 12
_UNKNOWN = (None, "", ())
_OPTIONAL = re.compile(r"\[([^][]*)\]")


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 node`, `2 nodes`, `12,345 lines`."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


class _Formatter(string.Formatter):
    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        for name in field_name.split("|"):
            if name.startswith("'"):
                return name.strip("'"), field_name
            if kwargs.get(name) not in _UNKNOWN:
                return kwargs[name], field_name
        return kwargs[name], field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None:
            return "?"
        if isinstance(value, tuple):
            return listed(value, int(format_spec or _MOST_LISTED))
        one, _, many = format_spec[1:].partition("/")
        if format_spec.startswith("#"):
            return counted(value, one.lstrip(), many or None)
        if format_spec.startswith("?"):
            return one if value == 1 else many
        return str(super().format_field(value, format_spec))


_FORMATTER = _Formatter()


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Return a template with its values. None and what is empty are not known: `?` outside of brackets.

    Raises:
        KeyError, TypeError, ValueError: there is no such value outside of brackets, or it has another type.
    """
    parts = _OPTIONAL.split(template)  # alternately a part that stays and one that was in brackets
    known = {name: value for name, value in values.items() if value not in _UNKNOWN}
    for index in range(1, len(parts), 2):
        parts[index] = _optional(parts[index], known)
    parts[::2] = (_FORMATTER.vformat(part, (), values) for part in parts[::2])
    return "".join(parts)


def _optional(part: str, values: Mapping[str, Any]) -> str:
    try:
        return _FORMATTER.vformat(part, (), values)
    except KeyError:
        return ""


_PLACE = re.compile(r"\{(?P<names>[^{}:]*)(?::(?P<form>[^{}]*))?\}")


def in_prose(template: str, value: str = "<{}>") -> str:
    """Return a template as text: `{steps:# step} {steps:?is/are}` as `<steps> steps are`.

    Args:
        value: how a value is written.
    """

    def written(place: re.Match[str]) -> str:
        names, form = place["names"].split("|"), place["form"] or ""
        one, _, many = form[1:].partition("/")
        if form.startswith("?"):
            return one if names == ["n"] else many  # other numbers have a noun in the plural before
        name = value.format(names[0].replace("_", " "))
        return f"{name} {many or one.strip() + 's'}" if form.startswith("#") else name

    return _PLACE.sub(written, template)


def listed(names: Sequence[object], most: int = _MOST_LISTED) -> str:
    """`a, b and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def joined(names: Iterable[str]) -> str:
    """`a`; `a and b`; `a, b and c`."""
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last


def subjects(remark: Remark, most: int = MOST_SUBJECTS) -> str:
    """`op7`; `op7 and op19`; `op7, op19, op31 and 21 more`."""
    names = [subject.name for subject in remark.subjects]
    return joined([*names[:most], *([f"{len(names) - most} more"] if len(names) > most else [])])
