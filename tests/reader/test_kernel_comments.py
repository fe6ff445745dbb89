"""Comments above kernels and launches: real ones of every form, and anything else that may stand there."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.reader.kernel_comments import kernel_comment, parse_kernel_comment
from inductor_probe.reader.output_code import parse_output_code
from tests.conftest import DUMPS

TYPE = '"f32[8, 128][128, 1]cuda:0"'
DEFINITION = [
    "# kernel path: /repro/.cache/ab/cab.py",
    "# Topologically Sorted Source Nodes: [layer_norm, , gelu], "
    "Original ATen: [aten.native_layer_norm, aten.gelu]",
    "# Source node to ATen node mapping:",
    "#   gelu => add_2, erf, mul_3",
    "#   layer_norm => var_mean",
    "# Graph fragment:",
    f"#   %primals_1 : Tensor {TYPE} = PlaceHolder[target=primals_1]",
    "#   %var_mean : [num_users=2] = call_function[target=torch.ops.aten.var_mean.correction]"
    "(args = (%primals_1, [2]), kwargs = {correction: 0})",
    f"#   %add_2 : Tensor {TYPE}[num_users=1] = call_function[target=torch.ops.aten.add.Tensor]"
    "(args = (%erf, 1), kwargs = {})",
    "#   return %getitem_1,%buf1,%add_2",
]


def test_the_comment_above_a_triton_kernel() -> None:
    comment = parse_kernel_comment(DEFINITION)
    assert comment.path == "/repro/.cache/ab/cab.py"
    assert comment.aten == ("aten.native_layer_norm", "aten.gelu")
    assert comment.mapping == (("gelu", ("add_2", "erf", "mul_3")), ("layer_norm", ("var_mean",)))
    assert [(node.name, node.target, node.type) for node in comment.fragment] == [
        ("primals_1", "PlaceHolder", "f32[8, 128][128, 1]cuda:0"),
        ("var_mean", "torch.ops.aten.var_mean.correction", None),
        ("add_2", "torch.ops.aten.add.Tensor", "f32[8, 128][128, 1]cuda:0"),
    ]
    assert comment.fragment[1].inputs == ("primals_1",)
    assert comment.fx_nodes == ("var_mean", "add_2")
    assert comment.returns == ("getitem_1", "buf1", "add_2")


def test_a_launch_has_its_comment_above_the_stream() -> None:
    lines = [
        "        # Topologically Sorted Source Nodes: [flip], Original ATen: [aten.flip]",
        "        # [Provenance debug handles] triton_poi_fused_flip_0:7",
        "        stream0 = get_raw_stream(0)",
        "        triton_poi_fused_flip_0.run(arg0_1, buf0, 4, stream=stream0)",
        "        del arg0_1",
    ]
    comment = kernel_comment(lines, 4, Path("output_code.py"))
    assert comment is not None
    assert (comment.handle, comment.aten) == (7, ("aten.flip",))
    assert comment.span is not None
    assert (comment.span.first, comment.span.last) == (1, 2)
    assert kernel_comment(lines, 5, Path("output_code.py")) is None


def test_old_forms() -> None:
    comment = parse_kernel_comment(["# Source Nodes: [matmul], Original ATen: [aten.mm]"])
    assert comment.aten == ("aten.mm",)
    comment = parse_kernel_comment(["# Unsorted Source Nodes: [], Original ATen: []"])
    assert (comment.aten, comment.fx_nodes) == ((), ())


def test_every_comment_line_of_the_gpu_fixtures_is_read() -> None:
    known = 0
    for path in sorted((DUMPS / "torch-2.11.0-cuda").glob("*/run_*/torchinductor/*/output_code.py")):
        lines = path.read_text().split("\n")
        code = parse_output_code(path.read_text(), path)
        for kernel in code.kernels:
            assert kernel.comment is not None
            assert kernel.comment.span is not None
            above = lines[kernel.comment.span.first - 1 : kernel.comment.span.last]
            assert sum(line.startswith("#   %") for line in above) == len(kernel.comment.fragment)
            assert sum(" => " in line for line in above) == len(kernel.comment.mapping)
            known += len(kernel.comment.fragment)
        assert all(launch.comment is not None and launch.comment.handle for launch in code.launches) or (
            "backward" in path.parent.name
        )
    assert known > 50


@given(st.lists(st.text(), max_size=6))
def test_anything_may_stand_in_a_comment(texts: list[str]) -> None:
    lines = [f"# {text}" for text in texts]
    parse_kernel_comment(lines)
    kernel_comment([*lines, "x = 1"], len(lines) + 1, Path("output_code.py"))


@given(st.sampled_from(DEFINITION), st.integers(0, 200))
def test_lines_that_are_cut_off_are_read_as_far_as_they_go(line: str, at: int) -> None:
    comment = parse_kernel_comment([line[:at]])
    assert len(comment.fragment) + len(comment.mapping) <= 1
