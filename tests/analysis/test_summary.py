"""What the table after a dump says of graphs and the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.run_remarks import cut_short
from inductor_probe.analysis.summary import next_steps, summarise
from inductor_probe.model.debug_dir import CompiledGraph, DebugDir
from inductor_probe.model.manifest import DumpProcess, DumpRecord, GraphBreak, LimitHit, Manifest, Outcome
from inductor_probe.model.remark import Subject
from inductor_probe.model.runs import GraphSummary, NextStep, RunSummary
from inductor_probe.model.span import Problem
from inductor_probe.report.pages.kernels import kernel_table
from inductor_probe.report.pages.runs import next_step
from inductor_probe.report.terminal import to_text
from inductor_probe.report.words.remarks import folded, sentence
from tests.builders import manifest

Read = Callable[..., CompiledGraph]


def said(summary: GraphSummary | RunSummary) -> list[str]:
    return [text for _, text in folded(summary.remarks)]


def run(told: Manifest | None = None) -> DebugDir:
    return DebugDir(Path("run_x"), (), told)


def test_channels_last_input_with_another_intermediate(read: Read) -> None:
    (graph,) = summarise(run(), [read("torch-2.13.0-cpu/aa_separable_cl")]).graphs
    assert [(remark.code, remark.subject.name, remark.number("written")) for remark in graph.remarks] == [
        ("noncontiguous-access", "op1", "buf1"),
        ("layout-change", "op3", "buf3"),
    ]
    assert (graph.nodes_before, graph.nodes_after, graph.kernels, graph.externs) == (4, 4, (("cpp", 1),), 0)
    assert (graph.buffers, graph.buffer_bytes) == (4, 4239360 + 3145728 + 1024 + 1024)


def test_scalar_loops_and_fallbacks_are_named(read: Read) -> None:
    (flip,) = summarise(run(), [read("torch-2.13.0-cpu/hflip_cl")]).graphs
    assert [(remark.code, remark.subject.name) for remark in flip.remarks] == [
        ("scalar-loops", "cpp_fused_flip_0")
    ]
    (sort,) = summarise(run(), [read("torch-2.13.0-cpu/multi_output_no_fuse")]).graphs
    assert any("falls back to torch.ops.aten.sort" in text for text in said(sort))
    assert sort.externs == 1


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (None, "consistent with a warm cache"),
        (
            manifest(outcome="failed", exit_status=3),
            "the script exited with status 3 before",
        ),
        (manifest(outcome="interrupted", exit_status=-2), "the script was interrupted"),
        (manifest(compiled_frames=2), "consistent with another backend in the script"),
        (manifest(graph_breaks=(GraphBreak("x", None),)), "everything ran eagerly"),
        (manifest(), "torch.compile was not called"),
    ],
)
def test_an_empty_run_says_why(told: Manifest | None, why: str) -> None:
    empty = summarise(run(told), []).empty
    assert empty is not None
    assert why in sentence(empty)


@pytest.mark.parametrize(
    ("script", "signal", "told"),
    [("ok", "SIGTERM", False), ("interrupted", "SIGTERM", True), ("ok", "SIGKILL", True)],
)
def test_a_process_that_a_good_script_dismissed_is_not_cut_short(
    script: str, signal: str, told: bool
) -> None:
    """`with multiprocessing.Pool()` ends its processes by SIGTERM: the dump was not whole then."""
    first = DumpProcess(1, 0, None, None, (), "other", 1, cast("Outcome", script), 0, None)
    pooled = DumpProcess(2, 1, None, None, (), "run", 1, "interrupted", -15, signal)
    dump = DumpRecord("dump", 2, 1, (first, pooled))
    ended = cut_short(run(manifest(outcome="interrupted", exit_status=-15, ended_by=signal, dump=dump)))
    assert (ended is not None) == told


def test_recompile_limits_and_graph_breaks_are_told(read: Read) -> None:
    told = manifest(
        limit_hits=(LimitHit("f", "x.py:3", "size mismatch"),),
        graph_breaks=(GraphBreak("call to print\nmore", "x.py:5"),),
    )
    summary = summarise(run(told), [read("torch-2.13.0-cpu/hflip_cl")])
    assert said(summary) == [
        "recompile limit hit by f (x.py:3): from then on it ran eagerly",
        "graph break at x.py:5: call to print",
    ]
    assert {remark.knowledge for remark in summary.remarks} == {"recorded"}
    assert summary.empty is None


def test_what_is_so_for_many_nodes_takes_one_line(read: Read) -> None:
    """Flash attention in each layer took a line each."""
    graph = read("torch-2.13.0-cpu-programs/fallbacks")
    fallback = next(leaf for node in graph.post for leaf in node.leaves() if leaf.ir == "FallbackKernel")
    many = replace(graph, post=tuple(replace(fallback, name=f"op{at}") for at in range(24)))
    (summary,) = summarise(run(), [many]).graphs
    lines = [text for text in said(summary) if "fall" in text]
    assert len(lines) == 1
    assert lines[0].startswith(f"24 nodes (op0, op1, op2 and 21 more) fall back to {fallback.kernel}")


def test_what_is_so_for_many_kernels_takes_one_line(read: Read) -> None:
    (row,) = kernel_rows(read("torch-2.13.0-cpu/hflip_cl"))
    rows = [
        replace(
            row,
            name=name,
            remarks=tuple(replace(one, subject=Subject("kernel", name)) for one in row.remarks),
        )
        for name in (f"kernel_{number}" for number in range(5))
    ]
    lines = to_text(kernel_table(rows), 100).splitlines()
    (line,) = [line for line in lines if "scalar" in line]
    assert line.strip().startswith("! kernel_0, kernel_1, kernel_2 and 2 more: 1 of 1 loop nest is scalar")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("torch-2.13.0-cpu/hflip_cl", ["probe kernels --only scalar (1 kernel has scalar loops)"]),
        (
            "torch-2.13.0-cpu/aa_separable_cl",
            ["probe fusion op1 op3 (they share 4.04 MiB, and were not fused)"],
        ),
        (
            "torch-2.1.2-cpu/layernorm_grad",
            [
                "probe kernels --only scalar (1 kernel has scalar loops)",
                "probe fusion buf4 buf5 (they share 3 MiB, and were not fused)",
            ],
        ),
        ("torch-2.13.0-cpu-programs/reductions", ["probe bench-kernel"]),
        # two nodes share 144 B: not worth a question
        ("torch-2.13.0-cpu-programs/mutations", ["probe bench-kernel"]),
    ],
)
def test_the_next_step_is_that_of_the_graph(read: Read, name: str, said: list[str]) -> None:
    summary = summarise(DebugDir(Path("run_x"), (), None), [read(name, at) for at in range(1)])
    assert [" ".join(next_step(step, "")).rstrip() for step in summary.next] == said


def test_an_empty_dump_leads_to_doctor_and_a_damaged_one_to_check(read: Read) -> None:
    assert next_steps((), ()) == (NextStep("doctor"),)
    damaged = replace(read("torch-2.13.0-cpu/hflip_cl"), problems=(Problem("cut off"),))
    (step,) = next_steps((), [damaged])
    assert next_step(step, "g") == ("probe check g", "(parts of the dump could not be read)")


def test_of_several_graphs_the_one_with_most_at_stake_is_named(read: Read) -> None:
    graphs = [read("torch-2.13.0-cpu/aa_separable_cl"), read("torch-2.11.0-cuda/layernorm_grad")]
    (step,) = next_steps((), graphs)
    assert (step.kind, step.graph, step.names) == ("apart", graphs[0].name, ("op1", "op3"))
    names = tuple(f"op{at}_op{at + 1}_op{at + 2}_op{at + 3}_op{at + 4}_op{at + 5}" for at in (100, 200))
    assert next_step(NextStep("apart", "g", names, 2048), "g") == (
        "probe fusion g",
        "(two nodes share 2 KiB, and were not fused)",
    )
