"""What compilers say of loops, and which loop it is about: texts of GCC 12.2 and clang 14.0.6, shortened."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.assembly.compiler_remarks import compiler_remarks, remark_of
from inductor_probe.model.code import Loop, LoopNest
from inductor_probe.report.words.assembly import compiler_sentence
from tests.conftest import DUMPS

pytestmark = pytest.mark.usefixtures("warm")

DIVIDED = ("omp for",)
FLIP = (
    LoopNest(
        "scalar",
        (
            Loop("x0", 0, 224, 1, 0, 13, 29, DIVIDED),
            Loop("x1", 0, 224, 1, 1, 16, 28),
            Loop("x2", 0, 3, 1, 2, 19, 27),
        ),
        13,
        29,
    ),
)
GCC = """\
kernel.cpp:23:103: missed: couldn't vectorize loop
kernel.cpp:24:86: missed: not vectorized: complicated access pattern.
kernel.cpp:16:56: missed: couldn't vectorize loop
kernel.cpp:23:38: missed: not vectorized: relevant stmt not supported: tmp0_50 = *_49;
kernel.cpp:3:19: missed: statement clobbers memory: __builtin_GOMP_parallel (kernel._omp_fn.0, 0, 0);
kernel.cpp:8:13: missed: not vectorized: vectorization is not profitable.
/torch/include/ATen/cpu/vec/vec_base.h:20:3: missed: couldn't vectorize loop
/torch/include/ATen/cpu/vec/vec_base.h:20:3: missed: not vectorized: control flow in loop.
"""
CLANG = """\
kernel.cpp:24:21: remark: loop not vectorized: value that could not be identified as reduction is used outside the loop [-Rpass-analysis=loop-vectorize]
    tmp_acc0 = max_propagate_nan(tmp_acc0, tmp0);
    ^
