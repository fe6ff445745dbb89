"""The rewrite `no_epilogue`: a template without what inductor has fused behind its product."""

from __future__ import annotations

from inductor_probe.errors import ProbeError
from inductor_probe.model.bench import NewVariant
from inductor_probe.variants import cpp_epilogue, triton_epilogue
from inductor_probe.variants.code import BY_HAND, Code


def no_epilogue(code: Code, arguments: str, comment: str) -> tuple[NewVariant, ...]:
    """Return a copy of a template that stores the product as it is: an ablation, wrong on purpose.

    Inductor picks among templates by timing them bare, and fuses an epilogue into the winner. Timed with and
    without it, a kernel shows what that costs, and whether registers run out.

    Args:
        code: what it is a variant of.
        arguments: the kernel.
        comment: of the variant.

    Raises:
        NotFoundError: no such kernel.
        ProbeError: it is no template, has no epilogue, or is in no known form; says which.
    """
    name = code.kernel(arguments.strip())
    kernel = code.kernels[name]
    language = {"cpp": cpp_epilogue, "triton": triton_epilogue}.get(kernel.backend.name)
    if language is None:
        raise ProbeError(
            f"{name} is a {kernel.backend.name} kernel, whose text is not read", "name a C++ or Triton kernel"
        )
    try:
        source = language.without_epilogue(kernel.source)
    except ValueError as error:
        raise ProbeError(f"{name} cannot be stripped of an epilogue: {error}", BY_HAND) from error
    return code.with_sources({name: source}, comment, kind="ablation", ablation="no_epilogue")
