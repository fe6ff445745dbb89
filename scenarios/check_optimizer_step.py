"""An optimizer's step over a list of parameters: many small pointwise updates, written in place.

The updates are `torch._foreach_*` operations. On CUDA inductor makes one kernel of several tensors of them
(ForeachKernelSchedulerNode, a combo kernel); on the CPU one loop nest a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from rounding import steps
from tensors import dtype_of, normal

from inductor_probe.scenario import Case, Check, Scenario

Tensors = Sequence[torch.Tensor]
RATE, MOMENTUM, BETA1, BETA2, EPS = 0.01, 0.9, 0.9, 0.999, 1e-8


def adam_step(parameters: Tensors, grads: Tensors, means: Tensors, squares: Tensors, counts: Tensors) -> None:
    """Move `parameters` against `grads`; means, squares and the number of steps are what Adam keeps."""
    torch._foreach_add_(counts, 1)
    torch._foreach_lerp_(means, grads, 1 - BETA1)
    torch._foreach_mul_(squares, BETA2)
    torch._foreach_addcmul_(squares, grads, grads, 1 - BETA2)
    moves = torch._foreach_div(means, one_minus(torch._foreach_pow(BETA1, counts)))
    roots = torch._foreach_sqrt(torch._foreach_div(squares, one_minus(torch._foreach_pow(BETA2, counts))))
    torch._foreach_div_(moves, torch._foreach_add(roots, EPS))
    torch._foreach_add_(parameters, moves, alpha=-RATE)


def one_minus(tensors: Tensors) -> Tensors:
    """Return 1 - x for each."""
    return torch._foreach_add(torch._foreach_neg(tensors), 1)


def sgd_step(parameters: Tensors, grads: Tensors, means: Tensors) -> None:
    """Move `parameters` against a running sum of `grads`, which is kept in `means`."""
    torch._foreach_mul_(means, MOMENTUM)
    torch._foreach_add_(means, grads)
    torch._foreach_add_(parameters, means, alpha=-RATE)


OPTIMIZERS = {"adam": adam_step, "sgd": sgd_step}


def returning_state(
    function: Callable[..., None], parameters: Tensors, grads: Tensors, *kept: Tensors
) -> list[torch.Tensor]:
    """Return parameters and what the optimizer keeps, after the step."""
    function(parameters, grads, *kept)
    return [*parameters, *(tensor for tensors in kept for tensor in tensors)]


def adam_in_float64(
    parameters: Tensors, grads: Tensors, means: Tensors, squares: Tensors, counts: Tensors
) -> list[torch.Tensor]:
    """Return the same by D. Kingma and J. Ba, "Adam: a method for stochastic optimization", algorithm 1."""
    t = int(counts[0]) + 1
    grads = [grad.double() for grad in grads]
    means = [BETA1 * m.double() + (1 - BETA1) * g for m, g in zip(means, grads, strict=True)]
    squares = [BETA2 * v.double() + (1 - BETA2) * g * g for v, g in zip(squares, grads, strict=True)]
    moved = [
        x - RATE * (m / (1 - BETA1**t)) / ((v / (1 - BETA2**t)).sqrt() + EPS)
        for x, m, v in zip(parameters, means, squares, strict=True)
    ]
    return [*moved, *means, *squares, *(count + 1 for count in counts)]


def sgd_in_float64(parameters: Tensors, grads: Tensors, means: Tensors) -> list[torch.Tensor]:
    """Return the same tensor by tensor."""
    means = [MOMENTUM * m.double() + g for m, g in zip(means, grads, strict=True)]
    return [*(x - RATE * m for x, m in zip(parameters, means, strict=True)), *means]


def adam_by_torch(
    parameters: Tensors, grads: Tensors, means: Tensors, squares: Tensors, counts: Tensors
) -> list[torch.Tensor]:
    """Return what `torch.optim` makes of it."""
    optimizer = torch.optim.Adam(parameters, RATE, (BETA1, BETA2), EPS)
    counts = [count.cpu() for count in counts]
    for x, grad, mean, square, count in zip(parameters, grads, means, squares, counts, strict=True):
        x.grad = grad
        optimizer.state[x] = {"exp_avg": mean, "exp_avg_sq": square, "step": count}
    optimizer.step()
    return [*parameters, *means, *squares, *counts]


def sgd_by_torch(parameters: Tensors, grads: Tensors, means: Tensors) -> list[torch.Tensor]:
    """Return what `torch.optim` makes of it."""
    optimizer = torch.optim.SGD(parameters, RATE, MOMENTUM)
    for x, grad, mean in zip(parameters, grads, means, strict=True):
        x.grad = grad
        optimizer.state[x] = {"momentum_buffer": mean}
    optimizer.step()
    return [*parameters, *means]


REFERENCES = {
    "adam": {"float64": adam_in_float64, "torch.optim": adam_by_torch},
    "sgd": {"float64": sgd_in_float64, "torch.optim": sgd_by_torch},
}


def build(case: Case) -> Check:
    """Make the parameters of `layers` square layers, weights and biases, as they may be after 4999 steps.

    All values are up to 6 in size and see some 5 roundings. What Adam divides by is some 1: it amplifies
    nothing.
    """
    shapes = [shape for _ in range(case["layers"]) for shape in ((case["width"],) * 2, (case["width"],))]
    parameters, grads, means = ([normal(case, *shape) for shape in shapes] for _ in range(3))
    squares = [torch.rand_like(x) + 0.5 for x in parameters]
    counts = [torch.tensor(4999.0, device=case["device"]) for _ in shapes]
    state = (parameters, grads, means)
    return Check(
        OPTIMIZERS[case["optimizer"]],
        (*state, squares, counts) if case["optimizer"] == "adam" else state,
        references=REFERENCES[case["optimizer"]],
        tolerance=steps(dtype_of(case), 5, largest=6),
        options={"dynamic": case["dynamic"]},
        step=returning_state,
    )


scenario = Scenario(
    build,
    defaults={
        "device": "cpu",
        "dtype": "float32",
        "optimizer": "adam",
        "layers": 2,
        "width": 32,
        "dynamic": False,
    },
    cases={
        "adam": {},
        "sgd": {"optimizer": "sgd"},
        "cuda_adam": {"device": "cuda", "layers": 12, "width": 1024},
        "cuda_sgd": {"device": "cuda", "optimizer": "sgd", "layers": 12, "width": 1024},
    },
    choices={"dtype": ("float32", "float64"), "optimizer": tuple(OPTIMIZERS)},
)

if __name__ == "__main__":
    scenario.main()
