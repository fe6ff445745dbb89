"""The findings: their scripts show the decision that is written about, and the changes of torch turn it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import inductor_probe as ip
from inductor_probe.machine.cpu import vector_bits
from inductor_probe.model.decision import DECISIONS_NAME, Decision
from inductor_probe.store.decisions import read_decisions
from tests.conftest import REPOSITORY
from tests.documents import Command, Reader, check, commands_of, follower
from tests.fork_server import ForkServer

pytestmark = pytest.mark.usefixtures("warm")

FINDINGS = REPOSITORY / "docs" / "findings"
PAGES = sorted(page for page in FINDINGS.glob("*.md") if page.stem != "README")
PATCHES = (
    *("reversed", "tiles", "freezing", "collapsed", "short_ranges", "invariant"),
    *("mask_loads", "scaled_softmax", "persistent_rows"),
)
SCRIPTS = (
    *("reversed_loads", "tiles_for_threads", "freezing_option", "invariant_operations"),
    *("mask_loads", "scaled_softmax"),
)


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> dict[Path, Reader]:
    base = tmp_path_factory.mktemp("findings")
    readers = {page: follower(base / page.stem, base / "state", {}, fork_server) for page in PAGES}
    for reader in readers.values():
        (reader.folder / "docs").symlink_to(REPOSITORY / "docs")
    return readers


@pytest.mark.compiles
@pytest.mark.parametrize("command", [each for page in PAGES for each in commands_of(page)], ids=str)
def test_a_command_of_a_finding_does_what_is_shown(readers: dict[Path, Reader], command: Command) -> None:
    if (ran := readers[command.document].follow(command)) is not None:
        check(command, ran)


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> tuple[ip.Graph, ...]:
    """Return the graphs of the scripts, in one dump with all patches."""
    folder = tmp_path_factory.mktemp("patched")
    script = folder / "all.py"
    # With AVX-512, or as many lanes as this machine has: short_ranges is about AVX2, and dumped by itself.
    runs = "".join(f"runpy.run_path({str(FINDINGS / f'{name}.py')!r})\n" for name in SCRIPTS)
    script.write_text(f"import runpy\n{runs}")
    patches = REPOSITORY / "benchmarks" / "findings" / "patches.py"
    return ip.dump(patches, args=[",".join(PATCHES), str(script)], out=folder, stdout_to_stderr=True).graphs


def decisions(graph: ip.Graph, kind: str) -> list[Decision]:
    read = read_decisions(graph.path / DECISIONS_NAME)
    return [decision for decision in read.decisions if decision.kind == kind]


@pytest.mark.compiles
def test_each_patch_turns_the_decision_that_its_page_is_about(patched: tuple[ip.Graph, ...]) -> None:
    flip, conversion, frozen, resized, masked, softmax = patched
    # No decision: the recorder counts as torch does, and torch counts otherwise now.
    (kernel,) = flip.kernels()
    assert ("vectorised" in kernel.traits) == (vector_bits() == 512)
    (kernel,) = resized.kernels()
    assert "scalar" in kernel.traits
    (threads,) = decisions(conversion, "threads")
    assert dict(threads.operands)["loops"] == ("x0", "x1")
    assert {decision.outcome for decision in decisions(frozen, "freezing")} == {"frozen", "folded"}
    assert "VecMask<float" not in (masked.path / "output_code.py").read_text()
    assert "bool*" not in (softmax.path / "output_code.py").read_text()


def run_program(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program, a fork, with the checkout in argv, and with a new cache, as caches ignore patches."""
    program = folder / "findings_program.py"
    program.write_text(text)
    ran = subprocess.run(
        [sys.executable, str(program), str(REPOSITORY)], capture_output=True, text=True, check=False,
        env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran


_SOFTMAX = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
from benchmarks.findings.patches import PATCHES, apply

apply(PATCHES["scaled_softmax"])
inf, nan = float("inf"), float("nan")
rows = [1, 2, 3], [1, -inf, 3], [-inf, -inf, -inf], [inf, 1, 2], [nan, 1, 2], [3e38, 1, 2], [-3e38, 1, 2]
scores = torch.tensor(rows)

@torch.compile
def softmax(scores, scale):
    return torch.softmax(scores * scale, -1)

for scale in (0.5, -2.0, 4.0, torch.tensor([4.0])):
    torch._dynamo.reset()
    compiled, eager = softmax(scores, scale), torch.softmax(scores * scale, -1)
    torch.testing.assert_close(compiled, eager, equal_nan=True)
    print(int(eager.isnan().all(-1).sum()))
"""


@pytest.mark.compiles
def test_a_softmax_of_what_overflows_is_what_it_is_in_eager_mode_with_the_patch(tmp_path: Path) -> None:
    ran = run_program(_SOFTMAX, tmp_path)
    # Scales above 1 make the row with 3e38 overflow.
    assert ran.stdout.split() == ["3", "4", "4", "4"]


@pytest.mark.compiles
def test_with_avx2_a_few_integers_are_not_vectorised(tmp_path: Path) -> None:
    patches, script = REPOSITORY / "benchmarks" / "findings" / "patches.py", FINDINGS / "short_ranges.py"
    avx2 = {"ATEN_CPU_CAPABILITY": "avx2"}
    run = ip.dump(patches, args=["short_ranges", str(script)], out=tmp_path, env=avx2, stdout_to_stderr=True)
    (kernel,) = run.graphs[0].kernels()
    assert "scalar" in kernel.traits


@pytest.mark.compiles
def test_calls_of_whole_processes_are_compared(tmp_path: Path) -> None:
    program = REPOSITORY / "benchmarks" / "findings" / "calls.py"
    command = [sys.executable, str(program), "freezing", "--pairs", "1", "--seconds", "0.1"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert re.fullmatch(
        r"freezing, 1 threads: a call of \S+ us is \S+ times as fast with the patch .*\n", ran.stdout
    )


@pytest.mark.compiles
def test_a_sweep_asks_what_the_patches_would_have_decided(tmp_path: Path) -> None:
    program = REPOSITORY / "benchmarks" / "findings" / "asked.py"
    cases = "check_hflip::channels_last\ncheck_hflip::channels_first\n"
    ran = subprocess.run(
        [sys.executable, str(program), "reversed", "short_ranges", "tiles", "freezing"],
        input=cases, capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    last, first = (json.loads(line) for line in ran.stdout.splitlines())
    assert last["graphs"] == first["graphs"] == 1
    assert (
        last["calls"]["TilingSelect.select_tiling"] == last["calls"]["CppKernel.decide_parallel_depth"] == 1
    )
    assert {key for key in last["turned"] if not key.endswith("avx512")} == {"short_ranges, avx2"}
    assert not {key for key in first["turned"] if not key.endswith("avx512")}


_COUNTED = """
import runpy, sys
sys.path.insert(0, sys.argv[1])
import torch
from benchmarks.findings import figures
from benchmarks.sweeps import worker
from inductor_probe.capture.targets.graphs import leave_kernels_out
from torch._inductor.graph import GraphLowering

leave_kernels_out()
compiler, codegen, graphs = worker.compiler(None), GraphLowering.codegen, []
GraphLowering.codegen = lambda self, *args: (graphs.append(self), codegen(self, *args))[1]
torch.compile = lambda function=None, **options: (
    compiler(function, **options) if function else lambda function: compiler(function, **options)
)
for figure in figures.FIGURES.values():
    if getattr(figure, "labels", ()) and (figure.capability, figure.device) == ("avx512", "cpu"):
        graphs.clear()
        torch._dynamo.reset()
        sys.argv = [figure.script, *figure.args]
        runpy.run_path(f"{figures.patches.FINDINGS}/{figure.script}.py")
        print(figure.script, len(graphs), len(figure.labels))
"""


@pytest.mark.compiles
def test_a_script_of_many_programs_compiles_as_many_graphs_as_its_figure_has_rows(tmp_path: Path) -> None:
    ran = run_program(_COUNTED, tmp_path)
    counts = [line.split() for line in ran.stdout.splitlines()]
    scripts = {page.stem for page in FINDINGS.glob("*_elsewhere.py")}
    assert {name for name, _, _ in counts} == scripts - {"persistent_rows_elsewhere"}
    assert all(graphs == rows for _, graphs, rows in counts), counts


@pytest.mark.compiles
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="no triton to simulate a GPU with")
def test_rows_stay_in_registers_where_they_are_read_again(tmp_path: Path) -> None:
    """What is decided otherwise than torch decides was recorded with torch's limit as its cause."""
    patches = REPOSITORY / "benchmarks" / "findings" / "patches.py"
    script = FINDINGS / "persistent_rows_elsewhere.py"
    args = ["persistent_rows", str(script), "2048"]
    run = ip.dump(patches, args=args, out=tmp_path, target="h100", stdout_to_stderr=True)
    kinds = [kernel.name.split("_")[1] for graph in run.graphs for kernel in graph.kernels()]
    # softmax, capped, RMS norm, layer norm, squares; in float32 softmax, RMS norm, cumulative sum
    assert kinds == ["per", "per", "per", "per", "red", "per", "per", "red"]
    made = [decision for graph in run.graphs for decision in decisions(graph, "reduction")]
    causes = {(one.outcome, one.cause) for one in made if one.outcome in ("looped", "persistent")}
    # The patch has no code that is watched: which test decided is not known.
    assert causes == {("looped", "unlisted-test"), ("persistent", "unlisted-test")}


def test_pages_show_the_figures_that_are_kept() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); from benchmarks.findings import figures as f; "
        "print([page.name for page in f.PAGES"
        " if f.written(text := page.read_text(encoding='utf-8'), f.read()) != text])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n", "python -m benchmarks.findings.figures write"


