"""Schemas that are checked, and what `--json` prints against the schema of its verb."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator, ValidationError, validators

from inductor_probe.model.codec import json_schema
from inductor_probe.model.output import FailureOutput, outputs


def check_schema(schema: dict[str, Any]) -> None:
    """Raise SchemaError where a schema is none; a definition that many schemas hold is checked once."""
    Draft202012Validator.check_schema({**schema, "$defs": {}})
    for definition in schema.get("$defs", {}).values():
        _check_definition(json.dumps(definition, sort_keys=True))


@cache
def _check_definition(text: str) -> None:
    Draft202012Validator.check_schema(json.loads(text))


def schema_faults(verb: str, output: Any) -> list[str]:
    """Say where the output of `probe VERB --json` is not of its schema, at most three times."""
    verb = "error" if "error" in output else verb
    faults = islice(_validator(verb).iter_errors(output), 3)
    return [f"{verb}: {fault.json_path}: {fault.message[:200]}" for fault in faults]


@cache
def _validator(verb: str) -> Any:
    """Return what validates the output of a verb; of records that many outputs hold, each is seen once."""
    resolve = Draft202012Validator.VALIDATORS["$ref"]
    right: set[tuple[str, int]] = set()

    def resolve_once(validator: Any, name: str, record: Any, schema: Any) -> Iterator[ValidationError]:
        key = name, hash(repr(record))
        if key not in right:
            faults = [*resolve(validator, name, record, schema)]
            yield from faults
            if not faults:
                right.add(key)

    schema = json_schema(FailureOutput if verb == "error" else outputs()[verb])
    return validators.extend(Draft202012Validator, {"$ref": resolve_once})(schema)
