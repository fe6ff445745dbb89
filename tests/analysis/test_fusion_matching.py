"""Which part of a log is of which graph: replayed, it gives the nodes after fusion."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from inductor_probe.analysis.fusion.log import Matched, ends_with, match_log, replay
from inductor_probe.analysis.fusion.overview import fusion_of_graph
from inductor_probe.analysis.fusion.pair import fusion_of_pair
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fusion import LogMatch
from inductor_probe.reader.debug_dir import read_graph, read_run
from inductor_probe.reader.logs.run_logs import read_logs
from tests.analysis.fusion_logs import graphs_and_logs, logged_runs, matched
from tests.conftest import DUMPS


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
    after = {frozenset(leaf.name for leaf in top.leaves()) for top in graph.post}
    assert not played.gaps
    if played.logged:
        assert played.groups == after


def test_a_log_that_ends_with_other_nodes_is_a_problem() -> None:
    graph, _ = matched("torch-2.4.1-cpu/layernorm_grad")
    (path,) = (DUMPS / "torch-2.4.1-cpu/layernorm_grad").glob("run_*")
    logs = read_logs(read_run(path))
    unfused = replace(graph, post=graph.pre)
    found = match_log(unfused, 0, logs, lambda: [unfused], 2)
    assert found.match.state == "disagrees"
    assert any(
        "the log ends with buf0_buf1" in str(problem) for problem in fusion_of_graph(unfused, found).problems
    )
    decision = fusion_of_pair(unfused, found, "buf0", "buf1")
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
            assert not fusion_of_graph(graph, found).problems
            if any(top.kind == "ForeachKernelSchedulerNode" for top in graph.post):
                joined += 1
            else:
                assert_replays(graph, found)
                replayed += 1
    assert (joined, replayed > 290) == (1, True)
