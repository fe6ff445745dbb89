"""A row for each kernel: what it runs and computes, what it is passed, what its text says, and remarks.

Codes of remarks and their numbers, in order; the subject is the kernel unless said otherwise:

- `scalar-loops`: scalar (loop nests without vectors), nests (all, but for tails and helpers). `missed`.
- `underfilled-loops`: underfilled (loop nests with vectors or tiles, none of them full), nests, tiles (how
  many of these transpose tiles, if any do). `missed`.
  `TilingSelect` (`torch/_inductor/codegen/cpp.py`) decides both; `Remark.decisions` say why, if recorded.
- `int64-indices` of a Triton kernel: none. `missed`.
- `reduction-hint`: hint, where it is DEFAULT. `analysis`.
- `unaligned-pointers`: pointers (parameters that `triton_meta` does not list as divisible by 16), of
  (how many pointers there are). `missed`.
- `no-launch`, `no-node`, `folds-constants`: none. `text-only`: backend. `analysis`.
- `fallback`: kernel. `missed`; the subjects are the nodes that call it.
- `passed-twice` of a library kernel: buffer, times. `hazard`: the same memory, and it is changed.

The cost is what the launches of the kernel read and write. Below `SMALLEST_COST` nothing
is said of its speed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from inductor_probe.analysis.bounds import with_bounds
from inductor_probe.analysis.causes.nests import decisions_of_kernel, decisions_of_nests, vector_bits
from inductor_probe.analysis.graph import index_of, once_per_graph
from inductor_probe.analysis.layout_remarks import SMALLEST_COST
from inductor_probe.analysis.linking.fx_ops import VIEWS
from inductor_probe.analysis.links import kernels_of, launches, links
from inductor_probe.analysis.names import KERNEL_FIRST, resolve
from inductor_probe.analysis.operators import operator
from inductor_probe.analysis.symbols import recorded, used_symbols
from inductor_probe.analysis.work import call_traffic, kernel_traffic
from inductor_probe.backends import CPP, TRITON, backend_called
from inductor_probe.errors import AmbiguousError, NotFoundError, near_names
from inductor_probe.model.code import (
    DECIDED_NESTS,
    CppFacts,
    Kernel,
    NestKind,
    TritonFacts,
)
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.links import NodeLink
from inductor_probe.model.record import collected
from inductor_probe.model.remark import Number, Remark, RemarkCode, RemarkKind, Subject
from inductor_probe.model.span import SourceLine, Span

_NESTS: Mapping[RemarkCode, NestKind] = {"scalar-loops": "scalar", "underfilled-loops": "underfilled"}
"""Remarks by the loop nests that they are about, which decisions call as kernels' texts do."""
_POINTERS = ("in", "out", "inout", "workspace", "pointer")


@once_per_graph
def kernel_rows(graph: CompiledGraph) -> tuple[KernelRow, ...]:
    """Return a row for each generated kernel, and one for each library function, in order of first use.

    Kernels that are never launched come last, in the order they are defined.
    """
    if graph.code is None:
        return ()
    reader = _Reader(graph)
    chosen = {name for kernel in graph.code.kernels for name in kernel.chooses}
    rows = [reader.generated(kernel, kernel.name in chosen) for kernel in graph.code.kernels]
    rows += [reader.library(target) for target in dict.fromkeys(call.target for call in graph.code.externs)]
    first_lines = {row.name: row.launches[0].span if row.launches else row.span for row in rows}
    rows.sort(key=lambda row: (not row.launches, span.first if (span := first_lines[row.name]) else 0))
    return with_bounds(graph, rows)


