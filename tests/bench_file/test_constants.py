"""Constants of a graph as source, from texts that inductor writes and from what a manifest says."""

from __future__ import annotations

import ast
import textwrap

import pytest

from inductor_probe.bench_file.constants import Constants, graph_constants, uses_of
from inductor_probe.bench_file.reference import reference_source
from inductor_probe.bench_file.sections import Statement, cut
from inductor_probe.model.manifest import ConstantFact

WRAPPER = """
def call(args):
    arg0_1, = args
    args.clear()
    assert_size_stride(_frozen_param3, (24, ), (1, ), 'input')
    buf0 = torch.ops.mkldnn._linear_pointwise.default(arg0_1, _frozen_param9, _frozen_param3, 'relu', [], '')
    buf1 = reinterpret_tensor(_frozen_param4, (24, ), (1, ), 0)
    buf2 = empty_strided_cpu((16, 24), (24, 1), torch.float32)
    cpp_fused_add_0(buf0, reinterpret_tensor(buf1, (12, ), (1, ), 0), buf2)
    triton_poi_fused_1.run(_frozen_param3, buf2, 384, stream=stream0)
    return (buf2, )
"""
OUTPUT_CODE = f"""
import torch
_frozen_param9 = None  # device(type='cpu') torch.float32 (24, 32) (1, 0) 7f00
async_compile.wait(globals())
{WRAPPER}

def get_args():
    from torch._dynamo.testing import rand_strided
    global _frozen_param3
    _frozen_param3 = rand_strided((24, ), (1, ), device='cpu', dtype=torch.float32)
    global _frozen_param4
    _frozen_param4 = rand_strided((24, ), (1, ), device='cpu', dtype=torch.int64)
    global _frozen_param9
    _frozen_param9 = rand_strided((24, 32), (1, 0), device='cpu', dtype=torch.float32)
    import pickle
    global _torchbind_obj0
    _torchbind_obj0 = pickle.loads(b'...')
    arg0_1 = rand_strided((16, 32), (32, 1), device='cpu', dtype=torch.float32)
    return [arg0_1]
"""
PLAIN = ConstantFact(
    name="_frozen_param3",
    kind="plain",
    size=(24,),
    stride=(1,),
    dtype="float32",
    device="cpu",
    layout="torch.strided",
    bytes=96,
    attributes=("_frozen_param3",),
    in_code=True,
    saved="_frozen_param3.bin",
    sha256="ab" * 32,
)
PACKED = ConstantFact(
    name="_frozen_param9",
    kind="packed",
    size=(24, 32),
    stride=(1, 0),
    dtype="float32",
    device="cpu",
    layout="torch._mkldnn",
    attributes=("_frozen_param9",),
    in_code=True,
    operator="mkldnn._reorder_linear_weight",
    arguments=("_frozen_param9_part0", "16"),
)
PART = ConstantFact(
    "_frozen_param9_part0", "plain", (24, 32), (32, 1), "float32", "cpu", "torch.strided", 3072
)


def made(facts: tuple[ConstantFact, ...] | None) -> Constants:
    sections = cut(OUTPUT_CODE)
    return graph_constants(sections.tail, WRAPPER, ("cpp_fused_add_0", "triton_poi_fused_1"), facts, ())


def statements(constants: Constants) -> list[str]:
    return [line.strip() for line in constants.source.splitlines()]


def test_what_takes_a_constant_is_found_behind_views() -> None:
    names = {"_frozen_param3", "_frozen_param4", "_frozen_param9"}
    linear = "torch.ops.mkldnn._linear_pointwise.default"
    assert uses_of(names, WRAPPER, ("cpp_fused_add_0", "triton_poi_fused_1")) == {
        "_frozen_param3": (linear, "triton_poi_fused_1"),
        "_frozen_param4": ("cpp_fused_add_0",),
        "_frozen_param9": (linear,),
    }


def test_a_packed_constant_is_packed_again_by_the_same_call() -> None:
    constants = made((PLAIN, PACKED, PART))
    lines = statements(constants)
    pack = "_frozen_param9 = torch.ops.mkldnn._reorder_linear_weight(_frozen_param9_part0, 16)"
    (part,) = [index for index, line in enumerate(lines) if line.startswith("_frozen_param9_part0 = ")]
    assert part < lines.index(pack)
    digest = "ab" * 16
    layout = "'_frozen_param3', (24,), (1,), torch.float32, 'cpu'"
    assert f"_frozen_param3 = constants.tensor({layout}, sha256='{digest}')" in lines
    assert constants.takes["_frozen_param9_part0"] == ("mkldnn._linear_pointwise.default",)
    assert "_frozen_param9" not in constants.takes
    assert constants.packed == {"_frozen_param9"}


