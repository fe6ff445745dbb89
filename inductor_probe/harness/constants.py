"""Constants: the real values of tensors that are part of a graph, and operators on packed ones in float64."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.inputs import Inputs
from inductor_probe.harness.random_numbers import IN_FLOAT64
from inductor_probe.harness.reference import first_line
from inductor_probe.harness.remarks import MISSING_CONSTANT, Remark, remark
from inductor_probe.harness.saved_inputs import InputsError

FOLDER = "probe_constants"  # beside the bench file, with a file for each: `_frozen_param3.bin`


class Constants:
    """Makes the constants of a graph from the files that `probe dump` left in `folder`.

    A layout is a size, a stride, a dtype and a device: `(4, 24), (24, 1), torch.float32, "cpu"`.

    Attributes:
        missing: the constants that cannot be had, and why: a code of `remarks.MISSING_CONSTANT`.
        remade: those with random values.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.missing: dict[str, str] = {}
        self.remade: list[str] = []

    def tensor(
        self, name: str, *layout: Any, file: str = "", sha256: str = "", missing: str = ""
    ) -> torch.Tensor:
        """Return a constant with its real values; with others, and `missing`, where they cannot be had.

        Args:
            name, layout: of the constant.
            file: has its bytes; `NAME.bin` if left out.
            sha256: the first digits of the digest of that file.
            missing: the code of why the dump does not hold it.
        """
        size, stride, dtype, device = layout
        path = self.folder / (file or f"{name}.bin")
        data = bytearray(path.read_bytes()) if not missing and path.is_file() else None
        if data is None:
            missing = missing or "file-missing"
        elif not hashlib.sha256(data).hexdigest().startswith(sha256):
            missing = "file-changed"
        if missing or data is None:
            self.missing[name] = missing
            index = None if dtype.is_floating_point or dtype.is_complex else 0  # within any bounds
            return Inputs(0).tensor(name, *layout, low=index, high=index)
        memory = torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
        storage = memory.clone().to(device).untyped_storage()  # a copy, aligned as torch aligns memory
        return torch.empty(0, dtype=dtype, device=device).set_(storage, 0, size, stride)

    def random(self, name: str, *layout: Any, **bounds: Any) -> torch.Tensor:
        """Return a constant with random values within `bounds`: the dump does not hold the real ones."""
        self.remade.append(name)
        return Inputs(len(self.remade)).tensor(name, *layout, **bounds)


def bind_constants(bench: Bench) -> list[Remark]:
    """Set the constants of a graph in the module of its bench file, once; return what is to be known of them.

    Without one that cannot be had, the graph runs on a stand-in: kernels that do not take it are judged and
    timed as ever. `bench.missing` says which do.

    Raises:
        InputsError: the graph does not run with the stand-ins.
    """
    make = bench.namespace.get("make_constants")
    if bench.missing is not None or make is None:
        return []
    constants = Constants(Path(bench.namespace["__file__"]).parent / FOLDER)
    make(constants)
    takes: dict[str, tuple[str, ...]] = bench.namespace["TAKES"]
    sentences, remarks = dict[str, str](), list[Remark]()
    if constants.remade:
        remarks.append(remark("constants-remade", names=", ".join(constants.remade)))
    bench.missing = {}
    for name, code in constants.missing.items():
        sentences[name] = f"the constant {name} cannot be had: {MISSING_CONSTANT.get(code, code)}"
        for kernel in takes.get(name, ()):
            bench.missing.setdefault(kernel, sentences[name])
            remarks.append(remark("constant-missing", kernel, constant=name, reason=code))
        if name not in takes:  # its values are in the text of a kernel: a reference with others is wrong
            bench.aten_graph, bench.no_reference = None, sentences[name]
    if bench.missing:
        for name in bench.variants("call", *bench.missing):
            del bench.namespace[name]  # nothing can be right by a stand-in
        try:
            with torch.no_grad():
                bench.namespace["call"](bench.inputs(0))
        except Exception as error:  # a library takes nothing but what it packed itself
            why = "; ".join(sentences.values())
            message = f"the graph cannot run without its constants ({why}): {first_line(error)}"
            raise InputsError(message) from error
    return remarks


