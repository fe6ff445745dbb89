"""What the log of fusion says of each candidate.

SchedulerNode(name='op0'), Reduction(['[768]', 'sum', 'origins=OrderedSet([sum_1])'])
FusedSchedulerNode(nodes=op0_op1), snodes: ["SchedulerNode(name='op0'), Pointwise(...)", "..."]
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from functools import lru_cache

from inductor_probe.model.logs import Candidate, CandidateData
from inductor_probe.reader.python_text import parse_expression

CANDIDATE = re.compile(r"  (\w+)\((?:name='([^']*)'|nodes=([^)]*))\)(?:, (.*))?", re.DOTALL)
_DATA = re.compile(r"SchedulerNode\(name='([^']*)'\)(?:, (\w+)\((\[.*\])\))?", re.DOTALL)
_ORIGINS = re.compile(r"origins=(?:OrderedSet\()?[\[{](.*?)[\]}]\)?")
_NAME = re.compile(r"(?:name='|nodes=)([^'()]*)")


@lru_cache(maxsize=4096)
def read_candidate(text: str) -> Candidate:
    """Read the line of a candidate; the same line stands in every round.

    Raises:
        ValueError: another line.
    """
    match = CANDIDATE.fullmatch(text)
    if match is None:
        raise ValueError(f"not a candidate: {text}")
    kind, name, nodes, rest = match.groups()
    if name is not None:
        return Candidate(name, kind, (_data(text.strip()) or CandidateData(name),))
    members = tuple(_members(rest or "")) or tuple(CandidateData(part) for part in members_of(nodes))
    return Candidate(nodes, kind, members)


def members_of(name: str) -> tuple[str, ...]:
    """Take the joined name of a fused node apart: `op3_op4`."""
    return tuple(name.split("_"))


def _members(text: str) -> Iterator[CandidateData]:
    """Read `snodes: ["SchedulerNode(name='op0'), Pointwise([...])", ...]`; fused nodes may be in it."""
    for line in _strings(text.removeprefix("snodes: ")):
        if data := _data(line):
            yield data
        elif nested := re.match(r"\w+\(nodes=[^)]*\), snodes: (\[.*\])", line, re.DOTALL):
            yield from _members(nested[1])
        elif nested := _NAME.search(line):
            yield CandidateData(nested[1])


def _data(text: str) -> CandidateData | None:
    match = _DATA.fullmatch(text)
    if match is None:
        return None
    name, kind, details = match.groups()
    if details is None:
        return CandidateData(name)
    strings = _strings(details)
    origins = next((found[1] for line in strings if (found := _ORIGINS.fullmatch(line))), "")
    named = tuple(origin.strip() for origin in origins.split(",") if origin.strip())
    shown = []
    for line in strings:
        if line.startswith("stack_traces"):
            break
        if not line.startswith("origins="):
            shown.append(line)
    return CandidateData(name, kind, tuple(shown), named)


def _strings(text: str) -> list[str]:
    """Read the text of a list of strings; nothing is evaluated."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # escapes in a text that is not torch's
            node = parse_expression(text)
    except ValueError:
        return []
    if not isinstance(node, ast.List):
        return []
    return [
        part.value for part in node.elts if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
