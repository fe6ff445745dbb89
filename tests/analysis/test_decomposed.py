"""Operators that inductor decomposed: what their loops do, counted in dumps that are made here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import inductor_probe as ip
from inductor_probe.analysis.decomposed import Loops, all_loops, decomposed, figures_of, work_of
from inductor_probe.analysis.graph import index_of
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decomposed import Figure, FigureCode, LoopWork
from inductor_probe.model.own_call import EagerOperator
from tests.dumps import every_graph, read_at, run_in

pytestmark = pytest.mark.usefixtures("warm")
HEIGHT, WIDTH, CHANNELS = 20, 24, 3
PIXELS = HEIGHT * WIDTH
SCRIPT = """
import torch
import torch.nn.functional as F

def turned(image, theta, mode):
    grid = F.affine_grid(theta, list(image.shape), align_corners=False)
    return F.grid_sample(image, grid, mode=mode, align_corners=False)

def resized(image):
    return F.interpolate(image, size=(30, 40), mode="bicubic")

def normed(x):
    return F.softplus(F.layer_norm(x, (64,)))

image, theta = torch.rand(1, 3, 20, 24), torch.tensor([[[0.8, -0.6, 0.1], [0.6, 0.8, 0.1]]])
for mode in ("bicubic", "bilinear"):
    torch.compile(turned)(image, theta, mode)
torch.compile(resized)(image)
torch.compile(normed)(torch.randn(48, 64))
"""


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> tuple[CompiledGraph, ...]:
    folder = tmp_path_factory.mktemp("decomposed")
    (folder / "several.py").write_text(SCRIPT)
    return tuple(graph.compiled for graph in ip.dump(folder / "several.py", out=folder).graphs)


def loops_of(graph: CompiledGraph, name: str, eager: tuple[EagerOperator, ...] = ()) -> list[Loops]:
    fx = decomposed(graph, eager)[name]
    return [loops for loops in all_loops(graph) if not fx.isdisjoint(loops.fx)]


def works_of(graph: CompiledGraph, name: str, eager: tuple[EagerOperator, ...] = ()) -> list[LoopWork]:
    return [work_of(graph, loops) for loops in loops_of(graph, name, eager)]


def figure(figures: tuple[Figure, ...], code: FigureCode) -> Figure:
    (row,) = [one for one in figures if one.code == code]
    return row


@pytest.mark.compiles
@pytest.mark.parametrize(("number", "pixels"), [(0, 16), (1, 4)])
def test_each_output_of_a_grid_sample_loads_the_pixels_around_it(
    graphs: tuple[CompiledGraph, ...], number: int, pixels: int
) -> None:
    graph = graphs[number]
    works = works_of(graph, "aten.grid_sampler_2d")
    figures = figures_of([graph], 1, works, None)
    assert figure(figures, "indirect").compiled == pixels
    checks = figure(figures, "checks")
    assert checks.compiled == 2 * pixels  # a row and a column each
    assert checks.compiled_source == "read"
    grid, image = 4 * 2 * PIXELS, 4 * CHANNELS * PIXELS
    assert figure(figures, "operand-bytes").compiled == grid + 2 * image
    assert figure(figures, "operand-bytes").eager_source == "not-known"


@pytest.mark.compiles
def test_loads_and_operations_are_those_of_the_kernels_text(graphs: tuple[CompiledGraph, ...]) -> None:
    """The text wraps and checks each index: three operations, and casts, that no loop body has."""
    graph = graphs[0]
    loops = loops_of(graph, "aten.grid_sampler_2d")
    works = [work_of(graph, one) for one in loops]
    one, work = max(zip(loops, works, strict=True), key=lambda pair: pair[1].operations)
    assert one.nest is not None
    source = index_of(graph).kernels[one.kernel].source.strip("\n").split("\n")
    text = source[one.nest.line - 1 : one.nest.last]
    loads = [line for line in text if re.search(r"auto tmp\d+ = (?:in|out|in_out)_ptr\d+\[", line)]
    assert work.loads == len(loads)
    assert work.indirect == sum("tmp" in line.partition("[")[2] for line in loads)
    sums = [line for line in text if re.search(r"= float\(tmp\d+ [-+*] tmp\d+\)", line)]
    assert len(sums) < work.operations <= sum("auto tmp" in line for line in text) - len(loads)


@pytest.mark.compiles
def test_what_each_channel_computes_again_has_no_buffer_of_inductors(
    graphs: tuple[CompiledGraph, ...],
) -> None:
    works = works_of(graphs[0], "aten.grid_sampler_2d")
    work = max(works, key=lambda one: one.operations)
    (again,) = work.repeated
    assert (again.trips, again.innermost) == (CHANNELS, False)
    assert 0 < again.operations < work.operations
    assert again.sized == 0  # the decomposition expands the grid to the channels before all else
    assert work.again == again.operations * (CHANNELS - 1) * PIXELS
    stored = [(one.stores, one.repeated[0].stores) for one in works if one.repeated and one is not work]
    assert stored
    assert all(all_of == repeated > 0 for all_of, repeated in stored)  # weights, once for each channel


@pytest.mark.compiles
def test_a_grid_of_rows_and_columns_could_have_buffers_for_both(graphs: tuple[CompiledGraph, ...]) -> None:
    """`aten.upsample_bicubic2d` is decomposed before AOTAutograd sees it: no FX node comes from it."""
    graph = graphs[2]
    assert "aten.upsample_bicubic2d" not in decomposed(graph)
    eager = EagerOperator(
        "aten.upsample_bicubic2d", 1, 1e-3, 1.0, (), 4 * CHANNELS * PIXELS, 4 * CHANNELS * 1200,
        4 * CHANNELS * 1200, functions=("interpolate",),
    )  # fmt: skip
    assert [*decomposed(graph, (eager,))] == ["aten.upsample_bicubic2d"]
    works = works_of(graph, "aten.upsample_bicubic2d", (eager,))
    figures = figures_of([graph], 1, works, eager)
    assert figure(figures, "indirect").compiled == 16
    operands = figure(figures, "operand-bytes")
    assert operands.compiled == operands.eager == 4 * CHANNELS * (PIXELS + 1200)
    assert figure(figures, "seconds").eager_source == "measured"
    work = max(works, key=lambda one: one.operations)
    channels = work.repeated[0]
    assert channels.trips == CHANNELS
    assert channels.sized == channels.operations > 0


@pytest.mark.compiles
def test_a_layer_norm_shares_loops_with_what_reads_it(graphs: tuple[CompiledGraph, ...]) -> None:
    graph = graphs[3]
    became_of = decomposed(graph)
    assert {"aten.native_layer_norm", "aten.softplus"} <= became_of.keys()
    computed = [loops.operators(graph, became_of) for loops in loops_of(graph, "aten.native_layer_norm")]
    assert any({"aten.native_layer_norm", "aten.softplus"} <= set(names) for names in computed)
    figures = figures_of([graph], 1, works_of(graph, "aten.native_layer_norm"), None)
    assert figure(figures, "vectorised").compiled == 1.0
    assert figure(figures, "operand-bytes").compiled == 2 * 4 * 48 * 64
    assert figure(figures, "indirect").compiled == 0
    assert {one.innermost for work in works_of(graph, "aten.softplus") for one in work.repeated} == {True}


BROADCAST = """
import torch

