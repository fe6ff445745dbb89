from __future__ import annotations

from pathlib import Path

import pytest

from inductor_probe.bench_file.compile_settings import compile_settings, in_todays_places, vector_bits
from inductor_probe.reader.output_code import parse_output_code
from tests.dumps import graph_in


def texts(name: str) -> tuple[str, str]:
    folder = graph_in(name)
    return (folder / "output_code.py").read_text(), (folder / "fx_graph_runnable.py").read_text()


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("torch-2.13.0-cpu-programs/reductions", 256),
        ("torch-2.13.0-cpu-programs/low_precision", 256),
        ("torch-2.13.0-cpu/mlp_train", 512),
        ("torch-2.4.1-cpu/layernorm_grad", 512),
        ("torch-2.1.2-cpu/layernorm_grad", 512),
        ("torch-2.13.0-cpu/hflip_cl", None),
        ("torch-2.11.0-cuda/layernorm_grad", None),
    ],
)
def test_the_width_of_vectors_is_read_off_the_kernels(name: str, bits: int | None) -> None:
    code, _ = texts(name)
    kernels = parse_output_code(code, Path("output_code.py")).kernels
    assert vector_bits(kernel.details for kernel in kernels) == bits


def test_code_for_narrow_vectors_is_compiled_for_them_on_a_machine_with_wider_ones() -> None:
    code, runnable = texts("torch-2.13.0-cpu-programs/reductions")
    parsed = parse_output_code(code, Path("output_code.py"))
    assert "torch._inductor.config.cpp.simdlen = 256\n" in compile_settings(parsed, runnable)
    assert "torch._inductor.config.cpp.simdlen = 256\n" in compile_settings(parsed, None)


def test_only_settings_of_the_compiler_itself_are_taken_over_and_only_plain_ones() -> None:
    code, _ = texts("torch-2.13.0-cpu/hflip_cl")
    parsed = parse_output_code(code, Path("output_code.py"))
    cpp = "torch._inductor.config.cpp."
    assert compile_settings(parsed, f"{cpp}cxx = (None, 'evil')\n{cpp}simdlen = exit()\n") == ""
    said = compile_settings(parsed, f"{cpp}enable_floating_point_contract_flag = True\n")
    assert said.endswith("cpp.enable_floating_point_contract_flag = True")


def test_an_old_file_finds_header_and_compiler_where_torch_has_them_now() -> None:
    code, _ = texts("torch-2.1.2-cpu/dynamic_shapes")
    assert "codecache import AsyncCompile" in code
    now = in_todays_places(code)
    assert "#include <torch/csrc/inductor/cpp_prefix.h>" in now
    assert "from torch._inductor.async_compile import AsyncCompile" in now
    assert '#include "/' not in now
    assert now.count("\n") == code.count("\n")
    new, _ = texts("torch-2.13.0-cpu/mlp_train")
    assert in_todays_places(new) == new
