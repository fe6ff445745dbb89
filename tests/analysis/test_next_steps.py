"""What a dump offers next depends on what is in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from inductor_probe.analysis.summary import next_steps, summarise
from inductor_probe.model.debug_dir import CompiledGraph, DebugDir
from inductor_probe.model.runs import NextStep
from inductor_probe.model.span import Problem
from inductor_probe.report.pages.runs import next_text

Read = Callable[..., CompiledGraph]


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
    assert [next_text(step, "") for step in summary.next] == said


def test_an_empty_dump_leads_to_doctor_and_a_damaged_one_to_check(read: Read) -> None:
    assert next_steps((), ()) == (NextStep("doctor"),)
    damaged = replace(read("torch-2.13.0-cpu/hflip_cl"), problems=(Problem("cut off"),))
    (step,) = next_steps((), [damaged])
    assert next_text(step, "g") == "probe check g (parts of the dump could not be read)"


def test_of_several_graphs_the_one_with_most_at_stake_is_named(read: Read) -> None:
    graphs = [read("torch-2.13.0-cpu/aa_separable_cl"), read("torch-2.11.0-cuda/layernorm_grad")]
    (step,) = next_steps((), graphs)
    assert (step.kind, step.graph, step.names) == ("apart", graphs[0].name, ("op1", "op3"))
    names = tuple(f"op{at}_op{at + 1}_op{at + 2}_op{at + 3}_op{at + 4}_op{at + 5}" for at in (100, 200))
    assert next_text(NextStep("apart", "g", names, 2048), "g") == (
        "probe fusion g (two nodes share 2 KiB, and were not fused)"
    )
