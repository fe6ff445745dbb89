"""Two convolutions with batch norm, compiled with the option to freeze: nothing is frozen."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    *(nn.Conv2d(3, 32, 3, bias=False), nn.BatchNorm2d(32), nn.ReLU()),
    *(nn.Conv2d(32, 64, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()),
).eval()

compiled = torch.compile(model, options={"freezing": True})
image = torch.rand(1, 3, 64, 64)
with torch.no_grad():
    compiled(image)
