"""A buffer that a kernel computes wrong: which node in the kernel, and which layer of the compiler.

The FX nodes that the kernel computes are compiled alone, on the right values of what it reads: once as they
are, once with each of their values stored, so that each is judged on the operands that the kernel had for
it, and once for each change of the compiler that may make it right.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from inductor_probe.accuracy.bodies import Bodies, NotEvaluableError
from inductor_probe.accuracy.faults import Fault, operator_of, original_operator, user_line
from inductor_probe.accuracy.judgement import RIGHT, WRONG, Judged, judge
from inductor_probe.accuracy.launches import WrongBuffer, stands_for
from inductor_probe.accuracy.shadow import Shadow
from inductor_probe.accuracy.stages import Lowered, cloned
from inductor_probe.accuracy.values import Values

_NO_PASSES = {"use_post_grad_passes": False}
COMPILER = {"aot_inductor.debug_compile": True}
"""Without optimisation: `-O0` (torch/_inductor/cpp_builder.py, _get_optimization_cflags)."""
SCALAR, UNFUSED = {"cpp.simdlen": 1}, {"max_fusion_size": 1}


class Part:
    """The nodes of a graph that a launch computes, as a graph that reads what the launch reads.

    Attributes:
        nodes: in the order of the graph. reads: nodes whose values it reads, and their `inputs`.
        targets: the nodes whose values the wrong buffers hold.
    """

    def __init__(
        self, lowered: Lowered, inputs: list[Any], wrong: Sequence[WrongBuffer], written: Sequence[str]
    ) -> None:
        nodes = {node.name: node for node in lowered.reference.graph.nodes}
        stands = stands_for(lowered)
        stored = {node for buffer, node in stands.node.items() if buffer not in written}
        self.targets = [_source(nodes[one.node]) for one in wrong]
        self.nodes: list[Any] = []
        self.reads: list[Any] = []
        seen: set[str] = set()
        for target in self.targets:
            self._collect(target, stored, seen)
        order = {name: place for place, name in enumerate(nodes)}
        self.nodes.sort(key=lambda node: order[node.name])
        known = Values(lowered.reference, inputs, {node.name for node in self.reads})
        self.inputs: list[Any] = [known.value(node.name).eager for node in self.reads]  # type: ignore[union-attr]
        self._root = lowered.reference

    def _collect(self, node: Any, stored: set[str], seen: set[str]) -> None:
        """Find what a node is computed from, as far as the kernel computes it."""
        if node.name in seen:
            return
        seen.add(node.name)
        leaf = (
            node.op in ("placeholder", "get_attr") or node.name in stored or node.target is operator.getitem
        )
        if leaf and node not in self.targets:
            self.reads.append(node)
            return
        for operand in node.all_input_nodes:
            self._collect(operand, stored, seen)
        self.nodes.append(node)

    def graph(self, outputs: Sequence[Any]) -> Any:
        """Return the graph, with some of its nodes as outputs."""
        made = torch.fx.Graph()
        of: dict[Any, Any] = {}
        for node in self.reads:
            of[node] = made.placeholder(node.name)
            of[node].meta = dict(node.meta)
        for node in self.nodes:
            of[node] = made.node_copy(node, lambda one: of[one])
        end = made.output(tuple(of[node] for node in outputs))
        end.meta["user_visible_output_idxs"] = list(range(len(outputs)))
        return torch.fx.GraphModule(self._root, made)

    def depends(self, node: Any, others: Iterable[Any]) -> bool:
        """Whether a node is computed from one of others."""
        wanted, left, seen = {*others}, [node], set[Any]()
        while left:
            one = left.pop()
            for operand in one.all_input_nodes:
                if operand in wanted:
                    return True
                if operand not in seen and operand in self.nodes:
                    seen.add(operand)
                    left.append(operand)
        return False

    def values(self) -> list[Any]:
        """Return the nodes whose value a kernel can store: no views, and no tuples."""
        return [
            node
            for node in self.nodes
            if isinstance(node.meta.get("val"), torch.Tensor) and not getattr(node.target, "is_view", False)
        ]


def compiled(
    graph: Any, inputs: Sequence[Any], patches: dict[str, Any] | None = None
) -> Callable[[], list[Any]]:
    """Compile a graph for its inputs with some settings; return what runs it on copies of them."""
    from torch._inductor import config  # noqa: PLC0415 - not before torch is set up
    from torch._inductor.compile_fx import compile_fx_inner  # noqa: PLC0415
    from torch._inductor.utils import BoxedBool  # noqa: PLC0415
    from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: PLC0415
    from torch.fx.passes.fake_tensor_prop import FakeTensorProp  # noqa: PLC0415

    settings = {**_NO_PASSES, "fx_graph_cache": False, **(patches or {})}
    settings = {name: value for name, value in settings.items() if name in config._config}
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [fake.from_tensor(value) if isinstance(value, torch.Tensor) else value for value in inputs]
    FakeTensorProp(graph, fake).propagate_dont_convert_inputs(*fakes)
    with config.patch(settings), torch.no_grad():
        code = compile_fx_inner(graph, fakes, is_inference=True, cudagraphs=BoxedBool(False))
    return lambda: list(code(cloned(inputs)))


def explain(
    lowered: Lowered, inputs: list[Any], wrong: Sequence[WrongBuffer], written: Sequence[str]
) -> list[Fault]:
    """Say which nodes of a launch are wrong, and which layer makes each so: not what follows from those.

    Args:
        wrong: the buffers that it writes wrong. written: all that it writes.
    """
    order = {node.name: place for place, node in enumerate(lowered.reference.graph.nodes)}
    wrong = sorted(wrong, key=lambda one: order[one.node])
    first = wrong[0]
    if _body_of(lowered, first) is None:  # a function of a library, called as the lowering says
        fault = _fault(lowered, first, lowered_node(lowered, first))
        fault.layer = "lowering"
        fault.steps.append(("call of a library", _shown(first.judged.compiled), WRONG))
        return [fault]
    part, faults = Part(lowered, inputs, wrong, written), list[Fault]()
    found = _inside(part)
    for node, judged in found.items():
        mine = next(
            (
                one
                for one, target in zip(wrong, part.targets, strict=True)
                if target is node or part.depends(target, [node])
            ),
            first,
        )
        fault = _fault(lowered, mine, node)
        fault.judged = judged
        faults.append(_layered(lowered, inputs, part, mine, fault, node))
    blamed = [*found]
    for one, target in zip(wrong, part.targets, strict=True):
        if target not in blamed and not part.depends(target, blamed):
            blamed.append(target)
            faults.append(_layered(lowered, inputs, part, one, _fault(lowered, one, target), target))
    return faults


def lowered_node(lowered: Lowered, wrong: WrongBuffer) -> Any:
    """Return the FX node whose value a buffer holds."""
    return _source(next(node for node in lowered.reference.graph.nodes if node.name == wrong.node))


def _fault(lowered: Lowered, wrong: WrongBuffer, node: Any) -> Fault:
    fault = Fault("codegen", operator_of(node), wrong.judged, fx=node.name, user=user_line(node))
    original = original_operator(node)
    fault.part_of = original if original != fault.operator else ""
    fault.node, fault.buffer, fault.kernel, fault.wrapper_line = (
        wrong.operation,
        wrong.buffer,
        wrong.kernel,
        wrong.line,
    )
    fault.graph = lowered.key
    fault.steps = [("graph of FX", _shown(wrong.judged.eager), RIGHT)]
    return fault


def _body_of(lowered: Lowered, wrong: WrongBuffer) -> Any:
    operations = (one for scheduled in lowered.lowering.scheduler.nodes for one in scheduled.get_nodes())
    return getattr(next(one for one in operations if one.get_name() == wrong.operation), "_body", None)


def _layered(  # noqa: PLR0917 - what is known of a fault
    lowered: Lowered, inputs: list[Any], part: Part, wrong: WrongBuffer, fault: Fault, node: Any
) -> Fault:
    """Find the layer that makes a node wrong: its value in the loop body, and in code made otherwise."""
    body_wrong = _body(lowered, inputs, wrong, fault)
    fault.steps.append(("kernel", _shown(wrong.judged.compiled), WRONG))
    if fault.judged is not wrong.judged:
        shown = f"{node.name} = {operator_of(node)}, stored"
        fault.steps.append((shown, _shown(fault.judged.compiled), WRONG))
    _try(part, node, fault)
    right = {name for _, name, _, is_right in fault.trials if is_right}
    if body_wrong:
        fault.layer = "lowering"
    elif "inductor.aot_inductor.debug_compile=True" in right:
        fault.layer = "compiler"
    elif "inductor.max_fusion_size=1" in right and "inductor.cpp.simdlen=1" not in right:
        fault.layer = "scheduling"
    return fault


def _body(lowered: Lowered, inputs: list[Any], wrong: WrongBuffer, fault: Fault) -> bool:
    """Evaluate the loop body at the wrong element; note the step, and return whether it is wrong."""
    judged = wrong.judged
    try:
        value = torch.as_tensor(Bodies(lowered, inputs).value(wrong.buffer, judged.index))
    except Exception as error:
        why = str(error) if isinstance(error, NotEvaluableError) else f"{type(error).__name__}: {error}"
        fault.steps.append(("loop body", f"not evaluated: {why}"[:120], "unknown"))
        return False
    eager = torch.tensor(judged.eager, dtype=wrong.compiled.dtype)
    reference = torch.tensor(judged.reference, dtype=torch.float64)
    is_wrong = judge(eager, value.to(eager.dtype), reference).verdict == WRONG
    fault.steps.append(("loop body", _shown(value.item()), WRONG if is_wrong else RIGHT))
    return is_wrong


def _inside(part: Part) -> dict[Any, Judged]:
    """Return the nodes of a launch whose values are wrong for the operands that it had for them."""
    nodes = part.values()
    try:
        values = compiled(part.graph(nodes), part.inputs)()
    except Exception:
        return {}
    of = dict(zip(nodes, values, strict=True)) | dict(zip(part.reads, part.inputs, strict=True))
    judged = {node: _alone(node, of, set(part.reads)) for node in nodes}
    return {node: one for node, one in judged.items() if one is not None and one.verdict == WRONG}


def _alone(node: Any, of: dict[Any, Any], exact: set[Any]) -> Judged | None:
    """Judge a node on operands that a kernel had for it."""

    def run(seed: int | None) -> tuple[Any, Shadow]:
        mode = Shadow(seed)
        with torch.no_grad(), mode:
            made: dict[Any, Any] = {}

            def value(one: Any) -> Any:
                if one not in made:
                    if one in of:
                        made[one] = cloned([of[one]])[0]
                        if one not in exact:
                            mode.move(made[one])
                    else:  # a view of something
                        made[one] = call(one)
                return made[one]

            def call(one: Any) -> Any:
                args, kwargs = torch.fx.node.map_arg((one.args, one.kwargs), value)
                return one.target(*args, **kwargs)

            result = call(node)
        return result, mode

    try:
        eager, mode = run(None)
        noisy: dict[int, torch.Tensor] = {}

        def noise(seed: int) -> torch.Tensor:
            if seed not in noisy:
                result, moved = run(seed)
                noisy[seed] = moved.of(result)
            return noisy[seed]

        return judge(eager, of[node], mode.of(eager), noise, strict=True)
    except Exception:
        return None


def _try(part: Part, node: Any, fault: Fault) -> None:
    """Compile the part with each change; note which make it right."""
    graph = part.graph([node])
    with Shadow() as mode, torch.no_grad():
        eager = torch.fx.Interpreter(graph).run(*cloned(part.inputs))[0]
    reference = mode.of(eager)
    for patches in ({}, SCALAR, COMPILER, UNFUSED):
        if "cpp.simdlen" in patches and eager.is_cuda:
            continue
        try:
            value = compiled(part.graph([node]), part.inputs, patches)()[0]
        except Exception:  # noqa: S112 - it is not right, whatever torch says
            continue
        right = judge(eager, value, reference).verdict != WRONG
        if patches:
            name = ", ".join(f"inductor.{key}={value}" for key, value in patches.items())
            fault.trials.append(("setting", name, "kernel", right))
        elif right:  # the fault needs the rest of the graph around it
            fault.steps.append(("its nodes compiled alone", _shown(value[fault.judged.index].item()), RIGHT))
            return


def _source(node: Any) -> Any:
    """Return the value that a copy at the end of a graph writes to an input."""
    return node.args[1] if operator_of(node) in ("aten.copy_", "aten.copy") else node


def _shown(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)
