"""The pages of the documentation that are made from the code: every record of `--json`, and every cause."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from inductor_probe.catalogue import KINDS, kind_of
from inductor_probe.catalogue.entries import By, Source
from inductor_probe.catalogue.templates import in_prose
from inductor_probe.model.output import Output, output_schema, outputs
from inductor_probe.model.record import docstring_parts, grouped
from inductor_probe.report.words.decisions import kind_words


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
            verb = next((verb for verb, kind in outputs().items() if kind.__name__ == name), None)
            return f"[{name}](#{name.lower() if verb is None else f'probe-{verb}'})"
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
    yield "# What torch decides, and why\n"
    yield "[Seven questions](guides/questions.md) shows `probe why` at work, and `probe explain CODE` shows"
    yield "one cause. Here is all that they can say, by the kind of decision. What is _slanted_ is a value of"
    yield "the decision, what is in [brackets] is there where that value is known.\n"
    for kind in map(kind_of, KINDS):
        yield f"## {kind_words(kind.code).capitalize()}\n"
        yield f"Torch decides {kind.decides}.\n"
        yield from _table("outcome", "on the screen")
        for outcome in kind.outcomes:
            yield f"| `{outcome.code}` | {_in_prose(outcome.sentence)} |"
        yield ""
        yield from _table("cause", "on the screen", "decided in", "for example")
        for cause in kind.causes:
            for code, sentence in cause.outcome_words.items():
                yield f"| `{cause.code}` | `{code}`: {_in_prose(sentence)} | | |"
            file, _, function = cause.at.partition(":")
            example = cause.example.replace("|", "\\|")
            yield f"| `{cause.code}` | {_in_prose(cause.sentence)} | `{function}` of {file} | {example} |"
        yield ""
        changes = [one for cause in kind.causes for one in cause.changes if isinstance(one, By | Source)]
        if changes:
            yield from _table("what changes it", "how", "of causes")
        for code, members in grouped(changes, lambda one: one.code).items():
            differs = " (results may differ)" if any(one.differs for one in members) else ""
            causes = (f"`{one.code}`" for one in kind.causes if any(x in one.changes for x in members))
            yield f"| `{code}` | {_in_prose(members[0].effect)}{differs} | {', '.join(causes)} |"
        yield ""
        yield f"### What is recorded of {kind_words(kind.code)}\n"
        yield from _table("operand", "type", "unit", "what it is")
        for operand in kind.operands:
            meaning = operand.meaning.replace("|", "\\|")
            yield f"| `{operand.name}` | {operand.type} | {operand.unit} | {meaning} |"
        yield ""


def _table(*heads: str) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"


def _in_prose(template: str) -> str:
    return in_prose(template, "_{}_").replace("|", "\\|")
