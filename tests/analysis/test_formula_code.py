"""What a formula says of its kernel: indices, shifts, divisions, overflow, masks that the loops decide."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_probe.analysis.annotation.annotate import RowsOfNode
from inductor_probe.analysis.formula.code import NodeCode
from inductor_probe.analysis.formula.formula import formula
from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.pages import page_of
from inductor_probe.backends.cpp import pointer_uses
from inductor_probe.capture.dumping import dump
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.formula import Convention, Formula
from inductor_probe.model.ir import BufferLayout, Dotted, Ref
from inductor_probe.model.pages import NodePage
from inductor_probe.report.formula import formula_lines
from tests.analysis.bodies import formula_text
from tests.analysis.made_bodies import F32, LOAD, body_node, op, store
from tests.dumps import graph_in, read_at
from tests.shared import made_once

PROGRAM = """\
import sys
import torch
import torch._inductor.config as config
device = sys.argv[1]
config.cpp.simdlen = 1 if sys.argv[2] == "scalar" else None
torch.manual_seed(0)
i = torch.arange(64, device=device) % 8
a = i.int()
x, y = torch.randn(8, device=device), torch.randn(64, 64, device=device)

def f(x, i, a, b, y):
    return (
        x[i] * 2.0, torch.gather(x, 0, i) * 3.0,
        a << b, a >> b, a << 3, a // b, a // 7, a % b, torch.div(a, b, rounding_mode="trunc"), a * b + a,
        y.tril(100),
    )

