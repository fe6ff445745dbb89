"""The rewrites `ablation` and `no_epilogue`: copies of a kernel with parts left out, to time what those cost.

They are text rewrites; what a C++ or a Triton kernel looks like without a part, its own module knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType

from msgspec.structs import replace

from inductor_probe.errors import ProbeError
from inductor_probe.model.bench import NewVariant
from inductor_probe.model.code import CppFacts
from inductor_probe.variants import cpp_ablation, triton_ablation
from inductor_probe.variants.accesses import accesses, pointer_types
from inductor_probe.variants.code import BY_HAND, Code, KernelCode, Rewrite, edited

_LANGUAGES = {"cpp": cpp_ablation, "triton": triton_ablation}
_TRITON_REDUCTION = re.compile(r"'num_reduction': [1-9]")
_LOADED = re.compile(r"\btmp\d+\b")


class Ablation(Rewrite):
    """Copies of a kernel that compute something else on purpose, each leaving out more.

    `no_reduction` (nothing is combined; only where the kernel reduces), `no_loads` (what was loaded is made
    from the index instead, so that nothing after it can be computed before the kernel runs), `store_only`
    (what is stored is made from the index, and nothing is computed). With t the time of each,

        reduction = t(full) - t(no_reduction)       loads = t(no_reduction) - t(no_loads)
        computation = t(no_loads) - t(store_only)   stores and launch = t(store_only)

    These are shares as far as the parts do not overlap in time; where they do, a share is what leaving it
    out saves.
    """

    name = "ablation"
    arguments = "KERNEL"
    help = "leave out the reduction, then the loads, then all but the stores: what each costs"

    def apply(self, code: Code, arguments: str, comment: str) -> tuple[NewVariant, ...]:
        """Refuse a line in no known form, or one that stores through an index that was loaded."""
        kernel = code.kernel(arguments.strip())
        language = _language(kernel)
        sources = {}
        source = kernel.source
        details = kernel.backend.read(kernel.source).details
        if details.reductions if isinstance(details, CppFacts) else _TRITON_REDUCTION.search(kernel.source):
            source = sources["no_reduction"] = language.without_reduction(kernel)
        sources["no_loads"] = _with_indices(replace(kernel, source=source), loads=True)
        sources["store_only"] = _with_indices(kernel, loads=False)
        variants = []
        for part, text in sources.items():
            made = code.with_sources(
                {kernel.name: text}, f"{comment} ({part})", kind="ablation", ablation=part
            )
            variants.append(made[0])
            code = replace(code, known=(*code.known, made[0].name))
        return tuple(variants)


class NoEpilogue(Rewrite):
    """A copy of a template that stores the product as it is.

    Inductor picks among templates by timing them bare, and fuses an epilogue into the winner. Timed with and
    without it, a kernel shows what that costs, and whether registers run out.
    """

    name = "no_epilogue"
    arguments = "KERNEL"
    help = "store a template's product as it is: what the epilogue that is fused into it costs"

    def apply(self, code: Code, arguments: str, comment: str) -> tuple[NewVariant, ...]:
        """Refuse what is no template, has no epilogue, or is in no known form."""
        kernel = code.kernel(arguments.strip())
        without_epilogue: Callable[[str], str] = _language(kernel).without_epilogue
        try:
            source = without_epilogue(kernel.source)
        except ValueError as error:
            raise ProbeError(
                f"{kernel.name} cannot be written without its epilogue: {error}", BY_HAND
            ) from error
        return code.with_sources({kernel.name: source}, comment, kind="ablation", ablation="no_epilogue")


def _language(kernel: KernelCode) -> ModuleType:
    if kernel.backend.name not in _LANGUAGES:
        raise ProbeError(
            f"{kernel.name} is a {kernel.backend.name} kernel, whose text is not read",
            "name a C++ or Triton kernel",
        )
    return _LANGUAGES[kernel.backend.name]


def _with_indices(kernel: KernelCode, *, loads: bool) -> str:
    """Return the source in which each load gives, or each store stores, its index as a value of that type.

    Checks of loaded indices go: they would keep the loads.
    """
    language = _language(kernel)
    edits: list[tuple[int, int, str]] = []
    for pointer, kind in pointer_types(kernel).items():
        for access in accesses(kernel, pointer):
            if access.writes is None:
                raise kernel.refusal(access.line, "an atomic operation loads and stores")
            if access.writes and _LOADED.search(access.index):
                raise kernel.refusal(access.line, "it stores through an index that was loaded")
            if access.writes is not loads:
                edits.append(language.with_index(kernel, pointer, kind, access))
    lines = edited(kernel.source, edits).split("\n")
    return "\n".join(line for line in lines if not language.CHECK.match(line))
