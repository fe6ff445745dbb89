"""What dynamo says about recompiles, graph breaks and the recompile limit, as records."""

from __future__ import annotations

import re

from inductor_probe.model.manifest import GraphBreak, LimitHit

# - 0/0: tensor 'x' size mismatch at index 0. expected 8, actual 12
_GUARD = re.compile(r"^\s*- (!?\d+/.*?: .*\S)\s*$", re.MULTILINE)
_BREAK_AT = re.compile(r"^Graph break.* in user code at (.+:\d+)$", re.MULTILINE)
_BREAK_REASON = re.compile(r"Graph Break Reason: (.*?)(?=^User code traceback:|\Z)", re.DOTALL | re.MULTILINE)
_EXPLAINED = re.compile(r"^(?P<what>\S.*)\n\s+Explanation: (?P<why>.*)$", re.MULTILINE)
_FRAME = re.compile(r'^\s*File "(.+)", line (\d+)', re.MULTILINE)
_LIMIT = re.compile(
    r"function: '(?P<function>.*?)' \((?P<where>.*)\)\s*\n\s*last reason: (?P<reason>.*?)\s*^To log all",
    re.DOTALL | re.MULTILINE,
)


def failed_guards(message: str) -> tuple[str, ...]:
    """Return the guards that a recompile message names, each with the compile whose guard it was."""
    # Dynamo pads a guard to a column before the source line that it stands for.
    return tuple(re.sub(r"\s{2,}", "  ", guard) for guard in _GUARD.findall(message))


def graph_break(message: str, compile_id: str | None, error: str | None) -> GraphBreak:
    """Return the graph break that a message is about.

    Args:
        message: of the log `graph_breaks`.
        compile_id: of the compile in which it happened.
        error: text of the exception that came with it, where the whole frame was given up.
    """
    where = _BREAK_AT.search(message)
    reason = _BREAK_REASON.search(message)
    frames = _FRAME.findall(message)
    place = where[1] if where else ":".join(frames[-1]) if frames else None
    return GraphBreak(_sentence(reason[1] if reason else error or message), place, compile_id)


def limit_hit(message: str) -> LimitHit:
    """Return which function hit the recompile limit, from dynamo's warning."""
    match = _LIMIT.search(message)
    if match is None:  # said in other words by another torch: keep them
        return LimitHit(function="?", where=None, reason=message)
    guards = failed_guards(f"- {match['reason']}")
    return LimitHit(match["function"], match["where"], guards[0] if guards else match["reason"])


def _sentence(text: str) -> str:
    """Return what was not traced and why, in one line; torch adds hints, links and debug context."""
    explained = _EXPLAINED.search(text)
    if explained:
        return f"{explained['what']}: {explained['why']}"
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
