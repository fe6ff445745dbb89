"""Layouts of constants, and why a layout is not known: frozen graphs showed `? ? unknown` and no word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from inductor_probe.analysis.layouts import layouts
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.reader.output_code import parse_output_code
from inductor_probe.report.layouts import LayoutTable
from inductor_probe.report.shown import to_text
from tests.conftest import DUMPS

Read = Callable[..., CompiledGraph]
# As torch 2.13 writes them for a frozen convolution: its bias, its weight in mkldnn's format; and a GPU's.
CONSTANTS = """\
_frozen_param18 = None  # device(type='cpu') torch.float32 (16,) (1,) 7f9f22183de0
_frozen_param19 = None  # device(type='cpu') torch.float32 (16, 3, 3, 3) (1, 0, 0, 0) 7f9f2146bfc0
constant0 = None  # device(type='cuda', index=1) torch.bfloat16 () () 7f9f2146bfc1
other = None
"""


def with_constants(graph: CompiledGraph) -> CompiledGraph:
    (file,) = (DUMPS / "torch-2.13.0-cpu" / "hflip_cl").glob("run_*/torchinductor/*/output_code.py")
    text = file.read_text().replace("\ncpp_fused_flip_0 = ", f"\n{CONSTANTS}cpp_fused_flip_0 = ", 1)
    code = parse_output_code(text, Path("output_code.py"))
    assert not code.problems
    return replace(graph, code=code)


def test_constants_have_the_layout_that_stands_behind_them(read: Read) -> None:
    code = with_constants(read("torch-2.13.0-cpu/hflip_cl")).code
    assert code is not None
    found = {each.name: each.layout for each in code.allocations if each.kind == "constant"}
    bias, weight, gpu = found["_frozen_param18"], found["_frozen_param19"], found["constant0"]
    assert bias is not None
    assert (bias.dtype, bias.size, bias.stride, bias.device) == ("float32", (16,), (1,), "cpu")
    assert gpu is not None
    assert (gpu.dtype, gpu.size, gpu.stride, gpu.device) == ("bfloat16", (), (), "cuda:1")
    assert weight is not None
    assert (weight.size, weight.stride) == ((16, 3, 3, 3), None)
    assert found["other"] is None


def test_a_packed_weight_is_said_to_be_one(read: Read) -> None:
    graph = read("torch-2.13.0-cpu/hflip_cl")
    code = with_constants(graph).code
    assert code is not None
    weight = next(each.layout for each in code.allocations if each.name == "_frozen_param19")
    row = replace(layouts(graph)[0], buffer="_frozen_param19", layout=weight, memory_format="unknown")
    shown = " ".join(to_text(LayoutTable([row]), 80).split())
    assert "_frozen_param19: a constant with the stride [1, 0, 0, 0], which cannot be that of its" in shown


def test_the_result_of_a_call_with_several_values_has_no_layout_of_its_own(read: Read) -> None:
    shown = to_text(LayoutTable(layouts(read("torch-2.13.0-cpu-programs/training"))), 160)
    assert "buf6: the result of a call whose values are buffers of their own: those have layouts" in shown
