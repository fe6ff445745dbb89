"""Names and where to look for them: in either order, by one rule, in every verb that takes both."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import inductor_probe as ip
from tests.builders import manifest_text
from tests.conftest import Probe
from tests.discovery.test_discover import FIRST, LATEST
from tests.dumps import run_in

pytestmark = pytest.mark.usefixtures("warm")

KERNEL = "cpp_fused_flip_0"
OLD = "model__0_inference_0.0"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """An older run of hflip, labelled flip, and the latest of a training graph, labelled mlp."""
    for name, dump, label in ((FIRST, "hflip_cl", "flip"), (LATEST, "mlp_train", "mlp")):
        shutil.copytree(run_in(f"torch-2.13.0-cpu/{dump}"), tmp_path / "torch_compile_debug" / name)
        (tmp_path / "torch_compile_debug" / name / "probe.json").write_text(manifest_text(label=label))
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("layouts", "op0"),
        ("show", "op0"),
        ("fusion", "op0"),
        ("show", KERNEL),
        ("export-cpp", KERNEL, "--force"),
    ],
)
@pytest.mark.parametrize("target", ["flip:0", f"torch_compile_debug/{FIRST}"])
def test_a_name_and_a_target_in_either_order(
    probe: Probe, here: Path, words: tuple[str, ...], target: str
) -> None:
    verb, name, *options = words
    one = probe(verb, name, target, *options, cwd=here)
    other = probe(verb, target, name, *options, cwd=here)
    assert (one.status, one.out) == (other.status, other.out)
    assert one.status == 0, one.err
    assert KERNEL in one.out or "op0" in one.out


@pytest.mark.parametrize(
    "verb", ["layouts", "nodes", "kernels", "show", "fusion", "tunings", "bench-kernel", "check"]
)
@pytest.mark.parametrize(
    ("target", "error"), [("mlp/nope", "has no graph nope"), ("mlp:7", "has no graph whose name ends in .7")]
)
def test_a_run_without_that_graph_is_told_alike_by_every_verb(
    probe: Probe, here: Path, verb: str, target: str, error: str
) -> None:
    """`probe layouts RUN/nope` said that there was no run at all."""
    ran = probe(verb, target, cwd=here)
    assert ran.status == 2
    assert f"{LATEST} {error}" in ran.err


@pytest.mark.parametrize("words", [("bench-kernel", "--no-run"), ("verdict",), ("sweep-configs",)])
def test_what_is_about_one_graph_is_about_the_first_and_says_so(
    probe: Probe, here: Path, words: tuple[str, ...]
) -> None:
    """`bench-kernel LABEL` of a run with two graphs said "name one"."""
    ran = probe(*words, cwd=here)
    first = f"{LATEST} has 2 graphs: this is the first, mlp:"
    assert f"torch_compile_debug/{first}" in ran.err
    named = re.search(r"the first, (mlp:\d); the other is (mlp:\d)$", ran.err, re.MULTILINE)
    assert named is not None
    for name in named.groups():
        assert probe("layouts", name, cwd=here).status == 0


def test_what_is_read_of_a_run_is_shown_of_each_of_its_graphs(probe: Probe, here: Path) -> None:
    graphs = ["model__0_forward_1.0", "model__0_backward_3.1"]
    for words in (("rewrite",), ("show", "op0"), ("layouts", "buf0"), ("fusion", "op0"), ("why", "op0")):
        ran = probe(*words, cwd=here)
        assert ran.status == 0, ran.err
        assert [line for line in ran.out.splitlines() if line in graphs] == graphs, words
    rows = json.loads(probe("rewrite", "--json", cwd=here).out)["rewrites"]
    assert list(dict.fromkeys(row["graph"] for row in rows)) == graphs
    assert probe("tunings", cwd=here).status == 0


def test_a_kernel_and_the_graph_that_has_it_are_told_apart_from_two_kernels(probe: Probe, here: Path) -> None:
    """`asm KERNEL GRAPH` ended in "name one" where the latest run has several graphs."""
    ran = probe("asm", "op0", "model__0_backward_3.1", cwd=here)
    assert "extern_kernels.mm is a kernel of extern" in ran.err
    assert "name one" not in ran.err


def test_a_pair_is_sent_to_the_verbs_that_take_one(probe: Probe, here: Path) -> None:
    ran = probe("show", "op0 + op1", cwd=here)
    assert "op0 + op1 is a pair: probe why op0 op1 and probe fusion op0 op1 are about it" in ran.err


def test_the_short_name_of_a_graph_finds_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The label of a later run hides that of an older one: then it is another name that finds the graph."""
    tree = here / "torch_compile_debug"
    monkeypatch.chdir(here)
    assert ip.open_graph("flip:0").short_name == "flip:0"
    shutil.copy(tree / LATEST / "probe.json", tree / FIRST / "probe.json")
    graph = ip.open_run(tree / FIRST).graphs[0]
    assert graph.short_name == OLD
    assert ip.open_graph(graph.short_name).path == graph.path


def test_check_takes_labels_and_graphs(probe: Probe, here: Path) -> None:
    def graphs(*targets: str) -> int:
        return len(json.loads(probe("check", *targets, "--json", cwd=here).out)["check"]["graphs"])

    assert graphs("mlp") == 2
    assert graphs("flip:0") == 1
    assert graphs("mlp", "flip", "mlp") == 3


def test_runs_takes_the_names_that_every_verb_takes(probe: Probe, here: Path) -> None:
    (row,) = json.loads(probe("runs", "fl", "--json", cwd=here).out)["rows"]
    assert row["label"] == "flip"
    ran = probe("runs", "flip:0", "--rm", "--yes", cwd=here)
    assert ran.status == 2
    assert "flip:0 names a graph, not a run" in ran.err


def test_a_label_of_two_runs_removes_neither(probe: Probe, here: Path) -> None:
    tree = here / "torch_compile_debug"
    (tree / FIRST / "probe.json").write_text(manifest_text(label="mlp"))
    ran = probe("runs", "mlp", "--rm", "--yes", cwd=here)
    assert ran.status == 2
    assert "2 runs have the label mlp" in ran.err
    assert len(list(tree.iterdir())) == 2


def test_what_the_command_shows_of_a_node_python_shows(probe: Probe, here: Path) -> None:
    """`probe layouts op1` showed pages where `ip.layouts("op1")` showed a table."""
    target = here / "torch_compile_debug" / FIRST
    for arguments, shown in (
        (("layouts", "op0"), ip.layouts("op0", target)),
        (("layouts",), ip.layouts(None, target)),
        (("kernels",), ip.kernels(target)),
        (("nodes",), ip.nodes(target)),
        (("fusion", "op0"), ip.fusion("op0", None, target)),
        (("show", "op0"), ip.show("op0", target)),
    ):
        ran = probe(*arguments, target, COLUMNS="140")
        assert ran.out.rstrip() == repr(shown).rstrip()
        assert json.loads(probe(*arguments, target, "--json").out) == json.loads(json.dumps(shown.json))
