"""`probe_decisions.jsonl` to `Decisions` and back: a header, functions of torch, a decision a line, an end.

    {"format": 2, "torch": "2.13.0", "recorders": ["vectorisation"]}
    {"frames": [{"file": "torch/_inductor/codegen/cpp.py", "function": "TilingSelect.select_tiling", ...}]}
    {"number": 1, "kind": "vectorisation", "subjects": [["op0"]], "outcome": "scalar", ..., "place": 0}
    {"end": 1}

Lines are written by the codec. A graph of a thousand nodes has thirty thousand decisions (64 tries of fusion
for each node), which took few ways through torch: `place` and `stack` are numbers of frames, and what is as
the record has it by default is left out. The end holds the number of decisions, so that a file that was cut
between two lines is known as cut. What stands before a damaged line is still read, and so are the decisions
of a file of another version of probe whose codes this one knows; format 1 had frames in each line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args

from inductor_probe.errors import UnreadableError
from inductor_probe.files import read_text, write_whole
from inductor_probe.model.codec import ShapeError, from_json, to_json
from inductor_probe.model.decision import (
    DECISION_KINDS,
    CauseCode,
    Decision,
    DecisionKind,
    Decisions,
    DecisionsHeader,
    Operand,
    Outcome,
    SubjectType,
    TorchFrame,
)
from inductor_probe.model.span import MOST_PROBLEMS, Problem, Span, too_many_problems

FORMAT = 2
_AGAIN = "dump the script again"
_CODES: dict[str, frozenset[str]] = {
    "kind": frozenset(DECISION_KINDS),
    "outcome": frozenset(get_args(Outcome)),
    "cause": frozenset(code for group in get_args(CauseCode) for code in (get_args(group) or (group,))),
}
"""The codes of a decision that this version knows."""
_RENAMED = {"input-kept": "input-not-mutated"}
"""Causes that earlier versions wrote by another name."""
_LONGEST_LINE = 1 << 20
"""Of a line: lists in lists take 27 times their text in memory."""


@dataclass(frozen=True, slots=True)
class _Frames:
    frames: tuple[TorchFrame, ...]


@dataclass(frozen=True, slots=True)
class _Line:
    """A `Decision` as its line has it."""

    number: int
    kind: DecisionKind
    subject_type: SubjectType
    subjects: tuple[tuple[str, ...], ...]
    outcome: Outcome
    cause: CauseCode
    operands: tuple[tuple[str, Operand], ...]
    place: int | TorchFrame
    stack: tuple[int | TorchFrame, ...] = ()
    speculative: bool = False
    times: int = 1


_DEFAULTS = {field.name: field.default for field in fields(_Line)}


def write_decisions(path: Path, decisions: Decisions) -> None:
    """Write the decisions of a graph, whole or not at all.

    Raises:
        ProbeError: the file cannot be written.
    """
    write_whole(path, "".join(f"{json.dumps(line)}\n" for line in _lines(decisions)))


def _lines(decisions: Decisions) -> Iterator[Any]:
    yield to_json(DecisionsHeader(FORMAT, decisions.torch, decisions.recorders))
    frames: dict[TorchFrame, int] = {}
    lines = []
    for decision in decisions.decisions:
        line: Any = {name: getattr(decision, name) for name in _DEFAULTS}
        line["place"] = frames.setdefault(decision.place, len(frames))
        line["stack"] = tuple(frames.setdefault(frame, len(frames)) for frame in decision.stack)
        line["operands"] = dict(decision.operands)
        lines.append({name: value for name, value in line.items() if value != _DEFAULTS[name]})
    yield to_json(_Frames(tuple(frames)))
    yield from lines
    yield {"end": len(lines)}


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
    header = _header(first, path)
    frames: tuple[TorchFrame, ...] = ()
    decisions: list[Decision] = []
    problems: list[Problem] = []
    unknown: dict[str, list[int]] = {}
    end: int | None = None
    last = len(lines) + 1
    for number, line in enumerate(lines, start=2):
        if len(problems) >= MOST_PROBLEMS:
            problems.append(too_many_problems(path, number, text))
            break
        try:
            if len(line) > _LONGEST_LINE:
                raise ShapeError(f"longer than {_LONGEST_LINE:,} characters")
            data = json.loads(line)
            if isinstance(data, dict) and isinstance(cause := data.get("cause"), str):
                data["cause"] = _RENAMED.get(cause, cause)
            if isinstance(data, dict) and isinstance(data.get("end"), int) and number == last:
                end = data["end"]
            elif isinstance(data, dict) and "frames" in data:
                frames = from_json(_Frames, data).frames
            elif code := _unknown_code(data):
                unknown.setdefault(code, []).append(number)
            else:
                decisions.append(_decision(from_json(_Line, data), frames))
        except (ValueError, RecursionError) as error:  # ShapeError is one
            what = "not a decision" if isinstance(error, ShapeError) else "not JSON"
            problems.append(Problem(f"{what}: {error}", Span(path, number, number)))
    for code, numbers in unknown.items():
        many = f"{len(numbers)} decisions have" if len(numbers) > 1 else "a decision has"
        message = f"{many} {code}, which this version does not know: another version of probe wrote it"
        problems.append(Problem(message, Span(path, numbers[0], numbers[0])))
    if end is None:
        message = "cut short here: the line that says how many decisions there are is missing"
        problems.append(Problem(message, Span(path, last, last)))
    elif end != len(decisions) and not problems:
        message = f"lines are missing: {len(decisions)} decisions of {end}"
        problems.append(Problem(message, Span(path, last, last)))
    complete = end == len(decisions)
    return Decisions(header.torch, header.recorders, tuple(decisions), complete, tuple(problems))


def _header(text: str, path: Path) -> DecisionsHeader:
    try:
        data: Any = json.loads(text)
        if isinstance(data, dict) and isinstance(data.get("format"), int) and data["format"] > FORMAT:
            raise UnreadableError(
                f"{path} was written by a newer probe (format {data['format']})", "update inductor_probe"
            )
        if isinstance(data, dict) and isinstance(data.get("recorders"), list):
            data["recorders"] = [
                kind for kind in data["recorders"] if not isinstance(kind, str) or kind in _CODES["kind"]
            ]
        return from_json(DecisionsHeader, data)
    except ShapeError as error:
        raise UnreadableError(f"{path}:1: no header of decisions: {error}", _AGAIN) from None
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"{path}:1: not JSON: {error}", _AGAIN) from None


def _unknown_code(data: Any) -> str | None:
    """Return the first code of a decision that this version does not know: `the cause too-deep`."""
    if not isinstance(data, dict):
        return None
    codes = ((name, data.get(name), known) for name, known in _CODES.items())
    return next(
        (f"the {name} {code}" for name, code, known in codes if isinstance(code, str) and code not in known),
        None,
    )


def _decision(line: _Line, frames: tuple[TorchFrame, ...]) -> Decision:
    place, *stack = (
        frame if isinstance(frame, TorchFrame) else _frame(frame, frames)
        for frame in (line.place, *line.stack)
    )
    return Decision(
        line.number, line.kind, line.subject_type, line.subjects, line.outcome, line.cause, line.operands,
        place, tuple(stack), line.speculative, line.times,
    )  # fmt: skip


def _frame(number: int, frames: tuple[TorchFrame, ...]) -> TorchFrame:
    if not 0 <= number < len(frames):
        raise ShapeError("a frame is missing")
    return frames[number]
