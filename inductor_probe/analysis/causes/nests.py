"""Which loop nest of a C++ kernel a decision about vectorisation is about.

A function `cpp_fused_add_sum_0` holds the loop nests of one `KernelGroup` (torch/_inductor/codegen/cpp.py),
in the order in which `CppScheduling` generated them, and the recorder writes a decision for each. So the
decisions of a kernel belong to its nests in order, if there are as many and each nest is what its decision
says:

    decisions  op0 vectorised, op1 scalar          nests  vectorised (line 3), scalar (line 9)   -> 0, 1
    decisions  op0 vectorised, op1 scalar          nests  scalar, vectorised                     -> not known

Text that comes out equal is one function, which is launched several times: it has as many decisions for each
nest.
"""

from __future__ import annotations

from inductor_probe.analysis.graph import index_of, once_per_graph
from inductor_probe.analysis.links import links
from inductor_probe.model.code import CppFacts
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision
from inductor_probe.model.span import Span


def nest_of(graph: CompiledGraph, decision: Decision) -> tuple[str, int] | None:
    """Return kernel and place (from 0) of the loop nest that a decision is about; None where not known.

    Another decision is about the nest of those nodes whose vectorisation was decided together.
    """
    if _is_of_nest(decision):
        return _nests(graph).get(decision.number)
    return _nests_of_groups(graph).get(decision.subjects) if decision.subject_type == "node" else None


def decisions_of_nests(graph: CompiledGraph, kernel: str) -> tuple[Decision, ...]:
    """Return the decision about each loop nest of a kernel, in order; none where that is not known.

    Of a kernel that is launched several times they are those for its first launch.
    """
    first: dict[int, Decision] = {}
    for decision in decisions_of_kernel(graph, kernel):
        if nest := _nests(graph).get(decision.number):
            first.setdefault(nest[1], decision)
    return tuple(first.values())


def decisions_of_kernel(graph: CompiledGraph, kernel: str) -> tuple[Decision, ...]:
    """Return the decisions about loop nests of a kernel, also where it is not known which is about which."""
    return tuple(_by_kernel(graph).get(kernel, ()))


def vector_bits(graph: CompiledGraph, kernel: str, details: CppFacts) -> int | None:
    """Return the width of the vectors of a kernel: as recorded, else as its text shows it."""
    widths = (decision.operand("bit_width") for decision in decisions_of_kernel(graph, kernel))
    return next((width for width in widths if isinstance(width, int)), details.vector_bits)


def nest_span(graph: CompiledGraph, kernel: str, place: int) -> Span | None:
    """Return the lines of `output_code.py` that a loop nest of a kernel stands on."""
    defined = index_of(graph).kernels.get(kernel)
    if defined is None or defined.span is None or not isinstance(defined.details, CppFacts):
        return None
    nest = defined.details.decided_nests[place]
    # Lines of a nest are those of the kernel's source, whose first stands where its span begins.
    above = defined.span.first - 1
    return Span(defined.span.path, above + nest.line, above + nest.last)


def _is_of_nest(decision: Decision) -> bool:
    """Whether it is the decision that each nest has: scalar, or vectorised."""
    return decision.kind == "vectorisation" and "scalar" in decision.question


@once_per_graph
def _by_kernel(graph: CompiledGraph) -> dict[str, list[Decision]]:
    linked = links(graph)
    kernels: dict[str, list[Decision]] = {}
    for decision in sorted(graph.decided, key=lambda decision: decision.number):
        if _is_of_nest(decision) and not decision.speculative:
            names = {link.kernel for link in linked.of_nodes(decision.names)}
            if len(names) == 1 and (kernel := names.pop()):
                kernels.setdefault(kernel, []).append(decision)
    return kernels


@once_per_graph
def _nests_of_groups(graph: CompiledGraph) -> dict[tuple[tuple[str, ...], ...], tuple[str, int]]:
    nests = _nests(graph)
    decisions = [decision for group in _by_kernel(graph).values() for decision in group]
    return {decision.subjects: nests[decision.number] for decision in decisions if decision.number in nests}


@once_per_graph
def _nests(graph: CompiledGraph) -> dict[int, tuple[str, int]]:
    nests: dict[int, tuple[str, int]] = {}
    defined = index_of(graph).kernels
    for kernel, decisions in _by_kernel(graph).items():
        details = defined[kernel].details if kernel in defined else None
        looping = [decision for decision in decisions if decision.cause != "no-loops"]
        if not isinstance(details, CppFacts):
            continue
        # Of a nest of tiles and other loops the text shows that it has vectors, not always that none is full.
        have_vectors = [nest.has_vectors for nest in details.decided_nests]
        generated = [decision.outcome != "scalar" for decision in looping]
        if have_vectors and generated == have_vectors * (len(looping) // len(have_vectors)):
            nests |= {
                decision.number: (kernel, number % len(have_vectors))
                for number, decision in enumerate(looping)
            }
    return nests
