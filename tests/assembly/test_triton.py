"""A Triton kernel compiled for a GPU that is not there: what PTX says, and what a multiprocessor holds."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.assembly.triton import architecture_of, compile_triton, global_accesses, occupancy
from inductor_probe.errors import NotFoundError
from inductor_probe.model.assembly import Occupancy
from inductor_probe.reader.output_code import parse_output_code
from tests.conftest import DUMPS

pytestmark = pytest.mark.usefixtures("warm")

ANTIALIAS = DUMPS / "torch-2.11.0-cuda" / "interpolate_aa_channels_last"
GATHER = "triton_poi_fused__to_copy_add_arange_clamp_div_index_mul_sub_sum_unsqueeze_2"
PTX = """
	.loc	1 24 35                         // kernel.py:24:35
	// begin inline asm
	@%p1 ld.global.v2.b32 { %r1, %r2 }, [ %rd1 + 0 ];
	@!%p1 ld.global.L1::evict_last.L2::cache_hint.b8 { %rs1 }, [ %rd2 + 0 ], %rd9;
	@%p1 ld.global.L1::evict_last.L2::cache_hint.b8 { %rs2 }, [ %rd3 + 0 ], %rd9;
	.loc	2 291 36, function_name $L__info_string0, inlined_at 1 26 24
	ld.global.nc.bf16x2 %r9, [%rd5];
	.loc	2 40 1
	atom.global.gpu.acq_rel.add.f32 %f1, [ %rd4 + 0 ], %f2;
	cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10, %r5;
	ld.shared.v4.b32 { %r1, %r2, %r3, %r4 }, [ %r7 ];
	ld.param.b64 	%rd3, [kernel_param_0];
	.loc	1 31 4
	st.global.v4.b32 [ %rd2 + 0 ], { %r3, %r4, %r5, %r6 };
	.file	1 "/made/kernel.py"
	.file	2 "/triton/standard.py"
"""


def test_accesses_have_their_width_and_the_line_of_the_kernel() -> None:
    rows = [
        (one.line, one.kind, one.text, one.bits, one.count) for one in global_accesses(PTX, "/made/kernel.py")
    ]
    assert rows == [
        (24, "load", "ld.global.b8", 8, 2),
        (24, "load", "ld.global.v2.b32", 64, 1),
        (26, "atomic", "atom.global.f32", 32, 1),  # the line that a line of a library was inlined into last
        (26, "copy", "cp.async.global", 128, 1),
        (26, "load", "ld.global.bf16x2", 32, 1),
        (31, "store", "st.global.v4.b32", 128, 1),
    ]


@given(st.text())
def test_any_text_is_taken_for_ptx(text: str) -> None:
    assert all(one.bits > 0 for one in global_accesses(text, "/made/kernel.py"))


@pytest.mark.parametrize(
    ("capability", "threads", "registers", "shared", "holds"),
    [
        ((9, 0), 128, 168, 0, Occupancy(3, 0.1875, ("registers",))),
        ((9, 0), 256, 32, 0, Occupancy(8, 1.0, ("threads", "registers"))),
        ((9, 0), 32, 10, 0, Occupancy(32, 0.5, ("blocks",))),
        ((8, 0), 128, 32, 60 << 10, Occupancy(2, 0.125, ("shared-memory",))),
        ((7, 5), 1024, 32, 0, Occupancy(1, 1.0, ("threads",))),
        ((12, 1), 128, 32, 0, None),
    ],
)
def test_occupancy(
    capability: tuple[int, int], threads: int, registers: int, shared: int, holds: Occupancy | None
) -> None:
    """By the rules of NVIDIA's occupancy calculator; the first is the example in the docstring."""
    result = occupancy(capability, threads, registers, shared)
    if holds is None:
        assert result is None
    else:
        assert result is not None
        assert (result.blocks, result.share, set(result.limits)) == (
            holds.blocks,
            holds.share,
            set(holds.limits),
        )


@pytest.mark.parametrize(
    ("text", "number"), [("sm_90", 90), ("sm_90a", 90), ("80", 80), ("H200", 90), ("t4", 75)]
)
def test_an_architecture_has_several_names(text: str, number: int) -> None:
    assert architecture_of(text) == number


def test_an_unknown_architecture_has_near_names() -> None:
    with pytest.raises(
        NotFoundError, match="no architecture 'h20x': write sm_90, or the name of a GPU"
    ) as raised:
        architecture_of("h20x")
    assert "h200" in str(raised.value.hint)