def _activated(value: torch.Tensor, name: str | None, scalars: Any, algorithm: str | None) -> torch.Tensor:
    """Apply the operation that oneDNN does behind a linear or a convolution.

    Their names are in torch/_inductor/fx_passes/mkldnn_fusion.py (UnaryAttr).
    """
    match name:
        case None | "none":
            return value
        case "swish":
            return functional.silu(value)
        case "leaky_relu":
            return functional.leaky_relu(value, scalars[0])
        case "hardtanh":
            return functional.hardtanh(value, scalars[0], scalars[1])
        case "gelu":
            return functional.gelu(value, approximate=algorithm or "none")
        case "relu" | "sigmoid" | "tanh" | "hardswish" | "hardsigmoid":
            result: torch.Tensor = getattr(functional, name)(value)
            return result
    raise NotImplementedError(f"oneDNN's {name}")


def _combined(value: torch.Tensor, other: torch.Tensor, name: str, alpha: Any = None) -> torch.Tensor:
    if name in ("add", "sum"):
        return torch.add(value, other, alpha=alpha or 1)
    if name in ("sub", "mul", "div"):
        result: torch.Tensor = getattr(torch, name)(value, other)
        return result
    raise NotImplementedError(f"oneDNN's {name}")


def _convolved(x: Any, weight: Any, bias: Any, *geometry: Any) -> torch.Tensor:
    padding, stride, dilation, groups = geometry
    no_padding = [0] * len(padding)
    result: torch.Tensor = torch.ops.aten.convolution(
        x, weight, bias, stride, padding, dilation, False, no_padding, groups
    )
    return result


def _convolved_transposed(x: Any, weight: Any, bias: Any, *rest: Any) -> torch.Tensor:
    (padding, output_padding, stride, dilation, groups), unary = rest[:5], rest[5:]
    if groups != 1:
        raise NotImplementedError(
            "a transposed convolution of several groups, whose weight has another order"
        )
    plain = weight.transpose(0, 1)  # oneDNN has outputs before inputs
    result: torch.Tensor = torch.ops.aten.convolution(
        x, plain, bias, stride, padding, dilation, True, output_padding, groups
    )
    return _activated(result, *unary)


def _convolved_into(other: torch.Tensor, x: Any, *rest: Any) -> torch.Tensor:
    return other.copy_(_convolution_binary(x, other, *rest))


def _convolution_binary(x: Any, other: Any, *rest: Any) -> torch.Tensor:
    convolution, (name, alpha, *unary) = rest[:6], rest[6:]
    return _activated(_combined(_convolved(x, *convolution), other, name, alpha), *unary)


OPERATORS: dict[str, Callable[..., Any]] = {
    "mkl._mkl_linear.default": lambda x, _, weight, bias, *__: functional.linear(x, weight, bias),
    "mkldnn._linear_pointwise.default": lambda x, weight, bias, *unary: _activated(
        functional.linear(x, weight, bias), *unary
    ),
    "mkldnn._linear_pointwise.binary": lambda x, other, weight, bias, name: _combined(
        functional.linear(x, weight, bias), other, name
    ),
    "mkldnn._convolution_pointwise.default": lambda *args: _activated(_convolved(*args[:7]), *args[7:]),
    "mkldnn._convolution_pointwise.binary": _convolution_binary,
    "mkldnn._convolution_pointwise_.binary": _convolved_into,
    "mkldnn._convolution_transpose_pointwise.default": _convolved_transposed,
}
"""What operators on packed weights compute, by their names, in operators that know float64."""
IN_FLOAT64.update(OPERATORS)
