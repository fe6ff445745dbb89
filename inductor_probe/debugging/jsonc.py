"""Adds to JSON that a person keeps: comments, trailing commas and spaces stay as they are, byte for byte."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

_TRIVIA = re.compile(r"(?:[\s\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SAME_LINE = re.compile(r"(?:[ \t]|/\*.*?\*/)*(?://[^\r\n]*)?", re.DOTALL)
_SCALAR = re.compile(r'"(?:[^"\\\n]|\\.)*"|-?\d[\d.eE+-]*|true|false|null')
_DEEPEST = 200
_CLOSING = {"{": "}", "[": "]"}


@dataclass
class Node:
    """A value in the text.

    Attributes:
        start, end: its part of the text.
        value: what it means.
        items: of an array or an object, the values in it; for an object by their keys too.
        comma: whether the last item is followed by a comma; `after` is where that, or the item, ends.
    """

    start: int
    end: int
    value: Any
    items: list[Node] = field(default_factory=list)
    members: dict[str, Node] = field(default_factory=dict)
    comma: bool = False
    after: int = 0


def read(text: str) -> Node:
    """Return the value of a whole text of JSON with comments and trailing commas.

    Raises:
        ValueError: it is something else; says on which line.
    """
    node = _value(text, _skip(text, 0), 0)
    rest = _skip(text, node.end)
    if rest != len(text):
        raise _wrong(text, rest, "the end")
    return node


def add(text: str, container: Node, item: str) -> str:
    """Return `text` with `item` as the last in `container`, indented as the others are.

    Args:
        container: an array or an object of `text`, from `read`.
        item: the text of a value or member, its further lines indented by four spaces a level.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = _indent(text, container.start)
    inner = _indent(text, container.items[0].start) if container.items else ""
    if len(inner) <= len(outer):  # there is none, or all is on one line
        inner = outer + ("\t" if "\t" in outer else "    ")
    unit = inner[len(outer) :]
    lines = [(len(line) - len(line.lstrip(" "))) // 4 * unit + line.lstrip(" ") for line in item.split("\n")]
    block = newline + newline.join(inner + line for line in lines)
    closing = container.end - 1
    if not container.items:
        # After the comments that an empty container may hold.
        held = text[container.start + 1 : closing].rstrip()
        at = container.start + 1 + len(held)
        tail = "" if "\n" in text[at:closing] else newline + outer
        return text[:at] + block + tail + text[at:]
    # A comment behind the last item stays on its line.
    match = _SAME_LINE.match(text, container.after)
    at = max(container.after, min(match.end(), closing)) if match else container.after
    behind = text[container.after : at].rstrip(" \t")
    at = container.after + len(behind)
    tail = "" if "\n" in text[at:closing] else newline + outer
    comma = "" if container.comma else ","
    return text[: container.after] + comma + behind + block + tail + text[at:]


def _indent(text: str, position: int) -> str:
    """Return the spaces that the line of `position` starts with."""
    line = text[text.rfind("\n", 0, position) + 1 : position].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip())]


def _skip(text: str, at: int) -> int:
    match = _TRIVIA.match(text, at)
    return match.end() if match else at


def _value(text: str, at: int, depth: int) -> Node:
    if depth > _DEEPEST:
        raise _wrong(text, at, "fewer brackets")
    if text[at : at + 1] in _CLOSING:
        return _container(text, at, depth)
    match = _SCALAR.match(text, at)
    if match is None:
        raise _wrong(text, at, "a value")
    try:
        return Node(at, match.end(), json.loads(match[0]))
    except ValueError:
        raise _wrong(text, at, "a value") from None


def _container(text: str, start: int, depth: int) -> Node:
    is_object, closing = text[start] == "{", _CLOSING[text[start]]
    node = Node(start, start, {} if is_object else [])
    at = _skip(text, start + 1)
    while text[at : at + 1] != closing:
        if node.items and not node.comma:
            raise _wrong(text, at, f"a comma or {closing}")
        key = None
        if is_object:
            name = _value(text, at, depth + 1)
            key = name.value
            at = _skip(text, name.end)
            if not isinstance(key, str) or text[at : at + 1] != ":":
                raise _wrong(text, at, "a key and a colon")
            at = _skip(text, at + 1)
        item = _value(text, at, depth + 1)
        node.items.append(item)
        if isinstance(key, str):
            node.members[key] = item
            node.value[key] = item.value
        else:
            node.value.append(item.value)
        at = _skip(text, item.end)
        node.comma = text[at : at + 1] == ","
        node.after = at + 1 if node.comma else item.end
        at = _skip(text, node.after)
    node.end = at + 1
    return node


def _wrong(text: str, at: int, wanted: str) -> ValueError:
    return ValueError(f"line {text.count(chr(10), 0, at) + 1}: {wanted} is missing")
