"""`probe why` as a user meets it: on dumps with recorded decisions, and on dumps without."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot
from msgspec.structs import replace

from inductor_probe.analysis.causes.causes import graph_causes
from inductor_probe.analysis.causes.times import Times
from inductor_probe.model.decision import (
    DECISION_KINDS,
    DECISIONS_NAME,
    Decision,
    Decisions,
    Operand,
    TorchFrame,
)
from inductor_probe.model.manifest import Note
from inductor_probe.reader.debug_dir import graph_dir, read_graph
from inductor_probe.report.pages.why import why_pages
from inductor_probe.report.terminal import to_text
from inductor_probe.store.decisions import write_decisions
from tests.builders import decision, manifest_text
from tests.conftest import Probe, Screen
from tests.dumps import FLIP, LATEST, LAYERNORM, run_in

CALLER = TorchFrame("torch/_inductor/codegen/cpp.py", "CppKernelProxy.codegen_nodes", 4714)
SHORT: dict[str, Operand] = {
    "loop": "x1", "range": 3, "range_limit": 4.0, "factor": 16, "operations": 2, "operations_limit": 10,
}  # fmt: skip


def scalar(number: int, node: str, **changes: Any) -> Decision:
    facts = {"number": number, "cause": "short-inner-range", "operands": SHORT, "stack": (CALLER,), **changes}
    return decision("vectorisation", node, "scalar", **facts)


def vectorised(number: int, node: str, **changes: Any) -> Decision:
    operands = {"loops": ("x0",), "ranges": ("64",), "factor": 16, "operations": 3, "non_contiguous": 0}
    facts = {"number": number, "cause": "contiguous-only-loop", "operands": operands, **changes}
    return decision("vectorisation", node, "vectorised", **facts)


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[[str, Sequence[Decision]], Path]:
    """Copy a fixture, and write decisions into its first graph."""

    def copy(name: str, decisions: Sequence[Decision]) -> Path:
        run = tmp_path / name
        shutil.copytree(run_in(LATEST / name), run)
        graph = min((run / "torchinductor").iterdir())
        write_decisions(graph / DECISIONS_NAME, Decisions("2.13.0", DECISION_KINDS, tuple(decisions)))
        return graph

    return copy


Recorded = Callable[[str, Sequence[Decision]], Path]


@pytest.mark.parametrize("subject", ["op0", "buf0", "cpp_fused_flip", "rev", "prims.rev", "capture.py:34"])
def test_every_kind_of_subject_finds_the_decision(subject: str, screen: Screen, recorded: Recorded) -> None:
    assert screen("why", subject, recorded("hflip_cl", [scalar(1, "op0")])) == snapshot("""\
! op0 is scalar: its loop x1 has 3 steps, fewer than 4 (a quarter of a vector of 16), and 2
  operations are fewer than the 10 that would be worth it [short-inner-range]
  recorded    loop x1, range 3, range limit 4.0, factor 16, operations 2, operations limit 10
  decided in  TilingSelect.select_tiling (torch/_inductor/codegen/cpp.py:3934)
  called by   CppKernelProxy.codegen_nodes
  changed by  torch._inductor.config.cpp.enable_tiling_heuristics = False (not set in this dump):
              vectorises wherever it can, without these limits; time it: it may be slower
  or by       an innermost loop of 4 steps or more passes this limit (another memory format or order
              of dimensions); the limit on non-contiguous accesses then applies
  or by       probe whatif SCRIPT --vectorise op0: for this alone
  at stake  294 KiB read and written
  kernel    cpp_fused_flip_0, loop nest 1
  FX nodes  rev
  dump      output_code.py:45, ir_post_fusion.txt:1
  from      /repro/capture.py:34 in <lambda>: run(lambda x: x.flip(-1),
            T(1,3,224,224,dtype=torch.uint8).contiguous(memory_format=torch.channels_last))
""")


@pytest.mark.parametrize("width", [80, 140])
def test_a_screen_fits_the_terminal(width: int, probe: Probe, recorded: Recorded) -> None:
    graph = recorded("hflip_cl", [scalar(1, "op0")])
    for words in ([], ["op0"]):
        ran = probe("why", *words, graph, COLUMNS=str(width))
        assert ran.status == 0, ran.err
        assert all(len(line) <= width for line in ran.out.splitlines()), ran.out


def test_the_ledger_has_what_was_missed_first_and_folds_equal_decisions(
    screen: Screen, recorded: Recorded
) -> None:
    decisions = [vectorised(1, "op0"), scalar(2, "op1"), scalar(3, "op2"), scalar(4, "op3", speculative=True)]
    assert screen("why", recorded("aa_separable_cl", decisions)) == snapshot("""\