def kernel_called(graph: CompiledGraph, name: str | None) -> KernelRow:
    """Return the kernel that `name` means: its own, the start of it, or of what it alone computes.

    Without a name the only kernel of C++, or else of Triton.

    Raises:
        NotFoundError: no kernel has the name; the hint offers near names. AmbiguousError: several match.
    """
    if name is None:
        of_cpp, of_triton = (
            [row for row in kernel_rows(graph) if row.backend == kind] for kind in ("cpp", "triton")
        )
        if len(found := of_cpp or of_triton) != 1:
            kind = "C++" if of_cpp else "Triton"
            what = f"{len(found)} {kind} kernels: name one" if found else "no kernel that was generated"
            raise NotFoundError(f"{graph.name} has {what}", near_names("", [row.name for row in found]))
        return found[0]
    subject = resolve(graph, name, KERNEL_FIRST)
    names = kernels_of(graph, subject)
    rows = [row for row in kernel_rows(graph) if row.name in names]
    if len(rows) > 1:
        near = near_names(name, [row.name for row in rows])
        raise AmbiguousError(f"{len(rows)} kernels of {graph.name} compute {name}", near)
    if not rows:
        what_is = f"probe show {subject.name} says what is known of it"
        raise NotFoundError(f"no kernel of {graph.name} is known to compute {name}", what_is)
    return rows[0]


class _Reader:
    """Makes the rows of one graph from indexes that are built once."""

    def __init__(self, graph: CompiledGraph) -> None:
        self._graph = graph
        self._linked = links(graph)
        self._leaves = index_of(graph).nodes.leaf
        self._fx = index_of(graph).fx
        self._fallbacks = fallbacks(graph)

    def generated(self, kernel: Kernel, is_choice: bool) -> KernelRow:
        """Return the row of a generated kernel; a choice of several has no remarks."""
        facts = kernel.details
        match facts:
            case CppFacts(templates=templates):
                kind = "template" if templates else "loops"
                facts = replace(facts, vector_bits=vector_bits(self._graph, kernel.name, facts))
            case TritonFacts(heuristic=str(heuristic)):
                kind = heuristic
            case _:
                kind = "kernel"
        row = self._row(kernel.name, kernel.backend, kind)
        sizes = [self._leaves[node].sizes or () for node in row.nodes]
        reductions = sum(len(size) > 1 and bool(size[1]) for size in sizes) if row.nodes else None
        loads, stores = _accesses(kernel)
        row = replace(row, decisions=decisions_of_nests(self._graph, kernel.name))
        return replace(
            row,
            ops=row.ops or (kernel.comment.aten if kernel.comment else ()),
            args=kernel.args,
            loads=loads,
            stores=stores,
            reductions=reductions,
            chooses=kernel.chooses,
            details=facts,
            traits=tuple(dict.fromkeys(_traits(kernel, row, reductions or 0))),
            remarks=() if is_choice else tuple(_remarks(self._graph, kernel, row)),
            source=kernel.source,
            span=kernel.span,
        )

    def library(self, target: str) -> KernelRow:
        """Return the row of a library function: all calls of it."""
        linked = self._linked.of_kernel(target)
        fallback = any(self._leaves[link.node].ir == "FallbackKernel" for link in linked)
        row = self._row(target, "extern", "fallback" if fallback else "library")
        fx = self._called_fx(target, linked)
        remark = self._fallbacks.get(target)
        return replace(
            row,
            fx=fx or row.fx,
            ops=self._ops(fx) if fx else row.ops,
            sources=_sorted(self._fx[name].source for name in fx or row.fx if name in self._fx)
            or row.sources,
            traits=("extern", row.kind) if row.nodes else ("extern", row.kind, "unlinked"),
            remarks=(*([replace(remark, cost=row.moved)] if remark else ()), *self._passed_twice(row)),
            span=row.launches[0].span if row.launches else None,
        )

    def _row(self, name: str, backend: str, kind: str) -> KernelRow:
        """Return what is known in the same way of generated kernels and library functions."""
        linked = self._linked.of_kernel(name)
        nodes = tuple(link.node for link in linked)
        proofs = self._linked.fx_of_kernel(name)
        # Torch 2.8 lists some FX nodes of graphs that were compiled before, too.
        fx = tuple(pair.fx for pair in proofs if pair.conflict != "not-in-fx-graph")
        calls = launches(self._graph).get(name, ())
        if backend == "extern":
            read, written = call_traffic(self._graph, name, calls)
        else:
            read, written = kernel_traffic(self._graph, calls, nodes)
        symbols = used_symbols(self._graph, read, written)
        return KernelRow(
            graph=self._graph.name,
            name=name,
            backend=backend,
            kind=kind,
            nodes=nodes,
            tops=tuple(dict.fromkeys(link.top for link in linked)),
            fx=fx,
            fx_proofs=proofs,
            ops=self._ops(fx),
            sources=_sorted(source for link in linked for source in link.sources),
            launches=calls,
            bytes_read=read,
            bytes_written=written,
            recorded_read=recorded(read, symbols),
            recorded_written=recorded(written, symbols),
            symbols=symbols,
        )

    def _passed_twice(self, row: KernelRow) -> Iterator[Remark]:
        """Yield each buffer that a call of a library function is passed several times, and changes."""
        mutated = {
            name for node in row.nodes for buffer in self._leaves[node].outputs for name in buffer.mutations
        }
        for launch in row.launches:
            passed = (one for one in launch.passed if one.buffer in mutated)
            texts = collected((one.buffer or "", one.text.rpartition("=")[2]) for one in passed)
            for buffer, views in texts.items():
                times = max(map(views.count, views))
                if times > 1:  # a gather into a buffer is passed all of it, and the part that is there
                    numbers = (("buffer", buffer), ("times", times))
                    subject, place = Subject("kernel", row.name), (launch.span,)
                    yield Remark("passed-twice", "hazard", subject, numbers, None, place, knowledge="read")

    def _called_fx(self, target: str, linked: Sequence[NodeLink]) -> tuple[str, ...]:
        """Return the FX nodes that a library function computes.

        `GraphLowering.run_node` adds the origins of the arguments (`gather_origins`): for an `addmm` after a
        layer norm, `var_mean`, `sub`, ... and `permute` of the weight. What other kernels compute, and mere
        views, are left out; the last one is the node that was lowered to the call.
        """
        others = (link for link in self._linked.nodes.values() if link.kernel not in (None, target))
        elsewhere = {name for link in others for name in link.fx}
        names = [(link, name) for link in linked for name in link.fx]
        views = {
            name for _, name in names if name in self._fx and operator(self._fx[name].target).name in VIEWS
        }
        return tuple(
            dict.fromkeys(
                name for link, name in names if name == link.fx[-1] or name not in elsewhere | views
            )
        )

    def _ops(self, fx: Iterable[str]) -> tuple[str, ...]:
        # A target without a dot takes an item or computes a size.
        nodes = (self._fx[name] for name in fx if name in self._fx)
        return tuple(dict.fromkeys(operator(node.target).packet for node in nodes if "." in node.target))


