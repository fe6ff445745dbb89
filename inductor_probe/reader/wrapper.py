"""The statements of a wrapper: what it allocates, launches and calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inductor_probe.model.code import Allocation, ExternCall, KernelComment, Launch, SizeSymbol
from inductor_probe.model.ir import BufferLayout, Dim
from inductor_probe.model.span import Problem, Span
from inductor_probe.reader import tensor_calls
from inductor_probe.reader.kernel_comments import kernel_comment
from inductor_probe.reader.shorthand import sizes
from inductor_probe.reader.values import dotted, shorten

_EXTERN = ("extern_kernels.", "aten.", "torch.ops.", "quantized.", "_quantized.", "inductor_ops.")
_SYMBOL = re.compile(r"[suz]\d+")
# Calls that neither compute nor name memory: devices, streams, guards, events, lists of a loop, profiling.
_PLUMBING = re.compile(
    r"args\.clear|assert_alignment|get_(?:raw|cuda|xpu)_stream|run_intermediate_hooks|start_graph|end_graph"
    r"|torch\.\w+\.(?:set_device|synchronize|nvtx\.\w+)|torch\.Event|\w+\.(?:record|synchronize|wait|zero_)"
    r"|[\w\[\]]+\.(?:append|extend|wait_stream|wait_event|record_event|precompile|save_gpu_kernel)"
    r"|print|record_function"
)
# Names, numbers, tuples of numbers, and one call of such: there is one way to write them.
_ATOM = r"(?:[A-Za-z_][\w.]*|\d{1,18}|\(\)|\(\d{1,18}(?:, \d{1,18})+\))"
_AS_UNPARSED = re.compile(rf"{_ATOM}|[A-Za-z_][\w.]*\((?:{_ATOM}(?:, {_ATOM})*)?\)")
# Methods of a tensor that make another one: `buf0[0] = arg0_1.clone()` before a loop.
_COPIES = ("clone", "copy_", "unsqueeze", "contiguous")
# Statements that hold nothing a reader asks for.
_SILENT = (ast.Delete, ast.Assert, ast.Pass, ast.Raise, ast.Import, ast.ImportFrom, ast.Global, ast.Break)


@dataclass(slots=True)
class WrapperReader:
    """Collects what the statements of a wrapper say, in order.

    `kernels` are the names that are launched, `functions` those of the wrapper's other functions. `usual` are
    the statements that numbers stand for in the tree: see `shorthand`.
    """

    path: Path
    lines: list[str]
    kernels: frozenset[str]
    functions: frozenset[str] = frozenset()
    usual: Sequence[re.Match[str]] = ()
    inputs: tuple[str, ...] = ()
    launches: list[Launch] = field(default_factory=list)
    externs: list[ExternCall] = field(default_factory=list)
    allocations: dict[str, Allocation] = field(default_factory=dict)
    examples: dict[str, BufferLayout] = field(default_factory=dict)
    symbols: list[SizeSymbol] = field(default_factory=list)
    returns: tuple[str, ...] = ()
    problems: list[Problem] = field(default_factory=list)
    comments: dict[int, KernelComment | None] = field(default_factory=dict)

    def entry(self, body: list[ast.stmt]) -> None:
        """Read the statements of `call`."""
        for statement in body:
            match statement:
                case ast.Assign(targets=[target], value=ast.Name(id="args")):
                    elements = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
                    self.inputs = tuple(ast.unparse(element) for element in elements)
                case ast.With(body=inner):
                    self.entry(inner)
                case ast.Return(value=ast.Tuple(elts=elements) | ast.List(elts=elements)):
                    self.returns = tuple(tensor_calls.text(element) for element in elements)
                case _:
                    self._statement(statement)

    def function(self, body: list[ast.stmt]) -> None:
        """Read the statements of another function; its arguments and returns are not the graph's."""
        for statement in body:
            match statement:
                case ast.Return() | ast.Assign(value=ast.Name(id="args")):
                    pass
                case _:
                    self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.With(body=inner):
                self.function(inner)
            case ast.If(body=inner, orelse=other) | ast.While(body=inner, orelse=other):
                self.function([*inner, *other])
            case ast.For(body=inner):
                self.function(inner)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, value, statement)
            case ast.Assign(targets=[ast.Tuple(elts=elements)], value=ast.Call() as call):
                self._call(call, tuple(tensor_calls.text(element) for element in elements), statement)
            case ast.Assign(targets=[ast.Attribute()]):
                pass  # a switch of a kernel object
            case ast.Assign(targets=[ast.Subscript() as item], value=ast.Name() | ast.Call()):
                self._assign(ast.unparse(item), statement.value, statement)
            case ast.Expr(value=ast.Call() as call):
                self._call(call, (), statement)
            case ast.Expr(value=ast.Constant(value=value)):
                if usual := self._usual(value, statement):
                    self._usual_statement(usual, statement)
            case ast.Return():
                pass
            case _ if not isinstance(statement, _SILENT):
                self._unknown(statement)

    def _usual(self, number: object, statement: ast.stmt) -> re.Match[str] | None:
        """Return what a number in the tree stands for; None where the number itself stands in the text."""
        if type(number) is not int or not 0 <= number < len(self.usual):
            return None
        usual = self.usual[number]
        return usual if self.lines[statement.lineno - 1] == usual[0] else None

    def _usual_statement(self, usual: re.Match[str], statement: ast.stmt) -> None:
        if usual["asserted"]:
            size, stride = sizes(usual["asserted_size"]), sizes(usual["asserted_stride"])
            self._sized(usual["asserted"], size, stride, self._span(statement))
        elif usual["new"]:
            size, stride = sizes(usual["new_size"]), sizes(usual["new_stride"])
            device = tensor_calls.device_named(usual["new_device"])
            layout = BufferLayout("Allocation", device, usual["new_dtype"], size, stride)
            self._allocate(Allocation(usual["new"], "new", layout, None, self._span(statement)))
        else:  # an example input, outside of the functions that make them
            self._unknown(statement)

    def _assign(self, name: str, value: ast.expr, statement: ast.stmt) -> None:
        span = self._span(statement)
        match value:
            case ast.Name(id=other):
                known = self.allocations.get(other)
                if known is None and _SYMBOL.fullmatch(name):
                    self.symbols.append(SizeSymbol(name, other, span))
                else:
                    self._allocate(Allocation(name, "reuse", known.layout if known else None, other, span))
            case ast.Subscript(value=ast.Name(id=other), slice=ast.Constant()):
                self._allocate(Allocation(name, "alias", None, other, span))
            case ast.Call() as call:
                self._assign_call(name, call, statement)
            case ast.Constant(value=None) | ast.List() | ast.ListComp():
                pass  # nothing yet: what a branch, a loop or a partition fills
            case _:
                self.symbols.append(SizeSymbol(name, ast.unparse(value), span))

    def _assign_call(self, name: str, call: ast.Call, statement: ast.stmt) -> None:
        target, span = dotted(call.func), self._span(statement)
        if target in ("reinterpret_tensor", "alloc_from_pool") and call.args:
            of = tensor_calls.text(call.args[0])
            base = self.allocations.get(of)
            known = base.layout if base else self.examples.get(of)
            layout = tensor_calls.view_layout(target, call, known)
            self._allocate(Allocation(name, "view", layout, of, span))
        elif layout := tensor_calls.empty_layout(target, call):
            self._allocate(Allocation(name, "new", layout, None, span))
        elif target == "copy_if_misaligned" and call.args:
            known_input = self.allocations.get(name)
            layout = known_input.layout if known_input else None
            self._allocate(Allocation(name, "copy", layout, tensor_calls.text(call.args[0]), span))
        elif target.endswith((".item", ".size", ".stride", ".numel")) or target in ("max", "min", "int"):
            self.symbols.append(SizeSymbol(name, ast.unparse(call), span))
        else:
            self._call(call, (name,), statement)

    def _allocate(self, allocation: Allocation) -> None:
        self.allocations[allocation.name] = allocation

    def _call(self, call: ast.Call, targets: tuple[str, ...], statement: ast.stmt) -> None:
        span, func, target = self._span(statement), call.func, dotted(call.func)
        kernel, _, method = target.rpartition(".")
        if (isinstance(func, ast.Name) and target in self.kernels) or (
            kernel in self.kernels and method == "run"
        ):
            args = tuple(tensor_calls.pointer(argument) for argument in call.args)
            keywords = tuple((kw.arg, ast.unparse(kw.value)) for kw in call.keywords if kw.arg)
            self.launches.append(
                Launch(kernel or target, args, span, keywords, comment=self._comment(statement))
            )
        elif target == "assert_size_stride":
            if len(call.args) >= 3 and isinstance(call.args[0], ast.Name):
                size, stride = tensor_calls.dims(call.args[1]), tensor_calls.dims(call.args[2])
                self._sized(call.args[0].id, size, stride, span)
        elif target.startswith(_EXTERN) or method in _COPIES or (targets and _is_torch(target)):
            outputs = tuple(ast.unparse(kw.value) for kw in call.keywords if kw.arg == "out") or targets
            args = tuple(map(self._text, call.args))
            args += tuple(
                f"{kw.arg}={self._text(kw.value)}" if kw.arg else ast.unparse(kw) for kw in call.keywords
            )
            if method in _COPIES:
                outputs, args = outputs or (kernel,), (kernel, *args)
            self.externs.append(ExternCall(target, args, outputs, span, comment=self._comment(statement)))
        elif not (target in self.functions or "partitions[" in target or _PLUMBING.fullmatch(target)):
            self._unknown(statement)

    def _text(self, node: ast.expr) -> str:
        """Return the text of an argument as `ast.unparse` writes it, which is slow where it is not asked."""
        line = self.lines[node.lineno - 1]
        if node.end_lineno == node.lineno and line.isascii():  # columns are counted in bytes
            text = line[node.col_offset : node.end_col_offset]
            if _AS_UNPARSED.fullmatch(text):
                return text
        return ast.unparse(node)

    def _unknown(self, statement: ast.stmt) -> None:
        text = shorten(self.lines[statement.lineno - 1].strip())
        self.problems.append(Problem(f"unknown statement of the wrapper: {text}", self._span(statement)))

    def _sized(
        self, name: str, size: tuple[Dim, ...] | None, stride: tuple[Dim, ...] | None, span: Span
    ) -> None:
        """`assert_size_stride` tells the layout of an input, or of what a library kernel returned."""
        known = self.allocations.get(name)
        is_input = name in self.inputs
        layout = BufferLayout("Input" if is_input else "Allocation", None, None, size, stride)
        if is_input:
            self._allocate(Allocation(name, "input", layout, None, span))
        elif known is None or known.layout is None:
            how, of = (known.kind, known.of) if known else ("new", None)
            self._allocate(Allocation(name, how, layout, of, span))

    def example_inputs(self, function: ast.FunctionDef) -> None:
        """`arg0_1 = rand_strided(size, stride, device=..., dtype=...)`: dtype and device of inputs."""
        for statement in function.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func) as call):
                    if dotted(func) == "rand_strided" and len(call.args) >= 2:
                        device, dtype = tensor_calls.device_and_dtype(call)
                        size, stride = tensor_calls.dims(call.args[0]), tensor_calls.dims(call.args[1])
                        self.examples[name] = BufferLayout("Input", device, dtype, size, stride)
                case ast.Expr(value=ast.Constant(value=value)):
                    if (usual := self._usual(value, statement)) and (name := usual["example"]):
                        self.examples[name] = BufferLayout(
                            "Input",
                            usual["example_device"],
                            usual["example_dtype"],
                            sizes(usual["example_size"]),
                            sizes(usual["example_stride"]),
                        )

    def complete_inputs(self) -> None:
        """Call last: gives inputs the dtype and device of the example inputs."""
        for name in self.inputs:
            self._complete_input(name)

    def _complete_input(self, name: str) -> None:
        """Join what the wrapper asserts (symbolic sizes) with what the example inputs tell (dtype)."""
        asserted, example = self.allocations.get(name), self.examples.get(name)
        if example is None:
            return
        if asserted is None or asserted.layout is None:
            self._allocate(Allocation(name, "input", example))
            return
        layout = asserted.layout
        joined = BufferLayout("Input", example.device, example.dtype, layout.size, layout.stride)
        self._allocate(Allocation(name, "input", joined, None, asserted.span))

    def _comment(self, statement: ast.stmt) -> KernelComment | None:
        """Return the comment above a statement; many may stand in one line, below a long comment."""
        line = statement.lineno
        if line not in self.comments:
            self.comments[line] = kernel_comment(self.lines, line, self.path)
        return self.comments[line]

    def _span(self, statement: ast.stmt) -> Span:
        return Span(self.path, statement.lineno, statement.end_lineno or statement.lineno)


def _is_torch(target: str) -> bool:
    return target.startswith("torch.") and not _PLUMBING.fullmatch(target)
