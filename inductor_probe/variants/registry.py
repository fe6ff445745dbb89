"""The named rewrites: what each takes, what it does, and applying one by its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.model.bench import NewVariant
from inductor_probe.variants.ablation import ablation
from inductor_probe.variants.adding import MADE_BY, add_variants
from inductor_probe.variants.code import Code, read_code
from inductor_probe.variants.epilogue import no_epilogue
from inductor_probe.variants.index_type import index_type
from inductor_probe.variants.loops import loops
from inductor_probe.variants.stride import stride
from inductor_probe.variants.triton_config import triton_config

_SPEC = re.compile(r"(?P<name>\w+)(?:@v(?P<number>\d+))?(?::(?P<arguments>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewrite by name.

    Attributes:
        arguments: what stands behind the colon. help: what it does, one line.
        apply: code, arguments and the comment of its variants to those variants; raises ProbeError with a
            sentence where it does not apply.
    """

    name: str
    arguments: str
    help: str
    apply: Callable[[Code, str, str], tuple[NewVariant, ...]]


REWRITES: dict[str, Rewrite] = {
    each.name: each
    for each in (
        Rewrite(
            "stride",
            "BUFFER=(strides)|channels_last|contiguous",
            "lay a buffer out anew: its allocation, its writer and all its readers",
            stride,
        ),
        Rewrite("loops", "KERNEL x1,x2 [nest=N]", "swap two loops of a C++ kernel", loops),
        Rewrite(
            "triton",
            "KERNEL XBLOCK=256 num_warps=8 num_stages=2",
            "run a Triton kernel with this one configuration",
            triton_config,
        ),
        Rewrite("index", "KERNEL int32|int64", "index with 32 or 64 bits", index_type),
        Rewrite(
            "ablation",
            "KERNEL",
            "leave out the reduction, then the loads, then all but the stores: what each costs",
            ablation,
        ),
        Rewrite(
            "no_epilogue",
            "KERNEL",
            "store a template's product as it is: what the epilogue that is fused into it costs",
            no_epilogue,
        ),
    )
}


def rewritten(source: str, spec: str, path: str = "output_code_bench.py") -> tuple[NewVariant, ...]:
    """Return the variants that a named rewrite makes of `output_code.py` or of a bench file.

    Args:
        source: the file's text. `path` is what an error names.
        spec: `NAME:ARGUMENTS`, or `NAME@v3:ARGUMENTS` to rewrite the variants of that number.

    Raises:
        NotFoundError: no such rewrite, kernel, buffer or number.
        ProbeError: it does not apply; says where and why.
        UnreadableError: the file is not Python, or has no `call`.
    """
    found = _SPEC.fullmatch(spec.strip())
    name = found["name"] if found else spec
    if found is None or name not in REWRITES:
        raise NotFoundError(f"there is no rewrite {name}", near_names(name, REWRITES))
    code = read_code(source, path, int(found["number"] or 0))
    of = f" of the variants _v{found['number']}" if found["number"] else ""
    comment = f"{MADE_BY.removeprefix(': ')}{name}:{(found['arguments'] or '').strip()}{of}"
    return REWRITES[name].apply(code, found["arguments"] or "", comment)


def apply_rewrite(source: str, spec: str, path: str = "output_code_bench.py") -> str:
    """Return a bench file with the variants of a named rewrite in it; see `rewritten`."""
    return add_variants(source, rewritten(source, spec, path))
