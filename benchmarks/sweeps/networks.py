"""The networks that `models.py` trains, in their usual depth, narrow and written in plain torch."""
# ruff: noqa: D102 - a network's forward is documented by its class

from __future__ import annotations

import itertools

import torch  # noqa: TID253 - a file of torch programs
from torch import nn  # noqa: TID253 - as above
from torch.nn import functional as F  # noqa: TID253, N812 - as above; its usual name


class Bottleneck(nn.Module):
    """Three convolutions around which the input is added: what ResNet-50 is made of."""

    def __init__(self, wide: int, narrow: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(wide, narrow, 1, bias=False), nn.BatchNorm2d(narrow), nn.ReLU()),
            *(nn.Conv2d(narrow, narrow, 3, stride, 1, bias=False), nn.BatchNorm2d(narrow), nn.ReLU()),
            *(nn.Conv2d(narrow, out, 1, bias=False), nn.BatchNorm2d(out)),
        )
        same = stride == 1 and wide == out
        shorter = nn.Sequential(nn.Conv2d(wide, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        self.skip = nn.Identity() if same else shorter

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.body(x) + self.skip(x))


def resnet(depths: tuple[int, ...] = (3, 4, 6, 3), width: int = 16) -> nn.Module:
    """ResNet-50 at a quarter of its width."""
    layers: list[nn.Module] = [
        *(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
        nn.MaxPool2d(3, 2, 1),
    ]
    wide = width
    for stage, depth in enumerate(depths):
        narrow = width << stage
        for block in range(depth):
            layers.append(Bottleneck(wide, narrow, 4 * narrow, 2 if stage and not block else 1))
            wide = 4 * narrow
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(wide, 100))


class UNet(nn.Module):
    """Down, up and across."""

    def __init__(self, widths: tuple[int, ...] = (8, 16, 32, 64)) -> None:
        super().__init__()
        self.down = nn.ModuleList(map(self.double, (3, *widths), widths))
        up = widths[::-1]
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in itertools.pairwise(up))
        self.join = nn.ModuleList(self.double(2 * b, b) for b in up[1:])
        self.head = nn.Conv2d(widths[0], 2, 1)

    @staticmethod
    def double(a: int, b: int) -> nn.Module:
        """Two convolutions with group norm."""
        one = nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(4, b), nn.SiLU()
        return nn.Sequential(*one, nn.Conv2d(b, b, 3, padding=1), nn.GroupNorm(4, b), nn.SiLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        across: list[torch.Tensor] = []
        for layer in self.down:
            x = layer(x if not across else F.max_pool2d(x, 2))
            across.append(x)
        for up, join, kept in zip(self.up, self.join, across[-2::-1], strict=True):
            x = F.interpolate(up(x), size=kept.shape[-2:], mode="bilinear", align_corners=False)
            x = join(torch.cat([kept, x], 1))
        return self.head(x)


class UnrolledLSTM(nn.Module):
    """A cell called once a step: the graph has the whole sequence."""

    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTMCell(features, hidden), nn.Linear(hidden, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = c = x.new_zeros(x.shape[0], self.cell.hidden_size)
        steps = []
        for step in x.unbind(1):
            h, c = self.cell(step, (h, c))
            steps.append(self.head(h))
        return torch.stack(steps, 1)


class Mixer(nn.Module):
    """A block of MLP-mixer."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.across = nn.Sequential(nn.Linear(tokens, 48), nn.GELU(), nn.Linear(48, tokens))
        self.within = nn.Sequential(nn.Linear(width, 96), nn.GELU(), nn.Dropout(0.1), nn.Linear(96, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.across(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return x + self.within(self.norms[1](x))


class ViT(nn.Module):
    """Patches, a class token, positions, blocks of attention."""

    def __init__(self, width: int = 48, depth: int = 6) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.token, self.positions = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.randn(50, width))
        self.blocks = nn.ModuleList(Attention(width, 4) for _ in range(depth))
        self.head = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], 1, -1), x], 1) + self.positions
        for block in self.blocks:
            x = block(x, False)
        return self.head(x[:, 0])


class Attention(nn.Module):
    """A block of attention written out, and its MLP."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor, causal: bool) -> torch.Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv(self.before(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / (c // self.heads) ** 0.5
        if causal:
            later = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        read = self.drop(scores.softmax(-1)) @ v
        x = x + self.drop(self.out(read.transpose(1, 2).reshape(b, t, c)))
        return x + self.drop(self.mlp(self.after(x)))


class GPT(nn.Module):
    """Words in, the loss of the next word out; the embedding's weight is the head's too."""

    def __init__(self, words: int = 300, width: int = 64, depth: int = 8) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(64, width)
        self.blocks = nn.ModuleList(Attention(width, 4) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens[:, :-1]) + self.positions(
            torch.arange(tokens.shape[1] - 1, device=tokens.device)
        )
        for block in self.blocks:
            x = block(x, True)
        logits = self.norm(x) @ self.words.weight.T
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), label_smoothing=0.1)


class Dilated(nn.Module):
    """A block of a temporal convolutional network."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.pad = 2 * dilation
        one = nn.Conv1d(width, width, 3, dilation=dilation), nn.Conv1d(width, width, 3, dilation=dilation)
        self.convolutions = nn.ModuleList(nn.utils.parametrizations.weight_norm(layer) for layer in one)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = x
        for layer in self.convolutions:
            x = F.dropout(F.leaky_relu(layer(F.pad(x, (self.pad, 0)))), 0.1, self.training)
        return kept + x


class Norms(nn.Module):
    """Every norm of torch.nn in a row."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(
            [
                *(nn.BatchNorm2d(width), nn.InstanceNorm2d(width, affine=True), nn.GroupNorm(4, width)),
                *(nn.LayerNorm([width, 14, 15]), nn.RMSNorm([14, 15]), nn.LocalResponseNorm(3)),
            ]
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for norm in self.norms:
            x = F.mish(norm(x)) + F.normalize(x, dim=1)
        return torch.cat([x.cumsum(-1), x.logsumexp(1, True).expand_as(x), x.var(1, keepdim=True).sqrt()], 1)
