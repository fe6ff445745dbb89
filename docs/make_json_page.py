"""Writes docs/json.md and docs/schemas/*.json, what `--json` of each verb prints, from the records.

python docs/make_json_page.py            # write them
python docs/make_json_page.py --check    # say which are not as they would be written; exit status 1
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inductor_probe.files import write_whole
from inductor_probe.model.codec import RECORD_KEY, json_schema
from inductor_probe.model.output import FailureOutput, Output, outputs
from inductor_probe.model.record import docstring_parts

FOLDER = Path(__file__).parent
HEAD = f"""\
<!-- Made by docs/make_json_page.py from the records in inductor_probe/model: do not edit. -->

# What `--json` prints

Each verb takes `--json` and then prints one object on stdout, and nothing else. The object is the verb's
record in `inductor_probe/model`, written by `inductor_probe/model/codec.py`: a key is the name of a field, as
in Python. [schemas/](schemas) holds a JSON Schema (draft 2020-12) for each verb; an installed package makes
it with

```python
from inductor_probe.model.codec import json_schema
from inductor_probe.model.output import outputs

json_schema(outputs()["layouts"])
```

- `verb` and `version` stand in each output. Within a version keys are only added, and no value changes its
  type or meaning: ignore keys that you do not know. Version 1 had no envelope, and other keys.
- `problems` is what could not be read; everything else was read all the same.
- Every key is always there. `null` is a fact that is not known, or does not apply: the descriptions, which
  are those of the Python records, call it None.
- `--fields rows.subjects,rows.outcome` keeps these keys of each answer, `--limit N` so many records of each
  list, `--compact` prints one line without the keys that hold nothing. An answer about one name
  (`probe why buf3`) is cut to about 8,000 characters where it is longer: `cut` lists what was left out,
  `rest` is the command that prints all, and `outcome`, `cause`, `operands` and `changes` are never
  shortened; of a list of decisions the last ones are left out only where the answer is too long without any
  other records. With `--limit 0` nothing is cut.
- Where a verb fails, it prints `verb`, `version` and `error`: its `code` (`usage`, `not-found`, `ambiguous`,
  `unreadable`, `run-failed`, `interrupted`, `failed`, or `internal` for a fault of ours), `message`, and
  `suggestions` of what to do next ([schemas/error.json](schemas/error.json)). The same stands on stderr.
- A size, a stride or a number of bytes is an integer, or the text of a symbolic expression: `"s77*s27"`.
- A number that is not finite is the text `"inf"`, `"-inf"` or `"nan"`.
- A place in a file is a [Span](#span): `path`, and the lines `first` to `last`, both included, from 1.
- Names with values are an object in the order of the dump; where a damaged dump has a name twice, the second
  is called `NAME#2`.
- Where a key can hold one of several records, `{RECORD_KEY}` in it names which one.
- Expressions of a formula are text, as on the screen, and no trees. The text of kernels and loop bodies is in
  `text` of `probe show --json`, with `--code` and `--raw`, and nowhere else.
- What follows from other keys has no key of its own, but for what nearly everyone wants: `op_count`, `trips`,
  `equal`, `weight`, `fit`, `installed`, `whole`, `sound` and the counts of `probe check`, and the `name` of a
  run. The fastest of autotuned `choices` is the first.
"""


def main(arguments: list[str]) -> int:
    """Write the files, or check them; return the exit status."""
    stale = [path for path, text in files() if not path.exists() or path.read_text() != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path} is stale: run python docs/make_json_page.py")
        return int(bool(stale))
    for path, text in files():
        if path in stale:
            path.parent.mkdir(exist_ok=True)
            write_whole(path, text)
            print(f"written: {path}")
    return 0


def files() -> Iterator[tuple[Path, str]]:
    """Yield each file with the text that it should have."""
    schemas = {verb: json_schema(kind) for verb, kind in outputs().items()}
    for verb, schema in {**schemas, "error": json_schema(FailureOutput)}.items():
        titled = {"title": f"probe {verb} --json", **schema}
        yield FOLDER / "schemas" / f"{verb}.json", json.dumps(titled, indent=1) + "\n"
    yield FOLDER / "json.md", "\n".join(page(schemas))


def page(schemas: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the page: the verbs, then every record that any of them holds, by name."""
    yield HEAD
    records: dict[str, dict[str, Any]] = {}
    common = {*Output.__struct_fields__}
    for verb, schema in schemas.items():
        definitions = dict(schema["$defs"])
        output = definitions.pop(schema["$ref"].rpartition("/")[2])
        yield f"## probe {verb}\n"
        yield from record(output, leave_out=common)
        for name, definition in definitions.items():
            if records.setdefault(name, definition) != definition:
                raise ValueError(f"two records are called {name}: {definition['$comment']} is one of them")
    yield "## Records\n"
    for name in sorted(records, key=str.lower):
        yield f"### {name}\n"
        yield from record(records[name])


def record(schema: dict[str, Any], leave_out: set[str] | frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield what the docstring of a record says, and a table of its keys."""
    text, entries = docstring_parts(schema["description"])
    yield f"{text}\n"
    for entry in entries:
        yield "- " + entry.replace("\n", "\n  ")
    if entries:
        yield ""
    yield "| key | value |"
    yield "|---|---|"
    for key, value in schema["properties"].items():
        if key not in leave_out:
            said = f": {value['description'].splitlines()[0].rstrip('.')}" if "description" in value else ""
            yield f"| `{key}` | {in_words(value)}{said} |"
    yield ""


def in_words(schema: dict[str, Any]) -> str:
    """Say what a schema allows: `list of [Span](#span), or null`."""
    match schema:
        case {"$ref": reference}:
            name = reference.rpartition("/")[2]
            return f"[{name}](#{name.lower()})"
        case {"allOf": [named, *_]}:
            return in_words(named)
        case {"anyOf": [{"type": "number"}, {"enum": _}]}:
            return "number"
        case {"anyOf": parts}:
            return " or ".join(map(in_words, parts))
        case {"enum": values}:
            return ", ".join(f"`{json.dumps(value)}`" for value in values)
        case {"type": "array", "items": dict() as items}:
            return f"list of {in_words(items)}"
        case {"type": "array", "prefixItems": parts}:
            return f"list of {len(parts)}: {', '.join(map(in_words, parts))}"
        case {"type": "object", "additionalProperties": values}:
            return f"object of {in_words(values)}"
        case {"type": list() as types}:
            return " or ".join(types)
        case {"type": kind}:
            return str(kind)
    return "anything"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
