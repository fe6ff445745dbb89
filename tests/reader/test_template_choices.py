"""Choices of templates, the table of them, and the autotune cache: as real producers wrote them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import inductor_probe as ip
from inductor_probe.errors import UnreadableError
from inductor_probe.files import cell, text_of_cell
from inductor_probe.model.autotuning import CHOICES_NAME, TemplateChoice, Tuning
from inductor_probe.reader.debug_dir import read_run
from inductor_probe.reader.logs.run_logs import read_logs
from inductor_probe.reader.tunings import TORCHS_NAME, config_of, read_tunings, tuning_of_log
from inductor_probe.store.choices import tunings_from_csv, tunings_to_csv
from tests.conftest import DUMPS

# Two lines of a real compile of torch 2.13 on a CPU: `mode="max-autotune"`, `freezing = True`.
RECORDED = (
    '{"operation": "packed_linear", "inputs": ["64x256 float32", "2310369x1 float32", "512x256 float32"], '
    '"cached": true, "choices": [{"name": "cpp_CppMicroGemmFP32Vec_0", "ms": 0.30147899997245986, '
    '"kind": "cpp", "config": ""}, {"name": "_mkl_linear", "ms": 0.11513450021993776, "kind": "extern", '
    '"config": ""}]}\n'
    '{"operation": "mm", "inputs": ["4x4 float32"], "cached": false, "choices": [{"name": "triton_mm_1", '
    '"ms": null, "kind": "triton", "config": "BLOCK_M=64, num_warps=4"}]}\n'
)


def test_what_probe_dump_wrote_is_read(tmp_path: Path) -> None:
    (tmp_path / CHOICES_NAME).write_text(RECORDED)
    read = read_tunings(tmp_path)
    assert not read.problems
    linear, mm = read.tunings
    assert (linear.operation, linear.source, linear.complete, linear.cached) == (
        "packed_linear",
        "probe",
        True,
        True,
    )
    assert [choice.name for choice in linear.choices] == ["_mkl_linear", "cpp_CppMicroGemmFP32Vec_0"]
    assert linear.fastest is linear.choices[0]
    assert linear.choices[0].kind == "extern"
    assert linear.span is not None
    assert linear.span.first == 1
    assert mm.fastest is None
    assert mm.choices == (
        TemplateChoice("triton_mm_1", None, "triton", (("BLOCK_M", "64"), ("num_warps", "4"))),
    )


def test_check_counts_the_lines_of_what_was_autotuned(tmp_path: Path) -> None:
    source = next((DUMPS / "torch-2.13.0-cpu" / "hflip_cl").glob("run_*"))
    run = Path(shutil.copytree(source, tmp_path / source.name))
    (folder,) = (run / "torchinductor").iterdir()
    (folder / CHOICES_NAME).write_text(RECORDED + '{"operation": "mm", "inp')
    (graph,) = ip.check(run).graphs
    (file,) = [file for file in graph.files if file.kind == CHOICES_NAME]
    assert (file.lines, file.read, file.unread) == (3, 2, 1)
    assert graph.unopened == ()
    assert any(problem.span and problem.span.first == 3 for problem in graph.problems)


def test_a_folder_without_any_is_empty(tmp_path: Path) -> None:
    assert read_tunings(tmp_path).tunings == ()


@pytest.mark.parametrize(
    "damage",
    [
        '{"operation": "mm", "inp',
        "[1, 2]",
        '{"operation": "mm"}',
        '{"operation": "mm", "inputs": [], "choices": [3]}',
    ],
)
def test_a_damaged_line_is_a_problem_and_the_rest_is_read(tmp_path: Path, damage: str) -> None:
    (tmp_path / CHOICES_NAME).write_text(RECORDED + damage + "\n")
    read = read_tunings(tmp_path)
    assert len(read.tunings) == 2
    (problem,) = read.problems
    assert str(problem).startswith(f"{tmp_path / CHOICES_NAME}:3: not ")


def test_what_torch_writes_by_itself_is_read(tmp_path: Path) -> None:
    """In the form of `log_autotuning_results`: a line a choice, what is said of the operation in each."""
    node = {"name": "arg0_1", "type": "InputBuffer", "dtype": "torch.bfloat16", "size": "[128, 64]"}
    same = {"op_name": "mm", "cuda_device_name": "G", "cuda_device_count": 1, "input_nodes": [node],
            "autotuning_time": 0.3, "precompile_time": 8.9, "prescreening_time": None}  # fmt: skip
    lines = [
        {"backend": "Triton", "tile_shape": "(64, 32, 128)", "num_warps": 4, **same,
         "benchmark_result": 0.02},
        {"backend": "extern", "kernel_call_name": "extern_kernels.mm", **same, "benchmark_result": 0.01},
        {"backend": "Triton", "tile_shape": "(16, 16, 16)", **same, "benchmark_result": float("inf")},
        {"backend": "extern", "kernel_call_name": "extern_kernels.bmm", **same | {"op_name": "bmm"},
         "benchmark_result": 1},
    ]  # fmt: skip
    (tmp_path / TORCHS_NAME).write_text("".join(json.dumps(line) + "\n" for line in lines))
    mm, bmm = read_tunings(tmp_path).tunings
    assert (mm.operation, mm.inputs, mm.source, mm.cached) == ("mm", ("128x64 bfloat16",), "torch", None)
    assert [(choice.name, choice.ms, choice.kind) for choice in mm.choices] == [
        ("extern_kernels.mm", 0.01, "extern"), ("triton", 0.02, "triton"), ("triton", None, "triton"),
    ]  # fmt: skip
    assert mm.choices[1].config == (("tile_shape", "(64, 32, 128)"), ("num_warps", "4"))
    assert bmm.operation == "bmm"


def test_blocks_that_torch_prints_are_read(corpus: Path) -> None:
    runs = sorted((corpus / "torch-2.11.0-cuda" / "mm_epilogue_maxautotune").glob("**/run_*"))
    (block,) = read_logs(read_run(runs[0])).autotunes
    tuning = tuning_of_log(block)
    assert tuning.operation == "mm"
    assert tuning.inputs == ("256x256 float32", "256x256 float32")
    assert (len(tuning.choices), tuning.complete, tuning.source) == (10, False, "log")  # of 17
    assert tuning.fastest is not None
    assert tuning.fastest.name == "triton_mm_4"
    assert dict(tuning.fastest.config)["ACC_TYPE"] == "tl.float32"
    assert {choice.kind for choice in tuning.choices} == {"triton"}


def test_configs_are_split_at_commas_outside_of_brackets() -> None:
    assert config_of("A='tl.float32', TILE=[1, 2], num_warps=4") == (
        ("A", "tl.float32"), ("TILE", "[1, 2]"), ("num_warps", "4"),
    )  # fmt: skip
    assert config_of("") == ()


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
CHOICES = st.lists(
    st.builds(
        TemplateChoice,
        TEXT,
        st.none() | st.floats(min_value=0, max_value=1e6),
        st.none() | TEXT,
        st.lists(st.tuples(TEXT, TEXT), max_size=3).map(tuple),
        st.none() | st.integers(0, 255),
        st.none() | st.integers(0, 999),
    ),
    max_size=4,
).map(tuple)
TUNINGS = st.lists(
    st.builds(
        Tuning,
        operation=TEXT,
        inputs=st.lists(TEXT, max_size=3).map(tuple),
        choices=CHOICES,
        source=st.sampled_from(["probe", "torch", "log", "cache"]),
        complete=st.booleans(),
        cached=st.none() | st.booleans(),
        kernel=st.none() | TEXT,
        generated=st.none() | TEXT,
    ),
    max_size=4,
).map(tuple)


@given(TUNINGS)
def test_the_table_is_read_back_without_a_loss(tunings: tuple[Tuning, ...]) -> None:
    assert tunings_from_csv(tunings_to_csv(tunings)) == tunings


def test_no_cell_of_a_table_is_a_formula() -> None:
    """A spreadsheet computes what begins so, whoever wrote it."""
    names = ("=cmd()", "+1+cmd()", "-x", "@x", "\t=x", "'=x", "'x", "-1.5", "+2e-3")
    assert [cell(name) for name in names] == [
        "'=cmd()", "'+1+cmd()", "'-x", "'@x", "'\t=x", "''=x", "'x", "-1.5", "+2e-3",
    ]  # fmt: skip
    assert [text_of_cell(str(cell(name))) for name in names] == list(names)
    assert cell(-1.5) == -1.5


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"tuning","operation"', '"tuning","op"', r"t\.csv:1: not a table .* its columns are not"),
        ('"probe","yes"', '"probe","perhaps"', "not a table"),
        ("0.5,", "half,", r"t\.csv:2: .*could not convert"),
        ("0.5,", "0.5,1,", r"t\.csv:2: .*16 cells instead of 15"),
    ],
)
def test_a_damaged_table_names_the_line(old: str, new: str, says: str) -> None:
    text = tunings_to_csv((Tuning("mm", (), (TemplateChoice("mm", 0.5),), "probe", True),))
    assert old in text, text
    with pytest.raises(UnreadableError, match=says):
        tunings_from_csv(text.replace(old, new, 1), "t.csv")
