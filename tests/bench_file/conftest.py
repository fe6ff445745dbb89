"""A graph of a dump as a folder that a bench file may be written into."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.dumps import FLIP, graph_in


@pytest.fixture
def graph_dir(tmp_path: Path) -> Path:
    graph = graph_in(FLIP)
    folder = tmp_path / graph.name
    folder.mkdir()
    for name in ("output_code.py", "fx_graph_runnable.py"):
        shutil.copy(graph / name, folder)
    return folder
