"""Values in the text of C++ wrappers, and what AOTInductor says around them of constants and inputs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from inductor_probe.backends.brackets import split_arguments
from inductor_probe.model.ir import BufferLayout, Dim, as_dim

_SUFFIX = re.compile(r"(?<![\w.])(\d+)U?L{1,2}\b")
_ENUM = re.compile(r"(?:cached|aoti)_torch_(?P<kind>dtype|device_type)_(?P<name>\w+?)(?:\(\))?")
_DEVICE_TYPES = {"0": "cpu", "1": "cuda", "12": "xpu", "13": "mps"}
"""`DeviceType` in torch/headeronly/core/DeviceType.h."""

_CONSTANT = re.compile(r"\s*constants_info_\[(?P<place>\d+)\]\.(?P<key>\w+) = (?P<value>.*);")
_DIM_OF = r"(?P<name>\w+)_(?P<key>size|stride)\[(?P<place>\d+)\]"
_EXPECTED_DIM = re.compile(rf"\s*if \((?P<dim>\d+) != {_DIM_OF}\) \{{")
_TAKEN_DIM = re.compile(rf"\s*int64_t (?P<dim>[su]\d+) = {_DIM_OF};")
_EXPECTED = re.compile(
    r"\s*int32_t (?P<name>\w+)_expected_(?P<key>dtype|device_type) = "
    r"(?:aoti_torch_dtype_(?P<dtype>\w+)\(\)|(?P<device>\d+));"
)


def declared_constants(lines: Sequence[str]) -> dict[int, dict[str, str]]:
    """Return what `AOTInductorModel::AOTInductorModel` says of each constant (codegen_model_constructor)."""
    constants: dict[int, dict[str, str]] = {}
    for line in lines:
        if match := _CONSTANT.fullmatch(line):
            constants.setdefault(int(match["place"]), {})[match["key"]] = match["value"]
    return constants


def expected_inputs(lines: Sequence[str]) -> dict[str, BufferLayout]:
    """Return the layouts of inputs that `check_input_0` asks for (gen_check); symbols are read from them."""
    layouts: dict[str, BufferLayout] = {}
    dims: dict[str, dict[str, dict[int, str]]] = {}
    for line in lines:
        if match := _EXPECTED_DIM.fullmatch(line) or _TAKEN_DIM.fullmatch(line):
            of_input = dims.setdefault(match["name"], {}).setdefault(match["key"], {})
            of_input[int(match["place"])] = match["dim"]
            continue
        if match := _EXPECTED.fullmatch(line):
            layout = layouts.get(match["name"], BufferLayout("Input", None, None, None, None))
            if match["dtype"]:
                layouts[match["name"]] = replace(layout, dtype=match["dtype"])
            else:
                layouts[match["name"]] = replace(layout, device=_DEVICE_TYPES.get(match["device"]))
    for name, layout in layouts.items():
        size, stride = (dims.get(name, {}).get(key, {}) for key in ("size", "stride"))
        if size and sorted(size) == sorted(stride) == [*range(len(size))]:  # else a symbolic one is not named
            layouts[name] = replace(
                layout,
                size=tuple(as_dim(size[place]) for place in sorted(size)),
                stride=tuple(as_dim(stride[place]) for place in sorted(stride)),
            )
    return layouts


def without_suffixes(text: str) -> str:
    """Return a size without the suffixes of C++: `3L*s0` is `3*s0`."""
    return _SUFFIX.sub(r"\1", text.strip())


def braced_dims(text: str) -> tuple[Dim, ...]:
    """Return the sizes in `{8L, 3L}`."""
    return tuple(
        as_dim(without_suffixes(item)) for item in split_arguments(text.strip().strip("{}")) if item.strip()
    )


def tuple_text(dims: Sequence[Dim]) -> str:
    """Return sizes as Python writes a tuple."""
    return f"({', '.join(map(str, dims))}{',' if len(dims) == 1 else ''})"


def is_balanced(text: str) -> bool:
    """Return whether no parenthesis closes before it opens."""
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def enumerated(kind: Literal["dtype", "device_type"], text: str) -> str | None:
    """Return `float32` of `cached_torch_dtype_float32`, `cpu` of `cached_torch_device_type_cpu`."""
    match = _ENUM.fullmatch(text.strip())
    return match["name"] if match and match["kind"] == kind else None


def view_parts(text: str) -> tuple[str, tuple[Dim, ...] | None, tuple[Dim, ...] | None, Dim]:
    """Return what `reinterpret_tensor(buf0, (4, 3), (3, 1), 0)` is a view of, and its layout."""
    of, size, stride, offset = split_arguments(text.removeprefix("reinterpret_tensor(").removesuffix(")"))
    dims = [
        tuple(as_dim(item.strip()) for item in split_arguments(part.strip()[1:-1]) if item.strip())
        for part in (size, stride)
    ]
    return of.strip(), dims[0], dims[1], as_dim(offset.strip())
