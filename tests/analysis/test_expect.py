"""What is expected of real dumps, and what of it holds: kernels, loop nests, layouts, copies, remarks."""

from __future__ import annotations

from pathlib import Path

import pytest

import inductor_probe as ip
from inductor_probe.errors import ExitCode
from inductor_probe.model.expectation import (
    EXPECTATION_KINDS,
    OF_RUNS,
    Expectation,
    Standing,
    expectation_of,
    expectations_of,
)
from tests.conftest import DUMPS
from tests.schemas import schema_faults


def run(name: str) -> ip.Run:
    """Return the run of a fixture: `torch-2.13.0-cpu/hflip_cf`."""
    return ip.open_run(DUMPS / name)


@pytest.mark.parametrize(
    ("name", "keyword", "value", "standing"),
    [
        ("torch-2.13.0-cpu/hflip_cf", "kernels", 1, "holds"),
        ("torch-2.13.0-cpu/hflip_cf", "kernels", 2, "fails"),
        ("torch-2.13.0-cpu/hflip_cf", "vectorised", True, "fails"),
        ("torch-2.13.0-cpu/hflip_cf", "vectorised", "op0", "fails"),
        ("torch-2.13.0-cpu/aa_separable_cl", "vectorised", True, "holds"),
        ("torch-2.13.0-cpu/aa_separable_cl", "vectorised", "cpp_fused", "holds"),
        ("torch-2.13.0-cpu/hflip_cl", "layout", "arg0_1=channels_last", "holds"),
        ("torch-2.13.0-cpu/hflip_cl", "layout", ["arg0_1=channels_last", "buf0=channels_last"], "holds"),
        ("torch-2.13.0-cpu/hflip_cf", "layout", "arg0_1=channels_last", "fails"),
        ("torch-2.13.0-cpu/multi_output_no_fuse", "kernels", 1, "fails"),
        ("torch-2.13.0-cpu/multi_output_no_fuse", "fused", "op3+op5", "fails"),
        ("torch-2.13.0-cpu/multi_output_no_fuse", "no_fallback", True, "fails"),
        ("torch-2.13.0-cpu/multi_output_no_fuse", "no_extern", True, "fails"),
        ("torch-2.13.0-cpu/hflip_cf", "no_extern", True, "holds"),
        ("torch-2.13.0-cpu/hflip_cf", "bytes_at_most", "0.4MB", "holds"),
        ("torch-2.13.0-cpu/hflip_cf", "bytes_at_most", "200 kB", "fails"),
        ("torch-2.13.0-cpu/aa_separable_cl", "no_remark", "noncontiguous-access", "fails"),
        ("torch-2.13.0-cpu/hflip_cf", "no_remark", "noncontiguous-access", "holds"),
        ("torch-2.11.0-cuda/layernorm_grad", "index_dtype", "int32", "holds"),
        ("torch-2.11.0-cuda/layernorm_grad", "index_dtype", "int64", "fails"),
        ("torch-2.11.0-cuda/layernorm_grad", "vectorised", True, "unknown"),
        ("torch-2.13.0-cpu/hflip_cf", "reduction_hint", "INNER", "unknown"),
        # No dump of these has a manifest, or records what torch decided.
        ("torch-2.13.0-cpu/hflip_cf", "no_copy", True, "unknown"),
        ("torch-2.13.0-cpu/hflip_cf", "cause", "short-inner-range", "unknown"),
        ("torch-2.13.0-cpu/hflip_cf", "no_graph_break", True, "unknown"),
        ("torch-2.13.0-cpu/hflip_cf", "no_recompile", True, "unknown"),
        ("torch-2.6.0-cpu/hflip_sliced", "kernels", 1, "holds"),
    ],
)
def test_an_expectation_stands_as_the_dump_shows(
    name: str, keyword: str, value: object, standing: Standing
) -> None:
    answer = run(name).expect(**{keyword: value})
    assert {one.standing for one in answer.outcomes} == {standing}
    assert bool(answer) == answer.ok == (standing == "holds")
    codes = {"holds": ExitCode.OK, "fails": ExitCode.MISMATCH, "unknown": ExitCode.FAILED}
    assert answer.status == codes[standing]
    assert schema_faults("expect", answer.json) == []
    assert answer.outcomes[0].expectation.option in repr(answer)
    assert (answer.outcomes[0].graph is None) == (answer.outcomes[0].expectation.kind in OF_RUNS)


