"""A dump whose one file names what another file lost: every verb says so, or leaves it out, and goes on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.dumps import TRAINING, copy_of, graph_in
from tests.fuzzing.tries import ask

VERBS = ("layouts", "nodes", "kernels", "fusion", "check", "show")
FORWARD = graph_in(TRAINING, "forward")


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A graph for training with several kernels and library calls, forward: torch wrote its provenance."""
    return copy_of(FORWARD, tmp_path)


def assert_every_answer_is_well(graph: Path, *names: str) -> None:
    questions = [[verb, str(graph)] for verb in VERBS]
    questions += [[verb, name, str(graph)] for verb in ("show", "layouts", "fusion") for name in names]
    questions += [["nodes", "--pre", str(graph)], ["diff", str(graph), str(FORWARD)]]
    for at, question in enumerate(questions):
        answer = ask([*question, *(["--json"] if at % 2 else [])], 80)
        assert not answer.faults, f"{question}: {answer.faults}"


def without_block(text: str, start: str) -> str:
    """Leave out the block of an IR file that begins with `start`, up to the next empty line."""
    changed = re.sub(rf"^{start}: .*?(?:\n\n\n|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)
    assert changed != text
    return changed


def names_in(graph: Path) -> list[str]:
    texts = [path.read_text() for path in [*sorted(graph.glob("ir_*.txt")), graph / "output_code.py"]]
    pattern = r"\b(?:buf\d+|op\d+(?:_op\d+)*|primals_\d+|cpp_fused_\w+)\b"
    return sorted({name for text in texts for name in re.findall(pattern, text)})


def test_show_a_buffer_whose_node_the_ir_lost(graph: Path) -> None:
    """It was a KeyError: the buffer is named before fusion, and no node after fusion writes it."""
    path = graph / "ir_post_fusion.txt"
    path.write_text(without_block(path.read_text(), "op2_op3_op4"))
    answer = ask(["show", "buf2", str(graph)])
    assert not answer.faults
    assert answer.status == 2
    assert (
        f"no node of the generated code writes buf2; op2 names it at {graph}/ir_pre_fusion.txt:" in answer.err
    )
    assert "hint: probe show op2" in answer.err
    assert ask(["show", "op2", str(graph)]).out.startswith("op2")
    assert_every_answer_is_well(graph, *names_in(graph))


@pytest.mark.parametrize("file", ["ir_pre_fusion.txt", "ir_post_fusion.txt"])
def test_each_node_lost_from_one_ir_file(graph: Path, file: str) -> None:
    text = (graph / file).read_text()
    for name in re.findall(r"^(op\w+): ", text, re.MULTILINE):
        (graph / file).write_text(without_block(text, name))
        assert_every_answer_is_well(graph, name.partition("_")[0].replace("op", "buf"))


def test_a_kernel_that_is_launched_and_not_defined(graph: Path) -> None:
    path = graph / "output_code.py"
    text = path.read_text()
    (name, *_) = re.findall(r"^(cpp_fused_\w+) = async_compile", text, re.MULTILINE)
    path.write_text(re.sub(rf"^{name} = async_compile.*?^''' *\)$", "", text, flags=re.MULTILINE | re.DOTALL))
    assert f"{name} = async" not in path.read_text()
    assert_every_answer_is_well(graph, name, *names_in(graph))


def test_a_kernel_that_is_defined_and_not_launched(graph: Path) -> None:
    path = graph / "output_code.py"
    (name, *_) = re.findall(r"^(cpp_fused_\w+) = async_compile", path.read_text(), re.MULTILINE)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.strip().startswith(f"{name}(")))
    assert_every_answer_is_well(graph, name, "op0", "buf0")


def test_fx_nodes_without_their_users_and_without_their_inputs(graph: Path) -> None:
    path = graph / "fx_graph_transformed.py"
    lines = path.read_text().splitlines(keepends=True)
    places = [at for at, line in enumerate(lines) if " = torch.ops." in line]
    for at in places:
        name = lines[at].strip().partition(":")[0]
        path.write_text("".join(lines[:at] + lines[at + 1 :]))
        for question in (["show", name], ["nodes"], ["check"], ["show", "op0", "--json"]):
            answer = ask([*question, str(graph)], 80)
            assert not answer.faults, f"{question}: {answer.faults}"


def test_a_provenance_that_names_nodes_and_kernels_which_are_nowhere(graph: Path) -> None:
    path = graph / "inductor_provenance_tracking_node_mappings.json"
    data = json.loads(path.read_text())
    for mapping in data.values():
        if isinstance(mapping, dict):
            mapping.update(
                {"nothing_9": ["nowhere_7"], **{name: ["nowhere_7"] for name in list(mapping)[:2]}}
            )
    path.write_text(json.dumps(data))
    assert_every_answer_is_well(graph, "op0", "buf0", "nothing_9", "nowhere_7")


@pytest.mark.parametrize("value", [[], "x", 1, None, {"a": 1}, [{}], [[1]]], ids=str)
def test_a_provenance_of_other_types(graph: Path, value: object) -> None:
    path = graph / "inductor_provenance_tracking_node_mappings.json"
    data = json.loads(path.read_text())
    for changed in (value, dict.fromkeys(data, value), {key: {"add": value} for key in data}):
        path.write_text(json.dumps(changed))
        assert_every_answer_is_well(graph, "op0")
