"""How each variant in a bench file differs from what it is a copy of."""

from __future__ import annotations

import difflib

from inductor_probe.errors import UnreadableError
from inductor_probe.model.bench import VariantDiff, VariantKind
from inductor_probe.variants.adding import MADE_BY, ablations
from inductor_probe.variants.code import kernel_code, read_code
from inductor_probe.variants.definitions import (
    definitions,
    names_of,
    numbers,
    same_but_names,
    split_name,
)

_CONTEXT = 2


def variant_diffs(bench_source: str, path: str = "output_code_bench.py") -> tuple[VariantDiff, ...]:
    """Return how each variant differs from the pristine code: wrappers first, then kernels in order.

    A name that is that of a copy of the same number counts as that of what it copies, so that an untouched
    copy has no difference, and `call_v3` is not different for launching a `_v3`.

    Raises:
        UnreadableError: the file is not Python, or has no `call`.
    """
    try:
        found = definitions(bench_source)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise UnreadableError(f"{path}:{line}: not Python: {getattr(error, 'msg', error)}") from error
    left_out, by_name = ablations(bench_source), {each.name: each for each in found}
    pristine = read_code(bench_source, path)
    entry = "".join(each.text for each in pristine.wrapper)
    wrappers, kernels = [], []
    for number in numbers(found):
        names = names_of(number, found)
        if f"call_v{number}" in by_name:
            own = read_code(bench_source, path, number).wrapper
            text = same_but_names("".join(each.text for each in own), names)
            comment = "".join(each.comment for each in own)
            kind: VariantKind = "rewrite" if MADE_BY in comment else "edit"
            wrappers.append(
                VariantDiff(f"call_v{number}", "call", kind, _diff("call", f"call_v{number}", entry, text))
            )
    for each in found:
        split = split_name(each.name)
        if not split or not (kernel_code(each) or split[0] in pristine.kernels):
            continue
        base = by_name.get(split[0])
        kind = "ablation" if each.name in left_out else "rewrite" if MADE_BY in each.comment else "edit"
        text = same_but_names(each.text, names_of(split[1], found))
        lines = _diff(split[0], each.name, base.text, text) if base else ()
        kernels.append(VariantDiff(each.name, split[0] if base else None, kind, lines))
    return (*wrappers, *kernels)


def _diff(base: str, name: str, before: str, after: str) -> tuple[str, ...]:
    return tuple(
        difflib.unified_diff(before.splitlines(), after.splitlines(), base, name, n=_CONTEXT, lineterm="")
    )
