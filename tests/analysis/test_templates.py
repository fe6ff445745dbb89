"""Which choice became which kernel, and how that is shown: on real dumps."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.analysis.links import linked_tunings
from inductor_probe.model.autotuning import TemplateChoice, Tuning
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.reader.debug_dir import read_graph, read_run
from inductor_probe.reader.logs.run_logs import read_logs
from inductor_probe.reader.output_code import parse_output_code
from inductor_probe.reader.tunings import tuning_of_log
from inductor_probe.report.pages.tunings import tuning_sentence, tuning_tables
from inductor_probe.report.terminal import to_text


@pytest.fixture(scope="module")
def tuned(corpus: Path) -> tuple[CompiledGraph, Tuning]:
    """A real `relu(a @ b + 1)` under max-autotune on a GPU, and what torch printed of it."""
    (run,) = (corpus / "torch-2.11.0-cuda" / "mm_epilogue_maxautotune").glob("**/run_*")
    read = read_run(run)
    (block,) = read_logs(read).autotunes
    return read_graph(read.graphs[0]), tuning_of_log(block)


def test_a_template_is_linked_by_its_config(tuned: tuple[CompiledGraph, Tuning]) -> None:
    graph, tuning = tuned
    (linked,) = linked_tunings(graph, [tuning])
    assert (linked.kernel, linked.generated) == ("triton_tem_fused_mm_0", "triton_mm_4")


def test_another_config_is_not_linked(tuned: tuple[CompiledGraph, Tuning]) -> None:
    graph, tuning = tuned
    others = replace(tuning, choices=tuple(each for each in tuning.choices if each.name != "triton_mm_4"))
    (linked,) = linked_tunings(graph, [others])
    assert (linked.kernel, linked.generated) == (None, None)


def test_two_operations_of_one_config_are_not_given_the_same_kernel(
    tuned: tuple[CompiledGraph, Tuning],
) -> None:
    graph, tuning = tuned
    first, second = linked_tunings(graph, [tuning, tuning])
    assert first.kernel == "triton_tem_fused_mm_0"
    assert second.kernel is None


def test_a_library_call_is_linked_by_its_name(tuned: tuple[CompiledGraph, Tuning]) -> None:
    graph, tuning = tuned
    path = graph.folder.path / "output_code.py"
    text = path.read_text().replace(
        "triton_tem_fused_mm_0.run(arg0_1, arg1_1, buf0, 32, 1, 1, stream=stream0)",
        "extern_kernels.mm(arg0_1, arg1_1, out=buf0)",
    )
    called = replace(graph, code=parse_output_code(text, path))
    choices = (TemplateChoice("mm", 0.01, "extern"), *tuning.choices)
    (linked,) = linked_tunings(called, [replace(tuning, choices=choices)])
    assert (linked.kernel, linked.generated) == ("extern_kernels.mm", "mm")
    assert tuning_sentence(linked) == (
        "mm was fastest, 68.0% ahead of triton_mm_4, and is what the wrapper runs"
    )


def test_the_table_marks_what_runs(tuned: tuple[CompiledGraph, Tuning]) -> None:
    graph, tuning = tuned
    (linked,) = linked_tunings(graph, [tuning])
    lines = to_text(tuning_tables([linked]), 110).splitlines()
    assert lines[0] == "mm(256x256 float32, 256x256 float32) -> triton_tem_fused_mm_0"
    assert lines[1].startswith("the best 10 choices (torch prints no more)")
    assert lines[3].split()[:5] == ["*", "triton_mm_4", "16.80", "1.00x", "triton"]
    assert "BLOCK_M=64" in lines[3]
    assert "ACC_TYPE" not in lines[3]
    assert "ACC_TYPE=tl.float32" in lines[-2]
    assert lines[-1] == "triton_mm_4 was fastest, 0.6% ahead of triton_mm_2, and is what the wrapper runs"
    assert linked.fastest
    assert linked.fastest.name == linked.generated == "triton_mm_4"


def test_a_winner_that_was_changed_by_what_is_fused_into_it_is_said(
    tuned: tuple[CompiledGraph, Tuning],
) -> None:
    tuning = replace(tuned[1], kernel="triton_tem_fused_mm_0", generated="triton_mm_2")
    assert tuning_sentence(tuning).startswith(
        "the wrapper runs triton_mm_2 (1.01x its time alone), though triton_mm_4 was fastest"
    )
    failed = replace(tuning, choices=(TemplateChoice("a", None),), generated=None)
    assert tuning_sentence(failed) == "no choice has a time"
    assert "failed" in to_text(tuning_tables([failed]), 110)


def test_configs_of_a_triton_kernel_are_shown_with_what_they_take() -> None:
    choices = (
        TemplateChoice("config_2", 0.1, None, (("XBLOCK", "256"), ("num_stages", "1")), 16, 0),
        TemplateChoice(
            "config_1", 0.125, "coordinate descent", (("XBLOCK", "64"), ("num_stages", "1")), 200, 8
        ),
    )
    tuning = Tuning("triton_poi_0", (), choices, "log", True, False, "triton_poi_0", "config_2")
    lines = [" ".join(line.split()) for line in to_text(tuning_tables([tuning]), 110).splitlines()]
    assert lines == [
        "triton_poi_0",
        "2 configs, as torch printed it; timed in this run",
        "choice us of best kind registers spills config",
        "* config_2 100.00 1.00x 16 0 XBLOCK=256",
        "config_1 125.00 1.25x coordinate descent 200 8 XBLOCK=64",
        "all configs: num_stages=1",
        "config_2 was fastest, 25.0% ahead of config_1, and is what the wrapper runs",
    ]


def test_a_cached_config_is_a_hit_for_the_next_compile_and_has_no_time() -> None:
    choice = TemplateChoice("config_1", None, None, (("XBLOCK", "256"), ("num_warps", "8")))
    tuning = Tuning("triton_poi_0", (), (choice,), "cache", False, None, "triton_poi_0", "config_1")
    lines = to_text(tuning_tables([tuning]), 110).splitlines()
    assert lines[1] == (
        "1 config, a .best_config in inductor's cache; the next compile finds it (a hit), and times nothing"
    )
    assert lines[-1].split() == ["*", "config_1", "XBLOCK=256,", "num_warps=8"]
