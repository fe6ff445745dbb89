"""Triton kernels: decorators of every form, and counts against what inductor counted itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.backends import TRITON, backend_of
from inductor_probe.model.code import Kernel, TritonFacts
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.reader.output_code import parse_output_code

Read = Callable[..., CompiledGraph]
CUDA = ("torch-2.11.0-cuda/layernorm_grad", "torch-2.11.0-cuda/foreach_adam")


def kernels(graph: CompiledGraph) -> dict[str, tuple[Kernel, TritonFacts]]:
    assert graph.code is not None
    return {
        kernel.name: (kernel, kernel.details)
        for kernel in graph.code.kernels
        if isinstance(kernel.details, TritonFacts)
    }


def test_a_persistent_reduction(read: Read) -> None:
    kernel, facts = kernels(read("torch-2.11.0-cuda/layernorm_grad", 0))[
        "triton_per_fused_gelu_native_layer_norm_0"
    ]
    assert (facts.heuristic, facts.reduction_hint, facts.index_width) == (
        "persistent_reduction",
        "INNER",
        "int32",
    )
    assert facts.size_hints == (("x", "1024"), ("r0_", "1024"))
    assert facts.divisible == tuple(arg.name for arg in kernel.args)
    assert (facts.loads, facts.stores, facts.blocks) == (3, 3, ("XBLOCK",))
    assert [(arg.name, arg.role, arg.type) for arg in kernel.args[:3]] == [
        ("in_out_ptr0", "inout", "*fp32"),
        ("in_out_ptr1", "inout", "*fp32"),
        ("in_ptr0", "in", "*fp32"),
    ]
    assert kernel.args[-1].type == "i32"
    assert dict(facts.meta)["tiling_scores"] == "x=16384, r0_=9443328"
    assert facts.config == (("R0_BLOCK", "1024"),)
    assert "backend_hash" not in dict(facts.meta)


def test_a_foreach_kernel(read: Read) -> None:
    found = kernels(read("torch-2.11.0-cuda/foreach_adam"))
    _, facts = found["triton_for_fused_1"]
    assert (facts.heuristic, facts.loads, facts.stores) == ("foreach", 20, 12)
    assert dict(facts.config)["XBLOCK"] == "1024"


@pytest.mark.parametrize("name", CUDA)
def test_counts_agree_with_those_of_inductor(read: Read, name: str) -> None:
    for kernel, facts in kernels(read(name)).values():
        for key, count in (("num_load", facts.loads), ("num_store", facts.stores)):
            if (told := re.search(rf"'{key}': (\d+)", kernel.source)) is not None:
                # a value that is loaded in two passes over a reduction counts once for inductor
                assert count == int(told[1]) or "for r0_offset" in kernel.source


OLD = {
    "2.1": """
@pointwise(size_hints=[4096, 64], tile_hint=TileHint.SQUARE, filename=__file__,
meta={'signature': {0: '*fp32', 1: '*fp32', 2: 'i32', 3: 'i32'}, 'device': 0, 'constants': {},
'mutated_arg_names': [], 'configs': [instance_descriptor(divisible_by_16=(0, 1, 3), equal_to_1=())]})
@triton.jit
def triton_(in_ptr0, out_ptr0, ynumel, xnumel, YBLOCK : tl.constexpr, XBLOCK : tl.constexpr):
    pass
""",
    "2.6": """
@triton_heuristics.pointwise(
    size_hints={'y': 4096, 'x': 64}, tile_hint=TileHint.SQUARE,
    filename=__file__,
    triton_meta={'signature': {'in_ptr0': '*fp32', 'out_ptr0': '*fp32', 'ynumel': 'i32', 'xnumel': 'i32'},
    'device': DeviceProperties(type='cuda', index=0), 'constants': {}, 'configs': [AttrsDescriptor.from_dict(
    {'arg_properties': {'tt.divisibility': (0, 1, 3), 'tt.equal_to': ()}, 'cls': 'AttrsDescriptor'})]},
    inductor_meta={'autotune_hints': set(), 'num_load': 1},
)
@triton.jit
def triton_(in_ptr0, out_ptr0, ynumel, xnumel, YBLOCK : tl.constexpr, XBLOCK : tl.constexpr):
    pass
""",
    "2.7": """
@triton_heuristics.pointwise(
    size_hints={'y': 4096, 'x': 64}, tile_hint=TileHint.SQUARE,
    triton_meta={'signature': {'in_ptr0': '*fp32', 'out_ptr0': '*fp32', 'ynumel': 'i32', 'xnumel': 'i32',
    'YBLOCK': 'constexpr', 'XBLOCK': 'constexpr'}, 'configs': [{(0,): [['tt.divisibility', 16]],
    (1,): [['tt.divisibility', 16]], (3,): [['tt.divisibility', 16]]}]},
    inductor_meta={'grid_type': 'Grid2D'},
)
@triton.jit
def triton_(in_ptr0, out_ptr0, ynumel, xnumel, YBLOCK : tl.constexpr, XBLOCK : tl.constexpr):
    pass
