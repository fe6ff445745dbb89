"""Library calls of a wrapper in C++, by the names of the C functions in torch/csrc/inductor/aoti_torch.

`shim("aoti_torch_cpu_topk", buf4, 3, 1, 1, 1)` calls `aten.topk`, whose schema says what each value is.
"""

from __future__ import annotations

import re
from typing import Any

import torch


def shim(name: str, *values: Any) -> Any:
    """Call the operator that a C function stands for, with what the C function is passed."""
    operator, given = operator_of_shim(name), list(values)
    arguments = operator._schema.arguments
    outs = {argument.name: given.pop(0) for argument in arguments if argument.is_out}  # they come first
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for argument in arguments:
        if argument.is_out or not given:
            continue
        value, kind = given.pop(0), str(argument.type)
        if value is None and "List" in kind and given and given[0] == 0:
            given.pop(0)  # the length of a list that is not there
            value = None if "Optional" in kind else []
        elif "Device" in kind:
            index = given.pop(0)
            value = value if value in (None, "cpu") else f"{value}:{index}"
        elif kind in ("bool", "Optional[bool]") and value is not None:
            value = bool(value)
        if argument.kwarg_only:
            keywords[argument.name] = value
        else:
            positional.append(value)
    return operator(*positional, **keywords, **outs)


def operator_of_shim(name: str) -> Any:
    """Return the operator behind `aoti_torch_cpu_addmm_out`, or of the schema `library::name.overload`."""
    name = name.removeprefix("torch.ops.").replace(".", "::", 1) if name.startswith("torch.ops.") else name
    if "::" in name:
        library, _, rest = name.partition("::")
        packet, _, overload = rest.partition(".")
        return getattr(getattr(getattr(torch.ops, library), packet), overload or "default")
    short = re.sub(r"^aoti_torch_(?:(?:cpu|cuda|xpu|mps)_)?", "", name)
    short = re.sub(r"_v\d+$", "", short)
    names = {
        "aten": short,
        "mkldnn": short.removeprefix("mkldnn_"),
        "mkl": short,
        "onednn": short.lstrip("_"),
        "_c10d_functional": short.removeprefix("_c10d_functional_"),
    }
    for library, full in names.items():
        parts = full.split("_")
        for count in range(len(parts), 0, -1):
            operators = getattr(getattr(torch.ops, library), "_".join(parts[:count]), None)
            overload = "_".join(parts[count:]) or "default"
            if operators is not None and overload in operators.overloads():
                return getattr(operators, overload)
    raise LookupError(f"no operator of this torch is called by {name}")


def stand_ins(buffers: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return random values for what an operator returns that cannot be called: the same each time."""
    for seed, buffer in enumerate(buffers.values()):
        if buffer.is_floating_point() or buffer.is_complex():
            buffer.normal_(generator=torch.Generator(buffer.device).manual_seed(seed))
        else:
            buffer.zero_()
    return buffers
