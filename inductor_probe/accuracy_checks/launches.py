"""Each launch of generated code judged alone: what it wrote beside the FX node whose value that is.

A copy of the wrapper's `call` reports after each statement. What a launch wrote is compared, and then
replaced by what eager has there, so that the next launch reads right values: the first fault does not hide
what follows, and what follows from it is not blamed.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch.utils._pytree import tree_flatten

from inductor_probe.accuracy_checks.faults import operator_called
from inductor_probe.accuracy_checks.functional import Written, written_name, written_places
from inductor_probe.accuracy_checks.judgement import RIGHT, WRONG, Judged, judge
from inductor_probe.accuracy_checks.parts import Part, source
from inductor_probe.accuracy_checks.stages import Lowered, cloned
from inductor_probe.accuracy_checks.values import Value, Values

REPORT = "_probe_report"
_NO_LAUNCH = re.compile(
    r"(empty_strided\w*|reinterpret_tensor|assert_\w+|alloc_from_pool|del|_probe_report|\w*\.?set_device"
    r"|args\.clear|get_raw_stream|stream\d*|as_strided|rand_strided)\b"
)
_TRITON_WRITES = ("out_ptr", "in_out_ptr", "ws_ptr")


_Write: TypeAlias = tuple[str, str, str, torch.Tensor]
"""A buffer, the FX node whose value it gets, the operation that computes it, and what it holds."""


@dataclass
class WrongBuffer:
    """A buffer that a launch wrote wrong from right inputs.

    `node` is the FX node whose value it holds, `operation` inductor's (`op3`), `kernel` the function
    launched at `line` of the wrapper.
    """

    buffer: str
    node: str
    operation: str
    kernel: str
    line: int
    judged: Judged
    compiled: torch.Tensor


@dataclass
class Launched:
    """What came of a graph's launches.

    Attributes:
        wrong: buffers of each launch, in the order of the graph, with what it computes. compared: how many
            were. unknown: those that stand for no FX node of their size.
        written: by line of the wrapper, the buffers that the launch there writes.
        kernels: by line, what is launched. problem: why nothing was compared.
    """

    wrong: list[tuple[list[WrongBuffer], Part]] = field(default_factory=list)
    compared: int = 0
    written: dict[int, list[str]] = field(default_factory=dict)
    kernels: dict[int, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    problem: str = ""


@dataclass
class Stands:
    """Which FX node's value a buffer has.

    `written`: of what is written again, the nodes and operations, in order. `writes`: of each operation the
    buffers that it writes, with the nodes. `of_operation`: all buffers that it reads, and writes.
    """

    node: dict[str, str] = field(default_factory=dict)
    operation: dict[str, str] = field(default_factory=dict)
    written: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    writes: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    of_operation: dict[str, tuple[set[str], set[str]]] = field(default_factory=dict)


def stands_for(lowered: Lowered) -> Stands:
    """Return which FX node each buffer stands for, as inductor notes it (`ir.Buffer.origin_node`)."""
    stands = Stands()
    nodes = {node.name: node for node in lowered.reference.graph.nodes}
    order = {name: place for place, name in enumerate(nodes)}
    computed: dict[str, str] = {}
    real = lowered.lowering.scheduler.mutation_real_name  # of what was written again, and has another name
    for scheduled in lowered.lowering.scheduler.nodes:
        for operation in scheduled.get_nodes():
            reads = {dep.name for dep in operation.read_writes.reads}
            outputs = {buffer.get_name() for buffer in operation.get_outputs()}
            stands.of_operation[operation.get_name()] = reads, outputs
            for buffer in operation.get_outputs():
                name, origin = buffer.get_name(), getattr(buffer.node, "origin_node", None)
                computed[name] = operation.get_name()
                mutated = [real.get(one, one) for one in buffer.get_mutations()]
                node = getattr(origin, "name", None)
                if mutated and (node is None or node not in order):
                    origins = [
                        one.name for one in getattr(operation.node, "origins", ()) if one.name in order
                    ]
                    node = max(origins, key=order.__getitem__, default=None)
                if node is None or node not in order:
                    continue
                if mutated:
                    for one in mutated:
                        wrote = written_name(node, stands.node.get(one, one))
                        if wrote in order or not isinstance(nodes[node].target, Written):
                            wrote = wrote if wrote in order else node
                            if stands.node.get(one) == wrote:  # `scatter_add`: of zeros in the same memory
                                stands.writes[stands.operation.pop(one)].remove((one, stands.node.pop(one)))
                            stands.written.setdefault(one, []).append((wrote, operation.get_name()))
                            stands.writes.setdefault(operation.get_name(), []).append((one, wrote))
                else:
                    stands.node[name], stands.operation[name] = node, operation.get_name()
                    stands.writes.setdefault(operation.get_name(), []).append((name, node))
                for read, operand in _operands(operation.node, nodes[node]):
                    if read not in stands.node and read in computed:
                        stands.node[read], stands.operation[read] = operand, computed[read]
                        stands.writes.setdefault(computed[read], []).append((read, operand))
    return stands


def _operands(made: Any, node: Any) -> Iterator[tuple[str, str]]:
    """Yield the buffers that a call of a library reads, with the FX nodes that they are made for.

    A copy that is made for an operator which wants its operand laid out in a certain way
    (`ExternKernel.copy_input`) has no node of its own: of `twice(x + 1)` the buffer that holds `x + 1`.
    """
    if getattr(made, "op_overload", None) is None:
        return
    flat, _ = tree_flatten((node.args, node.kwargs))
    operands = [one for one in flat if isinstance(getattr(one, "meta", {}).get("val"), torch.Tensor)]
    reads = getattr(made, "inputs", ())
    if len(operands) == len(reads):
        for read, operand in zip(reads, operands, strict=True):
            if hasattr(read, "get_name"):
                yield read.get_name(), operand.name


def check_launches(lowered: Lowered, inputs: list[Any]) -> Launched:
    """Run a graph's code on copies of `inputs`, and judge what each launch writes."""
    found = Launched()
    if lowered.module is None or lowered.lowering is None or lowered.lowering.cpp_wrapper:
        found.problem = "the wrapper is C++"
        return found
    checker = _Checker(lowered, inputs, found)
    call = instrumented(lowered.module, checker.after)
    call(cloned(inputs))
    return found


