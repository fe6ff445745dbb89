"""One scheduler node on one page: what it belongs to, what it reads and writes, and what it computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from inductor_probe.model.ir import WeakDep
from inductor_probe.model.layouts import Access, LayoutRow, Pattern
from inductor_probe.model.nodes import NodeBuffer
from inductor_probe.model.pages import NodePage, NodePart
from inductor_probe.model.remark import Remark
from inductor_probe.report.chain import MOST_LINES, chain, fx_text, link_facts
from inductor_probe.report.facts import code_text, facts, in_order, names, place, source_text, table
from inductor_probe.report.formula import FormulaText
from inductor_probe.report.nodes import buffer_text, does, kernel_text, ranges_text
from inductor_probe.report.remark_lines import remark_line, remark_lines
from inductor_probe.report.units import counted, dims_text, shorten
from inductor_probe.report.words.layouts import format_text, memory_text, pattern_text
from inductor_probe.report.words.links import conflict_texts

Lines = Mapping[str, Sequence[tuple[int, str]]]
"""Dumped text by node: numbered lines."""

_MOST_OPS = 8


class NodePageText:
    """A node on a page. With `raw` the dumped text stands where else the formula does."""

    def __init__(self, page: NodePage, raw: Lines | None = None) -> None:
        self.page = page
        self.raw = raw

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        page = self.page
        width = options.max_width
        if len(page.parts) == 1:
            yield from _single(page, page.parts[0])
        else:
            yield from _fused(page, width)
        for title, rows in (("writes", page.writes), ("reads", page.reads)):
            if rows:
                yield Text(title, style="bold")
                yield _buffers(rows, page, title)
        if page.inside:
            inside = [buffer_text(NodeBuffer(row.buffer, row.layout)) for row in page.inside]
            yield Text.assemble(("only inside  ", "bold"), names(inside))
        rows = (*page.writes, *page.reads, *page.inside)
        remarks = (remark for row in rows for remark in row.remarks if _is_about(remark, page))
        yield from remark_lines(remarks, indent=0)
        for text in conflict_texts(page.conflicts):
            yield remark_line(text, "hazard", indent=0)
        yield from _bodies(page, self.raw)


def _is_about(remark: Remark, page: NodePage) -> bool:
    nodes = {part.row.node for part in page.parts}
    return any(subject.type == "node" and subject.name in nodes for subject in remark.subjects)


def _single(page: NodePage, part: NodePart) -> Iterator[RenderableType]:
    row = part.row
    what = f"{row.node_class}({row.ir}){f' on {row.device}' if row.device else ''}"
    yield Text.assemble((row.node, "bold"), "  ", (does(row), "cyan"), f"  {what}")
    yield facts(
        [
            ("graph", f"{page.graph}{', removed before code was written' if page.removed else ''}"),
            ("links", chain(row.link)),
            *link_facts(row.link),
            ("fused into", f"{row.top} ({row.top_class})" if row.top else ""),
            *_loop_facts(part),
        ]
    )


def _fused(page: NodePage, width: int) -> Iterator[RenderableType]:
    parts = page.parts
    head = Text.assemble((shorten(page.name, width), "bold"), "  ", (page.node_class, "cyan"))
    yield head
    kernels = tuple(dict.fromkeys(kernel_text(part.row.link) for part in parts))
    launches = dict.fromkeys(span for part in parts for span in part.row.link.launches)
    sources = dict.fromkeys(source for part in parts for source in part.row.link.sources)
    agrees = {True: "yes, they fit into one nest", False: "no: they do not fit into one nest of loops"}
    yield facts(
        [
            ("graph", page.graph),
            ("name", page.name if len(page.name) > width else ""),
            ("nodes", f"{len(parts)} in it"),
            ("kernel", ", ".join(kernels)),
            ("launched", ", ".join(map(place, launches))),
            (
                "same ranges",
                agrees.get(bool(parts[0].row.agrees)) or "" if parts[0].row.agrees is not None else "",
            ),
            *(("from", source_text(source)) for source in in_order(sources)[:MOST_LINES]),
        ]
    )
    yield Text("nodes", style="bold")
    yield table(
        ("node", "does", "writes", "loops", "FX nodes"),
        (
            (
                Text(part.row.node, style="bold"),
                does(part.row),
                ", ".join(map(buffer_text, part.row.writes)),
                ranges_text(part.row.ranges),
                fx_text(part.row.link, most=4),
            )
            for part in parts
        ),
    )


def _loop_facts(part: NodePart) -> list[tuple[str, str]]:
    row = part.row
    agrees = {
        True: "",
        False: "; those of the nodes it is fused with do not fit into the same nest",
        None: "",
    }
    weak = [dep for dep in (*part.met, *part.unmet) if isinstance(dep, WeakDep)]
    deps = [dep for dep in (*part.met, *part.unmet) if not isinstance(dep, WeakDep)]
    modes = [f"{dep.name} {dep.mode}" for dep in deps if dep.mode not in (None, "None")]
    return [
        ("loops", f"{ranges_text(row.ranges)}{agrees[row.agrees]}" if row.ranges else ""),
        ("operations", _operations(row.operations)),
        ("memory", memory_text(row)),
        ("waits for", ", ".join(map(_weak, weak))),
        ("modes", ", ".join(modes)),
        ("users", names(row.users)),
        ("read at", place(row.span) if row.span else ""),
    ]


def _weak(dep: WeakDep) -> str:
    changed = f", before it changes {dep.mutating_buf}" if dep.mutating_buf else ""
    return f"{dep.name} (order only{changed}{', fake' if dep.is_fake else ''})"


def _operations(operations: tuple[tuple[str, int], ...]) -> str:
    if not operations:
        return ""
    shown = ", ".join(f"{name} {times}" for name, times in operations[:_MOST_OPS])
    more = (
        f", and {counted(len(operations) - _MOST_OPS, 'other kind')}" if len(operations) > _MOST_OPS else ""
    )
    return f"{sum(times for _, times in operations)}: {shown}{more}"


def _buffers(rows: Sequence[LayoutRow], page: NodePage, direction: str) -> Padding:
    inside = {part.row.node for part in page.parts}
    return table(
        ("buffer", "stride", "format", "how"),
        (
            (
                Text(buffer_text(NodeBuffer(row.buffer, row.layout)), style="bold"),
                dims_text(row.layout.stride if row.layout else None),
                format_text(row, always=True),
                how([access for access in _accesses(row, direction) if access.node in inside]),
            )
            for row in rows
        ),
    )


def _accesses(row: LayoutRow, direction: str) -> tuple[Access, ...]:
    return row.writes if direction == "writes" else row.reads


def how(accesses: Sequence[Access]) -> Text:
    """`contiguous, indirect 3 times`: patterns; in yellow where the generated code is not contiguous."""
    counts: dict[Pattern, int] = {}
    contiguous: dict[Pattern, bool | None] = {}
    for access in accesses:
        made = access.generated
        counts[access.pattern] = counts.get(access.pattern, 0) + access.count
        contiguous[access.pattern] = access.contiguous if made is None else made.contiguous
    text = Text()
    for at, (pattern, times) in enumerate(counts.items()):
        text.append(", " if at else "")
        text.append(pattern_text(pattern), style="yellow" if contiguous[pattern] is False else "")
        text.append(f" {times} times" if times > 1 else "")
    return text or Text("-")


def _bodies(page: NodePage, raw: Lines | None) -> Iterator[RenderableType]:
    for part in page.parts:
        lines = (raw or {}).get(part.row.node, ())
        if raw is None and part.formula is None:
            continue
        title = "computes" if len(page.parts) == 1 else f"{part.row.node} computes"
        yield Text(title if raw is None else f"{part.row.node} as dumped", style="bold")
        if raw is None and part.formula is not None:
            yield Padding(FormulaText(part.formula), (0, 0, 0, 2))
        else:
            yield raw_text(lines)


def raw_text(lines: Sequence[tuple[int, str]]) -> Text:
    """Return dumped lines with their numbers in the file."""
    digits = len(str(lines[-1][0])) if lines else 0
    text = code_text("")
    for at, (number, line) in enumerate(lines):
        text.append(f"{number:>{digits}}  ", style="dim")
        text.append(line + ("\n" if at < len(lines) - 1 else ""))
    return text
