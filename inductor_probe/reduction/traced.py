"""Programs of the graphs that dynamo hands to inductor while a script runs: part of a process with torch."""

from __future__ import annotations

import builtins
import math
import operator
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.fx
from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.capture.child import run_script
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.codec import to_json
from inductor_probe.reduction.program import Form, Input, Line, Program
from inductor_probe.reduction.smaller import Forms

_SIGNS = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/", operator.floordiv: "//",
    operator.mod: "%", operator.pow: "**", operator.matmul: "@", operator.and_: "&", operator.or_: "|",
    operator.xor: "^", operator.lshift: "<<", operator.rshift: ">>", operator.eq: "==", operator.ne: "!=",
    operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=",
}  # fmt: skip
_METHODS = {
    operator.iadd: "add_", operator.isub: "sub_", operator.imul: "mul_", operator.itruediv: "div_",
    operator.ifloordiv: "floor_divide_", operator.imod: "remainder_", operator.ipow: "pow_",
    operator.iand: "__iand__", operator.ior: "__ior__", operator.ixor: "__ixor__",
}  # fmt: skip
_UNARY = {operator.neg: "-", operator.invert: "~", operator.pos: "+", operator.not_: "not "}
_MODULES = ("torch", "torch.nn.functional", "torch.special", "torch.linalg", "torch.fft", "math", "builtins")
"""Where a person looks for a function of torch."""
_MOST_VALUES = 1 << 29
"""Bytes of values that are kept of a graph, for a predicate that drawn ones do not show."""
_DEFAULT = "torch._inductor.config"
_NOT_OF_PROGRAM = (
    "compile_threads",
    "fx_graph_cache",
    "trace.",
    "debug",
    "fallback_random",
    "force_disable_caches",
)


class CannotWriteError(Exception):
    """A node has no form as a line of Python."""


class Traced(Struct, frozen=True):
    """A graph of a script.

    Attributes:
        name: dynamo's compile id: `0/0`. program: None where it cannot be written; `problem` says why.
        made: facts of the values of lines, as inputs. called: whether the script got as far as calling it.
        values: the file with its values.
    """

    name: str
    program: Program | None
    made: tuple[Input, ...] = ()
    called: bool = False
    problem: str = ""
    values: str = ""


class Tracer:
    """Keeps what dynamo traces, with the inputs of its first call.

    Args:
        folder: for the values of each graph.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.traced: list[Traced] = []
        self._inside = False

    def hook(self, compile_fx: Any) -> None:
        """See what `compile_fx` gets; it calls itself with settings, which is the same graph."""

        def around(compile_: Callable[..., Any]) -> Callable[..., Any]:
            def compile_and_keep(module: Any, examples: Any, *args: Any, **kwargs: Any) -> Any:
                if self._inside or not isinstance(module, torch.fx.GraphModule):
                    return compile_(module, examples, *args, **kwargs)
                self._inside, place = True, len(self.traced)
                self._add(module, kwargs.get("config_patches") or {})
                try:
                    compiled = compile_(module, examples, *args, **kwargs)
                finally:
                    self._inside = False
                return self._called(place, module, compiled)

            return compile_and_keep

        wrap(compile_fx, "compile_fx", around)

    def _add(self, module: Any, patches: Mapping[str, Any]) -> None:
        identity = torch._guards.CompileContext.current_compile_id()
        name = str(identity) if identity else str(len(self.traced))
        options = f"options={dict(patches)!r}" if patches else ""
        try:
            program = program_of(module.graph, module, options)
            self.traced.append(Traced(name, program))
        except CannotWriteError as error:
            self.traced.append(Traced(name, None, problem=str(error)))

    def _called(self, place: int, module: Any, compiled: Any) -> Any:
        """Return a compiled graph that keeps the inputs of its first call."""
        names = [node.name for node in module.graph.nodes if node.op == "placeholder"]

        def call(*args: Any) -> Any:
            one = self.traced[place]
            if not one.called:
                values = dict(zip(names, args, strict=False))
                self.traced[place] = self._with_values(place, replace(one, called=True), values)
            results = compiled(*args)
            for result in results if isinstance(results, (list, tuple)) else (results,):
                if isinstance(result, torch.Tensor) and result.requires_grad and result.grad_fn is not None:
                    result.register_hook(lambda _: self._is_backward(place))
            return results

        return call

    def _is_backward(self, place: int) -> None:
        one = self.traced[place]
        if one.program is not None:
            self.traced[place] = replace(one, program=replace(one.program, backward=True))

    def _with_values(self, place: int, one: Traced, values: Mapping[str, Any]) -> Traced:
        """Add what the inputs were, and what eager computes of them, node by node."""
        if one.program is None:
            return one
        tensors = {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
        file = self._folder / f"graph{place}.pt"
        inputs = tuple(
            _fact(each.name, tensors[each.name]) if each.name in tensors else each
            for each in one.program.inputs
        )
        try:
            with torch.no_grad():
                copies = {name: value.detach().clone() for name, value in tensors.items()}
                env = values_of(one.program, copies)
        except Exception:  # eager may refuse it, too: then only what inductor gets is known
            env = {}
        made = {
            line.name: env[line.name]
            for line in one.program.lines
            if isinstance(env.get(line.name), torch.Tensor)
        }
        size = sum(value.numel() * value.element_size() for value in (*tensors.values(), *made.values()))
        kept = {**made, **tensors} if size <= _MOST_VALUES else {}
        torch.save({name: value.detach().clone() for name, value in kept.items()}, file)
        facts = [_fact(name, value) for name, value in made.items()]
        if not kept:
            inputs, facts = (
                tuple(replace(each, values="") for each in inputs),
                [replace(each, values="") for each in facts],
            )
        return replace(
            one, program=replace(one.program, calls=(inputs,)), made=tuple(facts), values=str(file)
        )


def capture(script: str, arguments: list[str], folder: Path) -> dict[str, Any]:
    """Run a script, and return what dynamo traced, with how the script ended."""
    tracer = Tracer(folder)
    tracer.hook(sys.modules["torch._inductor.compile_fx"])
    ending = ""
    try:
        run_script(script, arguments)
    except SystemExit as error:
        ending = f"it ended with status {error.code}" if error.code else ""
    except BaseException as error:  # whatever a script may raise: its graphs are there
        traceback.print_exc()
        ending = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
    return {"traced": [to_json(one) for one in tracer.traced], "ending": ending}


def _fact(name: str, value: Any) -> Input:
    """Return what a tensor is as an input, with the bounds that drawn values keep."""
    least = most = None
    if value.numel() and not value.dtype.is_complex and "float8" not in str(value.dtype):
        least, most = float(value.min()), float(value.max())
        if value.dtype.is_floating_point:
            least, most = (0.0 if least >= 0 else None), None
    has_grad = value.requires_grad and torch.is_grad_enabled()
    return Input(name, form_of(value), has_grad, least, most, values=f'VALUES["{name}"]')


def form_of(value: Any) -> Form:
    """Return what a tensor is, a fake one too.

    Raises:
        CannotWriteError: it is no plain tensor.
    """
    if value.layout != torch.strided:
        raise CannotWriteError(f"a tensor has the layout {value.layout}")
    return Form(
        tuple(map(_hint, value.shape)),
        tuple(map(_hint, value.stride())),
        str(value.dtype).removeprefix("torch."),
        str(value.device) if value.device.type != "cpu" else "cpu",
    )


def _hint(size: Any) -> int:
    if isinstance(size, torch.SymInt):
        return int(size.node.hint)
    return int(size)


def values_of(program: Program, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Run the lines of a program eagerly, or with fake tensors; return the value of each name."""
    names: dict[str, Any] = {"torch": torch, "math": math, **inputs}
    for line in program.lines:
        exec(line.text, names)  # noqa: S102 - lines of torch calls, made by `expression`
    return names


