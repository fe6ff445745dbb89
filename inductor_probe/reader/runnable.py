"""`fx_graph_runnable.py`: what torch notes in it about itself.

It is a program, but not always Python (`<lambda>()` stands for a branch of a conditional), so it is read as
text: the few lines that say something beside the graph, which `fx_graph_readable.py` has as well.
"""

from __future__ import annotations

import re
from pathlib import Path

from inductor_probe.model.fx import Runnable
from inductor_probe.model.span import Problem, Span

# Each begins with plain text, line end included: only that is found without a look at every character.
_VERSION = re.compile(r"\n# torch (?P<what>version|cuda version|git version): (?P<text>\S+)")
_SETTING = re.compile(r"\n(?P<name>torch\.\w[\w.]*\._?config\.[\w.]+) = (?P<value>.*)")
_VARIABLE = re.compile(r"\nos\.environ\['(?P<name>\w+)'\] = '(?P<value>.*)'")
# The first lines, from `hint_lines` of `torch._dynamo.repro.after_aot`: `s77 = 3`.
_SYMBOL = re.compile(r"\n(?P<name>[su]\d+) = (?P<value>\d{1,18})(?=\n)")
_END = "run_repro("


def parse_runnable(text: str, path: Path) -> Runnable:
    """Read the text of `fx_graph_runnable.py`; it is neither imported nor run."""
    text = f"\n{text}"
    versions = {match["what"]: match["text"] for match in _VERSION.finditer(text)}
    problems: tuple[Problem, ...] = ()
    if _END not in text:
        last = text.count("\n")
        problems = (Problem("cut off: the part that runs the graph is missing", Span(path, last, last)),)
    cuda = versions.get("cuda version")
    return Runnable(
        torch_version=versions.get("version"),
        cuda_version=None if cuda == "None" else cuda,
        git_version=versions.get("git version"),
        settings=tuple((match["name"], match["value"]) for match in _SETTING.finditer(text)),
        environment=tuple((match["name"], match["value"]) for match in _VARIABLE.finditer(text)),
        symbols=tuple((match["name"], int(match["value"])) for match in _SYMBOL.finditer(text)),
        problems=problems,
    )


def torch_version(text: str) -> str | None:
    """Return the version of the torch that wrote the file; every release notes it there."""
    return parse_runnable(text, Path()).torch_version