def _sorted(sources: Iterable[SourceLine | None]) -> tuple[SourceLine, ...]:
    lines = {source.place: source for source in sources if source is not None}
    return tuple(lines[place] for place in sorted(lines))


def _accesses(kernel: Kernel) -> tuple[int | None, int | None]:
    """Count the loads and stores in the text; those of vectorised and tail code both count."""
    if isinstance(kernel.details, TritonFacts):
        return kernel.details.loads, kernel.details.stores + kernel.details.atomics
    backend = backend_called(kernel.backend)
    pointers = frozenset(arg.name for arg in kernel.args if arg.role in _POINTERS)
    if backend is None or kernel.details is None or not pointers:
        return None, None
    uses = backend.pointer_uses(kernel.source, pointers)
    loads = sum(use.kind == "load" for use in uses)
    return loads, len(uses) - loads


def _traits(kernel: Kernel, row: KernelRow, reductions: int) -> Iterator[str]:
    yield from (kernel.backend, row.kind)
    if reductions or "reduction" in row.kind:
        yield "reduction"
    facts = kernel.details
    if isinstance(facts, CppFacts):
        yield from (kind for kind in DECIDED_NESTS if facts.count(kind))
    if facts and facts.atomics:
        yield "atomic"
    if isinstance(facts, TritonFacts) and facts.index_width == "int64":
        yield "int64"
    if not row.nodes:
        yield "unlinked"


