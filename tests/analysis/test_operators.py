"""Operators are the same however torch spells them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from inductor_probe.analysis.operators import Operator, operator
from inductor_probe.reader.debug_dir import read_graph, read_run

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,12}", fullmatch=True)


@given(NAMES.filter(lambda name: name != "torch"), NAMES, NAMES)
def test_every_spelling_is_the_same_operator(namespace: str, name: str, overload: str) -> None:
    one = Operator(namespace, name, overload)
    for text in (
        f"torch.ops.{namespace}.{name}.{overload}",
        f"{namespace}.{name}.{overload}",
        f"{namespace}::{name}.{overload}",
    ):
        assert operator(text) == one
    assert operator(one.packet) == Operator(namespace, name)
    assert operator(str(one)) == one
    assert operator(one.signature).signature == one.signature


@given(st.text())
@example("0.")
@example("torch.ops.")
@example("::add")
def test_any_text_is_an_operator_of_some_name(text: str) -> None:
    read = operator(text)
    assert read.packet in str(read)
    if not set(".:") & set(text):
        assert read == Operator("", text)


@pytest.mark.parametrize(
    ("text", "parts", "signature"),
    [
        ("torch.ops.aten.index_put_.default", ("aten", "index_put_", "default"), "aten.index_put_"),
        ("aten.index_put_", ("aten", "index_put_", ""), "aten.index_put_"),
        ("aten::add.Tensor", ("aten", "add", "Tensor"), "aten.add.Tensor"),
        ("aten::add", ("aten", "add", ""), "aten.add"),
        ("aten.randint.low_out", ("aten", "randint", "low_out"), "aten.randint.low_out"),
        ("extern_kernels.mm", ("extern_kernels", "mm", ""), "extern_kernels.mm"),
        ("torch.ops.higher_order.cond", ("higher_order", "cond", ""), "higher_order.cond"),
        ("ops.load", ("ops", "load", ""), "ops.load"),
        ("torch.sym_float", ("torch", "sym_float", ""), "torch.sym_float"),
        ("[]", ("", "[]", ""), "[]"),
        ("<=", ("", "<=", ""), "<="),
    ],
)
def test_the_spellings_of_dumps(text: str, parts: tuple[str, str, str], signature: str) -> None:
    assert operator(text) == Operator(*parts)
    assert operator(text).signature == signature


@pytest.mark.parametrize(
    ("version", "spelling"),
    [
        ("torch-2.1.2-cpu", "aten.cumsum"),
        ("torch-2.4.1-cpu", "aten.cumsum.default"),
        ("torch-2.13.0-cpu", "torch.ops.aten.cumsum.default"),
    ],
)
def test_a_call_is_the_same_operator_in_every_version(version: str, spelling: str, corpus: Path) -> None:
    run = next((corpus / version / "cumsum_scan").glob("**/run_*"))
    graph = read_graph(read_run(run).graphs[0])
    assert graph.code is not None
    assert graph.fx is not None
    (call,) = graph.code.externs
    (node,) = (node for node in graph.fx.nodes if "cumsum" in node.target)
    assert call.target == spelling
    assert operator(call.target).signature == operator(node.target).signature == "aten.cumsum"