kernel.cpp:12:9: remark: loop not vectorized: instruction cannot be vectorized [-Rpass-analysis=loop-vectorize]
kernel.cpp:12:9: remark: loop not vectorized [-Rpass-missed=loop-vectorize]
/torch/functional_base.h:37:3: remark: loop not vectorized: loop control flow is not understood by vectorizer [-Rpass-analysis=loop-vectorize]
/torch/functional_base.h:37:3: remark: loop not vectorized [-Rpass-missed=loop-vectorize]
kernel.cpp:16:17: remark: vectorized loop (vectorization width: 8, interleaved count: 4) [-Rpass=loop-vectorize]
"""  # noqa: E501 - lines as clang prints them


def test_gcc_names_a_loop_and_then_the_statement_that_kept_it_from_being_vectorised() -> None:
    """The loop of three steps is unrolled: what is left innermost is the one around it."""
    outer, inner = compiler_remarks("gcc", GCC, "", FLIP)
    assert (outer.code, outer.variable, outer.loop, outer.line) == ("access-not-affine", "x0", 13, 24)
    assert (inner.code, inner.variable, inner.loop, inner.line) == ("unsupported-operation", "x1", 16, 23)
    assert inner.operand == "tmp0_50 = *_49"
    assert remark_of((outer, inner), FLIP[0], 23, 24) == inner
    assert compiler_sentence(inner, turned_off=False, place="output_code.py:55") == (
        "not vectorised by GCC: an operation has no vector form"
        " (relevant stmt not supported: tmp0_50 = *_49), output_code.py:55"
    )


def test_a_loop_that_is_vectorised_once_is_vectorised() -> None:
    """GCC tries a loop with vectors of several sizes, and the rest of it once more."""
    tried = "kernel.cpp:16:56: optimized: loop vectorized using 32 byte vectors\n"
    for text in (GCC + tried, tried + GCC):
        _, inner = compiler_remarks("gcc", text, "", FLIP)
        assert (inner.code, inner.bits) == ("vectorised", 256)
    assert compiler_sentence(inner, turned_off=True) == (
        "GCC would vectorise it (256 bits), but inductor turns that off"
    )


def test_the_negative_step_of_gcc_is_a_sentence() -> None:
    text = "kernel.cpp:19:9: missed: couldn't vectorize loop\n"
    text += "kernel.cpp:23:1: missed: not vectorized: negative step in the load.\n"
    (remark,) = compiler_remarks("gcc", text, "", FLIP)
    assert (remark.code, remark.variable) == ("negative-step", "x2")
    assert compiler_sentence(remark, turned_off=False) == (
        "not vectorised by GCC: negative step in an access (negative step in the load)"
    )


def test_clang_names_statements_and_then_the_loop_that_stands_below_its_pragma() -> None:
    source = "\n" * 11 + "#pragma omp for\nfor(...)\n"
    outer, inner = compiler_remarks("clang", CLANG, source, FLIP)
    assert (outer.code, outer.variable, outer.line) == ("reduction", "x0", 24)
    assert (inner.code, inner.variable, inner.lanes) == ("vectorised", "x1", 8)
    assert compiler_sentence(inner, turned_off=False) == "vectorised by clang (8 lanes)"


@given(st.text())
def test_any_text_is_taken_for_remarks(text: str) -> None:
    for row in (text, GCC + text, CLANG + text):
        for compiler in ("gcc", "clang"):
            assert all(remark.nest == 0 for remark in compiler_remarks(compiler, row, text, FLIP))


@pytest.mark.compiles
def test_what_the_compiler_said_stands_beside_what_inductor_decided(
    probe: Callable[..., Any], tmp_path: Path
) -> None:
    """A stranger's dump is compiled only when it is trusted, and nothing is written into it."""
    run = tmp_path / "dump"
    shutil.copytree(DUMPS / "torch-2.13.0-cpu" / "hflip_cl", run)
    before = sorted(run.rglob("*"))
    assert probe("why", "cpp_fused_flip_0", run, "--compiler").status == 2
    ran = probe("why", "cpp_fused_flip_0", run, "--compiler", "--trust")
    assert ran.status == 0, ran.err
    assert "remarks of the compiler on cpp_fused_flip_0" in ran.out
    assert "loop x1 of nest 1 (output_code.py:" in ran.out
    assert sorted(run.rglob("*")) == before
    ran = probe("why", "op0", run, "--compiler", "--trust", "--json")
    (row,) = json.loads(ran.out)["rows"]
    (kernel,) = row["compiler"]
    loops = {remark["variable"] for remark in kernel["remarks"]}
    assert "x1" in loops


@pytest.mark.compiles
def test_remarks_on_a_graph_made_here_are_kept_until_its_text_changes(
    probe: Callable[..., Any], tmp_path: Path
) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import torch\ntorch.compile(lambda x: x.flip(-1))(torch.zeros(64, 64, dtype=torch.uint8))\n"
    )
    ran = probe("dump", script, "--out", tmp_path / "run")
    assert ran.status == 0, ran.err
    run = next((tmp_path / "run").glob("torch_compile_debug/run_*"))
    assert "remarks of the compiler" not in probe("why", "cpp_", run).out
    ran = probe("asm", "cpp_", run)
    assert ran.status == 0, ran.err
    ran = probe("why", "cpp_", run)
    assert "remarks of the compiler on cpp_fused_flip_0" in ran.out
    assert "by GCC" in ran.out or "GCC would vectorise it" in ran.out or "clang" in ran.out
    assert "remarks of the compiler" not in probe("why", "cpp_", run, "--kind", "fusion").out
    (kept,) = run.rglob("probe_compiler.json")
    record = json.loads(kept.read_text())
    record["kernels"][0]["digest"] = "0" * 64
    kept.write_text(json.dumps(record))
    assert "remarks of the compiler" not in probe("why", "cpp_", run).out
    kept.write_text("{")
    ran = probe("why", "cpp_", run)
    assert "probe_compiler.json cannot be read" in ran.out + ran.err
