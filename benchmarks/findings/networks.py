"""Networks in the width that people run, at sizes that two cores take: for sweeps of the findings.

`changes.py sweep` compiles each with and without a change of torch; `calls.py` calls those that
infer. As a script it runs some once, on a GPU, real or simulated:

    probe dump --target h200 -m benchmarks.findings.networks resnet50_training gpt_block_training

ResNet-50 is torch's own layers in the published shape, and a GPT block has the width of GPT-2. Weights
are random: nothing here depends on what a network has learnt.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch  # noqa: TID253 - a file of torch programs
from torch import nn  # noqa: TID253 - as above

from benchmarks.sweeps.networks import Attention, Mixer, UNet, ViT, resnet

Made = tuple[Callable[..., torch.Tensor], tuple[torch.Tensor, ...]]
"""A module, or a function of one, and its inputs."""
NETWORKS: dict[str, Callable[[], Made]] = {}
FOR_A_GPU = ("llama_block", "llama_block_training")
"""Of a width at which a call would take seconds on two cores."""
TRAINED = (
    *("resnet50_training", "resnet50_channels_last_training", "gpt_block_training", "unet_training"),
    "llama_block_training",
)
"""Those that run forward and backward; the others infer, without gradients."""
PIXELS = 224
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def network(function: Callable[[], Made]) -> Callable[[], Made]:
    """Add a function to the list, under its name."""
    NETWORKS[function.__name__] = function
    return function


def names(device: str) -> list[str]:
    """Return the names of the networks that a device is swept with."""
    return [name for name in NETWORKS if device == "cuda" or name not in FOR_A_GPU]


def attempts(name: str, device: str, compiler: Callable[..., Any]) -> Iterator[Callable[[], object]]:
    """Yield the one way to run the network `name`."""

    def run() -> None:
        with torch.device(device):
            function, inputs = NETWORKS[name]()
        compiled = compiler(function, dynamic=False)
        with torch.set_grad_enabled(name in TRAINED):
            result = compiled(*inputs)
        if name in TRAINED:
            result.float().square().mean().backward()

    yield run


def _photos(count: int, rows: int = PIXELS, columns: int = PIXELS) -> torch.Tensor:
    """Return uint8 images as decoders give them: the three colours of a pixel side by side."""
    return torch.randint(0, 256, (count, rows, columns, 3), dtype=torch.uint8).permute(0, 3, 1, 2)


def _resnet50(batch: int, *, trained: bool, channels_last: bool) -> Made:
    module, image = resnet(width=64).train(trained), torch.rand(batch, 3, PIXELS, PIXELS)
    if channels_last:
        module = module.to(memory_format=torch.channels_last)
        image = image.contiguous(memory_format=torch.channels_last)
    return module, (image,)


@network
def resnet50() -> Made:
    """Inference of an image, channels-first."""
    return _resnet50(1, trained=False, channels_last=False)


@network
def resnet50_channels_last() -> Made:
    """Inference of an image, image and weights channels-last."""
    return _resnet50(1, trained=False, channels_last=True)


@network
def resnet50_photo() -> Made:
    """Inference of a uint8 image, which is mirrored and normalised in the same graph."""
    module, _ = _resnet50(1, trained=False, channels_last=False)
    mean, deviation = (torch.tensor(each).view(3, 1, 1) for each in (_MEAN, _DEVIATION))

    def classified(photo: torch.Tensor) -> torch.Tensor:
        return module((photo.flip(-1) / 255 - mean) / deviation)

    return classified, (_photos(1),)


@network
def augmented_photos() -> Made:
    """What a loader of data does to uint8 images: resized, mirrored, normalised."""
    mean, deviation = (torch.tensor(each).view(3, 1, 1) for each in (_MEAN, _DEVIATION))

    def augmented(photos: torch.Tensor) -> torch.Tensor:
        sized = nn.functional.interpolate(photos, size=(PIXELS, PIXELS), mode="nearest")
        return (sized.flip(-1) / 255 - mean) / deviation

    return augmented, (_photos(4, 345, 456),)


@network
def gpt_block() -> Made:
    """Inference of a block of the width of GPT-2, 256 tokens."""
    block = Attention(768, 12).eval()
    return (lambda tokens: block(tokens, True)), (torch.randn(1, 256, 768),)


@network
def vit() -> Made:
    """Inference of the transformer of `sweeps/networks.py`, on an image of 56 rows and columns."""
    return ViT().eval(), (torch.randn(2, 3, 56, 56),)


@network
def mlp_mixer() -> Made:
    """Inference of eight blocks."""
    return nn.Sequential(*(Mixer(49, 64) for _ in range(8))).eval(), (torch.randn(2, 49, 64),)


@network
def unet() -> Made:
    """Inference of images of 160 rows and 224 columns."""
    return UNet().eval(), (torch.randn(1, 3, 160, 224),)


@network
def resnet50_training() -> Made:
    """A step, forward and backward, of two images."""
    return _resnet50(2, trained=True, channels_last=False)


@network
def resnet50_channels_last_training() -> Made:
    """The same with images and weights channels-last."""
    return _resnet50(2, trained=True, channels_last=True)


@network
def gpt_block_training() -> Made:
    """A step of a block, with dropout."""
    block = Attention(768, 12)
    return (lambda tokens: block(tokens, True)), (torch.randn(1, 256, 768),)


@network
def unet_training() -> Made:
    """A step of images of 160 rows and 224 columns."""
    return UNet(), (torch.randn(1, 3, 160, 224),)


class LlamaBlock(nn.Module):
    """A block of a language model in the shape of Llama 2 7B, without rotary embeddings."""

    def __init__(self, width: int = 4096, heads: int = 32, hidden: int = 11008) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.RMSNorm(width, eps=1e-5) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return tokens (batch, length, width) after attention and a gated layer."""
        batch, length, width = tokens.shape
        parts = self.qkv(self.norms[0](tokens)).view(batch, length, 3, self.heads, -1)
        mixed = nn.functional.scaled_dot_product_attention(*parts.permute(2, 0, 3, 1, 4), is_causal=True)
        tokens = tokens + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        inner = self.norms[1](tokens)
        gated: torch.Tensor = self.down(nn.functional.silu(self.gate(inner)) * self.up(inner))
        return tokens + gated


def _llama_block() -> Made:
    return LlamaBlock().bfloat16(), (torch.randn(1, 2048, 4096, dtype=torch.bfloat16),)


@network
def llama_block() -> Made:
    """Inference of 2,048 tokens, whose norms are along rows of 4,096."""
    return _llama_block()


@network
def llama_block_training() -> Made:
    """A step of them."""
    return _llama_block()


if __name__ == "__main__":
    torch.set_default_device("cuda")
    for network_name in sys.argv[1:]:
        torch._dynamo.reset()
        torch.manual_seed(0)
        for attempt in attempts(network_name, "cuda", torch.compile):
            attempt()
        print(network_name, flush=True)
