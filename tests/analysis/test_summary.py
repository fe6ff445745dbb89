"""What the table after a dump says deserves a look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.summary import summarise
from inductor_probe.model.debug_dir import CompiledGraph, DebugDir
from inductor_probe.model.manifest import GraphBreak, LimitHit, Manifest
from inductor_probe.report.kernels import KernelTable
from inductor_probe.report.shown import to_text

Read = Callable[..., CompiledGraph]


def manifest(**changes: object) -> Manifest:
    facts: dict[str, object] = {
        "command": ("python", "x.py"),
        "script": "x.py",
        "scenario": "x",
        "cases": (),
        "knobs": (),
        "label": None,
        "versions": (),
        "machine": (),
        "started": "2026-01-01T00:00:00+00:00",
        "duration_s": 1.0,
        "outcome": "ok",
        "exit_status": 0,
        "compiled_frames": 0,
        "graphs": (),
    }
    return Manifest(**{**facts, **changes})  # type: ignore[arg-type]


def run(told: Manifest | None = None) -> DebugDir:
    return DebugDir(Path("run_x"), (), told)


def test_channels_last_input_with_another_intermediate(read: Read) -> None:
    (graph,) = summarise(run(), [read("torch-2.13.0-cpu/aa_separable_cl")]).graphs
    assert graph.looks == ()
    assert [(remark.code, remark.subject.name, remark.number("written")) for remark in graph.remarks] == [
        ("noncontiguous-access", "op1", "buf1"),
        ("layout-change", "op3", "buf3"),
    ]
    assert (graph.nodes_before, graph.nodes_after, graph.kernels, graph.externs) == (4, 4, (("cpp", 1),), 0)
    assert (graph.buffers, graph.buffer_bytes) == (4, 4239360 + 3145728 + 1024 + 1024)


def test_scalar_loops_and_fallbacks_are_named(read: Read) -> None:
    (flip,) = summarise(run(), [read("torch-2.13.0-cpu/hflip_cl")]).graphs
    assert flip.looks == ("1 of 1 loop nests of cpp_fused_flip_0 are scalar C++",)
    (sort,) = summarise(run(), [read("torch-2.13.0-cpu/multi_output_no_fuse")]).graphs
    assert any("falls back to torch.ops.aten.sort" in look for look in sort.looks)
    assert sort.externs == 1


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (None, "a warm cache is the usual reason"),
        (
            manifest(outcome="failed", exit_status=3),
            "the script exited with status 3 before",
        ),
        (manifest(outcome="interrupted", exit_status=-2), "the script was interrupted"),
        (manifest(compiled_frames=2), "the script chose another backend"),
        (manifest(graph_breaks=(GraphBreak("x", None),)), "everything ran eagerly"),
        (manifest(), "torch.compile was not called"),
    ],
)
def test_an_empty_run_says_why(told: Manifest | None, why: str) -> None:
    empty = summarise(run(told), []).empty
    assert empty is not None
    assert why in empty


def test_recompile_limits_and_graph_breaks_are_told(read: Read) -> None:
    told = manifest(
        limit_hits=(LimitHit("f", "x.py:3", "size mismatch"),),
        graph_breaks=(GraphBreak("call to print\nmore", "x.py:5"),),
    )
    summary = summarise(run(told), [read("torch-2.13.0-cpu/hflip_cl")])
    assert summary.looks == (
        "recompile limit hit by f (x.py:3): from then on it ran eagerly",
        "graph break at x.py:5: call to print",
    )
    assert summary.empty is None


def test_what_is_so_for_many_nodes_takes_one_line(read: Read) -> None:
    """Flash attention in each layer took a line each."""
    graph = read("torch-2.13.0-cpu-programs/fallbacks")
    fallback = next(leaf for node in graph.post for leaf in node.leaves() if leaf.ir == "FallbackKernel")
    many = replace(graph, post=tuple(replace(fallback, name=f"op{at}") for at in range(24)))
    (summary,) = summarise(run(), [many]).graphs
    assert f"24 nodes (op0, op1, op2 and 21 more) fall back to {fallback.kernel}" in summary.looks
    assert sum("fall" in text for text in summary.looks) == 1


def test_what_is_so_for_many_kernels_takes_one_line(read: Read) -> None:
    (row,) = kernel_rows(read("torch-2.13.0-cpu/hflip_cl"))
    rows = [replace(row, name=f"kernel_{at}") for at in range(5)]
    lines = to_text(KernelTable(rows), 100).splitlines()
    (line,) = [line for line in lines if "scalar" in line]
    assert line.strip().startswith("! kernel_0, kernel_1, kernel_2 and 2 more: 1 of 1 loop nests is scalar")
