"""Messages of other logs than that of fusion: schedules, tilings, lowered buffers, autotuning."""

from __future__ import annotations

import ast
import re

from inductor_probe.model.logs import (
    Autotune,
    AutotuneChoice,
    KernelSchedule,
    Logged,
    LoweredBuffer,
    Removed,
    ScheduleNote,
    Tiling,
)
from inductor_probe.reader.python_text import parse_expression

_MEMBER = re.compile(r"\w+\((?:name='|nodes=)([^'()]*)'?\)|<class '[\w.]*?(\w+)'>")
_NOTES = ("Disabled vectorization:", "Data type propagation:")
_TILING = "Normalized Fused reads: FusedNormalizedReadsWrites"
_TILING_NOTE = "zero division error "

_LOWERED = re.compile(r"scheduling (\w+)\((?:name='([^']*)')?")
_LOWERED_NAME = re.compile(r"^ *name=(\w+),?$", re.MULTILINE)
_DATA = re.compile(r"\bdata=(\w+)\(")
_ORIGIN_NODE = re.compile(r"^ *origin_node=([\w.]+)", re.MULTILINE)
_ORIGINS = re.compile(r"^ *origins=(?:OrderedSet\()?[\[{](.*?)[\]}]\)?,?$", re.MULTILINE)
_REMOVED = re.compile(
    r"removed dead (node|buffer|operation): (\S+)|(remove_buffer|removing_inplace_buffer)\('([^']*)'\)"
)

_AUTOTUNE = re.compile(r"AUTOTUNE (\S.*)")
_CHOICE = re.compile(r"  (\S+) (?:(\d[\d.e+-]*|inf) ms|(\S+)) ?(?:([\d.]+)%)? ?(.*)")


def schedule(text: str, at: Logged) -> KernelSchedule | ScheduleNote | None:
    """Read a message of the schedule log; None when its form is not known."""
    if text.startswith("Schedule:"):
        members = tuple(match[1] or match[2] for match in _MEMBER.finditer(text))
        return KernelSchedule(at, members)
    return ScheduleNote(at, text) if text.startswith(_NOTES) else None


def tiling(text: str, at: Logged) -> Tiling | None:
    """Read a message of the tiling log; None when its form is not known."""
    if text.startswith(_TILING_NOTE):
        return Tiling(at, text=text)
    if not text.startswith(_TILING):
        return None
    try:
        call = parse_expression(text.partition(": ")[2].replace("\n", " "))
    except ValueError:
        return None
    if not isinstance(call, ast.Call):
        return None
    parts = {keyword.arg: keyword.value for keyword in call.keywords}
    return Tiling(
        at,
        index_vars=_names(parts.get("index_vars")),
        reduce_vars=_names(parts.get("reduce_vars")),
        reads=_accesses(parts.get("reads")),
        writes=_accesses(parts.get("writes")),
        ranges=_pairs(parts.get("var_ranges")),
    )


def _names(node: ast.expr | None) -> tuple[str, ...]:
    return tuple(ast.unparse(part) for part in node.elts) if isinstance(node, ast.List | ast.Tuple) else ()


def _pairs(node: ast.expr | None) -> tuple[tuple[str, str], ...]:
    if not isinstance(node, ast.Dict):
        return ()
    pairs = zip(node.keys, node.values, strict=True)
    return tuple((ast.unparse(key), ast.unparse(value)) for key, value in pairs if key is not None)


def _accesses(node: ast.expr | None) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Read `{768*n0 + n1: OrderedSet(['primals_1'])}`."""
    if not isinstance(node, ast.Dict):
        return ()
    return tuple(
        (
            ast.unparse(key),
            tuple(str(part.value) for part in ast.walk(value) if isinstance(part, ast.Constant)),
        )
        for key, value in zip(node.keys, node.values, strict=True)
        if key is not None
    )


def plain(text: str, at: Logged) -> LoweredBuffer | Removed | None:
    """Read a message of inductor that belongs to no named log; None for all that is of no use here."""
    if match := _LOWERED.match(text):
        name = match[2] or ((named := _LOWERED_NAME.search(text)) and named[1])
        if not name:
            return None
        # The last ones are the node's own; those before belong to what it reads.
        data = _DATA.search(text)
        node = _ORIGIN_NODE.findall(text)
        origins = _ORIGINS.findall(text)
        return LoweredBuffer(
            at,
            name,
            match[1],
            data[1] if data else None,
            node[-1] if node and node[-1] != "None" else None,
            tuple(part.strip() for part in origins[-1].split(",") if part.strip()) if origins else (),
        )
    if match := _REMOVED.match(text):
        return Removed(at, match[1] or match[3], match[2] or match[4])
    return None


class AutotuneReader:
    """Takes lines one by one, and keeps the blocks that autotuning prints."""

    def __init__(self) -> None:
        self.blocks: list[Autotune] = []
        self._at: Logged | None = None
        self._operation = ""
        self._facts: list[str] = []
        self._choices: list[AutotuneChoice] = []

    def take(self, text: str, at: Logged) -> bool:
        """Take a line; False when it does not belong to a block."""
        if match := _AUTOTUNE.fullmatch(text):
            self.finish()
            self._at, self._operation = at, match[1]
            return True
        if text.startswith(("Autotune Choices Stats:", "SingleProcess AUTOTUNE", "SubProcess AUTOTUNE")):
            if self._at is not None:
                self._facts.append(text)
                self.finish()
            return True
        if text.startswith('{"num_choices"'):
            return True
        if self._at is None:
            return False
        if match := _CHOICE.fullmatch(text):
            self._choices.append(_choice(match))
            return True
        if text.startswith(("strides:", "dtypes:", "  ")):
            self._facts.append(text)
            return True
        self.finish()
        return False

    def finish(self) -> None:
        """Close the block that is open."""
        if self._at is not None:
            self.blocks.append(Autotune(self._at, self._operation, tuple(self._choices), tuple(self._facts)))
        self._at, self._facts, self._choices = None, [], []


def _choice(match: re.Match[str]) -> AutotuneChoice:
    try:
        ms = float(match[2]) if match[2] else None
        percent = float(match[4]) if match[4] else None
    except ValueError:
        ms = percent = None
    return AutotuneChoice(match[1], ms, percent, match[5])
