"""`fx_graph_runnable.py`: its fixed parts are there, its names are defined, its graph is that of the readable
file.

`save_graph_repro` in `torch/_dynamo/repro/after_aot.py` writes it, and `DebugFormatter.fx_graph` in
`torch/_inductor/debug.py` writes the same graph into both files.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from inductor_probe.analysis.completeness.fx_text import FxModule, fx_modules
from inductor_probe.analysis.completeness.python_names import undefined_names
from inductor_probe.model.span import Problem, Span
from inductor_probe.reader.python_text import parse_readable_part
from inductor_probe.reader.values import shorten

# Imports that nothing uses are not asked for: a release may leave them out, and nothing depends on them.
_LINES = (
    "class Repro(torch.nn.Module):",
    "        super().__init__()",
    "def load_args(reader):",
    "load_args._version = 0",
    "mod = Repro()",
    "if __name__ == '__main__':",
)
# These, where the first is there (torch 2.9 and later).
_SOURCE_LINES = (
    'if "__compile_source__" in globals():',
    "    import inspect as __after_aot_inspect",
    "    import linecache as __after_aot_linecache",
    "    __after_aot_filename = __after_aot_inspect.currentframe().f_code.co_filename",
    "    __after_aot_linecache.cache[__after_aot_filename] = (",
    "        len(__compile_source__),",
    "        None,",
    "        __compile_source__.splitlines(True),",
    "        __after_aot_filename,",
    "    )",
)
_COMMENTS = ("# torch version: ", "# torch cuda version: ", "# torch git version: ")
_SETTING = re.compile(r"(?P<name>torch\.\S+) = ")
_STORAGE = re.compile(r"    (?P<name>buf\d+) = reader\.storage\(.*\)")
_ARGUMENT = re.compile(r"    reader\.(?!storage\b)\w+\((?P<arguments>.*)\)  # (?P<name>\w+).*")
# `nan` is printed by torch.fx, and not imported here by torch 2.13.
_PRINTED = frozenset(("nan",))


def runnable_problems(text: str, path: Path, readable: str | None) -> Iterator[Problem]:
    """Yield what the program lacks.

    Args:
        text: of the program.
        path: what problems name.
        readable: the text of `fx_graph_readable.py`, where that prints the same graph.
    """
    lines = text.split("\n")
    yield from _parts(lines, path)
    # Torch writes a module as its type (`self.true_graph_0 = <lambda>()`), and nothing for no arguments.
    python = text.replace("<lambda>()", "None").replace("(reader):\nload_args", "(reader): pass\nload_args")
    parsed = parse_readable_part(python, path)
    if parsed.problems:
        yield from parsed.problems
        return
    yield from undefined_names(parsed.tree, path, known=_PRINTED, ignored={"load_args"})
    yield from _settings(lines, path)
    function = _forward(parsed.tree)
    if function is None:
        yield Problem("class Repro has no def forward", Span(path, len(lines), len(lines)))
        return
    yield from _arguments(lines, function, path)
    if readable is not None and (modules := fx_modules(readable)):
        yield from _same_graph(lines, function, modules[0], path)


def _parts(lines: list[str], path: Path) -> Iterator[Problem]:
    present = set(lines)
    end = Span(path, len(lines), len(lines))
    block = _SOURCE_LINES if _SOURCE_LINES[0] in present else ()
    for line in (*_LINES, *block):
        if line not in present:
            yield Problem(f"the line {line.strip()} is missing", end)
    for comment in _COMMENTS:
        if not any(line.startswith(comment) for line in lines):
            yield Problem(f"the line {comment.strip()} is missing", end)


def _settings(lines: list[str], path: Path) -> Iterator[Problem]:
    """`torch._inductor.config.cpp.threads = 2`: of a module that was imported above it."""
    imported: set[str] = set()
    for number, line in enumerate(lines, 1):
        if line.startswith("import "):
            imported.add(f"{line.removeprefix('import ')}.")
        elif match := _SETTING.match(line):
            modules = [module for module in imported if match["name"].startswith(module)]
            if not any("config" in module for module in modules):
                message = f"{shorten(match['name'])} is set, but no module of that name is imported"
                yield Problem(message, Span(path, number, number))


def _forward(tree: ast.Module) -> ast.FunctionDef | None:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "Repro":
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == "forward":
                    return method
    return None


def _arguments(lines: list[str], function: ast.FunctionDef, path: Path) -> Iterator[Problem]:
    """`load_args` makes each argument of the graph in order, from storages that it numbers."""
    names: list[str] = []
    storages: dict[str, int] = {}
    used: set[str] = set()
    row = len(lines)
    for number, line in enumerate(lines, 1):
        if match := _STORAGE.fullmatch(line):
            if match["name"] != f"buf{len(storages)}":
                yield Problem(
                    f"{match['name']} stands where buf{len(storages)} is due", Span(path, number, number)
                )
            storages[match["name"]] = number
        elif match := _ARGUMENT.fullmatch(line):
            names.append(match["name"])
            first = match["arguments"].partition(",")[0]
            used.add(first)
            if re.fullmatch(r"buf\d+", first) and first not in storages:
                yield Problem(f"{first} is used before it is defined", Span(path, number, number))
        elif line.startswith("load_args._version"):
            row = number
    for name, number in storages.items():
        if name not in used:
            yield Problem(f"nothing uses the storage {name}", Span(path, number, number))
    params = [argument.arg for argument in function.args.args[1:]]
    if names != params:
        missing = [name for name in params if name not in names]
        detail = f"lacks {', '.join(missing)}" if missing else "makes other arguments than those"
        yield Problem(f"load_args {detail} of forward", Span(path, row, row))


def _same_graph(
    lines: list[str], function: ast.FunctionDef, module: FxModule, path: Path
) -> Iterator[Problem]:
    """The same nodes, line by line, but for types and comments."""
    if module.returned is None:
        return
    first, last = function.lineno, function.end_lineno or function.lineno
    printed = [(number, lines[number - 1].strip()) for number in range(first + 1, last + 1)]
    printed = [(number, line) for number, line in printed if line and not line.startswith("#")]
    expected = [node.statement for node in module.nodes] + [f"return {module.returned[1]}"]
    for place, wanted in zip_longest(printed, expected):
        number, line = place or (last, "nothing")
        if line != wanted:
            due = shorten(wanted or "nothing")
            message = f"{shorten(line)} stands where fx_graph_readable.py has {due}"
            yield Problem(message, Span(path, number, number))
            return
