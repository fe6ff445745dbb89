"""How far apart two right answers may lie: what the scenarios' tolerances are made of.

A floating-point operation returns its exact result times 1 + d with |d| <= u = eps / 2. Its share in the
error of what is computed from it is d times the value, for as long as nothing amplifies it.
"""

from __future__ import annotations

import torch


def steps(dtype: torch.dtype, count: float, largest: float = 1.0) -> float:
    """Return the bound for values up to `largest` that two computations reach in `count` roundings each.

    Each may be off by count * u * largest, to opposite sides.
    """
    return count * torch.finfo(dtype).eps * largest


def kernel(dtype: torch.dtype, count: float, largest: float = 1.0) -> float:
    """Return the same where the roundings are float32's at least, and one of the result is `dtype`'s.

    So do kernels that are one kernel in eager too; elsewhere eager rounds each step to `dtype`.
    """
    return steps(torch.promote_types(dtype, torch.float32), count, largest) + steps(dtype, 1, largest)


def total(dtype: torch.dtype, terms: int, size: float = 1.0, *, positive: bool = False) -> float:
    """Return the bound for two sums of the same `terms` terms of either sign and the deviation `size`.

    After k additions such a sum has the deviation size * sqrt(k), if all terms are positive it is size * k.
    The next addition rounds it by up to u times that, up or down. n such errors have together at most the
    deviation u * size * n / sqrt(2), or u * size * n * sqrt(n / 3). Allowed is a multiple that holds for
    millions of sums.

    A sum is accumulated in float32 at least, and rounded to `dtype` at its end: `steps` and `kernel` have
    that.
    """
    eps = torch.finfo(torch.promote_types(dtype, torch.float32)).eps
    return 4 * eps * size * terms * (terms**0.5 if positive else 1)
