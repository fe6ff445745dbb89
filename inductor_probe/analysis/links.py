"""What belongs to what in a graph: user's line, FX node, scheduler node, kernel, launch, autotuning choice.

Only what is proved is linked, and every link says its proof. Where several are possible they are all named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from inductor_probe.analysis.graph import GraphIndex, buffer_in, index_of, once_per_graph, view_of
from inductor_probe.analysis.linking.computed import Computed, FxLinks, buffer_origins, link_fx
from inductor_probe.analysis.linking.fx_index import fx_index
from inductor_probe.analysis.linking.kernel_fx import kernel_fx
from inductor_probe.analysis.linking.provenance import of_subgraph
from inductor_probe.analysis.linking.steps import NodeStep, node_runs, read_steps
from inductor_probe.analysis.operators import operator
from inductor_probe.model.autotuning import TemplateChoice, Tuning
from inductor_probe.model.code import CppFacts, ExternCall, Kernel, TritonFacts
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout, SchedulerNode
from inductor_probe.model.kernels import KernelLaunch, Passed
from inductor_probe.model.links import Links, NodeLink

_KEYWORD = re.compile(r"\w+=(?!=)")
_BUFFER_NAMES = ("buf", "arg", "primals", "_")


@once_per_graph
def node_steps(graph: CompiledGraph) -> dict[str, NodeStep]:
    """Return where each unfused node of `graph` runs, by its name: what `links` says without the FX graph."""
    index = index_of(graph)
    runs = node_runs(index.nodes, read_steps(graph.code), index.subgraph)
    return {name: runs[name] for name in index.nodes.leaf}


@once_per_graph
def links(graph: CompiledGraph) -> Links:
    """Link every unfused node of `graph`."""
    index = index_of(graph)
    recorded = {
        origin.buffer: of_subgraph(origin, index.subgraph(origin.buffer), index.fx)
        for origin in (graph.record.origins if graph.record else ())
    }
    runs = node_steps(graph)
    fx = fx_index(graph)
    linked = link_fx(graph, fx, runs, recorded) if fx else FxLinks({}, {}, {})
    nodes = {
        name: _link(leaf, runs[name], linked.nodes.get(name, Computed()), index)
        for name, leaf in index.nodes.leaf.items()
    }
    computed = kernel_fx(graph, fx, nodes, linked.nodes)
    return Links(nodes, buffer_origins(index, fx, linked) if fx else {}, computed)


def _link(leaf: SchedulerNode, run: NodeStep, computed: Computed, index: GraphIndex) -> NodeLink:
    steps = (run.step,) if run.step else run.candidates
    names = dict.fromkeys(step.name for step in run.candidates)
    return NodeLink(
        node=leaf.name,
        top=index.nodes.top[leaf.name].name,
        buffers=tuple(buffer.name for buffer in leaf.outputs),
        kernel=run.kernel,
        kernel_proof=run.proof,
        kernel_candidates=() if run.kernel else tuple(names),
        launches=tuple(step.span for step in steps),
        fx=computed.fx,
        fx_proofs=computed.proofs,
        fx_candidates=computed.candidates,
        sources=index.sources(computed.fx or computed.candidates),
    )


@once_per_graph
def launches(graph: CompiledGraph) -> dict[str, tuple[KernelLaunch, ...]]:
    """Return the launches of each generated kernel and the calls of each library kernel, in order.

    What each passes is matched with the kernel's parameters, and with buffers and how they lie.
    """
    if graph.code is None:
        return {}
    index = index_of(graph)
    by_kernel: dict[str, list[KernelLaunch]] = {}
    for launch in graph.code.launches:
        if kernel := index.kernels.get(launch.kernel):
            args = (*kernel.args, *([None] * max(len(launch.args) - len(kernel.args), 0)))
            passed = tuple(
                Passed(arg, text)
                if arg is not None and arg.role == "size"
                else Passed(arg, text, *_passed_buffer(text, index.layouts))
                for arg, text in zip(args, launch.args, strict=False)
            )
            by_kernel.setdefault(launch.kernel, []).append(KernelLaunch(passed, launch.span, launch.keywords))
    for call in graph.code.externs:
        inputs = (text for text in call.args if "=" not in text or text.partition("=")[2] not in call.outputs)
        passed = tuple(
            Passed(None, text, *_passed_buffer(text, index.layouts)) for text in (*inputs, *call.outputs)
        )
        by_kernel.setdefault(call.target, []).append(KernelLaunch(passed, call.span))
    return {name: tuple(calls) for name, calls in by_kernel.items()}


def _passed_buffer(text: str, layouts: dict[str, BufferLayout]) -> tuple[str | None, BufferLayout | None]:
    if keyword := _KEYWORD.match(text):
        text = text[keyword.end() :]
    name = buffer_in(text)
    base = layouts.get(name)
    if name == text:
        known = name.isidentifier() and (base is not None or name.startswith(_BUFFER_NAMES))
        return (name, base) if known else (None, None)
    return (name, view_of(text, base) if base else None) if name.isidentifier() else (None, None)


def linked_tunings(graph: CompiledGraph, tunings: Iterable[Tuning]) -> tuple[Tuning, ...]:
    """Return the tunings of max-autotune with the kernel that each became, where exactly one can be meant.

    A Triton template has the config of its choice in its text; several operations with the same config are
    distinguished by their order. A C++ template is recognised by there being one choice of its kind, a
    library call by its name.
    """
    if graph.code is None:
        return tuple(tunings)
    launched = (
        graph.code.kernel(name) for name in dict.fromkeys(item.kernel for item in graph.code.launches)
    )
    templates = [kernel for kernel in launched if kernel is not None and _is_template(kernel)]
    externs = list(graph.code.externs)
    linked = []
    for tuning in tunings:
        kernels = [(kernel, choice) for kernel in templates if (choice := _choice_of(kernel, tuning))]
        calls = [(call, choice) for call in externs if (choice := _call_of(call, tuning))]
        if kernels and calls and tuning.fastest and tuning.fastest.name == calls[0][1].name:
            linked.append(tuning)  # both a template and a call fit: nothing shows which of them it was
        elif kernels:
            kernel, choice = kernels[0]
            templates.remove(kernel)
            linked.append(replace(tuning, kernel=kernel.name, generated=choice.name))
        elif calls:
            call, choice = calls[0]
            externs.remove(call)
            linked.append(replace(tuning, kernel=call.target, generated=choice.name))
        else:
            linked.append(tuning)
    return tuple(linked)


def _is_template(kernel: Kernel) -> bool:
    match kernel.details:
        case TritonFacts(heuristic="template") | CppFacts(templates=(_, *_)):
            return True
    return False


def _choice_of(kernel: Kernel, tuning: Tuning) -> TemplateChoice | None:
    match kernel.details:
        case TritonFacts(config=config):
            written = {name: value.strip("'\"") for name, value in config}
            for choice in tuning.choices:
                known = [(name, value) for name, value in choice.config if name in written]
                if len(known) > 2 and all(written[name] == value for name, value in known):
                    return choice
        case CppFacts():
            choices = [choice for choice in tuning.choices if choice.kind == "cpp"]
            return choices[0] if len(choices) == 1 else None
    return None


def _call_of(call: ExternCall, tuning: Tuning) -> TemplateChoice | None:
    called = operator(call.target).name
    externs = (choice for choice in tuning.choices if choice.kind == "extern")
    return next((choice for choice in externs if operator(choice.name).name == called), None)
