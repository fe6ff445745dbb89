"""Programs whose compiled results are wrong, in torch 2.13.0 and 2.15.0: what both give."""

import torch


def smallest(x: torch.Tensor) -> torch.Tensor:
    """Return the smallest of 8-bit numbers."""
    return x.min()


def small_atanh(x: torch.Tensor) -> torch.Tensor:
    """Return what is nearly x, where x is small."""
    return torch.atanh(x)


def days(ticks: torch.Tensor) -> torch.Tensor:
    """Return numbers from 0 to 7."""
    return torch.remainder(ticks, 7.0)


PROGRAMS = (
    (smallest, torch.tensor([100, 40, 90, 77] * 8, dtype=torch.uint8)),
    (small_atanh, torch.tensor([1e-4, -1e-8, 1e-5, 0.5] * 8)),
    (days, torch.arange(32.0) * 1.1e9 + 1e10),
)

if __name__ == "__main__":
    for program, value in PROGRAMS:
        eager, compiled = (one(value).flatten()[:3].tolist() for one in (program, torch.compile(program)))
        print(f"{program.__name__:12} eager {eager}, compiled {compiled}")
