"""A simulated GPU: what inductor generates for it, what torch computes on it, and what the manifest says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import torch

import inductor_probe as ip
from inductor_probe.api.trust import texts_to_run
from inductor_probe.capture.targets.device import ANSWERS, virtual_functions
from inductor_probe.errors import ExitCode
from inductor_probe.machine.targets import find_gpu_target
from inductor_probe.model.manifest import Substitute
from tests.shared import made_once
from tests.torch_server import TorchServer

SCRIPT = """
import torch

model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.GELU()).cuda()
x = torch.randn(4, 8, device="cuda")
print("eager", bool(torch.equal((x * 2).cpu(), x.cpu() * 2)), x.device, type(x).__name__)

same = torch.zeros(4, device="cuda")
same[1:3].add_(1)
torch.add(same, 1, out=(larger := torch.empty(0, device="cuda")))
print("memory", same.tolist(), larger.tolist(), same.view(2, 2).data_ptr() == same.data_ptr())

z = torch.randn(4, 8, dtype=torch.complex64, device="cuda")
zero = torch._efficientzerotensor(3, device="cuda")
print("views", bool(torch.allclose((z @ z.mH).cpu(), z.cpu() @ z.cpu().mH)), (zero + 1).tolist())
images = torch.randn(5, 6, 7, device="cuda", requires_grad=True)
normal = torch.nn.BatchNorm1d(6, device="cuda")(images)
(normal**2).sum().backward()
logits = torch.randn(5, 2, 4, device="cuda").log_softmax(-1)
words = torch.tensor([[1, 2], [3, 1]], device="cuda")
lost = torch.nn.functional.ctc_loss(logits, words, torch.full((2,), 5), torch.full((2,), 2))
print("asked", bool(normal.mean().abs() < 1e-5), images.grad.shape, bool(lost > 0))

loss = torch.compile(model)(x).square().mean()
loss.backward()
weight = model[0].weight.grad.clone()
model.zero_grad()
model(x).square().mean().backward()
print("training", bool(torch.allclose(weight, model[0].weight.grad, atol=1e-5)))


@torch.compile(options={"joint_graph_constant_folding": True})
def folded(x):
    return x + torch.arange(4, device=x.device).to(torch.float32) * torch.full((4,), 2.0, device=x.device)


print("folded", folded(torch.ones(4, device="cuda")).tolist())


@torch.compile
def product(a, b):
    return torch.relu(a @ b)


print("product", product(torch.ones(64, 64, device="cuda"), torch.eye(64, device="cuda")).sum().item())


@torch.compile
def attended(q):
    return torch.nn.functional.scaled_dot_product_attention(q, q, q)


heads = torch.ones(1, 2, 16, 32, device="cuda", dtype=torch.float16)
ones = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)
print("attention", attended(heads).shape, bool((ones == 1).all()))


@torch.compile
def trained(q, images, weights):
    attention = torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    return attention.sum() + torch.nn.functional.conv2d(images, weights, stride=2, padding=1).sum()


shapes = (1, 2, 16, 32), (2, 4, 9, 9), (8, 4, 3, 3)
trained(*(torch.randn(shape, device="cuda", requires_grad=True) for shape in shapes)).backward()

try:
    same.to_sparse()
except NotImplementedError as error:
    print("sparse", str(error).partition(":")[0])


@torch.compile
def large(x):
    return x * 2 + 1


print("large", large(torch.ones(1 << 27, device="cuda"))[:2].tolist())
print("compile workers", len(torch._inductor.async_compile._pool_set))
"""


ON_HOPPER = """
import torch


def attended(query, mask):
    return torch.nn.functional.scaled_dot_product_attention(query, query, query, attn_mask=mask)


def masks(heads, length):
    full = torch.ones(2, 1, length, length, dtype=torch.bool, device="cuda")
    return {
        "whole": full.tril(),
        "expanded": full[..., :1].expand(full.shape),
        "bias the other way round": torch.randn(length, length, heads, device="cuda").permute(2, 0, 1)[None],
        "bias for all heads": torch.randn(length, length, device="cuda"),
    }


