"""What inductor makes of the scenarios on the CPU: the kernels that each was written for, seen in one
dump."""

from __future__ import annotations

from pathlib import Path

import pytest

import inductor_probe as ip
from inductor_probe.api.session import Graph, Run
from tests.scenarios.conftest import SCENARIOS

CASES = {
    "check_cumsum": "rows",
    "check_dynamic_shapes": "all",
    "check_index_put": "in_place",
    "check_layer_norm": "training",
    "check_matmul": "bmm_template",
    "check_optimizer_step": "adam",
}
SCRIPT = f"""
import sys
sys.path.insert(0, {str(SCENARIOS)!r})
from importlib import import_module
from inductor_probe.scenario import run_case
import torch
torch.set_num_threads(1)
for script, case in {CASES!r}.items():
    scenario = import_module(script).scenario
    line, right = run_case(scenario, scenario.case(case))
    assert right, (script, line)
"""

pytestmark = pytest.mark.compiles


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Dump a case each of several scenarios by one script: the C++ headers are precompiled for each dump
    anew."""
    folder = tmp_path_factory.mktemp("dump")
    (folder / "several.py").write_text(SCRIPT)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return ip.dump(Path("several.py"))


def graphs(run: Run, script: str) -> list[Graph]:
    """Graphs of the script's case, in the order they were compiled."""
    assert run.manifest is not None
    names = [graph.name for graph in run.manifest.graphs if graph.case == CASES[script]]
    return [run.graph(name) for name in names]


def test_dump_is_whole(run: Run) -> None:
    checked = ip.check(run.path)
    assert checked.whole, repr(checked)
    assert len(checked.graphs) == len(CASES) + 1


def test_scan_is_torch_s_own_kernel_on_the_cpu(run: Run) -> None:
    (graph,) = graphs(run, "check_cumsum")
    kernels = graph.kernels()
    assert [(row.backend, row.kind) for row in kernels] == [
        ("cpp", "loops"), ("extern", "fallback"), ("cpp", "loops"),
    ]  # fmt: skip
    assert not any(name == "scan" for row in graph.nodes() for name, _ in row.operations)
    assert "aten.cumsum" in kernels[1].ops


def test_sizes_are_symbols(run: Run) -> None:
    (graph,) = graphs(run, "check_dynamic_shapes")
    sizes = [buffer.layout.size for row in graph.nodes() for buffer in row.writes if buffer.layout]
    assert sizes
    assert all(isinstance(size[0], str) for size in sizes)


def test_accumulation_is_atomic_and_writes_into_the_input(run: Run) -> None:
    (graph,) = graphs(run, "check_index_put")
    assert ["atomic_add" in row.store_modes for row in graph.nodes()].count(True) == 1
    assert any(row.mutates for row in graph.nodes())


def test_training_has_a_forward_and_a_backward_graph(run: Run) -> None:
    found = graphs(run, "check_layer_norm")
    assert ["forward" in graph.name for graph in found] == [True, False]
    assert "backward" in found[1].name
    # Along rows for the input's gradient, along columns for the parameters'.
    reduced = {row.ranges.reduction for row in found[1].nodes() if row.ranges and row.reductions}
    assert reduced == {(384,), (128,)}


def test_template_takes_its_epilogue_in(run: Run) -> None:
    (graph,) = graphs(run, "check_matmul")
    (kernel,) = graph.kernels()
    assert (kernel.backend, kernel.kind) == ("cpp", "template")
    assert {"aten.bmm", "aten.sigmoid", "aten.mul"} <= set(kernel.ops)


def test_optimizer_updates_all_tensors_in_one_kernel_and_in_place(run: Run) -> None:
    (graph,) = graphs(run, "check_optimizer_step")
    (kernel,) = graph.kernels()
    assert kernel.backend == "cpp"
    assert any(op.startswith("aten._foreach_") for op in kernel.ops)
    # Parameters, means, squares and counts, of two layers' weights and biases.
    mutated = {name for row in graph.nodes() for name in row.mutates}
    assert len(mutated) == 4 * 4
