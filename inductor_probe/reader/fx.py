"""The files around the FX graph: the graph itself, the runnable of it, and which kernels its nodes became.

`fx_graph_transformed.py` and `fx_graph_readable.py` are not Python (`class <lambda>`), and every node is one
line; comments above the lines say which line of the user's program they came from (torch/fx/graph_module.py,
_print_readable, around what torch/fx/graph.py, CodeGen._gen_python_code writes):

    class <lambda>(torch.nn.Module):
        def forward(self, arg0_1: "u8[1, 3]"):
            # File: /repro/a.py:34 in <lambda>, code: return x.flip(-1)
            rev: "u8[1, 3]" = torch.ops.prims.rev.default(arg0_1, [1]);  arg0_1 = None
            return (rev,)

Torch 2.1 writes types without quotes; `in <lambda>` is there since 2.3.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from inductor_probe.backends.brackets import split_arguments
from inductor_probe.errors import UnreadableError
from inductor_probe.files import json_of
from inductor_probe.model.fx import FxGraph, FxNode, Names, Provenance, Runnable
from inductor_probe.model.span import MOST_PROBLEMS, Problem, SourceLine, Span, too_many_problems
from inductor_probe.reader.python_text import parse_expression
from inductor_probe.reader.values import listed_names, shorten

_LOCATION = re.compile(
    r"\s*# File: (?P<path>.+?):(?P<line>\d{1,9})(?: in (?P<function>\S+?))?, code: (?P<code>.*)"
)
_FORWARD = re.compile(r"\s*def forward\(self(?:, ?(?P<params>.*))?\):\s*")
_PARAM = re.compile(r"(?P<name>\w+)(?:: (?P<type>\"[^\"]*\"|[^\"]+))?")
_NODE = re.compile(r"\s+(?P<name>[A-Za-z_]\w*)(?:: ?(?P<type>\"[^\"]*\"|[^=\"]+?))? = (?P<value>.+)")
_CALL = re.compile(r"(?P<target>[A-Za-z_][\w.]*)\((?P<arguments>.*)\)")
_ATTRIBUTE = re.compile(
    r"self(?P<arguments>(?:\.\w+)+)|getattr\(self, (?P<name>.*)\)"
    r"|(?P<nested>(?:getattr\()+self(?:\.\w+|, \"[^\"]*\"\))+)"
)
_ITEM = re.compile(r"(?P<arguments>\w+\[.*\])")
_OPERATOR = re.compile(r"[\w.]+ (?P<operator>[-+*/%<>=!&|^]+) [\w.]+|(?P<sign>[-~])[\w.]+")
_USED = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")
_RETURN = re.compile(r"\s+return (?P<value>.*)")
# What torch.export hands on: types of the inputs in a line, and the inputs unpacked from a tree of them
# (torch/fx/graph.py, _PyTreeCodeGen.gen_fn_def): `arg0_1, = fx_pytree.tree_flatten_spec([], self._in_spec)`.
TREE = "fx_pytree.tree_flatten_spec("
TREE_TYPES = re.compile(r"\s+(?:\w+: ?(?:\"[^\"]*\"|[^;\"=]+); ?)+\s*")
TREE_INPUTS = re.compile(r"\s+(?P<names>(?:\w+, ?)*\w*),? ?= fx_pytree\.tree_flatten_spec\(.*\)\s*")
_TREE_OUTPUTS = re.compile(r"pytree\.tree_unflatten\((?P<value>.*), self\._out_spec\)")
# A class with anything for a name (`class <lambda>(torch.nn.Module):`), or a comment.
_CLASS = re.compile(r"(?P<indent>\s*)class (?P<name>.+)\(torch\.nn\.Module\):")
_COMMENT = re.compile(r"\s*(?:#|\"\"\").*")


def parse_fx_graph(text: str, path: Path) -> FxGraph:
    """Read the text of an FX graph; `path` is what spans name.

    Of several modules in a file (branches of a conditional, bodies of loops) the first is the graph; nodes of
    the others follow its own, each called `<subgraph>_<name>`, as inductor calls what it makes of them
    (`GraphLowering.qualify_name` in torch/_inductor/graph.py).
    """
    inputs: tuple[FxNode, ...] | None = None
    outputs: tuple[str | None, ...] | None = None
    nodes: list[FxNode] = []
    subgraph_inputs: list[FxNode] = []
    problems: list[Problem] = []
    known: set[str] = set()
    source: SourceLine | None = None
    types: dict[str, str | None] = {}
    modules = _Modules()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line or line.isspace():
            source = None  # a comment speaks for the lines up to the next empty one
        elif match := _LOCATION.fullmatch(line):
            source = SourceLine(match["path"], int(match["line"]), match["function"], match["code"])
        elif match := _RETURN.fullmatch(line):
            returned = _outputs(match["value"])
            outputs = returned if outputs is None else outputs
        elif match := _NODE.fullmatch(line):
            nodes.append(modules.qualified(_node(match, source, known, Span(path, number, number))))
            known.add(match["name"])
        elif match := _FORWARD.fullmatch(line):
            params = tuple(
                FxNode(
                    param["name"], "placeholder", _type(param["type"]), None, span=Span(path, number, number)
                )
                for part in split_arguments(match["params"] or "")
                if (param := _PARAM.fullmatch(part))
            )
            inputs = params if inputs is None else inputs
            if modules.prefix:
                subgraph_inputs.extend(map(modules.qualified, params))
                known = set()  # a module uses its own names alone
            known.update(param.name for param in params)
        elif TREE_TYPES.fullmatch(line):
            types = {param["name"]: param["type"] for param in _PARAM.finditer(line)}
        elif match := TREE_INPUTS.fullmatch(line):
            span = Span(path, number, number)
            inputs = tuple(
                FxNode(name, "placeholder", _type(types.get(name)), None, span=span)
                for name in listed_names(match["names"])
            )
            known.update(node.name for node in inputs)
        elif match := _CLASS.fullmatch(line):
            modules.enter(len(match["indent"]), match["name"])
        elif not _COMMENT.fullmatch(line):
            problems.append(Problem(f"not understood: {shorten(line.strip())}", Span(path, number, number)))
            if len(problems) == MOST_PROBLEMS:
                problems.append(too_many_problems(path, number + 1, text))
                break
    return FxGraph(inputs or (), tuple(nodes), outputs or (), tuple(problems), tuple(subgraph_inputs))


@dataclass(slots=True)
class _Modules:
    """The modules around a line, by their indentation: the branches of a conditional stand inside of it."""

    around: list[tuple[int, str]] = field(default_factory=list)

    def enter(self, indent: int, name: str) -> None:
        """Note a line `class name(torch.nn.Module):`; the outermost is the graph itself."""
        while self.around and self.around[-1][0] >= indent:
            self.around.pop()
        self.around.append((indent, f"{name}_" if self.around else ""))

    @property
    def prefix(self) -> str:
        """What inductor puts before the names of the module that the line stands in."""
        return "".join(prefix for _, prefix in self.around)

    def qualified(self, node: FxNode) -> FxNode:
        """Return `node` with the name of its subgraph before its own, and before those that it uses."""
        if not (prefix := self.prefix):
            return node
        inputs = tuple(prefix + name for name in node.inputs)
        return replace(node, name=prefix + node.name, inputs=inputs)


def _node(line: re.Match[str], source: SourceLine | None, known: set[str], span: Span) -> FxNode:
    value = line["value"].partition(";  ")[0].rstrip()  # `;  arg0_1 = None`: frees what is not used again
    if match := _CALL.fullmatch(value):
        target, arguments = match["target"], match["arguments"]
    elif match := _ATTRIBUTE.fullmatch(value):
        target, arguments = "self", match["arguments"] or match["name"] or match["nested"]
    elif match := _ITEM.fullmatch(value):
        target, arguments = "[]", value
    elif match := _OPERATOR.fullmatch(value):
        target, arguments = match["operator"] or match["sign"], value
    else:
        target, arguments = value, ""
    used = tuple(dict.fromkeys(word for word in _USED.findall(arguments) if word in known))
    return FxNode(line["name"], target, _type(line["type"]), source, arguments, used, span)


def _type(text: str | None) -> str | None:
    return None if text is None else text.strip().strip('"')


def _outputs(text: str) -> tuple[str | None, ...]:
    """Read `(sum_1, None, arg0_1)`; anything but names and None is kept as its text."""
    if match := _TREE_OUTPUTS.fullmatch(text.strip()):
        text = match["value"]
    try:
        node = parse_expression(text.strip())
    except ValueError:
        return ()
    elements = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
    texts = (ast.unparse(element) for element in elements)
    return tuple(None if value == "None" else value for value in texts)


# `fx_graph_runnable.py` is a program, but not always Python (`<lambda>()` stands for a branch of a
# conditional), so the lines that say something beside the graph are read as text.
# torch/_dynamo/repro/after_aot.py, generate_compiler_repro_string and save_graph_repro;
# torch/_dynamo/debug_utils.py, generate_config_string and generate_env_vars_string (torch 2.9). Each begins
# with plain text, line end included: only that is found without a test of every character.
_VERSION = re.compile(r"\n# torch version: (\S+)")
_SETTING = re.compile(r"\n(?P<name>torch\.\w[\w.]*\._?config\.[\w.]+) = (?P<value>.*)")
_VARIABLE = re.compile(r"\nos\.environ\['(?P<name>\w+)'\] = '(?P<value>.*)'")
_SYMBOL = re.compile(r"\n(?P<name>[su]\d+) = (?P<value>\d{1,18})(?=\n)")  # `s77 = 3`, from `hint_lines`
_END = "run_repro("
PROGRAM_NOT_WRITTEN = "Repro is not generated due to "
"""Begins what `save_graph_repro` writes in the place of the program, for a graph with a `BackwardState`."""


def parse_runnable(text: str, path: Path) -> Runnable:
    """Read the text of `fx_graph_runnable.py`; it is neither imported nor run."""
    text = f"\n{text}"
    version = _VERSION.search(text)
    problems: tuple[Problem, ...] = ()
    if _END not in text and not text.startswith(f"\n{PROGRAM_NOT_WRITTEN}"):
        last = text.count("\n")
        problems = (Problem("cut off: the part that runs the graph is missing", Span(path, last, last)),)
    return Runnable(
        torch_version=version[1] if version else None,
        settings=tuple((match["name"], match["value"]) for match in _SETTING.finditer(text)),
        environment=tuple((match["name"], match["value"]) for match in _VARIABLE.finditer(text)),
        symbols=tuple((match["name"], int(match["value"])) for match in _SYMBOL.finditer(text)),
        problems=problems,
    )


def torch_version(text: str) -> str | None:
    """Return the version of the torch that wrote an `fx_graph_runnable.py`; every release notes it there."""
    return parse_runnable(text, Path()).torch_version


# torch/_inductor/debug.py, create_mapping_pre_post_grad_nodes and create_node_mapping_kernel_to_post_grad.
# Torch 2.8 wrote two files and 2.7 another one, with the kernels alone; the first that is there has most.
KERNEL_INFORMATION = "kernel_information.json"
"""In packages of AOTInductor (create_kernel_information_json): FX nodes and stack traces by launch."""
PROVENANCE_FILES = (
    "inductor_provenance_tracking_node_mappings.json",
    "inductor_generated_kernel_to_post_grad_nodes.json",
    "inductor_triton_kernel_to_post_grad_nodes.json",
    KERNEL_INFORMATION,
)


def parse_provenance(text: str, path: Path) -> Provenance:
    """Read `{"preToPost": {...}, "cppCodeToPost": {"cpp_fused_flip_0:1": ["rev"]}}`; `path` is what errors
    name.

    Raises:
        UnreadableError: it is not what torch writes.
    """
    try:
        data = json_of(text)
        if path.name == KERNEL_INFORMATION:
            data = {key: facts["post_grad_nodes"] for key, facts in data.items()}
        launches = _names(data.get("cppCodeToPost", {}) if "preToPost" in data else data)
        pre_to_post = _names(data.get("preToPost", {}))
    except ValueError as error:
        raise UnreadableError(f"{path}: not a provenance mapping of torch ({error})") from error
    except (TypeError, AttributeError, KeyError) as error:
        message = "not a provenance mapping of torch (names with lists of names are)"
        raise UnreadableError(f"{path}: {message}") from error
    kernels: dict[str, dict[str, None]] = {}
    for key, nodes in launches.items():
        kernels.setdefault(_kernel(key), {}).update(dict.fromkeys(nodes))
    return Provenance(
        kernels={kernel: tuple(nodes) for kernel, nodes in kernels.items()},
        launches={key: nodes for key, nodes in launches.items() if _kernel(key) != key},
        pre_to_post=pre_to_post,
        span=Span(path, 1, text.count("\n") + 1),
    )


def _kernel(key: str) -> str:
    """Drop the number of a launch, which torch 2.9 and later append: `cpp_fused_flip_0:1`."""
    kernel, _, number = key.rpartition(":")
    return kernel if kernel and number.isdigit() else key


def _names(data: dict[str, list[str]]) -> Names:
    return {str(key): tuple(str(name) for name in names) for key, names in data.items()}
