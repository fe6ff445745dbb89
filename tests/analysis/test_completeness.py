"""What is missing from a file is noticed, and nothing is said of a file that lacks nothing."""

from __future__ import annotations

import ast
import importlib.util
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inductor_probe.analysis.check import check_graph
from inductor_probe.analysis.completeness.cpp_names import cpp_defects
from inductor_probe.analysis.completeness.fx import fx_defects, runnable_defects
from inductor_probe.analysis.completeness.python_names import undefined_names
from inductor_probe.analysis.completeness.wrapper import Chosen
from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.pages import page_of
from inductor_probe.model.check import GraphCheck
from inductor_probe.model.debug_dir import GraphDir
from inductor_probe.model.pages import NodePage
from inductor_probe.reader.debug_dir import read_graph, texts_of
from inductor_probe.reader.output_code import parse_output_code
from inductor_probe.reader.python_text import parse_readable_part
from tests.conftest import REPOSITORY
from tests.dumps import copy_of, every_graph, graph_in, read_at

MLP = graph_in("torch-2.13.0-cpu/mlp_train")
FLIP = graph_in("torch-2.13.0-cpu/hflip_cl")
ADAM = graph_in("torch-2.11.0-cuda/foreach_adam")
LAYER_NORM = graph_in("torch-2.11.0-cuda/layernorm_grad")
HERE = Path("here")


def check(folder: Path) -> GraphCheck:
    graph = read_graph(GraphDir(folder, 0, None))
    return check_graph(graph, texts_of(graph))


@every_graph
def test_nothing_is_missing_from_a_fixture(folder: Path) -> None:
    checked = check(folder)
    assert [str(problem) for problem in checked.problems] == []
    for file in checked.files:
        assert file.counted == 0
        parts = file.read + file.checked + file.comments + file.counted + file.unread
        assert (file.lines, file.files) == (parts, 1)


def edited(graph: Path, to: Path, name: str, edit: Callable[[str], str]) -> list[str]:
    """Return what is said of a graph of which one file was edited."""
    copy = to / graph.name
    shutil.copytree(graph, copy)
    before = (copy / name).read_text()
    after = edit(before)
    assert after != before
    (copy / name).write_text(after)
    return [problem.message for problem in check(copy).problems]


