"""One kernel on one page: what it computes, what it is passed, its loops, and its text."""

from __future__ import annotations

import os
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from inductor_probe.model.code import CppFacts, KernelArg, Loop, LoopNest
from inductor_probe.model.kernels import KernelLaunch, KernelRow, Passed
from inductor_probe.model.span import Span
from inductor_probe.report.facts import code_text
from inductor_probe.report.kernels import how
from inductor_probe.report.remark_lines import remark_line, remark_lines
from inductor_probe.report.units import bytes_with, counted, dims_text, symbols_text
from inductor_probe.report.words.layouts import FEATURES
from inductor_probe.report.words.links import conflict_texts, counted_sources_of_fx

_SHOWN_ABOVE = frozenset(("loop nests", "vectorised", "scalar", "tails", "heuristic", "loads", "stores"))
"""Facts that other lines of the page tell."""
_MOST_NAMES = 24
_MOST_PASSED = 3
_LEXERS = {"cpp": "cpp", "triton": "python", "cutedsl": "python", "pallas": "python"}
_STYLES = {"vectorised": "green", "scalar": "yellow"}


class KernelPage:
    """One kernel on one page. `code` adds its text; `below_another` sets it off from the page above."""

    def __init__(self, row: KernelRow, code: bool = False, below_another: bool = False) -> None:
        self.row = row
        self.code = code
        self.below_another = below_another

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.below_another:
            yield Text()
        row = self.row
        yield Text.assemble((row.name, "bold"), "  ", (how(row), "cyan"))
        yield Padding(_facts(row), (0, 0, 0, 2), expand=False)
        if row.args:
            yield Text("arguments", style="bold")
            yield Padding(_arguments(row), (0, 0, 0, 2), expand=False)
        if isinstance(row.details, CppFacts) and row.details.nests:
            yield Text("loops", style="bold")
            yield Padding(_nests(row.details, row.span), (0, 0, 0, 2), expand=False)
        yield from _launches(row)
        yield from remark_lines(row.remarks, indent=0, about=row.name)
        for text in conflict_texts(row.fx_proofs, row.name):
            yield remark_line(text, "hazard", indent=0)
        if self.code and row.source:
            yield Text("\ntext" if console.is_terminal else "", style="bold")
            yield _code(row, console.is_terminal)


def _facts(row: KernelRow) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("graph", row.graph)
    if row.ops:
        grid.add_row("computes", ", ".join(row.ops))
    tops = f", fused as {', '.join(row.tops)}" if row.tops and row.tops != row.nodes else ""
    grid.add_row("nodes", _names(row.nodes) + tops if row.nodes else "none could be linked to it")
    if row.fx:
        grid.add_row("FX nodes", _names(row.fx))
        grid.add_row("", counted_sources_of_fx(pair for pair in row.fx_proofs if pair.fx in row.fx))
    for source in row.sources:
        inside = f" in {source.function}" if source.function else ""
        grid.add_row("from", f"{source}{inside}: {source.code}")
    read = bytes_with(row.bytes_read, row.recorded_read, row.symbols)
    written = bytes_with(row.bytes_written, row.recorded_written, row.symbols)
    grid.add_row("reads", read + _in_text(row.loads, "load"))
    grid.add_row("writes", written + _in_text(row.stores, "store"))
    if row.symbols:
        grid.add_row("symbols", symbols_text(row.symbols))
    for name, text in row.facts:
        if name not in _SHOWN_ABOVE:
            grid.add_row(name, text)
    if row.span:
        what = "defined at" if row.source else "first called at"
        grid.add_row(what, f"{_place(row.span)}")
    return grid


def _in_text(number: int | None, what: str) -> str:
    return "" if number is None else f", {counted(number, what)} in its text"


def _names(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _arguments(row: KernelRow) -> Table:
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for title in ("name", "role", "type", "passed", "size"):
        grid.add_column(title, overflow="fold")
    passed: dict[str, list[Passed]] = {}
    for launch in row.launches:
        for item in launch.passed:
            if item.arg is not None:
                passed.setdefault(item.arg.name, []).append(item)
    for arg in row.args:
        items = passed.get(arg.name, [])
        grid.add_row(
            Text(arg.name, style="bold"), arg.role, arg.type or "?", _texts(items), _size(arg, items)
        )
    return grid


def _texts(items: list[Passed]) -> str:
    """What the launches pass, each different text once."""
    texts = list(dict.fromkeys(item.buffer or item.text for item in items))
    more = f" and {len(texts) - _MOST_PASSED} more" if len(texts) > _MOST_PASSED else ""
    return " | ".join(texts[:_MOST_PASSED]) + more or "-"


def _size(arg: KernelArg, items: list[Passed]) -> str:
    if arg.role == "size" or not items:
        return ""
    return " | ".join(dict.fromkeys(_layout(item) for item in items[:_MOST_PASSED]))


def _layout(item: Passed) -> str:
    layout = item.layout
    return f"{layout.dtype or '?'} {dims_text(layout.size)}" if layout else "?"


def _nests(facts: CppFacts, span: Span | None) -> Table:
    grid = Table.grid(padding=(0, 2))
    for _ in range(3):
        grid.add_column(overflow="fold")
    above = span.first - 1 if span else 0
    for nest in facts.nests:
        if nest.kind != "threads":
            lines = f"lines {above + nest.line}-{above + nest.last}"
            grid.add_row(
                Text(nest.kind, style=_STYLES.get(nest.kind, "dim")), _order(nest), Text(lines, "dim")
            )
    return grid


def _order(nest: LoopNest) -> str:
    """`x0 1024 (omp for) > x1 768 by 16`: the loops from the outermost to the innermost."""
    loops = " > ".join(_loop(loop) for loop in nest.order)
    tile = f", transposing tiles of {'x'.join(map(str, nest.tile))}" if nest.tile else ""
    features = ", ".join(FEATURES[feature] for feature in nest.features)
    return f"{loops}{tile}{f'; it has {features}' if features else ''}"


def _loop(loop: Loop) -> str:
    extent = str(loop.stop) if loop.start == 0 else f"{loop.start} to {loop.stop}"
    step = "" if loop.step == 1 else f" by {loop.step}"
    pragmas = f" ({', '.join(loop.pragmas)})" if loop.pragmas else ""
    return f"{loop.variable} {extent}{step}{pragmas}"


def _launches(row: KernelRow) -> Iterator[RenderableType]:
    title = "calls" if row.backend == "extern" else "launches"
    if row.launches:
        yield Text(title, style="bold")
        for launch in row.launches:
            yield Padding(Text.assemble(_place(launch.span), "  ", (_call(launch), "dim")), (0, 0, 0, 2))


def _call(launch: KernelLaunch) -> str:
    keywords = [f"{name}={text}" for name, text in launch.keywords]
    return ", ".join([*(passed.text for passed in launch.passed), *keywords])


def _code(row: KernelRow, coloured: bool) -> RenderableType:
    """The kernel's text, with colours on a terminal; exactly as it is in a pipe."""
    text = row.source.strip("\n")
    if not coloured:
        return code_text(text)
    from rich.syntax import Syntax  # noqa: PLC0415 - loads hundreds of lexers, and only this needs one

    lexer = _LEXERS.get(row.backend, "text")
    highlighted = Syntax(text, lexer, theme="ansi_dark", background_color="default").highlight(text)
    highlighted.rstrip()  # a lexer ends the last line
    return code_text(highlighted)


def _place(span: Span) -> str:
    """`output_code.py:12`: the folder is the graph's, which the page names."""
    return str(span).rpartition(os.sep)[2]
