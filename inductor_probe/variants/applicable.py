"""Which rewrites apply to what of a file: each is tried with the arguments that its form allows.

For example for a file with the C++ kernel `cpp_fused_add_0` whose only nest has loops over x0 and x1: `loops`
is tried with `cpp_fused_add_0 x0,x1`, and listed with it if it makes a variant. Nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations

from inductor_probe.errors import ProbeError
from inductor_probe.model.bench import RewriteRow
from inductor_probe.model.code import CppFacts
from inductor_probe.variants.code import Code, read_code
from inductor_probe.variants.registry import REWRITES
from inductor_probe.variants.triton_config import constexprs, decorated

_ALLOCATED = re.compile(r"\b(\w+) = empty_strided\w*\(")
_BLOCK = 64
"""Size of each block in a `triton` rewrite that is offered: any power of two is possible."""


def applicable(source: str, path: str) -> tuple[RewriteRow, ...]:
    """Return every rewrite with the specs that make variants of a file.

    Args:
        source: text of `output_code.py` or of a bench file. path: what an error names.

    Raises:
        UnreadableError: the file is not Python, or has no `call`.
    """
    code = read_code(source, path)
    return tuple(
        RewriteRow(
            each.name,
            each.arguments,
            each.help,
            tuple(
                f"{each.name}:{text}"
                for text in _CANDIDATES[each.name](code)
                if _applies(each.apply, code, text)
            ),
        )
        for each in REWRITES.values()
    )


def _applies(apply: Callable[[Code, str, str], object], code: Code, arguments: str) -> bool:
    try:
        apply(code, arguments, "")
    except ProbeError:
        return False
    return True


def _kernels(code: Code) -> Iterator[str]:
    yield from code.kernels


def _loops(code: Code) -> Iterator[str]:
    for name, kernel in code.kernels.items():
        details = kernel.backend.read(kernel.source).details
        nests = [nest.order for nest in details.nests] if isinstance(details, CppFacts) else []
        for number, order in enumerate(nests, 1):
            nest = f" nest={number}" if len(nests) > 1 else ""
            for first, second in combinations(dict.fromkeys(loop.variable for loop in order), 2):
                yield f"{name} {first},{second}{nest}"


def _triton(code: Code) -> Iterator[str]:
    for name, kernel in code.kernels.items():
        try:
            function, _ = decorated(kernel)
        except ProbeError:
            continue
        blocks = " ".join(f"{block}={_BLOCK}" for block in constexprs(function) if block.endswith("BLOCK"))
        yield f"{name} {blocks} num_warps=4".replace("  ", " ")


def _index(code: Code) -> Iterator[str]:
    for name in code.kernels:
        yield from (f"{name} int32", f"{name} int64")


def _stride(code: Code) -> Iterator[str]:
    for definition in code.wrapper:
        for buffer in dict.fromkeys(_ALLOCATED.findall(definition.text)):
            yield from (f"{buffer}=channels_last", f"{buffer}=contiguous")


_CANDIDATES: Mapping[str, Callable[[Code], Iterator[str]]] = {
    "stride": _stride,
    "loops": _loops,
    "triton": _triton,
    "index": _index,
    "ablation": _kernels,
    "no_epilogue": _kernels,
}
