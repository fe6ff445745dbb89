"""The pages of the documentation that are made from the code: every record of `--json`, and every cause."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from inductor_probe.model import decision, kernel_causes
from inductor_probe.model.output import Output, output_schema, outputs
from inductor_probe.model.record import docstring_parts
from inductor_probe.report.words.causes import WORDS
from inductor_probe.report.words.causes.sentences import kind_words

_PLACE = re.compile(r"\{(?P<names>[^{}:]*)(?::(?P<form>[^{}]*))?\}")
"""A value in a template of `report/words/templates.py`."""


def records() -> str:
    """Return the page of what `--json` prints: the verbs, then every record in them, by name."""
    return "\n".join(_records())


def causes() -> str:
    """Return the page of what torch decides: of each kind the outcomes, the causes, and what changes them."""
    return "\n".join(_causes())


def _records() -> Iterator[str]:
    definitions = output_schema()["$defs"]
    yield "# Records of `--json`\n"
    yield "[For programs](guides/programs.md) says what all of them have."
    yield "[schema.json](schema.json) has them as one JSON Schema.\n"
    common = {*Output.__struct_fields__}
    for verb, kind in outputs().items():
        yield f"## probe {verb}\n"
        yield from _record(definitions.pop(kind.__name__), leave_out=common)
    yield "## Records\n"
    for name in sorted(definitions, key=str.lower):
        yield f"### {name}\n"
        yield from _record(definitions[name])


def _record(schema: dict[str, Any], leave_out: set[str] | frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield what the docstring of a record says, and a table of its keys."""
    text, entries = docstring_parts(schema["description"])
    yield f"{text}\n"
    for entry in entries:
        yield "- " + entry.replace("\n", "\n  ")
    if entries:
        yield ""
    yield from _table("key", "value")
    for key, value in schema["properties"].items():
        if key not in leave_out:
            meaning = (
                f": {value['description'].splitlines()[0].rstrip('.')}" if "description" in value else ""
            )
            yield f"| `{key}` | {_in_words(value)}{meaning} |"
    yield ""


def _in_words(schema: dict[str, Any]) -> str:
    """Say what a schema allows: `list of [Span](#span), or null`."""
    match schema:
        case {"$ref": reference}:
            name = reference.rpartition("/")[2]
            return f"[{name}](#{name.lower()})"
        case {"allOf": [named, *_]}:
            return _in_words(named)
        case {"anyOf": [{"type": "number"}, {"enum": _}]}:
            return "number"
        case {"anyOf": parts}:
            return " or ".join(map(_in_words, parts))
        case {"enum": values}:
            return ", ".join(f"`{json.dumps(value)}`" for value in values)
        case {"type": "array", "items": dict() as items}:
            return f"list of {_in_words(items)}"
        case {"type": "array", "prefixItems": parts}:
            return f"list of {len(parts)}: {', '.join(map(_in_words, parts))}"
        case {"type": "object", "additionalProperties": values}:
            return f"object of {_in_words(values)}"
        case {"type": list() as types}:
            return " or ".join(types)
        case {"type": kind}:
            return str(kind)
    return "anything"


def _causes() -> Iterator[str]:
    recorded = {**_docstrings(decision.__file__), **_docstrings(kernel_causes.__file__)}
    yield "# What torch decides, and why\n"
    yield "[Seven questions](guides/questions.md) shows `probe why` at work. Here is all that it can say, by"
    yield "the kind of decision. What is _slanted_ is a value of the decision, what is in [brackets] is there"
    yield "where that value is known.\n"
    for kind, words in WORDS.items():
        yield f"## {kind_words(kind).capitalize()}\n"
        yield from _table("outcome", "on the screen")
        for outcome, sentence in words.outcomes.items():
            codes = (outcome,) if isinstance(outcome, str) else outcome
            yield f"| {', '.join(f'`{code}`' for code in codes)} | {_in_prose(sentence)} |"
        yield ""
        yield from _table("cause", "on the screen")
        for code, cause in words.causes.items():
            yield f"| `{code}` | {_in_prose(cause.sentence)} |"
        yield ""
        if words.changes:
            yield from _table("what changes it", "how")
            for code, effect in words.changes.items():
                yield f"| `{code}` | {_in_prose(effect)} |"
            yield ""
        yield f"### What is recorded of {kind_words(kind)}\n"
        yield recorded[f"{kind.partition('-')[0].capitalize()}Cause"] + "\n"


def _table(*heads: str) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"


def _docstrings(path: str) -> dict[str, str]:
    """Return the text below each assignment of a module."""
    body = ast.parse(Path(path).read_text()).body
    return {
        ast.unparse(before.target): text.value.value
        for before, text in pairwise(body)
        if isinstance(before, ast.AnnAssign)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def _in_prose(template: str) -> str:
    """Return a template as text: `{steps:# step}` as `_steps_ steps`, `{n:?is/are}` as `is`."""

    def value(place: re.Match[str]) -> str:
        names, form = place["names"].split("|"), place["form"] or ""
        one, _, many = form[1:].partition("/")
        if form.startswith("?"):
            return one
        name = f"_{names[0].replace('_', ' ')}_"
        return f"{name} {many or one.strip() + 's'}" if form.startswith("#") else name

    return _PLACE.sub(value, template).replace("|", "\\|")
