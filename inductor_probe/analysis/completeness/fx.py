"""FX graphs as text, and `fx_graph_runnable.py` with the same graph in a program.

`torch.fx.graph.CodeGen._gen_python_code` prints a node a line, and behind each line sets what is not used
again to None: `add = torch.ops.aten.add.Tensor(mul, 1);  mul = None`. What is never used is freed on its own
line. So a line that is missing leaves a name undefined or never freed.

`save_graph_repro` in `torch/_dynamo/repro/after_aot.py` writes the program; `DebugFormatter.fx_graph` in
`torch/_inductor/debug.py` writes the same graph into both files.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from inductor_probe.analysis.completeness import Defect
from inductor_probe.analysis.completeness.python_names import expression_names, undefined_names
from inductor_probe.backends.brackets import split_arguments
from inductor_probe.model.record import words
from inductor_probe.reader.fx import PROGRAM_NOT_WRITTEN, TREE, TREE_INPUTS
from inductor_probe.reader.python_text import parse_readable_part
from inductor_probe.reader.values import listed_names, shorten

_CLASS = re.compile(r" *class (?P<name>.+)\(torch\.nn\.Module\):")
_CLASS_NAME = re.compile(r"<lambda>|[A-Za-z_]\w*")
_FORWARD = re.compile(r" *def forward\(self(?:, ?(?P<params>.*))?\):\s*")
_NODE = re.compile(r" +(?P<name>[A-Za-z_]\w*)(?:: ?(?P<type>\"[^\"]*\"|[^=\"]+?))? = (?P<value>.+)")
_FREES = re.compile(r"(?P<value>.*);  (?P<names>(?:\w+ = )+)None")
# `x: "f32[2, 3]"`, `s: "Sym(u0 >= 0)"`; torch 2.1 prints no quotes.
_TYPE = re.compile(r"\"[\w\s\[\]().,:+*/<>=!&|-]+\"|[\w\s\[\]().,:+*/<>=!&|-]+")
_PARAM = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:: (?P<type>.+))?")
_RETURN = re.compile(r" +return (?P<value>.+)")
# What torch.fx puts into the globals of generated code (`_register_custom_builtin`, `torch/fx/graph.py`), and
# what Python has without that: `complex(0, 1)`.
_GLOBALS = words("torch device inf nan NoneType fx_pytree pytree self operator _operator math builtins") | {
    *dir(builtins)
}

# Of the program. Imports that nothing uses are not required: a release may omit them, and nothing depends on
# them.
_LINES = (
    "class Repro(torch.nn.Module):",
    "        super().__init__()",
    "def load_args(reader):",
    "load_args._version = 0",
    "mod = Repro()",
    "if __name__ == '__main__':",
)
# Required where the first is there (torch 2.9 and later).
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
VERSION_COMMENTS = ("# torch version: ", "# torch cuda version: ", "# torch git version: ")
_SETTING = re.compile(r"(?P<name>torch\.\S+) = ")
_STORAGE = re.compile(r"    (?P<name>buf\d+) = reader\.storage\(.*\)")
_ARGUMENT = re.compile(r"    reader\.(?!storage\b)\w+\((?P<arguments>.*)\)  # (?P<name>\w+).*")
# What no program can be given: `reader.unsupported('arg0_1')  # unsupported type for dumping: ...`, and as a
# comment before torch 2.12.
_UNSUPPORTED = re.compile(
    r"    (?:# (?P<older>\w+) was|reader\.unsupported\('(?P<name>\w+)'\)  #) unsupported type for dumping: .*"
)
# Torch.fx prints these, and the program does not import them.
_PRINTED = _GLOBALS - words("torch device inf")
_OF_TREES = frozenset(("fx_pytree", "pytree"))
# `self.seq = Module(` and what it holds, a line each, up to `)`: the text of a module, which is no Python.
_MODULE_TEXT = re.compile(
    r"^( +self\.)\w+ = (?:<lambda>|\w+)\((?:\n(?:(?!\)).*\n){0,2000})?\)(?:\.cuda\(\))?$", re.MULTILINE
)


class FxLine(NamedTuple):
    """A node as printed: `name: type = value;  freed = None`."""

    line: int
    name: str
    type: str | None
    value: str
    freed: str  # `a = b = `

    @property
    def statement(self) -> str:
        """The line without the type, as `fx_graph_runnable.py` prints it."""
        return f"{self.name} = {self.value}" + (f";  {self.freed}None" if self.freed else "")


@dataclass(slots=True)
class FxModule:
    """A module of an FX file: the graph, or a branch of a conditional; `returned` is a line and its text."""

    name: str
    line: int
    forward: int | None = None
    params: list[str] = field(default_factory=list)
    nodes: list[FxLine] = field(default_factory=list)
    returned: tuple[int, str] | None = None
    tree: tuple[int, str] | None = None
    """Of a program of torch.export: the line that unpacks its inputs."""


@lru_cache(maxsize=2)
def fx_modules(text: str) -> list[FxModule]:
    """Return the modules of an FX file in order; a line that belongs to none begins one without a name."""
    modules: list[FxModule] = []
    for number, line in enumerate(text.split("\n"), 1):
        if match := _CLASS.fullmatch(line):
            modules.append(FxModule(match["name"], number))
            continue
        node, forward, returned = _NODE.fullmatch(line), None, None
        if node is None:
            forward, returned = _FORWARD.fullmatch(line), _RETURN.fullmatch(line)
        tree = TREE_INPUTS.fullmatch(line) if TREE in line else None
        if not (forward or node or returned or tree) or line.lstrip().startswith("#"):
            continue
        if not modules:
            modules.append(FxModule("", number))
        module = modules[-1]
        if forward and module.forward is None:
            module.forward = number
            if forward["params"]:
                module.params = split_arguments(forward["params"])
        elif tree:
            module.tree = (number, line.strip())
            module.params = list(listed_names(tree["names"]))
        elif returned and not module.returned:
            module.returned = (number, returned["value"].strip())
        elif node:
            value, freed = node["value"].rstrip(), ""
            if match := _FREES.fullmatch(value):
                value, freed = match["value"], match["names"]
            module.nodes.append(FxLine(number, node["name"], node["type"], value, freed))
    return modules


def fx_defects(text: str, *, frees_unused: bool = False) -> Iterator[Defect]:
    """Yield what an FX file lacks; `frees_unused` if all names are freed, as torch 2.5 and later do."""
    modules = fx_modules(text)
    if not modules:
        yield 1, "no graph in the file"
    for module in modules:
        if not _CLASS_NAME.fullmatch(module.name):
            yield module.line, "a graph without its class line"
        if module.forward is None:
            yield module.line, f"class {module.name} has no def forward"
        if module.returned is None:
            yield module.line, f"class {module.name} has no return"
        if module.forward is not None and module.returned is not None:
            names: set[str] = set()
            for param in module.params:
                match = _PARAM.fullmatch(param)
                if match is None or not (match["type"] is None or _TYPE.fullmatch(match["type"])):
                    yield module.forward, f"not understood: {shorten(param)}"
                else:
                    names.add(match["name"])
            yield from _data_flow(module, names, *module.returned, frees_unused=frees_unused)


def _data_flow(
    module: FxModule, defined: set[str], return_line: int, returned: str, *, frees_unused: bool
) -> Iterator[Defect]:
    """Follow the nodes: what they define, use last, and free."""
    last: dict[str, int] = {}
    freed: dict[str, int] = {}
    for node in module.nodes:
        line = node.line
        if node.type is not None and not _TYPE.fullmatch(node.type):
            yield line, f"not a type: {shorten(node.type)}"
        used = expression_names(node.value)
        if used is None:
            yield line, f"not understood: {shorten(node.value)}"
            return
        for name in _undefined(used - defined):
            yield line, f"{name} is used before it is defined"
        if node.name in defined:
            yield line, f"{node.name} is defined twice"
        defined.add(node.name)
        names = node.freed.split(" = ")[:-1]
        if frees_unused or node.name in names:
            last[node.name] = line
        last.update(dict.fromkeys(used & defined, line))
        for name in names:
            if name in freed:
                yield line, f"{name} is freed twice"
            freed[name] = line
    used = expression_names(returned)
    if used is None:
        yield return_line, f"not understood: {shorten(returned)}"
        return
    for name in _undefined(used - defined):
        yield return_line, f"{name} is returned but not defined"
    if module.nodes and module.nodes[-1].line > return_line:
        yield return_line, "there are nodes after the return"
    yield from _freed(last, freed, used)


def _freed(last: dict[str, int], freed: dict[str, int], returned: Set[str]) -> Iterator[Defect]:
    """Compare the lines of the last uses with those where names are freed; what is returned is not freed."""
    for name, line in last.items():
        place = freed.get(name)
        if name in returned:
            if place is not None:
                yield place, f"{name} is freed but returned"
        elif place is None:
            yield line, f"{name} is not freed after its last use"
        elif place != line:
            yield place, f"{name} is freed, but not where it is used last"
    for name in freed.keys() - last.keys():
        yield freed[name], f"{name} is freed but not used"


def _undefined(names: Set[str]) -> list[str]:
    """Leave out globals, and functions by their qualified names (`torch_...`), as torch 2.1 prints them."""
    return [name for name in sorted(names - _GLOBALS) if not name.startswith("torch_")]


def runnable_defects(
    text: str, path: Path, readable: str | None, *, prints_same: bool = True
) -> Iterator[Defect]:
    """Yield what the program lacks.

    Args:
        text: of the program.
        path: of the file.
        readable: the text of `fx_graph_readable.py`.
        prints_same: whether that has the same graph (torch 2.5 and later), and no other of the same function.
    """
    if text.startswith(PROGRAM_NOT_WRITTEN):
        return
    lines = text.split("\n")
    present = set(lines)
    for line in (*_LINES, *(_SOURCE_LINES if _SOURCE_LINES[0] in present else ())):
        if line not in present:
            yield len(lines), f"the line {line.strip()} is missing"
    for comment in VERSION_COMMENTS:
        if not any(line.startswith(comment) for line in lines):
            yield len(lines), f"the line {comment.strip()} is missing"
    # Torch writes a module as its type with what is in it (`self.true_graph_0 = <lambda>()`, `self.0 =
    # Module()`), and nothing for no arguments.
    python = text.replace("(reader):\nload_args", "(reader): pass\nload_args")
    python = _MODULE_TEXT.sub(lambda match: f"{match[1]}_module = None" + "\n" * match[0].count("\n"), python)
    module = next(iter(fx_modules(readable)), None) if readable else None
    is_same = False
    if module is not None and module.returned:
        python_lines = python.split("\n")
        is_same = _leave_out(python_lines, _statements(module, module.returned[1]))
        python = "\n".join(python_lines)
    parsed = parse_readable_part(python, path)
    if parsed.problems:
        yield from ((problem.span, problem.message) for problem in parsed.problems)
        return
    yield from _settings(lines)
    classes = (node for node in parsed.tree.body if isinstance(node, ast.ClassDef) and node.name == "Repro")
    methods = (node for repro in classes for node in repro.body if isinstance(node, ast.FunctionDef))
    forward = next((node for node in methods if node.name == "forward"), None)
    if forward is not None and module is not None and module.returned and prints_same and not is_same:
        yield from _same_graph(lines, forward, _statements(module, module.returned[1]))
    known, ascii_lines = _PRINTED | _OF_TREES, python.split("\n") if python.isascii() else ()
    yield from undefined_names(parsed.tree, known=known, ignored={"load_args"}, lines=ascii_lines)
    if forward is None:
        yield len(lines), "class Repro has no def forward"
        return
    params = [argument.arg for argument in forward.args.args[1:]]
    tree = next((match for line in lines if TREE in line and (match := TREE_INPUTS.fullmatch(line))), None)
    yield from _arguments(lines, [*listed_names(tree["names"])] if tree else params)


def _settings(lines: list[str]) -> Iterator[Defect]:
    """`torch._inductor.config.cpp.threads = 2`: of a module that was imported above it."""
    configs: set[str] = set()
    for number, line in enumerate(lines, 1):
        if line.startswith("import ") and "config" in line:
            configs.add(f"{line.removeprefix('import ')}.")
        elif (match := _SETTING.match(line)) and not match["name"].startswith(tuple(configs)):
            yield number, f"{shorten(match['name'])} is set, but no module of that name is imported"


def _arguments(lines: list[str], params: list[str]) -> Iterator[Defect]:
    """`load_args` makes each argument of the graph in order, from storages that it numbers."""
    names: list[str] = []
    storages: dict[str, int] = {}
    used: set[str] = set()
    in_argument = False  # what is in an unsupported list stands between quotes
    end = len(lines)
    for number, line in enumerate(lines, 1):
        if match := _STORAGE.fullmatch(line):
            if match["name"] != f"buf{len(storages)}":
                yield number, f"expected buf{len(storages)}, not {match['name']}"
            storages[match["name"]] = number
        elif line == '    """':
            in_argument = not in_argument
        elif not in_argument and (match := _UNSUPPORTED.fullmatch(line)):
            names.append(match["name"] or match["older"])
        elif match := _ARGUMENT.fullmatch(line):
            if not in_argument:
                names.append(match["name"])
            first = match["arguments"].partition(",")[0]
            used.add(first)
            if re.fullmatch(r"buf\d+", first) and first not in storages:
                yield number, f"{first} is used before it is defined"
        elif line.startswith("load_args._version"):
            end = number
    for name, number in storages.items():
        if name not in used:
            yield number, f"nothing uses the storage {name}"
    if names != params:
        missing = [name for name in params if name not in names]
        detail = f"lacks {', '.join(missing)}" if missing else "makes other arguments than those"
        yield end, f"load_args {detail} of forward"


