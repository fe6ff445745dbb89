"""Which choice of an autotuned operation became which kernel of the wrapper."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from inductor_probe.analysis.operators import operator
from inductor_probe.model.autotuning import TemplateChoice, Tuning
from inductor_probe.model.code import CppFacts, ExternCall, Kernel, TritonFacts
from inductor_probe.model.debug_dir import CompiledGraph


def linked_tunings(graph: CompiledGraph, tunings: Iterable[Tuning]) -> tuple[Tuning, ...]:
    """Return the tunings with the kernel that each became, where exactly one can be meant.

    A Triton template has the config of its choice in its text; several operations with the same config are
    told apart by their order. A C++ template is told by there being one choice of its kind, a library call by
    its name.
    """
    if graph.code is None:
        return tuple(tunings)
    launched = (
        graph.code.kernel(name) for name in dict.fromkeys(launch.kernel for launch in graph.code.launches)
    )
    templates = [kernel for kernel in launched if kernel is not None and _is_template(kernel)]
    externs = list(graph.code.externs)
    linked = []
    for tuning in tunings:
        fits = [
            (kernel.name, choice.name)
            for kernel in templates
            if (choice := _choice_of(kernel, tuning)) is not None
        ]
        calls = [
            (call.target, choice.name) for call in externs if (choice := _call_of(call, tuning)) is not None
        ]
        found = fits[0] if fits else calls[0] if calls else None
        if found is None or (fits and calls and _is_call(tuning, calls[0][1])):
            linked.append(tuning)  # both a template and a call fit: nothing tells which of them it was
            continue
        if fits:
            templates = [kernel for kernel in templates if kernel.name != found[0]]
        else:
            taken = next(call for call in externs if call.target == found[0])
            externs.remove(taken)
        linked.append(replace(tuning, kernel=found[0], generated=found[1]))
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
                if choice.config and len(known) > 2 and all(written[name] == value for name, value in known):
                    return choice
        case CppFacts():
            own = [choice for choice in tuning.choices if choice.kind == "cpp"]
            return own[0] if len(own) == 1 else None
    return None


def _call_of(call: ExternCall, tuning: Tuning) -> TemplateChoice | None:
    called = operator(call.target).name
    externs = (choice for choice in tuning.choices if choice.kind == "extern")
    return next((choice for choice in externs if operator(choice.name).name == called), None)


def _is_call(tuning: Tuning, name: str) -> bool:
    """Whether the fastest choice is that library call: then a template that fits may be another's."""
    return tuning.fastest is not None and tuning.fastest.name == name
