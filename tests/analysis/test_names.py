"""A name means the same wherever it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.analysis.causes.causes import graph_causes
from inductor_probe.analysis.fusion.facts import members_of
from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.layouts import layouts
from inductor_probe.analysis.names import (
    EVERY_TYPE,
    became,
    fx_called,
    names_of,
    nodes_called,
    resolve,
    source_lines,
)
from inductor_probe.analysis.pages import page_of
from inductor_probe.errors import AmbiguousError, NotFoundError, ProbeError, names_meant
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decisions
from inductor_probe.model.manifest import GraphRecord
from inductor_probe.model.pages import NodePage
from inductor_probe.model.remark import Subject
from tests.builders import decision
from tests.dumps import every_graph, read_at

Read = Callable[..., CompiledGraph]


@every_graph
def test_every_name_of_a_dump_is_known(folder: Path) -> None:
    graph = read_at(folder)
    names = names_of(graph)
    for type_ in EVERY_TYPE:
        for name in names.get(type_, ()):
            assert resolve(graph, name, (type_,)) == Subject(type_, name)
    for line in source_lines(graph):
        assert resolve(graph, str(line)) == Subject("line", str(line))
    generated = replace(graph, pre=(), fx_before=None)  # what most verbs read
    for name in index_of(generated).nodes.node:
        assert members_of(generated, name)
        assert layouts(generated, name)
        assert page_of(generated, name)


def test_torch_before_2_5_calls_nodes_after_their_buffers(read: Read) -> None:
    graph = read("torch-2.1.2-cpu/hflip_cl")
    assert resolve(graph, "buf0") == Subject("node", "buf0")
    assert resolve(graph, "buf0", ("buffer", "node")) == Subject("buffer", "buf0")
    with pytest.raises(NotFoundError, match="has no node op0") as caught:
        resolve(graph, "op0")
    assert caught.value.hint == "torch before 2.5 calls nodes after their buffers: buf0"


def test_the_start_of_a_kernel_will_do_where_no_other_starts_so(read: Read) -> None:
    graph = read("torch-2.13.0-cpu/mlp_train", 1)
    (one, *others) = [name for name in names_of(graph)["kernel"] if name.startswith("cpp_fused_")]
    assert others
    assert resolve(graph, one[:-1]).name == one
    with pytest.raises(ProbeError, match=f"{len(others) + 1} kernels of {graph.name} start with cpp_fused_"):
        resolve(graph, "cpp_fused_")
    assert names_meant("", [one]) == ()
    assert names_meant(one, [one, f"{one}0"]) == (one,)
    assert names_meant(one[:-1], [one, f"{one}0"]) == (one, f"{one}0")


def test_a_name_is_taken_as_a_screen_prints_it(read: Read) -> None:
    graph = read("torch-2.13.0-cpu/mlp_train")
    assert resolve(graph, "op2 +3") == resolve(graph, "op2 +3 (largest)") == Subject("node", "op2")
    assert resolve(graph, "op2, op3 and 3 more") == Subject("node", "op2")
    assert resolve(graph, "cpp_…_dropout_0") == Subject("kernel", "cpp_fused_gelu_native_dropout_0")
    assert resolve(graph, "op2…op4") == resolve(graph, "…op4") == Subject("node", "op2_op3_op4")
    with pytest.raises(AmbiguousError, match=r"nodes of .* fit op…") as caught:
        resolve(graph, "op…")
    assert caught.value.hint == "did you mean op5 or op4 or op3?"


def test_nodes_that_were_fused_for_a_while_are_a_name(read: Read) -> None:
    """`op0_op1` led nowhere where the scheduler fused more to it."""
    graph = read("torch-2.13.0-cpu/mlp_train")
    assert nodes_called(graph, "op2_op3") == ("op2", "op3")
    page = page_of(graph, "op2_op3")
    assert isinstance(page, NodePage)
    assert [part.row.node for part in page.parts] == ["op2", "op3"]
    assert members_of(graph, "op2_op3") == ("op2", "op3")
    assert layouts(graph, "op2_op3")
    shortened = resolve(read("torch-2.13.0-cpu-programs/reductions"), "op2_op4_op5…op7_op3")
    assert shortened == Subject("node", "op2_op4_op5_op6_op7_op3")


def test_an_operator_that_was_decomposed_is_what_it_became(read: Read) -> None:
    """`why aten.batch_norm` ended in "did you mean"."""
    graph = read("torch-2.13.0-cpu/hflip_cl")
    assert fx_called(graph, "aten.flip") == ()
    assert became(graph, "aten.flip") == ("rev",)  # by dynamo's node
    called = (("BatchNorm2d", ("rev",)), ("aten._softmax", ("rev",)))
    record = GraphRecord("model__0_inference_0.0", "0/0", "first", became=called)
    recorded = replace(graph, record=record)
    assert became(recorded, "aten.batch_norm") == became(recorded, "aten._softmax") == ("rev",)
    row = graph_causes(recorded, ["aten.batch_norm"])
    assert row.asked == (Subject("operator", "aten.batch_norm"),)
    assert (row.became, row.gone) == (("rev",), ())
    assert became(recorded, "aten.linear") == ()


def test_what_is_gone_is_followed_to_what_took_its_place(read: Read) -> None:
    """A norm that was folded into a convolution is `sub` and `mul`, which no file of the dump has."""
    by = {"sub convolution": ("constant", "convolution_1"), "convolution_1": ("rev",), "other": ("flip",)}
    rewrites = tuple(
        decision("rewrite", old, "replaced", "pattern", operands={"nodes": tuple(old.split()), "by": new})
        for old, new in by.items()
    )
    record = GraphRecord("model__0_inference_0.0", "0/0", "first", became=(("batch_norm", ("sub",)),))
    graph = replace(
        read("torch-2.13.0-cpu/hflip_cl"),
        record=record,
        read_decisions=lambda: Decisions("2.13.0", ("rewrite",), rewrites),
    )
    row = graph_causes(graph, ["aten.batch_norm"])
    assert (row.became, row.gone) == (("sub", "rev"), ("sub",))


def test_a_name_of_another_type_says_which_verb_shows_it(read: Read) -> None:
    graph = read("torch-2.13.0-cpu/hflip_cl")
    with pytest.raises(NotFoundError, match=r"rev of .* names no kernel: its type is FX node") as caught:
        resolve(graph, "rev", ("kernel",))
    assert caught.value.hint == "probe show rev says what belongs to it"


@pytest.mark.parametrize(
    ("types", "what"),
    [
        (EVERY_TYPE, "node, buffer, kernel or FX node"),
        (("buffer", "node"), "buffer or node"),
        (("kernel",), "kernel"),
    ],
)
def test_what_is_not_there_is_said_with_near_names(types: tuple[str, ...], what: str, read: Read) -> None:
    graph = read("torch-2.13.0-cpu/hflip_cl")
    with pytest.raises(NotFoundError, match=f"has no {what} cpp_fused_flap_0") as caught:
        resolve(graph, "cpp_fused_flap_0", types)  # type: ignore[arg-type]
    assert ("cpp_fused_flip_0" in (caught.value.hint or "")) == ("kernel" in types)


def test_a_line_that_no_fx_node_names_is_not_found(read: Read) -> None:
    graph = read("torch-2.13.0-cpu/hflip_cl")
    (line, *_) = source_lines(graph)
    file = line.path.rpartition("/")[2]
    assert resolve(graph, f"{file}:{line.line}") == Subject("line", str(line))
    with pytest.raises(NotFoundError, match=f"has no source line {file}:99999") as caught:
        resolve(graph, f"{file}:99999")
    assert f"{file}:{line.line}" in (caught.value.hint or "")