model__0_inference_0.0  3 decisions (2 missed, 1 passed), 1 tried and not kept
! missed at op1: 11.2 MiB, changed by cpp.enable_tiling_heuristics = False
        about   kind           decision                                                 bytes
missed  op1 +1  vectorisation  scalar: inner range 3 < 16/4 with 2 operations        11.2 MiB
                               [short-inner-range]
    changed by  cpp.enable_tiling_heuristics = False
  --all shows 1 decision more, which went well
""")


def test_a_kernel_has_its_loop_nests_in_order(probe: Probe, recorded: Recorded) -> None:
    graph = recorded("hflip_cl", [scalar(1, "op0")])
    (row,) = json.loads(probe("why", "cpp_fused_flip_0", graph, "--json").out)["rows"]
    (cause,) = row["causes"]
    assert cause["nest"] == 1
    assert cause["kernels"] == ["cpp_fused_flip_0"]
    assert cause["cost"] == json.loads(probe("kernels", graph, "--json").out)["rows"][0]["bytes_read"] * 2
    assert cause["changes"][0]["setting"] == {
        "name": "torch._inductor.config.cpp.enable_tiling_heuristics", "offered": "False", "value": "default",
    }  # fmt: skip


def test_a_decision_that_was_asked_for_says_so(screen: Screen, recorded: Recorded) -> None:
    turned = vectorised(1, "op0", cause="turned", operands={"flip": "vectorise op0"})
    graph = recorded("hflip_cl", [turned])
    assert screen("why", "op0", graph) == snapshot("""\
+ op0: vectorisation vectorised: asked for by --vectorise op0 [turned]
  recorded    flip vectorise op0
  decided in  TilingSelect.select_tiling (torch/_inductor/codegen/cpp.py:3934)
  at stake  294 KiB read and written
  kernel    cpp_fused_flip_0
  FX nodes  rev
  dump      output_code.py:33, ir_post_fusion.txt:1
  from      /repro/capture.py:34 in <lambda>: run(lambda x: x.flip(-1),
            T(1,3,224,224,dtype=torch.uint8).contiguous(memory_format=torch.channels_last))
""")
    assert screen("why", graph) == snapshot("""\
model__0_inference_0.0  1 decision (1 passed)
+ nothing among them was missed
        about  kind           decision                                             bytes
passed  op0    vectorisation  vectorised: asked for by --vectorise op0 [turned]  294 KiB
""")


def test_a_setting_that_is_so_already_is_not_offered(probe: Probe, recorded: Recorded) -> None:
    graph = recorded("hflip_cl", [scalar(1, "op0")])
    assert "cpp.enable_tiling_heuristics = False" in probe("why", "op0", graph).out
    runnable = graph / "fx_graph_runnable.py"
    line = "import torch._inductor.config\n"
    setting = "torch._inductor.config.cpp.enable_tiling_heuristics = False\n"
    runnable.write_text(runnable.read_text().replace(line, line + setting, 1))
    ran = probe("why", "op0", graph)
    assert "op0 is scalar" in ran.out
    assert "enable_tiling_heuristics" not in ran.out


def test_what_was_not_recorded_is_read_in_the_dump_and_says_how_to_record_it(screen: Screen) -> None:
    out = screen("why", "op0", FLIP)
    assert out == snapshot("""\
! cpp_fused_flip_0: 1 of 1 loop nest is scalar (kernel reads and writes 294 KiB); the dump does not
  record why
  known  read in the dump, which does not record the decision
  at stake  294 KiB read and written
  kernel    cpp_fused_flip_0
  FX nodes  rev
  dump      output_code.py:45
  from      /repro/capture.py:34 in <lambda>: run(lambda x: x.flip(-1),
            T(1,3,224,224,dtype=torch.uint8).contiguous(memory_format=torch.channels_last))
not recorded in this dump: any decision (`probe dump SCRIPT` of this version records what torch
decides, and why)
probe show op0 shows all that the dump itself proves
""")
    assert "changed by" not in out
    assert screen("why", "--kind", "vectorisation", FLIP) == snapshot("""\
model__0_inference_0.0  1 conclusion (1 missed), no recorded decision
! missed at cpp_fused_flip_0: 294 KiB
        about             kind           decision                                              bytes
