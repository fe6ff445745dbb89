"""`probe diff` as a user meets it: exit statuses, widths, pipes, JSON, code, and bad input."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from inline_snapshot import snapshot
from msgspec.structs import replace

import inductor_probe as ip
from tests.builders import manifest_text
from tests.conftest import DUMPS, Probe, Screen
from tests.dumps import FLIP as NEW
from tests.dumps import TRAINING as TRAIN
from tests.dumps import graph_in, run_in

OLD = DUMPS / "torch-2.1.2-cpu" / "hflip_cl"
LAYERNORM = [DUMPS / f"torch-{version}-cpu" / "layernorm_grad" for version in ("2.1.2", "2.4.1")]


def copy_of(scenario: Path, tmp_path: Path, name: str) -> Path:
    """A copy of a run below `tmp_path`, with another name."""
    copy = tmp_path / "torch_compile_debug" / name
    shutil.copytree(run_in(scenario), copy)
    return copy


def test_equal_runs_are_said_to_be_equal(probe: Probe, screen: Screen, tmp_path: Path) -> None:
    copy = copy_of(TRAIN, tmp_path, "run_renamed")
    assert screen("diff", TRAIN, copy, columns=1000) == snapshot("""\
A  DUMPS/torch-2.13.0-cpu/mlp_train/run_2026_11_21_02_11_02_311251-pid_7367
B  TMP/torch_compile_debug/run_renamed
all 2 pairs of graphs are equal
equal, names and spelling aside:
  model__0_forward_1.0
  model__0_backward_3.1
""")
    every = probe("diff", TRAIN, copy, "--all")
    assert every.out.count("A and B compute the same with the same code") == 2


def test_different_graphs_end_with_1_and_say_why(screen: Screen) -> None:
    assert screen("diff", OLD, NEW, columns=1000) == snapshot("""\
A  DUMPS/torch-2.1.2-cpu/hflip_cl/run_2026_11_21_03_01_35_727033-pid_2279
B  DUMPS/torch-2.13.0-cpu/hflip_cl/run_2026_11_21_02_09_10_346092-pid_5393
environment
  torch._inductor.config.fx_graph_cache: default -> False
  torch._inductor.config.trace.save_real_tensors: default -> False
  torch._inductor.config.trace.enabled: default -> False
  torch._functorch.config.functionalize_rng_ops: default -> False
  torch._functorch.config.fake_tensor_allow_unsafe_data_ptr_access: default -> True
  torch._functorch.config.unlift_effect_tokens: default -> True
  torch._functorch.config.selective_decompose: default -> False

model___54.0 -> model__0_inference_0.0
  torch: 2.1.2+cu121 -> 2.13.0+cpu
  1 node does the same operations in other loops: buf0 -> op0
  1 of 1 kernel changed: OpenMP threads: 2 -> none, check for division by zero: none -> yes

computation
  buf0 -> op0: the same operations in other loops (matched by the same operations)
    loops: [224, 3, 224] -> [224, 224, 3]
    - load('arg0_1', 672*z0 + z1 - 3*z2 + 669)   ir_post_fusion.txt:15
    + load('arg0_1', 672*p0 - 3*p1 + p2 + 669)   ir_post_fusion.txt:23

kernels
  cpp_fused_flip_0: changed
    OpenMP threads: 2 -> none
    check for division by zero: none -> yes
    code -5 +14 lines (--code shows them)