def without(pattern: str) -> Callable[[str], str]:
    """Drop the first line that matches."""
    return lambda text: re.sub(rf"^{pattern}\n", "", text, count=1, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "edit", "message"),
    [
        # IR
        ("ir_post_fusion.txt", without(r"op2\.writes = .*"), "op2 has no line op2.writes"),
        ("ir_post_fusion.txt", without(r"op2\.met_dependencies = .*"), "has no line op2.met_dependencies"),
        ("ir_post_fusion.txt", without(r"op2\.sizes = .*"), "op2 has no line op2.sizes"),
        ("ir_post_fusion.txt", without(r"op2\.min_input.*"), "op2 has no line op2.min_input_distance"),
        ("ir_post_fusion.txt", without(r"    buf2\.layout = .*"), "output buf2 has no line buf2.layout"),
        ("ir_post_fusion.txt", without(r"buf2_layout = .*"), "op2 has 0 lines buf2_layout for 1"),
        ("ir_pre_fusion.txt", without(r"op0\.node\.kernel = .*"), "op0 has no line op0.node.kernel"),
        ("ir_pre_fusion.txt", without(r"    var_ranges = .*"), "the loop body of op2 has no var_ranges"),
        ("ir_pre_fusion.txt", without(r"    index0 = .*"), "op2 has index1 where index0 is expected"),
        ("ir_pre_fusion.txt", without(r"        return store"), "op3 has a function without return"),
        ("ir_pre_fusion.txt", without(r""), "expected two empty lines between nodes"),
        # FX
        ("fx_graph_readable.py", without(r"    def forward.*"), "class GraphModule has no def forward"),
        ("fx_graph_transformed.py", without(r"        return .*"), "class GraphModule has no return"),
        ("fx_graph_transformed.py", without(r"class .*"), "a graph without its class line"),
        ("fx_graph_transformed.py", without(r"        erf: .*"), "erf is used before it is defined"),
        # the program that runs the graph
        ("fx_graph_runnable.py", without(r"        erf = .*"), "erf is used but not defined"),
        ("fx_graph_runnable.py", without(r"    reader\.tensor\(buf0.*"), "nothing uses the storage buf0"),
        ("fx_graph_runnable.py", without(r"import torch\._inductor\.config"), "no module of that name"),
        ("fx_graph_runnable.py", without(r"mod = Repro\(\)"), "the line mod = Repro() is missing"),
        # the wrapper and its kernels
        ("output_code.py", without(r"        buf2 = empty.*"), "buf2 is used but not defined"),
        ("output_code.py", without(r"        return \(.*"), "the wrapper has no return"),
        ("output_code.py", without(r"        args\.clear\(\)"), "the line args.clear() is missing"),
        ("output_code.py", without(r" +cpp_fused_\w+\(.*"), "nothing launches the kernel"),
        ("output_code.py", without(r" +auto tmp0 = .*"), "tmp0 is used but not declared"),
        ("output_code.py", without(r" +for\(int64_t x0=.*"), "x0 is used but not declared"),
        ("output_code.py", without(r"    \{"), "closes nothing"),
        ("output_code.py", without(r"recursively_apply_fns = .*"), "the line recursively_apply_fns = "),
        ("output_code.py", without(r"if __name__ == .*"), "the last part, if __name__"),
    ],
)  # fmt: skip
def test_a_line_that_is_missing_is_noticed(
    tmp_path: Path, name: str, edit: Callable[[str], str], message: str
) -> None:
    messages = edited(MLP, tmp_path, name, edit)
    assert any(message in each for each in messages), messages


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (without(r"    tmp0 = tl\.load.*"), "tmp0 is used but not defined"),
        (
            lambda text: text.replace("import triton.language as tl\n", ""),
            "tl is used but not defined",
        ),
        (lambda text: text.replace("    tmp1 = ", "    tmp1 = tmp0 tmp0 + ", 1), "cut off, or not Python"),
    ],
)
def test_triton_kernels_are_checked(tmp_path: Path, edit: Callable[[str], str], message: str) -> None:
    messages = edited(LAYER_NORM, tmp_path, "output_code.py", edit)
    assert any(message in each for each in messages), messages


def test_a_node_that_only_one_ir_file_has_is_noticed(tmp_path: Path) -> None:
    """The last node, which nothing reads."""
    messages = edited(FLIP, tmp_path, "ir_post_fusion.txt", lambda text: text.replace("op0", "op7"))
    assert {"op0 is missing: ir_pre_fusion.txt has it", "op7 is not in ir_pre_fusion.txt"} <= set(messages)


def test_the_wrapper_takes_what_the_graph_takes(tmp_path: Path) -> None:
    messages = edited(FLIP, tmp_path, "output_code.py", lambda text: text.replace("arg0_1", "arg7_1"))
    assert "the wrapper takes arg7_1, the FX graph arg0_1" in messages


def test_of_a_file_with_a_bad_line_nothing_more_is_asked(tmp_path: Path) -> None:
    messages = edited(
        MLP, tmp_path, "ir_post_fusion.txt", lambda text: text.replace("op2.sizes", "what is this", 1)
    )
    assert [message for message in messages if not message.startswith("not understood: what is this")] == []


CPP = """
#include "prefix.h"
extern "C" void kernel(const float* in_ptr0, float* out_ptr0, const int64_t ks0)
{
    #pragma omp parallel for
    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(ks0); x0+=static_cast<int64_t>(1L))
    {
        auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + x0, 16); // a comment with @ in it
        auto tmp1 = [&](auto value) { return value < decltype(value)(2.0f) ? value : -value; }(tmp0);
        if (x0 > 3 && ks0 < 4) { out_ptr0[x0] = 1e-05f; }
        tmp1.template cast<float, 1>().store(out_ptr0 + x0);
    }
}
"""