def forms_of(program: Program) -> tuple[Forms, ...]:
    """Return what each value of a program is, for each call: by fake tensors, which compute nothing."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    forms = []
    for call in program.calls:
        with FakeTensorMode(), torch.no_grad():
            inputs = {
                one.name: torch.empty_strided(
                    one.form.size,
                    one.form.stride,
                    dtype=getattr(torch, one.form.dtype),
                    device=one.form.device,
                )
                for one in call
            }
            values = values_of(program, inputs)
            names = [
                *(one.name for one in call),
                *(line.name for line in program.lines if not line.statement),
            ]
            forms.append(
                {
                    name: form_of(values[name]) if isinstance(values[name], torch.Tensor) else None
                    for name in names
                }
            )
    return tuple(forms)


def program_of(graph: Any, module: Any, options: str) -> Program:
    """Return the program of a graph of FX, with its inputs as dynamo saw them.

    Raises:
        CannotWriteError: a node cannot be written as a line of Python; says which.
    """
    nodes = list(graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    inputs, lines = [], []
    for node in placeholders:
        value = node.meta.get("example_value", node.meta.get("val"))
        if isinstance(value, torch.Tensor):
            inputs.append(Input(node.name, form_of(value), value.requires_grad))
        elif isinstance(value, (torch.SymInt, int)):
            lines.append(_size_line(node.name, value, placeholders))
        else:
            raise CannotWriteError(f"input {node.name} is {type(value).__name__}")
    is_dynamic = bool(lines)
    outputs: list[str] = []
    for node in nodes:
        if node.op == "output":
            torch.fx.map_arg(node.args[0], lambda one: outputs.append(one.name))
        elif node.op == "get_attr":
            value = getattr(module, node.target, None)
            if not isinstance(value, torch.Tensor):
                raise CannotWriteError(f"{node.name} is a part of the graph with its own operators")
            inputs.append(Input(node.name, form_of(value)))
        elif node.op != "placeholder":
            lines.append(line_of(node))
    options = ", ".join(filter(None, [options, "dynamic=True" if is_dynamic else ""]))
    return Program(
        (tuple(inputs),),
        tuple(lines),
        tuple(dict.fromkeys(outputs)),
        tuple(sorted(settings_in_force())),
        options,
    )


def _size_line(name: str, value: Any, placeholders: list[Any]) -> Line:
    """Return the line that asks a tensor for a size that is a symbol."""
    for node in placeholders:
        example = node.meta.get("example_value", node.meta.get("val"))
        for dim, size in enumerate(example.shape if isinstance(example, torch.Tensor) else ()):
            if (
                isinstance(size, torch.SymInt)
                and isinstance(value, torch.SymInt)
                and size.node.expr == value.node.expr
            ):
                return Line(name, f"$0.shape[{dim}]", (node.name,))
    return Line(name, str(_hint(value)), ())


def settings_in_force() -> Iterator[str]:
    """Yield the lines that set inductor as the script has set it."""
    config = sys.modules[_DEFAULT]
    for line in config.codegen_config().splitlines():
        name = line.partition(" = ")[0].removeprefix(f"{_DEFAULT}.")
        if line.startswith(_DEFAULT) and not name.startswith(_NOT_OF_PROGRAM):
            yield line


def line_of(node: Any) -> Line:
    """Return the line of a node: `$0 + $1`, `torch.nn.functional.conv2d($0, $1)`, `$0.relu()`.

    Raises:
        CannotWriteError: it has none.
    """
    uses: list[str] = []

    def text(value: Any) -> str:
        return _text(value, uses)

    target, args = node.target, [text(one) for one in node.args]
    words = [*args, *(f"{name}={text(value)}" for name, value in node.kwargs.items())]
    effect, statement = False, False
    if node.op == "call_method":
        code = f"{args[0]}.{target}({', '.join(words[1:])})"
        effect = target.endswith("_") and not target.startswith("__")
    elif node.op != "call_function":
        raise CannotWriteError(f"{node.name} calls the module {target}")
    elif target in _SIGNS and len(args) == 2:
        code = f"{args[0]} {_SIGNS[target]} {args[1]}"
    elif target in _UNARY:
        code = f"{_UNARY[target]}{args[0]}"
    elif target in _METHODS:
        code, effect = f"{args[0]}.{_METHODS[target]}({', '.join(words[1:])})", True
    elif target is operator.getitem:
        code = f"{args[0]}[{_index(node.args[1], text)}]"
    elif target is operator.setitem:
        code, effect, statement = f"{args[0]}[{_index(node.args[1], text)}] = {args[2]}", True, True
    elif target is getattr:
        code = f"{args[0]}.{node.args[1]}"
    else:
        name = name_of(target)
        code = f"{name}({', '.join(words)})"
        value = node.meta.get("example_value", node.meta.get("val", node))
        effect = bool(re.search(r"[a-z]_$", getattr(target, "__name__", ""))) or value is None
        effect = effect or node.kwargs.get("inplace") is True or "out" in node.kwargs
    return Line(node.name, code, tuple(uses), effect, statement)


def _index(index: Any, text: Callable[[Any], str]) -> str:
    if isinstance(index, slice):
        parts = [("" if part is None else text(part)) for part in (index.start, index.stop)]
        return ":".join(parts) + ("" if index.step is None else f":{text(index.step)}")
    if isinstance(index, tuple) and index:
        return ", ".join(_index(one, text) for one in index) + ("," if len(index) == 1 else "")
    return text(index)


def _text(value: Any, uses: list[str]) -> str:
    """Return an argument as Python; names of nodes become places in `uses`."""
    match value:
        case torch.fx.Node():
            if value.name not in uses:
                uses.append(value.name)
            return f"${uses.index(value.name)}"
        case torch.Size() | tuple():
            inner = ", ".join(_text(one, uses) for one in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        case list():
            return f"[{', '.join(_text(one, uses) for one in value)}]"
        case dict():
            return "{" + ", ".join(f"{key!r}: {_text(one, uses)}" for key, one in value.items()) + "}"
        case slice():
            parts = (_text(part, uses) for part in (value.start, value.stop, value.step))
            return f"slice({', '.join(parts)})"
        case torch.device():
            return repr(str(value))
        case float() if not math.isfinite(value):
            return f'float("{value}")'
        case None | bool() | int() | float() | str() | complex():
            return repr(value)
        case torch.dtype() | torch.memory_format() | torch.layout():
            return str(value)
    if value is ...:
        return "..."
    raise CannotWriteError(f"an argument is {type(value).__name__}")


def name_of(function: Any) -> str:
    """Return the name by which a person calls a function of torch.

    Raises:
        CannotWriteError: it has none by which it could be found again.
    """
    if isinstance(function, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return f"torch.ops.{function}".replace("::", ".")
    name = getattr(function, "__name__", "")
    for module in _MODULES:
        if getattr(sys.modules.get(module), name, None) is function:
            return name if module == "builtins" else f"{module}.{name}"
    home = str(getattr(function, "__module__", None) or "")
    for path in (f"{home}.{name}", f"torch._C._nn.{name}", f"torch._C.{name}"):
        owner: Any = {"torch": torch}
        for part in path.split("."):
            owner = owner.get(part) if isinstance(owner, dict) else getattr(owner, part, None)
        if owner is function or (owner is not None and owner == function):
            return path
    raise CannotWriteError(
        f"{name or function} of {home or type(builtins).__name__} cannot be called by a name in torch"
    )