def _statements(module: FxModule, returned: str) -> list[str]:
    """Return the statements of a module as the program has them: without types and comments."""
    tree = [module.tree[1]] if module.tree else []
    return [*tree, *(node.statement for node in module.nodes), f"return {returned}"]


def _leave_out(lines: list[str], expected: list[str]) -> bool:
    """Empty the body of `forward` if it is `expected`, which is checked elsewhere; return whether it is."""
    row = next((row for row, line in enumerate(lines) if line.startswith("    def forward(self")), len(lines))
    rows: list[int] = []
    for statement in expected:
        row += 1
        while row < len(lines) and (not lines[row] or lines[row].isspace() or lines[row].lstrip()[0] == "#"):
            row += 1
        if row >= len(lines) or lines[row].strip() != statement:
            return False
        rows.append(row)
    for row in rows:
        lines[row] = ""
    lines[rows[0]] = "        pass"
    return True


def _same_graph(lines: list[str], forward: ast.FunctionDef, expected: list[str]) -> Iterator[Defect]:
    """Compare the nodes line by line up to the first difference."""
    end = forward.end_lineno or forward.lineno
    printed = [
        (number, line)
        for number in range(forward.lineno + 1, end + 1)
        if (line := lines[number - 1].strip()) and not line.startswith("#")
    ]
    for (number, line), readable in zip([*printed, (end, "nothing")], [*expected, "nothing"], strict=False):
        if line != readable:
            yield number, f"{shorten(line)}, but fx_graph_readable.py has {shorten(readable)}"
            return
