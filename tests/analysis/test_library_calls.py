"""What library calls compute, and whose lines are the user's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import inductor_probe as ip
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.span import SourceLine, own_lines
from inductor_probe.report.terminal import to_text
from tests.conftest import DUMPS, all_graph_dirs
from tests.dumps import read_at

Read = Callable[..., CompiledGraph]


def test_a_library_call_computes_what_it_was_lowered_from_and_not_its_arguments(read: Read) -> None:
    """`computes` of an `addmm` after a layer norm was `var_mean, sub, add, ...`."""
    graph = read("torch-2.13.0-cpu-programs/training")
    computes = {row.name: row.ops for row in kernel_rows(graph) if row.backend == "extern"}
    assert computes == {
        "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default": (
            "aten._scaled_dot_product_flash_attention_for_cpu",
        ),
        "extern_kernels.addmm": ("aten.addmm",),
    }
    (addmm,) = (row for row in kernel_rows(graph) if row.name == "extern_kernels.addmm")
    assert [source.line for source in addmm.sources] == [127]


def test_no_library_call_of_a_fixture_loses_what_it_computes() -> None:
    for folder in all_graph_dirs():
        graph = read_at(folder)
        nodes = {node.name: node for node in graph.fx.nodes} if graph.fx else {}
        for row in kernel_rows(graph):
            name = row.name.removeprefix("extern_kernels.")
            called = [node for node in row.fx if nodes[node].target.split(".")[-2:-1] == [name]]
            lowered = any(name in node.target.split(".") for node in nodes.values())
            if row.backend == "extern" and row.nodes and lowered:
                assert called, f"{folder}: {row.name} computes {row.fx}"


@pytest.mark.parametrize(
    ("path", "installed"),
    [
        ("/home/u/venv/lib/python3.11/site-packages/torch/optim/adam.py", True),
        ("/usr/lib/python3/dist-packages/timm/layers.py", True),
        ("/usr/lib/python3.12/functools.py", True),
        ("/home/u/pytorch/torch/nn/functional.py", True),
        ("/home/u/torch/model.py", False),
        ("train.py", False),
        ("/home/u/torch_nn/optim/own.py", False),
    ],
)
def test_lines_of_installed_packages_are_told_from_the_user_s(path: str, installed: bool) -> None:
    assert SourceLine(path, 1, None, "").installed is installed


def test_lines_of_torch_are_not_counted_as_the_user_s() -> None:
    own, other = (
        SourceLine("a.py", 3, "f", "x"),
        SourceLine("/x/site-packages/torch/nn/functional.py", 9, "g", "y"),
    )
    assert own_lines((other, own)) == [own]
    assert own_lines((other,)) == (other,)
    page = to_text(ip.show(None, DUMPS / "torch-2.13.0-cpu-programs" / "optimizer").document, 160)
    assert "from lines of installed packages\n" in page
    assert "from your lines" not in page
    page = to_text(ip.show(None, DUMPS / "torch-2.13.0-cpu-programs" / "training").document, 160)
    assert "from your lines\n" in page
