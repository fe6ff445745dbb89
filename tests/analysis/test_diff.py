"""Comparisons of real dumps with edited copies of themselves."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.analysis.diff.graphs import diff_graphs
from inductor_probe.analysis.diff.kernels import code_diff
from inductor_probe.analysis.diff.normal_forms import normal_source
from inductor_probe.model.code import Kernel
from inductor_probe.model.decision import CauseCode, Decision, Decisions, Outcome
from inductor_probe.model.diff import GraphDiff, MissingPart
from inductor_probe.report.pages.diff import diff_page
from inductor_probe.report.terminal import to_text
from inductor_probe.report.words.diff import headlines
from tests.builders import decision
from tests.conftest import all_graph_dirs
from tests.dumps import folder_of, read_at

IR = "ir_post_fusion.txt"
CODE = "output_code.py"
FX = "fx_graph_transformed.py"
SORT = "torch-2.13.0-cpu/multi_output_no_fuse"
ANTIALIAS = "torch-2.13.0-cpu/aa_separable_cl"
Edit = Callable[[str], str]


@pytest.fixture
def edited(tmp_path: Path) -> Callable[..., GraphDiff]:
    """Compare a graph with a copy of it in which files were edited."""

    def _edited(name: str, edits: dict[str, Edit], at: int = 0, called: str = "") -> GraphDiff:
        original = folder_of(name, at)
        copy = tmp_path / (called or original.name)
        shutil.copytree(original, copy)
        for file, edit in edits.items():
            before = (copy / file).read_text()
            after = edit(before)
            assert after != before, f"the edit of {file} changes nothing"
            (copy / file).write_text(after)
        return diff_graphs(read_at(original), read_at(copy))

    return _edited


def replacing(old: str, new: str, count: int = -1) -> Edit:
    return lambda text: text.replace(old, new, count)


def changed_parts(diff: GraphDiff) -> set[str]:
    """Names of the parts that say that something changed."""
    parts = {
        "inputs": diff.inputs,
        "outputs": diff.outputs,
        "buffers": diff.buffers,
        "nodes": diff.nodes,
        "fusion": diff.fusion,
        "calls": diff.calls,
        "operations": diff.operations,
        "kernels": [match for match in diff.kernels if match.relation != "same"],
    }
    return {name for name, found in parts.items() if found}


@pytest.mark.parametrize("folder", all_graph_dirs(), ids=lambda folder: "/".join(folder.parts[-5:]))
def test_a_graph_equals_itself_whatever_it_is_called_and_in_whatever_order_it_is_printed(
    folder: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "model__7_inference_9.4"
    shutil.copytree(folder, copy)
    nodes = (copy / IR).read_text().rstrip("\n").split("\n\n\n")
    random.Random(4).shuffle(nodes)  # noqa: S311 - any order will do, the same each time
    (copy / IR).write_text("\n\n\n".join(nodes) + "\n\n\n")
    code = (copy / CODE).read_text()
    for kernel in set(re.findall(r"^(\w+) = async_compile", code, re.MULTILINE)):
        name = kernel.replace("fused", "fused_other")  # a wrapper in C++ launches it by `call_<kernel>`
        code = re.sub(rf"\b(call_)?{kernel}\b", rf"\g<1>{name}", code)
    code = re.sub(r"c[a-z2-7]{51}\.", "c" + "q" * 51 + ".", code).replace("/repro/", "/elsewhere/")
    (copy / CODE).write_text(code)
    diff = diff_graphs(read_at(folder), read_at(copy))
    assert diff.equal, changed_parts(diff)
    assert diff.missing == ()
    assert not any(count.changed for count in diff.counts)
    assert {name for name, _ in diff.cosmetic} <= {"kernel_names", "graph_name"}


def test_symbols_may_have_other_names(edited: Callable[..., GraphDiff]) -> None:
    def rename(text: str) -> str:
        for old, new in (("s77", "s0"), ("s27", "s1"), ("s17", "s2")):
            text = re.sub(rf"\b{old}\b", new, text)
        return text

    diff = edited("torch-2.13.0-cpu/dynamic_shapes", {IR: rename, CODE: rename, FX: rename})
    assert diff.equal, changed_parts(diff)


def test_a_changed_constant_is_found_where_it_stands(edited: Callable[..., GraphDiff]) -> None:
    diff = edited(
        SORT, {IR: replacing("ops.constant(1.0, torch.float32)", "ops.constant(3.0, torch.float32)")}
    )
    assert changed_parts(diff) == {"nodes"}
    (node,) = diff.nodes
    assert (node.a, node.b, node.kind, node.operations, node.loops) == ("op6", "op6", "computes", (), None)
    assert node.first_a is not None
    assert node.first_b is not None
    assert (node.first_a.text, node.first_b.text) == ("add(load, 1.0)", "add(load, 3.0)")
    assert node.first_a.span is not None
    line = node.first_a.span.path.read_text().splitlines()[node.first_a.span.first - 1]
    assert line.strip() == "add = ops.add(load, constant)"
    assert not any(count.changed for count in diff.counts)


def test_a_changed_stride_of_an_output_is_its_stride_and_nothing_else(
    edited: Callable[..., GraphDiff],
) -> None:
    diff = edited(
        ANTIALIAS,
        {IR: replacing("size=[4, 3, 256, 256], stride=[196608, 65536, 256, 1]",
                       "size=[4, 3, 256, 256], stride=[196608, 1, 768, 3]")},
    )  # fmt: skip
    assert changed_parts(diff) == {"outputs"}
    (output,) = diff.outputs
    assert (output.a, output.b, output.position_a, output.weight) == ("buf3", "buf3", 0, "major")
    assert [(fact.name, fact.a, fact.b) for fact in output.facts] == [
        ("format", "contiguous", "channels_last"),
        ("stride", "[196608, 65536, 256, 1]", "[196608, 1, 768, 3]"),
    ]


def test_an_allocation_that_disagrees_with_the_plan_is_found(edited: Callable[..., GraphDiff]) -> None:
    diff = edited(
        ANTIALIAS, {CODE: replacing("(264960, 256, 768, 1), torch", "(264960, 88320, 256, 1), torch")}
    )
    assert changed_parts(diff) == {"buffers"}
    (buffer,) = diff.buffers
    assert [fact.name for fact in buffer.facts] == ["allocated format", "allocated stride"]


def test_a_stride_of_a_dimension_of_size_1_is_spelling(edited: Callable[..., GraphDiff]) -> None:
    diff = edited(
        ANTIALIAS, {IR: replacing("size=[256, 1], stride=[1, 1]", "size=[256, 1], stride=[1, 256]")}
    )
    assert diff.equal
    assert dict(diff.cosmetic) == {"unit_dim_strides": 2}


def test_a_changed_dtype_is_named(edited: Callable[..., GraphDiff]) -> None:
    pattern = re.compile(r"(buf0\.layout|buf0_layout) = FixedLayout\('cpu', torch.float32")
    diff = edited(ANTIALIAS, {IR: lambda text: pattern.sub(r"\1 = FixedLayout('cpu', torch.float64", text)})
    assert changed_parts(diff) == {"buffers"}
    (buffer,) = diff.buffers
    assert buffer.a == "buf0"
    assert [(fact.name, fact.a, fact.b, fact.weight) for fact in buffer.facts] == [
        ("dtype", "float32", "float64", "major")
    ]


LAYERNORM_GRAD = "torch-2.4.1-cpu/layernorm_grad"


def first_group() -> str:
    """Return the name of the first fused node of LAYERNORM_GRAD."""
    text = (folder_of(LAYERNORM_GRAD) / IR).read_text()
    return next(match[1] for match in re.finditer(r"^(\w+): \w*Fused\w*\(", text, re.MULTILINE))


def split_first_group(text: str) -> str:
    """Take the last node out of the first fused one."""
    name = first_group()
    head, mark, last = text.partition(f"    {name}.snodes[{len(name.split('_')) - 1}] =\n")
    assert mark
    block, _, rest = last.partition("\n\n\n")
    own = "\n".join(line.removeprefix("    ") for line in block.split("\n"))
    return f"{head.rstrip()}\n\n\n{own}\n\n\n{rest}"


def test_a_group_that_is_split_is_one_change(edited: Callable[..., GraphDiff]) -> None:
    diff = edited(LAYERNORM_GRAD, {IR: split_first_group})
    assert changed_parts(diff) == {"fusion"}
    (fusion,) = diff.fusion
    assert fusion.relation == "split"
    assert sorted(fusion.a[0]) == sorted(first_group().split("_"))
    assert sorted(len(group) for group in fusion.b) == [1, len(fusion.a[0]) - 1]
    assert [count.name for count in diff.counts if count.changed] == ["fused_groups"]


def test_nodes_that_one_side_fused_have_what_keeps_them_apart_on_the_other(tmp_path: Path) -> None:
    folder = folder_of(LAYERNORM_GRAD)
    copy = shutil.copytree(folder, tmp_path / folder.name)
    (copy / IR).write_text(split_first_group((copy / IR).read_text()))
    *most, last = first_group().split("_")
    fused = decision("fusion", f"{' '.join(most)}, {last}", "fused", "producer-and-consumer", number=7)
    # Torch decided about a part of the group, not about the groups that remained.
    refused = replace(fused, subjects=((*most, "op99"), (last,)), outcome="refused", cause="cycle")
    sides = [
        replace(read_at(path), read_decisions=partial(Decisions, "2.13.0", ("fusion",), (one,)))
        for path, one in ((folder, fused), (copy, refused))
    ]
    assert [(change.a, change.b) for change in diff_graphs(*sides).decisions] == [(fused, refused)]
    assert [(change.a, change.b) for change in diff_graphs(*reversed(sides)).decisions] == [(refused, fused)]


def decided(number: int, outcome: Outcome, cause: CauseCode, nodes: str) -> Decision:
    return decision("vectorisation", nodes, outcome, cause, number=number)


def decisions_diff(a: Sequence[Decision], b: Sequence[Decision]) -> GraphDiff:
    graph = read_at(folder_of(LAYERNORM_GRAD))
    sides = (
        replace(graph, read_decisions=partial(Decisions, "2.13.0", ("vectorisation",), tuple(decisions)))
        for decisions in (a, b)
    )
    return diff_graphs(*sides)


def test_a_decision_that_only_one_side_took_is_said() -> None:
    first, second, *_ = first_group().split("_")
    loops = decided(1, "vectorised", "contiguous-only-loop", first)
    tail = decided(2, "masked-tail", "partial-vector", first)
    other = decided(3, "masked-tail", "partial-vector", second)
    gone = decided(4, "masked-tail", "partial-vector", "op99")  # of a node that the other side has not
    diff = decisions_diff([loops, tail, other, gone], [loops])
    assert [(change.a, change.b) for change in diff.decisions] == [(tail, None), (other, None)]
    diff = decisions_diff([loops], [loops, tail, other, gone])
    assert [(change.a, change.b) for change in diff.decisions] == [(None, tail), (None, other)]
    page = to_text(list(diff_page(diff, lambda: ())))
    assert f"vectorisation of {first}, {second}\n" in page
    assert "- no such decision\n" in page
    assert headlines(diff)[0].endswith("; only 2 decisions differ")


def test_a_decision_about_nodes_that_are_grouped_otherwise_is_compared_with_its_parts() -> None:
    first, second, *_ = first_group().split("_")
    both = decided(1, "vectorised", "contiguous-only-loop", f"{first} {second}")
    alike = decided(1, "vectorised", "most-contiguous-loop", first)
    scalar = decided(2, "scalar", "no-vector-isa", second)
    diff = decisions_diff([both], [alike, scalar])
    assert [(change.a, change.b) for change in diff.decisions] == [(both, scalar)]
    diff = decisions_diff([alike, scalar], [both])
    assert [(change.a, change.b) for change in diff.decisions] == [(scalar, both)]


def test_edited_kernel_code_is_counted_and_shown(edited: Callable[..., GraphDiff]) -> None:
    diff = edited(SORT, {CODE: replacing("#pragma omp for\n", "#pragma omp for collapse(2)\n", 1)})
    assert changed_parts(diff) == {"kernels"}
    changed = [match for match in diff.kernels if match.relation == "changed"]
    assert [match.a for match in changed] == [("cpp_fused_sum_0",)]
    assert changed[0].code is not None
    assert (changed[0].code.removed, changed[0].code.added) == (1, 1)


def test_swapped_arguments_of_a_launch_are_found(edited: Callable[..., GraphDiff]) -> None:
    diff = edited(
        SORT, {CODE: replacing("cpp_fused_sum_0(arg0_1, buf4, buf3)", "cpp_fused_sum_0(arg0_1, buf3, buf4)")}
    )
    assert changed_parts(diff) == {"kernels"}
    (match,) = [match for match in diff.kernels if match.relation == "changed"]
    assert [(fact.name, fact.b) for fact in match.facts] == [("launched with", "arg0_1, buf3, buf4")]


def test_swapped_outputs_are_found(edited: Callable[..., GraphDiff]) -> None:
    diff = edited(SORT, {CODE: replacing("return (buf3, buf4, buf5", "return (buf4, buf3, buf5")})
    assert changed_parts(diff) == {"outputs"}
    assert {fact.name for output in diff.outputs for fact in output.facts} >= {"value"}
    assert [output.position_a for output in diff.outputs] == [0, 1]


@pytest.mark.parametrize(
    ("old", "new", "fact"),
    [
        ("dim=1, descending=False", "dim=1, descending=True", "arguments"),
        ("torch.ops.aten.sort.stable(arg0_1", "torch.ops.aten.argsort.stable(arg0_1", "target"),
    ],
)
def test_a_changed_library_call_is_named(
    edited: Callable[..., GraphDiff], old: str, new: str, fact: str
) -> None:
    diff = edited(SORT, {CODE: replacing(old, new)})
    assert "calls" in changed_parts(diff)
    (call,) = diff.calls
    assert [found.name for found in call.facts] == [fact]
    assert call.span_a is not None


def test_a_removed_node_is_named_and_the_rest_stays_matched(edited: Callable[..., GraphDiff]) -> None:
    def without(text: str) -> str:
        return "\n\n\n".join(block for block in text.split("\n\n\n") if not block.startswith("op6:"))

    diff = edited(SORT, {IR: without})
    assert [(node.a, node.kind) for node in diff.nodes] == [("op6", "removed")]
    assert diff.matched_nodes == 5


def test_parts_that_are_missing_are_said_to_be_missing(edited: Callable[..., GraphDiff]) -> None:
    diff = edited(SORT, {CODE: lambda _: "("})
    assert diff.missing == (MissingPart("b", "output_code"),)
    assert not diff.nodes
    assert not any(count.changed for count in diff.counts)


def cpp(text: str, name: str = "cpp_fused_0") -> Kernel:
    return Kernel(name, "cpp", text, ())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("out[static_cast<long>(x0 + (3L*x1))] = tmp0;", "out[static_cast<int64_t>(x0 + 3L*x1)] = tmp0;"),
        ("a = 223L + ((-1L)*x1);", "a = 223L + -1L*x1;"),
        ("x0<static_cast<long>(ks1); f(ks0)", "x0<static_cast<int64_t>(ks7); f(ks3)"),
        ("tmp2 = x;  // cpp_fused_0", "tmp2 = x;"),
    ],
)
def test_spelling_of_code_does_not_count(old: str, new: str) -> None:
    assert normal_source(cpp(old)) == normal_source(cpp(new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a = (x0 + x1)*3L;", "a = x0 + x1*3L;"),
        ("a = x0 - (x1 - x2);", "a = x0 - x1 - x2;"),
        ("a = x0 / (x1*x2);", "a = x0 / x1*x2;"),
        ("a = x0 % (3L*x2);", "a = x0 % 3L*x2;"),
        ("static_cast<int64_t>(tmp3)", "tmp3"),
        ("f(ks0, ks1)", "f(ks0, ks0)"),
    ],
)
def test_meaning_of_code_counts(old: str, new: str) -> None:
    assert normal_source(cpp(old)) != normal_source(cpp(new))
    assert code_diff(cpp(old), cpp(new))[-2:] == (
        f"-{normal_source(cpp(old))[0]}",
        f"+{normal_source(cpp(new))[0]}",
    )
