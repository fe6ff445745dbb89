"""`fx_graph_transformed.py` and `fx_graph_readable.py` to FX nodes, line by line.

The files are not Python (`class <lambda>`), and every node is one line; comments above the lines say which
line of the user's program they came from.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from inductor_probe.model.fx import FxGraph, FxNode
from inductor_probe.model.span import MOST_PROBLEMS, Problem, SourceLine, Span, too_many_problems
from inductor_probe.reader.python_text import parse_expression
from inductor_probe.reader.values import shorten

_LOCATION = re.compile(
    r"\s*# File: (?P<path>.+?):(?P<line>\d{1,9})(?: in (?P<function>\S+?))?, code: (?P<code>.*)"
)
_FORWARD = re.compile(r"\s*def forward\(self(?:, ?(?P<params>.*))?\):\s*")
_PARAM = re.compile(r"(?P<name>\w+)(?:: (?P<type>\"[^\"]*\"|[^\"]+))?")
_NODE = re.compile(r"\s+(?P<name>[A-Za-z_]\w*)(?:: ?(?P<type>\"[^\"]*\"|[^=\"]+?))? = (?P<value>.+)")
_CALL = re.compile(r"(?P<target>[A-Za-z_][\w.]*)\((?P<arguments>.*)\)")
_ATTRIBUTE = re.compile(r"self(?P<arguments>(?:\.\w+)+)|getattr\(self, (?P<name>.*)\)")
_ITEM = re.compile(r"(?P<arguments>\w+\[.*\])")
_OPERATOR = re.compile(r"[\w.]+ (?P<operator>[-+*/%<>=!&|^]+) [\w.]+|(?P<sign>[-~])[\w.]+")
_USED = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")
_MARK = re.compile(r"[\"\[\](),]")
_RETURN = re.compile(r"\s+return (?P<value>.*)")
# A class with anything for a name (`class <lambda>(torch.nn.Module):`), or a comment.
_FRAME = re.compile(r"\s*(?:class .+\(torch\.nn\.Module\):|#.*|\"\"\".*)")


def parse_fx_graph(text: str, path: Path) -> FxGraph:
    """Read the text of an FX graph; `path` is what spans name.

    Of several modules in a file (branches of a conditional) the first is the graph; nodes of the others
    follow its own.
    """
    inputs: tuple[FxNode, ...] | None = None
    outputs: tuple[str | None, ...] | None = None
    nodes: list[FxNode] = []
    problems: list[Problem] = []
    known: set[str] = set()
    source: SourceLine | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line or line.isspace():
            source = None  # a comment speaks for the lines up to the next empty one
        elif match := _LOCATION.fullmatch(line):
            source = SourceLine(match["path"], int(match["line"]), match["function"], match["code"])
        elif match := _RETURN.fullmatch(line):
            returned = _outputs(match["value"])
            outputs = returned if outputs is None else outputs
        elif match := _NODE.fullmatch(line):
            span = Span(path, number, number)
            nodes.append(_node(match, source, known, span))
            known.add(match["name"])
        elif match := _FORWARD.fullmatch(line):
            params = _params(match["params"] or "", Span(path, number, number))
            inputs = params if inputs is None else inputs
            known.update(param.name for param in params)
        elif not _FRAME.fullmatch(line):
            problems.append(Problem(f"not understood: {shorten(line.strip())}", Span(path, number, number)))
            if len(problems) == MOST_PROBLEMS:
                problems.append(too_many_problems(path, number + 1, text))
                break
    return FxGraph(inputs or (), tuple(nodes), outputs or (), tuple(problems))


def _node(line: re.Match[str], source: SourceLine | None, known: set[str], span: Span) -> FxNode:
    value = line["value"].partition(";  ")[0].rstrip()  # `;  arg0_1 = None`: frees what is not used again
    if match := _CALL.fullmatch(value):
        target, arguments = match["target"], match["arguments"]
    elif match := _ATTRIBUTE.fullmatch(value):
        target, arguments = "self", match["arguments"] or match["name"]
    elif match := _ITEM.fullmatch(value):
        target, arguments = "[]", value
    elif match := _OPERATOR.fullmatch(value):
        target, arguments = match["operator"] or match["sign"], value
    else:
        target, arguments = value, ""
    used = tuple(dict.fromkeys(word for word in _USED.findall(arguments) if word in known))
    return FxNode(line["name"], target, _type(line["type"]), source, arguments, used, span)


def _params(text: str, span: Span) -> tuple[FxNode, ...]:
    return tuple(
        FxNode(param["name"], "placeholder", _type(param["type"]), None, span=span)
        for part in split_parameters(text)
        if (param := _PARAM.fullmatch(part.strip()))
    )


def _type(text: str | None) -> str | None:
    return None if text is None else text.strip().strip('"')


def split_parameters(text: str) -> list[str]:
    """Split parameters at commas that are neither in brackets (`f32[2, 3]`) nor in quotes."""
    parts, depth, quoted, start = [], 0, False, 0
    for found in _MARK.finditer(text):
        mark = found[0]
        if mark == '"':
            quoted = not quoted
        elif mark in "[(":
            depth += 1
        elif mark in "])":
            depth -= 1
        elif not depth and not quoted:
            parts.append(text[start : found.start()])
            start = found.end()
    return [*parts, text[start:]]


def _outputs(text: str) -> tuple[str | None, ...]:
    """Read `(sum_1, None, arg0_1)`; anything but names and None is kept as its text."""
    try:
        node = parse_expression(text.strip())
    except ValueError:
        return ()
    elements = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
    texts = (ast.unparse(element) for element in elements)
    return tuple(None if value == "None" else value for value in texts)
