"""The verbs that show what stands in a dump of graphs: tables, pages, comparisons. Nothing of it is run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import click
from msgspec import Struct
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.cli import screen
from inductor_probe.cli.completion import WORDS
from inductor_probe.cli.parameters import AsIssue, Everything, resolve, verb
from inductor_probe.cli.screen import OutputFormat, give, give_rows
from inductor_probe.errors import ProbeError
from inductor_probe.model.kernels import KernelRow
from inductor_probe.options.fields import Trust, Typed
from inductor_probe.options.reading import (
    DiffOptions,
    ExplainOptions,
    FusionOptions,
    KernelsOptions,
    LayoutsOptions,
    NodesOptions,
    ReportOptions,
    ShowOptions,
    TuningsOptions,
    WhyOptions,
)
from inductor_probe.report.document import Code
from inductor_probe.report.pages.kernels import LEXERS
from inductor_probe.report.units import bytes_text, one_word


def _words(metavar: str) -> click.Argument:
    return click.Argument(["words"], nargs=-1, metavar=metavar, type=WORDS["name"])


@verb(NodesOptions)
def nodes(options: NodesOptions, *, output_format: OutputFormat) -> int:
    """Show every node of the scheduler: what it does, reads, writes and loops over, and what it belongs to.

    `probe show NODE` has one node on a page.
    """
    return give_rows(ip.nodes(options), output_format)


@verb(KernelsOptions)
def kernels(options: KernelsOptions, *, output_format: OutputFormat) -> int:
    """Show every kernel: nodes, loops or heuristic, bytes, launches, and remarks.

    `probe show KERNEL` has one kernel on a page.
    """
    rows = ip.kernels(options)
    status = give_rows(rows, output_format)
    scalar = [row.name for row in rows if any(remark.decisions for remark in row.remarks)]
    if scalar and "scalar" in options.traits and output_format != "json":
        screen.say(f"next: {one_word(' '.join(filter(None, ('probe why', scalar[0], options.target))))}")
    return status


@verb(LayoutsOptions, None, _words("[NAME] [RUN|GRAPH]"), arguments=False)
def layouts(options: LayoutsOptions, *, words: tuple[str, ...], output_format: OutputFormat) -> int:
    """Show how buffers lie in memory, and which nodes write and read them with which strides.

    NAME is a buffer (buf3), an input (arg0_1) or a node (op3); every buffer if left out.
    """
    rows = resolve(words, 1, ip.layouts, question=True)
    return give_rows(rows, output_format)


@verb(FusionOptions, Everything, _words("[A [B]] [RUN|GRAPH]"), arguments=False)
def fusion(
    options: FusionOptions, shown: Everything, *, words: tuple[str, ...], output_format: OutputFormat
) -> int:
    """Show what the scheduler fused in which round, and what it refused why.

    A and B are nodes (op3), fused ones (op3_op4) or buffers (buf3): fused when, or not why? With A alone:
    what it was fused with and what not. Without names: all of the graph.
    """
    rows = resolve(words, 2, ip.fusion, question=True)
    return give_rows(rows, output_format, document=rows.page(everything=shown.everything))


class AskCompiler(Everything, frozen=True, kw_only=True):
    """Whether the compiler is asked, too: `ask_compiler` in Python.

    Attributes:
        compiler: Ask the C++ compiler about the loops, too: compiles the kernels.
    """

    compiler: bool = False
    trust: Trust = False
    issue: AsIssue = False


@verb(WhyOptions, AskCompiler, _words("[A [B]] [RUN|GRAPH]"), arguments=False, github=True)
def why(
    options: WhyOptions, shown: AskCompiler, *, words: tuple[str, ...], output_format: OutputFormat
) -> int:
    """Show what the compiler decided, why, and what would change it.

    A and B are nodes (op3, op3_op4), buffers (buf3), kernels or the start of a name, FX nodes (add_1), source
    lines of yours (file.py:12) or operators (aten.cumprod); both for what was decided about the pair.
    Without names: every decision about the graph in a table, what was missed first, then by time or bytes.

    A cause is recorded while torch decides, by `probe dump`; of other dumps only what they prove is shown.
    Remarks of the C++ compiler are shown apart, once `probe asm`, or --compiler, has asked it.
    """

    asked: list[str | None] = []

    def query(first: str | None, second: str | None, target: str | None) -> ip.Causes:
        asked[:] = [target]
        if shown.compiler:
            return ip.ask_compiler(first, second, target, kinds=options.kinds, trust=shown.trust)
        return ip.why(replace(options, first=first, second=second, target=target))

    rows = resolve(words, 2, query, question=True)
    if shown.issue:
        screen.give_issue(rows, output_format, target=asked[0])
        return screen.warn(rows.problems)
    return give_rows(rows, output_format, document=rows.page(everything=shown.everything))


@verb(ExplainOptions)
def explain(options: ExplainOptions, *, output_format: OutputFormat) -> int:
    """Show what a cause means: what torch compares, in which function, and what changes the decision.

    CODE is what `probe why` prints in brackets behind a cause. Where several kinds of decisions have it, each
    is shown. Without CODE: the list of all, by the kind of decision.
    """
    return give_rows(ip.explain(options), output_format)


class Csv(Struct, frozen=True):
    """In which form the answer is printed: `Tunings.csv` in Python.

    Attributes:
        csv: Print a table that spreadsheets read.
    """

    csv: bool = False


@verb(TuningsOptions, Csv)
def tunings(options: TuningsOptions, shown: Csv, *, output_format: OutputFormat) -> int:
    """Show what was autotuned: choices with times, configs of Triton kernels, and which of them run.

    TABLE.csv is what --csv printed before; `probe rewrite GRAPH --tuned TABLE.csv` makes variants of its
    configs. `probe dump` records both; other dumps have them in torch's logs (TORCH_LOGS=+inductor).

    RUN or GRAPH is as for other verbs, the latest run if left out.
    """
    tunings = ip.tunings(options)
    if not shown.csv:
        return give_rows(tunings, output_format)
    sys.stdout.write(tunings.csv)
    return screen.warn(tunings.problems)


_EVERY_KERNEL = "*"


class DiffShown(Struct, frozen=True):
    """What of two sides is shown: `Diff.code` and `Diff.page` in Python.

    Attributes:
        code: Show the unified diff of matched kernels, or of one (a name of either side, or its start).
        everything: Show what did not change as well, and every entry.
    """

    code: Annotated[str | None, Typed("kernel", "[KERNEL]", alone=_EVERY_KERNEL)] = None
    everything: Annotated[bool, Typed(flags="--all")] = False


@verb(DiffOptions, DiffShown, github=True)
def diff(options: DiffOptions, shown: DiffShown, *, output_format: OutputFormat) -> int:
    """Show what changed between two runs (builds, flags, versions of torch), or between two graphs.

    A and B are paths, graphs' names, labels, or the start of one. Without B, B is the latest run; without
    both, the two latest runs are compared. Graphs, kernels and buffers are matched by what they compute, not
    by name.

    The exit status is 0 when both compute the same with the same code, 1 when they differ, 2 when something
    could not be read.
    """
    from inductor_probe.report.pages.diff import code_page

    code = shown.code
    if code not in (None, _EVERY_KERNEL) and options.a is not None and options.b is None:
        # `--code A B`: an option's value looks like an argument.
        options = DiffOptions(code, options.a, options.devices)
        code = _EVERY_KERNEL
    diff = ip.diff(options)
    document = diff.page(everything=shown.everything)
    if code is not None and output_format != "json":
        document = code_page(diff.code(None if code == _EVERY_KERNEL else code))
    status = give(diff, output_format, document=document, ok=diff.equal)
    return screen.warn(diff.problems) or status


class ReportShown(Struct, frozen=True):
    """Where the page goes, and in which form: `Report.html` and `model_explorer` in Python.

    Attributes:
        output: Write the page to this file.
        model_explorer: Write the graphs for Model Explorer, instead of the page.
        force: Overwrite FILE.
    """

    output: Annotated[Path, Typed("file", "FILE", "--output -o")] = Path("report.html")
    model_explorer: bool = False
    force: bool = False


@verb(ReportOptions, ReportShown)
def report(options: ReportOptions, shown: ReportShown, *, output_format: OutputFormat) -> int:
    """Write one page of HTML about a run: overview, graphs, lines, kernels, decisions, times, verdicts.

    It is one file that needs no network: mail it, or put it into an issue. With RUN_B it has what changed
    between both, too. Nothing is run or measured for it: what is missing is named on it, with the command
    that adds it. With --json what the page shows is printed, and no page is written.

    RUN is a run or a graph: a path, a name, a label, or the start of one; the latest run if left out.
    """
    report = ip.report_of(options)
    if output_format == "json":
        give(report, output_format)
        return screen.warn(report.record.problems)
    text = report.model_explorer if shown.model_explorer else report.html
    screen.write_output(shown.output, text, force=shown.force)
    give(report, output_format)
    size = bytes_text(len(text.encode()))
    how = "Model Explorer" if shown.model_explorer else "a browser"
    screen.say(f"written: {screen.relative(shown.output.absolute())} ({size}): open it in {how}")
    return screen.warn(report.record.problems)


class Annotation(Struct, frozen=True):
    """How the text of a kernel is shown: `Graph.annotate` in Python.

    Attributes:
        annotate: With a kernel: its text, each line with where it comes from.
        no_line: With --annotate: no #line directives in C++.
        output: With --annotate: write to this file.
        force: Overwrite the file that -o names.
    """

    annotate: bool = False
    no_line: bool = False
    output: Annotated[Path | None, Typed("file", flags="--output -o")] = None
    force: bool = False


@verb(ShowOptions, Annotation, _words("[NAME] [RUN|GRAPH]"), arguments=False)
def show(
    options: ShowOptions, shown: Annotation, *, words: tuple[str, ...], output_format: OutputFormat
) -> int:
    """Show one page about NAME: what it is, what it belongs to, what it computes, and its remarks.

    NAME is a node (op3, op3_op4), a buffer or input (buf3, arg0_1), a kernel or the start of its name, an FX
    node (add_1), or a source line of yours (file.py:12); a page about the graph if left out.
    """
    if shown.output is not None and not shown.annotate:
        raise ProbeError("-o needs --annotate", "probe show KERNEL --annotate -o FILE")

    def query(name: str | None, target: str | None) -> ip.Pages:
        return ip.show(replace(options, name=name, target=target))

    pages = resolve(words, 1, query, question=not (options.raw or options.code))
    if shown.annotate:
        _annotate(pages, shown.output, line_directives=not shown.no_line, force=shown.force)
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
