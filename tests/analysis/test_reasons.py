"""The tables of reasons, their words and settings against the catalogue, and the torch that is installed."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from inductor_probe.analysis.fusion.refusals import (
    _SETTINGS_OF,
    NUMBERS,
    SETTINGS,
    PairTraits,
    explain,
    settings_for,
)
from inductor_probe.model.fx import Runnable
from inductor_probe.model.setting import Setting
from inductor_probe.report.words.fusion import MEANINGS, meaning, number_lines, setting_text

# Every form that some torch from 2.2 to 2.15 logs, with something in the place of each `%s`.
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
external read buf3 with size [4, 8, 2] is a non-contiguous compatible reshape of template size [8, 8], which \
CUTLASS EVT cannot align to the accumulator shape
template fusion does not preserve strict sum ordering
template fusion does not preserve strict reduction ordering
reduction fusion does not preserve strict sum ordering
reduction fusion does not preserve strict reduction ordering
incompatible reduction contracts
epilogue is not a unary read of the output buffer
epilogue's read and write indices differ
a consumer depends on another producer sub-node
nested reduction append planning failed
nested reduction append producer placement mismatch
sub-parent epilogue planning failed
consumer is not wholly in the sub-parent epilogue
invalid sub-parent epilogue fusion
staged fusion dependency proof failed
staged reduction plan would be lost
estimated peak delta 1048576 bytes
""".strip().splitlines()


@pytest.mark.parametrize("reason", CATALOGUE)
def test_every_reason_has_a_meaning(reason: str) -> None:
    refusal = explain(reason)
    assert refusal.form in MEANINGS
    assert meaning(refusal) == MEANINGS[refusal.form]
    assert refusal.reason == reason
    assert len(refusal.numbers) == refusal.form.count("%s")
    for (_, value), line in zip(refusal.numbers, number_lines(refusal), strict=True):
        assert value in reason
        assert line.endswith(f": {value}")


def test_the_catalogue_has_every_row_of_the_table() -> None:
    forms = {explain(reason).form for reason in CATALOGUE}
    assert MEANINGS.keys() - forms == {"(benchmark) cause %sx slowdown"}
    assert {form for form in MEANINGS if "%s" in form} == NUMBERS.keys()
    assert all(form.count("%s") == len(numbers) for form, numbers in NUMBERS.items())
    assert _SETTINGS_OF.keys() <= MEANINGS.keys()


def test_numbers_of_symbolic_sizes_are_not_cut_at_their_commas() -> None:
    refusal = explain("numel/rnumel mismatch (non-reduce) (Max(1, s0), s1*s2), (1, 1)")
    assert refusal.numbers[:2] == (
        ("first_numel", "Max(1, s0)"),
        ("second_numel", "s1*s2"),
    )


def test_an_unknown_reason_is_kept_verbatim_and_has_no_meaning() -> None:
    refusal = explain("the moon is full (3, 4)")
    assert (refusal.form, refusal.numbers) == ("the moon is full (3, 4)", ())
    assert "torch's own words" in meaning(refusal)


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
    assert found <= MEANINGS.keys()


def test_every_setting_is_in_the_installed_torch() -> None:
    inductor()
    code = (
        "import functools, json, sys, torch._inductor.config as config;"
        "print(json.dumps([type(functools.reduce(getattr, name.split('.'), config)).__name__"
        " for name in sys.argv[1:]]))"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *SETTINGS],
        capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    types = dict(zip(SETTINGS, json.loads(ran.stdout), strict=True))
    for name, change in SETTINGS.items():
        assert (types[name] == "bool") == (change.value is not None)
        assert setting_text(Setting(f"torch._inductor.config.{name}", change.value, None))


CPU, GPU = PairTraits(on_cpu=True, reduces=False), PairTraits(on_cpu=False, reduces=False)
CPU_SUM, GPU_SUM = PairTraits(on_cpu=True, reduces=True), PairTraits(on_cpu=False, reduces=True)


@pytest.mark.parametrize(
    ("pair", "names"),
    [
        ((CPU, CPU_SUM), []),
        ((CPU, CPU), ["aggressive_fusion"]),
        ((GPU, GPU_SUM), ["loop_ordering_after_fusion"]),
        ((GPU, GPU), ["loop_ordering_after_fusion", "aggressive_fusion"]),
        ((CPU, GPU), ["aggressive_fusion"]),
    ],
)
def test_a_setting_is_offered_where_it_does_something(
    pair: tuple[PairTraits, PairTraits], names: list[str]
) -> None:
    settings = settings_for("no shared data", [pair], Runnable(None))
    assert [setting.name.rpartition(".")[2] for setting in settings] == names


def test_no_setting_makes_loops_fit_that_the_backend_cannot_fuse() -> None:
    assert settings_for("no shared data", [(GPU, GPU)], Runnable(None), loops_fit=False) == ()
    form = "numel/rnumel mismatch (non-reduce) (%s, %s), (%s, %s)"
    (setting,) = settings_for(form, [(GPU, GPU)], Runnable(None), loops_fit=False)
    assert setting.name.endswith(".combo_kernels")


@pytest.mark.parametrize(
    ("printed", "values"),
    [
        ((), ["default"]),
        ((("torch._inductor.config.aggressive_fusion", "False"),), ["False"]),
        ((("torch._inductor.config.aggressive_fusion", "True"),), []),
    ],
)
def test_the_present_value_of_a_setting_is_that_of_the_dump(
    printed: tuple[tuple[str, str], ...], values: list[str]
) -> None:
    runnable = Runnable(None, settings=printed)
    assert [setting.value for setting in settings_for("no shared data", [(CPU, CPU)], runnable)] == values
    assert [setting.value for setting in settings_for("no shared data", [(CPU, CPU)], None)] == [None]


def test_what_is_on_by_default_is_offered_only_where_the_dump_turns_it_off() -> None:
    form = "template epilogue not satisfied"
    off = Runnable(None, settings=(("torch._inductor.config.epilogue_fusion", "False"),))
    assert settings_for(form, [(GPU, GPU)], Runnable(None)) == ()
    (setting,) = settings_for(form, [(GPU, GPU)], off)
    assert (setting.offered, setting.value) == ("True", "False")