""",
}


@pytest.mark.parametrize("source", OLD.values(), ids=OLD)
def test_every_form_of_the_decorator_tells_the_same(source: str) -> None:
    facts = TRITON.read(source).details
    assert isinstance(facts, TritonFacts)
    assert (facts.heuristic, facts.tile_hint) == ("pointwise", "SQUARE")
    assert facts.size_hints == (("y", "4096"), ("x", "64"))
    assert facts.divisible == ("in_ptr0", "out_ptr0", "xnumel")
    assert facts.signature[:4] == (
        ("in_ptr0", "*fp32"),
        ("out_ptr0", "*fp32"),
        ("ynumel", "i32"),
        ("xnumel", "i32"),
    )
    assert facts.blocks == ("YBLOCK", "XBLOCK")


def test_wide_indices_are_seen() -> None:
    narrow = OLD["2.7"]
    for wide in (
        narrow.replace("'xnumel': 'i32'", "'xnumel': 'i64'"),
        narrow.replace("pass", "xoffset = tl.program_id(0).to(tl.int64) * XBLOCK"),
    ):
        facts = TRITON.read(wide).details
        assert isinstance(facts, TritonFacts)
        assert facts.index_width == "int64"


USERS = '''
@triton_heuristics.user_autotune(
    configs=[{'num_warps': 4, 'num_stages': 3, 'BLOCK': 128}],
    inductor_meta={'kernel_name': 'add_kernel_0'},
    triton_meta={'signature': {'x_ptr': '*fp32', 'y_ptr': '*fp32', 'acc': '*fp32', 'lost': '*fp32',
    'n': 'i32', 'BLOCK': 'constexpr'}, 'constants': {'BLOCK': 128}},
    filename=__file__,
    custom_kernel=True,
)
@triton.jit
def add_kernel(x_ptr, y_ptr, acc, lost, n, BLOCK: tl.constexpr = (128)):
    """Adds } tl.load(x_ptr) things."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    inputs = x_ptr + offsets
    x = tl.load(inputs, mask=mask)
    tl.store(y_ptr + offsets, x, mask=mask)
    tl.atomic_add(acc + (0), x)
'''


def test_roles_of_a_kernel_of_the_users_come_from_its_own_loads_and_stores() -> None:
    text = TRITON.read(USERS)
    assert [(arg.name, arg.role) for arg in text.args] == [
        ("x_ptr", "in"),
        ("y_ptr", "out"),
        ("acc", "inout"),
        ("lost", "pointer"),
        ("n", "size"),
    ]
    assert isinstance(text.details, TritonFacts)
    assert text.details.heuristic == "user_autotune"


def test_uses_have_line_pointer_and_index(read: Read) -> None:
    kernel, _ = kernels(read("torch-2.11.0-cuda/layernorm_grad", 0))[
        "triton_per_fused_gelu_native_layer_norm_0"
    ]
    names = frozenset(arg.name for arg in kernel.args if arg.role != "size")
    uses = TRITON.pointer_uses(kernel.source, names)
    lines = kernel.source.split("\n")
    assert len(uses) == 6
    for use in uses:
        assert f"tl.{use.kind}({use.pointer} + " in lines[use.line - 1]
    assert uses[0].index == "r0_1 + 768*x0"


@pytest.mark.parametrize("maker", ["halide", "metal", "cutlass", "pallas", "multi_kernel"])
def test_kernels_of_other_makers_are_shown_with_their_source(maker: str) -> None:
    arguments = "'k0', [a, b]" if maker == "multi_kernel" else "'k0', '''\nthe text\nof a kernel\n'''"
    code = parse_output_code(
        f"k0 = async_compile.{maker}({arguments})\ndef call(args):\n    return ()\n", Path("output_code.py")
    )
    (kernel,) = code.kernels
    assert code.problems == ()
    assert backend_of(maker) is not None
    assert kernel.backend == maker
    assert ("the text" in kernel.source) == (maker != "multi_kernel")


def test_a_kernel_of_an_unknown_backend_is_shown_with_what_it_is_passed() -> None:
    text = (
        "k0 = async_compile.brandnew('k0', '''\nthe text\n''')\n"
        "def call(args):\n    arg0_1, = args\n    args.clear()\n    k0.run(arg0_1, 8)\n    return ()\n"
    )
    code = parse_output_code(text, Path("output_code.py"))
    (kernel,) = code.kernels
    (launch,) = code.launches
    assert code.problems == ()
    assert (kernel.backend, kernel.source, launch.args) == ("brandnew", "\nthe text\n", ("arg0_1", "8"))


@given(st.text(alphabet=list("@triton.jit()[]{}'\"\n:=,def tl.loadstre "), max_size=400))
def test_any_text_is_taken(text: str) -> None:
    read = TRITON.read(text)
    assert isinstance(read.details, TritonFacts)
    TRITON.pointer_uses(text, frozenset(("in_ptr0", "a")))


HALIDE = """
halide_kernel_0 = async_compile.halide(HalideMeta(argtypes=[HalideInputSpec(ctype='float*', name='in_ptr0', \\
shape=['16L'], stride=['1L'], offset='0L', alias_of=None), HalideInputSpec(ctype='float*', name='out_ptr0', \\
shape=['8L'], stride=['1L'], offset='0L', alias_of=None), HalideInputSpec(ctype='long', name='ks0', \\
shape=None, stride=None, offset=None, alias_of=None)], target='host', scheduler='Adams2019'), '''
import halide as hl

@hl.generator(name="kernel")
class Kernel:
    in_ptr0 = hl.InputBuffer(hl.Float(32), 1)
''')
def call(args):
    arg0_1, = args
    args.clear()
    buf0 = empty_strided_cpu((8, ), (1, ), torch.float32)
    halide_kernel_0(arg0_1, buf0, 8)
    return (buf0, )
"""


def test_arguments_of_a_halide_kernel_stand_beside_its_text() -> None:
    """As torch 2.13 prints them: with them the kernel is linked to the nodes whose buffers it writes."""
    (kernel,) = parse_output_code(HALIDE, Path("output_code.py")).kernels
    assert [(arg.name, arg.role, arg.type) for arg in kernel.args] == [
        ("in_ptr0", "in", "float*"),
        ("out_ptr0", "out", "float*"),
        ("ks0", "size", "long"),
    ]
    assert kernel.details is None
