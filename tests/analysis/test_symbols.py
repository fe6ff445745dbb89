"""Symbolic sizes: which input has them, what they were, and what bytes were with that."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.layouts import layouts
from inductor_probe.analysis.symbols import symbols
from inductor_probe.analysis.work import kernel_work
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.layouts import Symbol
from inductor_probe.model.manifest import GraphRecord, InputFact
from inductor_probe.report.terminal import to_text
from inductor_probe.report.units import symbols_text
from tests.conftest import DUMPS

Read = Callable[..., CompiledGraph]
DYNAMIC = "torch-2.13.0-cpu/dynamic_shapes"


def test_a_symbol_names_the_input_that_has_it_and_what_it_was(read: Read) -> None:
    graph = read(DYNAMIC)
    assert graph.runnable is not None
    was = dict(graph.runnable.symbols)
    assert was == {"s17": 17, "s27": 40, "s77": 33}
    found = {symbol.name: symbol for symbol in symbols(graph)}
    assert {name: symbol.value for name, symbol in found.items()} == was
    for symbol in found.values():
        assert symbol.source is not None
        name, _, dim = symbol.source.partition(".size(")
        assert graph.fx is not None
        (placeholder,) = (node for node in graph.fx.inputs if node.name == name)
        assert f"[{placeholder.type}]".split("[")[2].rstrip("]").split(", ")[int(dim[:-1])] == symbol.name


def test_values_of_the_manifest_come_first(read: Read) -> None:
    graph = read(DYNAMIC)
    assert graph.fx is not None
    passed = next(node for node in graph.fx.inputs if node.type and "Sym(s77)" in node.type)
    fact = InputFact(passed.name, "symint", value=5)
    graph = replace(graph, record=GraphRecord(graph.name, None, None, inputs=(fact,)))
    assert {symbol.name: symbol.value for symbol in symbols(graph)}["s77"] == 5


def test_a_dump_that_records_no_values_has_none(read: Read) -> None:
    found = symbols(read("torch-2.1.2-cpu/dynamic_shapes"))
    assert found
    assert {symbol.value for symbol in found} == {None}
    (row, *_) = kernel_rows(read("torch-2.1.2-cpu/dynamic_shapes"))
    assert isinstance(row.bytes_read, str)
    assert row.recorded_read is None


def test_a_size_that_is_known_when_the_graph_runs_has_no_value(read: Read) -> None:
    graph = read("torch-2.13.0-cpu-programs/unbacked")
    unbacked = [symbol for symbol in symbols(graph) if symbol.name.startswith("u")]
    assert unbacked
    assert {(symbol.source, symbol.value) for symbol in unbacked} == {(None, None)}


def test_bytes_of_dynamic_shapes_are_said_with_recorded_values(read: Read) -> None:
    graph = read(DYNAMIC)
    values = {symbol.name: symbol.value for symbol in symbols(graph)}
    for row in kernel_rows(graph):
        assert isinstance(row.bytes_read, str)
        assert row.recorded_read == eval(row.bytes_read, {}, values)  # noqa: S307 - an expression of a fixture
    rows = layouts(graph)
    assert all(isinstance(row.size_bytes, int) or isinstance(row.recorded_bytes, int) for row in rows)
    fixed = kernel_rows(read("torch-2.13.0-cpu/hflip_cl"))[0]
    assert (fixed.recorded_read, fixed.symbols) == (None, ())


def test_pages_and_tables_say_once_what_symbols_stand_for() -> None:
    kernels = ip.kernels(DUMPS / DYNAMIC)
    (source,) = {symbol.source for row in kernels for symbol in row.symbols if symbol.name == "s77"}
    said = f"s77 = {source}, was 33"
    for shown in (
        ip.show(None, DUMPS / DYNAMIC),
        kernels,
        ip.layouts(None, DUMPS / DYNAMIC),
        ip.show(kernels[0].name, DUMPS / DYNAMIC),
    ):
        assert to_text(shown.document, 200).count(said) == 1
    page = to_text(ip.show(kernels[0].name, DUMPS / DYNAMIC).document, 200)
    assert f"{kernels[0].bytes_read} B (" in page
    assert " with s77 = 33" in page


def test_bytes_of_bound_sizes_are_numbers(read: Read) -> None:
    """With --size bound, the bytes of the bench report stayed `?`."""
    graph = read(DYNAMIC)
    rows = kernel_rows(graph)
    (as_recorded, *_) = kernel_work(graph, rows, None)
    assert as_recorded.moved == (rows[0].recorded_read or 0) + (rows[0].recorded_written or 0)
    (bound, *_) = kernel_work(graph, rows, None, {symbol.name: 1 for symbol in symbols(graph)})
    assert bound.moved is not None
    assert bound.moved < as_recorded.moved


def test_a_symbol_without_a_value_is_not_said_to_have_one() -> None:
    assert symbols_text([Symbol("s77", "arg0_1.size(0)", None), Symbol("u0", None, None)]) == (
        "s77 = arg0_1.size(0); u0, known when the graph runs"
    )
