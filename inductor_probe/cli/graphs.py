"""The verbs that show what stands in a dump of graphs: tables, pages, comparisons. Nothing of it is run."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

import inductor_probe as ip
from inductor_probe.api.rows import NODE_KINDS, TRAITS, KernelRows, NodeRows
from inductor_probe.cli import screen
from inductor_probe.cli.completion import BUFFER, KERNEL, NAME, TARGET, words_of
from inductor_probe.cli.parameters import CommaList, command, resolve, shared_option
from inductor_probe.cli.screen import OutputFormat, give, give_rows
from inductor_probe.errors import ProbeError
from inductor_probe.model.decision import DECISION_KINDS
from inductor_probe.model.kernels import KernelRow
from inductor_probe.report.document import Code
from inductor_probe.report.pages.kernels import LEXERS
from inductor_probe.report.units import one_word

_TARGET = click.argument("target", required=False, metavar="[RUN|GRAPH]", type=TARGET)
_NAME = click.argument("words", nargs=-1, metavar="[NAME] [RUN|GRAPH]", type=NAME)


@command(
    _TARGET,
    click.option("--pre", is_flag=True, help="The nodes before fusion, with those removed since."),
    click.option(
        "--kind",
        type=words_of("kind", NODE_KINDS),
        help="Only pointwise, reduction, scan, sort, scatter, template, extern, fallback, item, nop; a class "
        "(ComputedBuffer); fused, foreach, unlinked.",
    ),
    click.option("--kernel", type=KERNEL, help="Only nodes in this kernel, or one whose name starts so."),
    click.option("--reads", type=BUFFER, metavar="BUFFER", help="Only nodes that read this buffer or input."),
    click.option(
        "--writes", type=BUFFER, metavar="BUFFER", help="Only nodes that write it, or change it in place."
    ),
    click.option("--op", help="Only nodes whose loop body calls this: exp, load, sum ..."),
    click.option(
        "--source", metavar="FILE:LINE", help="Only nodes from this source line, or file, or line number."
    ),
    click.option(
        "--sort",
        type=click.Choice(tuple(NodeRows.orders)),
        help="Largest first; in the scheduler's order if left out.",
    ),
)
def nodes(
    target: str | None, *, pre: bool, sort: str | None, output_format: OutputFormat, **filters: Any
) -> int:
    """Show every node of the scheduler: what it does, reads, writes and loops over, and what it belongs to.

    `probe show NODE` has one node on a page.
    """
    return give_rows(ip.nodes(target, pre=pre).where(**filters).sorted_by(sort), output_format)


@command(
    _TARGET,
    click.option(
        "--sort",
        type=click.Choice(tuple(KernelRows.orders)),
        help="Largest first, names from a to z; in the order of first use if left out.",
    ),
    click.option(
        "--only",
        "traits",
        multiple=True,
        type=words_of("trait", TRAITS),
        metavar="TRAIT",
        help="Only kernels that are TRAIT: cpp, triton, extern, fallback, template, pointwise, reduction, "
        "scalar, underfilled, vectorised, atomic, int64, unlinked ... Several must all hold.",
    ),
)
def kernels(
    target: str | None, *, sort: str | None, traits: tuple[str, ...], output_format: OutputFormat
) -> int:
    """Show every kernel: nodes, loops or heuristic, bytes, launches, and remarks.

    `probe show KERNEL` has one kernel on a page.
    """
    rows = ip.kernels(target).only(*traits).sorted_by(sort)
    status = give_rows(rows, output_format)
    scalar = [row.name for row in rows if any(remark.decisions for remark in row.remarks)]
    if scalar and "scalar" in traits and output_format != "json":
        screen.say(f"next: {one_word(' '.join(filter(None, ('probe why', scalar[0], target))))}")
    return status


@command(_NAME)
def layouts(words: tuple[str, ...], *, output_format: OutputFormat) -> int:
    """Show how buffers lie in memory, and which nodes write and read them with which strides.

    NAME is a buffer (buf3), an input (arg0_1) or a node (op3); every buffer if left out.
    """
    return give_rows(resolve(words, 1, ip.layouts, question=True), output_format)


@command(
    click.argument("words", nargs=-1, metavar="[A [B]] [RUN|GRAPH]", type=NAME),
    click.option("--all", "everything", is_flag=True, help="Show long lists to their end."),
)
def fusion(words: tuple[str, ...], *, everything: bool, output_format: OutputFormat) -> int:
    """Show what the scheduler fused in which round, and what it refused why.

    A and B are nodes (op3), fused ones (op3_op4) or buffers (buf3): fused when, or not why? With A alone:
    what it was fused with and what not. Without names: all of the graph.
    """
    rows = resolve(words, 2, ip.fusion, question=True)
    return give_rows(rows, output_format, document=rows.page(everything=everything))


@command(
    click.argument("words", nargs=-1, metavar="[A [B]] [RUN|GRAPH]", type=NAME),
    click.option(
        "--kind",
        "kinds",
        type=CommaList(DECISION_KINDS),
        metavar="KIND,...",
        help=f"Only decisions of these kinds: {', '.join(DECISION_KINDS)}.",
    ),
    click.option("--all", "everything", is_flag=True, help="Show long lists to their end."),
    click.option(
        "--compiler", is_flag=True, help="Ask the C++ compiler about the loops, too: compiles the kernels."
    ),
    shared_option("--trust"),
)
def why(
    words: tuple[str, ...],
    *,
    kinds: tuple[str, ...] | None,
    everything: bool,
    compiler: bool,
    trust: bool,
    output_format: OutputFormat,
) -> int:
    """Show what the compiler decided, why, and what would change it.

    A and B are nodes (op3, op3_op4), buffers (buf3), kernels or the start of a name, FX nodes (add_1), source
    lines of yours (file.py:12) or operators (aten.cumprod); both for what was decided about the pair.
    Without names: every decision about the graph in a table, what was missed first, then by time or bytes.

    A cause is recorded while torch decides, by `probe dump`; of other dumps only what they prove is shown.
    Remarks of the C++ compiler are shown apart, once `probe asm`, or --compiler, has asked it.
    """
    query = partial(ip.ask_compiler, trust=trust) if compiler else ip.why
    rows = resolve(words, 2, partial(query, kinds=kinds or ()), question=True)
    return give_rows(rows, output_format, document=rows.page(everything=everything))


@command(
    click.argument("target", required=False, metavar="[RUN|GRAPH|TABLE.csv]", type=TARGET),
    click.option("--csv", is_flag=True, help="Print a table that spreadsheets read."),
)
def tunings(target: str | None, *, csv: bool, output_format: OutputFormat) -> int:
    """Show what was autotuned: choices with times, configs of Triton kernels, and which of them run.

    TABLE.csv is what --csv printed before; `probe rewrite GRAPH --tuned TABLE.csv` makes variants of its
    configs. `probe dump` records both; other dumps have them in torch's logs (TORCH_LOGS=+inductor).

    RUN or GRAPH is as for other verbs, the latest run if left out.
    """
    tunings = ip.tunings(target)
    if not csv:
        return give_rows(tunings, output_format)
    sys.stdout.write(tunings.csv)
    return screen.warn(tunings.problems)


_EVERY_KERNEL = "*"


@command(
    click.argument("a", required=False, metavar="[A]", type=TARGET),
    click.argument("b", required=False, metavar="[B]", type=TARGET),
    click.option(
        "--code",
        is_flag=False,
        flag_value=_EVERY_KERNEL,
        type=KERNEL,
        metavar="[KERNEL]",
        help="Show the unified diff of matched kernels, or of one (a name of either side, or its start).",
    ),
    click.option(
        "--all", "everything", is_flag=True, help="Show what did not change as well, and every entry."
    ),
)
def diff(
    a: str | None, b: str | None, *, code: str | None, everything: bool, output_format: OutputFormat
) -> int:
    """Show what changed between two runs (builds, flags, versions of torch), or between two graphs.

    A and B are paths, graphs' names, labels, or the start of one. Without B, B is the latest run; without
    both, the two latest runs are compared. Graphs, kernels and buffers are matched by what they compute, not
    by name.

    The exit status is 0 when both compute the same with the same code, 1 when they differ, 2 when something
    could not be read.
    """
    from inductor_probe.report.pages.diff import code_page

    if code not in (None, _EVERY_KERNEL) and a is not None and b is None:
        a, b, code = code, a, _EVERY_KERNEL  # `--code A B`: an option's value looks like an argument
    diff = ip.diff(a, b)
    document = diff.page(everything=everything)
    if code is not None and output_format != "json":
        document = code_page(diff.code(None if code == _EVERY_KERNEL else code))
    status = give(diff, output_format, document=document, ok=diff.equal)
    return screen.warn(diff.problems) or status


@command(
    _NAME,
    click.option(
        "--raw", is_flag=True, help="Loop bodies as dumped, with line numbers, instead of formulas."
    ),
    click.option("--code", is_flag=True, help="With a kernel: its text."),
    click.option(
        "--annotate", is_flag=True, help="With a kernel: its text, each line with where it comes from."
    ),
    click.option("--no-line", is_flag=True, help="With --annotate: no #line directives in C++."),
    shared_option("--output", "-o", help="With --annotate: write to this file."),
    click.option("--force", is_flag=True, help="Overwrite the file that -o names."),
)
def show(
    words: tuple[str, ...],
    *,
    raw: bool,
    code: bool,
    annotate: bool,
    no_line: bool,
    output: Path | None,
    force: bool,
    output_format: OutputFormat,
) -> int:
    """Show one page about NAME: what it is, what it belongs to, what it computes, and its remarks.

    NAME is a node (op3, op3_op4), a buffer or input (buf3, arg0_1), a kernel or the start of its name, an FX
    node (add_1), or a source line of yours (file.py:12); a page about the graph if left out.
    """
    if output is not None and not annotate:
        raise ProbeError("-o needs --annotate", "probe show KERNEL --annotate -o FILE")
    pages = resolve(words, 1, partial(ip.show, raw=raw, code=code), question=not (raw or code))
    if annotate:
        _annotate(pages, output, line_directives=not no_line, force=force)
        return screen.warn(pages.problems)
    status = give_rows(pages, output_format)
    if pages.outline and output_format != "json":
        screen.say(f"next: {one_word(f'probe show {_short_name(pages[0])}')}")
    return status


def _short_name(page: ip.Page) -> str:
    return ip.open_graph(page.graph.folder.path).short_name


def _annotate(pages: ip.Pages, output: Path | None, *, line_directives: bool, force: bool) -> None:
    kernels = [(page, page.record) for page in pages if isinstance(page.record, KernelRow)]
    if not kernels:
        raise ProbeError("--annotate needs the name of a kernel", "probe kernels lists them")
    if len(kernels) > 1:
        graphs = ", ".join(_short_name(page) for page, _ in kernels)
        screen.say(f"{len(kernels)} graphs have this kernel: {graphs}; this is the text of the first")
    page, kernel = kernels[0]
    text = page.annotated(line_directives=line_directives)
    if output is None:
        screen.show([Code(text, LEXERS.get(kernel.backend, ""))])
        return
    screen.write_output(output, text, force=force)
    screen.say(f"written: {screen.relative(output)}")
