from __future__ import annotations

import libcst as cst
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.variants.code import renamed

KERNELS = {"cpp_fused_0": "cpp_fused_0_v2", "triton_poi_0": "triton_poi_0_v2"}
NAMES = {**KERNELS, "call": "call_v2", "Runner": "Runner_v2", "runner": "runner_v2"}


def assert_rewrites(before: str, after: str) -> None:
    assert renamed(cst.parse_module(before), NAMES, KERNELS).code == after


def test_cpp_kernel_is_its_variable() -> None:
    text = "async_compile.cpp_pybinding(['const float*'], r'''\nextern \"C\" void kernel()\n''')\n"
    assert_rewrites(f"cpp_fused_0 = {text}", f"cpp_fused_0_v2 = {text}")


def test_triton_kernel_is_named_in_four_places() -> None:
    assert_rewrites(
        "triton_poi_0 = async_compile.triton('triton_poi_0', '''\n"
        "    inductor_meta={'kernel_name': 'triton_poi_0'},\n"
        "def triton_poi_0(in_ptr0):\n"
        "''', device_str='cuda')\n",
        "triton_poi_0_v2 = async_compile.triton('triton_poi_0_v2', '''\n"
        "    inductor_meta={'kernel_name': 'triton_poi_0_v2'},\n"
        "def triton_poi_0_v2(in_ptr0):\n"
        "''', device_str='cuda')\n",
    )


def test_a_name_that_only_starts_like_a_kernel_stays() -> None:
    assert_rewrites("cpp_fused_01(cpp_fused_0)\n", "cpp_fused_01(cpp_fused_0_v2)\n")
    assert_rewrites("x = 'graph_cpp_fused_0 cpp_fused_0'\n", "x = 'graph_cpp_fused_0 cpp_fused_0_v2'\n")


def test_launches_and_their_comments() -> None:
    assert_rewrites(
        "def call(args):\n    # [Provenance debug handles] cpp_fused_0:1\n    cpp_fused_0(a, b)\n",
        "def call_v2(args):\n    # [Provenance debug handles] cpp_fused_0_v2:1\n    cpp_fused_0_v2(a, b)\n",
    )
    assert_rewrites("triton_poi_0.run(a, stream=stream0)\n", "triton_poi_0_v2.run(a, stream=stream0)\n")


def test_methods_attributes_keywords_and_parameters_keep_their_names() -> None:
    assert_rewrites(
        "class Runner:\n    def call(self, call):\n        self.runner = call\n"
        "runner = Runner(runner=[])\ncall = runner.call\n",
        "class Runner_v2:\n    def call(self, call):\n        self.runner = call_v2\n"
        "runner_v2 = Runner_v2(runner=[])\ncall_v2 = runner_v2.call\n",
    )


def test_only_kernels_are_renamed_in_text() -> None:
    assert_rewrites("# call the runner\nx = 'call'\n", "# call the runner\nx = 'call'\n")


@given(st.lists(st.sampled_from([*NAMES, "x", "cpp_fused_00"]), min_size=1, max_size=6))
def test_renaming_back_gives_the_same_text(names: list[str]) -> None:
    text = "".join(f"{name}({name!r})  # {name}\n" for name in names)
    there = renamed(cst.parse_module(text), KERNELS, KERNELS)
    back = {new: old for old, new in KERNELS.items()}
    assert renamed(there, back, back).code == text
    assert not any(f"{old}(" in there.code for old in KERNELS)
