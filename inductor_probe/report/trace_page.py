"""What became of a line of the user's, or of an FX node, on one page."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from inductor_probe.model.fx import FxNode
from inductor_probe.model.links import KernelFx
from inductor_probe.model.nodes import NodeRow
from inductor_probe.model.pages import Absence, TracePage
from inductor_probe.model.span import Span
from inductor_probe.report.facts import facts, names, place, source_text, table
from inductor_probe.report.nodes import buffer_text, does, kernel_text
from inductor_probe.report.remark_lines import remark_line
from inductor_probe.report.units import shorten
from inductor_probe.report.words.links import conflict_texts, proofs_text, searched_text, sources_of_fx

_PIPE = 1000
_SHORTEST = 24


def _by_kernel(page: TracePage) -> dict[str, list[KernelFx]]:
    pairs: dict[str, list[KernelFx]] = {}
    for pair in page.kernels:
        pairs.setdefault(pair.kernel, []).append(pair)
    return pairs


def _launches(pairs: list[KernelFx]) -> tuple[Span, ...]:
    return tuple(dict.fromkeys(span for pair in pairs for span in pair.launches))


class TracePageText:
    """From the user's line down to the launches."""

    def __init__(self, page: TracePage) -> None:
        self.page = page

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        page = self.page
        kind = "line" if ":" in page.what else "FX node"
        shown = page.what if kind == "FX node" or len(page.lines) != 1 else str(page.lines[0])
        yield Text.assemble((shown, "bold"), "  ", (kind, "cyan"))
        yield facts([("graph", page.graph), *(("from", source_text(line)) for line in page.lines)])
        if page.before:
            yield Text("FX nodes before inductor's passes", style="bold")
            yield _fx_table(page.before, {}, options.max_width)
        if page.fx:
            yield Text("FX nodes", style="bold")
            yield _fx_table(page.fx, _holds(page), options.max_width)
        yield from _below(page, options.max_width)


def _holds(page: TracePage) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for node, buffer in page.holds:
        found.setdefault(node, []).append(buffer)
    return {node: ", ".join(buffers) for node, buffers in found.items()}


def _fx_table(nodes: tuple[FxNode, ...], holds: dict[str, str], width: int) -> RenderableType:
    wide = width >= 120
    titles = ["node", "calls", "type", *(["arguments"] if wide else []), *(["value in"] if holds else [])]
    return table(
        titles,
        (
            (
                Text(node.name, style="bold"),
                node.target.removeprefix("torch.ops."),
                node.type or "",
                *([node.arguments] if wide else []),
                *([holds.get(node.name, "-")] if holds else []),
            )
            for node in nodes
        ),
    )


def _below(page: TracePage, width: int) -> Iterator[RenderableType]:
    if page.nodes:
        yield Text("scheduler nodes", style="bold")
        room = max(width // 3, _SHORTEST) if width < _PIPE else width
        yield table(("node", "does", "writes", "kernel", "proof"), (_node(row, room) for row in page.nodes))
    if page.maybe:
        rows = [row.node for row in page.maybe]
        yield facts([("perhaps also", f"{names(rows)}: which of them it is could not be told")])
    if page.kernels:
        yield Text("kernels", style="bold")
        yield table(
            ("launched at", "kernel", "proof"),
            (
                (", ".join(map(place, _launches(pairs))) or "?", kernel, sources_of_fx(pairs))
                for kernel, pairs in _by_kernel(page).items()
            ),
        )
    for text in conflict_texts(page.kernels):
        yield remark_line(text, "hazard", indent=0)
    if page.absent:
        yield Text("\n".join(map(_absence, page.absent)), "dim")
    elif page.before and not page.fx:
        yield Text("nothing says what inductor's passes made of it", "dim")


def _absence(absence: Absence) -> str:
    of = names(absence.of)
    name = absence.fx
    match absence.reason:
        case "view":
            return f"{name} is a view of {of}: nothing is computed for it"
        case "item":
            return f"{name} is an item of {of}: what computes {of} computes it"
        case "number":
            return f"{name} is a number that the wrapper hands to kernels: no scheduler node computes it"
        case "attribute":
            return f"{name} reads an attribute of the module: nothing is computed for it"
        case "unused":
            return f"nothing uses the value of {name}, and no kernel is known to compute it"
        case "unknown":
            searched = searched_text(absence.searched)
            users = f"; what uses it is computed in {of}" if of else ""
            return f"no scheduler node is known to compute {name} from {searched}{users}"


def _node(row: NodeRow, room: int) -> tuple[Text | str, ...]:
    return (
        Text(row.node, style="bold"),
        does(row),
        ", ".join(map(buffer_text, row.writes)),
        shorten(kernel_text(row.link), room),
        proofs_text(row.link.fx_proofs),
    )
