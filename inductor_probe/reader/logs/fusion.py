"""The log of fusion: lines to rounds.

Texts come without their prefix (`log_lines`); spans are the caller's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from inductor_probe.model.logs import (
    Candidate,
    FusionAttempt,
    FusionBenchmark,
    FusionLog,
    FusionRound,
    Logged,
    Outcome,
    SharedData,
)
from inductor_probe.reader.logs.candidates import CANDIDATE, read_candidate

_BEGIN = re.compile(r"===== attempting fusion \((\d{1,9})/\d+\): (\d{1,9}) nodes =====")
_ROUND_END = re.compile(
    r"completed fusion round \((\d{1,9})/\d+\): fused (\d{1,9}) nodes into (\d{1,9}) nodes"
)
_END = re.compile(r"===== fusion complete \((\d{1,9}) iterations\) =====")
_CANDIDATES = "fuse_nodes_once, candidates:"
_FOUND = re.compile(r"found (\d{1,9}) possible fusions:?")
_PAIR = re.compile(r"\((\w+\((?:name|nodes)=[^()]*\)), (\w+\((?:name|nodes)=[^()]*\))\)")
_REFUSED = re.compile(r"cannot fuse (\S+) with (\S+): ")
_FUSED = re.compile(r"fusing (\S+) with (\S+)")
_BENCHMARK = re.compile(
    r"(?:cannot|can) fuse \(benchmark\): fusing (?:(.*?) with (.*?) cause|causes) ?(\S+)x (speedup|slowdown)"
)
_NAME = re.compile(r"\w+\((?:name='|nodes=)([^'()]*)")
_BUFFERS = re.compile(r"'([^']*)'")

_SHARED = re.compile(r"(\S+) and (\S+) has (?:(no) |(\d{1,9}) )?shared data")
_ORDERS = ("Reorder loops for ", "Don't reorder", "Dont reorder", "Can not reorder fused node")
_FORMS = (_REFUSED, _FUSED, CANDIDATE, _BEGIN, _FOUND, _PAIR, _ROUND_END, _END, _BENCHMARK)
_NOTES = ("Exception in compiling ", "ComboKernel", "Shared memory after inversion: ")


def starts_message(text: str) -> bool:
    """Tell whether a line of the fusion log is the first of a message whose form is known.

    A blank line is a message of its own: torch 2.2 prints it around its lists.
    """
    return (
        not text or text == _CANDIDATES or text.startswith(_NOTES) or any(form.match(text) for form in _FORMS)
    )


@dataclass(slots=True)
class _Round:
    """A round while its lines are read."""

    number: int | None
    nodes_before: int | None = None
    nodes_after: int | None = None
    found: int | None = None
    candidates: list[Candidate] = field(default_factory=list)
    attempts: list[FusionAttempt] = field(default_factory=list)
    shared: list[SharedData] = field(default_factory=list)
    benchmarks: list[FusionBenchmark] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def record(self) -> FusionRound:
        return FusionRound(
            self.number,
            self.nodes_before,
            self.nodes_after,
            self.found,
            tuple(self.candidates),
            tuple(self.attempts),
            tuple(self.shared),
            tuple(self.benchmarks),
            tuple(self.notes),
        )


class FusionReader:
    """Takes the messages of the logs `fusion` and `loop_ordering` of one process in order."""

    def __init__(self) -> None:
        self.logs: list[FusionLog] = []
        self._at: Logged | None = None
        self._rounds: list[_Round] = []
        self._begun = self._ended = False
        self._names: dict[str, str] = {}

    def fusion(self, text: str, at: Logged) -> bool:
        """Take a message of the fusion log; False when its form is not known."""
        if match := _REFUSED.match(text):
            self._attempt(match, "refused", at, self._one(text[match.end() :].rstrip()))
        elif match := _FUSED.fullmatch(text):
            self._attempt(match, "fused", at)
        elif match := CANDIDATE.fullmatch(text):
            self._round(at).candidates.append(read_candidate(text))
        elif text == _CANDIDATES:
            self._candidates_follow(at)
        elif match := _BEGIN.fullmatch(text):
            self._begin(int(match[1]), int(match[2]), at)
        elif match := _FOUND.fullmatch(text):
            self._round(at).found = int(match[1])
        elif match := _PAIR.fullmatch(text):
            self._attempt(match, "possible", at)
        elif match := _ROUND_END.match(text):
            self._round(at).nodes_before, self._round(at).nodes_after = int(match[2]), int(match[3])
        elif _END.fullmatch(text):
            self._round(at)
            self._ended = True
        elif match := _BENCHMARK.fullmatch(text):
            first, second = (tuple(_BUFFERS.findall(side or "")) for side in (match[1], match[2]))
            self._round(at).benchmarks.append(
                FusionBenchmark(first, second, match[4] == "speedup", _number(match[3]), at.span, at.order)
            )
        elif text.startswith(_NOTES):
            self._round(at).notes.append(text)
        else:
            return not text.strip()
        return True

    def loop_ordering(self, text: str, at: Logged) -> bool:
        """Take a message of the log of loop orders; False when its form is not known."""
        if match := _SHARED.fullmatch(text):
            amount: int | bool = int(match[4]) if match[4] else match[3] is None
            self._round(at).shared.append(
                SharedData(self._one(match[1]), self._one(match[2]), amount, at.span, at.order)
            )
            return True
        if text.startswith(_ORDERS):
            self._round(at).notes.append(text)
            return True
        return not text.strip()

    def finish(self) -> None:
        """Close the last fusion."""
        if self._at is not None:
            rounds = tuple(part.record() for part in self._rounds)
            self.logs.append(FusionLog(self._at, rounds, self._begun and self._ended))
        self._at, self._rounds = None, []
        self._begun = self._ended = False

    def _begin(self, number: int, nodes: int, at: Logged) -> None:
        if number == 1 or self._at is None or self._ended:
            self.finish()
            self._at = at
            self._begun = number == 1
        self._rounds.append(_Round(number, nodes))

    def _round(self, at: Logged) -> _Round:
        """Return the round that a line belongs to; a log that was cut off lacks its beginning."""
        if self._at is None:
            self._at = at
        if not self._rounds:
            self._rounds.append(_Round(None))
        return self._rounds[-1]

    def _candidates_follow(self, at: Logged) -> None:
        current = self._round(at)
        if self._ended or current.candidates or current.attempts:
            self._rounds.append(_Round(None))

    def _attempt(self, match: re.Match[str], outcome: Outcome, at: Logged, reason: str | None = None) -> None:
        current = self._round(at)
        first, second = (
            self._one(name[1] if (name := _NAME.match(side)) else side) for side in match.group(1, 2)
        )
        current.attempts.append(
            FusionAttempt(first, second, outcome, reason, current.found is not None, at.span, at.order)
        )

    def _one(self, text: str) -> str:
        """Keep one copy of a text that a log says thousands of times."""
        return self._names.setdefault(text, text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