class _Checker:
    """Compares what launches wrote; `after` is called after each statement of the wrapper."""

    def __init__(self, lowered: Lowered, inputs: list[Any], found: Launched) -> None:
        self._graph, self._found = lowered.reference, found
        self._stands = stands_for(lowered)
        nodes = self._graph.graph.nodes
        self._inputs = dict(zip((node for node in nodes if node.op == "placeholder"), inputs, strict=False))
        stored = {*self._stands.node.values()}
        stored |= {node for written in self._stands.written.values() for node, _ in written}
        taken = {node.name for node in nodes if node.target is operator.getitem}
        copied = {source(node).name for node in nodes if node.name in stored}
        self._values = Values(self._graph, inputs, stored | taken | copied)
        self._order = {node.name: place for place, node in enumerate(nodes)}
        self._done: set[str] = set()
        self._launched: set[str] = set()
        self._spoiled: set[str] = set()  # what was computed wrong, and has no node to be put right by
        self._writes = written_arguments(lowered.module)
        self._kernels: dict[str, list[list[str]]] = {}
        for name, operations in lowered.launches:
            self._kernels.setdefault(name, []).append(operations)
        # Where all that reads a value is in the kernel that computes it, it is not stored.
        self._not_stored = lowered.lowering.removed_buffers | lowered.lowering.inplaced_to_remove

    def after(
        self, line: int, kernel: str, names: list[str], given: list[str], values: dict[str, Any]
    ) -> None:
        """Judge what the statement of a line wrote.

        Args:
            names: in its arguments, in order. given: those that get its result. values: of the variables.
        """
        if self._kernels.get(kernel):
            operations = self._kernels[kernel].pop(0)
            launch = [*self._written_by_kernel(operations, values)]
        else:
            launch = [*self._written_by_call(kernel, names, given, values)]
            operations = [operation for _, _, operation, _ in launch]
        if launch:
            launch.sort(key=lambda one: self._order[one[1]])
            self._compare(line, kernel, launch, operations)

    def _written_by_kernel(self, operations: list[str], values: dict[str, Any]) -> Iterator[_Write]:
        """Yield what a kernel wrote, which computes some operations: of several writes the last one.

        Of zeros that a kernel scatters into, the sums that it leaves.
        """
        last: dict[str, tuple[str, str]] = {}
        for operation in operations:
            for name, node in self._stands.writes.get(operation, ()):
                last[name] = (node, operation)
                self._done.add(name)
                waiting = self._stands.written.get(name, [])
                if (node, operation) in waiting:
                    waiting.remove((node, operation))
        for name, (node, operation) in last.items():
            tensor = values.get(name)
            if isinstance(tensor, torch.Tensor) and name not in self._not_stored:
                yield name, node, operation, tensor.detach()

    def _written_by_call(
        self, kernel: str, names: list[str], given: list[str], values: dict[str, Any]
    ) -> Iterator[_Write]:
        """Yield what a function of a library wrote, or a kernel of which it is not known what it computes."""
        places = _written_by(kernel, self._writes)
        written = {*given, *(names[place] for place in places if place < len(names))}
        for name in dict.fromkeys([*names, *given]):
            tensor = values.get(name)
            if not isinstance(tensor, torch.Tensor):
                continue
            if name in self._done or name not in self._stands.node:
                waiting = self._stands.written.get(name)
                if waiting and name in written:
                    yield (name, *waiting.pop(0), tensor.detach())
            else:
                self._done.add(name)
                yield name, self._stands.node[name], self._stands.operation[name], tensor.detach()

    def _following(self, buffers: set[str], operations: list[str]) -> set[str]:
        """Return some buffers, with those that operations compute from them."""
        following = {*buffers}
        for operation in operations:
            reads, writes = self._stands.of_operation.get(operation, (set(), set()))
            following |= writes if reads & following else set()
        return following

    def _compare(self, line: int, kernel: str, launch: list[_Write], operations: list[str]) -> None:
        """Compare what a launch wrote with what eager has there, and put that there.

        A sum that a mean is made of by the next launch has no node: where it was wrong, so is the mean.
        """
        self._found.written[line], self._found.kernels[line] = [one[0] for one in launch], kernel
        suspects, put_right = [], set()
        spoiled = self._following(self._spoiled, operations)
        for buffer, node, operation, tensor in launch:
            right = self._values.value(node)
            if right is None or (right.shape, right.dtype) != (tensor.shape, tensor.dtype):
                self._found.unknown.append(buffer)
                continue
            self._found.compared += 1
            if buffer not in spoiled and judge(right, tensor).verdict != RIGHT:
                suspects.append(
                    WrongBuffer(buffer, node, operation, kernel, line, Judged(RIGHT), tensor.clone())
                )
            tensor.copy_(right)
            put_right.add(buffer)
        wrong = self._judge(suspects) if suspects else set()
        self._spoiled = self._following(spoiled | wrong, operations) - put_right
        self._launched |= {node for _, node, _, _ in launch}

    def _judge(self, suspects: list[WrongBuffer]) -> set[str]:
        """Return which buffers are wrong, by what the launch computes in float64.

        It computes that from what it reads: what others wrote before.
        Of `e = x.exp(); e / e.sum(-1)` in one kernel, `e` may be overwritten there by the quotient.
        """
        part = Part(self._graph, [one.node for one in suspects], self._launched, self._known)
        references = part.references()
        noisy: dict[int, list[Value | None]] = {}

        def noise(place: int, seed: int) -> torch.Tensor | None:
            if seed not in noisy:
                noisy[seed] = part.references(seed)
            value = noisy[seed][place]
            return None if value is None else value.reference

        wrong = []
        for place, (one, right) in enumerate(zip(suspects, references, strict=True)):
            if right is not None:
                one.judged = judge(right.eager, one.compiled, right.reference, partial(noise, place))
                if one.judged.verdict == WRONG:
                    wrong.append(one)
        if wrong:
            part = Part(self._graph, [one.node for one in wrong], self._launched, self._known)
            self._found.wrong.append((wrong, part))
        return {one.buffer for one in wrong}

    def _known(self, node: Any) -> Any:
        """Return the value of a node that a launch reads."""
        if node in self._inputs:
            return self._inputs[node]
        if node.op == "get_attr":
            return getattr(self._graph, node.target)
        return self._values.value(node.name)


