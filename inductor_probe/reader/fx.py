"""`fx_graph_transformed.py` and `fx_graph_readable.py` to FX nodes, line by line.

The files are not Python (`class <lambda>`), and every node is one line; comments above the lines say which
line of the user's program they came from.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from inductor_probe.model.fx import FxGraph, FxNode
from inductor_probe.model.span import SourceLine, Span
from inductor_probe.reader.text import read_text

_LOCATION = re.compile(
    r"\s*# File: (?P<path>.+?):(?P<line>\d+)(?: in (?P<function>\S+?))?, code: (?P<code>.*)"
)
_FORWARD = re.compile(r"\s*def forward\(self, ?(?P<params>.*)\):\s*")
_PARAM = re.compile(r"(?P<name>\w+)(?:: (?P<type>\"[^\"]*\"|[^\"]+))?")
_NODE = re.compile(
    r"\s+(?P<name>[A-Za-z_]\w*)(?:: (?P<type>\"[^\"]*\"|[^=\"]+?))? = (?P<target>[\w.]+)(?P<rest>.*)"
)
_NAME = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")
_RETURN = re.compile(r"\s+return (?P<value>.*)")


def read_fx_graph(path: Path) -> FxGraph:
    """Read an FX graph file.

    Raises:
        NotFoundError, UnreadableError: the file is missing, not readable or not text.
    """
    return parse_fx_graph(read_text(path), path)


def parse_fx_graph(text: str, path: Path) -> FxGraph:
    """Read the text of an FX graph; `path` is what spans name."""
    inputs: tuple[FxNode, ...] = ()
    nodes: list[FxNode] = []
    outputs: tuple[str | None, ...] = ()
    known: set[str] = set()
    source: SourceLine | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        span = Span(path, number, number)
        if match := _LOCATION.fullmatch(line):
            source = SourceLine(match["path"], int(match["line"]), match["function"], match["code"])
        elif not line.strip():
            source = None  # a comment speaks for the lines up to the next empty one
        elif match := _FORWARD.fullmatch(line):
            inputs = tuple(
                FxNode(param["name"], "placeholder", _type(param["type"]), None, span=span)
                for part in _top_level_commas(match["params"])
                if (param := _PARAM.fullmatch(part.strip()))
            )
            known.update(node.name for node in inputs)
        elif match := _RETURN.fullmatch(line):
            outputs = _outputs(match["value"])
        elif match := _NODE.fullmatch(line):
            arguments = match["rest"]
            used = tuple(dict.fromkeys(name for name in _NAME.findall(arguments) if name in known))
            nodes.append(
                FxNode(match["name"], match["target"], _type(match["type"]), source, arguments, used, span)
            )
            known.add(match["name"])
    return FxGraph(inputs, tuple(nodes), outputs)


def _type(text: str | None) -> str | None:
    return None if text is None else text.strip().strip('"')


def _top_level_commas(text: str) -> list[str]:
    """Split parameters at commas that are neither in brackets (`f32[2, 3]`) nor in quotes."""
    parts, depth, quoted, start = [], 0, False, 0
    for at, mark in enumerate(text):
        if mark == '"':
            quoted = not quoted
        elif mark in "[(":
            depth += 1
        elif mark in "])":
            depth -= 1
        elif mark == "," and not depth and not quoted:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def _outputs(text: str) -> tuple[str | None, ...]:
    """Read `(sum_1, None, arg0_1)`; anything but names and None is kept as its text."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    elements = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
    texts = (ast.unparse(element) for element in elements)
    return tuple(None if value == "None" else value for value in texts)
