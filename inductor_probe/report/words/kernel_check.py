"""What triton's interpreter found of kernels, in words."""

from __future__ import annotations

from collections.abc import Sequence

from inductor_probe.catalogue.templates import joined
from inductor_probe.model.kernel_check import KernelCheck, is_interpreted
from inductor_probe.model.timing import Variant, wrong_groups
from inductor_probe.report.units import counted
from inductor_probe.report.words.bench import wrong_sentence
from inductor_probe.report.words.remarks import sentence


def summary(check: KernelCheck) -> str:
    """Return what is right, wrong, and not known, in a line: `all right: 2 kernels and 1 edited variant`."""
    edited = [variant for variant in check.variants if not variant.unedited]
    wrong = [variant for variant in (check.call, *edited) if not variant.correct and is_interpreted(variant)]
    unknown = [variant for variant in (check.call, *edited) if not is_interpreted(variant)]
    if wrong or unknown:
        return "; ".join(kernel_sentence(variants) for variants in wrong_groups([*wrong, *unknown]))
    if not check.compared:
        why = "; ".join(sentence(remark) for remark in check.call.remarks)
        agree = "; edited variants compute the same" if edited else ""
        return f"call runs, and was compared with nothing: {why}{agree}"
    counts = {
        "kernel": sum(kernel.verdict == "right" for kernel in check.kernels),
        "edited variant": len(edited),
    }
    return f"right: {' and '.join(counted(count, what) for what, count in counts.items() if count)}"


def kernel_sentence(variants: Sequence[Variant]) -> str:
    """Return what is wrong with variants, or why they were not judged: `call was not judged: k ...`."""
    first, *others = variants
    if is_interpreted(first):
        return wrong_sentence(variants, sentence)
    too = f" ({joined(other.name for other in others)} too)" if others else ""
    return f"{first.name} was not judged: {'; '.join(map(sentence, first.remarks))}{too}"
