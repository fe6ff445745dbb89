"""SARIF 2.1.0: what code scanning takes, at the user's lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest

from inductor_probe.catalogue.explained import explanations
from inductor_probe.model.cause import Cause, GraphCauses, WhyOutput
from inductor_probe.model.nodes import NodesOutput
from inductor_probe.model.remark import Subject
from inductor_probe.model.span import Problem, SourceLine, Span
from inductor_probe.report.github import annotations_of
from inductor_probe.report.sarif import MOST_RESULTS, to_sarif
from tests.builders import decision
from tests.conftest import Probe
from tests.dumps import ANTIALIAS, FLIP

_TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
_INDEX = {"type": "integer", "minimum": 0}
_RULE = {
    "type": "object", "required": ["id"], "additionalProperties": False,
    "properties": {
        "id": {"type": "string"}, "shortDescription": _TEXT, "fullDescription": _TEXT, "help": _TEXT,
    },
}  # fmt: skip
_ARTIFACT = {
    "type": "object", "required": ["uri"], "additionalProperties": False,
    "properties": {"uri": {"type": "string", "pattern": r"^[\w%/.:~-]+$"}, "uriBaseId": {"type": "string"}},
}  # fmt: skip
_PLACE = {
    "type": "object", "required": ["physicalLocation"],
    "properties": {
        "physicalLocation": {
            "type": "object", "required": ["artifactLocation", "region"],
            "properties": {
                "artifactLocation": _ARTIFACT,
                "region": {"properties": {"startLine": {"type": "integer", "minimum": 1}}},
            },
        }
    },
}  # fmt: skip
_RESULT = {
    "type": "object", "required": ["message", "ruleId", "locations"], "additionalProperties": False,
    "properties": {
        "ruleId": {"type": "string"}, "ruleIndex": _INDEX, "message": _TEXT,
        "level": {"enum": ["none", "note", "warning", "error"]},
        "locations": {"type": "array", "minItems": 1, "items": _PLACE},
    },
}  # fmt: skip
SARIF = {
    "type": "object", "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object", "required": ["tool", "results"],
                "properties": {
                    "tool": {
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "required": ["name"],
                                "properties": {
                                    "rules": {"type": "array", "uniqueItems": True, "items": _RULE}
                                },
                            }
                        },
                    },
                    "results": {"type": "array", "items": _RESULT},
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "invocations": {"items": {"required": ["executionSuccessful"]}},
                },
            },
        },
    },
}  # fmt: skip
"""What of the standard's schema is asked of the parts that we write, and what GitHub asks beside: a place."""


def checked(log: dict[str, Any]) -> dict[str, Any]:
    """Return the run of a log that is valid, and whose rules have the results."""
    jsonschema.validate(log, SARIF)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    return cast("dict[str, Any]", run)


def why(*places: str) -> WhyOutput:
    """Return what `why` says of a cause at each of some lines; one without a place has no line."""
    causes = [
        Cause(
            "missed",
            (Subject("node", "op0"),),
            "recorded",
            decision=decision("fusion", "op0, op1", "refused", "few-shared-bytes"),
            sources=(SourceLine(place.rpartition(":")[0], int(place.rpartition(":")[2]), "f", "x"),)
            if place
            else (),
        )
        for place in places
    ]
    return WhyOutput(rows=(GraphCauses("g", (), (), (), tuple(causes)),))


def test_what_was_missed_is_a_warning_at_the_users_line_with_the_rule_of_the_catalogue() -> None:
    run = checked(to_sarif(why("/repo/a net.py:7", "/other/net.py:9"), Path("/repo")))
    (rule,) = run["tool"]["driver"]["rules"]
    (entry,) = explanations("few-shared-bytes")
    assert rule["id"] == "fusion/few-shared-bytes"
    assert rule["fullDescription"]["text"] == entry.sentence
    inside, outside = (one["locations"][0]["physicalLocation"] for one in run["results"])
    assert inside == {
        "artifactLocation": {"uri": "a%20net.py", "uriBaseId": "%SRCROOT%"}, "region": {"startLine": 7},
    }  # fmt: skip
    assert outside["artifactLocation"] == {"uri": "file:///other/net.py"}
    assert [one["level"] for one in run["results"]] == ["warning", "warning"]
    assert run["originalUriBaseIds"] == {"%SRCROOT%": {"uri": "file:///repo/"}}


def test_what_is_about_no_line_or_more_than_code_scanning_takes_is_counted() -> None:
    places = [f"/repo/net.py:{line}" for line in range(1, MOST_RESULTS + 3)]
    run = checked(to_sarif(why("", *places), Path("/repo")))
    assert len(run["results"]) == MOST_RESULTS
    notes = [one["message"]["text"] for one in run["invocations"][0]["toolExecutionNotifications"]]
    assert notes == [
        "1 result about no line of the source",
        "2 results left out: code scanning takes 5,000",
    ]


def test_a_verb_without_rules_is_its_own_rule() -> None:
    problem = Problem("not understood \x1b[31m", Span(Path("/repo/ir.txt"), 3, 3))
    output = NodesOutput(rows=(), problems=(problem,))
    run = checked(to_sarif(output, Path("/repo")))
    assert [one["ruleId"] for one in run["results"]] == ["nodes"]
    assert "\x1b" not in run["results"][0]["message"]["text"]


def test_annotations_have_the_same_lines() -> None:
    (one, without) = annotations_of(why("/repo/net.py:7", ""))
    assert (one.level, one.path, one.line, one.rule) == (
        "warning", Path("/repo/net.py"), 7, "fusion/few-shared-bytes",
    )  # fmt: skip
    assert without.path is None


@pytest.mark.parametrize("dump", [ANTIALIAS, FLIP])
def test_remarks_of_a_dump_are_sarif(probe: Probe, dump: Path) -> None:
    ran = probe("why", dump, "--format", "sarif")
    assert ran.status == 0
    run = checked(json.loads(ran.out))
    assert {one["level"] for one in run["results"]} <= {"warning", "note"}
    assert run["results"]
    for one in run["results"]:
        place = one["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"].endswith("capture.py")
    assert "sarif" not in probe("nodes", "--help").out
