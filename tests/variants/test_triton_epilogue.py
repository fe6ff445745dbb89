"""A template without its epilogue: what is left is the template's own store, of the accumulator."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from inductor_probe.reader.debug_dir import read_graph, read_run
from inductor_probe.variants.triton_ablation import MARKER, without_epilogue


@pytest.fixture(scope="module")
def bare(corpus: Path) -> str:
    """The text of a real mm template, with nothing fused into it."""
    (run,) = (corpus / "torch-2.11.0-cuda" / "mm_epilogue_maxautotune").glob("**/run_*")
    graph = read_graph(read_run(run).graphs[0])
    assert graph.code is not None
    kernel = graph.code.kernel("triton_tem_fused_mm_0")
    assert kernel is not None
    return kernel.source


@pytest.fixture(scope="module")
def fused(bare: str) -> str:
    """The same with a bias and a relu behind the product, as inductor writes them."""
    store = "    tl.store(out_ptr0 + (tl.broadcast_to(xindex, [BLOCK_M, BLOCK_N])), acc, mask)\n"
    assert store in bare
    epilogue = (
        "    tmp0 = tl.load(in_ptr2 + (tl.broadcast_to(idx_n, [BLOCK_M, BLOCK_N])), mask, "
        "eviction_policy='evict_last')\n"
        "    tmp1 = acc + tmp0\n"
        "    tmp2 = tl.full([1, 1], 0, tl.int32)\n"
        "    tmp3 = triton_helpers.maximum(tmp2, tmp1)\n"
    )
    return bare.replace(store, epilogue + store.replace("acc,", "tmp3,")).replace(
        "(arg_A, arg_B, out_ptr0)", "(arg_A, arg_B, in_ptr2, out_ptr0)"
    )


def test_only_the_store_of_the_accumulator_is_left(bare: str, fused: str) -> None:
    cut = without_epilogue(fused)
    ast.parse(cut)
    suffix = [line.strip() for line in cut.split(MARKER)[1].strip().splitlines()]
    assert suffix == [
        "xindex = idx_n + 256 * idx_m".replace(" * ", "*"),
        "tl.store(out_ptr0 + tl.broadcast_to(xindex, [BLOCK_M, BLOCK_N]), acc, mask)",
    ]
    same_arguments = bare.replace("(arg_A, arg_B, out_ptr0)", "(arg_A, arg_B, in_ptr2, out_ptr0)")
    assert same_arguments != bare
    assert ast.dump(ast.parse(cut)) == ast.dump(ast.parse(same_arguments))  # but for a pair of brackets


def test_a_template_without_an_epilogue_is_said(bare: str) -> None:
    with pytest.raises(ValueError, match="it has no epilogue"):
        without_epilogue(bare)


def test_another_kernel_is_refused() -> None:
    with pytest.raises(ValueError, match="not a template with one suffix: 0 lines"):
        without_epilogue("@triton.jit\ndef triton_poi_0(in_ptr0):\n    pass\n")
    with pytest.raises(ValueError, match="has 2 stores"):
        without_epilogue(
            f"def f(a, b, acc):\n    {MARKER}\n    tl.store(a, acc + 1, None)\n    tl.store(b, acc, None)\n"
        )
