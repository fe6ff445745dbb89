"""The innermost loops of a C++ kernel's machine code, and what GCC's vectoriser would do with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.assembly.cpp import _loops
from inductor_probe.model.code import LoopNest
from tests.conftest import DUMPS

pytestmark = pytest.mark.usefixtures("warm")

NESTS = (LoopNest("vectorised", (), 12, 30), LoopNest("scalar", (), 32, 40))
LISTING = """
0000000000000000 <kernel._omp_fn.0>:
kernel._omp_fn.0():
kernel.cpp:8
   0:\tpush   %rbp
kernel.cpp:13
   4:\txor    %eax,%eax
/torch/include/ATen/cpu/vec/vec512/vec512_float.h:81
 (inlined by) kernel.cpp:20
   8:\tvmovups (%rdi),%zmm0
/torch/include/ATen/cpu/vec/vec512/vec512_float.h:99
 (inlined by) kernel.cpp:21
   c:\tvaddps %zmm1,%zmm0,%zmm0
  10:\tvextracti128 $0x1,%ymm0,%xmm2
kernel.cpp:22 (discriminator 3)
  14:\tadd    $0x10,%rax
  18:\tjne    8 <kernel._omp_fn.0+0x8>
kernel.cpp:13
  1c:\tinc    %rbx
  20:\tjl     4 <kernel._omp_fn.0+0x4>
kernel.cpp:35
  24:\tvaddss %xmm1,%xmm0,%xmm0
  28:\tcall   90 <expf@plt>
  2c:\tjne    24 <kernel._omp_fn.0+0x24>
kernel.cpp:9
  30:\tjne    30 <kernel._omp_fn.0+0x30>
"""


def test_innermost_loops_are_those_of_nests_with_their_instructions_by_width() -> None:
    first, second = _loops(LISTING, NESTS, ())
    assert (first.nest, first.kind, first.first, first.last) == (0, "vectorised", 20, 22)
    assert (first.instructions, first.packed, first.scalar, first.calls) == (5, ((512, 2), (256, 1)), 0, 0)
    assert (second.nest, second.instructions, second.packed, second.scalar, second.calls) == (1, 3, (), 1, 1)


@given(st.text())
def test_any_text_is_taken_for_a_listing(text: str) -> None:
    assert all(loop.instructions > 0 for loop in _loops(text, NESTS, ()))


@pytest.mark.compiles
def test_a_scalar_loop_says_what_gcc_would_do(probe: Callable[..., Any]) -> None:
    """Inductor turns GCC's loop vectoriser off, which is easily forgotten where a loop is not vectorised."""
    run = DUMPS / "torch-2.13.0-cpu" / "hflip_cf"
    ran = probe("asm", "cpp_fused_flip_0", run, "--trust", "--json")
    assert ran.status == 0, ran.err
    (record,) = json.loads(ran.out)["kernels"]
    assert "-fno-tree-loop-vectorize" in record["command"]
    (loop,) = record["loops"]
    assert (loop["kind"], loop["packed"], loop["calls"]) == ("scalar", [], 0)
    lines = record["source"].split("\n")[loop["first"] - 1 : loop["last"]]
    assert any("in_ptr0[" in line for line in lines)
    assert loop["remark"] is not None
    assert (loop["remark"]["code"] == "vectorised") == (loop["remark"]["bits"] is not None)
    ran = probe("asm", "cpp_fused_flip_0", run, "--trust", "--stage", "asm")
    assert "innermost loop of nest 1 (scalar, output_code.py:" in ran.out
    assert "none on vectors" in ran.out
    assert "// output_code.py:" in ran.out
    assert "movzbl" in ran.out


def test_options_of_the_other_backend_are_refused(probe: Callable[..., Any]) -> None:
    run = DUMPS / "torch-2.13.0-cpu" / "hflip_cf"
    ran = probe("asm", "cpp_fused_flip_0", run, "--trust", "--arch", "h200")
    said = "for this processor: --arch, --config and --sweep are for Triton's"
    assert (ran.status, ran.err) == (2, f"error: cpp_fused_flip_0 is a C++ kernel, {said}\n")
    ran = probe("asm", "cpp_fused_flip_0", run, "--trust", "--stage", "ptx")
    assert ran.err == "error: a cpp kernel has no stage 'ptx': there is asm\n"
