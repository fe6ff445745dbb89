"""Scheduler IR: real files of every form, small texts, and damage."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.analysis.completeness.ir import field_defects
from inductor_probe.analysis.nodes import node_kind
from inductor_probe.errors import UnreadableError
from inductor_probe.files import read_text
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout, Dep, MemoryDep, NodeUser, Op, Ref, StarDep, WeakDep
from inductor_probe.reader import blocks, ir, values
from inductor_probe.reader.ir import parse_ir
from tests.conftest import DUMPS, all_graph_dirs
from tests.dumps import every_graph

Read = Callable[..., CompiledGraph]


@every_graph
@pytest.mark.parametrize("name", ["ir_pre_fusion.txt", "ir_post_fusion.txt"])
def test_every_line_of_every_fixture_is_read(folder: Path, name: str) -> None:
    file = parse_ir((folder / name).read_text(), folder / name)
    assert file.problems == ()
    assert file.nodes


# Top-level nodes before and after fusion, and kernels: the table in the formats page.
@pytest.mark.parametrize(
    ("name", "at", "expected"),
    [
        ("torch-2.1.2-cpu/hflip_cl", 0, (1, 1, 1)),
        ("torch-2.1.2-cpu/layernorm_grad", 0, (5, 4, 1)),
        ("torch-2.1.2-cpu/layernorm_grad", 1, (7, 5, 1)),
        ("torch-2.4.1-cpu/layernorm_grad", 0, (5, 1, 1)),
        ("torch-2.13.0-cpu/aa_separable_cl", 0, (4, 4, 1)),
        ("torch-2.13.0-cpu/multi_output_no_fuse", 0, (6, 6, 2)),
        ("torch-2.13.0-cpu/mlp_train", 1, (6, 6, 2)),
    ],
)
def test_nodes_before_and_after_fusion(
    read: Read, name: str, at: int, expected: tuple[int, int, int]
) -> None:
    graph = read(name, at)
    assert graph.code is not None
    assert (len(graph.pre), len(graph.post), len(graph.code.kernels)) == expected


@pytest.mark.parametrize("version", ["torch-2.1.2-cpu", "torch-2.4.1-cpu"])
def test_children_of_fused_nodes_are_found_whether_indented_or_flat(read: Read, version: str) -> None:
    fused = next(node for node in read(f"{version}/layernorm_grad").post if node.children)
    assert fused.name == "_".join(leaf.name for leaf in fused.leaves())
    assert all(leaf.body is not None for leaf in fused.leaves())


def test_foreach_nodes_nest_fused_nodes(read: Read) -> None:
    nodes = read("torch-2.11.0-cuda/foreach_adam").post
    foreach = [node for node in nodes if node.kind == "ForeachKernelSchedulerNode"]
    assert foreach
    assert any(child.children for node in foreach for child in node.children)


@pytest.mark.parametrize("kind", ["FusedStagedReduction", "FusedNestedReductions"])
def test_children_of_staged_reductions_are_found(kind: str) -> None:
    # They inherit FusedSchedulerNode.debug_str, which prints the name of the class (torch 2.15; 2.13).
    (folder,) = (DUMPS / "torch-2.13.0-cpu-programs" / "training").glob("run_*/*/*_forward_*")
    before, after = ((folder / f"ir_{part}_fusion.txt").read_text() for part in ("pre", "post"))
    text = after.replace(": FusedSchedulerNode(", f": {kind}(")
    file = parse_ir(text, Path("ir_post_fusion.txt"))
    assert file.problems == ()
    staged = [node for node in file.nodes if node.kind == kind]
    assert staged
    for node in staged:
        assert node.name == "_".join(leaf.name for leaf in node.leaves())
    read = {leaf.name for node in file.nodes for leaf in node.leaves()}
    assert read <= {node.name for node in parse_ir(before, Path("ir_pre_fusion.txt")).nodes}
    assert not list(field_defects(text))


# Printed by torch 2.15: BaseSchedulerNode.debug_str of a NopKernelSchedulerNode, whose IR node is made by
# the lowering of control_deps for what it passes through, and of an ExternKernelSchedulerNode: `x.data = y`.
ORDER = """\
op3: NopKernelSchedulerNode(OrderingBarrier)
op3.writes = [StarDep(name='buf3', mode=None)]
op3.unmet_dependencies =\x20
    [   StarDep(name='buf1', mode=None),
        WeakDep(name='buf1', mutating_buf='buf3', is_fake=True),
        WeakDep(name='buf1', mutating_buf='op3', is_fake=True)]
op3.met_dependencies = []
op3.min_input_distance = 2
op3.max_input_distance = 2
op3.outputs = [
    buf3: OrderingBarrier
    buf3.layout = NoneLayout(device=device(type='cpu'), size=[0], stride=[0])
    buf3.mutations = ['buf1']
    buf3.users = [NodeUser(node=SchedulerNode(name='op4'), can_inplace=True, is_weak=False)]
]


"""
COPY = """\
op2: ExternKernelSchedulerNode(ShallowCopyDataKernel)
op2.writes =\x20
    [   StarDep(name='buf2', mode=None),
        StarDep(name='buf3', mode=None),
        StarDep(name='buf4', mode=None)]
