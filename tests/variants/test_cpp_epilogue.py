"""C++ templates without their epilogues: real ones, which then give the product as it is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import inductor_probe as ip
from inductor_probe.errors import ProbeError
from inductor_probe.variants.code import read_code
from inductor_probe.variants.cpp_ablation import without_epilogue
from inductor_probe.variants.registry import rewrite_variants
from tests.variants.conftest import graph

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
bench = names["BENCH"]
(kernel,) = bench.kernels
(variant,) = bench.ablations()
inputs = bench.inputs(0)
bench.namespace[kernel] = bench.namespace[variant]
(found,) = names["Variant"]("call").run(bench, inputs)
a, b = [each for each in inputs if each.dim() == 3]
torch.testing.assert_close(found, torch.bmm(a, b))
print("the product")
"""


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ip.Graph]:
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
    text = (graph("torch-2.13.0-cpu/hflip_cl") / "output_code.py").read_text()
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