missed  cpp_fused_flip_0  vectorisation  1 of 1 loop nest is scalar (kernel reads and        294 KiB
                                         writes 294 KiB); the dump does not record why
                                         (read)
not recorded in this dump: vectorisation (`probe dump SCRIPT` of this version records what torch
decides, and why)
probe kernels, probe fusion and probe layouts show all that the dump itself proves
""")


def test_the_ledger_of_a_dump_of_torch_alone_has_what_it_proves(probe: Probe) -> None:
    ran = probe("why", LAYERNORM, "--all", COLUMNS="1000")
    assert ran.status == 0
    assert "fused: step 4, op3_op4 reads op1_op2 (read)" in ran.out
    assert "it is generated as persistent reduction, with the hint INNER (read)" in ran.out
    assert "not recorded in this dump: any decision" in ran.out
    (row, *_) = json.loads(probe("why", LAYERNORM, "--json").out)["rows"]
    assert {cause["knowledge"] for cause in row["causes"]} <= {"read", "inferred"}
    logged = [cause for cause in row["causes"] if cause["decision"] is not None]
    assert {cause["decision"]["kind"] for cause in logged} == {"fusion"}
    assert {cause["decision"]["knowledge"] for cause in logged} == {"read"}
    fusion = probe("why", LAYERNORM, "--kind", "fusion").out
    assert "both use" in fusion
    assert "hint" not in fusion


def test_nothing_was_decided_says_what_was_looked_for(screen: Screen, recorded: Recorded) -> None:
    assert screen("why", "op1", recorded("aa_separable_cl", [vectorised(1, "op0")])) == snapshot("""\
nothing was decided about op1: looked for vectorisation, fallback, realization, threads, fusion,
reduction, index width, layout, copy, concatenation, casts, arguments, divisions, loops, rewrite,
cudagraphs, freezing, tiling, configs
""")


def test_a_pair_is_about_both(screen: Screen, recorded: Recorded) -> None:
    graph = recorded("aa_separable_cl", [vectorised(1, "op0"), scalar(2, "op1")])
    assert screen("why", "op0", "op1", graph) == snapshot("""\
nothing was decided about op0 and op1: looked for vectorisation, fallback, realization, threads,
fusion, reduction, index width, layout, copy, concatenation, casts, arguments, divisions, loops,
rewrite, cudagraphs, freezing, tiling, configs
""")


def test_bad_input_gets_a_sentence(screen: Screen) -> None:
    questions = (["bufx"], ["op0", "--kind", "vectorization"], ["aten.flop"], ["op0", "buf0"])
    assert "".join(screen("why", *words, FLIP) for words in questions) == snapshot("""\
