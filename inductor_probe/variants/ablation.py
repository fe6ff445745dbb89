"""The rewrite `ablation`: copies of a kernel that leave more and more out: their times give the shares."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from inductor_probe.errors import ProbeError
from inductor_probe.model.bench import NewVariant
from inductor_probe.model.code import CppFacts
from inductor_probe.variants import cpp_ablation, triton_ablation
from inductor_probe.variants.code import Code, KernelCode

_TRITON_REDUCTION = re.compile(r"'num_reduction': [1-9]")


def ablation(code: Code, arguments: str, comment: str) -> tuple[NewVariant, ...]:
    """Return copies of a kernel that compute something else on purpose, each leaving out more:

    `no_reduction` (nothing is combined; only where the kernel reduces), `no_loads` (what was loaded is made
    from the index instead, so that nothing after it can be computed before the kernel runs), `store_only`
    (what is stored is made from the index, and nothing is computed). With t the time of each,

        reduction = t(full) - t(no_reduction)       loads = t(no_reduction) - t(no_loads)
        computation = t(no_loads) - t(store_only)   stores and launch = t(store_only)

    These are shares as far as the parts do not overlap in time; where they do, a share is what leaving it
    out saves.

    Args:
        code: what they are variants of.
        arguments: the kernel.
        comment: of the variants.

    Raises:
        NotFoundError: no such kernel.
        ProbeError: a line is in no known form, or stores through an index that was loaded; names it.
    """
    name = code.kernel(arguments.strip())
    kernel = code.kernels[name]
    language = {"cpp": cpp_ablation, "triton": triton_ablation}.get(kernel.backend.name)
    if language is None:
        raise ProbeError(
            f"{name} is a {kernel.backend.name} kernel, whose text is not read", "name a C++ or Triton kernel"
        )
    rungs: list[tuple[str, str]] = []
    source = kernel.source
    steps: list[tuple[str, Callable[[KernelCode], str]]] = [("no_loads", language.without_loads)]
    if _reduces(kernel):
        steps.insert(0, ("no_reduction", language.without_reduction))
    for what, leave_out in steps:
        source = leave_out(replace(kernel, source=source))
        rungs.append((what, source))
    rungs.append(("store_only", language.only_stores(kernel)))
    found = []
    for what, source in rungs:
        variant = code.with_sources({name: source}, f"{comment} ({what})", kind="ablation", ablation=what)[0]
        found.append(variant)
        code = replace(code, known=(*code.known, variant.name))
    return tuple(found)


def _reduces(kernel: KernelCode) -> bool:
    details = kernel.backend.read(kernel.source).details
    if isinstance(details, CppFacts):
        return bool(details.reductions)
    return _TRITON_REDUCTION.search(kernel.source) is not None
