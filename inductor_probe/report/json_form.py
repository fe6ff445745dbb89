"""An answer as JSON: whole, or as much of it as a program can read at once.

    {"verb": "why", ..., "rows": [{...}, {...}],
     "cut": [{"key": "rows", "shown": 2, "of": 133}], "rest": "probe why buf3 --json --limit 0"}

`cut` lists what was left out, `rest` is the command that prints all. Lists of records lose their last ones;
other lists, such as the sizes of a buffer, and text are shortened only where they are long. Decisions are
what is asked for: the values of `outcome`, `cause`, `operands` and `changes` are never shortened; a list of
decisions loses its last ones only where the answer is too long with all other lists of records empty.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from inductor_probe.errors import NotFoundError, near_names

MOST_BYTES = 8000
"""Of an answer about one subject, unless a limit is given: some 2,000 tokens of a language model."""
_LIMITS = (64, 32, 16, 8, 4, 2, 1, 0)
_DECISIONS = (48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
_PLAIN = 8
"""Items of a list that holds no records: a shape or a stride has as many at most."""
_TEXT = 60
"""Characters of a text for each record that a list may have, and as many again."""
_KEPT = ("verb", "version", "problems", "cut", "rest")
"""Of every answer, whichever fields are asked for."""
_NEVER_CUT = ("outcome", "cause", "code", "operands", "changes", "path")
_SUBJECT = {"type", "name"}
"""Keys of what an answer is about: as short as a plain item."""
_DEEPEST = 3
"""Keys in the name of a place in `cut`: counts from further inside are added up there."""

Data = dict[str, Any]


class JsonForm(Struct, frozen=True):
    """How much of an answer is printed.

    Attributes:
        fields: keys to print, with dots to those inside (`rows.outcome`); empty: all of them.
        limit: records of a list at most, 0 for all; None: all, or of an answer about one subject as many as
            fit in `MOST_BYTES`.
        compact: one line, without the keys that hold nothing. Without it, an answer is in one line where it
            is too long with indents.
        offset: so many first records of lists are left out; see `_from`.
    """

    fields: tuple[str, ...] = ()
    limit: int | None = None
    compact: bool = False
    offset: int = 0

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
            data = _shortened(data, self.limit, rest, decisions=self.limit, texts=False)
        text = self._written(data, in_a_line=self.compact)
        for shorter in _ever_shorter(data, rest) if subject and self.limit is None else ():
            if len(text) <= MOST_BYTES:
                break
            text = self._written(shorter, in_a_line=True)
        return text

    def within(self, data: Data, most_bytes: int) -> Data:
        """Return as much of an answer as fits in so many bytes of JSON, without the keys that hold nothing.

        What was left out is in `cut`, and there is no `rest`: what makes the call knows how to make the next.

        Raises:
            NotFoundError: no such field.
        """
        if self.fields:
            data = _only(data, self.fields)
        data = _filled(_from(data, self.offset, self.fields))
        rows = self.limit or _LIMITS[0]
        below = [limit for limit in _LIMITS if limit < rows]
        steps = [
            (rows, rows, True),
            *((rows, inner, False) for inner in (rows, *below)),
            *((n, 0, False) for n in below),
        ]
        for most, inner, whole in steps:
            decisions = min(rows, most) if inner or most == rows else max(most, 1)
            shown = _shortened(data, inner, "", decisions=decisions, rows=most, texts=not whole, plain=whole)
            if len(json.dumps(shown, ensure_ascii=False).encode()) <= most_bytes:
                break
        return shown

    def _written(self, data: Data, *, in_a_line: bool) -> str:
        indent, separators = (None, (",", ":")) if in_a_line else (2, None)
        return json.dumps(_filled(data) if self.compact else data, indent=indent, separators=separators)


def _ever_shorter(data: Data, rest: str) -> Iterator[Data]:
    """Yield an answer, then less and less of it, at last without the lists that are far inside."""
    yield data
    for limit in _LIMITS:
        yield _shortened(data, limit, rest, decisions=None)
    for limit in _DECISIONS:
        yield _shortened(data, 0, rest, decisions=limit)


def _from(data: Data, offset: int, fields: Sequence[str]) -> Data:
    """Return an answer without the first `offset` records of its lists; with fields, of their last lists.

    `rows.causes` is about the causes of each row, `rows.code` about rows, a text about its characters.
    """

    def lists(value: Any, keys: Sequence[str]) -> int:
        if isinstance(value, list):
            return 1 + max((lists(item, keys) for item in value), default=0)
        return lists(value.get(keys[0]), keys[1:]) if keys and isinstance(value, dict) else 0

    def cut(value: Any, keys: Sequence[str], above: int) -> Any:
        if isinstance(value, list):
            return [cut(item, keys, above - 1) for item in value] if above else value[offset:]
        if keys and isinstance(value, dict) and keys[0] in value:
            return {**value, keys[0]: cut(value[keys[0]], keys[1:], above)}
        return value[offset:] if isinstance(value, str) and above < 0 else value

    named = [key for key, value in data.items() if isinstance(value, list) and key not in _KEPT]
    for field in dict.fromkeys(fields or named) if offset else ():
        keys = field.split(".")
        data = cut(data, keys, lists(data, keys) - 1 if fields else 0)
    return data


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


def _shortened(
    data: Data,
    limit: int,
    rest: str,
    *,
    decisions: int | None,
    rows: int | None = None,
    texts: bool = True,
    plain: bool = False,
) -> Data:
    """Return an answer whose lists have at most `limit` records, with what was cut and the command for it.

    Lists of the answer itself have one at least, or at most `rows`; those of decisions at most `decisions`,
    or all. With `texts` long ones are cut, too; with `plain` no list that holds no records.
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
        if texts and isinstance(value, str) and " " in value and len(value) > (most := _TEXT * (limit + 1)):
            note(path, most, len(value))
            return f"{value[: most - 3]}..."
        if not isinstance(value, list):
            return value
        most = len(value) if plain else max(limit, _PLAIN)
        if any(map(_is_decision, value)):
            most = len(value) if decisions is None else decisions
        elif any(isinstance(item, dict) and item.keys() != _SUBJECT for item in value):
            most = limit if "." in path else max(limit if rows is None else rows, 1)
        if len(value) > most:
            note(path, most, len(value))
        return [cut(item, path) for item in value[:most]]

    whole = ("verb", "rest", *_NEVER_CUT)
    short = {key: value if key in whole else cut(value, key) for key, value in data.items()}
    if not shown:
        return data
    lists = [{"key": key, "shown": kept, "of": whole} for key, (kept, whole) in shown.items()]
    return {**short, "cut": lists, "rest": rest}


def _is_decision(item: Any) -> bool:
    return isinstance(item, dict) and not {"outcome", "decision", "verdict"}.isdisjoint(item)


def _filled(value: Any, never: Collection[Any] = (None, "", [], {})) -> Any:
    """Return a value without what holds nothing in it."""
    if isinstance(value, dict):
        return {key: inner for key, old in value.items() if (inner := _filled(old)) not in never}
    return [_filled(item) for item in value] if isinstance(value, list) else value