@pytest.mark.compiles
def test_a_kernel_of_another_torch_is_compiled_without_a_gpu(probe: Callable[..., Any]) -> None:
    """Its text is a stranger's until somebody says that he trusts it."""
    assert probe("asm", GATHER, ANTIALIAS).status == 2
    asked = (
        "--config",
        "XBLOCK=512,1024,num_warps=8",
        "--config",
        "XBLOCK=1024,num_warps=4",
        "--arch",
        "a100",
    )
    ran = probe("asm", GATHER, ANTIALIAS, "--trust", *asked, "--stage", "sass", "--json")
    assert ran.status == 0, ran.err
    (record,) = json.loads(ran.out)["kernels"]
    assert record["architecture"] == "sm_80"
    half, whole, wide = record["configs"]
    assert [dict(one["config"])["XBLOCK"] for one in record["configs"]] == ["512", "1024", "1024"]
    assert [one["threads"] for one in record["configs"]] == [256, 256, 128]
    assert half["registers"] <= whole["registers"] <= wide["registers"]
    assert wide["occupancy"]["limits"] == ["registers"]
    assert half["instructions"] < wide["instructions"]
    lines = record["source"].split("\n")
    for access in wide["accesses"]:
        assert f"tl.{access['kind']}(" in lines[access["line"] - 1]
        assert access["bits"] == (128 if access["kind"] == "store" else 32)  # one reads (5*x0): not together
    assert list(wide["stages"]) == ["sass"]
    assert "LDG.E" in wide["stages"]["sass"]
    assert "kernel.py" in wide["stages"]["sass"]


@pytest.mark.compiles
def test_an_architecture_that_ptxas_does_not_know_is_refused_with_those_it_knows(
    probe: Callable[..., Any],
) -> None:
    """LLVM would end the process of a kernel that reduces, and ptxas would say it in words of its own."""
    ran = probe("asm", "triton_poi_fused_sum_0", ANTIALIAS, "--trust", "--arch", "sm_999")
    assert ran.status == 2
    assert "sm_999 is unknown to triton" in ran.err
    assert "sm_90" in ran.err
    assert "`--arch` takes one of these" in ran.err


@pytest.mark.compiles
def test_a_triton_without_ptxas_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of the installed triton but its ptxas, by links; no variable names another one."""
    spec = importlib.util.find_spec("triton")
    assert spec is not None
    assert spec.origin is not None
    shutil.copytree(
        Path(spec.origin).parent, tmp_path / "triton",
        copy_function=lambda source, target: Path(target).symlink_to(source),
        ignore=shutil.ignore_patterns("ptxas*", "__pycache__"),
    )  # fmt: skip
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delenv("TRITON_PTXAS_PATH", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    (code,) = ANTIALIAS.rglob("output_code.py")
    kernel = parse_output_code(code.read_text(), code).kernel("triton_poi_fused_sum_0")
    assert kernel is not None
    rows = compile_triton(kernel.source, kernel.name)["configs"]
    assert rows
    for row in rows:
        assert row.failure is not None
        assert "has no ptxas here" in row.failure
        assert "TRITON_PTXAS_PATH" in row.failure


@pytest.mark.compiles
def test_what_an_architecture_lacks_and_an_unknown_parameter_are_sentences(
    probe: Callable[..., Any], tmp_path: Path
) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import torch\n"
        "x = torch.randn(1024, 1024, device='cuda')\n"
        "torch.compile(lambda x: (x * 2).to(torch.float8_e4m3fn))(x)\n"
    )
    ran = probe("dump", script, "--target", "h200", "--out", tmp_path / "run")
    assert ran.status == 0, ran.err
    ran = probe("asm", "triton_", tmp_path / "run", "--arch", "t4")
    assert ran.status == 1
    assert "not compiled: the kernel needs what sm_75 does not have" in ran.out
    ran = probe("asm", "triton_", tmp_path / "run", "--config", "XBLOK=4")
    assert (ran.status, ran.err) == (
        2, "error: this kernel has no XBLOK to set; it has XBLOCK, num_warps, num_stages\n"
    )  # fmt: skip
    assert "the dump was made with" not in probe("asm", "triton_", tmp_path / "run").out
    (manifest,) = (tmp_path / "run").rglob("probe.json")
    record = json.loads(manifest.read_text())
    record["versions"]["triton"] = "3.1.0"
    manifest.write_text(json.dumps(record))
    ran = probe("asm", "triton_", tmp_path / "run", "--trust")
    assert "the dump was made with triton 3.1.0: what it was compiled to there may differ" in ran.out