op2.unmet_dependencies = [StarDep(name='buf1', mode=None)]
op2.met_dependencies = [StarDep(name='arg1_1', mode=None)]
op2.min_input_distance = 1
op2.max_input_distance = 1
op2.outputs = [
    buf2: ShallowCopyDataKernel
    buf2.layout = FixedLayout('cpu', torch.float32, size=[8, 16], stride=[16, 1])
    buf2.aliases = ['arg1_1', 'buf1']
    buf2.users = [NodeUser(node=ExternKernelSchedulerNode(name='op2'), can_inplace=False, is_weak=False)]
    buf3: MutationOutput
    buf3.layout = NoneLayout(device=device(type='cpu'), size=[0], stride=[0])
    buf3.mutations = ['arg1_1']
    buf3.users = [NodeUser(node=OUTPUT, can_inplace=False, is_weak=False)]
    buf4: MutationOutput
    buf4.layout = NoneLayout(device=device(type='cpu'), size=[0], stride=[0])
    buf4.mutations = ['buf1']
    buf4.users = []
]
op2.node.kernel = torch.ops.aten.shallow_copy_data_


"""


@pytest.mark.parametrize(
    ("text", "kind", "mutations"),
    [(ORDER, "nop", {"buf3": ("buf1",)}), (COPY, "extern", {"buf3": ("arg1_1",), "buf4": ("buf1",)})],
)
def test_nodes_of_order_and_of_storage_are_read_whole(
    text: str, kind: str, mutations: dict[str, tuple[str, ...]]
) -> None:
    file = parse_ir(text, Path("f"))
    assert file.problems == ()
    (node,) = file.nodes
    assert (node.fields, node_kind(node)) == ((), kind)
    assert {buffer.name: buffer.mutations for buffer in node.outputs if buffer.mutations} == mutations
    assert [dep.name for dep in node.writes] == [buffer.name for buffer in node.outputs]
    assert not list(field_defects(text))


def test_one_node_is_read_whole() -> None:
    text = """\
