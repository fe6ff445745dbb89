"""What the JSON Schema of decisions says of causes and operands."""

from __future__ import annotations

from typing import Any

from inductor_probe.catalogue import KINDS, codes, kind_of


def with_causes(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose decisions have the codes of this version, and what each operand is."""
    definitions = schema.get("$defs", {})
    if "Decision" not in definitions:
        return schema
    meanings: dict[str, dict[str, None]] = {}
    for kind in map(kind_of, KINDS):
        for operand in kind.operands:
            unit = f" ({operand.unit})" if operand.unit else ""
            meanings.setdefault(operand.name, {})[f"{kind.code}: {operand.meaning}{unit}"] = None
    decision = definitions["Decision"]
    properties = {
        **decision["properties"],
        "cause": {**decision["properties"]["cause"], "examples": [*codes()]},
        "operands": {
            **decision["properties"]["operands"],
            "properties": {name: {"description": "; ".join(of)} for name, of in sorted(meanings.items())},
        },
    }
    return {**schema, "$defs": {**definitions, "Decision": {**decision, "properties": properties}}}