torch.compile(f)(x, i, a, a + 1, y)
"""
SHOWN = {
    "arg0_1[arg1_1[p0]] * 2.0": "x[i]", "arg0_1[arg1_1[p0]] * 3.0": "gather",
    "arg2_1[p0] << arg3_1[p0]": "<<", "arg2_1[p0] >> arg3_1[p0]": ">>", "arg2_1[p0] << 3": "<< 3",
    "arg2_1[p0] // arg3_1[p0]": "//", "arg2_1[p0] // 7": "// 7", "arg2_1[p0] % arg3_1[p0]": "%",
    "truncdiv(arg2_1[p0], arg3_1[p0])": "truncdiv", "i0 * arg3_1[p0] + i0": "a * b + a",
}  # fmt: skip


def formulas(graph: CompiledGraph) -> list[Formula]:
    """Return the formulas of all nodes, as `show` has them."""
    pages = [page_of(graph, leaf.name) for leaf in index_of(graph).nodes.leaves if leaf.body is not None]
    parts = [page.parts[0].formula for page in pages if isinstance(page, NodePage)]
    return [part for part in parts if part is not None]


def conventions(graph: CompiledGraph) -> dict[str, tuple[Convention, ...]]:
    """Return what is said of each value that is stored, by its text."""
    found = {}
    for item in formulas(graph):
        lines = [line.partition(" = ")[2] for line in formula_lines(item, 100) if line.startswith("  buf")]
        found[SHOWN.get(lines[0], lines[0])] = item.conventions
    return found


CODE: dict[str, dict[str, tuple[Convention, ...]]] = {
    "cpu vectors": {
        "x[i]": ("index-wrapped", "index-checked"), "gather": ("index-as-loaded", "index-checked"),
        "<<": ("shift-as-eager",), ">>": ("shift-as-eager",), "<< 3": (),
        "//": ("zero-division-raises",), "// 7": (), "%": ("zero-division-raises",),
        "truncdiv": ("division-open",), "a * b + a": (),
    },
    "cpu scalar": {
        "x[i]": ("index-wrapped", "index-checked"), "gather": ("index-as-loaded", "index-checked"),
        "<<": ("shift-as-eager",), ">>": ("shift-as-eager",), "<< 3": (),
        "//": ("zero-division-raises",), "// 7": (), "%": ("zero-division-raises",),
        "truncdiv": ("division-open",), "a * b + a": ("overflow-open",),
    },
    "cuda vectors": {
        "x[i]": ("index-wrapped", "index-checked"), "gather": ("index-as-loaded", "index-checked"),
        "<<": ("shift-open",), ">>": ("shift-open",), "<< 3": (),
        "//": ("zero-division-is-zero",), "// 7": (), "%": ("division-open",),
        "truncdiv": ("division-open",), "a * b + a": (),
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def compiled(warm: None, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], CompiledGraph]:
    """Return the graph of the program for `cpu vectors` and so on."""

    def graph(case: str) -> CompiledGraph:
        def make(folder: Path) -> None:
            (folder / "program.py").write_text(PROGRAM)
            args = case.split()
            target = "h200" if args[0] == "cuda" else None
            dump(folder / "program.py", args=args, target=target, record=False, out=folder)

        folder = made_once(tmp_path_factory, f"formula_code_{case.replace(' ', '_')}", make)
        (path,) = folder.glob("torch_compile_debug/run_*/torchinductor/model*")
        return read_at(path)

    return graph


@pytest.mark.compiles
@pytest.mark.parametrize("case", CODE)
def test_what_code_does_beyond_the_loop_body_is_read_in_the_kernel(
    compiled: Callable[[str], CompiledGraph], case: str
) -> None:
    """Nodes of one kernel: each gets what its own operations became, and not what a constant rules out."""
    said = conventions(compiled(case))
    assert {name: said[name] for name in CODE[case]} == CODE[case]


@pytest.mark.compiles
def test_a_mask_that_the_loops_decide_is_said(compiled: Callable[[str], CompiledGraph]) -> None:
    texts = [formula_lines(item, 100) for item in formulas(compiled("cuda vectors"))]
    (text,) = [text for text in texts if "# holds in every iteration: p1 - p0 <= 100" in text]
    # 4096 elements are whole blocks: `xmask = tl.full([XBLOCK], True, tl.int1)[:]`.
    assert "# the kernel has no mask for the ends of its loops: its blocks divide them" in text


def test_what_scatters_and_a_loss_do_with_indices(read: Callable[..., CompiledGraph]) -> None:
    """`atomic_add_vec` takes the index from a vector made of it; one that is clamped is not checked."""
    scatters = {item.node: item.conventions for item in formulas(read("torch-2.13.0-cpu-programs/scatters"))}
    assert scatters["op1"] == ("atomic-add", "index-wrapped", "index-checked")
    assert scatters["op3"] == ("index-wrapped", "index-checked", "overflow-open")  # `at - 3`
    training = "torch-2.13.0-cpu-programs/training"
    backward = {item.node: item.conventions for item in formulas(read_at(graph_in(training, "backward")))}
    assert backward["op15"] == ("atomic-add", "index-wrapped", "index-not-checked")
    forward = {item.node: item.conventions for item in formulas(read_at(graph_in(training, "forward")))}
    assert forward["op15"] == ("index-as-loaded", "index-checked")  # a selection of the program's own


def test_since_torch_214_sums_wrap_around(read: Callable[..., CompiledGraph]) -> None:
    """`int64_t(static_cast<std::make_unsigned_t<int64_t>>(tmp0) - ...)`: those have no overflow."""
    said = {item.node: item.conventions for item in formulas(read("torch-2.15.0-cpu-programs/scatters"))}
    assert said["op3"] == ("index-wrapped", "index-checked")


GATHER = (
    *LOAD,
    op("set", "self.set_indirect0", Ref("x")),
    op("j", "self.get_index", "index1"),
    op("y", "load", "arg1", Ref("j")),
    *store("y"),
)
NO_ROWS = RowsOfNode(frozenset(), frozenset())
INDEXES = (("index0", "p0"), ("index1", "indirect0"))


def said_of_index(*lines: str) -> tuple[Convention, ...]:
    """Return what is said of a gather in a C++ kernel with these lines."""
    source = "\n".join(("void kernel()", "{", *lines, "}"))
    assert pointer_uses(source, frozenset({"in_ptr1"}))
    code = NodeCode("cpp", source, {"arg1": frozenset({"in_ptr1"})}, NO_ROWS)
    return formula(body_node(GATHER, indexes=INDEXES), code=code).conventions


def test_without_code_nothing_is_said_of_an_index() -> None:
    assert formula(body_node(GATHER, indexes=INDEXES)).conventions == ("indirect-index",)


def test_an_index_in_a_form_that_is_not_known_stays_open() -> None:
    load = "auto tmp9 = in_ptr1[static_cast<int64_t>(tmp5)];"
    first = "auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];"
    assert said_of_index(first, "auto tmp5 = tmp0;", load) == ("index-as-loaded", "index-not-checked")
    other = ("auto tmp3 = int64_t(tmp0 + tmp2);", "auto tmp4 = tmp0 > 7;", "auto tmp5 = tmp4 ? tmp3 : tmp0;")
    assert said_of_index(first, *other, load) == ("indirect-index",)
    assert said_of_index(load) == ("indirect-index",)


def test_two_accesses_that_differ_leave_the_index_open() -> None:
    check = 'TORCH_CHECK((0 <= tmp0) & (tmp0 < 8L), "index out of bounds: 0 <= tmp0 < 8L");'
    lines = (
        "auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];",
        "auto tmp1 = in_ptr2[static_cast<int64_t>(x0)];",
    )
    loads = [f"auto tmp{row + 7} = in_ptr1[static_cast<int64_t>(tmp{row})];" for row in range(2)]
    assert said_of_index(*lines, check, loads[0]) == ("index-as-loaded", "index-checked")
    assert said_of_index(*lines, check, *loads) == ("indirect-index",)


I64 = Dotted("torch.int64")


@pytest.mark.parametrize(
    ("index", "comparison", "limit", "said"),
    [
        ("p1 - p0", "le", 3, "holds in every iteration: p1 - p0 <= 3"),
        ("p1 - p0", "le", 2, None),
        ("p0", "ge", 0, "holds in every iteration: p0 >= 0"),
        ("p0", "ge", 1, None),
        ("p0 + p1", "gt", 10, "holds in no iteration: p0 + p1 > 10"),
        ("p0 + p1", "gt", 9, None),
        ("p0//2", "lt", 4, "holds in every iteration: p0 // 2 < 4"),
        ("ModularIndexing(p0, 1, 4)", "lt", 4, "holds in every iteration: p0 % 4 < 4"),
        ("ModularIndexing(p0, 1, 4)", "eq", 3, None),
        ("p0 - 9", "ne", 0, "holds in every iteration: p0 - 9 != 0"),
        ("p0 + s0", "ge", 0, None),
    ],
)
def test_a_comparison_is_decided_only_where_the_loops_prove_it(
    index: str, comparison: str, limit: int, said: str | None
) -> None:
    ops = (
        *LOAD,
        op("k", "self.get_index", "index1"),
        op("e", "index_expr", Ref("k"), I64),
        op("c", "constant", limit, I64),
        op("m", comparison, Ref("e"), Ref("c")),
        op("z", "constant", 0.0, F32),
        op("w", "where", Ref("m"), Ref("x"), Ref("z")),
        *store("w"),
    )
    node = body_node(ops, (("p0", 8), ("p1", 4)), (("index0", "p0"), ("index1", index)))
    decided = [line for line in formula_text(formula(node)).splitlines() if line.startswith("# holds")]
    assert decided == ([] if said is None else [f"# {said}"])


def test_what_is_computed_for_nothing_is_not_said_to_hold() -> None:
    """`torch.cat` compares each index with 0 and with the size, and uses neither: `not used: p0 >= 0`."""
    ops = (
        *LOAD,
        op("k", "self.get_index", "index0"),
        op("e", "index_expr", Ref("k"), I64),
        op("c", "constant", 0, I64),
        op("m", "ge", Ref("e"), Ref("c")),
        *store("x"),
    )
    found = formula(body_node(ops))
    assert found.decided == ()
    assert "# not used: p0 >= 0" in formula_text(found)


def test_a_division_of_floats_is_not_said_to_be_open() -> None:
    layout = BufferLayout("FixedLayout", "cpu", "float32", (8,), (1,))
    ops = (*LOAD, op("y", "remainder", Ref("x"), Ref("x")), *store("y"))
    node = body_node(ops, layouts=(("arg0", layout, None),))
    code = NodeCode("triton", "tmp1 = (tmp0 % tmp0)", {}, NO_ROWS)
    assert formula(node, code=code).conventions == ()
    integers = body_node(
        ops, layouts=(("arg0", BufferLayout("FixedLayout", "cuda:0", "int32", (8,), (1,)), None),)
    )
    assert formula(integers, code=code).conventions == ("division-open",)
