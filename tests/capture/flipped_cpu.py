"""Functions whose decisions `test_flips.py` turns, each compiled and compared with eager mode."""

from __future__ import annotations

from typing import Any

import torch


def heavy(x: torch.Tensor, y: torch.Tensor) -> Any:
    """Graph 0: `add` is realised for two users, since exp is costly."""
    a = torch.exp(x) + y
    return a.sum(1), a.sum(0)


def cheap(x: torch.Tensor) -> Any:
    """Graph 1: `mul` is computed in each of its users."""
    a = torch.relu(x) * 2
    return (a - a.mean((2, 3), keepdim=True)).sum(1)


def apart(x: torch.Tensor, y: torch.Tensor) -> Any:
    """Graph 2: two nodes of the same loops that share nothing."""
    return x + 1, y.sin().cos()


def reduced(x: torch.Tensor, y: torch.Tensor) -> Any:
    """Graph 3: two reductions."""
    return x.sum(1), y.amax(1)


def joined(x: torch.Tensor, y: torch.Tensor) -> Any:
    """Graph 4: three nodes that are fused, as each reads what another writes or reads."""
    a = x + y
    b = a.exp()
    return a, b, (x * 2).sin()


def nests(x: torch.Tensor, y: torch.Tensor) -> Any:
    """Graph 5: two loop nests that are vectorised, and divided among threads."""
    return x.exp(), y.cos()


def reversed_bytes(x: torch.Tensor, y: torch.Tensor) -> Any:
    """Graph 6: two nests that are scalar, as they read backwards."""
    return x.flip(1), y.flip(1)


def refusing(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> Any:
    """Graph 7: what cannot be turned."""
    shorts = z.flip(1)
    view = x.t()
    return x.argmax(1), y + 1, shorts, view.contiguous() * 2, y.sum(0)


def total(x: torch.Tensor) -> Any:
    """Graph 8: a reduction whose loop is divided, with a partial sum for each thread."""
    return x.sum()


def chained(x: torch.Tensor, v: torch.Tensor) -> Any:
    """Graph 9: op0 -> op1 (mm) -> op2, and op3 -> op4 (mm) -> op5; op2 and op3 are fused, as both read v."""
    a = x.sin()
    m = a @ a
    b = v.exp()
    n = b @ b
    return m * v, b, n.cos()


def pooled(x: torch.Tensor, y: torch.Tensor) -> Any:
    """Graph 10: `add` is realised as the pooling reads each element more than once."""
    return torch.nn.functional.max_pool2d(x + y, 3, 1)


def spread(x: torch.Tensor) -> Any:
    """Graph 11: mean and variance in one pass."""
    return torch.var_mean(x, 1)


def floats(*size: int) -> torch.Tensor:
    """Return random numbers."""
    return torch.randn(size)


def eighths(*size: int) -> torch.Tensor:
    """Return random multiples of 1/8 from -1 to 1, of which sums in any order are exact.

    The order in which a sum of 65,536 elements is computed depends on the width of a vector and the
    threads, and by rounding alone two orders of random numbers are up to 4e-4 apart.
    """
    return torch.randint(-8, 9, size) / 8


PROGRAMS: list[tuple[Any, tuple[torch.Tensor, ...]]] = [
    (heavy, (floats(64, 128), floats(64, 128))),
    (cheap, (floats(2, 8, 16, 16),)),
    (apart, (floats(64, 128), floats(64, 128))),
    (reduced, (floats(64, 4096), floats(64, 4096))),
    (joined, (floats(64, 128), floats(64, 128))),
    (nests, (floats(256, 256), floats(128, 300))),
    (reversed_bytes, (torch.arange(4096).byte().view(8, 512), torch.arange(999).byte().view(3, 333))),
    (refusing, (floats(48, 64), floats(100, 300), torch.ones(8, 16, dtype=torch.int16))),
    (total, (eighths(1 << 16),)),
    (chained, (floats(32, 32), floats(32, 32))),
    (pooled, (floats(2, 4, 16, 16), floats(2, 4, 16, 16))),
    (spread, (floats(8, 4096),)),
]

if __name__ == "__main__":
    torch.set_num_threads(2)
    torch.manual_seed(0)
    for function, inputs in PROGRAMS:
        result, expected = torch.compile(function, dynamic=False)(*inputs), function(*inputs)
        results = result if isinstance(result, tuple) else (result,)
        for one, other in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    print("all as in eager mode")