2> error: model__0_inference_0.0 has no node, buffer, kernel, FX node or operator bufx
2> hint: did you mean buf0?
exit 2
2> error: unknown kind of decision vectorization
2> hint: did you mean vectorisation or realization or concatenation?
exit 2
2> error: model__0_inference_0.0 has no node, buffer, kernel, FX node or operator aten.flop
2> hint: there is op0, arg0_1, buf0, cpp_fused_flip_0, rev, flip, prims.rev; or name its line: FILE:LINE
exit 2
2> error: op0 and buf0 both name op0
2> hint: probe why op0
exit 2
""")


def test_a_file_that_was_cut_short_is_a_problem_with_its_line(probe: Probe, recorded: Recorded) -> None:
    graph = recorded("hflip_cl", [scalar(1, "op0")])
    file = graph / DECISIONS_NAME
    file.write_text(file.read_text()[:-12])
    for verb, status in (("why", 2), ("check", 1)):
        ran = probe(verb, graph)
        assert ran.status == status
        assert f"{file.name}:4: cut short" in ran.out + ran.err
    text = file.read_text()
    file.write_text(text[: text.index("\n") + 20])
    ran = probe("why", "op0", graph)
    assert ran.status == 2
    assert "nothing about op0 is among the decisions that could be read" in ran.out


def test_a_file_of_a_newer_probe_is_a_sentence(probe: Probe, recorded: Recorded) -> None:
    graph = recorded("hflip_cl", [scalar(1, "op0")])
    (graph / DECISIONS_NAME).write_text('{"format": 99}\n')
    for words in ([], ["op0"]):
        ran = probe("why", *words, graph)
        assert ran.status == 2
        assert "was written by a newer probe (format 99)" in ran.err
        assert "! what torch decided cannot be read: " in ran.out
        assert "probe dump SCRIPT" not in ran.out


def test_check_counts_the_lines_of_decisions(probe: Probe, recorded: Recorded) -> None:
    graph = recorded("hflip_cl", [scalar(1, "op0")])
    (row,) = json.loads(probe("check", graph, "--json").out)["check"]["graphs"]
    (file,) = [file for file in row["files"] if file["kind"] == DECISIONS_NAME]
    assert (file["lines"], file["read"], file["unread"]) == (3, 3, 0)
    assert row["unopened"] == []


@pytest.mark.parametrize("verb", [["kernels"], ["show", "cpp_fused_flip_0"], ["show"]])
def test_a_remark_about_scalar_loops_says_the_recorded_cause(
    verb: list[str], probe: Probe, recorded: Recorded
) -> None:
    ran = probe(*verb, recorded("hflip_cl", [scalar(1, "op0")]))
    assert "1 of 1 loop nest is scalar (kernel reads and writes 294 KiB): inner range 3 < 16/4" in ran.out
    assert "does not record" not in ran.out


def test_kernels_with_scalar_loops_lead_to_why(probe: Probe, recorded: Recorded) -> None:
    graph = recorded("hflip_cl", [scalar(1, "op0")])
    assert f"next: probe why cpp_fused_flip_0 {graph}" in probe("kernels", graph, "--only", "scalar").err


def test_a_loop_nest_has_no_cause_of_a_decision_that_does_not_fit_it(
    probe: Probe, recorded: Recorded
) -> None:
    ran = probe("show", "cpp_fused_flip_0", recorded("hflip_cl", [vectorised(1, "op0")]))
    assert "1 of 1 loop nest is scalar (kernel reads and writes 294 KiB); the dump does not record" in ran.out


@pytest.mark.parametrize("name", ["op0", "buf0"])
def test_the_page_of_a_node_says_what_was_decided_about_it(
    name: str, probe: Probe, recorded: Recorded
) -> None:
    ran = probe("show", name, recorded("hflip_cl", [scalar(1, "op0")]))
    assert "missed: op0 is scalar: its loop x1 has 3 steps" in ran.out
    assert f"probe why {name} shows what was compared" in ran.out


def test_diff_says_which_decision_changed_and_its_cause_on_both_sides(
    probe: Probe, recorded: Recorded, tmp_path: Path
) -> None:
    before = recorded("hflip_cl", [scalar(1, "op0")])
    (tmp_path / "hflip_cl").rename(tmp_path / "before")
    before = tmp_path / "before" / before.relative_to(tmp_path / "hflip_cl")
    ran = probe("diff", before, recorded("hflip_cl", [vectorised(1, "op0")]))
    scalar_, vectors = "inner range 3 < 16/4 with 2 operations", "along x0 (64) by 16, nowhere strided"
    assert (
        "A and B compute the same" in ran.out
        or f"op0: scalar ({scalar_}) -> vectorised ({vectors})" in ran.out
    )
    (change,) = json.loads(probe("diff", before, tmp_path / "hflip_cl", "--json").out)["diff"]["decisions"]
    assert (change["a"]["cause"], change["b"]["cause"]) == ("short-inner-range", "contiguous-only-loop")


def test_layouts_say_what_was_recorded(screen: Screen, recorded: Recorded) -> None:
    operands = {"node": "rev", "operations": 114, "operations_limit": 50}
    realised = decision(
        "realization", "buf0", "realised", "operations", subject_type="buffer", operands=operands
    )
    out = screen("layouts", "buf0", recorded("hflip_cl", [realised]))
    assert out.partition("returned by the graph\n")[2] == snapshot("""\
! buf0 is a buffer of its own: operations (node rev, operations 114, operations limit 50)
  probe why buf0 shows what was compared, and what changes it
