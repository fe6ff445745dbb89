"""An answer that a program reads at once: a sentence, how the screen begins, and the record, below 8 KB."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from inductor_probe.mcp_server.tools import MOST_ROWS
from inductor_probe.report.json_form import MOST_BYTES, Data, JsonForm

_ENVELOPE = 700
"""Bytes of a result beside text and data: the sentence again, `cut`, `rest`, and what the protocol adds."""
_SCREEN = 2500
"""Bytes of the screen, of which a line has `WIDTH` columns at most: what is cut there is in the data."""
WIDTH = 100
_SENTENCE = 300
_LONGEST_COMMAND = 200


def size(value: Any) -> int:
    """Return how many bytes a value has as JSON."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def answer_of(event: Mapping[str, Any], form: JsonForm, tool: str, call: Mapping[str, Any]) -> Data:
    """Return a result of the protocol, as much of it as `form` says and has room.

    Args:
        event: what the process of a call gave: a sentence, lines of the screen, the record as JSON, and the
            command that prints it.
        tool, call: what gives the same answer once more: its arguments, or the id of a job.
    """
    whole, command = event["whole"], event["command"]
    structured: Data = {"answer": _start(event["answer"], _SENTENCE)}
    structured |= {"page": event["page"]} if event.get("page") else {}
    text = (
        event["answer"] if form.fields or form.offset else _first_lines(event["screen"] or [event["answer"]])
    )
    room = MOST_BYTES - size(text) - _ENVELOPE
    data = form.within(whole, room)
    cut = data.pop("cut", [])
    data.pop("rest", None)
    while size(data) > room:  # what no list shortens
        key = max(data, key=lambda name: size(data[name]))
        cut = [*(part for part in cut if part["key"].partition(".")[0] != key), _left_out(key, data.pop(key))]
    structured["data"] = data
    if cut:
        first = min(cut, key=lambda part: _weight(whole, part))
        following = {**call, **_next(whole, first, form)}
        structured |= {"cut": cut[:5], "rest": {"tool": tool, "arguments": following}}
        if len(command) < _LONGEST_COMMAND:
            structured["rest"]["command"] = command
        text += f"\ndata has {first['shown']} of {first['of']} {first['key']}; rest: {json.dumps(following)}"
    return {"text": text, "structured": structured}


def _left_out(key: str, value: Any) -> Data:
    return {"key": key, "shown": 0, "of": len(value) if isinstance(value, (list, dict, str)) else 1}


def _start(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _first_lines(lines: Sequence[str]) -> str:
    """Return the lines of a screen that fit, and how many do not."""
    shown: list[str] = []
    room = _SCREEN
    for line in lines:
        text = _start(line, 2 * WIDTH)
        room -= size(text)
        if room < 0 or len(shown) > MOST_ROWS + 4:
            shown.append(f"... {len(lines) - len(shown)} more lines of the screen")
            break
        shown.append(text)
    return "\n".join(shown)


def _next(whole: Data, cut: Data, form: JsonForm) -> Data:
    """Return the arguments that go on where an answer was cut first.

    Of what is inside of one of several records these go record by record, else on behind what was shown.
    """
    value: Any = whole
    keys = cut["key"].split(".")
    for place, key in enumerate(keys):
        if isinstance(value, list):
            if len(value) > 1 and form.limit != 1:
                return {"fields": [".".join(keys[:place])], "limit": 1, "offset": form.offset}
            value = value[min(form.offset, len(value) - 1)] if value else None
        value = value.get(key) if isinstance(value, dict) else None
    same = any(f"{field}.".startswith(f"{cut['key']}.") for field in form.fields)
    fields = form.fields if same else (cut["key"],)
    begin = form.offset if same or not form.fields else 0
    return {"fields": [*fields], "limit": MOST_ROWS, "offset": begin + cut["shown"]}


def _weight(whole: Data, cut: Data) -> tuple[bool, int, int]:
    """Return what cuts are ordered by: records first, then what is further outside, then what lacks most."""
    value: Any = whole
    for key in cut["key"].split("."):
        value = value[0] if isinstance(value, list) and value else value
        value = value.get(key) if isinstance(value, dict) else None
    is_records = isinstance(value, list) and bool(value) and isinstance(value[0], dict)
    return not is_records, cut["key"].count("."), cut["shown"] - cut["of"]
