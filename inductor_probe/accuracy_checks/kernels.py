"""A buffer that a kernel computes wrong: which node in the kernel, and which layer of the compiler.

The FX nodes that the kernel computes are compiled alone, on the right values of what it reads: once as they
are, once with each of their values stored, so that each is judged on the operands that the kernel had for
it, and once for each change of the compiler that may make it right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch

from inductor_probe.accuracy_checks.bodies import Bodies, NotEvaluableError
from inductor_probe.accuracy_checks.changes import SCALAR, UNFUSED, UNOPTIMISED, of_kernels
from inductor_probe.accuracy_checks.faults import Fault, operator_of, original_operator, user_line
from inductor_probe.accuracy_checks.judgement import RIGHT, WRONG, Judged, judge
from inductor_probe.accuracy_checks.launches import WrongBuffer
from inductor_probe.accuracy_checks.parts import Part, source
from inductor_probe.accuracy_checks.shadow import Shadow
from inductor_probe.accuracy_checks.stages import Lowered, Stages, Traced, cloned, copied_graph
from inductor_probe.accuracy_checks.values import Interpreter
from inductor_probe.model.accuracy import ALONE, BESIDE

_MOST_STORED = 8
_SETTINGS = {"use_post_grad_passes": False, "fx_graph_cache": False, "cpp_wrapper": False}


def compiled(graph: Any, inputs: Sequence[Any]) -> Callable[[], list[Any]]:
    """Compile a graph for its inputs; return what runs it on copies of them."""
    from torch._inductor import config  # noqa: PLC0415 - not before torch is set up
    from torch._inductor.compile_fx import compile_fx_inner  # noqa: PLC0415
    from torch._inductor.utils import BoxedBool  # noqa: PLC0415
    from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: PLC0415
    from torch.fx.passes.fake_tensor_prop import FakeTensorProp  # noqa: PLC0415

    settings = {name: value for name, value in _SETTINGS.items() if name in config._config}
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [fake.from_tensor(value) if isinstance(value, torch.Tensor) else value for value in inputs]
    FakeTensorProp(graph, fake).propagate_dont_convert_inputs(*fakes)
    with config.patch(settings), torch.no_grad():
        code = compile_fx_inner(graph, fakes, is_inference=True, cudagraphs=BoxedBool(False))
    return lambda: list(code(cloned(inputs)))


def with_python_wrapper(of: Lowered, inputs: list[Any], stages: Stages) -> Lowered:
    """Return a graph compiled again, for its inputs, with kernels that are called one after the other."""
    traced = Traced(of.graph)
    with stages.opened(traced):
        compiled(copied_graph(of.graph), inputs)
    [made] = traced.lowered
    made.compile_id, made.kind, made.number = of.compile_id, of.kind, of.number
    return made


def explain(
    lowered: Lowered, inputs: list[Any], wrong: Sequence[WrongBuffer], part: Part, stages: Stages
) -> list[Fault]:
    """Say which nodes of a launch are wrong, and which layer makes each so: not what follows from those.

    Args:
        wrong: the buffers that it writes wrong. part: what it computes, with those as targets.
    """
    first = wrong[0]
    if _body_of(lowered, first) is None:  # a function of a library, called as the lowering says
        fault = _fault(lowered, first, lowered_node(lowered, first))
        fault.layer = "lowering"
        eager, compiled_ = first.judged.eager, first.judged.compiled
        fault.steps = [("graph of FX", _shown(eager), RIGHT), ("call of a library", _shown(compiled_), WRONG)]
        return [fault]
    faults = list[Fault]()
    found, stored, alone = _inside(part, stages)
    whole = _Loops(lowered, inputs)
    for node, judged in found.items():
        pairs = zip(wrong, part.targets, strict=True)
        mine = next((one for one, target in pairs if target is node or part.depends(target, [node])), first)
        fault = _fault(lowered, mine, node)
        fault.judged = judged
        faults.append(_layered(part, fault, node, stored, mine))
    blamed = [*found]
    for one, target in zip(wrong, part.targets, strict=True):
        if target in blamed or part.depends(target, blamed):
            continue
        blamed.append(target)
        fault = _layered(part, _fault(lowered, one, target), target, whole, one)
        if fault.right_alone and (operand := _in_context(lowered, inputs, part, target)):
            node, judged = operand
            fault = _fault(lowered, one, node)
            fault.judged, fault.right_alone = judged, True
            fault.steps = _steps(fault, stored.step(node, judged.index))
            if node in alone:
                fault.steps.append((ALONE, _shown(alone[node][judged.index].item()), RIGHT))
        elif fault.right_alone:
            beside = [operator_of(one) for one in part.values() if part.depends(target, [one])]
            fault.steps.append((BESIDE, ", ".join(dict.fromkeys(beside)), "unknown"))
        faults.append(fault)
    return faults


class _Loops:
    """The loop bodies of a graph, by the FX nodes that its buffers stand for."""

    def __init__(self, lowered: Lowered | None, inputs: list[Any]) -> None:
        self._lowered, self._inputs = lowered, inputs
        self._bodies: Bodies | None = None

    def step(self, node: Any, index: tuple[int, ...]) -> tuple[str, str, str]:
        """Evaluate the body that computes a node, at one element; say whether it is what eager has there."""
        if self._lowered is None:
            return "loop body", "not evaluated", "unknown"
        try:
            self._bodies = self._bodies or Bodies(self._lowered, self._inputs)
            value, right = self._bodies.value_of(node.name, index)
        except Exception as error:  # an operation that is new to us: nothing is known of the body
            why = str(error) if isinstance(error, NotEvaluableError) else f"{type(error).__name__}: {error}"
            return "loop body", f"not evaluated: {why}"[:120], "unknown"
        judged = judge(right[index], torch.as_tensor(value).to(right.dtype))
        return "loop body", _shown(torch.as_tensor(value).item()), WRONG if judged.verdict == WRONG else RIGHT


def lowered_node(lowered: Lowered, wrong: WrongBuffer) -> Any:
    """Return the FX node whose value a buffer holds."""
    return source(next(node for node in lowered.reference.graph.nodes if node.name == wrong.node))


def _fault(lowered: Lowered, wrong: WrongBuffer, node: Any) -> Fault:
    # A write to a view has become an operator without a line: that of what is written, then.
    lines = map(user_line, (node, *reversed(node.all_input_nodes)))
    line = next((one for one in lines if one is not None), None)
    fault = Fault("codegen", operator_of(node), wrong.judged, fx=node.name, user=line)
    original = original_operator(node)
    fault.part_of = original if original != fault.operator else ""
    fault.node, fault.buffer, fault.kernel = wrong.operation, wrong.buffer, wrong.kernel
    fault.graph = lowered.key
    return fault


def _body_of(lowered: Lowered, wrong: WrongBuffer) -> Any:
    operations = (one for scheduled in lowered.lowering.scheduler.nodes for one in scheduled.get_nodes())
    return getattr(next(one for one in operations if one.get_name() == wrong.operation), "_body", None)


def _layered(part: Part, fault: Fault, node: Any, loops: _Loops, wrong: WrongBuffer) -> Fault:
    """Find the layer that makes a node wrong: its value in the loop body, and in code made otherwise."""
    body = loops.step(node, fault.judged.index)
    fault.steps = _steps(fault, body)
    _try(part, node, fault)
    right = {name for _, name, _, is_right in fault.trials if is_right}
    if body[2] == WRONG:
        fault.layer = "lowering"
    elif right & {*UNOPTIMISED.values()}:
        fault.layer = "compiler"
    elif UNFUSED in right and SCALAR not in right:
        fault.layer = "scheduling"
    return fault


def _steps(fault: Fault, body: tuple[str, str, str]) -> list[tuple[str, str, str]]:
    eager, made = _shown(fault.judged.eager), _shown(fault.judged.compiled)
    return [("graph of FX", eager, RIGHT), body, ("kernel", made, WRONG)]


def _in_context(lowered: Lowered, inputs: list[Any], part: Part, target: Any) -> tuple[Any, Judged] | None:
    """Return what is wrong first of what a target is computed from, where the whole graph is compiled.

    What is stored may change what is fused: all at once first, then one after the other.
    """
    nodes = [node for node in part.values() if part.depends(target, [node])]
    for stored in (nodes, *([node] for node in nodes[:_MOST_STORED] if len(nodes) > 1)):
        for found in _wrong_in_context(lowered, inputs, part, stored).items():
            return found
    return None


def _wrong_in_context(
    lowered: Lowered, inputs: list[Any], part: Part, stored: Sequence[Any]
) -> dict[Any, Judged]:
    whole = copied_graph(lowered.reference)
    nodes = {node.name: node for node in whole.graph.nodes}
    wanted = [*stored, *(node for node in part.reads if node.op == "call_function")]
    end = nodes["output"]
    had = len(end.args[0])
    end.args = ((*end.args[0], *(nodes[node.name] for node in wanted)),)
    end.meta["user_visible_output_idxs"] = list(range(len(end.args[0])))
    try:
        values = compiled(whole, inputs)()[had:]
    except Exception:  # torch may not compile it so
        return {}
    read = dict(zip(part.reads, part.inputs, strict=True))
    return _wrong_alone(stored, read | dict(zip(wanted, values, strict=True)), part)


def _wrong_alone(nodes: Sequence[Any], of: dict[Any, Any], part: Part) -> dict[Any, Judged]:
    """Return the nodes that are wrong for the operands that they had."""
    judged = {node: _alone(node, of, set(part.reads)) for node in nodes}
    return {node: one for node, one in judged.items() if one is not None and one.verdict == WRONG}


def _inside(part: Part, stages: Stages) -> tuple[dict[Any, Judged], _Loops, dict[Any, Any]]:
    """Return the nodes of a launch that are wrong for the operands that it had, loop bodies, all values."""
    nodes = part.values()
    graph = part.graph(nodes)
    traced = Traced(graph)
    try:
        with stages.opened(traced):
            run = compiled(graph, part.inputs)
        values = run()
    except Exception:  # torch may not compile a part as it does the whole
        return {}, _Loops(None, []), {}
    of = dict(zip(nodes, values, strict=True)) | dict(zip(part.reads, part.inputs, strict=True))
    found = _wrong_alone(nodes, of, part)
    return found, _Loops(traced.lowered[0] if traced.lowered else None, part.inputs), of


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
        eager = Interpreter(graph).run(*cloned(part.inputs))[0]
    reference = mode.of(eager)
    for change in (None, *of_kernels(operator_of(node), eager.device.type)):
        try:
            with change.applied() if change else nullcontext():
                value = compiled(part.graph([node]), part.inputs)()[0]
        except Exception:  # noqa: S112 - it is not right, whatever torch says
            continue
        right = judge(eager, value, reference).verdict != WRONG
        if change:
            fault.trials.append((change.kind, change.name, "kernel", right))
        elif right:  # the fault needs the rest of the graph around it
            fault.right_alone = True
            fault.steps.append((ALONE, _shown(value[fault.judged.index].item()), RIGHT))
            return


def _shown(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)
