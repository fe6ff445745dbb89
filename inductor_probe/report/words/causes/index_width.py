"""Words for index types of Triton kernels: codegen/simd_kernel_features.py, `select_index_dtype`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.report.words.causes.rows import CauseWords, KindWords


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the margin: what share of the limit the kernel and its largest buffer have, from 1 % on."""
    limit = operands.get("limit")
    shares = {"kernel": operands.get("numel"), "buffer": operands.get("buffer_elements")}
    return {
        f"{name}_share": size / limit
        for name, size in shares.items()
        if isinstance(size, int) and isinstance(limit, int) and size >= limit / 100
    }


WORDS = KindWords(
    outcomes={
        "int32": "{subject} {n:?has/have} int32 indices",
        "int64": "{subject} {n:?has/have} int64 indices",
    },
    causes={
        "sizes-fit-int32": CauseWords(
            "its {numel} elements[ ({kernel_share:.0%} of what int32 counts)][, and the {buffer_elements} of "
            "{buffers},] are at most {limit}",
            "{numel} elements",
        ),
        "numel-exceeds-int32": CauseWords(
            "the kernel has {numel} elements, more than the {limit} that int32 counts[ ({kernel_share:.0%})]",
            "{numel} elements",
        ),
        "buffer-exceeds-int32": CauseWords(
            "{buffers} spans {buffer_elements} elements, more than the {limit} that int32 counts"
            "[ ({buffer_share:.0%})]",
            "{buffers} spans {buffer_elements} elements",
        ),
        "symbolic-size": CauseWords(
            "torch cannot prove that {numel} elements are at most {limit}", "{numel} elements, not bounded"
        ),
    },
    changes={
        "smaller-kernel": "call it for parts of the batch, of at most {limit} elements each",
        "smaller-buffer": "let the buffer have at most {limit} elements, for example in parts of the batch",
        "known-sizes": "compile with sizes that are known (dynamic=False), or mark an upper bound of the "
        "dimension (torch._dynamo.mark_dynamic with max)",
    },
    derived=_derived,
)
