"""Long names have one short form on every screen, which means that name alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.errors import names_meant
from inductor_probe.report.document import Column, Line, Name, Table
from inductor_probe.report.terminal import to_text
from inductor_probe.report.wrapping import LONGEST, short_forms, with_short_names

OPERATORS = ("add", "_to_copy", "native_layer_norm", "mul", "_unsafe_index", "gelu", "view")
KERNELS = st.lists(st.lists(st.sampled_from(OPERATORS), min_size=1, max_size=16), min_size=1, max_size=8).map(
    lambda kernels: [f"cpp_fused_{'_'.join(names)}_{number}" for number, names in enumerate(kernels)]
)
LIBRARIES = st.lists(
    st.lists(st.sampled_from(("sm80", "gemm", "tn", "nn", "tilesize32x32x8", "stage3")), min_size=1),
    min_size=1,
    max_size=6,
).map(lambda names: list(dict.fromkeys("_".join(parts) for parts in names)))
OF_ADAM = "cpp_fused_" + "_".join(["_foreach_addcdiv", "_foreach_lerp", "_foreach_sqrt"] * 4)


@given(KERNELS | LIBRARIES)
def test_a_short_form_means_its_name_and_no_other(names: list[str]) -> None:
    forms = short_forms(names)
    for name, form in forms.items():
        assert names_meant(form, names) == (name,)
        assert len(form) < len(name) or form == name
        assert form == name or len(name) > LONGEST


@given(KERNELS)
def test_a_kernel_has_one_form_whatever_others_there_are(names: list[str]) -> None:
    forms = short_forms(names)
    for name in names:
        assert short_forms([name]) == {name: forms[name]}
        assert with_short_names(f"loop nest 1 of {name}, and") == f"loop nest 1 of {forms[name]}, and"


def test_kernels_of_an_optimizer_that_differ_in_the_last_character_are_told_apart() -> None:
    names = [f"{OF_ADAM}_{number}" for number in range(3)]
    assert len(names[0]) > 150
    rows = [[Name(name), "1"] for name in names]
    screen = to_text([Table([Column("kernel"), Column("calls")], rows), Line(f"{names[2]} is slow")], 80)
    shown = [line.split()[0] for line in screen.splitlines()[1:]]
    assert [names_meant(form, names) for form in shown] == [(name,) for name in (*names, names[2])]
    assert shown[2] == shown[3]


def test_paths_commands_and_lines_of_code_keep_their_names() -> None:
    name = f"{OF_ADAM}_0"
    for text in (f"kernels/{name}.cpp", f"{name}.cpp:12", f"sys/{name}"):
        assert with_short_names(text) == text
    line = "return torch.nn.functional.scaled_dot_product_attention(q, k, v) + self.beside"
    assert short_forms([line]) == {line: line}
    assert name in to_text([Line(f"probe show {name}", whole=True)], 80)


def test_a_pipe_has_names_whole() -> None:
    name = f"{OF_ADAM}_0"
    assert name in to_text([Table([Column("kernel")], [[Name(name)]])], 10_000)
    assert name in to_text([Line(f"{name} is slow")], 10_000)
