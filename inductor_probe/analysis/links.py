"""What belongs to what in a graph: user's line, FX node, scheduler node, kernel, launch, autotuning choice.

Only what is proved is linked, and every link says its proof. Where several are possible they are all named.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from inductor_probe.analysis.graph import GraphIndex, buffer_in, index_of, once_per_graph, view_of
from inductor_probe.analysis.index import parse_expression
from inductor_probe.analysis.linking.computed import Computed, FxLinks, buffer_origins, link_fx
from inductor_probe.analysis.linking.fx_index import fx_index
from inductor_probe.analysis.linking.kernel_fx import kernel_fx
from inductor_probe.analysis.linking.provenance import of_subgraph
from inductor_probe.analysis.linking.steps import NodeStep, node_runs, read_steps
from inductor_probe.analysis.names import (
    became,
    fx_called,
    fx_on_lines,
    kernels_for,
    lines_called,
    nodes_called,
)
from inductor_probe.analysis.operators import operator
from inductor_probe.model.autotuning import TemplateChoice, Tuning
from inductor_probe.model.code import CppFacts, ExternCall, Kernel, TritonFacts
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout, SchedulerNode
from inductor_probe.model.kernels import KernelLaunch, Passed
from inductor_probe.model.links import Links, NodeLink
from inductor_probe.model.record import collected
from inductor_probe.model.remark import Subject

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


def nodes_of(graph: CompiledGraph, subject: Subject) -> tuple[str, ...]:
    """Return the unfused nodes that belong to what a name means: of a buffer the one that writes it."""
    index, linked = index_of(graph), links(graph)
    match subject.type:
        case "node":
            return nodes_called(graph, subject.name)
        case "buffer":
            producer = index.nodes.producer.get(subject.name) or index.before.producer.get(subject.name)
            return (producer,) if producer else ()
        case "kernel":
            return tuple(link.node for link in linked.of_kernel(subject.name))
    fx = fx_of(graph, subject)
    if not fx:
        made = kernels_for(graph, subject.name)
        return tuple(link.node for kernel in made for link in linked.of_kernel(kernel))
    return tuple(name for name, link in linked.nodes.items() if not fx.isdisjoint(link.fx))


def fx_of(graph: CompiledGraph, subject: Subject) -> frozenset[str]:
    """Return the FX nodes that an FX node, a line or an operator means, those too that they became."""
    match subject.type:
        case "fx":
            fx: tuple[str, ...] = (subject.name,)
        case "line":
            fx = fx_on_lines(graph, lines_called(graph, subject.name))
        case "operator":
            fx = fx_called(graph, subject.name) or became(graph, subject.name)
        case _:
            fx = ()
    after = graph.provenance.pre_to_post if graph.provenance else {}
    return frozenset(fx).union(*(after.get(name, ()) for name in fx))


def kernels_of(graph: CompiledGraph, subject: Subject) -> tuple[str, ...]:
    """Return the kernels that compute what a name means, as far as that is proved."""
    if subject.type == "kernel":
        return (subject.name,)
    linked = links(graph)
    of_nodes = (linked.nodes[node].kernel for node in nodes_of(graph, subject) if node in linked.nodes)
    of_fx = (pair.kernel for name in fx_of(graph, subject) for pair in linked.kernels_of_fx(name))
    return tuple(dict.fromkeys(filter(None, (*of_nodes, *of_fx))))


@once_per_graph
def launches(graph: CompiledGraph) -> dict[str, tuple[KernelLaunch, ...]]:
    """Return the launches of each generated kernel and the calls of each library kernel, in order.

    What each passes is matched with the kernel's parameters, and with buffers and how they lie.
    """
    if graph.code is None:
        return {}
    index = index_of(graph)
    made: list[tuple[str, KernelLaunch]] = []
    for launch in graph.code.launches:
        if kernel := index.kernels.get(launch.kernel):
            args = (*kernel.args, *([None] * max(len(launch.args) - len(kernel.args), 0)))
            passed = tuple(
                Passed(arg, text)
                if arg is not None and arg.role == "size"
                else Passed(arg, text, *_passed_buffer(text, index.layouts))
                for arg, text in zip(args, launch.args, strict=False)
            )
            made.append((launch.kernel, KernelLaunch(passed, launch.span, launch.keywords)))
    for call in graph.code.externs:
        # In the order in which they stand; what the call returns comes last.
        named = {text.partition("=")[2] if _KEYWORD.match(text) else text for text in call.args}
        texts = (*call.args, *(name for name in call.outputs if name not in named))
        passed = tuple(Passed(None, text, *_passed_buffer(text, index.layouts)) for text in texts)
        made.append((call.target, KernelLaunch(passed, call.span)))
    return collected(made)


def tensors_in(
    passed: Passed, layouts: Mapping[str, BufferLayout]
) -> Iterator[tuple[str, BufferLayout | None]]:
    """Yield the buffers in what is passed for one parameter, with how they lie: several of a list."""
    if passed.buffer is not None:
        yield passed.buffer, passed.layout
        return
    keyword = _KEYWORD.match(passed.text)
    text = passed.text[keyword.end() :] if keyword else passed.text
    if text.startswith(("[", "(")):
        try:
            node = parse_expression(text)
        except ValueError:
            return
        for item in node.elts if isinstance(node, ast.List | ast.Tuple) else ():
            name, layout = _passed_buffer(ast.unparse(item), layouts)
            if name is not None:
                yield name, layout


def _passed_buffer(text: str, layouts: Mapping[str, BufferLayout]) -> tuple[str | None, BufferLayout | None]:
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