def test_c_plus_plus_with_nothing_wrong() -> None:
    assert cpp_defects(CPP, 1) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("auto tmp0 =", "auto tmp9 =", 9, "tmp0 is used but not declared"),
        ("+ x0, 16)", "+ x1, 16)", 8, "x1 is used but not declared"),
        ("    for(int64_t", "    lorem ipsum for(int64_t", 6, "lorem is used but not declared"),
        ("{ out_ptr0[x0]", "out_ptr0[x0]", 13, "} closes nothing"),
        ("1e-05f;", "1e-05f", 10, "; is missing before }"),
        ("static_cast<int64_t>(ks0)", "static_cast<int64_t>(ks0", 6, "( is not closed before ;"),
        ("ks0 < 4)", "ks0 < )", 10, "unexpected < before )"),
        ("ks0 < 4)", "ks0 4)", 10, "an operator is missing before 4"),
        ("ks0 < 4)", "ks0 $ 4)", 10, "not C++: $ 4)"),
        ("// a", "/* a", 8, "not C++: /* a"),
        ("#pragma omp", "#pragma oops", 5, "not understood: #pragma oops"),
        ("kernel(const float* in_ptr0", "kernel(const float* in_ptr1", 8, "in_ptr0 is used"),
    ],
)  # fmt: skip
def test_c_plus_plus_with_something_wrong(old: str, new: str, line: int, message: str) -> None:
    assert CPP.count(old) == 1
    defects = cpp_defects(CPP.replace(old, new), 1)
    assert any(message in sentence and place == line for place, sentence in defects), defects


