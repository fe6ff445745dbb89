"""Graphs of this repository's dumps with what their logs say of fusion."""

from __future__ import annotations

from pathlib import Path

from inductor_probe.analysis.fusion.log import Matched, match_log
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.logs import CompilerLogs
from inductor_probe.reader.debug_dir import read_graph, read_run
from inductor_probe.reader.logs.run_logs import read_logs
from tests.conftest import DUMPS


def graphs_and_logs(name: str) -> tuple[list[CompiledGraph], CompilerLogs]:
    (path,) = (DUMPS / name).glob("run_*")
    run = read_run(path)
    return [read_graph(graph, run.manifest) for graph in run.graphs], read_logs(run)


def matched(name: str, at: int = 0) -> tuple[CompiledGraph, Matched]:
    graphs, logs = graphs_and_logs(name)
    return graphs[at], match_log(graphs[at], at, logs, lambda: graphs, len(graphs))


def logged_runs() -> list[Path]:
    return sorted(path.parent for path in DUMPS.glob("*/*/stderr.txt"))
