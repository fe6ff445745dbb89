"""The named rewrites: applied by a spec, and listed with what they apply to."""

from __future__ import annotations

import re

from inductor_probe.errors import NotFoundError, ProbeError, near_names
from inductor_probe.model.bench import NewVariant, RewriteRow
from inductor_probe.variants.ablation import Ablation, NoEpilogue
from inductor_probe.variants.bench_variants import MADE_BY, add_variants
from inductor_probe.variants.code import Code, Rewrite, read_code
from inductor_probe.variants.index_type import IndexType
from inductor_probe.variants.loops import SwapLoops
from inductor_probe.variants.stride import Stride
from inductor_probe.variants.triton_config import TritonConfig

_SPEC = re.compile(r"(?P<name>\w+)(?:@v(?P<number>\d+))?(?::(?P<arguments>.*))?", re.DOTALL)
REWRITES: dict[str, Rewrite] = {
    rewrite.name: rewrite
    for rewrite in (Stride(), SwapLoops(), TritonConfig(), IndexType(), Ablation(), NoEpilogue())
}


def rewrite_variants(source: str, spec: str, path: str = "output_code_bench.py") -> tuple[NewVariant, ...]:
    """Return the variants that a named rewrite makes of `output_code.py` or of a bench file.

    Args:
        source: the file's text. `path` is what an error names.
        spec: `NAME:ARGUMENTS`, or `NAME@v3:ARGUMENTS` to rewrite the variants of that number.

    Raises NotFoundError: no such rewrite, kernel, buffer or number. ProbeError: it does not apply; says
    where and why. UnreadableError: the file is not Python, or has no `call`.
    """
    match = _SPEC.fullmatch(spec.strip())
    name = match["name"] if match else spec
    if match is None or name not in REWRITES:
        raise NotFoundError(f"there is no rewrite {name}", near_names(name, REWRITES))
    number, arguments = match["number"], match["arguments"] or ""
    code = read_code(source, path, int(number or 0))
    of = f" of the variants _v{number}" if number else ""
    comment = f"{MADE_BY.removeprefix(': ')}{name}:{arguments.strip()}{of}"
    return REWRITES[name].apply(code, arguments, comment)


def apply_rewrite(source: str, spec: str, path: str = "output_code_bench.py") -> str:
    """Return a bench file with the variants of a named rewrite in it; see `rewrite_variants`."""
    return add_variants(source, rewrite_variants(source, spec, path))


def applicable(source: str, path: str) -> tuple[RewriteRow, ...]:
    """Return every rewrite with the specs that make variants of a file; nothing is written.

    Each is tried with the arguments that its form allows. For a file with the C++ kernel `cpp_fused_add_0`
    whose only nest has loops over x0 and x1, `loops` is tried with `cpp_fused_add_0 x0,x1`.

    Raises UnreadableError: the file is not Python, or has no `call`.
    """
    code = read_code(source, path)
    return tuple(
        RewriteRow(
            rewrite.name,
            rewrite.arguments,
            rewrite.help,
            tuple(
                f"{rewrite.name}:{arguments}"
                for arguments in rewrite.candidates(code)
                if _applies(rewrite, code, arguments)
            ),
        )
        for rewrite in REWRITES.values()
    )


def _applies(rewrite: Rewrite, code: Code, arguments: str) -> bool:
    try:
        rewrite.apply(code, arguments, "")
    except ProbeError:
        return False
    return True