@pytest.mark.parametrize("page", [*PAGES, FINDINGS / "README.md"], ids=lambda page: page.stem)
def test_a_page_shows_its_script_and_its_links_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / link).exists(), f"{page.name} points to {link}"
    for shown in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        assert shown == page.with_suffix(".py").read_text()
    if page.stem == "README":
        assert {each.stem for each in PAGES} == set(re.findall(r"\[(\w+)\]\(\1\.md\)", text))


def test_patches_of_one_function_apply_together() -> None:
    # Each was applied to the text of torch's file, so that of two in one function only the last was there.
    program = (
        f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); from benchmarks.findings import patches as t; "
        "t.apply(t.PATCHES['reversed'], t.PATCHES['short_ranges']); "
        "code = t._function(t.PATCHES['reversed'].edits[0].place).__code__; "
        "print({'reversed_is_contiguous', 'has_partial_copies'} <= {*code.co_varnames, *code.co_cellvars})"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "True\n"


def test_a_page_shows_the_patch_as_it_fits_this_torch() -> None:
    command = [sys.executable, "-m", "benchmarks.findings.changes", "diff", *PATCHES]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=REPOSITORY).stdout
    shown = [
        diff
        for page in PAGES
        for diff in re.findall(r"^```diff\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    ]
    assert len(shown) == 8
    for diff in shown:
        assert diff in printed
