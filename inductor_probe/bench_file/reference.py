"""The reference: the graph as aten operations, from the `Repro` module of `fx_graph_runnable.py`.

For modules inside it (branches of a conditional, bodies of loops) that file has only `self.true_graph_0 =
<lambda>()`, which is not Python: those come from `fx_graph_readable.py`.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field

import libcst as cst
import libcst.matchers as m
from msgspec import Struct

from inductor_probe.bench_file.constants import Constants
from inductor_probe.bench_file.sections import parse
from inductor_probe.errors import UnreadableError

# fx writes small state as `torch.tensor(...)`, and large state as random numbers in its place.
_LOST_STATE = re.compile(r"torch\.rand(?:n|int)\(|torch\.load\(")
_LOAD_ARGS = re.compile(r"^def load_args\(", re.MULTILINE)
# fx leaves one for each line of state that there is not.
_STATE = re.compile(
    r"self\.register_buffer\('(?P<buffer>\w+)', |self\.(?P<parameter>\w+) = torch\.nn\.Parameter\("
)
_USED = re.compile(r"\bself\.(\w+)")
_INIT = m.FunctionDef(name=m.Name("__init__"))
# torch.export keeps the tree of its inputs: their names stand in the first line.
_TREE = re.compile(r"def forward\(self.*\):\n +(?P<names>[\w, ]*?),? = fx_pytree\.tree_flatten_spec\(.*\)\n")
# ... and modules inside it, of which fx writes `self.fc = Module()` (on a GPU `Module().cuda()`)
# and nothing of what is in them.
_MODULE = re.compile(r" +self\.(?P<name>\w+) = Module\((?:\n(?:(?!\)).*\n){0,2000})?\)(?:\.cuda\(\))?\n")
_GETATTR = re.compile(r"getattr\((?P<of>self(?:\.\w+)*), \"(?P<name>\w+)\"\)")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")

_CLASS = re.compile(r"(?P<indent> *)class (?P<name>\S+)\(torch\.nn\.Module\):")
_SUBMODULE = re.compile(
    r"self\.(?P<name>\w+) = (?:<lambda>|GraphModule)\((?:\n.*?\n)?\)(?:\.cuda\(\))?", re.DOTALL
)
_INDENT = 4
NO_CONSTANTS = Constants()


class ReferenceSource(Struct, frozen=True):
    """The module `AtenGraph` as source, or None and in `why_not` the reason."""

    source: str | None
    why_not: str = ""


@dataclass(slots=True)
class _Module:
    name: str
    lines: list[str] = field(default_factory=list)
    children: list[_Module] = field(default_factory=list)


def reference_source(
    runnable: str | None, readable: str | None = None, constants: Constants = NO_CONSTANTS
) -> ReferenceSource:
    """Take the module out of the text of `fx_graph_runnable.py`; modules inside it out of `readable`.

    `constants` take the place of the random state that fx writes.
    """
    if runnable is None:
        return ReferenceSource(None, "there is no fx_graph_runnable.py next to output_code.py")
    try:
        # What follows the module is no Python where the graph has no inputs: `load_args` has no body then.
        text, submodules = _with_submodules(_LOAD_ARGS.split(runnable)[0], readable)
        text = _without_trees(text, constants)
        module = parse(text, "fx_graph_runnable.py")
    except UnreadableError as error:
        return ReferenceSource(None, error.message)
    repro = next((node for node in module.body if m.matches(node, m.ClassDef(name=m.Name("Repro")))), None)
    if repro is None:
        return ReferenceSource(None, "fx_graph_runnable.py has no module Repro")
    repro = _with_constants(cst.ensure_type(repro, cst.ClassDef), constants)
    for statement in repro.body.body:
        is_init = m.matches(statement, m.FunctionDef(name=m.Name("__init__")))
        if is_init and _LOST_STATE.search(module.code_for_node(statement)):
            return ReferenceSource(None, "the graph has constants whose values the dump does not hold")
    graph = module.code_for_node(repro.with_changes(name=cst.Name("AtenGraph"), leading_lines=[]))
    return ReferenceSource("\n\n\n".join([*submodules, _BLANK_LINES.sub("\n\n", graph.strip())]))


def _with_constants(repro: cst.ClassDef, constants: Constants) -> cst.ClassDef:
    """Return the module with the constants of the graph in the place of its state, and only what it uses.

    torch/_dynamo/debug_utils.py (NNModuleToString.convert) writes a random tensor for each, or four digits:

        self.register_buffer('_frozen_param6', torch.randn([16], dtype=torch.float32))
        self._frozen_param2 = torch.nn.Parameter(torch.randn([16], dtype=torch.float32))

    The first becomes `self.register_buffer('_frozen_param6', _frozen_param6)`. A packed tensor becomes a
    plain attribute: `double()` of a module converts buffers, and a packed one cannot be converted.
    """
    module = cst.Module(body=[])
    init = next((part for part in repro.body.body if m.matches(part, _INIT)), None)
    if init is None:
        return repro
    others = [module.code_for_node(part) for part in repro.body.body if part is not init]
    used = set(_USED.findall("".join(others)))
    lines: list[cst.BaseStatement] = []
    for line in cst.ensure_type(cst.ensure_type(init, cst.FunctionDef).body, cst.IndentedBlock).body:
        match = _STATE.match(module.code_for_node(line).strip())
        attribute = (match["buffer"] or match["parameter"]) if match else None
        if attribute is None:
            lines.append(line)
        elif name := constants.attributes.get(attribute):
            set_buffer = f"self.register_buffer({attribute!r}, {name})"
            text = f"self.{attribute} = {name}" if name in constants.packed else set_buffer
            lines.append(cst.parse_statement(text))
        elif attribute in used:
            lines.append(line)
    made = init.with_deep_changes(cst.ensure_type(init, cst.FunctionDef).body, body=lines)
    return cst.ensure_type(repro.deep_replace(init, made), cst.ClassDef)


def _without_trees(repro: str, constants: Constants) -> str:
    """Return the text of a module of torch.export with plain inputs, and state that has names without dots.

    `fc_weight = self.fc.weight` becomes `fc_weight = self.fc_weight`, which is the constant of that name.
    """
    repro = _TREE.sub(lambda match: f"def forward(self, {match['names']}):\n", repro)
    modules = {match["name"] for match in _MODULE.finditer(repro)}
    if not modules:
        return repro
    while _GETATTR.search(repro):  # `getattr(self.layers, "0").weight`
        repro = _GETATTR.sub(r"\g<of>.\g<name>", repro)
    dotted = re.compile(rf"\bself\.(?P<path>(?:{'|'.join(map(re.escape, sorted(modules)))})(?:\.\w+)+)\b")
    flat = {match["path"]: _flat(match["path"]) for match in dotted.finditer(repro)}
    known = {
        name: constants.attributes.get(path) or constants.attributes.get(name) for path, name in flat.items()
    }
    lines = [
        f"        self.register_buffer({name!r}, {constant or 'torch.randn(0)'})\n"
        for name, constant in known.items()
    ]
    repro = dotted.sub(lambda match: f"self.{flat[match['path']]}", repro)
    first = _MODULE.search(repro)
    repro = f"{repro[: first.start()]}{''.join(lines)}{repro[first.start() :]}" if first else repro
    return _MODULE.sub("", repro)


def _flat(path: str) -> str:
    """Return `layers_0_weight` of `layers.0.weight`, and `_0_weight` of `0.weight`."""
    name = re.sub(r"\W", "_", path)
    return f"_{name}" if name[0].isdigit() else name


def _with_submodules(repro: str, readable: str | None) -> tuple[str, list[str]]:
    """Return the text of the module `Repro` with its submodules made, and the classes that it needs for that.

    `self.true_graph_0 = <lambda>()` becomes `self.true_graph_0 = AtenGraph_true_graph_0()`.
    """
    if not _SUBMODULE.search(repro) or readable is None:
        return repro, []
    children = _parse(readable).children
    names, classes = {child.name for child in children}, list[str]()
    for child in children:
        _write(child, "AtenGraph", classes)

    def made(match: re.Match[str]) -> str:
        name = match["name"]
        return f"self.{name} = AtenGraph_{name}()" if name in names else match[0]

    return _SUBMODULE.sub(made, repro), classes


def _parse(readable: str) -> _Module:
    """Read which classes stand in which, by their indentation; the outermost is the graph itself."""
    top = _Module("")
    enclosing: list[_Module] = [top]
    for line in readable.split("\n"):
        if match := _CLASS.fullmatch(line):
            del enclosing[len(match["indent"]) // _INDENT + 1 :]
            module = _Module(match["name"])
            enclosing[-1].children.append(module)
            enclosing.append(module)
        else:
            enclosing[-1].lines.append(line)
    return top.children[0] if top.children else top


def _write(module: _Module, parent: str, classes: list[str]) -> None:
    """Write a module as a class of its own, after those inside it."""
    name = f"{parent}_{module.name}"
    for child in module.children:
        _write(child, name, classes)
    lines = [line for line in module.lines if not line.lstrip().startswith("#")]
    body = textwrap.dedent("\n".join(lines)).strip("\n")
    if module.children:
        made = [f"self.{child.name} = {name}_{child.name}()" for child in module.children]
        init = textwrap.indent("\n".join(["super().__init__()", *made]), " " * _INDENT)
        body = f"def __init__(self):\n{init}\n\n{body}"
    classes.append(f"class {name}(torch.nn.Module):\n{textwrap.indent(body, ' ' * _INDENT)}")
