"""Programs whose compiled results are wrong: each prints what eager and compiled code give.

    python docs/findings/wrong_values.py                       all
    probe accuracy docs/findings/wrong_values.py               which operator, line and layer
"""

import torch


def smallest(x):
    return x.min()


def brightest(images):
    return images.mean(dim=-1).argmax()


def small_atanh(x):
    return torch.atanh(x)


def days(ticks):
    return torch.remainder(ticks, 7.0)


def ranks(x):
    on = torch.full((20,), 3, dtype=torch.bool)
    return on.cumsum(0) + x


def shares(x):
    return 0 / x + 1


torch.manual_seed(2)
PROGRAMS = (
    (smallest, torch.tensor([100, 40, 90, 77] * 8, dtype=torch.uint8)),
    (brightest, torch.rand(3, 5, 7, 4).permute(2, 0, 1, 3)),
    (small_atanh, torch.tensor([1e-4, -1e-8, 1e-5, 0.5] * 8)),
    (days, torch.arange(32.0) * 1.1e9 + 1e10),
    (ranks, torch.zeros(20, dtype=torch.int64)),
    (shares, torch.tensor([2.0, 0.0, -3.0, 0.0] * 8)),
)

if __name__ == "__main__":
    print(f"torch {torch.__version__}")
    for program, value in PROGRAMS:
        eager, compiled = (one(value).flatten()[:3].tolist() for one in (program, torch.compile(program)))
        print(f"{program.__name__:12} eager {eager}, compiled {compiled}")
