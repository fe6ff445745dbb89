"""`probe_decisions.jsonl` to `Decisions` and back: a header, a decision a line, an end.

    {"format": 1, "torch": "2.13.0", "recorders": ["vectorisation"]}
    {"number": 1, "kind": "vectorisation", "subjects": [["op0"]], "outcome": "scalar", ...}
    {"end": 1}

Lines are written by the codec. The end holds the number of decisions, so that a file that was cut between two
lines is known as cut. What stands before a damaged line is still read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from inductor_probe.errors import UnreadableError
from inductor_probe.files import read_text, write_whole
from inductor_probe.model.codec import ShapeError, from_json, to_json
from inductor_probe.model.decision import Decision, Decisions, DecisionsHeader
from inductor_probe.model.span import MOST_PROBLEMS, Problem, Span, too_many_problems

FORMAT = 1
_AGAIN = "dump the script again"


def write_decisions(path: Path, decisions: Decisions) -> None:
    """Write the decisions of a graph, whole or not at all.

    Raises:
        ProbeError: the file cannot be written.
    """
    header = DecisionsHeader(FORMAT, decisions.torch, decisions.recorders)
    lines = [header, *decisions.decisions]
    end = {"end": len(decisions.decisions)}
    write_whole(path, "".join(f"{json.dumps(line)}\n" for line in [*map(to_json, lines), end]))


def read_decisions(path: Path) -> Decisions:
    """Read the decisions of a graph. Of a file that was cut short, what is whole is read.

    Raises:
        NotFoundError: there is none.
        UnreadableError: it has no header, or a newer probe wrote it in another format.
    """
    return parse_decisions(read_text(path), path)


def parse_decisions(text: str, path: Path) -> Decisions:
    """Read the text of `probe_decisions.jsonl`; `path` is what an error names."""
    first, *lines = text.splitlines() or [""]
    try:
        data: Any = json.loads(first)
        if isinstance(data, dict) and isinstance(data.get("format"), int) and data["format"] > FORMAT:
            raise UnreadableError(
                f"{path} was written by a newer probe (format {data['format']})", "update inductor_probe"
            )
        header = from_json(DecisionsHeader, data)
    except ShapeError as error:
        raise UnreadableError(f"{path}:1: no header of decisions: {error}", _AGAIN) from None
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"{path}:1: not JSON: {error}", _AGAIN) from None
    decisions: list[Decision] = []
    problems: list[Problem] = []
    end: int | None = None
    last = len(lines) + 1
    for number, line in enumerate(lines, start=2):
        if len(problems) >= MOST_PROBLEMS:
            problems.append(too_many_problems(path, number, text))
            break
        try:
            data = json.loads(line)
            if isinstance(data, dict) and isinstance(data.get("end"), int) and number == last:
                end = data["end"]
            else:
                decisions.append(from_json(Decision, data))
        except (ValueError, RecursionError) as error:  # ShapeError is one
            what = "not a decision" if isinstance(error, ShapeError) else "not JSON"
            problems.append(Problem(f"{what}: {error}", Span(path, number, number)))
    if end is None:
        message = "cut short here: the line that says how many decisions there are is missing"
        problems.append(Problem(message, Span(path, last, last)))
    elif end != len(decisions) and not problems:
        message = f"lines are missing: {len(decisions)} decisions of {end}"
        problems.append(Problem(message, Span(path, last, last)))
    complete = end == len(decisions)
    return Decisions(header.torch, header.recorders, tuple(decisions), complete, tuple(problems))