def written_arguments(module: Any) -> dict[str, set[int]]:
    """Return which arguments each kernel of a module writes: by types, or names, of its parameters."""
    writes: dict[str, set[int]] = {}
    for statement in ast.parse(source_of(module)).body:
        if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)):
            continue
        name, call = getattr(statement.targets[0], "id", ""), statement.value
        maker = ast.unparse(call.func)
        if maker.endswith("cpp_pybinding") and isinstance(call.args[0], ast.List):
            types = [getattr(one, "value", "") for one in call.args[0].elts]
            writes[name] = {place for place, kind in enumerate(types) if "*" in kind and "const" not in kind}
        elif maker.endswith(".triton") and len(call.args) > 1 and isinstance(call.args[1], ast.Constant):
            signature = re.search(r"def \w+\((.*?)\):", str(call.args[1].value), re.S)
            names = [
                one.partition(":")[0].strip() for one in (signature.group(1) if signature else "").split(",")
            ]
            writes[name] = {place for place, one in enumerate(names) if one.startswith(_TRITON_WRITES)}
    return writes


def _written_by(kernel: str, writes: dict[str, set[int]]) -> set[int]:
    """Return which arguments a launch writes: of a kernel of the module, or of an operator of torch."""
    if kernel in writes or not kernel.startswith(("torch.ops.", "aten.")):
        return writes.get(kernel, set())
    return written_places(operator_called(kernel.removeprefix("torch.ops.")))  # or `aten.scatter_reduce_.two`


