"""No record holds a sentence: what is concluded is a typed remark, and `report/words` has its words.

To hold another verb's records to it, add its record type to `ROOTS` and what makes its records to `records`.
"""

from __future__ import annotations

import enum
import functools
import typing
from collections.abc import Iterator, Mapping
from functools import cache, partial
from itertools import combinations
from pathlib import Path

import pytest
from msgspec import Struct, structs

from inductor_probe.analysis.causes.causes import graph_causes
from inductor_probe.analysis.check import check_graph
from inductor_probe.analysis.diff.graphs import diff_runs
from inductor_probe.analysis.formula.formula import formula
from inductor_probe.analysis.fusion.decisions import logged_decisions
from inductor_probe.analysis.fusion.log import match_log
from inductor_probe.analysis.fusion.overview import fusion_of_graph, fusion_of_node, fusion_of_pair
from inductor_probe.analysis.input_bounds import input_bounds
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.launch_check import check_launches
from inductor_probe.analysis.layouts import layouts
from inductor_probe.analysis.links import links
from inductor_probe.analysis.nodes import node_rows
from inductor_probe.analysis.summary import summarise
from inductor_probe.discovery.run_facts import run_facts
from inductor_probe.model.autotuning import Tuning
from inductor_probe.model.check import DumpCheck
from inductor_probe.model.diff import GraphDiff, RunDiff
from inductor_probe.model.formula import Formula
from inductor_probe.model.fusion import FusionDecision, GraphFusion, NodeFusion
from inductor_probe.model.kernels import KernelRow, LaunchCheck
from inductor_probe.model.layouts import InputBound, LayoutRow
from inductor_probe.model.links import Links
from inductor_probe.model.nodes import NodeRow
from inductor_probe.model.runs import Removal, RunFacts, RunSummary
from inductor_probe.reader.debug_dir import read_graph, read_run, texts_of, unopened_files
from inductor_probe.reader.logs.run_logs import read_logs
from tests.conftest import DUMPS
from tests.dumps import run_in
from tests.model.test_codec import records as records_of_model

ROOTS = (
    *(KernelRow, NodeRow, LayoutRow, RunSummary, LaunchCheck, DumpCheck, Formula, RunFacts, Removal),
    *(Links, GraphFusion, NodeFusion, FusionDecision, GraphDiff, RunDiff, InputBound, Tuning),
)

PROSE_NAMES = {
    "looks", "marks", "how", "because", "findings", "finding", "note", "notes", "warnings", "holds",
    "effect", "meaning", "next_steps", "unknown", "why",
}  # fmt: skip
SPACED = {
    # the text of a program or of a dump, as it stands there
    "KernelArg.type": "a C++ type",
    "KernelRow.source": "the kernel's text",
    "Loop.pragmas": "as written",
    "Loop.start": "an expression",
    "Loop.stop": "an expression",
    "Passed.text": "an expression of the wrapper",
    "SourceLine.code": "a line of the user's",
    "TritonFacts.meta": "values of inductor_meta",
    "Access.index": "an expression",
    "Problem.message": "it quotes what could not be read",
    # sizes with symbols in them
    "Access.ranges": "a symbolic size",
    "Access.strides": "a symbolic stride",
    "BufferLayout.offset": "a symbolic size",
    "BufferLayout.size": "a symbolic size",
    "BufferLayout.stride": "a symbolic stride",
    "GraphSummary.buffer_bytes": "a symbolic size",
    "KernelRow.bytes_read": "a symbolic size",
    "KernelRow.bytes_written": "a symbolic size",
    "LayoutRow.size_bytes": "a symbolic size",
    "LoopVariable.size": "a symbolic size",
    "Ranges.iteration": "a symbolic size",
    "Ranges.reduction": "a symbolic size",
    "View.shape": "a symbolic size",
    "View.size": "a symbolic size",
    "Pattern.stride": "a symbolic stride",
    "GeneratedAccess.steps": "a symbolic size",
    "GeneratedAccess.unit_stride_steps": "a symbolic size",
    # names and values
    "FileCheck.kind": "the name of a part of a file: `Triton kernels in output_code.py`",
    "Remark.numbers": "names and symbolic sizes, and what torch or a hook of ours said, verbatim",
    "Evidence.fact": "the name of a fact",
    # fusion and comparisons
    "Change.operands": "an option of the command line",
    "Decision.operands": "torch's own words, as logged, expressions and symbolic sizes",
    "TorchTest.text": "a test as torch's source has it",
    "MemoryDep.index": "an expression",
    "MemoryDep.ranges": "a symbolic size",
    "PairMember.iteration": "a symbolic size",
    "PairMember.sizes": "a symbolic size",
    "Statement.text": "a line of a loop body",
    "GraphDiff.cosmetic": "the name of a fact of a kernel",
    "FactChange.name": "the name of a fact of a kernel",
    "FactChange.a": "a value of the dump",
    "FactChange.b": "a value of the dump",
    "InputBound.high": "an expression",
}
"""Texts that hold spaces in real data, and why they are no sentences of ours."""

_MOST_NODES = 7
ANTIALIAS = read_run(run_in("torch-2.13.0-cpu/aa_separable_cl"))
_CODED = (bool, int, float, Path, type(None))


