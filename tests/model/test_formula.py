"""Expressions read back as they were meant."""

from __future__ import annotations

import ast

from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.model.formula import (
    Binary,
    BufferElement,
    Call,
    Chain,
    Expression,
    Name,
    Number,
    Over,
    Part,
    Unary,
    broken,
    piece,
)

LEVELS = (["+", "-"], ["*", "/", "//", "%"], ["<<", ">>"], ["and"], ["or"], ["&"], ["|"], ["^"])
names = st.sampled_from(["x", "t0", "p1", "arg0_1"])
leaves = st.one_of(
    st.builds(Name, names),
    st.builds(Number, st.sampled_from(["0", "7", "-3", "0.1", "1e-05", "-2.5", "True"])),
)


def _inner(expressions: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def chains(level: list[str]) -> st.SearchStrategy[Expression]:
        rest = st.lists(st.tuples(st.sampled_from(level), expressions), min_size=1, max_size=3).map(tuple)
        return st.builds(Chain, expressions, rest)

    return st.one_of(
        *(chains(level) for level in LEVELS),
        st.builds(Binary, st.sampled_from(["<", "<=", "==", "!=", "**"]), expressions, expressions),
        st.builds(Unary, st.sampled_from(["-", "~", "not"]), expressions),
        st.builds(
            Call, st.sampled_from(["max", "where"]), st.lists(expressions, min_size=1, max_size=3).map(tuple)
        ),
        st.builds(BufferElement, names, st.lists(expressions, min_size=2, max_size=3).map(tuple)),
    )


expressions = st.recursive(leaves, _inner, max_leaves=12)


def meant(expression: Expression) -> str:
    """Write an expression with parentheses around everything."""
    match expression:
        case Name(name=text) | Number(text=text):
            return f"({text})"
        case Unary(operator=sign, operand=operand):
            return f"({sign} {meant(operand)})"
        case Binary(operator=sign, left=left, right=right):
            return f"({meant(left)} {sign} {meant(right)})"
        case Chain(first=first, rest=rest):
            whole = meant(first)
            for sign, term in rest:
                whole = f"({whole} {sign} {meant(term)})"
            return whole
        case Call(function=head, arguments=inside):
            return f"{head}({', '.join(map(meant, inside))})"
        case BufferElement(buffer=head, subscripts=inside):
            return f"{head}[{', '.join(map(meant, inside))}]"
    raise AssertionError(expression)


class _TwoAtATime(ast.NodeTransformer):
    """`a and b and c` is one node of Python's tree, and two operations here."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        values = [self.visit(value) for value in node.values]
        whole = values[0]
        for value in values[1:]:
            whole = ast.BoolOp(node.op, [whole, value])
        return whole  # type: ignore[no-any-return]  # visit returns Any


def tree(text: str) -> str:
    return ast.dump(_TwoAtATime().visit(ast.parse(text, mode="eval")))


@given(expressions)
def test_the_text_has_the_parentheses_that_python_needs(expression: Expression) -> None:
    assert tree(str(expression)) == tree(meant(expression))


@given(expressions, st.integers(min_value=20, max_value=100))
def test_lines_are_the_text_broken_at_spaces(expression: Expression, width: int) -> None:
    lines = broken(piece(expression), width)
    assert "".join("".join(lines).split()) == "".join(str(expression).split())
    assert tree("(" + "\n".join(lines) + ")") == tree(str(expression))


def test_no_parentheses_where_none_are_needed() -> None:
    x, y = Name("x"), Name("y")
    product = Chain(x, (("*", y),))
    assert str(Chain(product, (("+", x), ("-", product)))) == "x * y + x - x * y"
    assert str(Chain(x, (("-", Chain(x, (("-", y),))),))) == "x - (x - y)"
    assert str(Unary("-", Binary("**", x, Number("2")))) == "-x ** 2"
    assert str(Binary("**", Number("-2"), x)) == "(-2) ** x"
    assert (
        str(BufferElement("buf0", (Chain(Chain(Number("2"), (("*", x),)), (("+", y),)),))) == "buf0[2*x + y]"
    )


def test_what_runs_over_loops_says_so() -> None:
    total = Over("sum", ("p1", "p2"), (Name("x"),))
    assert str(total) == "sum over p1, p2 of x"
    assert str(Chain(total, (("*", Number("2.0")),))) == "(sum over p1, p2 of x) * 2.0"
    mean = Part(Over("welford", ("p1",), (Name("x"),)), "mean")
    assert str(mean) == "welford.mean over p1 of x"
    assert str(Part(Call("frexp", (Name("x"),)), "0")) == "frexp(x)[0]"
