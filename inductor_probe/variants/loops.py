"""The rewrite `loops`: two loops of a C++ kernel change places."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.model.bench import NewVariant
from inductor_probe.model.code import CppFacts, Loop, LoopNest, PointerUse
from inductor_probe.variants.code import Code, KernelCode

_ARGUMENTS = re.compile(
    r"\s*(?P<kernel>\w+)\s+(?P<first>\w+)\s*,\s*(?P<second>\w+)(?:\s+nest=(?P<nest>\d+))?\s*"
)
_ONLY_BRACES = re.compile(r"\s*(?:[{}]\s*)*(?:#pragma GCC ivdep\s*)?")
_HEADER = re.compile(r"\bfor\s*\(.*\)")
_POINTER = re.compile(r"\b\w*_ptr\w*\b")
_VALUE = re.compile(r"\btmp\d+")


def loops(code: Code, arguments: str, comment: str) -> tuple[NewVariant, ...]:
    """Return a copy of a C++ kernel with two loops of a nest swapped.

    It is refused where statements stand between the loops, where a bound depends on a loop variable, and
    where the order of the iterations shows: stores that several iterations make to one place or through an
    index that was loaded, loads from what the nest stores elsewhere, sums that each thread keeps for itself.
    Sums over both loops are added in another order: equal up to rounding.

    Args:
        code: what it is a variant of.
        arguments: `cpp_fused_add_0 x1,x2`, with `nest=2` where several nests have both.
        comment: of the variant.

    Raises:
        NotFoundError: no such kernel or loops. ProbeError: see above; names the line.
    """
    given = _ARGUMENTS.fullmatch(arguments)
    if given is None:
        raise ProbeError(
            f"loops wants KERNEL x1,x2 [nest=N], not {arguments!r}", "loops:cpp_fused_add_0 x1,x2"
        )
    name = code.kernel(given["kernel"])
    kernel = code.kernels[name]
    details = kernel.backend.read(kernel.source).details
    if not isinstance(details, CppFacts):
        raise ProbeError(
            f"{name} is no C++ kernel: it has no loops to swap",
            "triton:KERNEL sets the blocks of a Triton kernel",
        )
    nest = _nest(name, details, given["first"], given["second"], int(given["nest"] or 0))
    order = list(nest.order)
    swapped = sorted(
        (loop for loop in order if loop.variable in (given["first"], given["second"])),
        key=lambda loop: loop.line,
    )
    outer, inner = swapped
    _check(kernel, nest, outer, inner)
    lines = kernel.source.split("\n")
    above, below = lines[outer.line - 1], lines[inner.line - 1]
    first, second = _HEADER.search(above), _HEADER.search(below)
    if first is None or second is None:
        raise kernel.refusal(outer.line, "the loop does not stand on one line")
    lines[outer.line - 1] = above.replace(first[0], second[0])
    lines[inner.line - 1] = below.replace(second[0], first[0])
    return code.with_sources({name: "\n".join(lines)}, comment)


def _nest(name: str, details: CppFacts, first: str, second: str, number: int) -> LoopNest:
    wanted = {first, second}
    own = [
        (at, nest)
        for at, nest in enumerate(details.nests, 1)
        if wanted <= {loop.variable for loop in nest.order}
    ]
    if number:
        own = [(at, nest) for at, nest in own if at == number]
    if len(wanted) != 2 or not own:
        have = "; ".join(
            f"nest {at}: {', '.join(loop.variable for loop in nest.order)}"
            for at, nest in enumerate(details.nests, 1)
        )
        raise NotFoundError(f"{name} has no nest with loops over both {first} and {second}", f"it has {have}")
    if len(own) > 1:
        raise ProbeError(
            f"{len(own)} nests of {name} have loops over {first} and {second}",
            f"name one: nest={' or nest='.join(str(at) for at, _ in own)}",
        )
    return own[0][1]


def _check(kernel: KernelCode, nest: LoopNest, outer: Loop, inner: Loop) -> None:
    lines = kernel.source.split("\n")

    def refuse(line: int, why: str) -> ProbeError:
        return kernel.refusal(line, why)

    between = [loop for loop in nest.order if outer.line <= loop.line <= inner.line]
    for upper, lower in pairwise(between):
        for number in range(upper.line + 1, lower.line):
            if not _ONLY_BRACES.fullmatch(lines[number - 1]):
                raise refuse(
                    number, f"this stands between the loops over {upper.variable} and {lower.variable}"
                )
        for number in range(lower.last + 1, upper.last + 1):
            if not _ONLY_BRACES.fullmatch(lines[number - 1]):
                raise refuse(
                    number,
                    f"this stands behind the loop over {lower.variable}, inside that over {upper.variable}",
                )
    variables = {loop.variable for loop in between}
    for loop in between:
        if any(
            re.search(rf"\b{name}\b", str(bound))
            for bound in (loop.start, loop.stop, loop.step)
            for name in variables
        ):
            raise refuse(loop.line, "its bounds depend on another loop")
    if any("reduction" in pragma for loop in between for pragma in loop.pragmas):
        raise refuse(outer.line, "OpenMP combines its results")
    for number in range(outer.line, outer.last + 1):
        if re.search(r"\btmp_acc\d+\w*_(?:local|arr)\b", lines[number - 1]):
            raise refuse(number, "each thread sums for itself, in this order")
        if "local_buffer" in lines[number - 1]:
            raise refuse(number, "it keeps values for other iterations in a buffer of its own")
    _check_stores(kernel, nest, between, refuse)


def _check_stores(
    kernel: KernelCode, nest: LoopNest, between: list[Loop], refuse: Callable[[int, str], ProbeError]
) -> None:
    names = frozenset(_POINTER.findall(kernel.source))
    uses = [
        use for use in kernel.backend.pointer_uses(kernel.source, names) if nest.line <= use.line <= nest.last
    ]
    inside = [use for use in uses if between[0].line <= use.line <= between[0].last]
    stored: dict[str, PointerUse] = {}
    for use in inside:
        if use.kind == "load":
            continue
        if use.index is None or _VALUE.search(use.index):
            raise refuse(use.line, "it stores through an index that was loaded")
        missing = [
            loop.variable for loop in between if not re.search(rf"\b{loop.variable}(?:_\w+)?\b", use.index)
        ]
        if missing and use.kind == "store":
            raise refuse(use.line, f"every {missing[0]} stores to the same place, and the last one stays")
        if use.kind == "atomic":
            raise refuse(use.line, "atomic additions come in another order then")
        stored[use.pointer] = use
    for use in inside:
        known = stored.get(use.pointer)
        if use.kind == "load" and known is not None and use.index != known.index:
            raise refuse(use.line, f"it loads from {use.pointer} what another iteration stores")
