"""The decorator of a Triton kernel: what inductor tells its runtime, read and never called."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

_START = re.compile(r"^@(?:\w+\.)*(?P<heuristic>\w+)\(", re.MULTILINE)
_END = re.compile(r"^@triton\.jit|^def ", re.MULTILINE)
_LARGEST = 1 << 18
"""Characters: a tree takes up to 900 times as much memory. Of some hundred pointers, a header has 20,000."""


@dataclass(frozen=True, slots=True)
class Header:
    """The call above `@triton.jit`, and where it starts; `entries` are its keyword arguments as syntax."""

    heuristic: str
    start: int
    entries: dict[str, ast.expr] = field(default_factory=dict)

    def text(self, key: str) -> str | None:
        """Return an argument as text: `ReductionHint.INNER`."""
        node = self.entries.get(key)
        return None if node is None else text_of(node)

    def table(self, *path: str) -> dict[str, ast.expr]:
        """Return the dictionary at `path`: `table("triton_meta", "signature")`; empty when there is none."""
        entries = self.entries
        for key in path:
            node = entries.get(key)
            if not isinstance(node, ast.Dict):
                return {}
            entries = items(node)
        return entries


def read_header(source: str) -> Header | None:
    """Read the decorator; None when the text has none in a known form."""
    start = _START.search(source)
    if start is None:
        return None
    end = _END.search(source, start.end())
    text = source[start.start() + 1 : end.start() if end else None].strip()
    if len(text) > _LARGEST:
        return Header(start["heuristic"], start.start())
    try:
        call = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Header(start["heuristic"], start.start())
    if not isinstance(call, ast.Call):
        return Header(start["heuristic"], start.start())
    entries = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    return Header(start["heuristic"], start.start(), entries)


def items(node: ast.Dict) -> dict[str, ast.expr]:
    """Return the items of a dictionary by the text of their keys."""
    return {text_of(key): value for key, value in zip(node.keys, node.values, strict=True) if key is not None}


def text_of(node: ast.expr) -> str:
    """Return an expression as text, strings without their quotes."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    return ast.unparse(node)


def divisible(header: Header, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arguments of which `configs` promises that 16 divides them, in each form it was written in.

    `instance_descriptor(divisible_by_16=(0, 1))`, `AttrsDescriptor.from_dict({'arg_properties':
    {'tt.divisibility': (0, 1), ...}})`, `{(0,): [['tt.divisibility', 16]]}`: positions of arguments.
    """
    configs = header.table("triton_meta").get("configs") or header.table("meta").get("configs")
    if not isinstance(configs, ast.List | ast.Tuple) or not configs.elts:
        return ()
    match configs.elts[0]:
        case ast.Dict(keys=keys, values=values):
            found = [
                key
                for key, value in zip(keys, values, strict=True)
                if key and "divisibility" in ast.unparse(value)
            ]
        case ast.Call(args=[ast.Dict() as described]):
            properties = items(described).get("arg_properties")
            listed = items(properties).get("tt.divisibility") if isinstance(properties, ast.Dict) else None
            found = [listed] if listed is not None else []
        case ast.Call(keywords=keywords):
            found = [keyword.value for keyword in keywords if keyword.arg == "divisible_by_16"]
        case _:
            found = []
    positions = [
        element.value for node in found for element in ast.walk(node) if isinstance(element, ast.Constant)
    ]
    return tuple(names[at] for at in positions if isinstance(at, int) and 0 <= at < len(names))
