"""Dumps by a torch whose sources were changed: what is recorded is what that torch tested."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

import pytest

import inductor_probe as ip
from inductor_probe.model.decision import Decision
from inductor_probe.model.manifest import Note
from inductor_probe.report.terminal import to_text

pytestmark = [pytest.mark.compiles, pytest.mark.takes(40)]
CPP = "_inductor/codegen/cpp.py"
QUANTITY = "quantity_threshold = 35\n"
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


Dumped = tuple[ip.Run, list[Decision], Sequence[Note]]
EDITS = {
    CPP: [
        (">= stats.OVERHEAD_RATIO_THRESHOLD", ">= 0.37"),
        ("tiling_factor / 4\n", "tiling_factor / 2\n and op_num != 77\n"),
        (QUANTITY, f"{QUANTITY}{' ' * 16}if op_num > 2: return [], [], stats\n"),
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
WITHOUT_KERNELS = """import torch
from torch._inductor.async_compile import AsyncCompile
AsyncCompile.cpp_pybinding = lambda *_: lambda *_: None
"""
"""For g++ the headers of each torch are others, which are precompiled for ten seconds before a kernel is."""
ON_CPU = f"""{WITHOUT_KERNELS}
image = torch.zeros(1, 3, 64, 64, dtype=torch.uint8)
values = torch.zeros(4, 64, 64)
torch.compile(lambda x: x.flip(-1))(image)
torch.compile(lambda x: x.flip(-1))(image.contiguous(memory_format=torch.channels_last))
torch.compile(lambda x: x.flip(-1) + 1)(image.contiguous(memory_format=torch.channels_last))
torch.compile(lambda x: torch.cat([x, x + 1]))(values.to(torch.uint8))
torch.compile(lambda x: x.cummax(-1).values)(values)
torch.compile(lambda x: torch.bmm(x, x + 1), options=dict(max_autotune=True))(values)
"""
ON_GPU = """import torch
values = torch.zeros(4096, device="cuda")
torch.compile(lambda x: x.view(4, 1024).sort(-1).values)(values)
torch.compile(lambda x: x.view(64, 64).t().contiguous())(values)
torch.compile(lambda x: x.view(32, 128).sum(-1))(values)
"""


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a torch with all edits: each is of another function, or of another branch."""
    folder = tmp_path_factory.mktemp("changed")
    torch_with(folder, EDITS)
    return folder


def dumped(changed: Path, folder: Path, source: str, target: str | None = None) -> Dumped:
    """Return a run by the changed torch, what that decided, and what could not be recorded."""
    (folder / "script.py").write_text(source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(changed), prepend=os.pathsep)
        run = ip.dump(folder / "script.py", out=folder, target=target)
    decisions = [graph.compiled.decisions for graph in run.graphs]
    notes = [note for note in run.manifest.notes if note.code == "recorder-failed"] if run.manifest else []
    return run, [one for each in decisions if each is not None for one in each.decisions], notes


@pytest.fixture(scope="module")
def on_cpu(changed: Path, tmp_path_factory: pytest.TempPathFactory) -> Dumped:
    return dumped(changed, tmp_path_factory.mktemp("cpu"), ON_CPU)


def nest(dump: Dumped, at: int) -> tuple[Decision, str]:
    """Return the decision about the loop nest of a graph, and what `probe why` prints."""
    graph = dump[0].graphs[at]
    assert graph.compiled.decisions is not None
    nests = [one for one in graph.compiled.decisions.decisions if one.kind == "vectorisation"]
    return nests[0], to_text(graph.why("op0").document)


def test_a_changed_limit_is_the_one_that_is_recorded(on_cpu: Dumped) -> None:
    decision, text = nest(on_cpu, 0)
    assert decision.cause == "non-contiguous-accesses"
    assert (decision.operand("share"), decision.operand("share_limit")) == (0.5, 0.37)
    assert "37%" in text


def test_a_further_leg_of_a_test_is_shown_as_torch_has_it(on_cpu: Dumped) -> None:
    decision, text = nest(on_cpu, 1)
    assert decision.cause == "short-inner-range"
    assert decision.operand("range_limit") == pytest.approx(float(str(decision.operand("factor"))) / 2)
    assert "op_num != 77 is true (2, 77)" in text


def test_a_test_that_is_unknown_is_shown_as_torch_has_it(on_cpu: Dumped) -> None:
    decision, text = nest(on_cpu, 2)
    assert (decision.outcome, decision.cause) == ("scalar", "unlisted-test")
    assert "op0 is scalar: op_num > 2 is true (3, 2)" in text
    assert "cpp.py:" in text


