"""An answer as JSON: whole, or as much of it as a program can read at once.

    {"verb": "why", ..., "rows": [{...}, {...}],
     "cut": [{"key": "rows", "shown": 2, "of": 133}], "rest": "probe why buf3 --json --limit 0"}

`cut` lists what was left out, `rest` is the command that prints all. Lists of records lose their last ones;
other lists, such as the sizes of a buffer, and text are shortened only where they are long. The values of
`outcome`, `cause` and `operands` are never shortened, but a list of decisions may lose its last ones.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inductor_probe.errors import NotFoundError, near_names

MOST_BYTES = 8000
"""Of an answer about one subject, unless a limit is given: some 2,000 tokens of a language model."""
_LIMITS = (64, 32, 16, 8, 4, 2, 1)
_PLAIN = 8
"""Items of a list that holds no records: a shape or a stride has as many at most."""
_TEXT = 60
"""Characters of a text for each record that a list may have, and as many again."""
_KEPT = ("verb", "version", "problems", "cut", "rest")
"""Of every answer, whichever fields are asked for."""
_NEVER_CUT = ("outcome", "cause", "code", "operands", "path")
_DEEPEST = 3
"""Keys in the name of a place in `cut`: counts from further inside are added up there, and lists further
inside are the first to go."""

Data = dict[str, Any]


@dataclass(frozen=True)
class JsonForm:
    """How much of an answer is printed.

    Attributes:
        fields: keys to print, with dots to those inside (`rows.outcome`); empty: all of them.
        limit: records of a list at most, 0 for all; None: all, or of an answer about one subject as many as
            fit in `MOST_BYTES`.
        compact: one line, without the keys that hold nothing. Without it, an answer is in one line where it
            is too long with indents.
    """

    fields: tuple[str, ...] = ()
    limit: int | None = None
    compact: bool = False

    def text(self, data: Data, *, subject: bool = False, rest: str = "") -> str:
        """Return an answer as text.

        Args:
            data: the answer, of what JSON can hold.
            subject: it is about one thing, by its name.
            rest: the command that gives all of it.

        Raises:
            NotFoundError: no such field.
        """
        if self.fields:
            data = _only(data, self.fields)
        if self.limit:
            data = _shortened(data, self.limit, rest, texts=False)
        text = self._written(data, in_a_line=self.compact)
        for shorter in _ever_shorter(data, rest) if subject and self.limit is None else ():
            if len(text) <= MOST_BYTES:
                break
            text = self._written(shorter, in_a_line=True)
        return text

    def _written(self, data: Data, *, in_a_line: bool) -> str:
        indent, separators = (None, (",", ":")) if in_a_line else (2, None)
        return json.dumps(_filled(data) if self.compact else data, indent=indent, separators=separators)


def _ever_shorter(data: Data, rest: str) -> Iterator[Data]:
    """Yield an answer, then less and less of it, at last without the lists that are far inside."""
    yield data
    for limit in _LIMITS:
        yield _shortened(data, limit, rest)
    yield _shortened(data, 1, rest, inner=0)


def _only(data: Data, fields: Sequence[str]) -> Data:
    """Return the fields that are asked for, and what every answer has."""
    tree: dict[str, Any] = {}
    for field in fields:
        inner = tree
        for key in field.split("."):
            inner = inner.setdefault(key, {})
    found, there = set[str](), set[str]()

    def keep(value: Any, wanted: Mapping[str, Any], path: str) -> Any:
        if isinstance(value, list):
            return [keep(item, wanted, path) for item in value]
        if not isinstance(value, dict) or not wanted:
            return value
        there.update(f"{path}{key}" for key in value)
        found.update(f"{path}{key}" for key in wanted if key in value)
        here = {key: inner for key, inner in wanted.items() if key in value}
        return {key: keep(value[key], inner, f"{path}{key}.") for key, inner in here.items()}

    kept: Data = {key: data[key] for key in _KEPT if key in data} | keep(data, tree, "")
    for field in fields:
        prefixes = [field[:end] for end, letter in enumerate(f"{field}.") if letter == "."]
        missing = next((prefix for prefix in prefixes if prefix not in found), None)
        above = missing.rpartition(".")[0] if missing else ""
        beside = [name for name in there if name.rpartition(".")[0] == above]
        if missing and beside:  # an empty list has nothing in it that could be missing
            raise NotFoundError(f"the answer has no field {missing}", near_names(missing, sorted(beside)))
    return kept


def _shortened(data: Data, limit: int, rest: str, *, inner: int | None = None, texts: bool = True) -> Data:
    """Return an answer whose lists have at most `limit` records, with what was cut and the command for it.

    Lists that are far inside have at most `inner`. With `texts` long ones are cut, too.
    """
    shown: dict[str, list[int]] = {}

    def note(key: str, kept: int, whole: int) -> None:
        both = shown.setdefault(".".join(key.split(".")[:_DEEPEST]), [0, 0])
        both[0] += kept
        both[1] += whole

    def cut(value: Any, path: str) -> Any:
        if isinstance(value, dict):
            return {
                key: part if key in _NEVER_CUT else cut(part, f"{path}.{key}") for key, part in value.items()
            }
        if texts and isinstance(value, str) and len(value) > (most := _TEXT * (limit + 1)):
            note(path, most, len(value))
            return f"{value[: most - 3]}..."
        if not isinstance(value, list):
            return value
        most = max(limit, _PLAIN)
        if any(isinstance(item, dict) for item in value):
            most = limit if inner is None or path.count(".") < _DEEPEST else inner
        if len(value) > most:
            note(path, most, len(value))
        return [cut(item, path) for item in value[:most]]

    whole = ("verb", "rest", *_NEVER_CUT)
    short = {key: value if key in whole else cut(value, key) for key, value in data.items()}
    if not shown:
        return data
    lists = [{"key": key, "shown": kept, "of": whole} for key, (kept, whole) in shown.items()]
    return {**short, "cut": lists, "rest": rest}


def _filled(value: Any, never: Collection[Any] = (None, "", [], {})) -> Any:
    """Return a value without what holds nothing in it."""
    if isinstance(value, dict):
        return {key: inner for key, old in value.items() if (inner := _filled(old)) not in never}
    return [_filled(item) for item in value] if isinstance(value, list) else value
