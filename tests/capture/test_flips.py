"""Decisions turned by name: the subject's turns, its neighbour's does not, and results stay right."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_probe.model.decision import DECISIONS_NAME, Decision
from inductor_probe.model.flip import FlipResult, parse_flip
from inductor_probe.model.manifest import Manifest
from inductor_probe.reader.debug_dir import read_run
from inductor_probe.report.words.flips import flip_text, flip_texts
from inductor_probe.store.decisions import read_decisions
from tests.shared import made_once
from tests.torch_server import TorchServer

HERE = Path(__file__).parent
CPU, CUDA = HERE / "flipped_cpu.py", HERE / "flipped_cuda.py"
FAILED = "failed.txt"

TURNED = {
    "0: inline buf0": (("realization", "add", "inlined"), ("reduction", "buf0", "INNER")),
    "1: realize mul": (("realization", "buf0", "realised"), ("realization", "relu", "inlined")),
    "1: layout mul=channels_last": (("layout", "buf0", "channels-last"), ("layout", "buf2", "contiguous")),
    "2: fuse op0,op1": (("fusion", "op0 op1", "fused"), ("layout", "buf1", "contiguous")),
    "3: split buf0=4": (("reduction", "buf1", "split"), ("reduction", "buf2", "not-split")),
    "3: reduction-hint amax=DEFAULT": (("reduction", "buf2", "DEFAULT"), ("reduction", "buf2", "not-split")),
    "4: no-fuse op0,op1": (("fusion", "op0 op2 op1", "refused"), ("fusion", "op0 op2", "fused")),
    "5: scalar op0": (("vectorisation", "op0", "scalar"), ("vectorisation", "op1", "vectorised")),
    "5: threads op1=1": (("threads", "op1", "one-thread"), ("threads", "op0", "parallel")),
    "8: threads op0=3": (("threads", "op0", "parallel"), ("vectorisation", "op0", "vectorised")),
    "6: vectorise op0": (("vectorisation", "op0", "vectorised"), ("vectorisation", "op1", "scalar")),
    "10: inline add": (("realization", "add", "inlined"), ("realization", "buf0", "realised")),
}
"""Graph and flip -> the decision that turns, and one that stays torch's own: kind, subjects, outcome."""

REFUSED = {
    "0: inline sum_2": "buf1 is needed as a buffer: the result of a Reduction always is",
    "1: layout buf2=channels_last": "channels_last is an order of 4 or 5 dimensions, and it has 3",
    "2: inline buf1": "buf1 is needed as a buffer: the graph returns cos",
    "3: split amax=4000": "4,096 elements in 4,000 parts are fewer than 8 each",
    "7: split argmax=2": "torch cannot join the parts of a reduction of type argmax",
    "7: fuse op0,op2": "torch cannot fuse them: the loops of op0 are (48) reducing (64), those of op2",
    "7: vectorise op2": "C++ has no vectors of int16",
    "6: threads op1=4": "4 threads would have fewer than 512 elements each",
    "7: realize permute": "it is a view, which has no value of its own",
    "11: split var_mean=2": "the C++ backend cannot combine 2 parts of Welford's algorithm",
    "9: fuse op0,op2": "op1 has to run between them: it needs op0, and op2",
    "9: fuse op0,op5": "nodes that are fused already (op2, op3) need one of them, and the other needs those",
    "9: inline buf1": "buf1 calls extern_kernels.mm, which torch does not generate",
}
OTHERS = {
    "0: scalar add": "add has no node any more: with --inline model__0_inference_0.0:buf0 its value",
    "1: scalar relu": "no scheduler node holds the value of relu",
    "6: scalar op1": "torch decides so by itself",
    "7: scalar opp4": "there is no opp4; near it: op4",
    "7: persistent op0": "torch decides that for Triton kernels alone, and op0 runs on cpu",
    "9: fuse op2,op3": "torch decides so by itself",
    "9: index-dtype int64": "for Triton kernels alone, and all of the graph runs on cpu",
    "9: looped": "for Triton kernels alone, and all of the graph runs on cpu",
    "9: no-fuse op0,buf0": "both names mean op0",
    "9: reduction-hint buf2=OUTER": "buf2 does not reduce",
    "9: scalar op1": "op1 calls extern_kernels.mm, which torch does not generate",
    "9: split buf2=2": "buf2 does not reduce",
    "9: threads op4=2": "op4 calls extern_kernels.mm, which torch does not generate",
}
CUDA_TURNED = {
    "0: looped op0": (("reduction", "op0", "looped"), ("reduction", "op1", "persistent")),
    "0: index-dtype op1=int64": (("index-width", "op1", "int64"), ("index-width", "op0", "int32")),
    "1: persistent op0": (("reduction", "op0", "persistent"), ("reduction", "op1", "looped")),
    "1: reduction-hint buf0=OUTER": (("reduction", "op0", "OUTER"), ("reduction", "op1", "INNER")),
    "2: split buf0=1": (("reduction", "buf0", "not-split"), ("reduction", "buf2", "split")),
    "3: no-fuse op0,op1": (("fusion", "op0 op1", "refused"), ("index-width", "op0", "int32")),
}
CUDA_REFUSED = {
    "0: split amax=400": "1,000 elements in 400 parts are fewer than 8 each",
    "4: index-dtype op0=int32": "elements do not fit int32, or torch cannot tell",
    "5: persistent op0": "no tile is known to hold",
}
CUDA_OTHERS = {
    "0: threads 2": "torch decides that for C++ kernels alone, and all of the graph runs on cuda",
    "0: vectorise op0": "torch decides that for C++ kernels alone, and op0 runs on cuda",
    "2: looped op0": "torch decides so by itself",
    "3: persistent op0": "op0 does not reduce",
}


