"""`probe dump` of AOTInductor: the dump and the package that torch wrote are both read whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_probe.analysis.check import check_graph
from inductor_probe.discovery.discover import dump_at
from inductor_probe.reader.debug_dir import read_graph, read_run, texts_of
from tests.capture.conftest import Dumped

PROGRAM = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(32, 16)

    def forward(self, x):
        return torch.softmax(torch.relu(self.linear(x.flip(-1))), -1)

exported = torch.export.export(Model().eval(), (torch.randn(8, 32),))
torch._inductor.aoti_compile_and_package(exported, package_path="model.pt2")
"""


@pytest.mark.compiles
def test_a_package_and_the_dump_of_its_making_are_read_whole(
    dump_source: Callable[..., Dumped], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dumped = dump_source(PROGRAM)
    run = read_run(dumped.run)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    packaged = dump_at(tmp_path / "model.pt2")
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
