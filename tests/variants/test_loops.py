from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.variants.code import read_code
from inductor_probe.variants.registry import apply_rewrite, rewrite_variants

ANTIALIAS = "torch-2.13.0-cpu/aa_separable_cl"
Text = Callable[..., str]


def headers(source: str) -> list[str]:
    return re.findall(r"for\(int64_t (x\d)", source)


def test_two_loops_change_places_and_nothing_else(bench_text: Text, kernel_text: Text) -> None:
    source = bench_text(ANTIALIAS)
    after = apply_rewrite(source, "loops:cpp_fused x1,x2 nest=2")
    pristine, swapped = kernel_text(after, "cpp_fused"), kernel_text(after, "cpp_fused", 3)
    assert headers(pristine)[:4] == ["x0", "x0", "x1", "x2"]
    assert headers(swapped)[:4] == ["x0", "x0", "x2", "x1"]
    assert sorted(pristine.split()) == sorted(swapped.split())
    changed = [(a, b) for a, b in zip(pristine.split("\n"), swapped.split("\n"), strict=True) if a != b]
    assert len(changed) == 2
    assert "call_v3" not in read_code(after).known, "the buffers are as they were, so call runs the copy"


def test_rewrites_of_rewrites_start_from_their_variants(bench_text: Text, kernel_text: Text) -> None:
    source = apply_rewrite(bench_text(ANTIALIAS), "stride:buf1=channels_last")
    source = apply_rewrite(source, "loops@v3:cpp_fused x1,x2 nest=2")
    both = kernel_text(source, "cpp_fused", 4)
    assert headers(both)[:4] == ["x0", "x0", "x2", "x1"]
    assert both.count("out_ptr1[static_cast<int64_t>(") == 4
    assert "(264960, 1, 768, 3)" in source[source.index("class Runner_v4") :]
    assert re.search(r"cpp_fused\w+_v4\(arg0_1", source[source.index("class Runner_v4") :])


@pytest.mark.parametrize(
    ("name", "part", "spec", "error", "why"),
    [
        (ANTIALIAS, "", "loops:cpp_fused x1,x2", ProbeError, "2 nests of"),
        (ANTIALIAS, "", "loops:cpp_fused x1,x7", NotFoundError, "no nest with loops over both"),
        (ANTIALIAS, "", "loops:cpp_other x1,x2", NotFoundError, "no kernel cpp_other"),
        (ANTIALIAS, "", "loops:cpp_fused", ProbeError, "write KERNEL x1,x2"),
        ("torch-2.13.0-cpu/mlp_train", "backward", "loops:cpp_fused_gelu x0,x1", ProbeError, "tmp_acc0"),
        ("torch-2.11.0-cuda/foreach_adam", "", "loops:triton_for_fused_0 x0,x1", ProbeError, "not a C++"),
        (
            "torch-2.13.0-cpu-programs/scatters", "", "loops:cpp_fused_expand x0,x1 nest=2", ProbeError,
            "atomic additions would run in another order",
        ),
    ],
)  # fmt: skip
def test_what_is_not_safe_is_refused(  # noqa: PLR0917 - one case
    bench_text: Text, name: str, part: str, spec: str, error: type[ProbeError], why: str
) -> None:
    with pytest.raises(error) as caught:
        rewrite_variants(bench_text(name, part), spec)
    assert why in caught.value.message


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("tmp117.store(out_ptr1 + static_cast<int64_t>(x2 + 256L*x1",
         "tmp117.store(out_ptr1 + static_cast<int64_t>(x2 + 256L*0", "every x1 stores to the same place"),
        ("loadu(out_ptr0 + static_cast<int64_t>(x2)", "loadu(out_ptr1 + static_cast<int64_t>(x2)",
         "what another iteration stores"),
        ("x2<static_cast<int64_t>(256L); x2+=", "x2<static_cast<int64_t>(256L*x1); x2+=",
         "bounds depend on another loop"),
    ],
)  # fmt: skip
def test_a_dependence_is_seen(bench_text: Text, before: str, after: str, why: str) -> None:
    source = re.sub(r"tmp\d+(?=\.store\(out_ptr1)", "tmp117", bench_text(ANTIALIAS))
    assert before in source
    with pytest.raises(ProbeError) as caught:
        rewrite_variants(source.replace(before, after), "loops:cpp_fused x1,x2 nest=2")
    assert why in caught.value.message
