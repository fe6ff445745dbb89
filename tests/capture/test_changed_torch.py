"""Dumps by a torch whose sources were changed: what is recorded is what that torch tested.

One torch has all edits, and is imported twice: for the graphs of a CPU, and for those of a GPU. Each edit is
of another function, or acts on one graph alone, by a setting that only this one has.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

import pytest

import inductor_probe as ip
from inductor_probe.model.decision import Decision
from inductor_probe.report.terminal import to_text

pytestmark = [pytest.mark.compiles, pytest.mark.takes(40)]
CPP = "_inductor/codegen/cpp.py"
QUANTITY = "quantity_threshold = 35\n"
HORIZONTAL = ".max_horizontal_fusion_size\n"
BESIDE = """        if (
            len(node1.get_nodes()) + len(node2.get_nodes())
            > config.cpp"""
TEMPLATE = "        why = WhyNoFuse(node1, node2)\n\n        if node1.is_template() and self.get_backend("
IN_PLACE = "    def can_inplace(node, mutated_arg):\n"
UNFUSED = 'def should_prefer_unfused_addmm(match):\n    inp = match.kwargs["inp"]\n'
CUMMAX = "def cummax(x, axis=None):\n"


def torch_with(folder: Path, edits: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """Make a torch in a folder in which files are changed; all else of it is the installed one, by links."""
    spec = importlib.util.find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    link(Path(spec.origin).parent, folder / "torch", {PurePath(file).parts: edits[file] for file in edits})


def link(here: Path, there: Path, edits: Mapping[tuple[str, ...], Sequence[tuple[str, str]]]) -> None:
    """Link what is in a folder, but for files that are changed, and the folders that they are in.

    Of `__pycache__`, what Python made of the others: it would compile all files of the folder again.
    """
    there.mkdir(parents=True)
    own = {parts[0] for parts in edits}
    is_changed = any(len(parts) == 1 for parts in edits)
    for entry in here.iterdir():
        if is_changed and entry.name == "__pycache__":
            (there / entry.name).mkdir()
            for made in entry.iterdir():
                if f"{made.name.partition('.')[0]}.py" not in own:
                    (there / entry.name / made.name).symlink_to(made)
        elif entry.name not in own:
            (there / entry.name).symlink_to(entry)
    for name in own:
        inner = {parts[1:]: one for parts, one in edits.items() if parts[0] == name}
        if () not in inner:
            link(here / name, there / name, inner)
            continue
        text = (here / name).read_text()
        for old, new in inner[()]:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (there / name).write_text(text)


EDITS = {
    CPP: [
        (">= stats.OVERHEAD_RATIO_THRESHOLD", ">= 0.37"),
        ("tiling_factor / 4\n", "tiling_factor / 2\n and op_num != 77\n"),
        (QUANTITY, f"{QUANTITY}{' ' * 16}if op_num > 2: return [], [], stats\n"),
        (HORIZONTAL, f"{HORIZONTAL[:-1]} - 99 or len(node1.get_nodes()) != 77\n"),
        (BESIDE, f"        if config.max_fusion_size == 75: return False\n{BESIDE}"),
    ],
    "_inductor/choices.py": [("> config.max_fusion_size", "> 1 and config.max_fusion_size == 4")],
    "_inductor/scheduler.py": [
        ("return proximity_score > 64", "return proximity_score > 1"),
        ("size_thres = 5 * 2**20", "size_thres = 7 * 2**10"),
        ("if a_first > b_first:", "if a_first > b_first + 77:"),
        (TEMPLATE, f"        if config.max_fusion_size == 76:\n            return False\n{TEMPLATE}"),
    ],
    "_inductor/sizevars.py": [("strides[k][a] * sizes[a]) ==", "strides[k][a] * sizes[a] + 77) ==")],
    "_inductor/fx_passes/reinplace.py": [
        (IN_PLACE, f"{IN_PLACE}        if node.name != '77': return False\n"),
    ],
    "_inductor/fx_passes/post_grad.py": [
        (UNFUSED, f"{UNFUSED}    if len(match.nodes) != 77: return False\n")
    ],
    "_inductor/lowering.py": [
        ("if cpu_device and all(", "if cpu_device and len(inputs) != 77 and all("),
        ("def scatter_fallback(", "def scatter_fallback_of("),
        (CUMMAX, f"{CUMMAX}    if axis < 77: return fallback_cummax(x, dim=axis)\n"),
    ],
    "_inductor/utils.py": [
        ("layout_dtypes = [torch.float32, torch.bfloat16, torch.half", "layout_dtypes = [torch.half"),
        ("    has_guarding_hint = ", "    int_max = 99\n    has_guarding_hint = "),
    ],
    "_inductor/ir.py": [("max_rblock = 512", "max_rblock = 300")],
    "_inductor/codegen/simd.py": [
        ("tiling_len > get_max_tiles(default=3)", "tiling_len > get_max_tiles(default=1)")
    ],
    "_inductor/runtime/triton_heuristics.py": [("and rnumel >= 256", "and rnumel >= 100")],
}
ON_CPU = """import torch
from torch._inductor.async_compile import AsyncCompile
# For g++ the headers of each torch are others, which are precompiled for ten seconds before a kernel is.
AsyncCompile.cpp_pybinding = lambda *_: lambda *_: None

image = torch.zeros(1, 3, 64, 64, dtype=torch.uint8)
values = torch.zeros(4, 64, 64)
torch.compile(lambda x: x.flip(-1))(image)
torch.compile(lambda x: x.flip(-1))(image.contiguous(memory_format=torch.channels_last))
torch.compile(lambda x: x.flip(-1) + 1)(image.contiguous(memory_format=torch.channels_last))
torch.compile(lambda x: torch.cat([x, x + 1]))(values.to(torch.uint8))
torch.compile(lambda x: x.cummax(-1).values)(values)
torch.compile(lambda x: torch.bmm(x, x + 1), options=dict(max_autotune=True))(values)
rows, wide = torch.ones(64, 64), torch.ones(64, 128)
torch.compile(lambda x: x.t() + 1)(wide)
torch.compile(lambda x: (x + 1).index_put((torch.arange(3),), torch.zeros(())))(wide)
torch.compile(lambda x: torch.addmm(x[0], x, x).relu())(torch.ones(16, 16))

def two_readers(**options):
    torch.compile(lambda x: (x + 1, x * 2), options=options)(rows)

two_readers(**{"cpp.max_horizontal_fusion_size": 100})
two_readers(**{"cpp.max_horizontal_fusion_size": 116})
two_readers(max_fusion_size=75)
two_readers(max_fusion_size=76)
two_readers(max_fusion_size=4)
torch.compile(lambda x: (x + 1, torch.mm(torch.mm(x, x), x) * x))(rows)
"""
ON_GPU = """import torch
values = torch.zeros(4096, device="cuda")
torch.compile(lambda x: x.view(4, 1024).sort(-1).values)(values)
torch.compile(lambda x: x.view(64, 64).t().contiguous())(values)
torch.compile(lambda x: x.view(32, 128).sum(-1))(values)
mixed = {"triton.mix_order_reduction": True}
torch.compile(lambda x: (x.sum(-1), x.sum(0)), options=mixed)(values.view(128, 32))
"""
ONE_MIRRORED = """import torch
torch.compile(lambda x, y: (x + y, x * y.flip(0)))(torch.ones(64, 64), torch.ones(64, 64))
"""


def dumped(folder: Path, source: str, target: str | None = None, torch: Path | None = None) -> ip.Run:
    """Return a run of a script, by the torch in a folder, or by the installed one."""
    (folder / "script.py").write_text(source)
    with pytest.MonkeyPatch.context() as patch:
        if torch is not None:
            patch.setenv("PYTHONPATH", str(torch), prepend=os.pathsep)
        return ip.dump(folder / "script.py", out=folder, target=target)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("changed")
    torch_with(folder, EDITS)
    return folder


@pytest.fixture(scope="module")
def on_cpu(changed: Path, tmp_path_factory: pytest.TempPathFactory) -> ip.Run:
    return dumped(tmp_path_factory.mktemp("cpu"), ON_CPU, torch=changed)


@pytest.fixture(scope="module")
def on_gpu(changed: Path, tmp_path_factory: pytest.TempPathFactory) -> ip.Run:
    return dumped(tmp_path_factory.mktemp("gpu"), ON_GPU, "h100", torch=changed)


def decisions(*graphs: ip.Graph) -> list[Decision]:
    """Return what was decided of graphs."""
    of_graphs = [graph.compiled.decisions for graph in graphs]
    return [one for each in of_graphs if each is not None for one in each.decisions]


def nest(run: ip.Run, at: int) -> tuple[Decision, str]:
    """Return the decision about the loop nest of a graph, and what `probe why` prints."""
    nests = [one for one in decisions(run.graphs[at]) if one.kind == "vectorisation"]
    return nests[0], to_text(run.graphs[at].why("op0").document)


def fused(graph: ip.Graph) -> tuple[Decision, str]:
    """Return what was decided of its first and last node in the end, and what `probe fusion` prints."""
    names = {"op0", [leaf.name for top in graph.compiled.post for leaf in top.leaves()][-1]}
    [decision] = [
        one
        for one in decisions(graph)
        if one.kind == "fusion"
        and not one.speculative
        and {name for side in one.subjects for name in side} == names
    ]
    return decision, " ".join(to_text(graph.fusion(*sorted(names)).document).split())


def test_a_changed_limit_is_the_one_that_is_recorded(on_cpu: ip.Run) -> None:
    decision, text = nest(on_cpu, 0)
    assert decision.cause == "non-contiguous-accesses"
    assert (decision.operand("share"), decision.operand("share_limit")) == (0.5, 0.37)
    assert "37%" in text


def test_a_further_leg_of_a_test_is_shown_as_torch_has_it(on_cpu: ip.Run) -> None:
    decision, text = nest(on_cpu, 1)
    assert decision.cause == "short-inner-range"
    assert decision.operand("range_limit") == pytest.approx(float(str(decision.operand("factor"))) / 2)
    assert "op_num != 77 is true (2, 77)" in text


def test_a_test_that_is_unknown_is_shown_as_torch_has_it(on_cpu: ip.Run) -> None:
    decision, text = nest(on_cpu, 2)
    assert (decision.outcome, decision.cause) == ("scalar", "unlisted-test")
    assert "op0 is scalar: op_num > 2 is true (3, 2)" in text
    assert "cpp.py:" in text


def test_changed_limits_of_a_gpu_are_those_that_are_recorded(on_gpu: ip.Run) -> None:
    """A sort's, that of tiles, that of configs and that of indices: each is what this torch compares with."""
    made = decisions(*on_gpu.graphs[:3])
    of = {kind: [one for one in made if one.kind == kind] for kind in ("fallback", "tiling", "configs")}
    [sort] = of["fallback"]
    assert (sort.cause, sort.operand("elements"), sort.operand("elements_limit")) == (
        "sort-too-long",
        1024,
        300,
    )
    assert ("tile-limit", 1) in [(one.cause, one.operand("limit")) for one in of["tiling"]]
    hinted = [one for one in of["configs"] if one.cause == "known-hint"]
    assert [one.operand("size_hints") for one in hinted] == [("x=32", "r0_=128")]
    widths = [one for one in made if one.kind == "index-width"]
    assert {(one.outcome, one.cause, one.operand("limit")) for one in widths} == {
        ("int64", "numel-exceeds-int32", 99)
    }


def test_lowerings_that_changed_are_shown_as_torch_has_them(on_cpu: ip.Run) -> None:
    """A further leg, a branch that nothing lists, a dtype that a list lost, and a function that is gone."""
    cat, scan, product = (one for one in decisions(*on_cpu.graphs[3:6]) if one.kind == "fallback")
    assert cat.cause == "byte-concatenation"
    assert ("len(inputs) != 77", True, (2, 77)) in [(one.text, one.truth, one.values) for one in cat.tests]
    assert scan.cause == "unlisted-test"
    assert [(one.text, one.truth, one.values) for one in scan.tests] == [("axis < 77", True, (-1, 77))]
    assert (product.cause, product.operand("dtype")) == ("template-dtype", "float32")
    assert on_cpu.manifest is not None
    [note] = [note for note in on_cpu.manifest.notes if note.code == "recorder-failed"]
    assert dict(note.values)["recorder"] == "watching scatter_fallback"


def test_what_changed_in_orders_passes_and_fusion_is_shown_as_torch_has_it(on_cpu: ip.Run) -> None:
    """The order of loops, loops that are merged, what is written in place, a check, and a leg of a fusion."""
    seen = {
        (one.kind, one.outcome, one.cause, test.text, test.truth, test.values)
        for one in decisions(*on_cpu.graphs)
        for test in one.tests
        if "77" in test.text
    }
    assert ("loops", "in-order", "unlisted-test", "a_first > b_first + 77", False, (2, 77)) in seen
    strides = "self.simplify(strides[k][a] * sizes[a] + 77) == self.simplify(strides[k][b])"
    assert ("loops", "separate", "unlisted-test", strides, False, (205, 128)) in seen
    assert ("rewrite", "copied", "unlisted-test", "node.name != '77'", True, ("index_put", "77")) in seen
    assert ("rewrite", "not-replaced", "check-refused", "len(match.nodes) != 77", True, (1, 77)) in seen
    assert ("fusion", "refused", "unlisted-test", "len(node1.get_nodes()) != 77", True, (1, 77)) in seen


def test_a_changed_limit_of_the_backend_is_the_one_that_is_recorded(on_cpu: ip.Run) -> None:
    decision, text = fused(on_cpu.graphs[9])
    assert decision.cause == "horizontal-size-limit"
    assert (decision.operand("nodes"), decision.operand("limit")) == (2, 1)
    assert "the C++ backend fuses at most 1 that way" in text


def test_a_test_of_the_backend_that_is_unknown_is_shown_as_torch_has_it(on_cpu: ip.Run) -> None:
    decision, text = fused(on_cpu.graphs[11])
    assert (decision.outcome, decision.cause) == ("refused", "unlisted-test")
    assert "op0 and op1 are not fused: config.max_fusion_size == 75 is true (75, 75)" in text


def test_a_test_of_the_scheduler_that_says_nothing_is_seen_from_the_second_time_on(on_cpu: ip.Run) -> None:
    decision, text = fused(on_cpu.graphs[12])
    assert (decision.outcome, decision.cause, decision.times) == ("refused", "unlisted-test", 2)
    assert "op0 and op1 are not fused: config.max_fusion_size == 76 is true (76, 76)" in text


def test_a_changed_limit_of_the_choices_is_the_one_that_is_recorded(on_cpu: ip.Run) -> None:
    decision, text = fused(on_cpu.graphs[13])
    assert decision.cause == "fusion-size-limit"
    assert (decision.operand("nodes"), decision.operand("limit")) == (2, 1)
    assert "they would be 2 nodes, and a fused node has at most 1" in text


def test_a_changed_limit_of_the_scheduler_is_the_one_that_is_recorded(on_cpu: ip.Run) -> None:
    decision, text = fused(on_cpu.graphs[14])
    assert decision.cause == "distant-nodes"
    assert decision.operand("limit") == 1
    assert decision.operand("distance") in (2, 3)
    assert "nodes apart, more than 1" in text


def test_a_changed_literal_of_mixed_reductions_is_the_one_that_is_recorded(on_gpu: ip.Run) -> None:
    decision, text = fused(on_gpu.graphs[3])
    assert decision.cause == "mix-order-limit"
    assert (decision.operand("value"), decision.operand("limit")) == (4096, 7168)
    assert "only from 7,168 elements on, and these are 4,096" in text


@pytest.mark.usefixtures("warm_here")
def test_the_buffers_named_for_shared_bytes_are_those_that_torch_counted(tmp_path: Path) -> None:
    """Of 41 steps 8 named a buffer that both use, at other indices: torch counts none of its bytes."""
    decision, text = fused(dumped(tmp_path, ONE_MIRRORED).graphs[0])
    assert decision.cause == "common-buffer"
    assert (decision.operand("buffers"), decision.operand("shared_bytes")) == (("arg0_1",), 64 * 64 * 4)
    assert "both use arg0_1; torch counts 16 KiB as shared" in text
