"""A result as SARIF 2.1.0, which code scanning and editors read: an alert at each of the user's lines.

    {"ruleId": "vectorisation/short-inner-range", "level": "warning", "message": {"text": "..."},
     "locations": [{"physicalLocation": {"artifactLocation": {"uri": "net.py", "uriBaseId": "%SRCROOT%"},
                                         "region": {"startLine": 12}}}]}

The results are the annotations of `report/github.py`, the rules are the entries of the catalogue. The form is
that of OASIS ("Static Analysis Results Interchange Format", 2.1.0). GitHub takes of it the results that have
a `physicalLocation`, and shows 5,000 of a run: what is about no line of the user's, or more, is counted in a
notification of the tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from inductor_probe import __version__
from inductor_probe.catalogue.explained import explanations
from inductor_probe.errors import NotFoundError
from inductor_probe.model.output import Output
from inductor_probe.report.github import Annotation, Level, annotations_of
from inductor_probe.report.units import counted
from inductor_probe.report.visible import visible

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MOST_RESULTS = 5000
_ROOT = "%SRCROOT%"
_LEVELS: Mapping[Level, str] = {"error": "error", "warning": "warning", "notice": "note"}


def to_sarif(output: Output, folder: Path) -> dict[str, Any]:
    """Return a result as a log of SARIF; paths below `folder`, that of the repository, are relative to it."""
    annotations = list(annotations_of(output))
    placed = [one for one in annotations if one.path is not None]
    shown = placed[:MOST_RESULTS]
    rules = list(dict.fromkeys(one.rule or output.verb for one in shown))
    notes = {
        "about no line of the source": len(annotations) - len(placed),
        f"left out: code scanning takes {MOST_RESULTS:,}": len(placed) - len(shown),
    }
    driver = {"name": "inductor_probe", "version": __version__, "rules": [*map(_rule, rules)]}
    notifications = [
        {"level": "note", "message": {"text": f"{counted(count, 'result')} {what}"}}
        for what, count in notes.items()
        if count
    ]
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notifications}],
        "originalUriBaseIds": {_ROOT: {"uri": f"{folder.as_uri()}/"}},
        "columnKind": "unicodeCodePoints",
        "results": [*_results(shown, rules, output.verb, folder)],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(name: str) -> dict[str, Any]:
    """Return what a rule is about, in the words of the catalogue: `fusion/few-shared-bytes`."""
    kind, _, code = name.rpartition("/")
    rule: dict[str, Any] = {"id": name, "shortDescription": {"text": code.replace("-", " ")}}
    try:
        entry = next((one for one in explanations(code) if kind in ("", one.kind)), None)
    except NotFoundError:  # a verb, or what another version recorded
        return rule
    if entry is not None and kind:
        rule["fullDescription"] = {"text": entry.sentence}
        rule["help"] = {"text": f"probe explain {code}"}
    return rule


def _results(
    annotations: Iterable[Annotation], rules: list[str], verb: str, folder: Path
) -> Iterable[dict[str, Any]]:
    for one in annotations:
        if one.path is None:
            continue
        below = one.path.is_relative_to(folder)
        path = one.path.relative_to(folder) if below else one.path
        uri = quote(path.as_posix()) if below or not path.is_absolute() else path.as_uri()
        rule = one.rule or verb
        yield {
            "ruleId": rule,
            "ruleIndex": rules.index(rule),
            "level": _LEVELS[one.level],
            "message": {"text": visible(one.message)},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": uri} | ({"uriBaseId": _ROOT} if below else {}),
                        "region": {"startLine": max(one.line, 1)},
                    }
                }
            ],
        }
