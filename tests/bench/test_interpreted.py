"""Bench files checked without a GPU: inductor's Triton kernels are right, planted edits are found."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from inductor_probe.bench.interpreted import check_interpreted
from inductor_probe.bench_file.bench_file import write_bench_file
from inductor_probe.errors import ProbeError
from inductor_probe.model.bench import BenchSettings
from inductor_probe.model.kernel_check import KernelCheck
from tests.conftest import DUMPS, REPOSITORY, Ran

pytestmark = [pytest.mark.compiles, pytest.mark.usefixtures("warm")]
OPERATIONS = REPOSITORY / "tests" / "harness" / "fixtures" / "every_operation"
BETWEEN = OPERATIONS.with_name("between_library_calls")
DRAWN_AGAIN = OPERATIONS.with_name("numbers_drawn_again")
ADAM = next((DUMPS / "torch-2.11.0-cuda" / "foreach_adam").glob("run_*/torchinductor/*"))


def _checked(folder: Path, *edits: tuple[str, str, str], limit: float = 120.0) -> KernelCheck:
    """Check the bench file of a folder; `edits` are kernels, a part of the copy of each, another text."""
    path = write_bench_file(folder).path
    text = path.read_text()
    for kernel, before, after in edits:
        start = text.index(f"{kernel}_v2 = ")
        place = text.index(before, start)
        assert place < text.index("device_str", start), "it is in this kernel"
        text = text[:place] + after + text[place + len(before) :]
    return check_interpreted(path, text, BenchSettings(), limit)


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[Path], Path]:
    return lambda folder: shutil.copytree(folder, tmp_path / folder.name)


needs_2_13 = pytest.mark.skipif(
    tuple(map(int, version("torch").split(".")[:2])) < (2, 13),
    reason="triton_helpers.rand4x is of torch 2.13",
)


@needs_2_13
def test_kernels_with_every_kind_of_operation_are_right(copied: Callable[[Path], Path]) -> None:
    """Reductions, Welford, scans, sorts, atomics, bfloat16, libdevice, random numbers."""
    check = _checked(copied(OPERATIONS))
    assert check.right, check.call
    assert {kernel.verdict for kernel in check.kernels} == {"right"}
    assert len(check.kernels) == 11
    assert check.rounds == 2


GELU = "triton_poi_fused_add_gelu_mul_6"
RAND = "triton_poi_fused_rand_like_7"
RANDN = "triton_poi_fused_randn_like_8"
RANDINT = "triton_poi_fused_randint_like_9"
PUT = "triton_poi_fused__to_copy_index_put_remainder_zeros_5"
ASM = "tl.inline_asm_elementwise('mov.b32 $0, $1;', '=r,r', [xindex], tl.int32, True, 1)"
SORT = "triton_per_fused_select_sort_1"


@needs_2_13
def test_planted_edits_are_found_and_each_has_its_sentence(copied: Callable[[Path], Path]) -> None:
    check = _checked(
        copied(OPERATIONS),
        (GELU, "tmp0 * tmp", "tmp0 + tmp"),
        (RAND, ", xmask)\n", ", None)\n"),  # of the store, the last in the kernel
        (PUT, "tl.atomic_add(out_ptr0 + (", "tl.atomic_add(out_ptr0 + (16 + "),
        (SORT, "tl.load(in_ptr0 + (", "tl.load(in_ptr0 + (100000 + "),
        (RANDN, "    tmp0 = ", "    import ctypes; ctypes.string_at(0)\n    tmp0 = "),
        (
            RANDINT,
            "    tmp0 = ",
            f"    tmp9 = {ASM}\n    tmp0 = ",
        ),
    )
    assert check.call.correct
    found = {variant.name: variant for variant in check.variants if not variant.unedited}
    wrong = found[f"{GELU}_v2"]
    assert (wrong.correct, wrong.first_bad_output) == (False, 2)
    assert 0 < wrong.mismatches <= 703
    faults = {name: variant.remarks[0] for name, variant in found.items() if variant.remarks}
    assert "writes outside of out_ptr0: element 703 of 703" in str(faults[f"{RAND}_v2"].number("error"))
    assert "changes outside of out_ptr0" in str(faults[f"{PUT}_v2"].number("error"))
    assert "reads outside of in_ptr0" in str(faults[f"{SORT}_v2"].number("error"))
    assert faults[f"{RANDN}_v2"].code == "variant-crashes"
    assert faults[f"{RANDINT}_v2"].code == "not-interpreted"
    assert "tl.inline_asm_elementwise: mov.b32" in str(faults[f"{RANDINT}_v2"].number("error"))
    places = [str(fault.number("place")) for fault in faults.values() if fault.number("place")]
    text = (check.path).read_text()
    assert len(places) >= 4
    assert all(place.startswith("line ") for place in places), text


@needs_2_13
def test_numbers_that_blocks_draw_again_are_not_called_wrong_but_not_judged(
    copied: Callable[[Path], Path],
) -> None:
    check = _checked(copied(DRAWN_AGAIN))
    assert check.call.correct
    assert check.call.remarks[0].code == "other-random-numbers"
    assert "whose blocks draw numbers of other blocks again" in str(check.call.remarks[0].number("operators"))
    assert [kernel.verdict for kernel in check.kernels] == ["not-judged"]


def test_kernels_around_attention_of_a_library_are_judged_and_an_edit_behind_it_is_found(
    copied: Callable[[Path], Path],
) -> None:
    """Of each such graph nothing was decided: cuDNN's attention has no kernel for the CPU."""
    softmax = "triton_per_fused__softmax__to_copy_abs_all_amax_eq_gelu_mul_ne_sub_1"
    forward = _checked(copied(BETWEEN / "forward"), (softmax, "libdevice.erf(tmp", "libdevice.erf(-tmp"))
    assert {kernel.verdict for kernel in forward.kernels} == {"right"}
    assert forward.by_formula == ("aten._scaled_dot_product_cudnn_attention.default",)
    assert {one.name for one in forward.variants if not one.correct} == {f"{softmax}_v2", "call_v2"}
    backward = _checked(copied(BETWEEN / "backward"))
    assert backward.right, backward.call
    assert len(backward.kernels) == 2


