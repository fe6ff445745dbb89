"""Frozen graphs: dumps with packed constants, their bench files, and what is left without those."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.api.session import Graph
from inductor_probe.bench.session import run_bench_file
from inductor_probe.bench_file.bench_file import write_bench_file
from inductor_probe.errors import ProbeError
from inductor_probe.model.bench import BenchResult, BenchSettings
from inductor_probe.model.timing import Variant
from inductor_probe.report.terminal import to_text
from tests.capture.conftest import plain_environment
from tests.torch_server import TorchServer

pytestmark = [pytest.mark.compiles, pytest.mark.usefixtures("warm")]

SCRIPT = """
import torch
import torch.nn as nn
import torch._inductor.config as config

config.freezing = True
torch.manual_seed(0)


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(32, 48), nn.Linear(48, 24)
        self.register_buffer("table", torch.randn(4, 24))

    def forward(self, x):
        hidden = torch.relu(self.first(x)) * 2
        return torch.softmax(self.second(hidden), -1).unsqueeze(1) + self.table


convolution = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 8, 1), nn.Sigmoid()
)
with torch.no_grad():
    for dtype in (torch.float32, torch.bfloat16):
        torch.compile(Linear().eval().to(dtype))(torch.randn(16, 32, dtype=dtype))
        torch._dynamo.reset()
        torch.compile(convolution.eval().to(dtype))(torch.randn(1, 3, 32, 32, dtype=dtype))
        torch._dynamo.reset()
