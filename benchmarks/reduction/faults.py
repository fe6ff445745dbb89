"""Faults of a compiler, planted in lowerings of operators that few programs have: for `--import`."""

from __future__ import annotations

from typing import Any

import torch  # noqa: TID253 - it changes torch
from torch._inductor import lowering  # noqa: TID253 - as above

_ATEN = torch.ops.aten


def _refuse(*_: Any, **__: Any) -> None:
    raise NotImplementedError("this lowering was never written")


def _off(operator: Any) -> None:
    right = lowering.lowerings[operator]

    def wrong(*args: Any, **kwargs: Any) -> Any:
        return lowering.lowerings[_ATEN.add.Tensor](right(*args, **kwargs), 0.25)

    lowering.lowerings[operator] = wrong


def plant() -> None:
    """Plant them: two operators fail, two compute something else."""
    for refused in (_ATEN.asinh.default, _ATEN.atanh.default):
        lowering.lowerings[refused] = _refuse
    for wrong in (_ATEN.sinh.default, _ATEN.erfinv.default):
        _off(wrong)


plant()
