"""`probe tunings`: choices that were written down, linked to what the wrapper runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from inductor_probe.store.choices import tunings_from_csv
from tests.conftest import Probe, Screen
from tests.dumps import graph_in

CHOICES = {
    "operation": "mm",
    "inputs": ["8x16 float32", "16x4 float32"],
    "cached": False,
    "choices": [
        {"name": "triton_mm_1", "ms": 0.02, "kind": "triton", "config": "BLOCK_M=32, num_warps=2"},
        {"name": "mm", "ms": 0.01, "kind": "extern", "config": ""},
        {"name": "triton_mm_2", "ms": None, "kind": "triton", "config": "BLOCK_M=64, num_warps=4"},
    ],
}


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A graph of a fixture with what `probe dump` would have written beside it."""
    stored = graph_in("torch-2.13.0-cpu/hflip_cl")
    folder = Path(shutil.copytree(stored, tmp_path / stored.name))
    (folder / "probe_choices.jsonl").write_text(json.dumps(CHOICES) + "\n")
    return folder


def test_choices_are_shown_from_fastest_to_slowest(screen: Screen, graph: Path) -> None:
    assert screen("tunings", graph) == snapshot("""\
mm(8x16 float32, 16x4 float32)
3 choices, as probe dump saw it; a cache miss: timed in this compile
    choice           us  of best  kind    config
    mm            10.00    1.00x  extern
    triton_mm_1   20.00    2.00x  triton  BLOCK_M=32, num_warps=2
    triton_mm_2  failed           triton  BLOCK_M=64, num_warps=4
mm was fastest; which choice the wrapper runs could not be proved
""")


def test_json_and_csv_hold_every_choice(probe: Probe, graph: Path) -> None:
    (found,) = json.loads(probe("tunings", "--json", graph).out)["rows"]
    assert [choice["name"] for choice in found["choices"]] == ["mm", "triton_mm_1", "triton_mm_2"]
    assert found["cached"] is False
    (table,) = tunings_from_csv(probe("tunings", "--csv", graph).out)
    assert [choice.name for choice in table.choices] == ["mm", "triton_mm_1", "triton_mm_2"]


def test_without_choices_the_way_to_them_is_told(screen: Screen, graph: Path) -> None:
    (graph / "probe_choices.jsonl").unlink()
    assert screen("tunings", graph) == snapshot("""\
2> nothing was autotuned in it, or it was not recorded: dump what calls torch.compile(mode='max-autotune')
""")


def test_a_damaged_line_is_named(screen: Screen, graph: Path) -> None:
    with (graph / "probe_choices.jsonl").open("a") as file:
        file.write('{"operation": ')
    assert screen("tunings", graph) == snapshot("""\
mm(8x16 float32, 16x4 float32)
3 choices, as probe dump saw it; a cache miss: timed in this compile
    choice           us  of best  kind    config
    mm            10.00    1.00x  extern
    triton_mm_1   20.00    2.00x  triton  BLOCK_M=32, num_warps=2
    triton_mm_2  failed           triton  BLOCK_M=64, num_warps=4
mm was fastest; which choice the wrapper runs could not be proved
2> warning: TMP/model__0_inference_0.0/probe_choices.jsonl:2: not a line of JSON: cut off while it was written?
exit 2
""")  # noqa: E501


def test_an_exported_table_is_shown_again_as_it_was(probe: Probe, graph: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text(probe("tunings", "--csv", graph).out)
    ran = probe("tunings", table)
    assert (ran.status, ran.out) == (0, probe("tunings", graph).out)
    table.write_text("no table")
    ran = probe("tunings", table)
    assert ran.status == 2
    assert "table.csv:1: not a table of template choices" in ran.err


def test_what_torch_printed_is_shown_where_nobody_wrote_it_down(probe: Probe, corpus: Path) -> None:
    (run,) = (corpus / "torch-2.11.0-cuda" / "mm_epilogue_maxautotune").glob("**/run_*")
    template, kernel = json.loads(probe("tunings", "--json", run).out)["rows"]
    assert (template["operation"], template["kernel"]) == ("mm", "triton_tem_fused_mm_0")
    assert (kernel["operation"], len(kernel["choices"])) == ("triton_poi_fused_add_relu_1", 5)
    assert kernel["kernel"] == kernel["operation"]


def test_configs_of_a_table_become_variants(probe: Probe, corpus: Path, tmp_path: Path) -> None:
    (run,) = (corpus / "torch-2.11.0-cuda" / "transpose_chain").glob("**/run_*")
    copy = Path(shutil.copytree(run, tmp_path / run.name))
    shutil.copy(next(path for path in run.parents if (path / "stderr.txt").exists()) / "stderr.txt", copy)
    table = tmp_path / "table.csv"
    table.write_text(probe("tunings", "--csv", copy).out)
    ran = probe("rewrite", "--tuned", table, copy)
    assert ran.status == 0, ran.err
    assert "config={'YBLOCK': 32, 'XBLOCK': 8, 'num_warps': 4, 'num_stages': 1}" in ran.out
    other = graph_in("torch-2.13.0-cpu/hflip_cl")
    ran = probe("rewrite", "--tuned", table, other)
    assert ran.status == 2
    assert "has no config for a Triton kernel of" in ran.err