def last(x, t):
    return x * ((t.sin() * 2 + 1).cos() * t + (t * 3).sin())

def first(x, t):
    return last(x, t.expand(3, 64, 64) + 0)

for function in (last, first):
    torch.compile(function)(torch.randn(3, 64, 64), torch.randn(64, 64))
"""


@pytest.mark.compiles
def test_a_buffer_holds_once_what_has_an_fx_node_of_its_size_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "broadcast.py").write_text(BROADCAST)
    knobs = {
        f"inductor.{name}": "4" for name in ("realize_opcount_threshold", "realize_cpu_opcount_threshold")
    }
    repeated = []
    for settings in (dict[str, str](), knobs):
        run = ip.dump(tmp_path / "broadcast.py", out=tmp_path, knobs=settings)
        repeated.append(
            [
                [
                    one
                    for loops in all_loops(graph.compiled)
                    for one in work_of(graph.compiled, loops).repeated
                ]
                for graph in run.graphs
            ]
        )
    ((last,), (first,)), (last_with_buffer, first_with_buffer) = repeated
    assert last.sized == last.operations > 0
    assert last_with_buffer == []
    assert (first.sized, first.operations) == (0, last.operations + 1)
    assert sum(one.operations for one in first_with_buffer) == first.operations


def test_a_dump_that_says_nothing_of_decompositions_has_none() -> None:
    run = ip.open_run(run_in("torch-2.13.0-cpu/hflip_cl"))
    assert all(decomposed(graph.compiled) == {} for graph in run.graphs)


@every_graph
def test_loops_of_every_fixture_are_counted(folder: Path) -> None:
    graph = read_at(folder)
    for work in (work_of(graph, loops) for loops in all_loops(graph)):
        assert work.indirect <= work.loads
        assert work.evaluated is None or work.again <= work.evaluated
        assert all(one.sized <= one.operations <= work.operations for one in work.repeated)
        assert all(one.stores <= work.stores for one in work.repeated)
