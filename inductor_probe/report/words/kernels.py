"""Words for what the text of a kernel says: its facts by name."""

from __future__ import annotations

from collections.abc import Iterator

from inductor_probe.model.code import CppFacts, Pairs, TritonFacts
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.profile import ClockProblem
from inductor_probe.report.units import folded_names

_CLOCK_PROBLEMS = {
    "no-function": "its text defines no function in a form that is known",
    "nest-inside": "line {line} of it: the loop nest to line {last} does not stand by itself",
    "not-compiled": "its copy does not compile: {error}",
    "differs": "its copy computes something else",
}


def clock_problem(problem: ClockProblem) -> str:
    """Return why the loop nests of a kernel could not be timed."""
    return _CLOCK_PROBLEMS[problem.code].format(line=problem.line, last=problem.last, error=problem.error)


def fact_texts(row: KernelRow) -> Iterator[tuple[str, str]]:
    """Yield facts of a kernel that its page says nowhere else; an empty text where there is no such fact."""
    match row.details:
        case CppFacts() as facts:
            yield from _cpp(facts)
        case TritonFacts() as facts:
            yield from _triton(facts)
        case None if row.source:
            yield "lines", str(row.source.count("\n"))
    yield "chooses among", ", ".join(row.chooses)


def _cpp(facts: CppFacts) -> Iterator[tuple[str, str]]:
    threads = f", {facts.threads} threads" if facts.threads else ""
    collapse = f", collapse({facts.collapse})" if facts.collapse else ""
    yield "vector width", f"{facts.vector_bits} bits" if facts.vector_bits else ""
    yield "tiles", ", ".join(facts.tiles)
    yield "openmp", f"parallel{threads}{collapse}" if facts.parallel else "no"
    yield "index width", facts.index_width or ""
    yield "index type", facts.index_type or ""
    yield "reductions", ", ".join(facts.reductions)
    yield "atomic adds", str(facts.atomics or "")
    yield "local buffers", ", ".join(facts.local_buffers)
    yield "template", ", ".join(facts.templates)
    yield "loops of helpers", str(facts.helper_loops or "")
    yield "division by zero", "raises" if facts.division_check else ""


def _triton(facts: TritonFacts) -> Iterator[tuple[str, str]]:
    yield "reduction hint", facts.reduction_hint or ""
    yield "tile hint", facts.tile_hint or ""
    yield "size hints", _joined(facts.size_hints)
    yield "index width", facts.index_width or ""
    yield "block sizes", ", ".join(facts.blocks)
    yield "config", _joined(facts.config)
    yield "divisible by 16", folded_names(facts.divisible, "--json")
    yield "constants", _joined(facts.constants)
    yield from (
        (name.replace("_", " "), folded_names(text.split(", "), "--json")) for name, text in facts.meta
    )


def _joined(pairs: Pairs) -> str:
    return ", ".join(f"{name}={text}" for name, text in pairs)
