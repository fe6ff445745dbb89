"""The table of reasons against the catalogue, and against the torch that is installed."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from inductor_probe.analysis.fusion.knobs import KNOBS
from inductor_probe.analysis.fusion.refusals import ALL_REASONS, explain

# Every form that some torch from 2.2 to 2.13 logs, with something in the place of each `%s`.
CATALOGUE = """
intermediate nodes between node1 & node2
no shared data
no shared data due to indexing mismatch
memory deps did not match
fusing a write into a read with different indexing formula
node1 is extern or nop
node2 is extern or nop
node1 is nop
node1 is extern but not a triton kernel
node1's triton kernel doesn't support epilogue fusion
node1 is extern but node2 is not SchedulerNode
node1 is extern but node2.node is not SchedulerNode
node1 is extern but node2.node.data is not Pointwise
epilogue reads from buffers other than the mutated output
node1 and node2 uses different buf layouts
score_fusion_memory_threshold
node1 must go before node2
will create cycle
device mismatch (cpu vs cuda:0)
exceeds max fusion
will increase peak memory
Fusion will increase peak memory
Nodes are too far away. Fusing them may increase peak memory.
Fusion accumulate large amount of reads
fusion_prevent_too_many_reads_and_writes
fusion for buffer explicit disabled
grouped node must not be fused with other nodes
foreach do not have same length
candidate consumer has no dep in any foreach producer
candidate producer is not dep of any foreach consumer
candidate consumer is a reduction, foreach ops cannot be fused with reductions currently
candidate producer is a reduction, foreach ops cannot be fused with reductions currently
templates can only fuse epilogues
template epilogue not satisfied
template prologue can only fuse functional pointwise nodes
template prologue can only fuse nodes with a single use
template prologue can only fuse nodes with a single use into template
prologue fusion turned off
prologue fusion only supported for pointwise nodes
prologue fusion not implemented for kernel for these inputs
prologue fusion will not increase amount of bytes read in kernel
prologue fusion will not increase attempt to fuse in padding bc it increases unaligned reads
prologue fusion that must be upcast to fp32 not profitable for low precision templates
prologue fusion only supported for TritonTemplates
template has no allowed prologue inputs
multi-output template epilogue requires ComputedBuffer
register spilling of the first kernel
register spilling of the second kernel
register spilling of the fused kernel
numel/rnumel mismatch (reduce) (256, 1280), (1, 1)
numel/rnumel mismatch (non-reduce) (256, 1280), (1, 1)
numel/rnumel mismatch prologue mismatch (256, 1280), (1, 1)
tiling mismatch ({'x': 1}, {'y': 2, 'x': 3}, {'x': 4})
invalid tiling for reduction
nodes numel/rnumel incompatibility
nodes numel incompatibility
Split scan cannot fuse with reductions
invalid loop order and tiling for native matmul
node1 is not TritonTemplateBuffer
op3 is not TritonTemplateBuffer
cutlass epilogue fusion is not enabled
epilogue fusion is only supported for TMA-enabled gemm ops
buf3 is not a ComputedBuffer
buf3 is not a Pointwise op
buf3 does not have a computed buffer name
op3 has aliasing or mutation
op3 is a reduction which is not yet supported by EVT
buf3's size: [8, 4] differs from buf2's size: [4]
Cannot fuse epilogue node op3 into buf2. Reason: no float8
Cannot fuse epilogue node op3 into buf2, likely due to unsupported operation: erf
""".strip().splitlines()


@pytest.mark.parametrize("reason", CATALOGUE)
def test_every_reason_has_a_meaning(reason: str) -> None:
    refusal = explain(reason)
    assert refusal.meaning
    assert refusal.reason == reason
    assert len(refusal.numbers) == refusal.form.count("%s")
    for _, value in refusal.numbers:
        assert value in reason


def test_the_catalogue_has_every_row_of_the_table() -> None:
    forms = {explain(reason).form for reason in CATALOGUE}
    assert {row.form for row in ALL_REASONS} - forms == {"(benchmark) cause %sx slowdown"}
    assert len({row.form for row in ALL_REASONS}) == len(ALL_REASONS)
    assert all(row.form.count("%s") == len(row.numbers) for row in ALL_REASONS)


def test_numbers_of_symbolic_sizes_are_not_cut_at_their_commas() -> None:
    refusal = explain("numel/rnumel mismatch (non-reduce) (Max(1, s0), s1*s2), (1, 1)")
    assert refusal.numbers[:2] == (
        ("elements of the first", "Max(1, s0)"),
        ("elements of the second", "s1*s2"),
    )


def test_an_unknown_reason_is_kept_verbatim_and_has_no_meaning() -> None:
    refusal = explain("the moon is full (3, 4)")
    assert (refusal.form, refusal.meaning, refusal.numbers) == ("the moon is full (3, 4)", None, ())


def inductor() -> Path:
    spec = find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("torch is not installed")
    return Path(spec.submodule_search_locations[0]) / "_inductor"


def reasons_in(path: Path) -> Iterator[str]:
    """Yield the reasons that a file of torch hands to `why(...)` or `WhyNoFuse(...)(...)`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        named = isinstance(node.func, ast.Name) and node.func.id == "why"
        made = isinstance(node.func, ast.Call) and getattr(node.func.func, "id", "") == "WhyNoFuse"
        if not (named or made):
            continue
        match node.args[0]:
            case ast.Constant(value=str(text)):
                yield text
            case ast.JoinedStr(values=parts):
                yield "".join(part.value if isinstance(part, ast.Constant) else "%s" for part in parts)


@pytest.mark.parametrize(
    "file", ["scheduler.py", "choices.py", "codegen/simd.py", "codegen/cutlass/scheduling.py"]
)
def test_every_reason_of_the_installed_torch_is_in_the_table(file: str) -> None:
    path = inductor() / file
    if not path.exists():
        pytest.skip(f"this torch has no {file}")
    found = set(reasons_in(path))
    assert found
    assert found <= {row.form for row in ALL_REASONS}


def test_every_knob_is_in_the_installed_torch_with_its_default() -> None:
    inductor()
    names = [knob.name.removeprefix("torch._inductor.config.") for knob in KNOBS.values()]
    code = (
        "import functools, json, sys, torch._inductor.config as config;"
        "print(json.dumps({name: repr(functools.reduce(getattr, name.split('.'), config))"
        " for name in sys.argv[1:]}))"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *names],
        capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert json.loads(ran.stdout) == {
        knob.name.removeprefix("torch._inductor.config."): knob.default for knob in KNOBS.values()
    }
