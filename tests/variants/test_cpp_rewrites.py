"""Rewrites of C++ kernels compiled and run: those that must compute the same do, and a wrong one is seen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import inductor_probe as ip
from inductor_probe.errors import ProbeError
from inductor_probe.variants.bench_variants import ablations
from inductor_probe.variants.code import read_code
from inductor_probe.variants.cpp_ablation import without_epilogue
from inductor_probe.variants.registry import apply_rewrite, rewrite_variants
from tests.bench_file import checked
from tests.dumps import graph_in

pytestmark = pytest.mark.usefixtures("warm")

ANTIALIAS = "torch-2.13.0-cpu/aa_separable_cl"
TRAIN = "torch-2.13.0-cpu/mlp_train"
Text = Callable[..., str]


def check(folder: Path, source: str) -> dict[str, dict[str, Any]]:
    """Check the variants in a bench file of that text."""
    path = folder / "output_code_bench.py"
    path.write_text(source)
    return checked.check(path)


@pytest.mark.compiles
def test_strides_loops_and_index_widths_compute_the_same(bench_text: Text, tmp_path: Path) -> None:
    source = bench_text(ANTIALIAS)
    for spec in (
        "stride:buf1=channels_last",
        "stride:buf1=contiguous",
        "loops:cpp_fused x1,x2 nest=2",
        "loops@v3:cpp_fused x1,x2 nest=2",
        "index:cpp_fused int32",
    ):
        source = apply_rewrite(source, spec)
    found = check(tmp_path, source)
    assert found["call"]["correct"]
    rewrites = [each for name, each in found.items() if re.search(r"_v[3-7]$", name)]
    assert len(rewrites) == 8
    assert all(each["correct"] for each in rewrites), [each for each in rewrites if not each["correct"]]


@pytest.mark.compiles
def test_one_reader_that_does_not_follow_is_seen(bench_text: Text, tmp_path: Path) -> None:
    source = apply_rewrite(bench_text(ANTIALIAS), "stride:buf1=channels_last")
    start = source.index("_v3 = async_compile")
    load = re.search(r"tmpbuf\[x3_inner\] = out_ptr1\[static_cast<int64_t>\((.*)\)\];", source[start:])
    assert load is not None
    row = re.search(r"tmp\d+", load[1])
    assert row is not None
    as_before = f"(x3 + x3_inner) + 256L*x1 + 768L*{row[0]} + 264960L*x0"
    wrong = source[:start] + source[start:].replace(load[1], as_before, 1)
    found = check(tmp_path, wrong)
    assert found["call"]["correct"]
    assert not found["call_v3"]["correct"]
    share = found["call_v3"]["mismatches"] / found["call_v3"]["elements"]
    assert share > 0.9, "a pixel is right by chance at most"


@pytest.mark.compiles
def test_ablations_compile_and_are_not_judged(bench_text: Text, tmp_path: Path) -> None:
    source = apply_rewrite(bench_text(ANTIALIAS), "ablation:cpp_fused")
    left_out = ablations(source)
    assert list(left_out.values()) == ["no_loads", "store_only"]
    found = check(tmp_path, source)
    assert found["call"]["correct"]
    assert not found.keys() & left_out.keys()


def test_a_reduction_is_left_out_by_handing_its_values_to_nobody(bench_text: Text, kernel_text: Text) -> None:
    source = apply_rewrite(bench_text(TRAIN, "backward"), "ablation:cpp_fused_sum_1")
    full, reduced, loaded, stored = (
        kernel_text(source, "cpp_fused_sum_1", number) for number in (0, 3, 4, 5)
    )
    combined = re.findall(r"tmp_acc\w+ = tmp_acc\w+ \+ tmp\d+;", full)
    assert combined
    assert reduced.count("asm volatile") == len(combined)
    assert not re.search(r"tmp_acc\w+ = tmp_acc\w+ \+ tmp\d+;", reduced)
    assert "in_ptr0 +" in reduced
    assert "in_ptr0 +" not in loaded
    assert re.search(r"tmp0 = at::vec::Vectorized<float>\(static_cast<float>\(x0 \+", loaded)
    assert re.search(r"decltype\(tmp_acc0_vec\)\(static_cast<float>\(x0\)\)\.store\(out_ptr0", stored)


def test_32_bits_must_hold_every_index(bench_text: Text) -> None:
    source = bench_text("torch-2.13.0-cpu/hflip_cl")
    large = source.replace(
        "(1, 3, 224, 224), (150528, 1, 672, 3)", "(20000, 3, 224, 224), (150528, 1, 672, 3)"
    )
    assert large != source
    with pytest.raises(
        ProbeError, match="32 bits may be too few: the extent of arg0_1 is 3010560000 elements"
    ):
        rewrite_variants(large, "index:cpp_fused_flip_0 int32")
    with pytest.raises(ProbeError, match="symbolic"):
        rewrite_variants(bench_text("torch-2.13.0-cpu/dynamic_shapes"), "index:cpp_fused int32")
    with pytest.raises(ProbeError, match="indexes with int64 already"):
        rewrite_variants(source, "index:cpp_fused_flip_0 int64")


def test_only_loops_and_indices_are_narrowed(bench_text: Text, kernel_text: Text) -> None:
    source = apply_rewrite(bench_text(ANTIALIAS), "index:cpp_fused int32")
    text = kernel_text(source, "cpp_fused", 3)
    assert not re.search(r"for ?\((?:int64_t|long) x", text)
    assert not re.search(r"_ptr\d+(?:\[| \+ )static_cast<int64_t>", text)
    assert not re.search(r"_ptr\d+(?:\[| \+ )static_cast<int32_t>\([^)]*\dL", text)
    assert "auto tmp0 = static_cast<int64_t>(x0);" in text
    assert "std::array<int64_t, 16> tmpbuf" in text


SCRIPT = """
import torch
import torch._inductor.config as config

