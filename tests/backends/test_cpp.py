"""C++ kernels: loop nests, parameters, accesses, over versions and against text made to mislead."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.backends import CPP
from inductor_probe.backends.cpp import loop_nests, plain
from inductor_probe.model.code import CppFacts, Kernel, LoopNest
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.report.pages.kernels import how
from inductor_probe.report.words.kernels import fact_texts
from tests.dumps import every_graph, read_at

Read = Callable[..., CompiledGraph]


def only_kernel(graph: CompiledGraph) -> tuple[Kernel, CppFacts]:
    assert graph.code is not None
    (kernel,) = graph.code.kernels
    assert isinstance(kernel.details, CppFacts)
    return kernel, kernel.details


def nests_of(body: str) -> tuple[LoopNest, ...]:
    lines = body.split("\n")
    return loop_nests(lines, 1, len(lines))


def loop(variable: str, stop: int, step: int = 1, start: int = 0) -> str:
    first, last, by = (f"static_cast<int64_t>({number}L)" for number in (start, stop, step))
    return f"for(int64_t {variable}={first}; {variable}<{last}; {variable}+={by})"


def test_a_nest_knows_its_loops_in_order(read: Read) -> None:
    _, facts = only_kernel(read("torch-2.13.0-cpu/hflip_cl"))
    (nest,) = facts.nests
    assert nest.kind == "scalar"
    assert nest.features == ("reversed-access",)
    assert [(at.variable, at.trips, at.step) for at in nest.order] == [
        ("x0", 224, 1),
        ("x1", 224, 1),
        ("x2", 3, 1),
    ]
    assert nest.loops[0].pragmas == ("omp for",)


def test_lines_of_nests_are_lines_of_the_source(read: Read) -> None:
    kernel, facts = only_kernel(read("torch-2.13.0-cpu/aa_separable_cl"))
    lines = kernel.source.split("\n")
    assert len(facts.nests) == 4
    for nest in facts.nests:
        assert lines[nest.line - 1].lstrip().startswith("for(")
        indent = len(lines[nest.line - 1]) - len(lines[nest.line - 1].lstrip())
        assert lines[nest.last - 1] == " " * indent + "}"


def test_a_tail_of_old_torch_is_no_scalar_nest(read: Read) -> None:
    _, facts = only_kernel(read("torch-2.1.2-cpu/dynamic_shapes"))
    assert [nest.kind for nest in facts.nests] == ["vectorised", "tail", "vectorised", "tail", "vectorised"]
    assert [facts.count(kind) for kind in ("vectorised", "scalar", "tail")] == [3, 0, 2]
    assert (facts.index_type, facts.index_width) == ("long", "int64")
    assert facts.nests[0].order[0].stop == "16*(at::native::div_floor_integer((ks0*ks1), 16))"


@pytest.mark.parametrize(
    ("dtypes", "step", "bits"),
    [(("uint8_t",), 16, 512), (("int8_t",), 8, 256), (("uint8_t", "float"), 16, 512), (("half",), 32, 512)],
)
def test_integers_of_8_bits_fill_a_quarter_of_a_vector(dtypes: tuple[str, ...], step: int, bits: int) -> None:
    """A kernel of uint8 for AVX512 was said to have vectors of 128 bits, and to be compiled for NEON."""
    loads = "".join(f"at::vec::Vectorized<{dtype}>::loadu(in_ptr0 + x0);" for dtype in dtypes)
    text = 'extern "C"  void  kernel(const uint8_t* in_ptr0)'
    text += f"\n{{\n{loop('x0', 1024, step)}\n{{\n{loads}\n}}\n}}\n"
    facts = CPP.read(text).details
    assert isinstance(facts, CppFacts)
    assert facts.vector_bits == bits


def test_threads_vector_width_and_checks(read: Read) -> None:
    _, facts = only_kernel(read("torch-2.4.1-cpu/layernorm_grad"))
    assert (facts.parallel, facts.threads, facts.vector_bits) == (True, 2, 512)
    assert facts.reductions == ("welford",)
    assert not facts.division_check
    _, new = only_kernel(read("torch-2.13.0-cpu/dynamic_shapes"))
    assert (new.threads, new.division_check, new.index_type) == (None, True, "int64_t")
    assert new.reductions == ("sum",)
    (row,) = kernel_rows(read("torch-2.4.1-cpu/layernorm_grad"))
    assert ("openmp", "parallel, 2 threads") in list(fact_texts(row))


@every_graph
def test_every_loop_of_every_fixture_is_counted(folder: object) -> None:
    graph = read_at(folder)
    assert graph.code is not None
    for kernel in graph.code.kernels:
        if kernel.backend == "cpp":
            assert isinstance(kernel.details, CppFacts)
            found = sum(len(nest.loops) for nest in kernel.details.nests)
            assert found == kernel.source.count("for(") + kernel.source.count("for (")
            assert all(at.last >= at.line for nest in kernel.details.nests for at in nest.loops)


def test_braces_in_comments_and_strings_close_nothing() -> None:
    body = "\n".join(
        [
            loop("x0", 4),
            "{",
            '    TORCH_CHECK(ok, "} } for (int i = 0; i < 3; i++) {");  // }}} at::vec:: { for (',
            "    /* } for (int64_t x9 = 0; x9 < 3; x9++) {",
            "       } */",
            "    auto tmp0 = '}';",
            f"    {loop('x1', 16, 16)}",
            "    {",
            "        auto tmp1 = at::vec::Vectorized<float>(0);",
            "    }",
            "}",
            loop("x0", 2),
            "    out_ptr0[x0] = 1;",
        ]
    )
    first, second = nests_of(body)
    assert (first.kind, first.line, first.last) == ("vectorised", 1, 11)
    assert [(at.variable, at.depth) for at in first.loops] == [("x0", 0), ("x1", 1)]
    assert (second.kind, second.line, second.last) == ("scalar", 12, 13)


VECTORS = "    auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0, 16);"


@pytest.mark.parametrize(
    ("loops", "kind"),
    [
        ([loop("x0", 64), loop("x1", 3, 16)], "underfilled"),  # 3 of 16 lanes
        ([loop("x0", 64), loop("x1", 16, 16)], "vectorised"),
        ([loop("x0", 64), loop("x1", 17, 16)], "vectorised"),  # and a tail of one
        ([loop("x0", 3, 16), loop("x1", 64, 16), loop("x0_inner", 3)], "underfilled"),  # of a tile of 16 x 16
        ([loop("x0", 48, 16), loop("x1", 64, 16), loop("x0_inner", 16)], "vectorised"),
    ],
)
def test_vectors_of_which_none_is_full_are_not_vectorised(loops: list[str], kind: str) -> None:
    (nest,) = nests_of("\n".join([*loops, "{", VECTORS, "}"]))
    assert nest.kind == kind


def test_a_nest_with_a_full_vector_in_one_of_its_loops_is_vectorised() -> None:
    short, full = ([loop(name, stop, 16), "{", VECTORS, "}"] for name, stop in (("x1", 3), ("x2", 64)))
    (nest,) = nests_of("\n".join([loop("x0", 64), "{", *short, *full, "}"]))
    assert nest.kind == "vectorised"


def test_kernels_say_how_many_of_their_nests_have_no_full_vector(read: Read) -> None:
    graph = read("torch-2.13.0-cpu-programs/short_softmax")
    row = next(row for row in kernel_rows(graph) if isinstance(row.details, CppFacts))
    assert isinstance(row.details, CppFacts)
    assert [nest.kind for nest in row.details.nests] == ["underfilled", "underfilled"]
    assert how(row) == "C++, 0/2 vec"
    assert {"underfilled", "vectorised", "scalar"} & {*row.traits} == {"underfilled"}
    assert row.details.vector_bits == 256


def test_loops_without_braces_and_pragmas_between_nest() -> None:
    body = "\n".join(
        [
            "#pragma omp for collapse(2)",
            loop("x0", 4),
            loop("x1", 5),
            "#pragma GCC ivdep",
            loop("x2", 6),
            "{",
            "}",
        ]
    )
    (nest,) = nests_of(body)
    assert [(at.variable, at.depth, at.pragmas) for at in nest.loops] == [
        ("x0", 0, ("omp for collapse(2)",)),
        ("x1", 1, ()),
        ("x2", 2, ("GCC ivdep",)),
    ]


def test_a_text_that_is_cut_off_ends_its_nest() -> None:
    (nest,) = nests_of("\n".join([loop("x0", 4), "{", loop("x1", 4), "{", "auto tmp0 = 1;"]))
    assert (nest.last, nest.loops[1].last) == (5, 5)


def test_transposes_tell_their_tiles() -> None:
    sides = "static_cast<int64_t>(16),static_cast<int64_t>(8)"
    text = f"transpose_mxn<float,{sides},false>(in_ptr1 + 0, 16, tmp1, 16);"
    (nest,) = nests_of("\n".join([loop("x0", 64, 16), "{", text, "}"]))
    assert nest.tile == (16, 8)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("static_cast<int64_t>(1000L)", 1000),
        ("static_cast<long>((ks0*ks1))", "ks0*ks1"),
        ("static_cast<long>(16L*(div_floor(static_cast<long>(ks0), 16L)))", "16*(div_floor((ks0), 16))"),
        ("(a) + (b)", "(a) + (b)"),
    ],
)  # fmt: skip
def test_numbers_lose_casts_and_suffixes(text: str, value: object) -> None:
    assert plain(text) == value


def test_accesses_tell_reading_from_writing() -> None:
    source = """
