"""Dump training steps of whole networks, forward and backward: big graphs, of many layers.

    python -m benchmarks.sweeps.models OUT [--device cpu|cuda] [--jobs N] [--timeout SECONDS] [--only PATTERN]

Width and inputs are small, so that a step takes seconds on one core: depth is what makes a dump long. OUT is
as in `op_db.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import torch  # noqa: TID253 - a file of torch programs
from torch import nn  # noqa: TID253 - as above

from benchmarks.sweeps import run
from benchmarks.sweeps.networks import GPT, Dilated, Mixer, Norms, UNet, UnrolledLSTM, ViT, resnet

Compiler = Callable[..., Any]
Network = Callable[[str, Compiler], None]
NETWORKS: dict[str, Network] = {}
_CUDA_ONLY = ("user_triton",)


def network(function: Network) -> Network:
    """Add a function to the list, under its name."""
    NETWORKS[function.__name__] = function
    return function


def names(device: str) -> list[str]:
    """Return the names of the networks."""
    return [name for name in NETWORKS if device == "cuda" or name not in _CUDA_ONLY]


def attempts(name: str, device: str, compiler: Compiler) -> Iterator[Callable[[], object]]:
    """Yield the one way to train the network `name`."""
    yield lambda: NETWORKS[name](device, compiler)


def train(module: nn.Module, device: str, compiler: Compiler, *inputs: torch.Tensor, **options: Any) -> None:
    """Compile `module` and run it forward and backward once."""
    compiled = compiler(module.to(device).train(), **options)
    compiled(*(value.to(device) for value in inputs)).float().square().mean().backward()


@network
def transformer_encoder(device: str, compiler: Compiler) -> None:
    """Eight layers, pre-norm, with dropout."""
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.1, batch_first=True, norm_first=True)
    train(
        nn.TransformerEncoder(layer, 8, enable_nested_tensor=False), device, compiler, torch.randn(2, 33, 64)
    )


@network
def transformer_decoder(device: str, compiler: Compiler) -> None:
    """Six layers with a memory and a causal mask."""
    layer = nn.TransformerDecoderLayer(64, 4, 128, dropout=0.1, batch_first=True, activation="gelu")
    module = nn.TransformerDecoder(layer, 6).to(device)
    target, memory = torch.randn(2, 20, 64, device=device), torch.randn(2, 31, 64, device=device)
    mask = nn.Transformer.generate_square_subsequent_mask(20, device=device)
    result = compiler(module)(target, memory, mask, tgt_is_causal=True)  # told, not found out by a look at it
    result.square().mean().backward()


@network
def resnet50(device: str, compiler: Compiler) -> None:
    """Images channels-first."""
    train(resnet(), device, compiler, torch.randn(2, 3, 64, 64))


@network
def resnet50_channels_last(device: str, compiler: Compiler) -> None:
    """Images and weights channels-last."""
    image = torch.randn(2, 3, 64, 64).contiguous(memory_format=torch.channels_last)
    train(resnet().to(memory_format=torch.channels_last), device, compiler, image)


@network
def unet(device: str, compiler: Compiler) -> None:
    """Odd sizes, so that the way up resizes."""
    train(UNet(), device, compiler, torch.randn(1, 3, 50, 70))


@network
def lstm(device: str, compiler: Compiler) -> None:
    """Twenty steps; five on a GPU, where inductor's own log of a step repeats that of all steps before it."""
    steps = 20 if device == "cpu" else 5
    train(UnrolledLSTM(12, 32), device, compiler, torch.randn(3, steps, 12))


@network
def lstm_layers(device: str, compiler: Compiler) -> None:
    """Torch's own, of two layers and both directions; inference, since that has an operator of its own."""
    module = nn.LSTM(12, 16, 2, batch_first=True, bidirectional=True).to(device)
    with torch._dynamo.config.patch(allow_rnn=True), torch.no_grad():
        compiler(module)(torch.randn(3, 10, 12, device=device))


