"""The graphs that a compile goes through: what dynamo traced, what each pass made of it, what was lowered.

A graph is copied where a pass changed it; its parameters and constants are shared. Nothing is changed in
what is compiled.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, Literal, TypeAlias

import torch
import wrapt

from inductor_probe.accuracy_checks.functional import functional
from inductor_probe.accuracy_checks.options import Key
from inductor_probe.capture.recorders.rewrites import pattern_name
from inductor_probe.capture.torch_places import wrap
from inductor_probe.harness.inputs import clone

Kind: TypeAlias = Literal["inference", "forward", "backward"]
PASSES = ("pre_grad_passes", "joint_graph_passes", "post_grad_passes")


@dataclass
class Step:
    """A graph as it is after a pass, or a pattern of one, or before the first (`name` is empty then)."""

    stage: str
    name: str
    graph: Any
    is_pattern: bool = False


@dataclass
class Lowered:
    """A graph of inductor: `graph` was lowered, `lowering` is torch's `GraphLowering`, `module` the code.

    `steps` are those of its passes after the gradient. `launches` are the names of kernels, in order, each
    with the operations that it computes. `number` counts graphs of its kind and compile id:
    dynamo gives ids again once it was reset.
    """

    traced: Traced
    kind: Kind
    compile_id: str
    number: int = 0
    graph: Any = None
    lowering: Any = None
    module: Any = None
    code: Any = None
    steps: list[Step] = field(default_factory=list)
    launches: list[tuple[str, list[str]]] = field(default_factory=list)
    _reference: Any = None

    @property
    def reference(self) -> Any:
        """The last graph that runs outside of inductor: its nodes have the names of those in `graph`."""
        if self._reference is None:
            graphs = (self.graph, *(step.graph for step in reversed(self.steps)))
            self._reference = functional(next(filter(runs_alone, graphs), self.graph))
        return self._reference

    @property
    def key(self) -> Key:
        """What tells it from other graphs."""
        return self.compile_id, self.kind, self.number


@dataclass
class Traced:
    """What dynamo traced, with the passes before and after AOTAutograd, and the graphs that came of it."""

    graph: Any
    before: list[Step] = field(default_factory=list)
    joint: list[Step] = field(default_factory=list)
    lowered: list[Lowered] = field(default_factory=list)


@dataclass
class Ran:
    """One call of a graph of inductor, or of what dynamo traced, with copies of its inputs."""

    of: Any
    inputs: list[Any]


class Stages:
    """Sets hooks in torch, and holds what they saw.

    Attributes:
        traced: what was compiled so far.
        runs: of graphs, while `recorded`.
    """

    def __init__(self) -> None:
        self.traced: list[Traced] = []
        self.runs: list[Ran] = []
        self._recording = False
        self._open: list[Traced] = []
        self._passes: list[Any] = []
        self._lowered: list[Lowered] = []
        self._of: dict[int, Lowered] = {}
        self.missing: list[str] = []

    def install(self) -> None:
        """Set the hooks; modules of torch that are not imported yet get theirs then."""
        places: dict[str, dict[str, Callable[[Any], Any]]] = {
            "torch._inductor.compile_fx": {
                "compile_fx": self._around_compile,
                "_compile_fx_inner": self._around_inner,
                **{f"_recursive_{name}": functools.partial(self._around_passes, name) for name in PASSES},
            },
            "torch.fx.passes.graph_transform_observer": {
                "GraphTransformObserver.__enter__": self._around_enter,
                "GraphTransformObserver.__exit__": self._around_exit,
            },
            "torch._inductor.pattern_matcher": {
                f"{kind}PatternEntry.apply": self._around_apply
                for kind in ("Graph", "Lowering", "Replacement")
            },
            "torch._inductor.graph": {
                "GraphLowering.__init__": self._around_lowering,
                "GraphLowering.compile_to_module": self._around_module,
            },
            "torch._inductor.codegen.cpp": {"CppScheduling.define_kernel": self._around_define},
            "torch._inductor.codegen.triton": {"TritonScheduling.define_kernel": self._around_define},
            "torch._inductor.output_code": {"CompiledFxGraph.__call__": self._around_call},
        }
        for module, hooks in places.items():
            wrapt.register_post_import_hook(functools.partial(self._set, hooks), module)

    def _set(self, hooks: dict[str, Callable[[Any], Any]], module: ModuleType) -> None:
        for name, hook in hooks.items():
            try:
                wrap(module, name, hook)
            except (AttributeError, TypeError):
                self.missing.append(f"{module.__name__}.{name}")

    @contextmanager
    def recorded(self) -> Iterator[list[Ran]]:
        """Keep copies of what graphs get, and what they give, in the block."""
        self.runs, self._recording = [], True
        try:
            yield self.runs
        finally:
            self._recording = False

    @contextmanager
    def opened(self, traced: Traced) -> Iterator[None]:
        """Keep what is lowered in the block as part of `traced`."""
        self._open.append(traced)
        try:
            yield
        finally:
            self._open.pop()

    def _around_compile(self, compile_fx: Callable[..., Any]) -> Callable[..., Any]:
        def compile_and_keep(model: Any, example_inputs: Any, *args: Any, **kwargs: Any) -> Any:
            if self._open or not isinstance(model, torch.fx.GraphModule):
                return compile_fx(model, example_inputs, *args, **kwargs)
            traced = Traced(copied_graph(model))
            self._open.append(traced)
            try:
                compiled = compile_fx(model, example_inputs, *args, **kwargs)
            finally:
                self._open.pop()
            self.traced.append(traced)
            # What torch makes ahead of time is no function, and is looked at by its type.
            return self._recorder(traced, compiled) if isinstance(compiled, FunctionType) else compiled

        return compile_and_keep

    def _recorder(self, traced: Traced, compiled: Any) -> Any:
        @functools.wraps(compiled)
        def run(*args: Any) -> Any:
            if not self._recording or getattr(compiled, "_boxed_call", False):
                return compiled(*args)
            inputs = cloned(args)
            outputs = compiled(*args)
            self.runs.append(Ran(traced, inputs))
            return outputs

        return run

    def _around_inner(self, compile_inner: Callable[..., Any]) -> Callable[..., Any]:
        def compile_and_keep(gm: Any, example_inputs: Any, *args: Any, **kwargs: Any) -> Any:
            compile_id = str(torch._guards.CompileContext.current_compile_id())
            traced = self._open[-1] if self._open else self._traced_as(compile_id)
            if traced is None:
                return compile_inner(gm, example_inputs, *args, **kwargs)
            kind: Kind = "backward" if kwargs.get("is_backward") else "forward"
            if kwargs.get("is_inference"):
                kind = "inference"
            alike = [one for other in self.traced for one in other.lowered]
            number = sum((one.kind, one.compile_id) == (kind, compile_id) for one in (*alike, *self._lowered))
            lowered = Lowered(traced, kind, compile_id, number)
            self._lowered.append(lowered)
            self._open.append(traced)
            try:
                code = compile_inner(gm, example_inputs, *args, **kwargs)
            finally:
                self._lowered.pop()
                self._open.pop()
            traced.lowered.append(lowered)
            self._of[id(code)] = lowered
            lowered.code = code  # kept, so that its id is not used again
            return code

        return compile_and_keep

    def _traced_as(self, compile_id: str) -> Traced | None:
        """Return what was traced under a compile id: a backward is compiled when it first runs."""
        ids = ((traced, one.compile_id) for traced in reversed(self.traced) for one in traced.lowered)
        return next((traced for traced, one in ids if one == compile_id), None)

    def _around_passes(self, stage: str, run: Callable[..., Any]) -> Callable[..., Any]:
        def run_and_keep(gm: Any, *args: Any, **kwargs: Any) -> Any:
            self._keep(stage, "", gm)
            result = run(gm, *args, **kwargs)
            self._keep(stage, "", gm if result is None else result)
            return result

        return run_and_keep

    def _around_enter(self, enter: Callable[..., Any]) -> Callable[..., Any]:
        def keep_and_enter(observer: Any) -> Any:
            self._passes.append(observer)
            self._keep(observer.subsystem, "", observer.gm)
            return enter(observer)

        return keep_and_enter

    def _around_exit(self, leave: Callable[..., Any]) -> Callable[..., Any]:
        def leave_and_keep(observer: Any, *args: Any) -> Any:
            result = leave(observer, *args)
            self._passes.remove(observer)
            self._keep(observer.subsystem, observer.passname, observer.gm)
            return result

        return leave_and_keep

    def _around_apply(self, apply: Callable[..., Any]) -> Callable[..., Any]:
        def apply_and_keep(entry: Any, match: Any, graph: Any, node: Any) -> Any:
            result = apply(entry, match, graph, node)
            if self._passes:
                stage, name = self._passes[-1].subsystem, pattern_name(entry)
                self._keep(stage, name, graph.owning_module, is_pattern=True)
            return result

        return apply_and_keep

    def _keep(self, stage: str | None, name: str, gm: Any, *, is_pattern: bool = False) -> None:
        """Store a copy of a graph unless it equals the last one; `name` is what made it."""
        if not self._open or not isinstance(gm, torch.fx.GraphModule):
            return
        traced = self._open[-1]
        if stage == "post_grad_passes":
            steps = self._lowered[-1].steps if self._lowered else None
        else:
            steps = traced.joint if stage == "joint_graph_passes" else traced.before
        if steps is None or stage not in PASSES or (steps and text_of(gm) == text_of(steps[-1].graph)):
            return
        steps.append(Step(stage, name if steps else "", copied_graph(gm), is_pattern))

    def _around_lowering(self, init: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(init)

        def init_and_keep(lowering: Any, *args: Any, **kwargs: Any) -> None:
            init(lowering, *args, **kwargs)
            given = signature.bind_partial(lowering, *args, **kwargs).arguments
            if (
                self._lowered
                and type(lowering).__name__ == "GraphLowering"
                and not given.get("is_const_graph")
            ):
                self._lowered[-1].graph = copied_graph(given["gm"])
                self._lowered[-1].lowering = lowering

        return init_and_keep

    def _around_define(self, define: Callable[..., str]) -> Callable[..., str]:
        def define_and_keep(scheduling: Any, text: str, nodes: Any, *args: Any, **kwargs: Any) -> str:
            name = define(scheduling, text, nodes, *args, **kwargs)
            if self._lowered:
                leaves = (leaf for node in nodes if hasattr(node, "get_nodes") for leaf in node.get_nodes())
                self._lowered[-1].launches.append((name, [leaf.get_name() for leaf in leaves]))
            return name

        return define_and_keep

    def _around_module(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def make_and_keep(lowering: Any) -> Any:
            module = make(lowering)
            if self._lowered and self._lowered[-1].lowering is lowering:
                self._lowered[-1].module = module
            return module

        return make_and_keep

    def _around_call(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def call_and_keep(code: Any, inputs: Any) -> Any:
            lowered = self._of.get(id(code)) if self._recording else None
            if lowered is None:
                return call(code, inputs)
            kept = cloned(inputs)
            outputs = call(code, inputs)
            self.runs.append(Ran(lowered, kept))
            return outputs

        return call_and_keep


def runs_alone(graph: Any) -> bool:
    """Whether a graph runs outside of inductor.

    A pattern may have become a function that lowers it, and an operator one that works in place and returns
    nothing (`_foreach_add_`), whose results inductor takes all the same.
    """
    for node in graph.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if hasattr(node.target, "_inductor_lowering_function"):
            return False
        if schema is not None and not schema.returns and node.users:
            return False
    return True


def copied_graph(gm: Any) -> Any:
    """Copy a graph with its names; what it refers to is shared."""
    return torch.fx.GraphModule(gm, copy.deepcopy(gm.graph))


def text_of(gm: Any) -> str:
    """Return what tells two graphs apart: names, targets, arguments."""
    return "\n".join(f"{node.name} {node.target} {node.args} {node.kwargs}" for node in gm.graph.nodes)


def cloned(values: Any) -> list[Any]:
    """Copy tensors as `harness/inputs.clone` does, without their gradients."""
    copies: list[Any] = clone([one.detach() if isinstance(one, torch.Tensor) else one for one in values])
    return copies
