"""`probe dump` of AOTInductor: the dump and the package are read whole, and kernels benched."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

import inductor_probe as ip
from inductor_probe.analysis.check import check_graph
from inductor_probe.api.session import Graph
from inductor_probe.discovery.discover import dump_at
from inductor_probe.model.bench import BenchSettings
from inductor_probe.reader.debug_dir import read_graph, read_run, texts_of
from tests.capture.conftest import Dumped, run_dump, write_script

PROGRAM = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(32, 16)

    def forward(self, x):
        y = torch.softmax(torch.relu(self.linear(x.flip(-1))), -1)
        return y, y.topk(3, -1)[0]

batch = torch.export.Dim("batch", min=2, max=64)
exported = torch.export.export(Model().eval(), (torch.randn(8, 32),), dynamic_shapes=({0: batch},))
torch._inductor.aoti_compile_and_package(exported, package_path="model.pt2")
"""

pytestmark = pytest.mark.compiles


@pytest.fixture(scope="module")
def dumped(tmp_path_factory: pytest.TempPathFactory) -> Dumped:
    folder = tmp_path_factory.mktemp("ahead")
    return run_dump(folder, write_script(folder, PROGRAM))


@pytest.fixture
def graph(dumped: Dumped) -> Graph:
    (graph,) = ip.open_run(dumped.run).graphs
    return graph


def test_a_package_and_the_dump_of_its_making_are_read_whole(
    dumped: Dumped, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = read_run(dumped.run)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    packaged = dump_at(dumped.run.parents[1] / "model.pt2")
    assert packaged is not None
    for graph in (read_graph(run.graphs[0], run.manifest), read_graph(packaged.run.graphs[0])):
        checked = check_graph(graph, texts_of(graph))
        assert (checked.problems, checked.unlinked, checked.remarks) == ((), (), ())
        assert graph.code is not None
        assert len(graph.code.launches) == 2
        constants = [
            item.layout.extras for item in graph.code.allocations if item.kind == "constant" and item.layout
        ]
        assert [dict(extras)["original_fqn"] for extras in constants] == ["linear.weight", "linear.bias"]


def test_the_manifest_has_inputs_and_constants_of_what_nobody_called(dumped: Dumped) -> None:
    (record,) = dumped.manifest.graphs
    assert [(fact.size, fact.stride, fact.dtype) for fact in record.inputs] == [((8, 32), (32, 1), "float32")]
    constants = {name: fact for fact in record.constants or () for name in fact.attributes}
    assert {name: fact.size for name, fact in constants.items()} == {
        "linear.weight": (16, 32),
        "linear.bias": (16,),
    }
    assert all(fact.in_code and fact.saved for fact in constants.values())


def test_kernels_are_judged_by_the_graph_in_float64_and_variants_timed(graph: Graph) -> None:
    """With the real constants, and without --trust: the dump was made here."""
    file = graph.write_bench_file(variants=[("cpp_fused_flip_0_v3", None)])
    text = file.path.read_text()
    wrong = re.compile(r"^cpp_fused__softmax_\w+_v2 = async(?:.|\n)*?'''\)$", re.MULTILINE)
    (copy,) = wrong.finditer(text)
    changed = copy[0].replace("tmp0 - tmp1", "tmp0 - tmp1 - tmp1", 1).replace(".exp()", ".exp().abs()")
    changed = re.sub(r"= tmp(\d+) / tmp(\d+);", r"= tmp\1 / tmp\2 / tmp\2;", changed)
    assert changed != copy[0]
    file.path.write_text(text.replace(copy[0], changed))
    result = graph.bench_kernel(BenchSettings(budget=0.5, processes=2)).result
    correct = {variant.name: variant.correct for variant in result.variants}
    name = changed.partition(" ")[0]
    assert not correct[name]
    assert correct["cpp_fused_flip_0_v2"]
    assert correct["cpp_fused_flip_0_v3"]
    timed = {time.name.partition(" ")[0] for time in result.times}
    assert {*result.kernels, "the"} <= timed
    assert {remark.code for remark in result.warnings} >= {"wrapper-as-python"}
    assert not {"eager-not-timed", "constants-remade"} & {remark.code for remark in result.warnings}


def test_a_package_of_another_machine_is_not_portable(dumped: Dumped, tmp_path: Path) -> None:
    """The package of a real compile, as it is and with facts of another machine in it."""
    package = dumped.run.parents[1] / "model.pt2"
    as_made = ip.portability(package)
    assert as_made.portable
    subjects = {row.assumption.about for row in as_made.artifacts[0].assumptions}
    assert {"platform", "architecture", "instructions", "device", "strides"} <= subjects

    def changed(name: str, before: bytes, after: bytes) -> Path:
        path = tmp_path / name
        with zipfile.ZipFile(package) as old, zipfile.ZipFile(path, "w") as new:
            for member in old.infolist():
                data = old.read(member)
                if member.filename.endswith(".so"):
                    continue  # its machine code is as it was
                new.writestr(member.filename, data.replace(before, after))
        return path

    for name, before, after, missing in (
        ("amx.pt2", b"-march=native", b"-mamx-nothing-has-this", ("amxnothinghasthis",)),
        ("isa.pt2", b'"AOTI_CPU_ISA": "', b'"AOTI_CPU_ISA": "SVE256 ', ("sve", "asimd")),
    ):
        portable = ip.portability(changed(name, before, after))
        assert not portable.portable
        broken = [row for row in portable.artifacts[0].assumptions if row.standing == "broken"]
        assert {row.missing for row in broken} == {missing}
        assert name in broken[0].assumption.place
