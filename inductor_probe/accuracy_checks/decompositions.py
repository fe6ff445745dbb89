"""Each decomposition beside the operator that it stands for, on the values of the program.

The user's function runs eagerly. Where inductor's table has a decomposition of an operator that it calls,
that runs as well, on copies of the same operands. Operators within a decomposition are compared in their
turn, and run as they
are: so a wrong one does not make those wrong that are built on it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from inductor_probe.accuracy_checks.faults import Fault, calling_line, operator_of
from inductor_probe.accuracy_checks.judgement import RIGHT, WRONG, judge
from inductor_probe.accuracy_checks.shadow import Shadow, is_opaque, written_operands

DEEPEST = 6


class Decompositions(TorchDispatchMode):  # type: ignore[misc] # mypy does not follow torch
    """Compares decompositions while it is active; `faults` are those that are wrong, each operator once."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        from torch._inductor.decomposition import select_decomp_table  # noqa: PLC0415 - not before it is asked for

        self._table = select_decomp_table()
        self._depth = 0
        self.faults: dict[str, Fault] = {}
        self.compared = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        decomposition = self._table.get(func) or _of_python(func)
        name = operator_of(func)
        if (
            decomposition is None
            or self._depth > DEEPEST
            or name in self.faults
            or is_opaque(func)
            or _writes(func)
        ):
            return func(*args, **kwargs)
        operands = tree_map(_copy, (args, kwargs))
        result = func(*args, **kwargs)
        self._depth += 1
        try:
            with self:
                others = _given(func, decomposition, operands)
        except Exception:
            return result
        finally:
            self._depth -= 1
        if others is not None:
            results = [*tree_leaves(result), *written_operands(func, args, kwargs)]
            self._compare(func, decomposition, operands, results, others)
        return result

    def _compare(
        self, func: Any, decomposition: Any, operands: Any, results: list[Any], others: list[Any]
    ) -> None:
        self.compared += 1
        for place, (eager, decomposed) in enumerate(zip(results, others, strict=False)):
            if not isinstance(eager, torch.Tensor) or not isinstance(decomposed, torch.Tensor):
                continue
            if judge(eager, decomposed).verdict == RIGHT:
                continue
            with Shadow() as exact:
                again = _given(func, func, operands)[place]
            plain = _wide(func, decomposition, operands, place)

            right = exact.of(again)

            def noise(seed: int, right: Any = right, plain: Any = plain, place: int = place) -> Any:
                """The reference, moved as the decomposition is where its results are rounded otherwise."""
                return right + (_wide(func, decomposition, operands, place, seed) - plain)

            def of_integers(seed: int, place: int = place) -> Any:
                """What the operator gives where results are moved: an interpolation of 8 bits by one."""
                with Shadow(seed) as mode:
                    moved = _given(func, func, operands)[place]
                return mode.of(moved)

            judged = judge(eager, decomposed, right, noise if eager.is_floating_point() else of_integers)
            if judged.verdict == WRONG:
                name = operator_of(func)
                fault = Fault("decomposition", name, judged, user=calling_line())
                fault.cause = _name_of(decomposition)
                fault.steps = [("operator", name, RIGHT), ("decomposition", _name_of(decomposition), WRONG)]
                self.faults[name] = fault
                return


def _of_python(func: Any) -> Any:
    """Return what stands for an operator while AOTAutograd traces, without a table (`OpOverload.py_impl`)."""
    kernels, keys = getattr(func, "py_kernels", {}), torch._C.DispatchKey
    return kernels.get(keys.CompositeImplicitAutograd) or kernels.get(keys.Autograd)


def _given(func: Any, function: Any, operands: Any) -> Any:
    """Return what an operator gives, or `function` in its place: results, and operands that it writes.

    None where it decomposes nothing. Running means of a batch norm are written though no schema says so.
    """
    args, kwargs = tree_map(_copy, operands) if written_operands(func, *operands) else operands
    result = function(*args, **kwargs)
    return None if result is NotImplemented else [*tree_leaves(result), *written_operands(func, args, kwargs)]


def _wide(func: Any, decomposition: Any, operands: Any, place: int, seed: int | None = None) -> torch.Tensor:
    """Return what a decomposition gives in float64; with results moved by roundings where there is a seed."""
    with Shadow(seed) as mode:
        value = _given(func, decomposition, operands)[place]
    return mode.of(value)


def _copy(value: Any) -> Any:
    """Copy an operand with its strides: a decomposition may look at those."""
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return value
    return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=value.device).copy_(
        value
    )


def _writes(func: Any) -> bool:
    schema = getattr(func, "_schema", None)
    return schema is None or bool(schema.is_mutable)


def _name_of(decomposition: Any) -> str:
    module = getattr(decomposition, "__module__", "")
    return f"{module}.{getattr(decomposition, '__qualname__', decomposition)}"
