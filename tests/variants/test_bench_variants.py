from __future__ import annotations

from collections.abc import Callable

import pytest

from inductor_probe.errors import NotFoundError, ProbeError, VariantTextError
from inductor_probe.variants.bench_variants import add_variant, variant_diffs

FLIP = "torch-2.13.0-cpu/hflip_cl"
NORM = "torch-2.11.0-cuda/layernorm_grad"
KERNEL = "cpp_fused_flip_0"
Text = Callable[..., str]


def lines(source: str, name: str) -> list[str]:
    (diff,) = [each for each in variant_diffs(source) if each.name == name]
    return [line for line in diff.lines if line[:1] in "+-" and not line.startswith(("+++", "---"))]


def test_a_copy_differs_in_nothing_but_its_name(bench_text: Text) -> None:
    source = add_variant(bench_text(FLIP), f"{KERNEL}_v7", None)
    assert lines(source, f"{KERNEL}_v7") == []
    assert f"{KERNEL}_v7 = async_compile.cpp_pybinding(" in source
    compile(source, "bench", "exec")
    assert add_variant(source, f"{KERNEL}_v7", None) == source


def test_a_copy_of_the_wrapper_launches_the_copies_of_its_number(bench_text: Text) -> None:
    source = add_variant(add_variant(bench_text(FLIP), f"{KERNEL}_v3"), "call_v3")
    assert lines(source, "call_v3") == []
    assert f"        {KERNEL}_v3(arg0_1" in source
    alone = add_variant(bench_text(FLIP), "call_v3")
    assert f"        {KERNEL}(arg0_1" in alone[alone.index("class Runner_v3") :]


def test_cpp_source_alone_becomes_a_kernel(bench_text: Text, kernel_text: Text) -> None:
    pristine = kernel_text(bench_text(FLIP), KERNEL)
    mine = pristine.replace("#pragma GCC ivdep", '// mine: \\ and "quotes"')
    source = add_variant(bench_text(FLIP), f"{KERNEL}_v3", mine)
    assert kernel_text(source, KERNEL, 3).strip() == mine.strip()
    assert any("// mine" in line for line in lines(source, f"{KERNEL}_v3"))


def test_triton_source_is_renamed_where_it_names_itself(bench_text: Text, kernel_text: Text) -> None:
    source = bench_text(NORM, "forward")
    (kernel,) = {diff.base for diff in variant_diffs(source) if str(diff.base).startswith("triton_")}
    text = kernel_text(source, kernel).replace(str(kernel), "my_kernel").replace("evict_first", "evict_last")
    made = add_variant(source, f"{kernel}_v3", text)
    new = kernel_text(made, kernel, 3)
    assert f"def {kernel}_v3(" in new
    assert f"'kernel_name': '{kernel}_v3'" in new
    assert "my_kernel" not in made
    assert f"{kernel}_v3 = async_compile.triton('{kernel}_v3'" in made


def test_a_whole_statement_is_taken_whatever_its_name(bench_text: Text) -> None:
    source = bench_text(FLIP)
    start = source.index(f"{KERNEL} = ")
    statement = source[start : source.index("''')", start) + 4].replace(f"{KERNEL} =", "my_flip =")
    made = add_variant(source, f"{KERNEL}_v3", statement.replace("tmp0", "pixel"))
    assert f"\n{KERNEL}_v3 = async_compile.cpp_pybinding(" in made
    assert "my_flip" not in made
    assert lines(made, f"{KERNEL}_v3")


def test_a_wrapper_is_a_function_or_a_runner(bench_text: Text) -> None:
    source = bench_text(FLIP)
    made = add_variant(
        source, "call_v3", "def helper(x):\n    return x\n\ndef call(args):\n    return helper(args)\n"
    )
    assert "def helper_v3(x):" in made
    assert "def call_v3(args):\n    return helper_v3(args)" in made
    runner = source[source.index("class Runner:") : source.index("runner = Runner")]
    made = add_variant(source, "call_v3", runner)
    assert "class Runner_v3:" in made
    assert "call_v3 = runner_v3.call" in made
    compile(made, "bench", "exec")


@pytest.mark.parametrize(
    ("name", "text", "error", "why"),
    [
        (f"{KERNEL}_v1", None, NotFoundError, "the numbers of variants begin with 2"),
        (KERNEL, None, NotFoundError, f"{KERNEL} is what variants are compared to"),
        ("flip", None, NotFoundError, "flip is not the name of a variant"),
        ("cpp_fused_flop_0_v3", None, NotFoundError, "output_code_bench.py has no kernel cpp_fused_flop_0"),
        (f"{KERNEL}_v3", "int main() {}", VariantTextError,
         f"line 1 of the text for {KERNEL}_v3: no kernel was found in it, and {KERNEL} takes 2"),
        (f"{KERNEL}_v3", 'extern "C" void kernel(const float* a) {}', VariantTextError,
         "its kernel takes 1 arguments"),
        (f"{KERNEL}_v3", "x = async_compile.triton('x', '''def x(): pass''')", VariantTextError,
         f"a kernel of another backend, and {KERNEL} is one cpp kernel"),
        (f"{KERNEL}_v3", "# mine\nx = async_compile.cpp_pybinding([], r'''", VariantTextError,
         f"line 2 of the text for {KERNEL}_v3: not Python"),
        ("call_v3", "def call(args): pass\nprint(1)\n", VariantTextError,
         "line 2 of the text for call_v3: a statement that is not a function"),
        ("call_v3", "def run(args): pass\n", VariantTextError, "neither a function `call` nor"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    bench_text: Text, name: str, text: str | None, error: type[ProbeError], why: str
) -> None:
    with pytest.raises(error) as caught:
        add_variant(bench_text(FLIP), name, text)
    assert why in caught.value.message
    assert caught.value.hint


def test_a_file_given_again_replaces_itself_but_never_an_edit(bench_text: Text, kernel_text: Text) -> None:
    pristine = kernel_text(bench_text(FLIP), KERNEL)
    first = add_variant(bench_text(FLIP), f"{KERNEL}_v3", pristine.replace("tmp0", "first"))
    second = add_variant(first, f"{KERNEL}_v3", pristine.replace("tmp0", "second"))
    assert "second" in kernel_text(second, KERNEL, 3)
    edited = second.replace("auto second", "auto  second", 1)
    assert edited != second
    with pytest.raises(ProbeError, match="already exists, and was edited"):
        add_variant(edited, f"{KERNEL}_v3", pristine)
    untouched = add_variant(bench_text(FLIP), f"{KERNEL}_v2", pristine.replace("tmp0", "mine"))
    assert "mine" in kernel_text(untouched, KERNEL, 2)


def test_a_diff_shows_the_lines_with_two_of_context(bench_text: Text) -> None:
    source = bench_text(FLIP)
    start = source.index(f"{KERNEL}_v2 = ")
    edited = source[:start] + source[start:].replace("auto tmp0 =", "auto tmp0 = 1 + ", 1)
    (diff,) = [each for each in variant_diffs(edited) if each.lines]
    assert (diff.name, diff.base, diff.kind) == (f"{KERNEL}_v2", KERNEL, "edit")
    assert diff.lines[:2] == (f"--- {KERNEL}", f"+++ {KERNEL}_v2")
    assert sum(line.startswith(" ") for line in diff.lines) == 4
    assert {each.name for each in variant_diffs(source)} == {"call_v2", f"{KERNEL}_v2"}
    assert not any(each.lines for each in variant_diffs(source))
