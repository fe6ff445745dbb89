"""Remarks about kernels: what their own text, the wrapper and the IR say of them.

Codes and their numbers, in order; the subject is the kernel unless said otherwise:

- `scalar-loops`: scalar (loop nests without vectors), nests (all, but for tails and helpers). `missed`.
  `TilingSelect` (`torch/_inductor/codegen/cpp.py`) decides that, and no dump says why: it has no cause here.
- `int64-indices` of a Triton kernel: none. `missed`.
- `reduction-hint`: hint, where it is DEFAULT. `analysis`.
- `unaligned-pointers`: pointers (parameters that `triton_meta` does not list as divisible by 16), of
  (how many pointers there are). `missed`.
- `no-launch`, `no-node`: none. `analysis`.
- `fallback`: kernel. `missed`; the subjects are the nodes that call it.

The cost is what the launches of the kernel read and write. Below `SMALLEST_COST` nothing
is said of its speed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inductor_probe.analysis.layout_remarks import SMALLEST_COST
from inductor_probe.model.code import CppFacts, Kernel, TritonFacts
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import Dim
from inductor_probe.model.remark import Number, Remark, RemarkCode, RemarkKind, Subject
from inductor_probe.model.span import Span


def kernel_remarks(kernel: Kernel, launched: bool, linked: bool, cost: int | None) -> tuple[Remark, ...]:
    """Return the remarks about a generated kernel.

    Args:
        kernel: as read.
        launched: whether the wrapper launches it. linked: whether a scheduler node is linked to it.
        cost: bytes that its launches read and write, None where not known or symbolic.
    """
    drafts = [] if cost is not None and cost < SMALLEST_COST else [*_of_text(kernel)]
    if not launched:
        drafts.append(("no-launch", "analysis", (), ()))
    elif not linked:
        drafts.append(("no-node", "analysis", (), ()))
    place = (kernel.span,) if kernel.span else ()
    return tuple(
        Remark(code, kind, Subject("kernel", kernel.name), numbers, cost, spans or place, knowledge="read")
        for code, kind, numbers, spans in drafts
    )


_Draft = tuple[RemarkCode, RemarkKind, tuple[tuple[str, Number], ...], tuple[Span, ...]]


def _of_text(kernel: Kernel) -> Iterator[_Draft]:
    match kernel.details:
        case CppFacts() as facts if scalar := facts.count("scalar"):
            numbers = (("scalar", scalar), ("nests", scalar + facts.count("vectorised")))
            yield "scalar-loops", "missed", numbers, tuple(_scalar_lines(kernel, facts))
        case TritonFacts() as facts:
            if facts.index_width == "int64":
                yield "int64-indices", "missed", (), ()
            if facts.reduction_hint == "DEFAULT":
                yield "reduction-hint", "analysis", (("hint", facts.reduction_hint),), ()
            pointers = tuple(name for name, type_ in facts.signature if type_.startswith("*"))
            unaligned = tuple(name for name in pointers if name not in facts.divisible)
            if facts.divisible and unaligned:
                yield "unaligned-pointers", "missed", (("pointers", unaligned), ("of", len(pointers))), ()


def _scalar_lines(kernel: Kernel, facts: CppFacts) -> Iterator[Span]:
    """Lines of a nest are those of the kernel's source, whose first stands where the kernel's span begins."""
    if kernel.span is None:
        return
    above = kernel.span.first - 1
    for nest in facts.nests:
        if nest.kind == "scalar":
            yield Span(kernel.span.path, above + nest.line, above + nest.last)


def moved_bytes(*sizes: Dim | None) -> int | None:
    """Return the sum of sizes, None where one is symbolic or not known."""
    numbers = [size for size in sizes if isinstance(size, int)]
    return sum(numbers) if len(numbers) == len(sizes) else None


def fallbacks(graph: CompiledGraph) -> dict[str, Remark]:
    """Return a remark for each library kernel that nodes fall back to, by its name."""
    nodes: dict[str, list[str]] = {}
    spans: dict[str, list[Span]] = {}
    for leaf in (leaf for top in graph.nodes for leaf in top.leaves()):
        if leaf.ir == "FallbackKernel":
            nodes.setdefault(leaf.kernel or "", []).append(leaf.name)
            spans.setdefault(leaf.kernel or "", []).extend([leaf.span] if leaf.span else [])
    return {kernel: _fallback(kernel, names, tuple(spans[kernel])) for kernel, names in nodes.items()}


def _fallback(kernel: str, nodes: Sequence[str], evidence: tuple[Span, ...]) -> Remark:
    subject, *also = (Subject("node", node) for node in nodes)
    numbers = (("kernel", kernel),) if kernel else ()
    return Remark("fallback", "missed", subject, numbers, None, evidence, knowledge="read", also=tuple(also))
