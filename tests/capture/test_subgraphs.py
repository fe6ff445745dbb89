"""`probe dump` keeps the IR of each subgraph: torch writes that of the last one over all others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inductor_probe.analysis.check import check_graph
from inductor_probe.reader.debug_dir import read_graph, read_run, texts_of
from tests.capture.conftest import Dumped

pytestmark = pytest.mark.usefixtures("warm")

PROGRAM = """
import torch
from torch._higher_order_ops import while_loop

def f(x, p):
    y = torch.cond(p, lambda x: x.sin() + x.flip(0), lambda x: (x * 2).cos(), (x,))
    _, z = while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * 0.5), (torch.tensor(0), y))
    return z.softmax(-1)

print(torch.compile(f)(torch.ones(8, 8), torch.tensor(True)).sum())
"""


@pytest.mark.compiles
def test_the_ir_of_each_subgraph_is_kept_under_its_name(dump_source: Callable[..., Dumped]) -> None:
    dumped = dump_source(PROGRAM)
    (folder,) = (dumped.run / "torchinductor").glob("model_*")
    names = {path.name.split(".")[1] for path in folder.glob("ir_post_fusion.*.txt")}
    assert names >= {"true_graph_0", "false_graph_0", "while_loop_cond_graph_0", "while_loop_body_graph_0"}
    assert (folder / "ir_post_fusion.txt").read_text().startswith("op0: ")
    run = read_run(dumped.run)
    graph = read_graph(run.graphs[0], run.manifest)
    checked = check_graph(graph, texts_of(graph))
    assert (checked.unlinked, checked.problems, checked.remarks) == ((), (), ())
    recorded = {origin.buffer for origin in dumped.manifest.graphs[0].origins}
    assert {"true_graph_0_buf0", "while_loop_body_graph_0_buf1"} <= recorded
