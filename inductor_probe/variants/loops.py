"""The rewrite `loops`: two loops of a C++ kernel change places, by text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations, pairwise

from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.model.bench import NewVariant
from inductor_probe.model.code import CppFacts, Loop, LoopNest, PointerUse
from inductor_probe.variants.code import Code, KernelCode, Rewrite

_ARGUMENTS = re.compile(
    r"\s*(?P<kernel>\w+)\s+(?P<first>\w+)\s*,\s*(?P<second>\w+)(?:\s+nest=(?P<nest>\d+))?\s*"
)
_ONLY_BRACES = re.compile(r"\s*(?:[{}]\s*)*(?:#pragma GCC ivdep\s*)?")
_HEADER = re.compile(r"\bfor\s*\(.*\)")
_POINTER = re.compile(r"\b\w*_ptr\w*\b")
_VALUE = re.compile(r"\btmp\d+")
_OF_THREAD = re.compile(r"\btmp_acc\d+\w*_(?:local|arr)\b")


class SwapLoops(Rewrite):
    """A copy of a C++ kernel with two loops of a nest swapped.

    It is refused where statements stand between the loops, where a bound depends on a loop variable, and
    where the order of the iterations shows: stores that several iterations make to one place or through an
    index that was loaded, loads from what the nest stores elsewhere, sums that each thread keeps for itself.
    Sums over both loops are added in another order: equal up to rounding.
    """

    name = "loops"
    arguments = "KERNEL x1,x2 [nest=N]"
    help = "swap two loops of a C++ kernel"

    def candidates(self, code: Code) -> Iterator[str]:
        """Yield each two loops of each nest."""
        for name, kernel in code.kernels.items():
            details = kernel.backend.read(kernel.source).details
            nests = details.nests if isinstance(details, CppFacts) else ()
            for number, nest in enumerate(nests, 1):
                which = f" nest={number}" if len(nests) > 1 else ""
                for first, second in combinations(dict.fromkeys(loop.variable for loop in nest.order), 2):
                    yield f"{name} {first},{second}{which}"

    def apply(self, code: Code, arguments: str, comment: str) -> tuple[NewVariant, ...]:
        """Refuse what is named above; `nest=2` is needed where several nests have both loops."""
        match = _ARGUMENTS.fullmatch(arguments)
        if match is None:
            raise self.invalid(arguments, "loops:cpp_fused_add_0 x1,x2")
        kernel = code.kernel(match["kernel"])
        details = kernel.backend.read(kernel.source).details
        if not isinstance(details, CppFacts):
            raise ProbeError(
                f"{kernel.name} is not a C++ kernel, so it has no loops to swap",
                "triton:KERNEL sets the blocks of a Triton kernel",
            )
        variables = {match["first"], match["second"]}
        nest = _nest(kernel.name, details, match["first"], match["second"], int(match["nest"] or 0))
        loops = [loop for loop in nest.order if loop.variable in variables]
        outer, inner = sorted(loops, key=lambda loop: loop.line)
        _check(kernel, nest, outer, inner)
        lines = kernel.source.split("\n")
        above, below = lines[outer.line - 1], lines[inner.line - 1]
        first, second = _HEADER.search(above), _HEADER.search(below)
        if first is None or second is None:
            raise kernel.refusal(outer.line, "the loop header is not on one line")
        lines[outer.line - 1] = above.replace(first[0], second[0])
        lines[inner.line - 1] = below.replace(second[0], first[0])
        return code.with_sources({kernel.name: "\n".join(lines)}, comment)


def _nest(kernel: str, details: CppFacts, first: str, second: str, number: int) -> LoopNest:
    """Return the nest with both loops; that of this number, counted from 1, unless it is 0."""
    variables = {n: [loop.variable for loop in nest.order] for n, nest in enumerate(details.nests, 1)}
    fitting = [n for n, names in variables.items() if {first, second} <= {*names} and number in (0, n)]
    if first == second or not fitting:
        nests = "; ".join(f"nest {n}: {', '.join(names)}" for n, names in variables.items())
        raise NotFoundError(
            f"{kernel} has no nest with loops over both {first} and {second}", f"it has {nests}"
        )
    if len(fitting) > 1:
        raise ProbeError(
            f"{len(fitting)} nests of {kernel} have loops over {first} and {second}",
            f"name one: nest={' or nest='.join(map(str, fitting))}",
        )
    return details.nests[fitting[0] - 1]


def _check(kernel: KernelCode, nest: LoopNest, outer: Loop, inner: Loop) -> None:
    lines = kernel.source.split("\n")
    between = [loop for loop in nest.order if outer.line <= loop.line <= inner.line]
    for upper, lower in pairwise(between):
        above = f"is between the loops over {upper.variable} and {lower.variable}"
        behind = f"follows the loop over {lower.variable}, inside that over {upper.variable}"
        places = [(number, above) for number in range(upper.line + 1, lower.line)]
        places += [(number, behind) for number in range(lower.last + 1, upper.last + 1)]
        for number, where in places:
            if not _ONLY_BRACES.fullmatch(lines[number - 1]):
                raise kernel.refusal(number, f"this {where}")
    variable = re.compile(rf"\b(?:{'|'.join(loop.variable for loop in between)})\b")
    for loop in between:
        if variable.search(f"{loop.start} {loop.stop} {loop.step}"):
            raise kernel.refusal(loop.line, "its bounds depend on another loop")
    if any("reduction" in pragma for loop in between for pragma in loop.pragmas):
        raise kernel.refusal(outer.line, "OpenMP combines its results")
    for number in range(outer.line, outer.last + 1):
        if _OF_THREAD.search(lines[number - 1]):
            raise kernel.refusal(number, "each thread sums for itself, in this order")
        if "local_buffer" in lines[number - 1]:
            raise kernel.refusal(number, "it keeps values for other iterations in a buffer of its own")
    _check_stores(kernel, between)


def _check_stores(kernel: KernelCode, between: list[Loop]) -> None:
    names = frozenset(_POINTER.findall(kernel.source))
    outer = between[0]
    uses = [
        use
        for use in kernel.backend.pointer_uses(kernel.source, names)
        if outer.line <= use.line <= outer.last
    ]
    stored: dict[str, PointerUse] = {}
    for use in uses:
        if use.kind == "load":
            continue
        if use.index is None or _VALUE.search(use.index):
            raise kernel.refusal(use.line, "it stores through an index that was loaded")
        for loop in between:
            if use.kind == "store" and not re.search(rf"\b{loop.variable}(?:_\w+)?\b", use.index):
                why = f"every {loop.variable} stores to the same place, and the last one stays"
                raise kernel.refusal(use.line, why)
        if use.kind == "atomic":
            raise kernel.refusal(use.line, "atomic additions would run in another order")
        stored[use.pointer] = use
    for use in uses:
        if use.kind == "load" and use.pointer in stored and use.index != stored[use.pointer].index:
            raise kernel.refusal(use.line, f"it loads from {use.pointer} what another iteration stores")
