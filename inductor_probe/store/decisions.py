"""`probe_decisions.jsonl` to `Decisions` and back: a header, functions of torch, a decision a line, an end.

    {"format": 4, "torch": "2.13.0", "recorders": ["vectorisation"]}
    {"frames": [{"file": "torch/_inductor/codegen/cpp.py", "function": "TilingSelect.select_tiling", ...}]}
    {"form": 0, "kind": "vectorisation", ..., "operands": ["loop", "range"], "place": 0, "stack": [1, 2]}
    [0, 1, [["op0"]], ["x2", 3]]
    {"end": 1}

A graph of a thousand nodes has thirty thousand decisions (64 tries of fusion for each node), which differ in
few things: a line has the number of its form, which a line before it describes, and then what is its own:
its number, subjects, values of operands, how often torch asked, if not once, and the values that it compared
in the tests of its form. `place` and `stack` of a form are numbers of frames, as is the place of a test, and
what is as the record has it by default is left out.

The end holds the number of decisions, so that a file that was cut between two lines is known as cut. What
stands before a damaged line is still read, and so are the decisions of a file of another version of probe
whose codes this one knows.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from msgspec import Struct

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
    TorchTest,
)
from inductor_probe.model.record import defaults
from inductor_probe.model.span import MOST_PROBLEMS, Problem, Span, too_many_problems

FORMAT = 4
_AGAIN = "dump the script again"
_CODES: dict[str, frozenset[str]] = {
    "kind": frozenset(DECISION_KINDS),
    "outcome": frozenset(get_args(Outcome)),
}
"""The codes of a decision that this version knows. A cause is any text: `catalogue/` shows what it has."""
_LONGEST_LINE = 1 << 20
"""Of a line: lists in lists take 27 times their text in memory."""


class _Frames(Struct, frozen=True):
    frames: tuple[TorchFrame, ...]


class _Form(Struct, frozen=True):
    """What decisions have in common, and the names of their operands."""

    form: int
    kind: DecisionKind
    subject_type: SubjectType
    outcome: Outcome
    cause: CauseCode
    operands: tuple[str, ...]
    place: int
    stack: tuple[int, ...] = ()
    speculative: bool = False
    tests: tuple[tuple[int, str, bool], ...] = ()


class _Value(Struct, frozen=True):
    value: Operand


class _Tested(Struct, frozen=True):
    values: tuple[tuple[bool | int | float | str, ...], ...]


_ROWS = ([int, int, list, list], [int, int, list, list, int], [int, int, list, list, int, list])
"""The types of what is in a line of a decision."""
_LIMIT = 1 << 63
_NO_PLACE = TorchFrame("", "", 0)
"""Of a decision that was not recorded, which none is that is written."""
_OPTIONAL = defaults(_Form)


def write_decisions(path: Path, decisions: Decisions) -> None:
    """Write the decisions of a graph, whole or not at all.

    Raises:
        ProbeError: the file cannot be written.
    """
    write_whole(path, "".join(_lines(decisions)))


def _lines(decisions: Decisions) -> list[str]:
    """Return the lines of a file.

    A compile waits for them: what thousands of decisions have in common is looked up by its identity, and the
    JSON of what many have is made once.
    """
    frames: dict[TorchFrame, int] = {}
    known: dict[int, int] = {}
    stacks: dict[int, tuple[int, ...]] = {}
    operands: dict[int, tuple[tuple[str, ...], str]] = {}
    forms: dict[Any, int] = {}
    lines = []

    def number_of(frame: TorchFrame) -> int:
        number = known.get(id(frame))
        if number is None:
            number = known[id(frame)] = frames.setdefault(frame, len(frames))
        return number

    for one in decisions.decisions:
        stack = stacks.get(id(one.stack))
        if stack is None:
            stack = stacks[id(one.stack)] = tuple(map(number_of, one.stack))
        row = operands.get(id(one.operands))
        if row is None:
            names, values = zip(*one.operands, strict=True) if one.operands else ((), ())
            row = operands[id(one.operands)] = names, _encode(values)
        names, values_text = row
        place = number_of(one.place or _NO_PLACE)
        tests = tuple((number_of(test.place), test.text, test.truth) for test in one.tests)
        key = one.kind, one.subject_type, one.outcome, one.cause, names, place, stack, one.speculative, tests
        form = forms.get(key)
        if form is None:
            form = forms[key] = len(forms)
            line = dict(zip(_Form.__struct_fields__, (form, *key), strict=True))
            lines.append(
                _encode(
                    {
                        name: value
                        for name, value in line.items()
                        if name not in _OPTIONAL or value != _OPTIONAL[name]
                    }
                )
            )
        times = f", {one.times}" if one.times != 1 or tests else ""
        times += f", {_encode([test.values for test in one.tests])}" if tests else ""
        lines.append(f"[{form}, {one.number}, {_groups_text(one.subjects)}, {values_text}{times}]")
    header = to_json(DecisionsHeader(FORMAT, decisions.torch, decisions.recorders))
    end = {"end": len(decisions.decisions)}
    rows = (_encode(header), _encode(to_json(_Frames(tuple(frames)))), *lines, _encode(end))
    return [f"{row}\n" for row in rows]


_encode = json.JSONEncoder(check_circular=False).encode


def _groups_text(groups: tuple[tuple[str, ...], ...]) -> str:
    return f"[{', '.join(map(_group_text, groups))}]"


@lru_cache(maxsize=4096)
def _group_text(group: tuple[str, ...]) -> str:
    return _encode(group)


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
    reader = _Reader()
    problems: list[Problem] = []
    last = len(lines) + 1
    for number, line in enumerate(lines, start=2):
        if len(problems) >= MOST_PROBLEMS:
            problems.append(too_many_problems(path, number, text))
            break
        try:
            if len(line) > _LONGEST_LINE:
                raise ShapeError(f"longer than {_LONGEST_LINE:,} characters")
            reader.read(json.loads(line), number, is_last=number == last)
        except (ValueError, RecursionError) as error:  # ShapeError is one
            what = "not a decision" if isinstance(error, ShapeError) else "not JSON"
            problems.append(Problem(f"{what}: {error}", Span(path, number, number)))
    decisions, end = reader.decisions, reader.end
    for code, numbers in reader.unknown.items():
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


class _Reader:
    """Makes decisions of lines. `unknown`: lines of decisions with a code that this version does not know."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self.end: int | None = None
        self.unknown: dict[str, list[int]] = {}
        self._frames: tuple[TorchFrame, ...] = ()
        self._forms: dict[int, tuple[_Form, TorchFrame, tuple[TorchFrame, ...]]] = {}
        self._unknown_forms: dict[int, str] = {}

    def read(self, data: Any, number: int, *, is_last: bool) -> None:
        """Read the line of that number, of which `data` is the JSON."""
        if isinstance(data, list):
            self._read_row(data, number)
            return
        if isinstance(data, dict) and is_last and isinstance(data.get("end"), int):
            self.end = data["end"]
        elif isinstance(data, dict) and "frames" in data:
            self._frames = from_json(_Frames, data).frames
        elif code := _unknown_code(data):
            if isinstance(form := data.get("form"), int):
                self._unknown_forms[form] = code
        else:
            known = from_json(_Form, data)
            stack = tuple(self._frame(frame) for frame in known.stack)
            self._forms[known.form] = known, self._frame(known.place), stack

    def _read_row(self, row: list[Any], line: int) -> None:
        """Read what a decision has of its own. The codec would take ten times as long, of thousands."""
        if [*map(type, row)] not in _ROWS:
            raise ShapeError("the line is no [form, number, subjects, operands, times, tests]")
        number, form = row[1], self._forms.get(row[0])
        if form is None and row[0] in self._unknown_forms:
            self.unknown.setdefault(self._unknown_forms[row[0]], []).append(line)
            return
        if form is None:
            raise ShapeError(f"form {row[0]} is missing")
        known, place, stack = form
        if len(row[3]) != len(known.operands):
            raise ShapeError(f"{len(row[3])} operands, not {len(known.operands)}")
        self.decisions.append(Decision(
            number, known.kind, known.subject_type, tuple(map(_names, row[2])), known.outcome, known.cause,
            tuple(zip(known.operands, map(_operand, row[3]), strict=True)), place, stack,
            known.speculative, row[4] if len(row) > 4 else 1, self._tests(known, row[5:]),
        ))  # fmt: skip

    def _tests(self, form: _Form, data: list[Any]) -> tuple[TorchTest, ...]:
        values = from_json(_Tested, {"values": data[0]}).values if data else ()
        if len(values) != len(form.tests):
            raise ShapeError(f"{len(values)} tests, not {len(form.tests)}")
        return tuple(
            TorchTest(self._frame(place), text, truth, compared)
            for (place, text, truth), compared in zip(form.tests, values, strict=True)
        )

    def _frame(self, frame: int) -> TorchFrame:
        if not 0 <= frame < len(self._frames):
            raise ShapeError("a frame is missing")
        return self._frames[frame]


def _names(data: Any) -> tuple[str, ...]:
    if type(data) is not list or not {*map(type, data)} <= {str}:
        raise ShapeError("names are not a list of strings")
    return tuple(data)


def _operand(data: Any) -> Operand:
    if type(data) is list:
        return _names(data)
    kind = type(data)
    if kind is str or kind is bool or (kind is int and abs(data) < _LIMIT):
        return data  # type: ignore[no-any-return]
    return from_json(_Value, {"value": data}).value


def _header(text: str, path: Path) -> DecisionsHeader:
    try:
        data: Any = json.loads(text)
        if isinstance(data, dict) and isinstance(number := data.get("format"), int) and number != FORMAT:
            newer, hint = ("a newer", "update inductor_probe") if number > FORMAT else ("an older", _AGAIN)
            raise UnreadableError(f"{path} was written by {newer} probe (format {number})", hint)
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