BROKEN = """
import torch
from torch._inductor.lowering import lowerings


def broken(x):
    raise RuntimeError("no such lowering")


lowerings[torch.ops.aten.sin.default] = broken
torch.compile(torch.sin)(torch.ones(8))
"""


def name_of(graph: str) -> str:
    return f"model__{graph}_inference_{graph}.{graph}"


def text_of(asked: str) -> str:
    """`5: scalar op0` -> `scalar model__5_inference_5.5:op0`."""
    graph, text = asked.split(": ", 1)
    kind, _, argument = text.partition(" ")
    return f"{kind} {name_of(graph)}:{argument}"


Dump = Callable[[], tuple[Manifest, dict[str, list[Decision]]]]


def dumped(
    factory: pytest.TempPathFactory, script: Path, asked: list[str], *more: str
) -> tuple[Manifest, dict[str, list[Decision]]]:
    options = [f"--{kind}={argument}" for kind, _, argument in (text_of(one).partition(" ") for one in asked)]

    def make(folder: Path) -> None:
        command = [sys.executable, "-m", "inductor_probe", "dump", str(script), *options, *more]
        ended = subprocess.run(
            [*command, "--out", str(folder)], capture_output=True, text=True, check=False, env={**os.environ}
        )
        if ended.returncode:
            (folder / FAILED).write_text(ended.stdout + ended.stderr)

    folder = made_once(factory, f"flips-{script.stem}", make)
    assert not (folder / FAILED).exists(), (folder / FAILED).read_text()
    run = read_run(next((folder / "torch_compile_debug").glob("run_*")))
    assert run.manifest is not None
    decisions = {graph.name: [*read_decisions(graph.path / DECISIONS_NAME).decisions] for graph in run.graphs}
    return run.manifest, decisions


@pytest.fixture(scope="session")
def on_cpu(tmp_path_factory: pytest.TempPathFactory) -> Dump:
    return lambda: dumped(tmp_path_factory, CPU, [*TURNED, *REFUSED, *OTHERS])


@pytest.fixture(scope="session")
def on_cuda(tmp_path_factory: pytest.TempPathFactory, torch_server: TorchServer) -> Dump:
    """Return what dumps in a fork; `on_cpu` sets the hooks of flips before torch is imported."""

    def dump() -> tuple[Manifest, dict[str, list[Decision]]]:
        with torch_server.used():
            asked = [*CUDA_TURNED, *CUDA_REFUSED, *CUDA_OTHERS]
            return dumped(tmp_path_factory, CUDA, asked, "--target", "h200")

    return dump


def result_of(manifest: Manifest, asked: str) -> FlipResult:
    flip = parse_flip(text_of(asked))
    [result] = [result for result in manifest.flip_results if result.flip == flip]
    assert result.graph == name_of(asked.partition(":")[0])
    return result


def decided(decisions: list[Decision], kind: str, names: str, outcome: str) -> Decision:
    """The decision of a kind about just these names, one or a pair of nodes, with that outcome."""
    [decision] = [
        one
        for one in decisions
        if one.kind == kind
        and not one.speculative
        and one.outcome == outcome
        and " ".join(name for group in one.subjects for name in group) == names
    ]
    return decision


def check(dump: Dump, asked: str, turned: tuple[str, str, str], kept: tuple[str, str, str]) -> None:
    manifest, decisions = dump()
    result = result_of(manifest, asked)
    assert (result.outcome, result.after) == ("applied", turned[2])
    assert result.place is not None
    assert result.place.file.startswith("torch/_inductor/")
    here = decisions[name_of(asked.partition(":")[0])]
    decision = decided(here, *turned)
    assert (decision.cause, decision.operand("flip")) == ("turned", text_of(asked))
    assert decided(here, *kept).cause != "turned"


