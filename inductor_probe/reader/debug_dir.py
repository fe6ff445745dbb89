"""Runs and graphs on disk: what is there, and one graph read with everything in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.model.debug_dir import CompiledGraph, DebugDir, GraphDir
from inductor_probe.model.manifest import MANIFEST_NAME, Manifest
from inductor_probe.model.span import Problem
from inductor_probe.reader.fx import read_fx_graph
from inductor_probe.reader.ir import IrFile, read_ir
from inductor_probe.reader.manifest import read_manifest
from inductor_probe.reader.output_code import read_output_code
from inductor_probe.reader.provenance import read_provenance
from inductor_probe.reader.runnable import torch_version
from inductor_probe.reader.text import read_text

# `model__0_inference_0.0`; torch before 2.4 leaves the middle out: `model___9.0`.
_GRAPH_NAME = re.compile(
    r"(?P<model>.+?)__(?:(?P<ids>\d+(?:_\d+)*)_(?P<kind>inference|forward|backward|joint))?_(?P<nth>\d+)\.(?P<k>\d+)"
)
_FX_FILES = ("fx_graph_transformed.py", "fx_graph_readable.py")
_GRAPH_FILES = ("ir_post_fusion.txt", "ir_pre_fusion.txt", "output_code.py", *_FX_FILES)

_Part = TypeVar("_Part")


def graph_dir(path: Path) -> GraphDir | None:
    """Return `path` as a graph's folder, or None when it is not one."""
    match = _GRAPH_NAME.fullmatch(path.name)
    if not path.is_dir() or not (match or any((path / name).exists() for name in _GRAPH_FILES)):
        return None
    return GraphDir(path, int(match["k"]) if match else 0, match["kind"] if match else None)


def is_run(path: Path) -> bool:
    """Tell whether `path` is a run: it has a `torchinductor` folder, or a manifest."""
    return (path / "torchinductor").is_dir() or (path / MANIFEST_NAME).is_file()


def read_run(path: Path) -> DebugDir:
    """List the graphs of the run in `path`, in the order they were compiled, and read its manifest.

    Raises:
        NotFoundError: `path` is not a run.
    """
    if not is_run(path):
        raise NotFoundError(
            f"{path} is not a debug dir: it holds no torchinductor folder",
            "give a torch_compile_debug folder, a run_* folder in it, or a graph's folder",
        )
    problems: list[Problem] = []
    manifest: Manifest | None = None
    if (path / MANIFEST_NAME).exists():
        manifest = _part(lambda: read_manifest(path / MANIFEST_NAME), problems, None)
    folder = path / "torchinductor"
    entries: list[Path] = []
    if folder.is_dir():
        entries = _part(lambda: sorted(folder.iterdir()), problems, [])
    graphs = [graph for entry in entries if (graph := graph_dir(entry))]
    graphs.sort(key=lambda graph: (graph.order, graph.name))
    return DebugDir(path, tuple(graphs), manifest, tuple(problems))


def read_graph(folder: GraphDir, manifest: Manifest | None = None) -> CompiledGraph:
    """Read everything in a graph's folder. What is missing or damaged is listed in its `problems`."""
    problems: list[Problem] = []
    path = folder.path
    nothing = IrFile((), ())
    pre = _part(lambda: read_ir(path / "ir_pre_fusion.txt"), problems, nothing)
    post = _part(lambda: read_ir(path / "ir_post_fusion.txt"), problems, nothing)
    code = _part(lambda: read_output_code(path / "output_code.py"), problems, None)
    problems += [*pre.problems, *post.problems, *(code.problems if code else ())]
    fx_file = next((path / name for name in _FX_FILES if (path / name).exists()), path / _FX_FILES[0])
    return CompiledGraph(
        folder=folder,
        torch_version=_torch_version(path),
        pre=pre.nodes,
        post=post.nodes,
        code=code,
        fx=_part(lambda: read_fx_graph(fx_file), problems, None),
        record=manifest.graph(folder.name) if manifest else None,
        provenance=_part(lambda: read_provenance(path), problems, None),
        problems=tuple(problems),
    )


def _part(read: Callable[[], _Part], problems: list[Problem], otherwise: _Part) -> _Part:
    """Read one part; a failure becomes a problem, so that it does not hide the other parts."""
    try:
        return read()
    except ProbeError as error:
        problems.append(Problem(error.message))
    except OSError as error:
        problems.append(Problem(f"cannot read {error.filename}: {error.strerror or error}"))
    return otherwise


def _torch_version(path: Path) -> str | None:
    runnable = path / "fx_graph_runnable.py"
    return torch_version(_part(lambda: read_text(runnable), [], "")) if runnable.exists() else None