def source_of(module: Any) -> str:
    """Return the text of a module of generated code."""
    return Path(module.__file__).read_text(encoding="utf-8")


def instrumented(module: Any, report: Callable[..., None]) -> Callable[..., Any]:
    """Return a copy of a module's `call` that calls `report` after each statement that launches something.

    Generated wrappers have it in a class (`Runner`, since torch 2.9) or as a function, with parts of the
    graph in functions beside it.
    """
    tree, namespace = ast.parse(source_of(module)), dict(vars(module))
    functions: list[ast.stmt] = []
    in_class = False
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef) and statement.name == "Runner":
            methods = [
                one for one in statement.body if isinstance(one, ast.FunctionDef) and one.name == "call"
            ]
            functions += methods
            in_class = bool(methods)
        elif isinstance(statement, ast.FunctionDef) and (
            statement.name == "call" or statement.name.startswith("partition_")
        ):
            functions.append(statement)
    for function in functions:
        _Reporter().visit(function)
    namespace[REPORT] = report
    made = ast.fix_missing_locations(ast.Module(functions, []))
    exec(compile(made, module.__file__, "exec"), namespace)  # noqa: S102 - the code that torch has just compiled
    call: Callable[..., Any] = namespace["call"]
    if not in_class:
        return call
    runner = namespace["runner"]
    made_runner = type(runner)(
        [namespace.get(getattr(one, "__name__", ""), one) for one in getattr(runner, "partitions", [])]
    )
    return lambda args: call(made_runner, args)


class _Reporter(ast.NodeTransformer):
    """Puts a call of `report` after statements that launch something."""

    def __init__(self) -> None:
        self._gives: dict[str, str] = {}

    def visit_Expr(self, node: ast.Expr) -> Any:
        return self._with_report(node, node.value)

    def visit_Assign(self, node: ast.Assign) -> Any:
        if isinstance(node.value, ast.Subscript):  # `buf8 = buf7[0]`, of a call that gives several
            kernel = self._gives.get(_name_in(node.value.value), "")
            given = [one.id for one in node.targets if isinstance(one, ast.Name)]
            return self._reported(node, kernel, [], given) if kernel else node
        return self._with_report(node, node.value)

    def _with_report(self, node: Any, value: ast.expr) -> Any:
        if not isinstance(value, ast.Call) or _NO_LAUNCH.match(ast.unparse(value.func)):
            return node
        # Arguments first, in their order, so that the place of a name is that of the kernel's argument.
        names = [_name_in(argument) for argument in value.args]
        kernel = ast.unparse(value.func).removesuffix(".run")
        given = [_name_in(keyword.value) for keyword in value.keywords if keyword.arg == "out"]
        if isinstance(node, ast.Assign):
            given += [one.id for one in ast.walk(node.targets[0]) if isinstance(one, ast.Name)]
            self._gives.update(dict.fromkeys(given, kernel))
        if kernel.removesuffix(".default").endswith("_"):  # aten.index_put_ writes its first argument
            given += names[:1]
        return self._reported(node, kernel, names, given)

    def _reported(self, node: Any, kernel: str, names: list[str], given: list[str]) -> Any:
        report = f"{REPORT}({node.lineno}, {kernel!r}, {names!r}, {given!r}, locals())"
        return [node, ast.copy_location(ast.parse(report).body[0], node)]


def _name_in(value: ast.expr) -> str:
    """Return the variable in an argument: also in `reinterpret_tensor(buf0, ...)`; else an empty text."""
    while isinstance(value, ast.Call) and value.args:
        value = value.args[0]
    while isinstance(value, (ast.Call, ast.Attribute)):
        value = value.func if isinstance(value, ast.Call) else value.value
    return value.id if isinstance(value, ast.Name) else ""
