"""What a Python file defines at its top level, each definition with the comment above it, as text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from inductor_probe.model.bench import ABLATIONS

_NAME = re.compile(r"(?P<base>\w+?)_v(?P<number>\d+)")


@dataclass(frozen=True, slots=True)
class Definition:
    """A statement at the top of a file that binds a name.

    Attributes:
        first, start, last: lines, 1-based: of the comment that touches it, of the statement, and its end.
        text: the lines from `start` to `last`, with their line ends. comment: those from `first` on.
        node: as syntax; its positions are those of the file.
    """

    name: str
    first: int
    start: int
    last: int
    comment: str
    text: str
    node: ast.stmt


def split_name(name: str) -> tuple[str, int] | None:
    """`cpp_fused_add_0_v3` is variant 3 of `cpp_fused_add_0`; None for a name that is no variant's."""
    found = _NAME.fullmatch(name)
    return (found["base"], int(found["number"])) if found else None


def is_variant(name: str) -> bool:
    """Tell whether `name` is that of a variant, or of the table of ablations: the user's to change."""
    return name == ABLATIONS or _NAME.fullmatch(name) is not None


def definitions(source: str) -> tuple[Definition, ...]:
    """Return what `source` defines at its top level, in order.

    Raises:
        SyntaxError, ValueError: it is not Python.
    """
    lines = [f"{line}\n" for line in source.split("\n")]  # as Python counts them
    found = []
    for node in ast.parse(source).body:
        name = _bound(node)
        if name is None:
            continue
        decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
        start = min([node.lineno, *(each.lineno for each in decorators)])
        first = start
        while first > 1 and lines[first - 2].startswith("#"):
            first -= 1
        last = node.end_lineno or node.lineno
        comment, text = "".join(lines[first - 1 : start - 1]), "".join(lines[start - 1 : last])
        found.append(Definition(name, first, start, last, comment, text, node))
    return tuple(found)


def frame(source: str) -> str:
    """Return the lines of a bench file that are not its variants, without blank ones.

    Raises:
        SyntaxError, ValueError: it is not Python.
    """
    lines = source.split("\n")
    taken = {
        number
        for each in definitions(source)
        if is_variant(each.name)
        for number in range(each.first, each.last + 1)
    }
    return "\n".join(line for number, line in enumerate(lines, 1) if number not in taken and line.strip())


def same_but_names(text: str, names: Mapping[str, str]) -> str:
    """Return `text` with every word in `names` replaced."""
    if not names:
        return text
    longest_first = sorted(names, key=len, reverse=True)
    word = re.compile(rf"\b(?:{'|'.join(map(re.escape, longest_first))})\b")
    return word.sub(lambda found: names[found[0]], text)


def names_of(number: int, defined: Iterable[Definition]) -> dict[str, str]:
    """Return what the variants of that number are copies of, by their names."""
    split = ((each.name, split_name(each.name)) for each in defined)
    return {name: found[0] for name, found in split if found and found[1] == number}


def numbers(defined: Iterable[Definition]) -> tuple[int, ...]:
    """Return the numbers that variants have, ascending."""
    return tuple(sorted({found[1] for each in defined if (found := split_name(each.name))}))


def mentioned(node: ast.AST) -> Iterator[str]:
    """Yield the variable names in a piece of syntax."""
    yield from (each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _bound(node: ast.stmt) -> str | None:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return None