op1: SchedulerNode(ComputedBuffer)
op1.writes = [MemoryDep('buf1', c0, {c0: 8}, None)]
op1.unmet_dependencies =
    [   MemoryDep('buf0', 100*c0 + 50*((c1//3)) + (ModularIndexing(c1, 1, 3)), {c0: 2, c1: s77}),
        StarDep(name='buf7', mode='atomic_add'),
        WeakDep(name='buf8', mutating_buf='buf9', is_fake=True)]
op1.met_dependencies = []
op1.min_input_distance = 0
op1.outputs = [
    buf1: ComputedBuffer
    buf1.layout = FixedLayout('cuda:0', torch.bfloat16, size=[s77, 4], stride=[4, 1], offset=s77)
    buf1.mutations = ['arg0_1']
    buf1.users = [
        NodeUser(node=SchedulerNode(name='op4'), can_inplace=True, is_weak=False),
        NodeUser(node=OUTPUT, can_inplace=False, is_weak=False),
    ]
]
op1.group.device = cuda:0
op1.sizes = ([8], [])
""".replace("dependencies =\n", "dependencies = \n")
    file = parse_ir(text, Path("ir_post_fusion.txt"))
    assert file.problems == ()
    (node,) = file.nodes
    assert node.unmet_dependencies == (
        MemoryDep("buf0", "100*c0 + 50*((c1//3)) + (ModularIndexing(c1, 1, 3))", (("c0", 2), ("c1", "s77"))),
        StarDep("buf7", "atomic_add"),
        WeakDep("buf8", "buf9", True),
    )
    (buffer,) = node.outputs
    assert buffer.layout == BufferLayout("FixedLayout", "cuda:0", "bfloat16", ("s77", 4), (4, 1), "s77")
    assert buffer.mutations == ("arg0_1",)
    assert buffer.users == (
        NodeUser("op4", "SchedulerNode", True, False),
        NodeUser("OUTPUT", None, False, False),
    )
    assert node.min_input_distance == 0
    assert node.fields == ()
    assert node.span is not None
    assert (node.span.first, node.span.last) == (1, 19)


def test_a_damaged_part_is_a_problem_and_the_rest_is_read() -> None:
    text = """\
op0: SchedulerNode(ComputedBuffer)
op0.writes = [MemoryDep('buf0', c0, {c0
op0.sizes = ([8], [])
what is this
class op0_loop_body:
    var_ranges = {p0: 8}
    def body(self, ops):
        get_index = self.get_ind


op1: SchedulerNode(ComputedBuffer)
op1.sizes = ([4], [])
"""
    file = parse_ir(text, Path("ir.txt"))
    assert [node.name for node in file.nodes] == ["op0", "op1"]
    assert file.nodes[1].sizes == ((4,), ())
    assert [str(problem).split(":")[1] for problem in file.problems] == ["2", "4", "8"]


def test_a_binary_file_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "ir_post_fusion.txt"
    file.write_bytes(b"op0: SchedulerNode(ComputedBuffer)\nop0.writes = \xff\xfe[]\n")
    with pytest.raises(UnreadableError, match=r"ir_post_fusion\.txt:2: not text"):
        read_text(file)


@given(st.text())
def test_no_text_at_all_stops_the_reader(text: str) -> None:
    parse_ir(text, Path("ir.txt"))


@given(st.integers(0, 7000), st.text(max_size=20))
def test_a_cut_or_spliced_file_is_read_without_an_error(at: int, splice: str) -> None:
    folder = next(path for path in all_graph_dirs() if "multi_output" in str(path))
    text = (folder / "ir_post_fusion.txt").read_text()
    parse_ir(text[:at], Path("ir.txt"))
    parse_ir(text[:at] + splice + text[at:], Path("ir.txt"))


_names = st.from_regex(r"[a-z]{1,6}[0-9]{1,3}", fullmatch=True)
_dims = st.integers(0, 10**9) | _names.map(lambda name: f"{name}*2")


@given(_names, st.lists(st.tuples(_names, _dims), unique_by=lambda pair: pair[0]), st.none() | _names)
def test_deps_round_trip(name: str, ranges: list[tuple[str, int | str]], mode: str | None) -> None:
    shown = ", ".join(f"{variable}: {size}" for variable, size in ranges)
    tail = f", {mode}" if mode else ""
    (dep,) = values.deps(f"[MemoryDep('{name}', 2*c0 + 1, {{{shown}}}{tail})]")
    assert dep == MemoryDep(name, "2*c0 + 1", tuple(ranges), mode)


@given(_names, st.lists(_dims, max_size=5))
def test_layouts_round_trip(device: str, size: list[int | str]) -> None:
    shown = ", ".join(map(str, size))
    layout = values.layout(f"FixedLayout('{device}', torch.float32, size=[{shown}], stride=[{shown}])")
    assert layout == BufferLayout("FixedLayout", device, "float32", tuple(size), tuple(size))


def test_blocks_keep_lines_that_stand_outside_nodes() -> None:
    split = blocks.split("junk\nop0: SchedulerNode(ComputedBuffer)\nnot.a.snode.snodes[0] =\n")
    assert split.unread == [(1, "junk"), (3, "not.a.snode.snodes[0] =")]


def test_arguments_read_by_pattern_and_those_parsed_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [
        folder / name for folder in all_graph_dirs() for name in ("ir_pre_fusion.txt", "ir_post_fusion.txt")
    ]

    def read_all() -> list[object]:
        ir._arguments.cache_clear()
        ir._op.cache_clear()
        return [parse_ir(file.read_text(), file).nodes for file in files]

    by_pattern = read_all()
    monkeypatch.setattr(ir, "_NAMES_AND_STRINGS", re.compile(r"(?!)"))
    assert read_all() == by_pattern
    ir._arguments.cache_clear()
    ir._op.cache_clear()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            "MemoryDep('buf0', ModularIndexing(c0, 1, 3), {c0: 8})",
            MemoryDep("buf0", "ModularIndexing(c0, 1, 3)", (("c0", 8),)),
        ),
        ("MemoryDep('buf0', c0, {c0: s77})", MemoryDep("buf0", "c0", (("c0", "s77"),))),
        ("MemoryDep('buf0', c0, {c0: 8}, atomic_add)", MemoryDep("buf0", "c0", (("c0", 8),), "atomic_add")),
        ("StarDep(name='buf0', mode='atomic_add')", StarDep("buf0", "atomic_add")),
    ],
)
def test_deps_of_every_form(text: str, value: Dep) -> None:
    assert values.deps(f"[{text}]") == (value,)


def test_a_constant_is_no_name() -> None:
    line = "store = ops.store('buf0', load, None, inf, True, -1, (x, 2.0), dtype = torch.float32)"
    op = ir._op(line, 1)
    assert isinstance(op, Op)
    assert op.args == ("buf0", Ref("load"), None, float("inf"), True, -1, (Ref("x"), 2.0))
    assert [name for name, _ in op.kwargs] == ["dtype"]


def test_sizes_in_brackets_are_no_tuples() -> None:
    assert values.iteration("(((s0//2)), 768)") == ("s0//2", 768)
    assert values.iteration("((2, s0), ())") == ((2, "s0"), ())
    assert values.sizes("([8, ((s0//2))], (3,))") == ((8, "s0//2"), (3,))


@pytest.mark.parametrize("text", ["([8, 2 2], [])", "([8, 3)", "[8]", "8", "", "(8)", "([8],, [])"])
def test_sizes_that_are_damaged(text: str) -> None:
    with pytest.raises(ValueError, match="not"):
        values.sizes(text)


@pytest.mark.parametrize("damaged", ["[NodeUser(node=OUTPUT, can_inplace=False", "[NodeUser()]", "[x]"])
def test_damaged_users_are_not_read_by_halves(damaged: str) -> None:
    with pytest.raises(ValueError, match=r"not|without"):
        values.users(damaged)


def test_paths_do_not_matter(tmp_path: Path) -> None:
    text = (all_graph_dirs()[0] / "ir_post_fusion.txt").read_text()
    assert parse_ir(text, tmp_path).nodes == parse_ir(text, Path("elsewhere")).nodes