FX = """class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[2, 3]", arg1_1: "Sym(s0)"):
        # File: /repro/a.py:1 in f, code: return x.sin().cos()
        sin: "f32[2, 3]" = torch.ops.aten.sin.default(arg0_1)
        copy_: "f32[2, 3]" = torch.ops.aten.copy_.default(arg0_1, sin);  arg0_1 = copy_ = None
        cos: "f32[2, 3]" = torch.ops.aten.cos.default(sin);  sin = None
        return (cos, None)
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("", "", None),
        ("default(sin);", "default(sin, complex(0, 1));", None),  # torch 2.15
        (";  sin = None", "", "sin is not freed after its last use"),
        (";  arg0_1 = copy_ = None", ";  copy_ = None", "arg0_1 is not freed after its last use"),
        ("default(sin);  sin", "default(arg1_1);  sin", "sin is freed, but not where it is used last"),
        ("(cos, None)", "(sin, None)", "sin is freed but returned"),
        ("(cos, None)", "(tan, None)", "tan is returned but not defined"),
        ("default(arg0_1)", "default(arg0_1))", "not understood: torch.ops.aten.sin.default(arg0_1))"),
        ('sin: "f32[2, 3]"', 'sin: "f32[2@, 3]"', 'not a type: "f32[2@, 3]"'),
        ('arg1_1: "Sym(s0)"', 'arg1_1: "Sy{m(s0)"', 'not understood: arg1_1: "Sy{m(s0)"'),
    ],
)
def test_fx_graphs(old: str, new: str, message: str | None) -> None:
    messages = [message for _, message in fx_defects(FX.replace(old, new), frees_unused=True)]
    assert message in messages if message else messages == []


@pytest.mark.parametrize(
    ("text", "undefined"),
    [
        ("x = 1\ndel x\nprint(x)", ["x"]),
        ("def f():\n    return later\nlater = 1", []),
        (
            "def f(a, *b, c=1, **d):\n    return [a + e for e in b if e], c, d, {k: v for k, v in d.items()}",
            [],
        ),
        ("if __name__ == '__main__':\n    x = 1\nprint(x)", []),
        ("class A:\n    x = 1\n    def f(self):\n        return x", ["x"]),
        ("try:\n    import a\nexcept ImportError as error:\n    print(error, a)", []),
        ("with open('a') as f, g() as h:\n    f, h", ["g"]),
        ("x: int = y", ["y"]),
        ("f = lambda a, b=c: a + b + d", ["c", "d"]),
        ("from torch.nn import *\nLinear(), relu()", ["relu"]),
        ("def f():\n    global g\n    g += 1", []),
        ("print((n := 3), n)", []),
    ],
)
def test_names_of_python(text: str, undefined: list[str]) -> None:
    defects = undefined_names(parse_readable_part(text, HERE).tree)
    assert [message.partition(" ")[0] for _, message in defects] == undefined


def test_torch_prints_a_program_without_arguments_that_is_not_python() -> None:
    text = (FLIP / "fx_graph_runnable.py").read_text()
    text = re.sub(r"    (?:buf0 = )?reader\..*\n", "", text).replace("forward(self, arg0_1)", "forward(self)")
    text = text.replace("(arg0_1,", "(mod,").replace("  arg0_1 = None", "")
    assert "def load_args(reader):\nload_args._version" in text
    assert not [message for _, message in runnable_defects(text, HERE, None) if "not Python" in message]


@pytest.mark.parametrize(
    "module",
    [
        "self.0 = Module()",
        "self.true_graph_0 = <lambda>(\n  (true_graph_0): <lambda>()\n  (false_graph_0): <lambda>()\n)",
        "self.layers = Module(\n  (0): Module()\n)",
        "self.layers = Module(\n  (0): Module()\n).cuda()",
    ],
)
def test_modules_in_a_program_that_are_no_python_are_no_defect(module: str) -> None:
    """A conditional in a conditional, and torch.export of nn.Sequential, were a file that is cut off."""
    text = f"class Repro(Module):\n    def __init__(self):\n        super().__init__()\n        {module}\n"
    assert not [message for _, message in runnable_defects(text, HERE, None) if "not Python" in message]


# The same damages as the benchmark, whose figures are in benchmarks/results/reading.md.


def _benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "damage", REPOSITORY / "benchmarks" / "reading" / "damage.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DAMAGE = _benchmark()
SOURCES = [MLP, FLIP, LAYER_NORM]


def test_200_planted_damages(tmp_path: Path) -> None:
    """Garbage is noticed nearly everywhere, and a line that is gone from IR and FX files."""
    rng = random.Random(18)  # noqa: S311 - the same damages every time
    planted: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    examples: list[str] = []
    while planted.total() < 200:
        kind, damage = rng.choice(list(DAMAGE.KINDS)), rng.choice(list(DAMAGE.DAMAGES))
        graph = rng.choice(SOURCES)
        name = DAMAGE.KINDS[kind]
        text = (graph / name).read_text()
        damaged = DAMAGE.damaged_text(text, kind, DAMAGE.DAMAGES[damage], rng)
        if damaged is None:
            continue
        group = damage if damage.startswith(("garbage", "cut")) else f"{damage}, {name.partition('_')[0]}"
        planted[group] += 1
        if not DAMAGE.noticed(graph, name, damaged, tmp_path):
            missed[group] += 1
            examples.append(f"{damage} in {graph / name}")
    assert missed["garbage line"] <= 1, examples
    assert missed["cut off"] == 0, examples
    for group in ("line dropped, ir", "line dropped, fx", "range dropped, ir", "range dropped, fx"):
        assert missed[group] <= planted[group] * 0.2, (group, examples)
    assert missed.total() <= 200 * 0.12, examples


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="abx019 \n\t(){}[]<>;:,.=+-*/&|#\"'\\@$if forauto", max_size=200))
def test_any_text_is_survived(text: str) -> None:
    """Whatever a file holds, the checks end, and say where."""
    for place, message in (*cpp_defects(text, 1), *fx_defects(text), *runnable_defects(text, HERE, FX)):
        assert message
        assert place is not None
    code = parse_output_code(text, HERE)
    assert code.entry is None


@pytest.mark.parametrize(
    "text",
    [
        "{" * 50_000,
        "/*" * 200_000,
        "<" * 100_000,
        "auto a = [&](auto b) { " * 5_000,
        "x" * 1_000_000,
        "1" * 1_000_000,
        "f<" * 100_000 + ">" * 100_000,
    ],
    ids=lambda text: text[:8],
)
def test_c_plus_plus_made_to_be_slow(text: str) -> None:
    assert cpp_defects(text, 1)


def test_several_variables_of_one_declaration_and_attributes_are_known() -> None:
    """The template of flex attention has both."""
    text = """extern "C" void kernel(const float* in_ptr0, float* out_ptr0)
{
    int64_t i = 0, j = 0, n = 0;
    for ([[maybe_unused]] auto z : c10::irange(i, n)) {
        out_ptr0[j] = in_ptr0[i + j];
    }
}
"""
    assert cpp_defects(text, 1) == []
    assert cpp_defects(text.replace(", j = 0", ""), 1) == [(5, "j is used but not declared")]


def test_names_in_what_a_template_switches_off_need_no_definition() -> None:
    """As in the template of flex attention: `sparse_full_kv_idx_offset` is defined nowhere in its text."""
    text = "def kernel(a):\n    FULL : tl.constexpr = False\n    if FULL:\n        a = a + b\n    return a\n"
    known = frozenset(("tl",))
    assert [name for _, name in undefined_names(ast.parse(text), known=known)]
    assert not list(undefined_names(Chosen.of(ast.parse(text)), known=known))
    assert list(undefined_names(Chosen.of(ast.parse(text.replace("False", "True"))), known=known))


@pytest.mark.parametrize(("name", "said"), [("buf4", 0), ("buf6", 1)])
def test_a_node_may_name_a_buffer_that_was_changed_in_place_as_it_was_called_before(
    tmp_path: Path, name: str, said: int
) -> None:
    """Loops that C++ recomputes to fuse them read buf4 again, where buf22 is what a collective made of it."""
    folder = graph_in("torch-2.13.0-cpu-programs/collective_kinds")
    copy = Path(shutil.copytree(folder, tmp_path / folder.name))
    file = copy / "ir_post_fusion.txt"
    text = file.read_text()
    assert "unmet_dependencies = [MemoryDep('buf22', " in text
    file.write_text(text.replace("[MemoryDep('buf22', ", f"[MemoryDep('{name}', "))
    defects = [str(one) for one in check(copy).problems if "does not list it as a user" in str(one)]
    assert len(defects) == said


def without_members(text: str) -> str:
    """Return `ir_post_fusion.txt` as torch prints it where `debug_str_extra` of foreach nodes fails."""
    blocks = text.split("\n\n\n")
    return "\n\n\n".join(
        block.partition("\n]\n")[0] + "\n]" if ": Foreach" in block.partition("\n")[0] else block
        for block in blocks
    )


def test_members_that_torch_does_not_print_are_a_note_and_are_read_before_fusion(tmp_path: Path) -> None:
    """Of a foreach optimizer torch 2.13 prints no members: 100 problems, and each node was "removed"."""
    copy = copy_of(ADAM, tmp_path)
    whole = read_at(copy)
    file = copy / "ir_post_fusion.txt"
    text = without_members(file.read_text())
    assert "snodes" in file.read_text()
    assert "snodes" not in text
    file.write_text(text)
    checked = check(copy)
    assert [str(problem) for problem in checked.problems] == []
    assert checked.unlinked == ()
    (remark,) = checked.remarks
    assert (remark.code, remark.numbers) == ("members-left-out", (("nodes", 2),))
    graph = read_at(copy)
    assert index_of(graph).nodes.leaf.keys() == index_of(whole).nodes.leaf.keys()
    page = page_of(graph, "op2")
    assert isinstance(page, NodePage)
    assert not page.removed
    (part,) = page.parts
    assert part.formula is not None


def test_a_short_that_is_shifted_declares_its_bound_by_decltype() -> None:
    """`max_shift is used but not declared` was said of each shift of int8 and int16."""
    text = """extern "C" void kernel(const int16_t* in_ptr0, int16_t* out_ptr0)
{
    auto tmp0 = in_ptr0[0];
    auto tmp1 = [&]()
    {
        constexpr decltype(tmp0) max_shift = sizeof(int16_t) * CHAR_BIT - std::is_signed_v<int16_t>;
        if ((static_cast<std::make_signed_t<int16_t>>(tmp0) < 0) || (tmp0 >= max_shift))
        {
            return decltype(tmp0)(tmp0 >> max_shift);
        }
        return decltype(tmp0)(tmp0 >> tmp0);
    }
    ()
    ;
    out_ptr0[0] = tmp1;
}
"""
    assert cpp_defects(text, 1) == []
    assert cpp_defects(text.replace("max_shift = ", "most = "), 1) == [
        (7, "max_shift is used but not declared")
    ]


def test_a_user_that_torch_removed_may_still_be_listed(tmp_path: Path) -> None:
    """Of an item of a library call that nothing uses, torch 2.5 removes the node, and not the user."""
    graph = copy_of(FLIP, tmp_path)
    for name in ("ir_pre_fusion.txt", "ir_post_fusion.txt"):
        file = graph / name
        text = file.read_text()
        users = "NodeUser(node=OUTPUT, can_inplace=False, is_weak=False)"
        assert users in text
        removed = "NodeUser(node=ExternKernelSchedulerNode(name='op7'), can_inplace=False, is_weak=False)"
        file.write_text(text.replace(users, f"{users}, {removed}"))
    assert [str(problem) for problem in check(graph).problems] == []


def test_handles_of_launches_may_count_through_the_process(tmp_path: Path) -> None:
    """The second graph of a process was "the launch with debug handle 1 is missing" (torch 2.9)."""

    def counted_on(text: str) -> str:
        return re.sub(r"(\[Provenance debug handles\] \S+:)(\d+)", lambda m: f"{m[1]}{int(m[2]) + 7}", text)

    assert edited(MLP, tmp_path, "output_code.py", counted_on) == []


def test_an_input_that_torch_leaves_out_of_the_wrapper_is_a_note(tmp_path: Path) -> None:
    """Releases leave out one that is None."""
    graph = copy_of(FLIP, tmp_path)
    for name in ("fx_graph_readable.py", "fx_graph_transformed.py", "fx_graph_runnable.py"):
        file = graph / name
        text = file.read_text()
        file.write_text(
            text.replace("def forward(self, arg0_1", "def forward(self, arg7_1, arg0_1").replace(
                "def load_args(reader):\n",
                "def load_args(reader):\n    reader.const('arg7_1')  # arg7_1, filtered out\n",
            )
        )
    checked = check(graph)
    assert [str(problem) for problem in checked.problems] == []
    assert [(remark.code, remark.numbers) for remark in checked.remarks] == [
        ("input-left-out", (("names", ("arg7_1",)),))
    ]


@pytest.mark.parametrize(
    "line",
    [
        "    # arg7_1 was unsupported type for dumping: <class 'object'>",
        "    reader.unsupported('arg7_1')  # unsupported type for dumping: <class 'object'>",
    ],
)
def test_an_argument_that_no_program_can_be_given_is_not_missing(line: str) -> None:
    text = (FLIP / "fx_graph_runnable.py").read_text()
    text = text.replace("def forward(self, arg0_1", "def forward(self, arg7_1, arg0_1")
    assert [message for _, message in runnable_defects(text, HERE, None)] == [
        "load_args lacks arg7_1 of forward"
    ]
    text = text.replace("def load_args(reader):\n", f"def load_args(reader):\n{line}\n")
    assert [message for _, message in runnable_defects(text, HERE, None)] == []


def test_a_program_that_torch_does_not_write_is_not_damaged(tmp_path: Path) -> None:
    sentence = "Repro is not generated due to existence of BackwardState in graph input"
    assert edited(FLIP, tmp_path, "fx_graph_runnable.py", lambda _: sentence) == []


def test_a_wrapper_without_benchmark_is_whole_where_torch_was_told_so(tmp_path: Path) -> None:
    graph = copy_of(FLIP, tmp_path)
    code, program = graph / "output_code.py", graph / "fx_graph_runnable.py"
    text = code.read_text()
    code.write_text(text[: text.index("def get_args")])
    assert [problem.message for problem in check(graph).problems] != []
    setting = "torch._inductor.config.trace.enabled = False\n"
    assert setting in program.read_text()
    program.write_text(
        program.read_text().replace(setting, f"torch._inductor.config.benchmark_harness = False\n{setting}")
    )
    assert [problem.message for problem in check(graph).problems] == []
