"""Rewrites of Triton kernels, as text."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.reader.debug_dir import read_graph, read_run
from inductor_probe.variants.bench_variants import ablations
from inductor_probe.variants.code import read_code
from inductor_probe.variants.registry import apply_rewrite, rewrite_variants
from inductor_probe.variants.triton_ablation import MARKER, without_epilogue

NORM = "torch-2.11.0-cuda/layernorm_grad"
ADAM = "torch-2.11.0-cuda/foreach_adam"
POINTWISE = "triton_poi_fused"
PERSISTENT = "triton_per_fused_gelu_gelu_backward_native_layer_norm_native_layer_norm_backward_0"
LOOPED = "triton_red"
Text = Callable[..., str]


def to_ptx(source: str, folder: Path, blocks: dict[str, int]) -> str:
    """Compile a kernel for a Hopper GPU, which needs none, and return its PTX."""
    triton = pytest.importorskip("triton", reason="Triton is not installed")
    from triton.backends.compiler import GPUTarget  # noqa: PLC0415
    from triton.compiler import ASTSource  # noqa: PLC0415

    tree = ast.parse(source)
    (kernel,) = [
        each
        for each in tree.body
        if isinstance(each, ast.FunctionDef) and "triton_heuristics" in ast.unparse(each.decorator_list[0])
    ]
    meta = next(k.value for k in kernel.decorator_list[0].keywords if k.arg == "triton_meta")  # type: ignore[attr-defined]
    signature = next(
        v for k, v in zip(meta.keys, meta.values, strict=True) if ast.literal_eval(k) == "signature"
    )
    kernel.decorator_list = kernel.decorator_list[1:]
    tree.body = [each for each in tree.body if "set_driver_to_gpu" not in ast.unparse(each)]
    path = folder / f"{kernel.name}.py"
    path.write_text(ast.unparse(tree))
    names: dict[str, object] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)  # noqa: S102 - the text that was just made
    types = ast.literal_eval(signature)
    compiled = triton.compile(
        ASTSource(
            names[kernel.name], types, {(list(types).index(name),): size for name, size in blocks.items()}
        ),
        target=GPUTarget("cuda", 90, 32),
    )
    return str(compiled.asm["ptx"])


def meta_of(source: str) -> str:
    return re.search(r"triton_meta=(\{.*\})", source)[1]  # type: ignore[index]


def test_the_heuristic_becomes_one_fixed_configuration(bench_text: Text, kernel_text: Text) -> None:
    source = bench_text(NORM, "backward")
    after = apply_rewrite(source, f"triton:{LOOPED} XBLOCK=8 R0_BLOCK=128 num_warps=2 num_stages=3")
    pristine, fixed = kernel_text(after, LOOPED), kernel_text(after, LOOPED, 3)
    head = fixed[fixed.index("@") : fixed.index("@triton.jit")]
    assert head.startswith(
        "@triton_heuristics.fixed_config(\n"
        "    config={'XBLOCK': 8, 'R0_BLOCK': 128, 'num_warps': 2, 'num_stages': 3},\n"
        "    filename=__file__,\n    triton_meta={"
    )
    assert meta_of(fixed) == meta_of(pristine)
    assert "inductor_meta={'grid_type': 'Grid1D'" in head
    assert "size_hints" not in head
    assert "reduction_hint" not in head
    name = read_code(after).kernel(LOOPED).name
    assert (
        fixed[fixed.index("@triton.jit") :].replace(f"{name}_v3", name)
        == pristine[pristine.index("@triton.jit") :]
    )


def test_warps_and_stages_have_inductors_usual_values(bench_text: Text, kernel_text: Text) -> None:
    after = apply_rewrite(bench_text(NORM, "backward"), f"triton:{PERSISTENT} XBLOCK=4")
    assert "config={'XBLOCK': 4, 'num_warps': 4, 'num_stages': 1}" in kernel_text(after, PERSISTENT, 3)


def test_a_kernel_of_several_has_no_block_to_set(bench_text: Text, kernel_text: Text) -> None:
    after = apply_rewrite(bench_text(ADAM), "triton:triton_for_fused_0 num_warps=4")
    fixed = kernel_text(after, "triton_for_fused_0", 3)
    assert "fixed_config(\n    config={'num_warps': 4, 'num_stages': 1}" in fixed
    assert (
        "'combo_grid_meta': {'num_kernels': 4, 'min_blocks': 0, 'default_config': {'XBLOCK': 1024}" in fixed
    )


@pytest.mark.parametrize(
    ("spec", "error", "why"),
    [
        (f"triton:{LOOPED} XBLOCK=8", ProbeError, "takes R0_BLOCK as well"),
        (f"triton:{LOOPED} XBLOCK=8 R0_BLOCK=100", ProbeError, "R0_BLOCK=100 is not a power of two"),
        (f"triton:{LOOPED} XBLOCK=8 R0_BLOCK=64 YBLOCK=2", NotFoundError, "takes no YBLOCK"),
        (
            f"triton:{LOOPED} num_warps=3 XBLOCK=8 R0_BLOCK=64",
            ProbeError,
            "3 is not a power of two",
        ),
        (f"triton:{LOOPED}", ProbeError, "write KERNEL XBLOCK=256"),
        (f"triton:{LOOPED} XBLOCK", ProbeError, "write KERNEL XBLOCK=256"),
        ("triton:triton_nothing XBLOCK=8", NotFoundError, "no kernel triton_nothing"),
        (f"index:{LOOPED} int16", ProbeError, "write KERNEL int32"),
        (f"index:{LOOPED} int32", ProbeError, "indexes with int32 already"),
    ],
)
def test_what_does_not_apply_is_refused(
    bench_text: Text, spec: str, error: type[ProbeError], why: str
) -> None:
    with pytest.raises(error) as caught:
        rewrite_variants(bench_text(NORM, "backward"), spec)
    assert why in caught.value.message
    assert caught.value.hint


def test_a_cpp_kernel_has_no_blocks(bench_text: Text) -> None:
    with pytest.raises(ProbeError, match="is not a Triton kernel"):
        rewrite_variants(bench_text("torch-2.13.0-cpu/hflip_cl"), "triton:cpp_fused_flip_0 XBLOCK=8")


def test_wide_indices_and_back(bench_text: Text, kernel_text: Text) -> None:
    wide = apply_rewrite(bench_text(NORM, "backward"), f"index:{LOOPED} int64")
    text = kernel_text(wide, LOOPED, 3)
    assert "xoffset = tl.program_id(0).to(tl.int64) * XBLOCK" in text
    assert "xindex = xoffset + tl.arange(0, XBLOCK)[:, None].to(tl.int64)" in text
    assert "r0_base = tl.arange(0, R0_BLOCK)[None, :].to(tl.int64)" in text
    assert "'xnumel': 'i64', 'r0_numel': 'i64', 'XBLOCK': 'constexpr'" in text
    back = apply_rewrite(wide, f"index@v3:{LOOPED} int32")
    name = read_code(back).kernel(LOOPED).name
    assert kernel_text(back, LOOPED, 4).replace(f"{name}_v4", name) == kernel_text(back, LOOPED)


def test_the_rungs_of_an_ablation(bench_text: Text, kernel_text: Text) -> None:
    source = apply_rewrite(bench_text(NORM, "backward"), f"ablation:{LOOPED}")
    name = read_code(source).kernel(LOOPED).name
    assert ablations(source) == {
        f"{name}_v3": "no_reduction",
        f"{name}_v4": "no_loads",
        f"{name}_v5": "store_only",
    }
    full, reduced, loaded, stored = (kernel_text(source, LOOPED, number) for number in (0, 3, 4, 5))
    assert full.count("tl.sum(") == 2
    assert reduced.count("tl.sum(") == 0
    assert reduced.count("tl.inline_asm_elementwise(") == 2
    assert reduced.count("tl.load(") == full.count("tl.load(") == 5
    assert loaded.count("tl.load(") == 0
    assert "tmp0 = ((x0 + 768*r0_2 + 98304*x1) + tl.program_id(0)).to(tl.float32)\n" in loaded
    assert loaded.count("tl.store(") == stored.count("tl.store(") == 2
    value = "tl.broadcast_to(((x3) + tl.program_id(0)).to(tl.float32), (tmp25).shape)"
    assert f"tl.store(out_ptr0 + (x3), {value}, xmask)" in stored


def test_tritons_compiler_takes_them_and_drops_what_was_left_out(
    bench_text: Text, kernel_text: Text, tmp_path: Path
) -> None:
    source = apply_rewrite(bench_text(NORM, "backward"), f"ablation:{LOOPED}")
    source = apply_rewrite(source, f"index:{LOOPED} int64")
    blocks = {"XBLOCK": 8, "R0_BLOCK": 64}
    full, reduced, loaded, stored, wide = (
        to_ptx(kernel_text(source, LOOPED, number), tmp_path, blocks) for number in (0, 3, 4, 5, 6)
    )
    assert "shfl.sync" in full
    assert "shfl.sync" not in reduced
    assert full.count("ld.global") == reduced.count("ld.global") > 0
    assert loaded.count("ld.global") == stored.count("ld.global") == 0
    assert "ex2.approx" in loaded
    assert "ex2.approx" not in stored
    assert "st.global" in stored
    assert wide.count("mad.lo.s64") + wide.count("add.s64") + wide.count("mul.wide") > full.count(
        "mad.lo.s64"
    ) + full.count("add.s64") + full.count("mul.wide")


def test_a_persistent_reduction_loses_its_shuffles(
    bench_text: Text, kernel_text: Text, tmp_path: Path
) -> None:
    source = apply_rewrite(bench_text(NORM, "backward"), f"ablation:{PERSISTENT}")
    full, reduced, loaded, stored = (
        to_ptx(kernel_text(source, PERSISTENT, number), tmp_path, {"XBLOCK": 1}) for number in (0, 3, 4, 5)
    )
    assert "shfl.sync" in full
    assert "shfl.sync" not in reduced
    assert "ld.global" in reduced
    assert "ld.global" not in loaded
    assert "ld.global" not in stored


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
