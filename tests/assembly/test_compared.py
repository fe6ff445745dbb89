"""Two kernels side by side: figures that differ, and texts without what changes from compile to compile."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.assembly.compared import normalised
from tests.conftest import DUMPS

pytestmark = pytest.mark.usefixtures("warm")

CUDA = DUMPS / "torch-2.11.0-cuda" / "interpolate_aa_channels_last"
CPU = DUMPS / "torch-2.13.0-cpu" / "hflip_cf"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("\tld.global.b32 { %r12 }, [ %rd4 + 0 ];", "\tld.global.b32 { %r9 }, [ %rd1 + 0 ];"),
        ("\t@%p1 bra \t$L__BB0_3;", "\t@%p12 bra \t$L__BB0_14;"),
        (
            "        /*0110*/                   IMAD R2, R13, 0x400, R0 ;",
            "  /*0230*/   IMAD R7, R2, 0x400, R11 ;",
        ),
        ("  80:\tvaddps %zmm1,%zmm0,%zmm0", "  b4:\tvaddps %zmm3,%zmm12,%zmm7"),
        ("  7e:\tjne    70 <kernel._omp_fn.0+0x70>", " 112:\tjne    100 <kernel._omp_fn.0+0x100>"),
        ("  a0:\tadd    $0x10,%rax", "  b0:\tadd    $0x10,%r13"),
        (
            "    %tmp2_3 = arith.addf %tmp0_1, %tmp1 : tensor<1024xf32, #blocked> loc(#loc12)",
            "    %5 = arith.addf %1, %4 : tensor<1024xf32, #blocked> loc(#loc3)",
        ),
    ],
)
def test_registers_addresses_labels_and_places_count_as_the_same(a: str, b: str) -> None:
    assert normalised(a) == normalised(b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("\tld.global.b32 { %r1 }, [ %rd1 + 0 ];", "\tld.global.v2.b32 { %r1, %r2 }, [ %rd1 + 0 ];"),
        ("\tld.global.b32 { %r1 }, [ %rd1 + 0 ];", "\tld.global.b32 { %r1 }, [ %rd1 + 4 ];"),
        ("  80:\tvaddps %zmm1,%zmm0,%zmm0", "  80:\tvaddps %ymm1,%ymm0,%ymm0"),
        ("/*0110*/ IMAD R2, R13, 0x400, R0 ;", "/*0110*/ IMAD R2, R13, 0x200, R0 ;"),
        ("  a0:\tadd    $0x10,%rax", "  a0:\tadd    $0x20,%rax"),
    ],
)
def test_operations_widths_and_constants_do_not(a: str, b: str) -> None:
    assert normalised(a) != normalised(b)


@given(st.text())
def test_any_line_has_a_form(text: str) -> None:
    assert normalised(normalised(text)) is not None


@pytest.mark.compiles
def test_two_triton_kernels_are_compared_by_what_they_take(probe: Callable[..., Any]) -> None:
    names = (
        "triton_poi_fused_sum_0",
        "triton_poi_fused__to_copy_add_arange_clamp_div_index_mul_sub_sum_unsqueeze_2",
    )
    ran = probe("asm", *names, CUDA, "--trust", "--stage", "ptx", "--json")
    assert ran.status == 0, ran.err
    record = json.loads(ran.out)
    figures = {one["name"]: (one["a"], one["b"]) for one in record["figures"]}
    first, second = (kernel["configs"][0] for kernel in record["kernels"])
    assert figures["registers"] == (str(first["registers"]), str(second["registers"]))
    assert int(figures["registers"][0]) < int(figures["registers"][1])
    assert figures["ld.global.b32"][1] == "80"
    (text,) = record["texts"]
    assert any(line.startswith("+") and "ld.global." in line for line in text["lines"])


@pytest.mark.compiles
def test_a_kernel_is_the_same_as_itself_and_kernels_of_two_backends_are_refused(
    probe: Callable[..., Any],
) -> None:
    ran = probe("asm", "cpp_fused_flip_0", CPU, "--against", CPU, "--trust", "--stage", "asm")
    assert ran.status == 0, ran.err
    assert "no figure differs" in ran.out
    assert "asm: the same but for names of registers" in ran.out
    ran = probe("asm", "cpp_fused_flip_0", "triton_poi_fused_sum_0", CPU, "--against", CUDA, "--trust")
    assert ran.status == 2
    assert "cpp_fused_flip_0 is a cpp kernel and triton_poi_fused_sum_0 a triton one" in ran.err
    ran = probe("asm", "cpp_fused_flip_0", "cpp_fused_flip_0_v2", CPU, "--trust")
    assert ran.status == 2
    assert "has no bench file with cpp_fused_flip_0_v2" in ran.err
    assert "--no-run writes copies to edit" in ran.err


@pytest.mark.compiles
def test_a_variant_of_a_bench_file_is_compared_with_its_kernel(
    probe: Callable[..., Any], tmp_path: Path
) -> None:
    script = tmp_path / "program.py"
    script.write_text("import torch\ntorch.compile(lambda x: x.flip(-1) + 3)(torch.ones(64, 64))\n")
    ran = probe("dump", script, "--out", tmp_path / "run")
    assert ran.status == 0, ran.err
    run = next((tmp_path / "run").glob("torch_compile_debug/run_*"))
    assert probe("bench-kernel", run, "--no-run").status == 0
    (bench,) = run.rglob("output_code_bench.py")
    text = bench.read_text()
    head, tail = text.split("cpp_fused_add_flip_0_v2 = ", 1)
    bench.write_text(f"{head}cpp_fused_add_flip_0_v2 = {tail.replace('tmp0 + tmp', 'tmp0 * tmp', 1)}")
    assert bench.read_text() != text
    ran = probe("asm", "cpp_", "cpp_fused_add_flip_0_v2", run, "--stage", "asm")
    assert ran.status == 0, ran.err
    assert re.search(r"^-.*vaddss|^-.*addss", ran.out, re.MULTILINE)
    assert re.search(r"^\+.*vmulss|^\+.*mulss", ran.out, re.MULTILINE)
