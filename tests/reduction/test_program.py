"""Programs as text: what is left out of one, and how it is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from inductor_probe.errors import ProbeError
from inductor_probe.reduction import smaller
from inductor_probe.reduction.predicates import predicate_of
from inductor_probe.reduction.program import Form, Input, Line, Program, drawn
from inductor_probe.reduction.search import ddmin

SQUARE = Form((8, 8), (8, 1), "float32")
CHAIN = Program(
    ((Input("l_x_", SQUARE), Input("l_w_", SQUARE)),),
    (
        Line("a", "$0 @ $1", ("l_x_", "l_w_")),
        Line("pair", "$0.max(-1)", ("a",)),
        Line("values", "$0[0]", ("pair",)),
        Line("b", "torch.roll($0, 3, -1)", ("a",)),
        Line("c", "$0 + $1", ("b", "values")),
    ),
    ("c",),
)
FORMS = ({"a": SQUARE, "pair": None, "values": Form((8,), (1,), "float32"), "b": SQUARE, "c": SQUARE},)


def test_a_value_from_a_line_that_goes_is_an_input_of_its_form() -> None:
    part = smaller.only(CHAIN, FORMS, {"b"}, {})
    assert part is not None
    assert [one.name for one in part.inputs] == ["a"]
    assert part.inputs[0].form == SQUARE
    assert part.outputs == ("b",)


def test_what_is_no_tensor_is_no_input() -> None:
    """A line that takes a part of a pair goes with the pair."""
    part = smaller.only(CHAIN, FORMS, {"values", "c"}, {})
    assert part is not None
    assert [line.name for line in part.lines] == ["c"]


def test_a_text_has_names_of_a_person_and_runs_alone() -> None:
    part = smaller.only(CHAIN, FORMS, {"a", "b"}, {})
    assert part is not None
    text = part.renamed().text("Reduced.")
    assert "def function(x, w):\n    a = x @ w\n    b = torch.roll(a, 3, -1)\n    return b\n" in text
    assert text.startswith('"""Reduced."""\n\nimport torch\n')
    assert "x = torch.randn(8, 8)\n" in text
    assert text.endswith("compiled(x, w)\n")
    compile(text, "small.py", "exec")


def test_names_that_python_has_are_not_taken_and_what_is_used_is_imported() -> None:
    """A mask is `and_` in a graph, an input of a class `l_class_`; a size is `math.floor` of another."""
    program = Program(
        ((Input("l_class_", SQUARE),),),
        (Line("and_", "$0 & $0", ("l_class_",)), Line("sum", "math.floor($0.shape[0])", ("and_",))),
        ("sum",),
    )
    text = program.renamed().text()
    compile(text, "small.py", "exec")
    assert "import math\n" in text
    assert "sum =" not in text


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (SQUARE, "torch.randn(8, 8)"),
        (Form((4, 8), (1, 4), "float32"), "torch.randn(8, 4).t()"),
        (Form((2, 3, 4, 4), (48, 1, 12, 3), "float32"), "torch.randn(2, 4, 4, 3).permute(0, 3, 1, 2)"),
        (Form((4, 8), (0, 1), "float32"), "torch.randn(8).as_strided((4, 8), (0, 1))"),
        (Form((4,), (1,), "int32"), "torch.randint(0, 10, (4,), dtype=torch.int32)"),
        (Form((4,), (1,), "float16"), "torch.randn(4, dtype=torch.float16)"),
    ],
)
def test_an_input_is_drawn_in_its_strides(form: Form, text: str) -> None:
    torch = pytest.importorskip("torch")
    assert drawn(Input("x", form)) == text
    value = eval(text)  # noqa: S307 - what the test is about
    assert (tuple(value.shape), value.stride()) == (form.size, form.stride)
    assert str(value.dtype) == f"torch.{form.dtype}"
    assert isinstance(value, torch.Tensor)


def test_a_size_is_smaller_wherever_it_stands() -> None:
    line = Line("y", "$0.reshape(16, 4).sum(8)", ("x",))
    program = Program(((Input("x", SQUARE),),), (line,), ("y",))
    exact, multiples = [*smaller.resized(program, 8)][:2]
    assert exact.lines[0].code == "$0.reshape(16, 4).sum(2)"
    assert multiples.lines[0].code == "$0.reshape(4, 4).sum(2)"
    assert exact.inputs[0].form == Form((2, 2), (2, 1), "float32")


def test_ddmin_leaves_what_cannot_be_left_out() -> None:
    needed, asked = {3, 11, 12}, []

    def first(choices: Iterable[Sequence[int]]) -> int | None:
        for place, choice in enumerate(choices):
            asked.append(choice)
            if needed <= {*choice}:
                return place
        return None

    assert {*ddmin(range(80), first)} == needed
    assert len(asked) < 100


def test_predicates_are_those_of_probe_expect() -> None:
    one = predicate_of("not expect: --vectorised op0 --no-copy")
    assert (one.kind, one.negated) == ("expect", True)
    assert [each.option for each in one.expected] == ["--vectorised op0", "--no-copy"]
    assert predicate_of("slow: >=1.5 than eager").ratio == 1.5
    assert predicate_of("run: ./shows.sh {} x").command == ("./shows.sh", "{}", "x")


@pytest.mark.parametrize(
    "text",
    ["", "rong", "fails: x", "expect", "expect: --kernel 3", "expect: --kernels x", "slow: 0.5", "not fails"],
)
def test_a_predicate_that_means_nothing_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ProbeError) as caught:
        predicate_of(text)
    assert caught.value.hint
