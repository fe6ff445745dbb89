"""Index types of Triton kernels: codegen/simd_kernel_features.py, `select_index_dtype`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.catalogue.entries import Cause, Kind, Operand, Outcome, Source
from inductor_probe.catalogue.shared import KNOWN_SIZES


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the margin: what share of the limit the kernel and its largest buffer have, from 1 % on."""
    limit = operands.get("limit")
    shares = {"kernel": operands.get("numel"), "buffer": operands.get("buffer_elements")}
    return {
        f"{name}_share": size / limit
        for name, size in shares.items()
        if isinstance(size, int) and isinstance(limit, int) and size >= limit / 100
    }


_SELECT_INDEX_DTYPE = "codegen/simd_kernel_features.py:SIMDKernelFeatures.select_index_dtype"

OPERANDS = (
    Operand("numel", "size", "of the kernel, with its reduction", "elements"),
    Operand("limit", "int", "that int32 counts", "elements"),
    Operand("buffers", "names", "that are too large, or the largest"),
    Operand("buffer_elements", "size", "that these span", "elements"),
)  # fmt: skip

OUTCOMES = (
    Outcome("int32", "{subject} {n:?has/have} int32 indices", "passed"),
    Outcome("int64", "{subject} {n:?has/have} int64 indices", "missed"),
)  # fmt: skip

CAUSES = (
    Cause("sizes-fit-int32", "int32", _SELECT_INDEX_DTYPE, "",
        "its {numel} elements[ ({kernel_share:.0%} of what int32 counts)][, and the {buffer_elements} of "
        "{buffers},] are at most {limit}", "{numel} elements",
        example="values.view(65536, -1).amax(-1), values: uint8 (4194304,)"),
    Cause("numel-exceeds-int32", "int64", _SELECT_INDEX_DTYPE, "",
        "the kernel has {numel} elements, more than the {limit} that int32 counts[ ({kernel_share:.0%})]",
        "{numel} elements", changes=(Source("smaller-kernel",
        "call it for parts of the batch, of at most {limit} elements each"),),
        test="not expr_fits_within_32bit(?",
        example="values.view(65536, -1).amax(-1), values: uint8 (2147483648,)"),
    Cause("buffer-exceeds-int32", "int64", _SELECT_INDEX_DTYPE, "",
        "{buffers} spans {buffer_elements} elements, more than the {limit} that int32 counts[ "
        "({buffer_share:.0%})]", "{buffers} spans {buffer_elements} elements",
        changes=(Source("smaller-buffer",
        "let the buffer have at most {limit} elements, for example in parts of the batch"),),
        test="not all(?", example="values[:16] + 1, values: uint8 (2147483648,)"),
    Cause("symbolic-size", "int64", _SELECT_INDEX_DTYPE, "",
        "torch cannot prove that {numel} elements are at most {limit}", "{numel} elements, not bounded",
        changes=(Source("known-sizes", KNOWN_SIZES),),
        example="torch.arange(values[0].item(), device=values.device) + values, values: int64 (1,)"),
)  # fmt: skip

KIND = Kind(
    "index-width", "whether the indices of a Triton kernel have 32 or 64 bits",
    OUTCOMES, OPERANDS, CAUSES, common="numel limit buffers buffer_elements", derived=_derived,
    derives="kernel_share buffer_share",
)  # fmt: skip