def test_what_was_not_fused_says_what_torch_logged_of_the_pair() -> None:
    answer = run("torch-2.13.0-cpu/multi_output_no_fuse").graphs[0].expect(kernels=1, no_fallback=True)
    text = repr(answer)
    assert "--kernels 1 FAILS: 2 kernels: cpp_fused_sum_0, cpp_fused_add_clone_mul_t_1" in text
    assert "op3 and op4 are not fused: op3 reads arg0_1 at c0 + 160*c1" in text
    assert "(read in the dump)" in text
    assert "op0 falls back to torch.ops.aten.sort.stable" in text
    assert "2 expectations: 2 failed (--kernels 1, --no-fallback)" in text
    assert answer.failed == answer.outcomes
    assert answer.outcomes[1].causes


def test_nodes_of_one_fused_node_are_fused_by_any_of_their_names() -> None:
    forward = run("torch-2.13.0-cpu/mlp_train").graphs[0]
    assert forward.expect(fused=["op2+op3", "op2+op4", "op2_op3_op4+op3", "buf2+op3"]).ok
    answer = forward.expect(fused="op2+op5")
    assert not answer.ok
    assert "--fused op2+op5 FAILS: they are in op2_op3_op4, op5" in repr(answer)


def test_a_remark_that_should_not_be_there_is_shown() -> None:
    answer = run("torch-2.13.0-cpu/aa_separable_cl").expect(no_remark="noncontiguous-access")
    assert "op1 reads arg0_1 non-contiguously" in repr(answer)
    assert [remark.code for remark in answer.outcomes[0].remarks] == ["noncontiguous-access"]


def test_a_name_that_some_graphs_have_is_answered_for_those() -> None:
    both = run("torch-2.11.0-cuda/layernorm_grad")
    assert len(both.graphs) == 2
    answer = both.expect(layout="primals_1=contiguous", index_dtype="int32")
    kinds = [(one.expectation.kind, one.graph) for one in answer.outcomes]
    assert len(kinds) == len(both.graphs) * 2 or ("layout", both.graphs[0].name) in kinds
    with pytest.raises(ip.NotFoundError, match="has no buffer buf99"):
        both.expect(layout="buf99=contiguous")


@pytest.mark.parametrize(
    ("expected", "message", "hint"),
    [
        ({"kernel": 1}, "nothing is expected by kernel=", "kernels"),
        ({"kernels": "one"}, "invalid --kernels one", "write --kernels 1"),
        ({"kernels": "1.5"}, "invalid --kernels 1.5", "write --kernels 1"),
        ({"kernels": True}, "invalid --kernels ", "write --kernels 1"),
        ({"vectorised": False}, "vectorised=False is not text", "write it as on the command line"),
        ({"fused": "op0"}, "invalid --fused op0", "write --fused op0+op1"),
        ({"layout": "buf0"}, "invalid --layout buf0", "channels_last"),
        ({"layout": "buf0=channel_last"}, "invalid --layout buf0=channel_last", "did you mean channels_last"),
        ({"no_remark": "noncontiguous"}, "invalid --no-remark noncontiguous", "noncontiguous-access"),
        ({"bytes_at_most": "a lot"}, "invalid --bytes-at-most a lot", "write --bytes-at-most 1.5MB"),
        ({"cause": "short-iner-range"}, "no cause has the code short-iner-range", "short-inner-range"),
        ({"index_dtype": "int16"}, "invalid --index-dtype int16", "int32"),
        ({"no_copy": "buf0"}, "invalid --no-copy buf0", "write --no-copy"),
        ({}, "nothing is expected", "kernels=1"),
    ],
)
def test_what_means_nothing_is_refused(expected: dict[str, object], message: str, hint: str) -> None:
    with pytest.raises(ip.ProbeError) as error:
        run("torch-2.13.0-cpu/hflip_cf").expect(**expected)
    assert message in error.value.message
    assert hint in (error.value.hint or "")


def test_every_kind_is_written_as_its_option() -> None:
    texts = {
        "kernels": "1", "fused": "op0+op1", "layout": "buf0=contiguous", "reduction-hint": "op0=INNER",
        "index-dtype": "int64", "bytes-at-most": "1500000", "no-remark": "noncontiguous-access",
        "cause": "op0=no-kernel", "vectorised": "op0",
    }  # fmt: skip
    for kind in EXPECTATION_KINDS:
        text = texts.get(kind, "")
        assert expectation_of(kind, text).option == f"--{kind} {text}".rstrip()
    assert expectations_of({"fused": ["op0+op1", "op2,op3"], "no_copy": True}) == (
        Expectation("fused", ("op0", "op1")),
        Expectation("fused", ("op2", "op3")),
        Expectation("no-copy"),
    )
    assert expectation_of("bytes-at-most", "2KiB").limit == 2048


def test_the_folder_of_the_run_is_in_the_output() -> None:
    answer = run("torch-2.13.0-cpu/hflip_cf").graphs[0].expect(kernels=1)
    assert Path(str(answer.json["path"])) == answer.run.path
    assert answer.json["ok"] is True
    assert "<" in answer._repr_html_()