def test_kernels_of_many_pointers_are_right_and_a_loop_without_end_is_stopped(
    copied: Callable[[Path], Path],
) -> None:
    check = _checked(
        copied(ADAM),
        ("triton_for_fused_0", "xoffset = ", "while True: pass\n        xoffset = "),
        ("triton_for_fused_1", "tmp0 = tl.load(", "tmp0 = 2 * tl.load("),
        limit=15.0,
    )
    assert check.call.correct
    assert [kernel.verdict for kernel in check.kernels] == ["right", "right"]
    found = {variant.name: variant for variant in check.variants}
    assert found["triton_for_fused_0_v2"].remarks[0].code == "not-finished"
    assert found["triton_for_fused_1_v2"].mismatches


def test_a_size_that_the_graph_lacks_is_a_sentence(copied: Callable[[Path], Path]) -> None:
    path = write_bench_file(copied(ADAM)).path
    settings = BenchSettings(sizes=(("s77", 4),))
    with pytest.raises(ProbeError, match="no size s77"):
        check_interpreted(path, path.read_text(), settings, 60.0)


def test_a_graph_that_is_compared_with_nothing_is_not_called_right(copied: Callable[[Path], Path]) -> None:
    folder = copied(ADAM)
    (folder / "fx_graph_runnable.py").unlink()
    check = _checked(folder)
    assert check.call.correct, "it runs"
    assert not check.right
    assert {kernel.verdict for kernel in check.kernels} == {"not-judged"}


def test_bench_kernel_checks_without_a_gpu_and_says_that_it_times_nothing(
    copied: Callable[[Path], Path], probe: Callable[..., Ran]
) -> None:
    folder = copied(ADAM)
    ran = probe("bench-kernel", folder, "--trust", CUDA_VISIBLE_DEVICES="")
    assert ran.status == 0, ran.err
    assert "right: 2 kernels" in ran.out
    assert "not timed: this machine has no GPU" in ran.out
    ran = probe("check-kernel", "triton_for_fused_0", folder, CUDA_VISIBLE_DEVICES="")
    assert ran.status == 2
    assert "--trust" in ran.err, "it executes what a stranger wrote"


def test_a_graph_without_triton_kernels_is_refused(
    copied: Callable[[Path], Path], probe: Callable[..., Ran]
) -> None:
    run = next((DUMPS / "torch-2.13.0-cpu").glob("*/run_*"))
    ran = probe("check-kernel", next(copied(run).glob("torchinductor/*")), "--trust")
    assert ran.status == 2
    assert "has kernels in cpp, and none in Triton" in ran.err