spelling only: index type (1), graph name (1)
exit 1
""")


def test_json_of_two_runs_has_their_graphs(probe: Probe) -> None:
    ran = probe("diff", *LAYERNORM, "--json")
    found = json.loads(ran.out)
    assert (ran.status, found["diff"]["record"], found["diff"]["equal"]) == (1, "RunDiff", False)
    forward = found["diff"]["graphs"][0]
    assert forward["fusion"][0]["relation"] == "merged"
    assert {"name": "fused_groups", "a": 4, "b": 1} in forward["counts"]
    assert any("fused groups" in line for line in found["summary"])


def test_knobs_and_versions_of_the_manifests_are_told(probe: Probe, tmp_path: Path) -> None:
    for changes in (
        {"label": "static", "versions": (("torch", "2.13.0"),)},
        {"label": "dynamic", "knobs": (("dynamic", "True"),), "versions": (("torch", "2.12.1"),)},
    ):
        copy = copy_of(NEW, tmp_path, f"run_{changes['label']}")
        (copy / "probe.json").write_text(manifest_text(**changes))
    ran = probe("diff", "static", "dynamic", cwd=tmp_path)
    assert ran.status == 0, "what was asked for makes no difference by itself"
    assert "  torch: 2.13.0 -> 2.12.1\n  --set dynamic: not set -> True\n" in ran.out


def test_json_of_two_graphs_has_the_one_pair(probe: Probe) -> None:
    graphs = [graph_in(OLD), graph_in(NEW)]
    found = json.loads(probe("diff", *graphs, "--json").out)
    assert found["diff"]["record"] == "GraphDiff"
    assert [found["diff"][side]["torch_version"] for side in ("a", "b")] == [
        "2.1.2+cu121",
        "2.13.0+cpu",
    ]


def test_a_graph_finds_its_partner_in_a_run(probe: Probe) -> None:
    backward = graph_in(TRAIN, "backward")
    ran = probe("diff", backward, TRAIN)
    assert ran.status == 0
    assert ran.out.startswith(f"A  {backward}\nB  {backward}\n\nmodel__0_backward_3.1\n")


def test_without_names_the_two_latest_runs_are_compared(probe: Probe, tmp_path: Path) -> None:
    copy_of(OLD, tmp_path, "run_2026_01_01_00_00_00_000000-pid_1")
    copy_of(NEW, tmp_path, "run_2026_01_02_00_00_00_000000-pid_2")
    ran = probe("diff", cwd=tmp_path)
    assert ran.status == 1
    assert "torch: 2.1.2+cu121 -> 2.13.0+cpu" in ran.out
    backwards = probe("diff", "run_2026_01_02", "run_2026_01_01", cwd=tmp_path)
    assert "torch: 2.13.0+cpu -> 2.1.2+cu121" in backwards.out
    assert probe("diff", "run_2026_01_02", cwd=tmp_path).status == 0, "the latest run is B"


@pytest.mark.parametrize("order", [("--code", "A", "B"), ("A", "B", "--code"), ("A", "B", "--code", "cpp_")])
def test_code_is_shown_on_demand(probe: Probe, order: tuple[str, ...]) -> None:
    places = {"A": OLD, "B": NEW}
    ran = probe("diff", *(places.get(word, word) for word in order))
    assert ran.status == 1
    assert ran.out.startswith("cpp_fused_flip_0 -> cpp_fused_flip_0\n--- cpp_fused_flip_0\n+++ cpp_fused")
    assert any(line.startswith("-") and "simd" in line for line in ran.out.splitlines()) or "@@" in ran.out
    assert "long" not in ran.out, "the spelling of 64-bit integers is no difference"


def test_bad_input_gets_a_sentence(screen: Screen) -> None:
    questions = ([], ["nowhere/at/all", NEW], [OLD, NEW, "--code", "triton_x"])
    assert "".join(screen("diff", *words) for words in questions) == snapshot("""\
2> error: there are not two runs below TMP to compare
2> hint: name two: probe diff RUN_A RUN_B
exit 2
2> error: TMP/nowhere/at/all does not exist
exit 2
2> error: neither side has a kernel triton_x
2> hint: there is cpp_fused_flip_0
exit 2
""")


def test_what_could_not_be_read_ends_with_2_and_the_rest_is_compared(screen: Screen, tmp_path: Path) -> None:
    copy = copy_of(NEW, tmp_path, "run_damaged")
    (file,) = copy.glob("torchinductor/*/ir_post_fusion.txt")
    file.unlink()
    assert screen("diff", NEW, copy, columns=1000) == snapshot("""\
A  DUMPS/torch-2.13.0-cpu/hflip_cl/run_2026_11_21_02_09_10_346092-pid_5393
B  TMP/torch_compile_debug/run_damaged

model__0_inference_0.0
  A and B compute the same with the same code; nothing differs
  not compared: B has no nodes after fusion: fusion and what nodes compute
2> warning: TMP/torch_compile_debug/run_damaged/torchinductor/model__0_inference_0.0/ir_post_fusion.txt does not exist
exit 2
""")  # noqa: E501


def test_the_command_line_mirrors_the_api() -> None:
    old, new = ip.open_run(OLD), ip.open_run(NEW)
    found = old.diff(new)
    assert not found.equal
    assert repr(found) == repr(ip.diff(OLD, NEW))
    (graph,) = found.graphs
    alone = old.graphs[0].diff(new.graphs[0]).result
    assert replace(alone, environment=()) == replace(graph, environment=())
    assert {fact for fact in alone.environment if "." in fact.name} <= set(found.result.environment)
    assert graph.kernel("cpp_fused_flip_0") is not None
    assert [title for title, _ in found.code()] == ["cpp_fused_flip_0 -> cpp_fused_flip_0"]