""")


def test_a_recorder_that_failed_inside_torch_is_said(probe: Probe, recorded: Recorded) -> None:
    graph = recorded("hflip_cl", [scalar(1, "op0")])
    values = (("recorder", "threads._record"), ("error", "KeyError: 'x0'"))
    (graph.parents[1] / "probe.json").write_text(manifest_text(notes=(Note("recorder-failed", values),)))
    for words in ([], ["op0"]):
        ran = probe("why", *words, graph)
        assert ran.status == 0
        assert "a recorder failed, so decisions may be missing" in ran.out
        assert "threads._record could not be recorded: KeyError: 'x0'" in " ".join(ran.out.split())
    (row,) = json.loads(probe("why", graph, "--json").out)["rows"]
    assert row["failed"][0]["code"] == "recorder-failed"


def test_the_text_of_a_kernel_has_decisions_where_they_belong(probe: Probe, recorded: Recorded) -> None:
    operands: dict[str, Operand] = {
        "loop": "x2", "operations": 2, "non_contiguous": 1, "share": 0.5, "share_limit": 0.12,
        "count_limit": 35, "nodes": ("op0",), "node_operations": ("load",), "buffers": ("arg0_1",),
        "indices": ("2*x2",), "strides": ("2",),
    }  # fmt: skip
    strided = scalar(1, "op0", cause="non-contiguous-accesses", operands=operands, stack=())
    graph = recorded("hflip_cl", [strided])
    lines = [line.strip() for line in probe("show", "cpp_fused_flip", graph, "--annotate").out.splitlines()]
    heading = lines.index("// loop nest 1 of 1, scalar: op0")
    assert lines[heading + 1].startswith("//   ! op0 is scalar: along x2, 1 of its 2 operations is")
    (load,) = [line for line in lines if "op0 reads arg0_1" in line]
    assert "; not contiguous (stride 2)" in load
    (store,) = [line for line in lines if "op0 writes buf0" in line]
    assert "contiguous" not in store


def test_the_ledger_is_sorted_by_what_is_at_stake_and_folds_one_cause_of_other_numbers(
    probe: Probe, recorded: Recorded
) -> None:
    other = vectorised(2, "op1")
    longer = replace(other, operands=(("loops", ("x7",)), *other.operands[1:]))
    decisions = [vectorised(1, "op0"), longer, scalar(3, "op2")]
    ran = probe("why", recorded("aa_separable_cl", decisions), "--all", COLUMNS="1000")
    missed, passed = ran.out.splitlines()[3:5]
    assert missed.split()[1:3] == ["missed", "op2"]
    assert "op1 +1" in passed  # op1 moves more
    assert "along x7 (64) by 16, nowhere strided (largest)" in passed


def test_the_time_of_a_kernel_counts_once_for_the_decisions_of_a_row(recorded: Recorded) -> None:
    graph = read_graph(graph_dir(recorded("aa_separable_cl", [scalar(1, "op0"), scalar(2, "op2")])), None)
    (kernel,) = [kernel.name for kernel in (graph.code.kernels if graph.code else ())]
    times = Times({kernel: 0.002})
    causes = graph_causes(graph, times=times)
    text = to_text(why_pages([causes]))
    (row,) = [line for line in text.splitlines() if line.startswith("missed")]
    assert "op0 +1" in row or "op2 +1" in row
    assert "2.000 ms" in row
    of_node = to_text(why_pages([graph_causes(graph, ["op0"], times=times)]))
    assert "2.000 ms of its kernel" in of_node


def test_diff_shows_what_decided_about_a_pair_on_both_sides(
    probe: Probe, recorded: Recorded, tmp_path: Path
) -> None:
    steps = {"round": 1, "step": 1, "buffers": ("buf0",)}
    fused = decision("fusion", "op0, op1", "fused", "producer-and-consumer", operands=steps)
    refused = replace(
        fused, outcome="refused", cause="fusion-size-limit", operands=(("nodes", 2), ("limit", 1))
    )
    before = recorded("aa_separable_cl", [fused])
    (tmp_path / "aa_separable_cl").rename(tmp_path / "before")
    before = tmp_path / "before" / before.relative_to(tmp_path / "aa_separable_cl")
    ran = probe("diff", before, recorded("aa_separable_cl", [refused]), COLUMNS="140")
    lines = [line.strip() for line in ran.out.splitlines()]
    entry = next(number for number, line in enumerate(lines) if line.startswith("fusion of "))
    assert lines[entry + 1].startswith("- op0 and op1 are fused: step 1 of round 1")
    assert lines[entry + 2].startswith("+ op0 and op1 are not fused: fused, they would be 2 nodes")
    assert "only 1 decision differs" in ran.out


def test_an_input_has_the_decisions_about_what_reads_it(probe: Probe, recorded: Recorded) -> None:
    ran = probe("why", "arg0_1", recorded("hflip_cl", [scalar(1, "op0")]))
    assert ran.status == 0
    assert "missed: op0 is scalar" in ran.out