"""
GRAPHS = ("float32 linear", "float32 convolution", "bfloat16 linear", "bfloat16 convolution")


@pytest.fixture(scope="session")
def frozen(tmp_path_factory: pytest.TempPathFactory, torch_server: TorchServer) -> Path:
    """Return the folder of a dump of four frozen graphs, in the order of `GRAPHS`."""
    folder = tmp_path_factory.mktemp("frozen")
    (folder / "frozen.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "inductor_probe", "dump", "frozen.py", "--save-inputs"]
    with torch_server.used():
        ran = subprocess.run(
            command, cwd=folder, env=plain_environment(), capture_output=True, text=True, check=False
        )
    assert ran.returncode == 0, ran.stderr
    return folder


def graph_of(folder: Path, name: str) -> Graph:
    run = ip.open_run(folder)
    return run.graphs[GRAPHS.index(name)]


def run(graph: Graph, settings: BenchSettings | None = None) -> BenchResult:
    file = graph.write_bench_file()
    return run_bench_file(file.path, settings or BenchSettings(budget=0.3, processes=1))


def variants(result: BenchResult) -> dict[str, Variant]:
    return {variant.name: variant for variant in result.variants}


@pytest.fixture
def copy(frozen: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(frozen, tmp_path / "copy"))


@pytest.mark.parametrize("name", GRAPHS)
def test_unedited_copies_are_right_with_the_real_constants(frozen: Path, name: str) -> None:
    """F4: packed weights were remade as strided tensors, and every copy that nobody edited was WRONG."""
    graph = graph_of(frozen, name)
    kinds = {constant.kind for constant in graph.constants or ()}
    assert "packed" in kinds
    result = run(graph)
    assert all(variant.correct and not variant.remarks for variant in result.variants), result.variants
    assert len(result.variants) == 2 + len(result.kernels)
    assert not [remark for remark in result.warnings if remark.code.startswith(("constant", "eager"))]
    assert any(comparison.baseline == "the graph, operator by operator" for comparison in result.comparisons)
    assert result.overheads
    assert result.overheads.row("library")


def test_layouts_names_the_call_that_packed_a_weight(frozen: Path) -> None:
    """It was shown as most likely packed, though the manifest has the call."""
    rows = graph_of(frozen, "float32 convolution").layouts()
    packed = [row.packing for row in rows if row.packing]
    assert {(packing.operator, packing.knowledge) for packing in packed} == {
        ("mkldnn._reorder_convolution_weight", "recorded")
    }
    assert "a weight that mkldnn._reorder_convolution_weight packed" in str(rows)


def test_a_folded_batch_norm_is_what_took_its_place(frozen: Path) -> None:
    """`why aten.batch_norm` of a frozen graph ended in "did you mean": no file has a node of the norm."""
    answer = graph_of(frozen, "float32 convolution").why("aten.batch_norm")
    (row,) = answer
    assert {"sub", "mul_1", "add_1"} <= set(row.gone)
    assert [name for name in row.became if "convolution_pointwise" in name and name not in row.gone]
    page = to_text(answer.document, 10_000)
    assert "aten.batch_norm: no FX node calls it; in its place: " in page
    assert "which passes folded, replaced or removed" in page


def test_a_linear_of_mkl_reads_the_weight_once_and_not_the_room_that_it_was_packed_into(frozen: Path) -> None:
    """Megabytes for a few KiB: "278 GB/s" in a profile, and a rate that was refused in a bench."""
    (row,) = (row for row in graph_of(frozen, "float32 linear").kernels() if "mkl_linear" in row.name)
    assert (row.bytes_read, row.bytes_written) == (
        4 * (16 * 32 + 48 * 32 + 16 * 48 + 24 * 48),
        4 * 16 * (48 + 24),
    )


def test_real_inputs_are_taken_beside_constants(frozen: Path) -> None:
    """F4: `--inputs real` said that there is no real input _frozen_param18."""
    settings = BenchSettings(budget=0.2, processes=1, inputs="real")
    result = run(graph_of(frozen, "float32 linear"), settings)
    assert all(variant.correct for variant in result.variants)


def test_a_wrong_index_is_refused(copy: Path) -> None:
    graph = graph_of(copy, "float32 linear")
    file = graph.write_bench_file()
    text = file.path.read_text()
    kernel = next(name for name in file.kernels if "softmax" in name)
    start = text.index(f"{kernel}_v2 = async_compile")
    end = text.index("''')", start)
    # The last load is of the table: its rows then have one value each.
    first, load, rest = text[start:end].rpartition("in_ptr2 + static_cast<int64_t>(")
    edited = f"{first}{load}0L*{rest}"
    assert edited != text[start:end]
    file.path.write_text(text[:start] + edited + text[end:])
    checked = variants(run(graph))
    assert not checked[f"{kernel}_v2"].correct
    assert checked["call"].correct


def test_kernels_without_their_constants_are_neither_judged_nor_timed(copy: Path) -> None:
    graph = graph_of(copy, "float32 linear")
    plain = next(fact for fact in graph.constants or () if fact.size == (4, 24))
    part = next(fact for fact in graph.constants or () if fact.size == (48, 32))
    (graph.path / "probe_constants" / f"{plain.saved}").unlink()
    weight = graph.path / "probe_constants" / f"{part.saved}"
    weight.write_bytes(weight.read_bytes()[::-1])
    result = run(graph)
    takes = next(name for name in result.kernels if "softmax" in name)
    other = next(name for name in result.kernels if name != takes)
    remarks = [remark for remark in result.warnings if remark.code == "constant-missing"]
    assert {remark.subject.name for remark in remarks} == {takes, "mkl._mkl_linear.default"}
    assert set(variants(result)) == {"call", f"{other}_v2"}
    assert all(variant.correct for variant in result.variants)
    assert [time.name for time in result.times] == [f"{other} alone"]


@pytest.mark.parametrize("name", ["float32 linear", "bfloat16 linear", "float32 convolution"])
def test_a_dump_from_before_constants_were_kept_says_so(copy: Path, name: str) -> None:
    graph = graph_of(copy, name)
    manifest = graph.run.path / "probe.json"
    data = json.loads(manifest.read_text())
    for record in data["graphs"]:
        del record["constants"]
    manifest.write_text(json.dumps(data))
    graph = graph_of(copy, name)
    assert graph.constants is None
    result = run(graph)
    codes = {remark.code for remark in result.warnings}
    assert {"constants-remade", "constant-missing", "call-not-timed"} <= codes
    assert all(variant.correct for variant in result.variants), result.variants
    assert {f"{kernel}_v2" for kernel in result.kernels} <= set(variants(result))
    assert not result.comparisons


def test_a_constant_in_the_text_of_a_kernel_is_missed_by_the_reference_only(copy: Path) -> None:
    """One of eight elements is written into the code, and only the graph of aten operations takes it."""
    graph = graph_of(copy, "float32 convolution")
    inlined = next(fact for fact in graph.constants or () if fact.size == (8,))
    assert not inlined.in_code
    (graph.path / "probe_constants" / f"{inlined.saved}").unlink()
    result = run(graph)
    assert all(variant.correct for variant in result.variants)
    (why,) = [remark for remark in result.warnings if remark.code == "eager-not-timed"]
    assert f"{inlined.name} cannot be had: its file" in str(dict(why.numbers)["reason"])


def test_a_graph_that_cannot_run_without_its_constants_is_a_sentence(copy: Path) -> None:
    """A library takes nothing but what it packed itself."""
    graph = graph_of(copy, "float32 linear")
    unknown = [
        replace(fact, kind="opaque", not_kept="unknown-packing") if fact.kind == "packed" else fact
        for fact in graph.constants or ()
    ]
    text = (graph.path / "output_code.py").read_text().replace("_mkl_linear.default(", "_mkl_linear(")
    (graph.path / "output_code.py").write_text(text.replace(", None, 16)", ", None, 8 + 8)"))
    file = write_bench_file(graph.path, graph.inputs, constants=unknown)
    with pytest.raises(ProbeError, match="cannot run without its constants"):
        run_bench_file(file.path, BenchSettings(budget=0.2, processes=1))
