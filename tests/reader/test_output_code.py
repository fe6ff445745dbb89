"""The wrapper: entries, kernels, launches, allocations and inputs of every form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.errors import UnreadableError
from inductor_probe.model.code import OutputCode
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout
from inductor_probe.reader.output_code import parse_output_code
from tests.conftest import all_graph_dirs

Read = Callable[..., CompiledGraph]


def code_of(graph: CompiledGraph) -> OutputCode:
    assert graph.code is not None
    return graph.code


@pytest.mark.parametrize("folder", all_graph_dirs(), ids=lambda folder: "/".join(folder.parts[-5:-3]))
def test_launches_of_every_fixture_match_their_kernels(folder: Path) -> None:
    code = parse_output_code((folder / "output_code.py").read_text(), folder / "output_code.py")
    assert code.problems == ()
    for launch in code.launches:
        kernel = code.kernel(launch.kernel)
        assert kernel is not None
        if kernel.backend == "cpp":
            assert len(kernel.args) == len(launch.args)


def test_torch_2_1_passes_pointers_and_2_13_names(read: Read) -> None:
    old, new = code_of(read("torch-2.1.2-cpu/hflip_cl")), code_of(read("torch-2.13.0-cpu/hflip_cl"))
    assert (old.entry, new.entry) == ("call", "Runner.call")
    assert old.launches[0].args == new.launches[0].args == ("arg0_1", "buf0")
    assert [arg.role for arg in new.kernels[0].args] == ["in", "out"]


def test_layouts_come_from_allocations_where_torch_prints_none(read: Read) -> None:
    code = code_of(read("torch-2.1.2-cpu/hflip_cl"))
    layouts = {allocation.name: allocation.layout for allocation in code.allocations}
    stride = (150528, 1, 672, 3)
    assert layouts == {
        "arg0_1": BufferLayout("Input", "cpu", "uint8", (1, 3, 224, 224), stride),
        "buf0": BufferLayout("Allocation", "cpu", "uint8", (1, 3, 224, 224), stride),
    }


def test_symbolic_inputs_keep_their_symbols(read: Read) -> None:
    code = code_of(read("torch-2.13.0-cpu/dynamic_shapes"))
    layouts = {allocation.name: allocation.layout for allocation in code.allocations}
    assert layouts["arg2_1"] == BufferLayout("Input", "cpu", "float32", ("s77", "s27"), ("s27", 1))
    assert layouts["buf1"] is not None
    assert layouts["buf1"].offset == "s27 * s77"
    assert "arg0_1" not in layouts


def test_triton_launches_stand_inside_the_device_guard(read: Read) -> None:
    code = code_of(read("torch-2.11.0-cuda/layernorm_grad", 1))
    assert len(code.launches) == 4
    assert {kernel.backend for kernel in code.kernels} == {"triton"}
    assert dict(code.kernels[0].facts)["reduction hint"] == "INNER"
    reuse = next(allocation for allocation in code.allocations if allocation.how == "reuse")
    assert (reuse.name, reuse.of) == ("buf4", "buf3")


def test_extern_calls_keep_their_outputs_and_source_nodes(read: Read) -> None:
    code = code_of(read("torch-2.13.0-cpu/mlp_train", 1))
    assert {call.target for call in code.externs} == {"extern_kernels.mm"}
    assert all(len(call.outputs) == 1 for call in code.externs)
    sort = code_of(read("torch-2.13.0-cpu/multi_output_no_fuse")).externs[0]
    assert sort.target.startswith("torch.ops.aten.sort")
    assert sort.source_nodes == ("sort",)


def test_scalar_and_vectorised_loop_nests_are_told_apart(read: Read) -> None:
    (flip,) = code_of(read("torch-2.13.0-cpu/hflip_cl")).kernels
    (antialias,) = code_of(read("torch-2.13.0-cpu/aa_separable_cl")).kernels
    assert dict(flip.facts)["scalar"] == "1"
    assert dict(antialias.facts)["loop nests"] == "4"
    assert dict(antialias.facts)["scalar"] == "0"


def test_a_cut_off_wrapper_says_where() -> None:
    with pytest.raises(UnreadableError, match=r"output_code\.py:3: output_code\.py is cut off"):
        parse_output_code("import torch\n\ndef call(args:\n    pass\n", Path("output_code.py"))


@given(st.text())
def test_reading_never_runs_or_chokes_on_text(text: str) -> None:
    try:
        parse_output_code(text, Path("output_code.py"))
    except UnreadableError as error:
        assert "output_code.py:" in error.message  # noqa: PT017 - either outcome is right
