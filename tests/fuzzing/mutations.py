"""Ways to change a dump at random: its numbers, names, lines, brackets, JSON values and files.

Each takes a `random.Random`, so that a number, or hypothesis, decides all of it. Text is changed as text of
inductor's: where a number stands comes another number, where a name stands the name of something else.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

NUMBERS = (
    "0", "-1", "1", "7", "-9223372036854775808", "9223372036854775808", "1" + "0" * 399, "-" + "9" * 400,
    "8" * 4300, "9" * 5000, "0x" + "f" * 5000, "10**10**10", "2**(2**40)", "((2**8)**8)**8",
    "(((((((((7**8)**8)**8)**8)**8)**8)**8)**8)**8)**8", "(s0 + s1 + p0 + p1)**8**8", "((s0 + p0)**8)**8",
    "1e308", "1e999", "-1e999", "2.5", "nan", "inf", "True", "None", "s0", "s77*s27", "u0",
    "-s0", "FloorDiv(s0, 0)", "ModularIndexing(p0, 0, 0)", "Mod(7, 0)", "Max()", "s0 << 99999999999", "'4'",
    "[]", "", "1_000", "1j", "0b1", "...", "(yield)", "x := 1", "lambda: 0", "*", "9" * 30,
)  # fmt: skip
"""What is put where a number stands: 2**63 and more digits than Python turns into text among it."""
NAMES = (
    "nothing_9", "buf99999", "op99999", "", "None", "self", "__class__", "'", "OUTPUT", "b\u00fcf0",
    "\u202ebuf0", "\x1b]0;t\x07", "buf0\x00", "a" * 5000, "torch", "call", "async_compile", "%", "{0}",
    "[bold]", "-", "op0_op0",
)  # fmt: skip
CHARACTERS = (
    "\0", "\x1b[2J", "\x9b31m", "\r", "\f", "\v", "\x1c", "\u2028", "\u202e", "\u200b", "\U0001f9ea",
    "\ufeff", "\udcff", "\\", "'", '"', "#", ":", ",", "=", "\t", "    ", "\n", '"""', "{", "[/]",
    "\u0663", "\u00b2",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**63, 10**400, -(10**400), 1e308, float("inf"), float("nan"), 5e-324,
    0.5, "", "x", "1", "\x1b[2J", "\ud800", "a" * 5000, [], {}, [None], [[]], {"": None}, [0] * 4, ["x"] * 4,
    "nan",
)  # fmt: skip
"""What is put where a value stands in JSON; Python's parser takes Infinity, NaN and lone surrogates too."""
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")
_NAME = re.compile(
    r"\b(?:(?:buf|op|arg|tmp|indirect|index|primals_|tangents_|get_index_|load_|getitem_|constant|_tensor_constant)"
    r"\d+(?:_\d+)?(?:_op\d+)*|(?:cpp|triton)_\w+|(?:add|mul|sum|view|mm|addmm|permute|clone)(?:_\d+)?)\b"
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_KEYWORD_ARGUMENT = re.compile(r",?\s*\b\w+=[^,()\[\]{}=]+")
_SIZE = re.compile(r"(?:size|stride|ranges|offset|numel|Dep|empty_strided)\w*\W[^\n]*?(?P<number>\b\d+\b)")
_ELEMENT = re.compile(r"[^,\[\](){}\n]+,\s*")
_BRACKETS = "()[]{}"


def mutate_text(text: str, rng: random.Random) -> str:
    """Change a text in one way."""
    return rng.choice(_TEXT)(text, rng)


def _replace(text: str, pattern: re.Pattern[str], new: str, rng: random.Random) -> str:
    """Replace one match, those that say the same, or nothing where there is none."""
    matches = list(pattern.finditer(text))
    if not matches:
        return text + new
    match = rng.choice(matches)
    if rng.random() < 0.3:
        return re.sub(rf"(?<!\w){re.escape(match[0])}(?!\w)", lambda _: new, text)
    return text[: match.start()] + new + text[match.end() :]


def _number(text: str, rng: random.Random) -> str:
    return _replace(text, _NUMBER, rng.choice(NUMBERS), rng)


def _size(text: str, rng: random.Random) -> str:
    """Replace a number in a layout, a dependency, ranges or an allocation."""
    match = rng.choice([*_SIZE.finditer(text)] or [None])
    if match is None:
        return _number(text, rng)
    number = rng.choice(NUMBERS)
    if rng.random() < 0.3:
        return re.sub(rf"\b{match['number']}\b", lambda _: number, text)
    return text[: match.start("number")] + number + text[match.end("number") :]


def _name(text: str, rng: random.Random) -> str:
    known = sorted({*_NAME.findall(text)})
    return _replace(text, _NAME, rng.choice([rng.choice(NAMES), *known[:40]]), rng)


def _swap_names(text: str, rng: random.Random) -> str:
    known = sorted({*_NAME.findall(text)})
    if len(known) < 2:
        return text
    first, second = rng.sample(known, 2)
    swapped = {first: second, second: first}
    return re.sub(rf"\b(?:{first}|{second})\b", lambda match: swapped[match[0]], text)


def _word(text: str, rng: random.Random) -> str:
    words = _WORD.findall(text)
    return _replace(text, _WORD, rng.choice([*NAMES, rng.choice(words or [""])]), rng)


def _argument(text: str, rng: random.Random) -> str:
    return _replace(text, _KEYWORD_ARGUMENT, "", rng)


def _element(text: str, rng: random.Random) -> str:
    return _replace(text, _ELEMENT, "", rng)


def _lines(text: str, rng: random.Random) -> str:
    """Drop, double, move, swap or join lines, one or a stretch of them."""
    lines = text.split("\n")
    first = rng.randrange(len(lines))
    last = min(len(lines), first + rng.choice((1, 1, 1, 2, 5, 30)))
    cut, rest = lines[first:last], lines[:first] + lines[last:]
    to = rng.randrange(len(rest) + 1)
    match rng.choice(("drop", "drop", "double", "move", "swap", "join", "indent")):
        case "drop":
            lines = rest
        case "double":
            lines[to:to] = cut
        case "move":
            lines = rest[:to] + cut + rest[to:]
        case "swap":
            other = rng.randrange(len(lines))
            lines[first], lines[other] = lines[other], lines[first]
        case "join":
            lines[first:last] = [" ".join(cut)]
        case "indent":
            lines[first:last] = [rng.choice((f"    {line}", line.lstrip())) for line in cut]
    return "\n".join(lines)


def _bracket(text: str, rng: random.Random) -> str:
    places = [at for at, character in enumerate(text) if character in _BRACKETS]
    if not places:
        return text
    at = rng.choice(places)
    return text[:at] + rng.choice(("", text[at] * 2, rng.choice(_BRACKETS), text[at] * 500)) + text[at + 1 :]


def _character(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(CHARACTERS) + text[at + rng.choice((0, 1)) :]


def _cut(text: str, rng: random.Random) -> str:
    first, last = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
    return rng.choice((text[:first], text[first:], text[:first] + text[last:], text[first:last]))


_TEXT: tuple[Callable[[str, random.Random], str], ...] = (
    _number, _size, _size, _size, _name, _name, _swap_names, _word, _argument, _element, _lines, _lines,
    _bracket, _character, _cut,
)  # fmt: skip


def mutate_json(data: Any, rng: random.Random) -> Any:
    """Change, drop, double or rename one value inside a JSON value, in place; return the value."""
    places: list[tuple[Any, Any]] = []
    _places(data, places)
    if not places:
        return rng.choice(VALUES)
    holder, key = rng.choice(places)
    match rng.choice(("value", "value", "value", "number", "drop", "double", "rename")):
        case "value":
            holder[key] = rng.choice(VALUES)
        case "number":
            old = holder[key]
            holder[key] = -old if type(old) in (int, float) else [old]
        case "drop":
            del holder[key]
        case "double" if isinstance(holder, list):
            holder.insert(rng.randrange(len(holder) + 1), holder[key])
        case _ if isinstance(holder, dict):
            holder[rng.choice(NAMES)] = holder.pop(key)
    return data


def _places(data: Any, places: list[tuple[Any, Any]]) -> None:
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in pairs:
        places.append((data, key))
        _places(value, places)


def mutate_file(path: Path, rng: random.Random) -> str:
    """Change a file in one way; return what was done, for the report."""
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    if path.suffix in (".json", ".jsonl") and rng.random() < 0.8:
        whole = path.suffix == ".json"
        parts = [text] if whole else text.splitlines()
        at = rng.randrange(len(parts)) if parts else 0
        try:
            data = json.loads(parts[at])
        except (ValueError, IndexError, RecursionError):
            pass  # damaged before: it is changed as text below
        else:
            parts[at] = json.dumps(mutate_json(data, rng))
            path.write_text("\n".join(parts) + "\n", encoding="utf-8")
            return f"JSON of {path.name}"
    changed = mutate_text(text, rng)
    path.write_bytes(changed.encode("utf-8", "surrogateescape"))  # what was no UTF-8 is the same bytes again
    return f"text of {path.name}"


def mutate_folder(run: Path, other: Path, rng: random.Random) -> str:
    """Remove, empty, rename or swap files of a run, or take one of another run; return what was done."""
    files = sorted(path for path in run.rglob("*") if path.is_file())
    if not files:
        return "nothing: no file"
    path = rng.choice(files)
    what = rng.choice(("remove", "remove", "empty", "swap", "other run", "folder", "rename", "rename graph"))
    match what:
        case "remove":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "swap":
            second = rng.choice(files)
            first_bytes, second_bytes = path.read_bytes(), second.read_bytes()
            path.write_bytes(second_bytes)
            second.write_bytes(first_bytes)
        case "other run":
            named = sorted(other.rglob(path.name)) or [path]
            path.write_bytes(rng.choice(named).read_bytes())
        case "folder":
            path.unlink()
            path.mkdir()
        case "rename":
            path.rename(path.with_name(rng.choice(("x", "output_code.py.bak", "\u202e.py", "a b.txt"))))
        case "rename graph":
            graph = path.parent
            new = rng.choice(
                ("model__0_inference_0.0\n", "model.0", "\x1b[2J", "m" * 200, "model__0_x_9999999.1")
            )
            if graph != run and not graph.with_name(new).exists():
                shutil.move(graph, graph.with_name(new))
    return f"{what} {path.name}"