extern "C" void kernel(float* in_out_ptr0, const float* in_ptr0, float* out_ptr0)
{
    auto out_ptr1 = in_out_ptr0;
    auto tmp0 = in_ptr0[static_cast<int64_t>(x0 + 2L*x1)];
    out_ptr0[static_cast<int64_t>(x0)] = tmp0;
    tmp1.store(out_ptr1 + static_cast<int64_t>(x0), 8);
    atomic_add(&out_ptr0[static_cast<int64_t>(tmp3)], tmp0);
    transpose_mxn<float,16,16,false>(in_ptr0 + static_cast<int64_t>(x1), 16, tmp5, 16);
    transpose_mxn<float,16,16,false>(tmp5, 16, out_ptr0 + static_cast<int64_t>(x1), 16);
    auto tmp6 = out_ptr0[x0] == tmp0;  // in_ptr0[1] = 2
}
"""
    names = frozenset(("in_out_ptr0", "in_ptr0", "out_ptr0"))
    uses = CPP.pointer_uses(source, names)
    assert [(use.line, use.kind, use.pointer, use.alias) for use in uses] == [
        (5, "load", "in_ptr0", None),
        (6, "store", "out_ptr0", None),
        (7, "store", "in_out_ptr0", "out_ptr1"),
        (8, "atomic", "out_ptr0", None),
        (9, "load", "in_ptr0", None),
        (10, "store", "out_ptr0", None),
        (11, "load", "out_ptr0", None),
    ]
    assert [use.index for use in uses[:3]] == ["x0 + 2*x1", "x0", "x0"]


def test_pointers_of_templates_are_told_by_const() -> None:
    helper = "void micro_gemm() { for (int64_t m = 0; m < M; m += 2) { } }"
    parameters = "const float* X, const float* W, float* Y, const int64_t ks0"
    text = CPP.read(f'{helper}\nextern "C"\nvoid kernel({parameters})\n{{\n}}\n')
    assert [(arg.name, arg.role) for arg in text.args] == [
        ("X", "in"),
        ("W", "in"),
        ("Y", "out"),
        ("ks0", "size"),
    ]
    assert isinstance(text.details, CppFacts)
    assert (text.details.templates, text.details.helper_loops) == (("micro_gemm",), 1)


@given(st.text(alphabet=list("{}()[]\"'/*\\\n;<>=+for(intx0tmp1at::vec::#pragma "), max_size=400))
def test_any_text_is_taken(text: str) -> None:
    read = CPP.read(text)
    assert isinstance(read.details, CppFacts)
    CPP.pointer_uses(text, frozenset(("in_ptr0", "tmp1")))
