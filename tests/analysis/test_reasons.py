"""The table of reasons against all that torch has logged, and the torch that is installed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from inductor_probe.model.fusion_reasons import REASONS
from inductor_probe.reader.logs.fusion_reasons import explain

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
def test_every_reason_is_its_form_with_operands(reason: str) -> None:
    form, operands = explain(reason)
    assert len(operands) == form.count("%s")
    assert (form == reason) == (not operands)
    for _, value in operands:
        assert str(value) in reason.replace("{", "").replace("}", "").replace("'", "")


def test_the_catalogue_has_every_row_of_the_table() -> None:
    forms = {explain(reason)[0] for reason in CATALOGUE}
    assert REASONS.keys() - forms == {"(benchmark) cause %sx slowdown"}
    assert all(form.count("%s") == len(row.numbers) for form, row in REASONS.items())


def test_numbers_of_symbolic_sizes_are_not_cut_at_their_commas() -> None:
    _, operands = explain("numel/rnumel mismatch (non-reduce) (Max(1, s0), s1*s2), (1, 1)")
    assert operands == (
        ("first_numel", "Max(1, s0)"), ("second_numel", "s1*s2"), ("first_rnumel", 1), ("second_rnumel", 1),
    )  # fmt: skip


def test_an_unknown_reason_is_its_own_form() -> None:
    assert explain("the moon is full (3, 4)") == ("the moon is full (3, 4)", ())


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
    forms = {explain(reason)[0] for reason in CATALOGUE}
    assert found <= forms


def test_every_form_with_a_code_is_in_some_file_of_the_installed_torch() -> None:
    texts = "".join(path.read_text() for path in inductor().rglob("*.py"))
    gone = {
        form for form, row in REASONS.items() if row.code != "other" and form.partition("%s")[0] not in texts
    }
    composed = "(benchmark) cause %sx slowdown"  # of a line that has no reason
    assert gone <= {
        composed,
        "prologue fusion only supported for TritonTemplates",
    }  # the latter of torch 2.11