config.freezing = config.max_autotune = True
config.max_autotune_gemm_backends = "CPP"
linear = torch.nn.Linear(256, 320).eval().bfloat16()


def attention(a, b, scale):
    return torch.sigmoid(torch.bmm(a, b)) * scale


def activation(x):
    return torch.relu(linear(x))


with torch.no_grad():
    torch.compile(attention)(torch.randn(4, 64, 128), torch.randn(4, 128, 96), torch.randn(96))
    torch._dynamo.reset()
    torch.compile(activation)(torch.randn(64, 256).bfloat16())
"""
# Runs `call` with the variant in place of the kernel, and compares with what comes before the epilogue.
CHECK = """
import runpy, sys, torch
names = runpy.run_path(sys.argv[1])
bench = names["Bench"](names)
(kernel,) = bench.kernels
(variant,) = names["ABLATIONS"]
inputs = bench.inputs(0)
names["call"].__globals__[kernel] = names[variant]
(found,) = names["call"](list(inputs))
a, b = [each for each in inputs if each.dim() == 3]
torch.testing.assert_close(found, torch.bmm(a, b))
print("the product")
"""


@pytest.fixture(scope="module")
def templates(warm: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, ip.Graph]:
    """A product with an epilogue in place, and one of bfloat16 with a buffer of its own and a bias."""
    folder = tmp_path_factory.mktemp("templates")
    script = folder / "products.py"
    script.write_text(SCRIPT)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        graphs = ip.dump(script).graphs
    return dict(zip(("bmm", "linear"), graphs, strict=True))


def kernel_of(graph: ip.Graph) -> tuple[str, str]:
    (kernel,) = read_code((graph.path / "output_code.py").read_text()).kernels.values()
    return kernel.name, kernel.source


@pytest.mark.compiles
def test_a_template_gives_the_product_as_it_is(templates: dict[str, ip.Graph]) -> None:
    graph = templates["bmm"]
    name, source = kernel_of(graph)
    assert ".exp()" in source
    file = graph.write_bench_file(rewrites=[f"no_epilogue:{name}"])
    (diff,) = file.diffs
    assert diff.kind == "ablation"
    assert ".exp()" not in without_epilogue(source)
    ended = subprocess.run(
        [sys.executable, "-c", CHECK, str(file.path)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout == "the product\n", ended.stderr


@pytest.mark.compiles
def test_a_conversion_stays_and_a_bias_goes(templates: dict[str, ip.Graph]) -> None:
    _, source = kernel_of(templates["linear"])
    if "micro_gemm" not in source:
        pytest.skip("inductor has no template for bfloat16 on this machine")
    cut = without_epilogue(source)
    assert "maximum(" in source
    assert "maximum(" not in cut
    assert "loadu(inp + " in source
    assert "loadu(inp + " not in cut
    assert cut.count("convert<at::BFloat16>(") == cut.count(".store(Y + ") > 0
    with pytest.raises(ValueError, match="it has no epilogue"):
        without_epilogue(cut)


def test_a_kernel_that_is_no_template_is_refused() -> None:
    text = (graph_in("torch-2.13.0-cpu/hflip_cl") / "output_code.py").read_text()
    with pytest.raises(
        ProbeError, match=r"cpp_fused_flip_0 .*: not a template: nothing in it calls a micro_gemm"
    ):
        rewrite_variants(text, "no_epilogue:cpp_fused_flip_0")


PRODUCT = """
extern "C" void kernel(const float* X, const float* W, float* Y, at::BFloat16* Z)
    micro_gemm<false>(
        &(X[0]),
        &(W[0]),
        &(Y[0]),
    {
        auto tmp0 = Y[x0];
        auto tmp1 = tmp0 * 2;
        STORE
    }
"""


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ("Z[x0] = tmp1;", "stores another type"),
        ("Y[x0] = static_cast<float>(tmp1);", "line 10 of it stores in a form that is not known"),
        ("atomic_add(&Y[x0], tmp1);", "stores in a form that is not known"),
        ("Y[x0] = tmp7;", "stores what is not made of the product"),
        ("Y[x0] = tmp0;", "it has no epilogue"),
    ],
)
def test_what_is_not_understood_is_refused(store: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        without_epilogue(PRODUCT.replace("STORE", store))


def test_what_only_the_epilogue_needs_is_left_out() -> None:
    cut = without_epilogue(PRODUCT.replace("STORE", "Y[x0] = tmp1;"))
    assert [line.strip() for line in cut.split("\n")[-5:]] == [
        "{",
        "auto tmp0 = Y[x0];",
        "Y[x0] = tmp0;",
        "}",
        "",
    ]


def test_the_extents_of_inputs_that_are_asserted_together_are_known(bench_text: Text) -> None:
    """Torch 2.14 asserts inputs in one call: `index` refused their kernels, since no extent was known."""
    layout = "(1, 3, 224, 224)", "(150528, 1, 672, 3)"
    one = f"assert_size_stride(arg0_1, {layout[0]}, {layout[1]}, 'input')"
    grouped = (
        f"assert_size_stride_grouped((arg1_1, arg0_1), ((3, ), {layout[0]}), ((1, ), {layout[1]}), 'input')"
    )
    source = bench_text("torch-2.13.0-cpu/hflip_cl")
    assert one in source
    together = source.replace(one, grouped)
    assert "cpp_fused_flip_0_v3 = " in apply_rewrite(together, "index:cpp_fused_flip_0 int32")
    large = together.replace("(1, 3, 224, 224)", "(20000, 3, 224, 224)")
    with pytest.raises(ProbeError, match="the extent of arg0_1 is 3010560000 elements"):
        rewrite_variants(large, "index:cpp_fused_flip_0 int32")
