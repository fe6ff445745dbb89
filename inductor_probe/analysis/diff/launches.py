"""What kernels are launched with, buffers told by their partners."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping

from inductor_probe.analysis.diff.matching import Half, Matching
from inductor_probe.model.code import Launch
from inductor_probe.model.diff import FactChange

_NAME = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")
_STREAM = re.compile(r"stream\d+")

Launches = Mapping[str, list[Launch]]


def launches_of(half: Half) -> Launches:
    """Return the launches of each kernel."""
    found: dict[str, list[Launch]] = {}
    for launch in half.side.graph.code.launches if half.side.graph.code else ():
        found.setdefault(launch.kernel, []).append(launch)
    return found


def launch_change(found: Matching, a: list[Launch], b: list[Launch]) -> FactChange | None:
    """Compare the launches of two kernels with equal code; None when they pass the same, in any order."""
    passed_a = Counter(arguments(found.a, launch.args) for launch in a)
    passed_b = Counter(arguments(found.b, launch.args) for launch in b)
    if passed_a == passed_b:
        return None
    only_a = next((launch for launch in a if not passed_b[arguments(found.a, launch.args)]), None)
    only_b = next((launch for launch in b if not passed_a[arguments(found.b, launch.args)]), None)
    if only_a is None or only_b is None:
        return FactChange("launches", str(len(a)), str(len(b)), "major")
    return FactChange("launched with", ", ".join(only_a.args), ", ".join(only_b.args), "major")


def arguments(half: Half, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return texts with buffers by the number of their pair; one without a partner is like any other."""
    return tuple(_argument(half, text) for text in texts if not _STREAM.fullmatch(text))


def _argument(half: Half, text: str) -> str:
    """The spelling of an expression does not count; nor does it whether a symbol is called s0 or s77."""
    try:
        plain = ast.unparse(ast.parse(half.side.symbols.rename(text), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        plain = " ".join(text.split())
    return _NAME.sub(lambda match: _number(half, match[0]), plain)


def _number(half: Half, name: str) -> str:
    if name in half.buffers:
        return f"%{half.buffers[name]}"
    return "%?" if name in half.side.placed else name
