"""Fusion concluded from real dumps and logs: groups, steps, refusals, facts of the IR, whose log it is."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.analysis.causes.causes import graph_causes
from inductor_probe.analysis.fusion.decisions import logged_decisions
from inductor_probe.analysis.fusion.facts import pair_facts
from inductor_probe.analysis.fusion.log import Matched, ends_with, match_log, replay
from inductor_probe.analysis.fusion.overview import fusion_of_graph, fusion_of_node, fusion_of_pair
from inductor_probe.analysis.graph import index_of, without_subgraphs
from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision
from inductor_probe.model.fusion import FusionDecision, GraphFusion, LogMatch
from inductor_probe.model.logs import CompilerLogs
from inductor_probe.model.proof import read
from inductor_probe.reader.debug_dir import read_graph, read_run
from inductor_probe.reader.logs.run_logs import read_logs
from inductor_probe.report.words.decisions import sentence
from inductor_probe.report.words.fusion import how_to_record_reasons
from tests.conftest import DUMPS
from tests.dumps import run_in


def graphs_and_logs(name: str) -> tuple[list[CompiledGraph], CompilerLogs]:
    path = run_in(name)
    run = read_run(path)
    return [read_graph(graph, run.manifest) for graph in run.graphs], read_logs(run)


def matched(name: str, at: int = 0) -> tuple[CompiledGraph, Matched]:
    graphs, logs = graphs_and_logs(name)
    return graphs[at], match_log(graphs[at], at, logs, lambda: graphs, len(graphs))


def logged_runs() -> list[Path]:
    return sorted(path.parent for path in DUMPS.glob("*/*/stderr.txt"))


NO_LOG = Matched(None, LogMatch("none", read("no-log")))
LAYERNORM_CUDA = "torch-2.11.0-cuda/layernorm_grad"
TRAINING = "torch-2.13.0-cpu-programs/training"


def whole_of(graph: CompiledGraph, found: Matched) -> GraphFusion:
    decisions = logged_decisions(graph, found.log)
    causes = graph_causes(graph, (), ["fusion"], logged=decisions if found.log else None).causes
    return fusion_of_graph(graph, found, decisions, causes)


def pair_of(graph: CompiledGraph, found: Matched, first: str, second: str) -> FusionDecision:
    decisions = logged_decisions(graph, found.log)
    logged = decisions if found.log else None
    why = partial(graph_causes, graph, (first, second), ["fusion"], logged=logged)
    return fusion_of_pair(graph, found, first, second, decisions, why=why)


def pair(name: str, first: str, second: str, at: int = 0) -> FusionDecision:
    return pair_of(*matched(name, at), first, second)


def decided(row: FusionDecision) -> Decision:
    """Return what was decided about a pair in the end."""
    [cause] = row.causes
    assert cause.decision is not None
    assert cause.knowledge == cause.decision.knowledge
    return cause.decision


@pytest.mark.parametrize("folder", logged_runs(), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_log_of_every_fixture_is_told_to_its_graphs(folder: Path) -> None:
    name = str(folder.relative_to(DUMPS))
    graphs, logs = graphs_and_logs(name)
    for at, graph in enumerate(graphs):
        found = match_log(graph, at, logs, lambda: graphs, len(graphs))
        assert found.match.state == "proved"
        assert not whole_of(graph, found).problems


def test_steps_and_groups_of_a_graph() -> None:
    whole = whole_of(*matched("torch-2.4.1-cpu/layernorm_grad"))
    assert (whole.nodes_before, whole.nodes_after) == (5, 1)
    assert [(row.number, row.fused) for row in whole.rounds] == [(1, 2), (2, 2)]
    (group,) = whole.groups
    assert group.kind == "OuterLoopFusedSchedulerNode"
    assert group.steps == (1, 2, 3, 4)
    assert {name for side in whole.steps[-1].subjects for name in side} == set(group.nodes)
    assert whole.steps[-1].cause == "outer-loops"
    assert {step.knowledge for step in whole.steps} == {"read"}
    assert group.kernel


def test_each_pair_of_the_log_is_a_decision_and_the_last_about_two_nodes_counts() -> None:
    graph, found = matched(LAYERNORM_CUDA, 1)
    assert found.log is not None
    decisions = logged_decisions(graph, found.log)
    lines = [a for part in found.log.rounds for a in part.attempts if a.outcome in ("refused", "fused")]
    pairs = {frozenset((a.first, a.second)) for a in lines}
    assert pairs <= {frozenset("_".join(side) for side in one.subjects) for one in decisions}
    assert all(one.span for one in decisions)
    tops = {top.name for top in graph.post}
    kept = [one for one in decisions if one.outcome != "fused" and not one.speculative]
    assert [tuple("_".join(side) for side in one.subjects) for one in kept] == [
        ("op0_op1_op2_op3_op4", "op5_op7"), ("op5_op7", "op6"), ("op5_op7", "op8"),
    ]  # fmt: skip
    assert all("_".join(side) in tops for one in kept for side in one.subjects)
    assert {one.cause for one in kept} == {"loop-order-differs"}


def test_a_pair_that_was_fused_says_by_which_step() -> None:
    decision = decided(pair("torch-2.4.1-cpu/layernorm_grad", "buf0", "buf1"))
    assert (decision.outcome, decision.cause, decision.step) == ("fused", "common-buffer", 1)
    assert decision.subjects == (("buf0",), ("buf1",))
    assert (decision.operand("round"), decision.operand("shared_bytes")) == (1, 3145728)


def test_a_reason_of_torchs_log_has_the_code_operands_and_sentence_of_a_recorded_decision() -> None:
    row = pair(LAYERNORM_CUDA, "op3", "op4")
    assert row.outcome == "fused"  # through others, after it was refused alone
    refused = next(one for one in row.tried if one.outcome == "refused")
    assert (refused.cause, refused.knowledge) == ("numels-differ", "read")
    assert (refused.operand("second_numel"), refused.operand("shared_bytes")) == (786432, 4096)
    assert sentence(refused) == (
        "op3 and op4 are not fused: op3 computes 1024 elements, op4 786432: a Triton kernel has one size "
        "[numels-differ]"
    )


def test_buffers_and_fused_names_mean_their_nodes() -> None:
    by_node = pair(LAYERNORM_CUDA, "op0", "op5")
    by_buffer = pair(LAYERNORM_CUDA, "buf0", "buf5")
    assert by_node.outcome == by_buffer.outcome
    assert by_node.facts.first.nodes == by_buffer.facts.first.nodes == ("op0",)
    joined = pair(LAYERNORM_CUDA, "op0_op1", "op4_op5")
    assert joined.facts.first.nodes == ("op0", "op1")


def test_names_that_cannot_be_a_pair() -> None:
    graph, found = matched(LAYERNORM_CUDA)
    with pytest.raises(ProbeError, match="both name op0"):
        pair_of(graph, found, "op0", "buf0")
    with pytest.raises(NotFoundError, match="primals_1 is an input"):
        pair_of(graph, found, "op0", "primals_1")
    with pytest.raises(NotFoundError, match="FX node or operator op77"):
        fusion_of_node(graph, found, "op77", (), why=partial(graph_causes, graph, ["op77"]))


def test_what_a_pair_shares_is_what_torch_counts() -> None:
    """Wherever the log counts the shared bytes of two unfused nodes, the IR gives the same number."""
    compared = 0
    for folder in logged_runs():
        graphs, logs = graphs_and_logs(str(folder.relative_to(DUMPS)))
        for at, graph in enumerate(graphs):
            found = match_log(graph, at, logs, lambda: graphs, len(graphs))  # noqa: B023 - called at once
            assert found.log is not None
            leaves = index_of(graph).before.leaf
            for row in found.log.rounds[0].shared:
                if row.first in leaves and row.second in leaves and isinstance(row.amount, int):
                    shared = pair_facts(graph, row.first, row.second, {}).shared
                    if any(buffer.matches and buffer.bytes is None for buffer in shared):
                        continue  # symbolic
                    assert sum(buffer.bytes or 0 for buffer in shared) == row.amount
                    compared += 1
    assert compared > 100


def test_a_node_that_must_run_between_is_named_with_the_way() -> None:
    graph, _ = matched("torch-2.4.1-cpu/layernorm_grad")
    path = pair_facts(graph, "buf1", "buf4", {}).path
    assert decided(pair_of(graph, NO_LOG, "buf1", "buf4")).outcome == "fused"
    assert (path[0], path[-1]) == ("buf1", "buf4")
    leaves = index_of(graph).before.leaf
    for writer, buffer, reader in zip(path[::2], path[1::2], path[2::2], strict=False):
        assert buffer in {output.name for output in leaves[writer].outputs}
        assert buffer in {dep.name for dep in leaves[reader].reads}


def test_without_a_log_what_the_ir_shows_is_inferred_and_the_way_to_a_log_is_named() -> None:
    graph, found = matched("torch-2.13.0-cpu/aa_separable_cl")
    assert found.match.state == "none"
    row = pair_of(graph, found, "op2", "op3")
    assert (decided(row).cause, decided(row).knowledge) == ("accesses-differ", "inferred")
    assert row.outcome == "refused"
    assert row.facts.loops_fit is False
    assert row.facts.loops is not None
    assert row.facts.loops.cause == "loop-ranges-differ"
    assert "probe dump" in (how_to_record_reasons(found.match) or "")
    assert row.same_kernel


def test_torch_2_1_has_no_log_of_fusion() -> None:
    graph, found = matched("torch-2.1.2-cpu/layernorm_grad")
    assert found.match.proof.code == "torch-logs-no-fusion"
    nodes = [top.name for top in graph.post]
    row = pair_of(graph, found, nodes[0], nodes[-1])
    assert row.outcome != "fused"
    assert "2.2 and later" in (how_to_record_reasons(row.log) or "")


def test_torch_2_2_lists_what_can_be_fused_and_the_ir_shows_what_was(corpus: Path) -> None:
    run = read_run(next(corpus.glob("torch-2.2.2-cpu/layernorm_grad/torch_compile_debug/run_*")))
    graphs, logs = [read_graph(graph, run.manifest) for graph in run.graphs], read_logs(run)
    found = match_log(graphs[0], 0, logs, lambda: graphs, len(graphs))
    fused = [one for one in logged_decisions(graphs[0], found.log) if one.outcome == "fused"]
    assert [(one.subjects, one.step) for one in fused] == [((("buf0",), ("buf1",)), None)]


def test_a_library_call_is_fused_with_nothing() -> None:
    graph, found = matched("torch-2.13.0-cpu/multi_output_no_fuse")
    extern = next(leaf.name for top in graph.pre for leaf in top.leaves() if leaf.kind.startswith("Extern"))
    other = next(leaf.name for top in graph.pre for leaf in top.leaves() if leaf.kind == "SchedulerNode")
    decision = decided(pair_of(graph, found, extern, other))
    assert (decision.outcome, decision.cause) == ("not-tried", "extern-kernel")
    assert decision.subjects == ((extern,),)
    assert decision.operand("kernel")


def test_what_is_refused_without_a_reason_is_inferred_from_the_loops() -> None:
    """The C++ backend logs nothing when it refuses: a round that found no pair proves it."""
    silent: list[Decision] = []
    for name in (TRAINING, "torch-2.13.0-cpu-programs/symbolic", "torch-2.13.0-cpu-programs/scatters"):
        graphs, logs = graphs_and_logs(name)
        for at, graph in enumerate(graphs):
            found = match_log(graph, at, logs, lambda: graphs, len(graphs))  # noqa: B023 - called at once
            assert found.log is not None
            reasons = {
                (one.first, one.second) for row in found.log.rounds for one in row.attempts if one.reason
            }
            silent += [
                one
                for one in logged_decisions(graph, found.log)
                if one.outcome == "refused" and not one.speculative
                if tuple("_".join(side) for side in one.subjects) not in reasons
            ]
    assert silent
    assert {one.cause for one in silent} <= {"loop-ranges-differ", "no-common-outer-loop", "other"}
    assert all((one.knowledge == "inferred") == (one.cause != "other") for one in silent)


def test_what_has_no_code_is_shown_in_torchs_words(tmp_path: Path) -> None:
    words = "template prologue can only fuse nodes with a single use"
    run = read_run(copy_with_log(tmp_path, lambda text: text.replace("no shared data", words)))
    graphs, logs = [read_graph(graph) for graph in run.graphs], read_logs(run)
    found = match_log(graphs[1], 1, logs, lambda: graphs, len(graphs))
    other = [one for one in logged_decisions(graphs[1], found.log) if one.cause == "other"]
    assert other
    assert f"are not fused: in torch's words: {words}" in sentence(other[0])


def test_nodes_after_fusion_are_what_the_log_fuses() -> None:
    for folder in logged_runs():
        graphs, logs = graphs_and_logs(str(folder.relative_to(DUMPS)))
        for at, graph in enumerate(graphs):
            found = match_log(graph, at, logs, lambda: graphs, len(graphs))  # noqa: B023 - called at once
            assert_replays(graph, found)


def assert_replays(graph: CompiledGraph, found: Matched) -> None:
    assert found.log is not None
    assert ends_with(found.log, graph)
    played = replay(found.log, graph)
    after = {frozenset(leaf.name for leaf in top.leaves()) for top in without_subgraphs(graph).post}
    assert not played.gaps
    if played.logged:
        assert played.groups == after


def test_a_log_that_ends_with_other_nodes_is_a_problem() -> None:
    graph, _ = matched("torch-2.4.1-cpu/layernorm_grad")
    path = run_in("torch-2.4.1-cpu/layernorm_grad")
    logs = read_logs(read_run(path))
    unfused = replace(graph, post=graph.pre)
    found = match_log(unfused, 0, logs, lambda: [unfused], 2)
    assert found.match.state == "disagrees"
    assert any("the log ends with buf0_buf1" in str(problem) for problem in whole_of(unfused, found).problems)
    decision = pair_of(unfused, found, "buf0", "buf1")
    assert any("the log fuses buf0 and buf1" in str(problem) for problem in decision.problems)


def copy_with_log(tmp_path: Path, change: Callable[[str], str]) -> Path:
    source = DUMPS / "torch-2.4.1-cpu" / "layernorm_grad"
    shutil.copytree(source, tmp_path / "copy")
    log = tmp_path / "copy" / "stderr.txt"
    log.write_text(change(log.read_text()))
    (run,) = (tmp_path / "copy").glob("run_*")
    return run


def match_all(run: Path) -> list[LogMatch]:
    read = read_run(run)
    graphs = [read_graph(graph) for graph in read.graphs]
    logs = read_logs(read)
    return [match_log(graph, at, logs, lambda: graphs, len(graphs)).match for at, graph in enumerate(graphs)]


def test_a_compile_that_was_done_twice_says_the_same_twice(tmp_path: Path) -> None:
    matches = match_all(copy_with_log(tmp_path, lambda text: text + text))
    assert [match.state for match in matches] == ["proved", "proved"]
    assert matches[0].proof.code == "equal-log-parts"


def test_two_parts_that_fit_and_differ_are_ambiguous(tmp_path: Path) -> None:
    other = lambda text: text + text.replace("no shared data", "exceeds max fusion")  # noqa: E731 - short
    matches = match_all(copy_with_log(tmp_path, other))
    assert "ambiguous" in {match.state for match in matches}


def test_a_log_of_other_graphs_only_is_not_taken(tmp_path: Path) -> None:
    matches = match_all(copy_with_log(tmp_path, lambda text: re.sub(r"\bbuf(\d)", r"buf9\1", text)))
    assert [match.state for match in matches] == ["none", "none"]


def test_order_tells_graphs_of_one_form_apart() -> None:
    """Of two graphs alike, the log's first part is the first one's, unless a third part comes in between."""
    graphs, logs = graphs_and_logs("torch-2.4.1-cpu/layernorm_grad")
    forward = graphs[0]
    part = logs.fusions[0]
    changed = replace(part, rounds=part.rounds[:1] + part.rounds[1:], complete=False)
    twice = replace(logs, fusions=(part, changed))
    first = match_log(forward, 0, twice, lambda: [forward, forward], 2)
    second = match_log(forward, 1, twice, lambda: [forward, forward], 2)
    assert first.log is part
    assert second.log is changed


def test_the_corpus_replays_to_its_nodes_after_fusion(corpus: Path) -> None:
    """On GPUs foreach kernels are joined outside of the rounds; everything else is in the log."""
    joined = replayed = 0
    for path in sorted(corpus.glob("torch-2*/*/torch_compile_debug/run_*")):
        if "torch-2.1." in str(path):
            continue
        run = read_run(path)
        graphs, logs = [read_graph(graph, run.manifest) for graph in run.graphs], read_logs(run)
        for at, graph in enumerate(graphs):
            found = match_log(graph, at, logs, lambda: graphs, len(graphs))  # noqa: B023 - called at once
            assert found.match.state == "proved", (path, found.match)
            assert not whole_of(graph, found).problems
            if any(top.kind == "ForeachKernelSchedulerNode" for top in graph.post):
                joined += 1
            else:
                assert_replays(graph, found)
                replayed += 1
    assert (joined, replayed > 290) == (1, True)


def test_without_recorded_decisions_the_log_says_why_pairs_were_not_fused() -> None:
    graph, part = matched("torch-2.13.0-cpu/multi_output_no_fuse")
    logged = logged_decisions(graph, part.log)
    [cause] = graph_causes(graph, ["op3", "op4"], logged=logged).causes
    assert (cause.knowledge, cause.nodes) == ("read", ("op3", "op4"))
    assert cause.decision is not None
    assert cause.evidence[0] == cause.decision.span
    about_node = graph_causes(graph, ["op5"], ["fusion"], logged=logged).causes
    assert {cause.nodes for cause in about_node} == {("op3", "op5"), ("op4", "op5")}
    of_vectors = graph_causes(graph, kinds=["vectorisation"], logged=logged).causes
    assert {cause.proved_kind for cause in of_vectors} == {"vectorisation"}