@pytest.mark.parametrize(
    ("operator", "argument"),
    [
        ("os.system", "16"),
        ("mkldnn._reorder_linear_weight", "print(1)"),
        ("mkldnn._reorder_linear_weight", "__import__"),
        ("mkldnn.x(); print", "1"),
    ],
)
def test_a_manifest_writes_no_code(operator: str, argument: str) -> None:
    forged = ConstantFact(
        "_frozen_param9", "packed", (24, 32), (1, 0), "float32", "cpu", "torch._mkldnn", operator=operator,
        arguments=(argument,),
    )  # fmt: skip
    named = ConstantFact("x = print()", "plain", (1,), (1,), "float32", "cpu", "torch.strided")
    source = made((PLAIN, forged, named)).source
    calls = [ast.unparse(node.func) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    assert set(calls) <= {"constants.tensor", "constants.random"}


def test_a_dump_without_constants_gets_random_ones_but_for_packed_ones() -> None:
    constants = made(None)
    lines = statements(constants)
    assert any(line.startswith("_frozen_param3 = constants.random(") for line in lines)
    (index,) = [line for line in lines if line.startswith("_frozen_param4 = ")]
    assert "low=" in index, "an index stays within its bounds"
    assert "high=" in index
    (packed,) = [line for line in lines if line.startswith("_frozen_param9 = ")]
    assert packed.startswith("_frozen_param9 = constants.tensor('_frozen_param9', (24, 32), (32, 1),")
    assert "missing='not-in-dump'" in packed
    (library,) = [line for line in lines if "_torchbind_obj0" in line and "missing" in line]
    assert library == "constants.missing['_torchbind_obj0'] = 'library-object'"


def test_a_packed_weight_that_only_mkl_can_read_is_packed_from_the_plain_one() -> None:
    old = "torch.ops.mkldnn._linear_pointwise.default(arg0_1, _frozen_param9, _frozen_param3, 'relu', [], '')"
    new = "torch.ops.mkl._mkl_linear.default(arg0_1, _frozen_param9, _frozen_param3, None, 16)"
    assert old in WRAPPER
    tail = cut(OUTPUT_CODE).tail
    lines = statements(graph_constants(tail, WRAPPER.replace(old, new), (), None, ()))
    assert "_frozen_param9 = torch.ops.mkl._mkl_reorder_linear_weight(_frozen_param3, 16)" in lines
    for other in ("onednn.qlinear_pointwise", "aten.mkldnn_rnn_layer"):
        wrapper = WRAPPER.replace("mkldnn._linear_pointwise", other)
        lines = statements(graph_constants(tail, wrapper, (), None, ()))
        assert not any(line.startswith("_frozen_param9 = ") for line in lines), "nothing is safe to give it"


def test_the_reference_has_the_constants_and_nothing_that_it_does_not_use() -> None:
    runnable = textwrap.dedent(
        """
        class Repro(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer('_frozen_param3', torch.randn([24], dtype=torch.float32))
                self.register_buffer('_frozen_param9', torch.randn([24, 32], dtype=torch.float32))
                self._frozen_param1 = torch.nn.Parameter(torch.randn([16], dtype=torch.float32))

            def forward(self, arg0_1):
                weight = self._frozen_param9
                bias = self._frozen_param3
                return (torch.ops.mkldnn._linear_pointwise.default(arg0_1, weight, bias, 'none', [], ''),)

        def load_args(reader):
            pass
        """
    )
    source = reference_source(runnable, None, made((PLAIN, PACKED, PART))).source
    assert source
    assert "self.register_buffer('_frozen_param3', _frozen_param3)" in source
    assert "self._frozen_param9 = _frozen_param9\n" in source, "double() cannot convert a packed one"
    assert "_frozen_param1" not in source
    without = reference_source(runnable)
    assert without.source is None
    assert without.why_not == "the graph has constants whose values the dump does not hold"


def test_a_graph_without_constants_has_no_function_for_them() -> None:
    text = OUTPUT_CODE.partition("def get_args")[0] + "def get_args():\n    return []\n"
    tail: tuple[Statement, ...] = cut(text).tail
    assert graph_constants(tail, WRAPPER, (), (), ()).source == ""
