from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.variants.bench_variants import variant_diffs
from inductor_probe.variants.registry import apply_rewrite, rewrite_variants

ANTIALIAS = "torch-2.13.0-cpu/aa_separable_cl"
Text = Callable[..., str]


def changed(source: str, name: str) -> tuple[list[str], list[str]]:
    """The lines that a variant lost and got."""
    (diff,) = [each for each in variant_diffs(source) if each.name.startswith(name) and each.lines]
    body = [line for line in diff.lines if not line.startswith(("---", "+++", "@@"))]
    return (
        [line[1:].strip() for line in body if line.startswith("-")],
        [line[1:].strip() for line in body if line.startswith("+")],
    )


def test_allocation_writer_and_every_reader_follow(bench_text: Text) -> None:
    source = apply_rewrite(bench_text(ANTIALIAS), "stride:buf1=channels_last")
    before, after = changed(source, "call_v3")
    assert before == ["buf1 = empty_strided_cpu((4, 3, 345, 256), (264960, 256, 768, 1), torch.float32)"]
    assert after == ["buf1 = empty_strided_cpu((4, 3, 345, 256), (264960, 1, 768, 3), torch.float32)"]
    before, after = changed(source, "cpp_fused")
    assert [re.sub(r"tmp\d+", "tmp", line) for line in before] == [
        "tmp.store(out_ptr1 + static_cast<int64_t>(x2 + 256L*x1 + 768L*x0));",
        *["auto tmp = at::vec::Vectorized<float>::loadu(out_ptr1 + static_cast<int64_t>"
          "(x3 + 256L*x1 + 768L*tmp + 264960L*x0), static_cast<int64_t>(16));"] * 3,
    ]  # fmt: skip
    text = "\n".join(after)
    (store,) = re.findall(r"out_ptr1\[static_cast<int64_t>\((.*)\)\] = tmpbuf\[x2_inner\];", text)
    assert set(store.split(" + ", 3)) == {"x1", "768L*x0", "3L*(x2", "x2_inner)"}
    loads = re.findall(r"tmpbuf\[x3_inner\] = out_ptr1\[static_cast<int64_t>\((.*)\)\];", text)
    assert len(loads) == 3
    for load in loads:
        terms = set(re.sub(r"tmp\d+", "tmp", load).split(" + "))
        assert terms == {"264960L*x0", "x1", "768L*tmp", "3L*(x3", "x3_inner)"}


def test_a_vector_stays_one_where_its_elements_still_lie_side_by_side(bench_text: Text) -> None:
    source = apply_rewrite(bench_text(ANTIALIAS), "stride:buf1=contiguous")
    before, after = changed(source, "cpp_fused")
    assert len(before) == len(after) == 4
    assert not any("tmpbuf" in line for line in after)
    store = next(line for line in after if ".store(" in line)
    # rows of all images are one loop, which the channels now stand between
    image = "c10::div_floor_integer(static_cast<int64_t>(x0), static_cast<int64_t>(345L))"
    assert f"264960L*{image} + 88320L*x1 + 256L*(x0 % 345L) + x2" in store


def test_a_stride_with_gaps_keeps_vectors(bench_text: Text) -> None:
    source = apply_rewrite(bench_text(ANTIALIAS), "stride:buf1=(276480,256,800,1)")
    _, after = changed(source, "cpp_fused")
    assert all("800L*" in line for line in after)


def test_only_the_launches_of_that_buffer_run_the_copy(bench_text: Text) -> None:
    """The same reduction runs on two buffers of one graph; only one of them is laid out anew."""
    source = bench_text("torch-2.11.0-cuda/layernorm_grad", "backward")
    new = {each.name: each.text for each in rewrite_variants(source, "stride:buf5=(8,1)")}
    assert set(new) == {
        "triton_red_fused_gelu_gelu_backward_native_layer_norm_native_layer_norm_backward_1_v3",
        "triton_per_fused_gelu_gelu_backward_native_layer_norm_native_layer_norm_backward_2_v3",
        "call_v3",
    }
    call = new["call_v3"]
    assert re.search(r"backward_2_v3\.run\(buf5, buf6, ", call)
    assert re.search(r"backward_2\.run\(buf7, buf8, ", call)
    assert "buf5 = empty_strided_cuda((768, 8), (8, 1), torch.float32)" in call
    assert "buf7 = empty_strided_cuda((768, 8), (1, 768), torch.float32)" in call
    per = new["triton_per_fused_gelu_gelu_backward_native_layer_norm_native_layer_norm_backward_2_v3"]
    assert "tl.load(in_ptr0 + (8*x0 + r0_1), xmask, other=0.0)" in per
    assert "tl.store(out_ptr0 + (x0), tmp4, xmask)" in per
    red = new["triton_red_fused_gelu_gelu_backward_native_layer_norm_native_layer_norm_backward_1_v3"]
    assert "tl.store(out_ptr0 + (8*(x3 % 768) + (x3 // 768)), tmp25, xmask)" in red
    assert "tl.store(out_ptr1 + (x3), tmp28, xmask)" in red


@pytest.mark.parametrize(
    ("name", "part", "spec", "why"),
    [
        (ANTIALIAS, "", "stride:buf3=channels_last", "callers rely on its stride"),
        (ANTIALIAS, "", "stride:buf1=(1,2,3,4)", "share a place, or interleave"),
        (ANTIALIAS, "", "stride:buf1=(1,2,3)", "has 4 dimensions"),
        (ANTIALIAS, "", "stride:buf1=channels_first", "is not a memory format"),
        (ANTIALIAS, "", "stride:buf0=channels_last", "is not a memory format"),
        (ANTIALIAS, "", "stride:buf1=(264960,256,768,1)", "already"),
        (ANTIALIAS, "", "stride:buf1", "write BUFFER=(strides)"),
        ("torch-2.13.0-cpu/dynamic_shapes", "", "stride:buf2=contiguous", "symbolic"),
        ("torch-2.13.0-cpu/mlp_train", "forward", "stride:buf1=(2,)", "another layout of buf1: aten.randint"),
    ],
)  # fmt: skip
def test_what_cannot_follow_is_refused_with_its_line(
    bench_text: Text, name: str, part: str, spec: str, why: str
) -> None:
    source = bench_text(name, part)
    with pytest.raises(ProbeError) as caught:
        rewrite_variants(source, spec)
    assert why in caught.value.message
    assert caught.value.hint
    if line := re.match(r"output_code_bench\.py:(\d+): .*: (.*)", caught.value.message):
        shown = "".join(line[2].removesuffix("...").split())[:20]
        assert shown in "".join(source.split("\n")[int(line[1]) - 1].split())


def test_a_buffer_that_is_not_there_is_answered_with_near_names(bench_text: Text) -> None:
    with pytest.raises(NotFoundError) as caught:
        rewrite_variants(bench_text(ANTIALIAS), "stride:buf11=channels_last")
    assert "buf1" in (caught.value.hint or "")


def test_an_index_that_nothing_bounds_is_refused(bench_text: Text) -> None:
    """The row comes from a table that is read without a check: it might as well be any element."""
    source = re.sub(r"min_propagate_nan\((tmp\d+), tmp\d+\)", r"\1", bench_text(ANTIALIAS))
    with pytest.raises(ProbeError) as caught:
        rewrite_variants(source, "stride:buf1=channels_last")
    assert "the text of the kernel does not bound tmp" in caught.value.message
    line = int(re.match(r"output_code_bench\.py:(\d+): in cpp_", caught.value.message)[1])  # type: ignore[index]
    assert "loadu(out_ptr1" in source.split("\n")[line - 1]
