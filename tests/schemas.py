"""What `--json` prints against the schema of its verb."""

from __future__ import annotations

from functools import cache
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator

from inductor_probe.model.codec import json_schema
from inductor_probe.model.output import FailureOutput, outputs


def schema_faults(verb: str, output: Any) -> list[str]:
    """Say where the output of `probe VERB --json` is not of its schema, at most three times."""
    verb = "error" if "error" in output else verb
    faults = islice(_validator(verb).iter_errors(output), 3)
    return [f"{verb}: {fault.json_path}: {fault.message[:200]}" for fault in faults]


@cache
def _validator(verb: str) -> Draft202012Validator:
    return Draft202012Validator(json_schema(FailureOutput if verb == "error" else outputs()[verb]))