@pytest.mark.compiles
@pytest.mark.parametrize("asked", TURNED)
def test_the_decision_turns_for_the_subject_alone(asked: str, on_cpu: Dump) -> None:
    check(on_cpu, asked, *TURNED[asked])


@pytest.mark.compiles
@pytest.mark.parametrize("asked", CUDA_TURNED)
def test_the_decision_of_a_gpu_turns_for_the_subject_alone(asked: str, on_cuda: Dump) -> None:
    check(on_cuda, asked, *CUDA_TURNED[asked])


@pytest.mark.compiles
@pytest.mark.parametrize("asked", [*REFUSED, *OTHERS])
def test_what_cannot_be_turned_says_why(asked: str, on_cpu: Dump) -> None:
    result = result_of(on_cpu()[0], asked)
    assert result.times == 0
    assert result.outcome != "applied"
    assert {**REFUSED, **OTHERS}[asked] in flip_text(result)
    assert (result.outcome == "refused") is (asked in REFUSED)


@pytest.mark.compiles
@pytest.mark.parametrize("asked", [*CUDA_REFUSED, *CUDA_OTHERS])
def test_what_cannot_be_turned_of_a_gpu_says_why(asked: str, on_cuda: Dump) -> None:
    result = result_of(on_cuda()[0], asked)
    assert result.times == 0
    assert result.outcome != "applied"
    assert {**CUDA_REFUSED, **CUDA_OTHERS}[asked] in flip_text(result)
    assert (result.outcome == "refused") is (asked in CUDA_REFUSED)


@pytest.mark.compiles
@pytest.mark.usefixtures("warm_here")
def test_of_a_graph_that_torch_failed_to_compile_nothing_else_is_said(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text(BROKEN)
    command = [sys.executable, "-m", "inductor_probe", "dump", str(script), "--scalar", "op0"]
    subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, check=False, env={**os.environ})
    manifest = read_run(next((tmp_path / "torch_compile_debug").glob("run_*"))).manifest
    assert manifest is not None
    [result] = manifest.flip_results
    assert flip_text(result).endswith(": torch failed before it came to that decision")


@pytest.mark.compiles
def test_flipped_code_computes_what_eager_mode_does(on_cpu: Dump) -> None:
    """The script compares; it fails where a flip made it compute something else."""
    manifest, _ = on_cpu()
    assert manifest.outcome == "ok"
    assert manifest.notes == ()  # no recorder stumbled over what was turned
    asked = [parse_flip(text_of(one)) for one in (*TURNED, *REFUSED, *OTHERS)]
    assert sorted(map(str, manifest.flips)) == sorted(map(str, asked))


def test_a_flip_of_a_graph_that_was_not_compiled_says_so() -> None:
    flip = parse_flip("scalar model__3_inference_3.3:op0")
    result = FlipResult(flip, None, "not-met", "no-graph", operands=(("near", ("model__0_inference_0.0",)),))
    expected = "no graph of that name was compiled; near it: model__0_inference_0.0"
    assert [*flip_texts([flip], [result])] == [(False, f"{flip.option}: not met: {expected}")]


def test_why_the_subject_is_gone_is_told_before_that_another_graph_has_none() -> None:
    flip = parse_flip("scalar buf4")
    operands = (("subject", "buf4"), ("flip", "inline buf4"))
    results = [
        FlipResult(flip, "model__0_inference_0.0", "not-met", "no-subject", operands=(("subject", "buf4"),)),
        FlipResult(flip, "model__1_inference_1.1", "not-met", "inlined-by-flip", operands=operands),
    ]
    [(turned, text)] = flip_texts([flip], results)
    assert not turned
    assert text.endswith("buf4 has no node any more: with --inline buf4 its value is computed in its users")


def test_graphs_without_the_subject_are_not_told_of_where_one_has_it() -> None:
    flip = parse_flip("scalar op5")
    results = [
        FlipResult(flip, "model__0_inference_0.0", "not-met", "no-subject", operands=(("subject", "op5"),)),
        FlipResult(
            flip, "model__1_inference_1.1", "applied", None, 1, None, ("op4", "op5"), "vectorised", "scalar"
        ),
    ]
    expected = (
        "--scalar op5: turned in model__1_inference_1.1: op4, op5 are scalar (torch's own choice: vectorised)"
    )
    assert [*flip_texts([flip], results)] == [(True, expected)]
