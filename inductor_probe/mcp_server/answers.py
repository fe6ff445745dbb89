"""An answer that a program reads at once: a sentence, how the screen begins, and the record, below 8 KB."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from inductor_probe.api.rows import Rows
from inductor_probe.api.session import Run
from inductor_probe.mcp_server.tools import MOST_ROWS, Tool
from inductor_probe.options.fields import words_of
from inductor_probe.report.document import Table
from inductor_probe.report.json_form import MOST_BYTES, Data, JsonForm
from inductor_probe.report.shown import Shown
from inductor_probe.report.terminal import to_text
from inductor_probe.report.units import counted

_ENVELOPE = 700
"""Bytes of a result beside text and data: the sentence again, `cut`, `rest`, and what the protocol adds."""
_SCREEN = 2500
"""Bytes of the screen, of which a line has `_WIDTH` columns at most: what is cut there is in the data."""
_WIDTH = 100
_WHOLE = 1000
"""Columns of a line that is not broken."""
_SENTENCE = 300


def size(value: Any) -> int:
    """Return how many bytes a value has as JSON."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def answer_of(tool: Tool, view: Shown, options: Struct, form: JsonForm, asked: Mapping[str, Any]) -> Data:
    """Return a view as a result of the protocol.

    Args:
        options, form: what was asked for, and how much of it. asked: the arguments of the call for the first.
    """
    screen = to_text(view.document, _WIDTH).splitlines()
    whole = cast("Data", view.json)
    sentence = _sentence(view, whole)
    structured: Data = {"answer": _start(sentence, _SENTENCE)}
    text = sentence if form.fields or form.offset else _first_lines(screen or [sentence])
    room = MOST_BYTES - size(text) - _ENVELOPE
    data = form.within(whole, room)
    cut = data.pop("cut", [])
    data.pop("rest", None)
    while size(data) > room:  # what no list shortens
        key = max(data, key=lambda name: size(data[name]))
        cut = [*(part for part in cut if part["key"].partition(".")[0] != key), _left_out(key, data.pop(key))]
    structured["data"] = data
    if cut:
        command = shlex.join(
            ["probe", tool.verb.replace("_", "-") or tool.name, *words_of(options), "--json"]
        )
        first = min(cut, key=lambda part: _weight(whole, part))
        call = {**asked, **_next(whole, first, form)}
        rest = {"tool": tool.name, "arguments": call, **({"command": command} if len(command) < 200 else {})}
        structured |= {"cut": cut[:5], "rest": rest}
        text += f"\ndata has {first['shown']} of {first['of']} {first['key']}; rest: {json.dumps(call)}"
    return {"text": text, "structured": structured}


def _sentence(view: Shown, whole: Data) -> str:
    """Return what is shown in a sentence: the summary, of a table how many rows, else the first line."""
    summary = whole.get("summary")
    if summary and isinstance(summary, (str, list)):
        return summary if isinstance(summary, str) else "; ".join(summary)
    first = next(iter(view.document), None)
    if isinstance(view, Rows) and (first is None or isinstance(first, Table)):
        return counted(len(view), view.noun) if view else view.empty
    if isinstance(view, Run):
        label = view.manifest.label if view.manifest else None
        return f"{label or view.path.name} has {counted(len(view.graphs), 'graph')}"
    lines = to_text([] if first is None else [first], _WHOLE).splitlines()
    line = next(iter(lines), "")
    if " " not in line.strip():  # the name of a graph: what it comes to is below
        line = next(filter(None, reversed(to_text(view.document, _WHOLE).splitlines())), line)
    if isinstance(view, Rows) and len(view) > 1 and str(len(view)) not in line:
        line = f"{counted(len(view), view.noun)}; {line}"
    return line


def _left_out(key: str, value: Any) -> Data:
    return {"key": key, "shown": 0, "of": len(value) if isinstance(value, (list, dict, str)) else 1}


def _start(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _first_lines(lines: Sequence[str]) -> str:
    """Return the lines of a screen that fit, and how many do not."""
    shown: list[str] = []
    room = _SCREEN
    for line in lines:
        text = _start(line, 2 * _WIDTH)
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
