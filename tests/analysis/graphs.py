"""Graphs of the fixtures and of other folders, read."""

from __future__ import annotations

from pathlib import Path

from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.reader.debug_dir import graph_dir, read_graph
from tests.conftest import DUMPS


def read_at(folder: Path) -> CompiledGraph:
    found = graph_dir(folder)
    assert found is not None
    return read_graph(found)


def folder_of(name: str, at: int = 0) -> Path:
    """The folder of a graph, in the order of compilation."""
    folders = sorted((DUMPS / name).glob("run_*/torchinductor/model*"), key=lambda path: path.suffix)
    return folders[at]
