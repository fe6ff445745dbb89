"""The dumps under `fixtures` by name, and their runs and graphs."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import pytest

from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.reader.debug_dir import graph_dir, read_graph
from tests.conftest import DUMPS, all_graph_dirs

LATEST = DUMPS / "torch-2.13.0-cpu"
PROGRAMS = DUMPS / "torch-2.13.0-cpu-programs"
ANTIALIAS = LATEST / "aa_separable_cl"
FLIP = LATEST / "hflip_cl"
TRAINING = LATEST / "mlp_train"
LAYERNORM = DUMPS / "torch-2.11.0-cuda" / "layernorm_grad"
FOREACH = DUMPS / "torch-2.11.0-cuda" / "foreach_adam"
every_graph = pytest.mark.parametrize(
    "folder", all_graph_dirs(), ids=lambda folder: "/".join(folder.parts[-5:-3])
)
"""Asks a test about each graph."""


def run_in(dump: str | Path) -> Path:
    """Return the run of a dump, which is given by its path or by its name below `DUMPS`."""
    (run,) = (DUMPS / dump).glob("run_*")
    return run


def graph_in(dump: str | Path, part: str = "") -> Path:
    """Return the first graph of a dump whose name has this part."""
    return min(graph for graph in (run_in(dump) / "torchinductor").iterdir() if part in graph.name)


def folder_of(dump: str | Path, at: int = 0) -> Path:
    """Return the folder of a graph of a dump, in the order of compilation."""
    return sorted(run_in(dump).glob("torchinductor/model*"), key=lambda path: path.suffix)[at]


def copy_of(graph: Path, to: Path) -> Path:
    """Copy a graph's folder into a run of its own, for a test that changes it; return the copy."""
    copy = to / "torch_compile_debug" / graph.parents[1].name / "torchinductor" / graph.name
    shutil.copytree(graph, copy)
    return copy


def read_at(folder: Path) -> CompiledGraph:
    """Read the graph in a folder, as if it were in no run: those of `fixtures` once for all tests."""
    return _read_once(folder) if folder.is_relative_to(DUMPS) else _read(folder)


def _read(folder: Path) -> CompiledGraph:
    found = graph_dir(folder)
    assert found is not None
    return read_graph(found)


_read_once = functools.cache(_read)