@cache
def record_types() -> frozenset[type]:
    """Every record that the roots hold, by their annotations."""
    known: set[type] = set()
    waiting: list[object] = list(ROOTS)
    while waiting:
        kind = waiting.pop()
        waiting.extend(typing.get_args(kind))
        if isinstance(kind, type) and issubclass(kind, Struct) and kind not in known:
            known.add(kind)
            waiting.extend(typing.get_type_hints(kind).values())
    return frozenset(known)


def test_no_field_is_called_as_prose_is() -> None:
    names = {f"{kind.__name__}.{field.name}" for kind in record_types() for field in structs.fields(kind)}
    assert len(names) > 150  # the walk goes into the records
    assert {name for name in names if name.partition(".")[2] in PROSE_NAMES} == set()


NOT_PROSE = {
    "FusionRound.notes": "lines of a log, verbatim",
    "TracePage.holds": "names of buffers",
}


def test_no_record_of_model_has_text_in_a_field_that_is_called_as_prose_is() -> None:
    """`ConfigTime.note` held a sentence of the harness."""
    text = {
        f"{kind.__name__}.{field.name}"
        for kind in records_of_model()
        for field in structs.fields(kind)
        if field.name in PROSE_NAMES and holds_text(typing.get_type_hints(kind)[field.name])
    }
    assert text == NOT_PROSE.keys()


def holds_text(hint: object) -> bool:
    if typing.get_origin(hint) is typing.Literal:
        return False
    return hint is str or any(map(holds_text, typing.get_args(hint)))


def run_folders() -> list[Path]:
    return sorted(path for path in DUMPS.glob("*/*/run_*") if path.is_dir())


def records(folder: Path) -> Iterator[object]:
    """What the verbs make of a run."""
    run = read_run(folder)
    graphs = [read_graph(graph, run.manifest) for graph in run.graphs]
    yield summarise(run, graphs)
    yield run_facts(run)
    yield diff_runs(run, ANTIALIAS, graphs, [read_graph(graph) for graph in ANTIALIAS.graphs])
    logs = read_logs(run)
    for at, graph in enumerate(graphs):
        matched = match_log(graph, at, logs, lambda: graphs, len(graphs))
        yield links(graph)
        yield input_bounds(graph)
        decided = logged_decisions(graph, matched.log)
        logged = decided if matched.log else None
        yield fusion_of_graph(
            graph, matched, decided, graph_causes(graph, kinds=["fusion"], logged=logged).causes
        )
        names = [leaf.name for top in graph.nodes for leaf in top.leaves()][:_MOST_NODES]
        for name in names:
            why = partial(graph_causes, graph, [name], ["fusion"], logged=logged)
            yield fusion_of_node(graph, matched, name, decided, why=why)
        for pair in combinations(names, 2):
            why = partial(graph_causes, graph, pair, ["fusion"], logged=logged)
            yield fusion_of_pair(graph, matched, *pair, decided, why=why)
        yield kernel_rows(graph)
        yield node_rows(graph)
        yield tuple(layouts(graph))
        yield check_launches(graph)
        yield check_graph(graph, texts_of(graph), unopened_files(graph))
        yield tuple(formula(leaf) for top in graph.nodes for leaf in top.leaves() if leaf.body)


def spaced(value: object, where: str) -> Iterator[tuple[str, str]]:
    """Yield texts with spaces that are no value of a Literal, with the field that they are in."""
    if isinstance(value, Struct):
        for name in fields_of_text(type(value)):
            yield from spaced(getattr(value, name), f"{type(value).__name__}.{name}")
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from spaced(item, where)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from spaced(item, where)
    elif isinstance(value, str) and " " in value:
        yield where, value


@functools.cache
def fields_of_text(kind: type[Struct]) -> tuple[str, ...]:
    """Return the fields of a record that free text may be in."""
    hints = typing.get_type_hints(kind)
    return tuple(field.name for field in structs.fields(kind) if not only_codes(hints[field.name]))


def only_codes(hint: object) -> bool:
    """Whether an annotation has no room for free text: numbers, literals, and unions and tuples of them."""
    if typing.get_origin(hint) is typing.Literal:
        return True
    if arguments := [part for part in typing.get_args(hint) if part is not ...]:
        return all(map(only_codes, arguments))
    return hint in _CODED or (isinstance(hint, type) and issubclass(hint, enum.Enum))


@pytest.mark.parametrize("folder", run_folders(), ids=lambda folder: "/".join(folder.parts[-3:-1]))
def test_no_text_of_a_record_is_a_sentence_of_ours(folder: Path) -> None:
    prose = {where: text for made in records(folder) for where, text in spaced(made, "")}
    assert {where: text for where, text in prose.items() if where not in SPACED} == {}


def test_the_lists_name_fields_that_there_are() -> None:
    names = {f"{kind.__name__}.{field.name}" for kind in record_types() for field in structs.fields(kind)}
    assert SPACED.keys() <= names


def test_the_walk_sees_a_sentence() -> None:
    class Row(Struct, frozen=True):
        name: str
        remark: str
        kind: typing.Literal["two words"] = "two words"

    assert list(spaced((Row("op1", "op1 is slow"),), "")) == [("Row.remark", "op1 is slow")]