@network
def flex_attention(device: str, compiler: Compiler) -> None:
    """A template with the user's own score and mask in it; inference."""
    flex = importlib.import_module("torch.nn.attention.flex_attention")

    def causal(_batch: Any, _head: Any, query: Any, key: Any) -> Any:
        return query >= key

    def nearer(score: Any, _batch: Any, head: Any, query: Any, key: Any) -> Any:
        return score - (query - key) * (head + 1) * 0.1

    mask = flex.create_block_mask(causal, None, None, 256, 256, device=device)
    q, k, v = torch.randn(3, 2, 4, 256, 32, device=device)
    with torch.no_grad():
        compiler(lambda q: flex.flex_attention(q.relu(), k, v, score_mod=nearer, block_mask=mask))(q)


@network
def mlp_mixer(device: str, compiler: Compiler) -> None:
    """Eight blocks."""
    train(nn.Sequential(*(Mixer(49, 64) for _ in range(8))), device, compiler, torch.randn(2, 49, 64))


@network
def vit(device: str, compiler: Compiler) -> None:
    """Six blocks on 49 patches."""
    train(ViT(), device, compiler, torch.randn(2, 3, 56, 56))


@network
def gpt(device: str, compiler: Compiler) -> None:
    """Eight blocks, with dropout and cross entropy."""
    train(GPT(), device, compiler, torch.randint(0, 300, (2, 33)))


@network
def gpt_dynamic(device: str, compiler: Compiler) -> None:
    """Sizes are symbols."""
    train(GPT(depth=4), device, compiler, torch.randint(0, 300, (3, 30)), dynamic=True)


@network
def gpt_half(device: str, compiler: Compiler) -> None:
    """In bfloat16 under autocast."""
    module = GPT(depth=3)

    with torch.autocast(device, torch.bfloat16):
        train(module, device, compiler, torch.randint(0, 300, (2, 33)))


@network
def tcn(device: str, compiler: Compiler) -> None:
    """Dilations to 32, weights normalised."""
    train(nn.Sequential(*(Dilated(24, 1 << k) for k in range(6))), device, compiler, torch.randn(2, 24, 100))


def step(
    optimizer: Callable[..., torch.optim.Optimizer], count: int, device: str, compiler: Compiler
) -> None:
    """Compile an optimizer's step over `count` parameters of many shapes."""
    shapes = [(8 + k % 7, 4 + k % 5) if k % 3 else (5 + k % 11,) for k in range(count)]
    parameters = [nn.Parameter(torch.randn(shape, device=device)) for shape in shapes]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    compiler(optimizer(parameters).step)()


@network
def adam(device: str, compiler: Compiler) -> None:
    """A step of Adam over 150 parameters."""
    step(lambda values: torch.optim.Adam(values, lr=1e-3, weight_decay=0.01), 150, device, compiler)


@network
def sgd_norm(device: str, compiler: Compiler) -> None:
    """Gradients clipped by their norm, then a step with momentum."""
    step(lambda values: torch.optim.SGD(values, lr=1e-2, momentum=0.9, nesterov=True), 60, device, compiler)
    parameters = [nn.Parameter(torch.randn(6, 7, device=device)) for _ in range(30)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    compiler(lambda: nn.utils.clip_grad_norm_(parameters, 1.0))()


@network
def norms(device: str, compiler: Compiler) -> None:
    """A norm zoo."""
    train(Norms(16), device, compiler, torch.randn(3, 16, 14, 15))


@network
def breaks(device: str, compiler: Compiler) -> None:
    """A network with graph breaks between its blocks: many small graphs in a run, and one recompile."""

    def forward(x: torch.Tensor) -> torch.Tensor:
        for block in blocks:
            x = block(x)
            torch._dynamo.graph_break()
        return x

    blocks = nn.ModuleList(Mixer(10, 16) for _ in range(4)).to(device)
    compiled = compiler(forward)
    for batch in (2, 3):
        compiled(torch.randn(batch, 10, 16, device=device)).square().mean().backward()


@network
def user_triton(device: str, compiler: Compiler) -> None:
    """Triton kernels of the user's own, one of them tuned."""
    kernels = importlib.import_module("benchmarks.sweeps.kernels")
    compiler(kernels.both)(torch.randn(1000, device=device), torch.randn(1000, device=device))


if __name__ == "__main__":
    run.main("benchmarks.sweeps.models", __doc__)
