"""The logs `fusion` and `loop_ordering`: messages to rounds.

All are printed by torch/_inductor/scheduler.py, of a graph in this order (torch 2.13):

    ===== attempting fusion (1/10): 5 nodes =====                         Scheduler.fuse_nodes
    fuse_nodes_once, candidates:                                          Scheduler.fuse_nodes_once
      SchedulerNode(name='op0'), Reduction(['[768]', 'sum', 'origins=OrderedSet([sum_1])'])
    cannot fuse op1 with op4: intermediate nodes between node1 & node2    WhyNoFuse.__str__
    op0 and op1 has 3145728 shared data                                   Scheduler._can_fuse
    found 2 possible fusions                                              Scheduler.get_possible_fusions
    fusing op0 with op1                                                   Scheduler.fuse_two_nodes
    completed fusion round (1/10): fused 5 nodes into 3 nodes             Scheduler.fuse_nodes
    ===== fusion complete (2 iterations) =====                            Scheduler.fuse_nodes
    fuse_nodes_once, candidates:                          (the pass after the rounds, torch 2.10 and later)

Texts come without their prefix; spans are the caller's.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

from inductor_probe.model.logs import (
    Candidate,
    CandidateData,
    FusionAttempt,
    FusionBenchmark,
    FusionLog,
    FusionRound,
    Logged,
    Outcome,
    SharedData,
)
from inductor_probe.reader.python_text import parse_expression

_BEGIN = re.compile(r"===== attempting fusion \((\d{1,9})/\d+\): (\d{1,9}) nodes =====")
_ROUND_END = re.compile(
    r"completed fusion round \((\d{1,9})/\d+\): fused (\d{1,9}) nodes into (\d{1,9}) nodes"
)
_END = re.compile(r"===== fusion complete \((\d{1,9}) iterations\) =====")
_CANDIDATES = "fuse_nodes_once, candidates:"  # torch 2.5 and later
_FOUND = re.compile(r"found (\d{1,9}) possible fusions:?")
# Below "found", torch 2.2 lists the pairs: `(SchedulerNode(name='buf0'), SchedulerNode(name='buf1'))`.
_PAIR = re.compile(r"\((\w+\((?:name|nodes)=[^()]*\)), (\w+\((?:name|nodes)=[^()]*\))\)")
# Scheduler._can_fuse_peak_memory_check says the second (torch 2.15).
_REFUSED = re.compile(r"(?:cannot fuse|memory-timeline fusion rejected) (\S+) with (\S+): ")
_FUSED = re.compile(r"fusing (\S+) with (\S+)")  # torch 2.3 and later
# Scheduler.speedup_by_fusion; without buffers: Scheduler.speedup_by_combo_kernel.
_BENCHMARK = re.compile(
    r"(?:cannot|can) fuse \(benchmark\): fusing (?:(.*?) with (.*?) cause|causes) ?(\S+)x (speedup|slowdown)"
)
_NOTES = (
    "Exception in compiling ",  # Scheduler.speedup_by_fusion
    "can fuse (assumed): ",  # the same, of a pair that is fused without timing it (torch 2.14)
    "ComboKernel",  # Scheduler.speedup_by_combo_kernel
    "Shared memory after inversion: ",  # Scheduler.shared_data_after_inverting_indexing
    "fusion memory simulation ended with ",  # Scheduler._fusion_memory_update (torch 2.15)
    "NVGEMM fused kernel ",  # CUDACombinedScheduling._benchmark_nvgemm_module (torch 2.15)
)
_NAME = re.compile(r"\w+\((?:name='|nodes=)([^'()]*)")
_QUOTED = re.compile(r"'([^']*)'")

# Torch 2.5 says `has shared data` or `has no shared data`, later ones the bytes.
_SHARED = re.compile(r"(\S+) and (\S+) has (?:(no) |(\d{1,9}) )?shared data")
_ORDERS = (
    # SchedulerNode.reorder_loops_by_dep_pair, and that of FusedSchedulerNode
    "Reorder loops for ", "Don't reorder", "Dont reorder", "Can not reorder fused node",
    # Scheduler._reindexing_regresses_memory_coalescing (torch 2.14): the pair may still be fused as it is
    "rejecting reindex of ",
)  # fmt: skip

# BaseSchedulerNode.debug_str_short (torch 2.5 and later), of a fused node FusedSchedulerNode.debug_str_short:
# FusedSchedulerNode(nodes=op0_op1), snodes: ["SchedulerNode(name='op0'), Pointwise(...)", "..."]
_CANDIDATE = re.compile(r"  (\w+)\((?:name='([^']*)'|nodes=([^)]*))\)(?:, (.*))?", re.DOTALL)
_DATA = re.compile(r"SchedulerNode\(name='([^']*)'\)(?:, (\w+)\((\[.*\])\))?", re.DOTALL)
_NESTED = re.compile(r"\w+\(nodes=[^)]*\), snodes: (\[.*\])", re.DOTALL)
# torch/_inductor/ir.py, IRNode.common_repr: a set until torch 2.4, OrderedSet later.
_ORIGINS = re.compile(r"origins=(?:OrderedSet\()?[\[{](.*?)[\]}]\)?")

_FORMS = (_REFUSED, _FUSED, _CANDIDATE, _BEGIN, _FOUND, _PAIR, _ROUND_END, _END, _BENCHMARK)


def starts_message(text: str) -> bool:
    """Return whether a line of the fusion log is the first of a message whose form is known.

    A blank line is a message of its own: torch 2.2 prints it around its lists.
    """
    return (
        not text or text == _CANDIDATES or text.startswith(_NOTES) or any(form.match(text) for form in _FORMS)
    )


@dataclass(slots=True)
class _Round:
    """A `FusionRound` while its lines are read."""

    number: int | None
    nodes_before: int | None = None
    nodes_after: int | None = None
    possible: int | None = None
    candidates: list[Candidate] = field(default_factory=list)
    attempts: list[FusionAttempt] = field(default_factory=list)
    shared: list[SharedData] = field(default_factory=list)
    benchmarks: list[FusionBenchmark] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def record(self) -> FusionRound:
        values = (getattr(self, column.name) for column in fields(self))
        columns: list[Any] = [tuple(value) if isinstance(value, list) else value for value in values]
        return FusionRound(*columns)


class FusionReader:
    """Takes the messages of the logs `fusion` and `loop_ordering` of one process in order."""

    def __init__(self) -> None:
        self.logs: list[FusionLog] = []
        self._logged: Logged | None = None
        self._rounds: list[_Round] = []
        self._begun = self._ended = self._in_note = False
        self._names: dict[str, str] = {}

    def fusion(self, text: str, logged: Logged) -> bool:
        """Take a message of the fusion log; False when its form is not known."""
        in_note, self._in_note = self._in_note, False
        if match := _REFUSED.match(text):
            self._attempt(match, "refused", logged, self._shared_text(text[match.end() :].rstrip()))
        elif match := _FUSED.match(text):
            self._attempt(match, "fused", logged)
            return match.end() == len(text)
        elif match := _CANDIDATE.fullmatch(text):
            self._round(logged).candidates.append(_candidate(text.strip(), *match.groups()))
        elif text == _CANDIDATES:
            current = self._round(logged)
            if self._ended or current.candidates or current.attempts:
                self._rounds.append(_Round(None))
        elif match := _BEGIN.fullmatch(text):
            self._begin(int(match[1]), int(match[2]), logged)
        elif match := _FOUND.fullmatch(text):
            self._round(logged).possible = int(match[1])
        elif match := _PAIR.fullmatch(text):
            self._attempt(match, "possible", logged)
        elif match := _ROUND_END.match(text):
            self._round(logged).nodes_before, self._round(logged).nodes_after = int(match[2]), int(match[3])
        elif _END.fullmatch(text):
            self._round(logged)
            self._ended = True
        elif match := _BENCHMARK.fullmatch(text):
            self._benchmark(match, logged)
        else:
            self._in_note = self._note(text, logged, in_note)
            return self._in_note or not text.strip()
        return True

    def loop_ordering(self, text: str, logged: Logged) -> bool:
        """Take a message of the log of loop orders; False when its form is not known."""
        if match := _SHARED.fullmatch(text):
            first, second = map(self._shared_text, match.group(1, 2))
            amount: int | bool = int(match[4]) if match[4] else match[3] is None
            self._round(logged).shared.append(SharedData(first, second, amount, logged.span, logged.order))
        elif text.startswith(_ORDERS):
            self._round(logged).notes.append(text)
        else:
            return not text.strip()
        return True

    def finish(self) -> None:
        """Close the last fusion."""
        if self._logged is not None:
            rounds = tuple(part.record() for part in self._rounds)
            self.logs.append(FusionLog(self._logged, rounds, self._begun and self._ended))
        self._logged, self._rounds = None, []
        self._begun = self._ended = False

    def _begin(self, number: int, nodes: int, logged: Logged) -> None:
        if number == 1 or self._logged is None or self._ended:
            self.finish()
            self._logged = logged
            self._begun = number == 1
        self._rounds.append(_Round(number, nodes))

    def _round(self, logged: Logged) -> _Round:
        """Return the round that a line belongs to; a log that was cut off lacks its beginning."""
        if self._logged is None:
            self._logged = logged
        if not self._rounds:
            self._rounds.append(_Round(None))
        return self._rounds[-1]

    def _note(self, text: str, logged: Logged, in_note: bool) -> bool:
        """Take a note, or what follows an empty line in the traceback that a note may end with."""
        if text.startswith(_NOTES):
            self._round(logged).notes.append(text)
        elif in_note and text[:1] in ("", "\n"):
            self._rounds[-1].notes[-1] += f"\n{text}"
        else:
            return False
        return True

    def _attempt(
        self, match: re.Match[str], outcome: Outcome, logged: Logged, reason: str | None = None
    ) -> None:
        current = self._round(logged)
        first, second = (
            self._shared_text(name[1] if (name := _NAME.match(side)) else side) for side in match.group(1, 2)
        )
        current.attempts.append(
            FusionAttempt(
                first, second, outcome, reason, current.possible is not None, logged.span, logged.order
            )
        )

    def _benchmark(self, match: re.Match[str], logged: Logged) -> None:
        first, second = (tuple(_QUOTED.findall(side or "")) for side in match.group(1, 2))
        try:
            factor = float(match[3])
        except ValueError:
            factor = float("nan")
        faster = match[4] == "speedup"
        self._round(logged).benchmarks.append(
            FusionBenchmark(first, second, faster, factor, logged.span, logged.order)
        )

    def _shared_text(self, text: str) -> str:
        """Return one copy of a text that a log says thousands of times."""
        return self._names.setdefault(text, text)


@lru_cache(maxsize=4096)  # the same line stands in every round
def _candidate(text: str, kind: str, name: str | None, nodes: str, rest: str | None) -> Candidate:
    """Return the candidate of a line, from the groups of `_CANDIDATE`."""
    if name is not None:
        return Candidate(name, kind, (_data(text) or CandidateData(name),))
    members = tuple(_members(rest or "")) or tuple(CandidateData(part) for part in nodes.split("_"))
    return Candidate(nodes, kind, members)


def _members(text: str) -> Iterator[CandidateData]:
    """Read `snodes: ["SchedulerNode(name='op0'), Pointwise([...])", ...]`; fused nodes may be in it."""
    for line in _strings(text.removeprefix("snodes: ")):
        if data := _data(line):
            yield data
        elif nested := _NESTED.match(line):
            yield from _members(nested[1])
        elif name := _NAME.search(line):
            yield CandidateData(name[1])


def _data(text: str) -> CandidateData | None:
    """Read `SchedulerNode(name='op0'), Reduction(['[768]', 'sum', 'origins=...', 'stack_traces = {'])`."""
    match = _DATA.fullmatch(text)
    if match is None:
        return None
    name, kind, list_text = match.groups()
    if list_text is None:
        return CandidateData(name)
    strings = _strings(list_text)
    origins = next((match[1] for line in strings if (match := _ORIGINS.fullmatch(line))), "")
    end = next(
        (index for index, line in enumerate(strings) if line.startswith("stack_traces")), None
    )  # torch 2.9
    return CandidateData(
        name,
        kind,
        tuple(line for line in strings[:end] if not line.startswith("origins=")),
        tuple(stripped for origin in origins.split(",") if (stripped := origin.strip())),
    )


def _strings(text: str) -> list[str]:
    """Read the text of a list of strings; nothing is evaluated."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # escapes in a text that is not torch's
            node = parse_expression(text)
    except ValueError:
        return []
    parts = node.elts if isinstance(node, ast.List) else []
    return [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