def test_changed_limits_of_a_gpu_are_those_that_are_recorded(changed: Path, tmp_path: Path) -> None:
    """A sort's, that of tiles, that of configs and that of indices: each is what this torch compares with."""
    _, decisions, _ = dumped(changed, tmp_path, ON_GPU, target="h100")
    of = {kind: [one for one in decisions if one.kind == kind] for kind in ("fallback", "tiling", "configs")}
    [sort] = of["fallback"]
    assert (sort.cause, sort.operand("elements"), sort.operand("elements_limit")) == (
        "sort-too-long",
        1024,
        300,
    )
    assert ("tile-limit", 1) in [(one.cause, one.operand("limit")) for one in of["tiling"]]
    hinted = [one for one in of["configs"] if one.cause == "known-hint"]
    assert [one.operand("size_hints") for one in hinted] == [("x=32", "r0_=128")]
    widths = [one for one in decisions if one.kind == "index-width"]
    assert {(one.outcome, one.cause, one.operand("limit")) for one in widths} == {
        ("int64", "numel-exceeds-int32", 99)
    }


def test_lowerings_that_changed_are_shown_as_torch_has_them(on_cpu: Dumped) -> None:
    """A further leg, a branch that nothing lists, a dtype that a list lost, and a function that is gone."""
    _, decisions, notes = on_cpu
    cat, scan, product = (one for one in decisions if one.kind == "fallback")
    assert cat.cause == "byte-concatenation"
    assert ("len(inputs) != 77", True, (2, 77)) in [(one.text, one.truth, one.values) for one in cat.tests]
    assert scan.cause == "unlisted-test"
    assert [(one.text, one.truth, one.values) for one in scan.tests] == [("axis < 77", True, (-1, 77))]
    assert (product.cause, product.operand("dtype")) == ("template-dtype", "float32")
    [note] = notes
    assert dict(note.values)["recorder"] == "watching scatter_fallback"


LEFT_OUT = "        if node.name != '77': return False\n"
ORDERS = f"""{WITHOUT_KERNELS}
values = torch.ones(64, 128)
torch.compile(lambda x: x.t() + 1)(values)
torch.compile(lambda x: (x + 1).index_put((torch.arange(3),), torch.zeros(())))(values)
torch.compile(lambda x: torch.addmm(x[0], x, x).relu())(torch.ones(16, 16))
torch.compile(lambda x: (x[:, :100] + 1, x[:, :100] * 2))(values)
"""


def test_what_changed_in_orders_passes_and_fusion_is_shown_as_torch_has_it(tmp_path: Path) -> None:
    """The order of loops, loops that are merged, what is written in place, a check, and a leg of a fusion."""
    edits = {
        "_inductor/scheduler.py": [("if a_first > b_first:", "if a_first > b_first + 77:")],
        "_inductor/sizevars.py": [("strides[k][a] * sizes[a]) ==", "strides[k][a] * sizes[a] + 77) ==")],
        "_inductor/fx_passes/reinplace.py": [
            (
                "    def can_inplace(node, mutated_arg):\n",
                f"    def can_inplace(node, mutated_arg):\n{LEFT_OUT}",
            )
        ],
        "_inductor/fx_passes/post_grad.py": [
            (
                'def should_prefer_unfused_addmm(match):\n    inp = match.kwargs["inp"]\n',
                'def should_prefer_unfused_addmm(match):\n    inp = match.kwargs["inp"]\n'
                "    if len(match.nodes) != 77: return False\n",
            )
        ],
        CPP: [
            (
                "            > config.cpp.max_horizontal_fusion_size\n",
                "            > config.cpp.max_horizontal_fusion_size\n or len(node1.get_nodes()) != 77\n",
            )
        ],
    }
    torch_with(tmp_path / "changed", edits)
    _, decisions, _ = dumped(tmp_path / "changed", tmp_path, ORDERS)
    seen = {
        (one.kind, one.outcome, one.cause, test.text, test.truth, test.values)
        for one in decisions
        for test in one.tests
        if "77" in test.text
    }
    assert ("loops", "in-order", "unlisted-test", "a_first > b_first + 77", False, (2, 77)) in seen
    strides = "self.simplify(strides[k][a] * sizes[a] + 77) == self.simplify(strides[k][b])"
    assert ("loops", "separate", "unlisted-test", strides, False, (205, 128)) in seen
    assert ("rewrite", "copied", "unlisted-test", "node.name != '77'", True, ("index_put", "77")) in seen
    assert ("rewrite", "not-replaced", "check-refused", "len(match.nodes) != 77", True, (1, 77)) in seen
    assert ("fusion", "refused", "unlisted-test", "len(node1.get_nodes()) != 77", True, (1, 77)) in seen
