"""Dump a graph or a few for every operator of PyTorch's own test database: forms that no user sent yet.

    python -m benchmarks.sweeps.op_db OUT [--device cpu|cuda] [--jobs N] [--timeout SECONDS] [--only PATTERN]
    python -m benchmarks.sweeps.op_db OUT --target h200 [--shuffle SEED]      # for a GPU that is simulated

Every operator gets up to four folders below OUT, each with a `torch_compile_debug` tree and the `stderr.txt`
beside it: `add` (float32 if it takes that), `add-grad` (forward and backward), `add-dynamic` (sizes are
symbols) and one with another type, such as `add-int64`. A second start goes on where the first one ended.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.sweeps import run

_OTHER_TYPES = ["int64", "bool", "complex64", "float16", "bfloat16", "int32", "uint8", "float64", "int8"]
_SAMPLES = 12  # the database has dozens for some operators: the first ones are the plain uses


@functools.cache
def operators() -> dict[str, Any]:
    """Return the operators of the database by name, those of higher order among them."""
    from inductor_probe.op_checks import samples  # noqa: PLC0415 - it imports torch, as what follows does

    database = samples.operators()
    from torch.testing._internal.hop_db import hop_db  # cond, while_loop, flex_attention and the like

    return {**database, **{operator.formatted_name: operator for operator in hop_db}}


def names(device: str) -> list[str]:
    """Return the cases: every operator as it is, with its gradient, with dynamic sizes, with another type.

    The plainest come first. The other type goes round: each operator has one, all together have all types.
    """
    import torch

    found: dict[str, list[str]] = {"": [], "grad": [], "dynamic": [], "type": []}
    for turn, (name, operator) in enumerate(sorted(operators().items())):
        types_ = operator.supported_dtypes(device)
        if not types_:
            continue
        others = [dtype for dtype in _OTHER_TYPES if getattr(torch, dtype) in types_]
        found[""].append(name)
        found["dynamic"].append(f"{name}-dynamic")
        if operator.supports_autograd and torch.float32 in operator.supported_backward_dtypes(device):
            found["grad"].append(f"{name}-grad")
        if others:
            found["type"].append(f"{name}-{others[turn % len(others)]}")
    return list(itertools.chain.from_iterable(found.values()))


def _sample_type(operator: Any, variant: str, device: str) -> Any:
    import torch

    types_ = operator.supported_dtypes(device)
    if variant in _OTHER_TYPES:
        return getattr(torch, variant)
    return torch.float32 if torch.float32 in types_ else sorted(types_, key=str)[0]


def attempts(name: str, device: str, compiler: Callable[..., Any]) -> Iterator[Callable[[], object]]:
    """Yield one attempt for each of the operator's first samples, those with most numbers first."""
    import torch

    name, _, variant = name.partition("-")
    operator = operators()[name]
    grad = variant == "grad"
    dtype = _sample_type(operator, variant, device)

    def run(sample: Any) -> None:
        def function(value: Any, args: Any, kwargs: Any) -> Any:
            return operator.op(value, *args, **kwargs)

        compiled = compiler(function, dynamic=variant == "dynamic")
        result = compiled(sample.input, sample.args, sample.kwargs)
        if grad:
            result = sample.output_process_fn_grad(result)
            leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(result) if _needs_gradient(leaf)]
            torch.autograd.backward(leaves, [torch.ones_like(leaf) for leaf in leaves])

    samples = itertools.islice(operator.sample_inputs(device, dtype, requires_grad=grad), _SAMPLES)
    for sample in sorted(samples, key=_numbers, reverse=True):
        yield functools.partial(run, sample)


def _numbers(sample: Any) -> int:
    import torch

    leaves = torch.utils._pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
    return sum(leaf.numel() for leaf in leaves if isinstance(leaf, torch.Tensor))


def _needs_gradient(value: Any) -> bool:
    return getattr(value, "requires_grad", False)


if __name__ == "__main__":
    run.main("benchmarks.sweeps.op_db", __doc__)