with torch.no_grad():
    for dtype in (torch.float16, torch.float32):
        query = torch.randn(2, 4, 24, 64, dtype=dtype, device="cuda")
        for name, mask in masks(4, 24).items():
            mask = mask if mask.dtype is torch.bool else mask.to(dtype)
            torch._dynamo.reset()
            torch.compile(attended, fullgraph=True, dynamic=False)(query, mask)
            print("attended", name, dtype, flush=True)


@torch.compile
def convolved(images, weights):
    return torch.nn.functional.conv2d(images, weights, stride=2)


weights = torch.randn(16, 8, 1, 1, device="cuda", requires_grad=True)
images = torch.randn(2, 8, 6, 6, device="cuda").contiguous(memory_format=torch.channels_last)
convolved(images, weights).sum().backward()
print("strides", weights.grad.stride())


@torch.compile
def rows(x):
    return x.nonzero() + 1


print("rows", rows(torch.eye(3, device="cuda")).tolist())


@torch.compile
def listed(xs, ws):
    y = xs[1] * ws[0] + ws[1] * ws[2] - ws[3] * ws[4]
    return torch._foreach_add([xs[0], y, xs[2]], 1.0), y


matrices = [torch.rand(shape, device="cuda") for shape in ((64, 48), (64,), (10, 512))]
listed(matrices, [torch.rand(64, device="cuda") for _ in range(5)])
"""


def made_for(target: str, script: str, factory: pytest.TempPathFactory) -> tuple[ip.Run, str]:
    """Return the run of a script for a GPU, and what it printed."""

    def dump(folder: Path) -> None:
        (folder / "script.py").write_text(script)
        command = [sys.executable, "-m", "inductor_probe", "dump", "script.py", f"--target={target}"]
        done = subprocess.run(
            [*command, "--out", str(folder)], capture_output=True, text=True, check=False, cwd=folder
        )
        assert done.returncode == ExitCode.OK, done.stdout + done.stderr
        (folder / "printed").write_text(done.stdout)

    folder = made_once(factory, f"simulated-{target}", dump)
    run = ip.open_run(next((folder / "torch_compile_debug").glob("run_*")))
    return run, (folder / "printed").read_text()


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> tuple[ip.Run, str]:
    """Return the run of the first script above for a T4, and what it printed."""
    return made_for("t4", SCRIPT, tmp_path_factory)


@pytest.fixture(scope="module")
def on_hopper(tmp_path_factory: pytest.TempPathFactory, torch_server: TorchServer) -> tuple[ip.Run, str]:
    """Return the run of the second one for an H100, a fork, and what it printed."""
    with torch_server.used():
        return made_for("h100", ON_HOPPER, tmp_path_factory)


@pytest.mark.compiles
@pytest.mark.parametrize(
    "line",
    [
        "eager True cuda:0 Tensor",
        "memory [0.0, 1.0, 1.0, 0.0] [1.0, 2.0, 2.0, 1.0] True",
        "views True [1.0, 1.0, 1.0]",
        "asked True torch.Size([5, 6, 7]) True",
        "training True",
        "folded [1.0, 3.0, 5.0, 7.0]",
        "product 4096.0",
        "attention torch.Size([1, 2, 16, 32]) True",
        "sparse torch.sparse_coo tensors are not available on a simulated GPU",
        "large [0.0, 0.0]",
        "compile workers 0",  # each imported torch, for nothing: no kernel is compiled
    ],
)
def test_the_script_computes_on_the_device_that_is_not_there(
    line: str, simulated: tuple[ip.Run, str]
) -> None:
    assert line in simulated[1].splitlines()


@pytest.mark.compiles
def test_the_manifest_says_what_was_simulated_and_what_stood_in(simulated: tuple[ip.Run, str]) -> None:
    run, printed = simulated
    assert run.manifest is not None
    gpu = run.manifest.gpu
    assert gpu is not None
    assert (gpu.target, gpu.device, gpu.capability) == ("t4", "Tesla T4", "7.5")
    assert gpu.figures == find_gpu_target("t4")
    assert {*gpu.substitutes} == {*get_args(Substitute)}
    assert "Tesla T4 was simulated (--target t4)" in printed
    assert dict(run.manifest.machine)["gpu"] == "Tesla T4"
    assert {note.code for note in run.manifest.notes} == {"graph-not-computed"}
    reasons = {dict(note.values)["reason"] for note in run.manifest.notes}
    assert "its values have 1536 MiB" in reasons
    assert "aten::_scaled_dot_product_efficient_attention has no kernel for the CPU" in reasons


@pytest.mark.compiles
def test_inductor_generates_triton_kernels_for_the_target(simulated: tuple[ip.Run, str]) -> None:
    graphs = {graph.name: graph for graph in simulated[0].graphs}
    assert any("backward" in name for name in graphs)
    codes = [(graph.path / "output_code.py").read_text() for graph in graphs.values()]
    kernels = [kernel for graph in graphs.values() for kernel in graph.generated.code.kernels]
    assert "triton" in {kernel.backend for kernel in kernels}
    assert "cpp" not in {kernel.backend for kernel in kernels}
    assert all("multi_processor_count=40, cc=75" in code for code in codes if "async_compile.triton(" in code)
    assert any("_scaled_dot_product_efficient_attention" in code for code in codes)
    assert any(graph.generated.decisions is not None for graph in graphs.values())


@pytest.mark.compiles
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU, which runs the kernels")
def test_kernels_for_a_gpu_that_is_not_there_are_not_launched(simulated: tuple[ip.Run, str]) -> None:
    graph = simulated[0].graphs[0]
    done = subprocess.run(
        [sys.executable, "-m", "inductor_probe", "bench-kernel", str(graph.path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == ExitCode.OK, done.stderr
    assert "not timed: this machine has no GPU" in done.stdout  # triton's interpreter ran them
    with pytest.raises(ip.ProbeError, match="no GPU to run it on"):  # what `probe whatif` asks
        texts_to_run(graph, trust=True)


@pytest.mark.compiles
def test_kernels_have_bounds_by_the_figures_of_the_target(simulated: tuple[ip.Run, str]) -> None:
    graphs = [graph for graph in simulated[0].graphs if graph.generated.record]
    assert {graph.generated.record.allows_tf32 for graph in graphs if graph.generated.record} == {False}
    bounds = [row.bound for graph in graphs for row in graph.kernels() if row.bound]
    assert {bound.gpu for bound in bounds} == {"Tesla T4"}
    assert "float32_simt" in {bound.product for bound in bounds}  # products of float32, not rounded
    assert all(bound.seconds or bound.unbounded for bound in bounds)


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("function", "flops"),
    [
        # Two heads, 16 queries of which each sees the keys up to its own: 136 pairs, of 32 elements twice.
        ("_scaled_dot_product_efficient_attention", 2 * 2 * 136 * (32 + 32)),
        ("_scaled_dot_product_efficient_attention_backward", 2 * 2 * 136 * (32 + 32 + 3 * 32)),
        # Two images, 8 x 4 pairs of channels; in 9 elements and a zero at each end 5 windows of 3.
        ("convolution", 2 * 2 * 32 * (5 * 3 - 2) ** 2),
        ("convolution_backward", 2 * 2 * 2 * 32 * (5 * 3 - 2) ** 2),
    ],
)
def test_bounds_count_what_attention_and_convolutions_compute(
    function: str, flops: int, simulated: tuple[ip.Run, str]
) -> None:
    rows = [row for graph in simulated[0].graphs for row in graph.kernels() if row.backend == "extern"]
    names = {f"torch.ops.aten.{function}.default", f"extern_kernels.{function}"}
    assert flops in {row.bound.flops for row in rows if row.name in names and row.bound}


@pytest.mark.compiles
@pytest.mark.usefixtures("warm_here")
def test_a_graph_of_a_dtype_that_the_gpu_lacks_is_said(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\n"
        "x = torch.ones(8, device='cuda', dtype=torch.bfloat16)\n"
        "torch.compile(lambda x: x + 1)(x)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "inductor_probe", "dump", str(script), "--target=t4", f"--out={tmp_path}"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (
        "torch refused to compile a graph for Tesla T4 (compute capability 7.5): BF16 is not supported"
        in " ".join(done.stdout.split())
    )


def wrappers(run: ip.Run) -> list[str]:
    return [(graph.path / "output_code.py").read_text() for graph in run.graphs]


@pytest.mark.compiles
def test_a_mask_that_is_expanded_or_lies_the_other_way_round_is_for_no_kernel_of_attention(
    on_hopper: tuple[ip.Run, str],
) -> None:
    kernels = [
        next(
            (kind for kind in ("cudnn", "flash", "efficient") if f"product_{kind}_attention" in code), "math"
        )
        for code in wrappers(on_hopper[0])[:8]
    ]
    assert kernels == ["cudnn", "math", "math", "cudnn", "efficient", "math", "math", "efficient"]


@pytest.mark.compiles
def test_what_a_mask_excludes_gets_the_number_of_its_kernel(on_hopper: tuple[ip.Run, str]) -> None:
    cudnn, formula = wrappers(on_hopper[0])[:2]
    assert "-65504.0" in cudnn
    assert '"-inf"' in formula
    assert "-65504.0" not in formula
    made_by = re.findall(r"Original ATen: \[(.*)\]", cudnn)[0].split(", ")
    assert "aten.scalar_tensor" in made_by
    assert "aten.full" not in made_by


@pytest.mark.compiles
def test_results_have_the_strides_of_the_compiled_graph_where_a_dimension_has_one_element(
    on_hopper: tuple[ip.Run, str],
) -> None:
    (backward,) = [code for code in wrappers(on_hopper[0]) if "convolution_backward.default" in code]
    assert "(16, 8, 1, 1), (8, 1, 8, 8)" in backward
    assert "strides (8, 1, 8, 8)" in on_hopper[1]


@pytest.mark.compiles
def test_dynamo_compiles_nothing_of_operators_that_run_in_eager_after_a_graph_break(
    on_hopper: tuple[ip.Run, str],
) -> None:
    run, printed = on_hopper
    assert "rows [[1, 1], [2, 2], [3, 3]]" in printed
    assert run.manifest is not None
    assert {place.where.partition(":")[0].rpartition("/")[2] for place in run.manifest.graph_breaks} == {
        "script.py"
    }
    assert len(run.graphs) == 8 + 2 + 1 + 1


@pytest.mark.compiles
def test_nodes_of_a_foreach_node_that_something_is_fused_into_are_printed(
    on_hopper: tuple[ip.Run, str],
) -> None:
    """Torch fails to make a text of its device code, and leaves out all nodes in it with that."""
    graph = on_hopper[0].graphs[-1]
    text = (graph.path / "ir_post_fusion.txt").read_text()
    assert "ForeachKernelSchedulerNode" in text
    assert ".snodes[1] =" in text
    checked = ip.check(graph.path)
    assert checked.sound
    assert checked.graphs[0].remarks == ()


def test_virtual_functions_are_counted_as_the_table_has_them() -> None:
    base = """
struct TORCH_API Base {
  // virtual in a comment: not one
  virtual ~Base() = default;
  virtual bool isBuilt() const { return false; }
  virtual DeviceIndex deviceCount() const = 0;
};"""
    derived = """
struct TORCH_API Derived : Base {
  ~Derived() override = default;
  bool isBuilt() const override { return true; }
#ifdef USE_ROCM
  virtual bool isGPUArch(int) const;
#endif
  virtual long versionCuDNN() const {
    return 1;
  }
};"""
    assert virtual_functions([base, derived]) == ["~Base", "~Base", "isBuilt", "deviceCount", "versionCuDNN"]


def test_the_installed_torch_has_the_virtual_functions_that_are_answered() -> None:
    folder = Path(torch.__file__).parent / "include/ATen/detail"
    names = ("AcceleratorHooksInterface", "CUDAHooksInterface")
    positions = virtual_functions([(folder / f"{name}.h").read_text() for name in names])
    assert positions[:3] == ["~AcceleratorHooksInterface"] * 2 + ["isBuilt"]
    assert all(positions.count(name) == 1 for name, _, _ in ANSWERS)