_Numbers = tuple[tuple[str, Number], ...]
_Draft = tuple[RemarkCode, RemarkKind, _Numbers, tuple[Span, ...]]


def _remarks(graph: CompiledGraph, kernel: Kernel, row: KernelRow) -> Iterator[Remark]:
    cost, wrapper = row.moved, graph.code
    drafts: list[_Draft] = [] if cost is not None and cost < SMALLEST_COST else [*_remarks_of_text(kernel)]
    if kernel.source and kernel.backend not in (CPP.name, TRITON.name):
        drafts.append(("text-only", "analysis", (("backend", kernel.backend),), ()))
    if not row.launches:
        drafts.append(("no-launch", "analysis", (), ()))
    elif not row.nodes and wrapper is not None and wrapper.folds(kernel.name):
        drafts.append(("folds-constants", "analysis", (), ()))
    elif not row.nodes and not graph.folder.in_package:
        drafts.append(("no-node", "analysis", (), ()))
    place = (kernel.span,) if kernel.span else ()
    for code, kind, numbers, spans in drafts:
        decisions: tuple[Decision, ...] = ()
        if kind_of_nest := _NESTS.get(code):
            about_nests = row.decisions or decisions_of_kernel(graph, kernel.name)
            decisions = tuple(decision for decision in about_nests if decision.outcome == kind_of_nest)
        yield Remark(
            code,
            kind,
            Subject("kernel", kernel.name),
            numbers,
            cost,
            spans or place,
            knowledge="recorded" if decisions else "read",
            decisions=decisions,
        )


def _remarks_of_text(kernel: Kernel) -> Iterator[_Draft]:
    match kernel.details:
        case CppFacts() as facts:
            # Lines of a nest are those of the kernel's source, whose first stands where its span begins.
            above = kernel.span.first - 1 if kernel.span else 0
            for code, kind in _NESTS.items():
                if number := facts.count(kind):
                    lines = (
                        Span(kernel.span.path, above + nest.line, above + nest.last)
                        for nest in facts.nests
                        if kernel.span and nest.kind == kind
                    )
                    tiles = sum(bool(nest.tile) for nest in facts.nests if nest.kind == kind)
                    numbers: _Numbers = ((kind, number), ("nests", len(facts.decided_nests)))
                    if tiles and kind == "underfilled":
                        numbers = (*numbers, ("tiles", tiles))
                    yield code, "missed", numbers, tuple(lines)
        case TritonFacts() as facts:
            if facts.index_width == "int64":
                yield "int64-indices", "missed", (), ()
            if facts.reduction_hint == "DEFAULT":
                yield "reduction-hint", "analysis", (("hint", facts.reduction_hint),), ()
            pointers = tuple(name for name, type_ in facts.signature if type_.startswith("*"))
            unaligned = tuple(name for name in pointers if name not in facts.divisible)
            if facts.divisible and unaligned:
                yield "unaligned-pointers", "missed", (("pointers", unaligned), ("of", len(pointers))), ()


def fallbacks(graph: CompiledGraph) -> dict[str, Remark]:
    """Return a remark for each library kernel that nodes fall back to, by its name."""
    nodes: dict[str, dict[str, Span | None]] = {}
    for leaf in index_of(graph).nodes.leaves:
        if leaf.ir == "FallbackKernel":
            nodes.setdefault(leaf.kernel or "", {})[leaf.name] = leaf.span
    remarks = {}
    for kernel, spans in nodes.items():
        subject, *also = (Subject("node", node) for node in spans)
        evidence = tuple(span for span in spans.values() if span)
        numbers = (("kernel", kernel),) if kernel else ()
        remarks[kernel] = Remark(
            "fallback", "missed", subject, numbers, None, evidence, knowledge="read", also=tuple(also)
        )
    return remarks
