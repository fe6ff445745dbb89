"""FX graphs as text: every name is defined, and freed where torch.fx frees it.

`torch.fx.graph.CodeGen._gen_python_code` prints a node a line, and behind each line sets what is not used
again to None: `add = torch.ops.aten.add.Tensor(mul, 1);  mul = None`. What is never used is freed on its own
line. So a line that is not there leaves a name undefined or never freed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path

from inductor_probe.analysis.completeness.python_names import expression_names
from inductor_probe.model.span import Problem, Span
from inductor_probe.reader.fx import split_parameters
from inductor_probe.reader.values import shorten

_CLASS = re.compile(r" *class (?P<name>.+)\(torch\.nn\.Module\):")
_CLASS_NAME = re.compile(r"<lambda>|[A-Za-z_]\w*")
_FORWARD = re.compile(r" *def forward\(self(?:, ?(?P<params>.*))?\):\s*")
_NODE = re.compile(r" +(?P<name>[A-Za-z_]\w*)(?:: ?(?P<type>\"[^\"]*\"|[^=\"]+?))? = (?P<value>.+)")
_FREES = re.compile(r"(?P<names>(?:\w+ = )+)None")
# `x: "f32[2, 3]"`, `s: "Sym(u0 >= 0)"`; torch 2.1 prints no quotes.
_TYPE = re.compile(r"\"[\w\s\[\]().,:+*/<>=!&|-]+\"|[\w\s\[\]().,:+*/<>=!&|-]+")
_PARAM = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:: (?P<type>.+))?")
_RETURN = re.compile(r" +return (?P<value>.+)")
# What torch.fx puts into the globals of generated code: `_register_custom_builtin` in `torch/fx/graph.py`.
_GLOBALS = frozenset(("torch", "device", "inf", "nan", "NoneType", "fx_pytree", "pytree", "self"))
_GLOBALS |= frozenset(
    ("operator", "_operator", "math", "builtins", "slice", "float", "int", "bool", "range", "getattr")
)
_GLOBALS |= frozenset(
    ("max", "min", "round", "abs", "sum", "pow", "len", "list", "tuple", "dict", "set", "type")
)


@dataclass(frozen=True, slots=True)
class FxLine:
    """A node as printed: `name = value;  freed = None`, its type left out."""

    number: int
    name: str
    type: str | None
    value: str
    freed: tuple[str, ...]

    @property
    def statement(self) -> str:
        """The line without the type, as `fx_graph_runnable.py` prints it."""
        freed = f";  {' = '.join((*self.freed, 'None'))}" if self.freed else ""
        return f"{self.name} = {self.value}{freed}"


@dataclass(slots=True)
class FxModule:
    """A module of an FX file: the graph, or a branch of a conditional."""

    name: str
    line: int
    forward: tuple[int, str] | None = None
    nodes: list[FxLine] = field(default_factory=list)
    returned: tuple[int, str] | None = None

    @property
    def params(self) -> list[str]:
        """The parameters, each with its type."""
        text = self.forward[1] if self.forward else ""
        return [part.strip() for part in split_parameters(text)] if text else []


def fx_modules(text: str) -> list[FxModule]:
    """Return the modules of an FX file in order; a line that belongs to none begins one without a name."""
    modules: list[FxModule] = []
    for number, line in enumerate(text.split("\n"), 1):
        if match := _CLASS.fullmatch(line):
            modules.append(FxModule(match["name"], number))
            continue
        forward, node, returned = _FORWARD.fullmatch(line), _NODE.fullmatch(line), _RETURN.fullmatch(line)
        if not (forward or node or returned) or line.lstrip().startswith("#"):
            continue
        if not modules:
            modules.append(FxModule("", number))
        module = modules[-1]
        if forward and module.forward is None:
            module.forward = (number, forward["params"] or "")
        elif returned and not module.returned:
            module.returned = (number, returned["value"].strip())
        elif node:
            value, frees = _split(node["value"].rstrip())
            module.nodes.append(FxLine(number, node["name"], node["type"], value, frees))
    return modules


def _split(text: str) -> tuple[str, tuple[str, ...]]:
    """Cut `f(a);  a = b = None` into the value and what is freed."""
    value, semicolon, rest = text.rpartition(";  ")
    match = _FREES.fullmatch(rest) if semicolon else None
    if match is None:
        return text, ()
    return value, tuple(name.strip() for name in match["names"].split("=") if name.strip())


def fx_problems(text: str, path: Path, *, frees_unused: bool = False) -> Iterator[Problem]:
    """Yield what an FX file lacks.

    Args:
        text: of the file.
        path: what problems name.
        frees_unused: what is never used is freed as well, as torch 2.5 and later do.
    """
    modules = fx_modules(text)
    if not modules:
        yield Problem("no graph in the file", Span(path, 1, 1))
    for module in modules:
        span = Span(path, module.line, module.line)
        if not _CLASS_NAME.fullmatch(module.name):
            yield Problem("a graph without its class line", span)
        if module.forward is None:
            yield Problem(f"class {module.name} has no def forward", span)
        if module.returned is None:
            yield Problem(f"class {module.name} has no return", span)
        if module.forward is not None and module.returned is not None:
            names, problems = _params(module, path)
            yield from problems
            yield from _flow(module, names, path, frees_unused)


def _params(module: FxModule, path: Path) -> tuple[set[str], list[Problem]]:
    """Return the names of the parameters, and what is in no known form among them."""
    number = module.forward[0] if module.forward else module.line
    names: set[str] = set()
    problems: list[Problem] = []
    for text in module.params:
        match = _PARAM.fullmatch(text)
        if match is None or not (match["type"] is None or _TYPE.fullmatch(match["type"])):
            problems.append(Problem(f"not understood: {shorten(text)}", Span(path, number, number)))
        else:
            names.add(match["name"])
    return names, problems


def _flow(module: FxModule, params: Set[str], path: Path, frees_unused: bool) -> Iterator[Problem]:
    """Follow the nodes: what they define, use last, and free."""
    known = set(params)
    last: dict[str, int] = {}
    freed: dict[str, int] = {}
    for node in module.nodes:
        span = Span(path, node.number, node.number)
        if node.type is not None and not _TYPE.fullmatch(node.type):
            yield Problem(f"not a type: {shorten(node.type)}", span)
        words, problem = expression_names(node.value, span)
        if problem:
            yield problem
            return
        yield from _undefined(words - known, "used before it is defined", span)
        if node.name in known:
            yield Problem(f"{node.name} is defined twice", span)
        known.add(node.name)
        if frees_unused or node.name in node.freed:
            last[node.name] = node.number
        last.update(dict.fromkeys(words & known, node.number))
        for name in node.freed:
            if name in freed:
                yield Problem(f"{name} is freed twice", span)
            freed[name] = node.number
    number, value = module.returned or (module.line, "")
    span = Span(path, number, number)
    words, problem = expression_names(value, span)
    if problem:
        yield problem
        return
    yield from _undefined(words - known, "returned, but not defined", span)
    if module.nodes and module.nodes[-1].number > number:
        yield Problem("the graph goes on behind its return", span)
    yield from _freed(last, freed, words, path)


def _undefined(names: Set[str], what: str, span: Span) -> Iterator[Problem]:
    for name in sorted(names - _GLOBALS):
        if not name.startswith("torch_"):  # a function under its qualified name, as torch 2.1 prints it
            yield Problem(f"{name} is {what}", span)


def _freed(last: dict[str, int], freed: dict[str, int], returned: Set[str], path: Path) -> Iterator[Problem]:
    """Hold the lines of the last uses against those where names are freed; what is returned is not freed."""
    for name, line in last.items():
        number = freed.get(name)
        if name in returned:
            if number is not None:
                yield Problem(f"{name} is freed, but returned", Span(path, number, number))
        elif number is None:
            yield Problem(f"{name} is not freed behind its last use", Span(path, line, line))
        elif number != line:
            yield Problem(f"{name} is freed, but not where it is used last", Span(path, number, number))
    for name in freed.keys() - last.keys():
        yield Problem(f"{name} is freed, but not used", Span(path, freed[name], freed[name]))
