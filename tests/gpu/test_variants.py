"""Rewrites of Triton kernels run on the GPU: they compute the same, and run as they say.

`make test-gpu` runs this; without a CUDA device every test is skipped and says so.
"""

from __future__ import annotations

import ast
import runpy
from collections.abc import Callable

import pytest
import torch

import inductor_probe as ip
from inductor_probe.bench_file.bench_file import write_bench_file
from inductor_probe.errors import ProbeError
from inductor_probe.variants.bench_variants import ablations
from inductor_probe.variants.code import read_code
from inductor_probe.variants.registry import rewrite_variants
from inductor_probe.variants.triton_config import constexprs, decorated
from tests.bench_file.checked import check

pytestmark = [
    pytest.mark.compiles,
    pytest.mark.takes(45),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
CASES = {
    "flip": ("check_hflip.py", "cuda_channels_last"),
    "antialias": ("check_interpolate_bilinear_aa.py", "cuda_separable_channels_last"),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ip.Graph]:
    """Dump a scenario once for all tests."""
    known: dict[str, ip.Graph] = {}

    def dumped(name: str) -> ip.Graph:
        if name not in known:
            script, case = CASES[name]
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(tmp_path_factory.mktemp(name))
                known[name] = ip.dump(script, cases=[case], label=name).graphs[0]
        return known[name]

    return dumped


def specs(text: str) -> list[str]:
    """A fixed configuration and wide indices for every Triton kernel."""
    found = []
    for name, kernel in read_code(text).kernels.items():
        if kernel.backend.name == "triton":
            blocks = constexprs(decorated(kernel)[0])
            sizes = " ".join(f"{block}={8 if block == 'XBLOCK' else 16}" for block in blocks)
            found += [f"triton:{name} {sizes} num_warps=2 num_stages=2", f"index:{name} int64"]
    return found


@pytest.mark.parametrize("name", CASES)
def test_configurations_and_wide_indices_compute_the_same(
    graph: Callable[[str], ip.Graph], name: str
) -> None:
    folder = graph(name).path
    text = (folder / "output_code.py").read_text()
    file = write_bench_file(folder, rewrites=specs(text))
    found = check(file.path)
    made = [name for name in file.edited if name in found]
    assert len(made) == len(specs(text)) >= 2
    assert all(found[name]["correct"] for name in made), {name: found[name]["remarks"] for name in made}


def test_the_kernel_runs_with_the_configuration_that_was_given(graph: Callable[[str], ip.Graph]) -> None:
    folder = graph("flip").path
    kernel = next(iter(read_code((folder / "output_code.py").read_text()).kernels))
    (folder / "output_code_bench.py").unlink(missing_ok=True)
    file = write_bench_file(folder, rewrites=[f"triton:{kernel} XBLOCK=32 num_warps=1 num_stages=2"])
    names = runpy.run_path(str(file.path))
    bench = names["Bench"](names["call"].__globals__)
    bench.namespace[kernel] = fixed = bench.namespace[f"{kernel}_v3"]
    bench.run("call", bench.inputs(0))
    configs = [launcher.config for launcher in fixed.launchers]
    assert [(each.kwargs, each.num_warps, each.num_stages) for each in configs] == [({"XBLOCK": 32}, 1, 2)]


def test_a_buffer_between_two_kernels_is_laid_out_anew(graph: Callable[[str], ip.Graph]) -> None:
    folder = graph("antialias").path
    text = (folder / "output_code.py").read_text()
    allocated = [
        node.targets[0].id
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) == "empty_strided_cuda"
    ]
    made, refused = [], []
    for buffer in allocated:
        for wanted in ("channels_last", "contiguous"):
            try:
                rewrite_variants(text, f"stride:{buffer}={wanted}")
            except ProbeError as error:
                refused.append(error.message)
            else:
                made.append(f"stride:{buffer}={wanted}")
    assert made, refused
    (folder / "output_code_bench.py").unlink(missing_ok=True)
    found = check(write_bench_file(folder, rewrites=made).path)
    wrappers = [each for name, each in found.items() if name.startswith("call_v") and name != "call_v2"]
    assert len(wrappers) == len(made)
    assert all(each["correct"] for each in wrappers)


def test_ablations_compile_and_run(graph: Callable[[str], ip.Graph]) -> None:
    folder = graph("flip").path
    kernel = next(iter(read_code((folder / "output_code.py").read_text()).kernels))
    (folder / "output_code_bench.py").unlink(missing_ok=True)
    file = write_bench_file(folder, rewrites=[f"ablation:{kernel}"])
    left_out = ablations(file.path.read_text())
    assert list(left_out.values()) == ["no_loads", "store_only"]
    names = runpy.run_path(str(file.path))
    bench = names["Bench"](names["call"].__globals__)
    pristine = bench.namespace[kernel]
    for name in left_out:
        bench.namespace[kernel] = bench.namespace[name]
        (result,) = bench.run("call", bench.inputs(0))
        assert result.numel() > 0
    bench.namespace[kernel] = pristine
