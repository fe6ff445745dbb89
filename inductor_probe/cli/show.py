"""`probe show`: one graph, node, buffer, kernel, FX node or line on one page."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

import inductor_probe as ip
from inductor_probe.cli import screen
from inductor_probe.cli.arguments import answer
from inductor_probe.cli.completion import NAME
from inductor_probe.errors import ProbeError
from inductor_probe.model.kernels import KernelRow
from inductor_probe.report.visible import visible


@click.command()
@click.argument("words", nargs=-1, metavar="[NAME] [RUN|GRAPH]", type=NAME)
@click.option("--raw", is_flag=True, help="Loop bodies as dumped, with line numbers, instead of formulas.")
@click.option("--code", is_flag=True, help="With a kernel: its text.")
@click.option("--annotate", is_flag=True, help="With a kernel: its text, each line with where it comes from.")
@click.option("--no-line", is_flag=True, help="With --annotate: no #line directives in C++.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --annotate: write to this file.",
)
@click.option("--force", is_flag=True, help="Overwrite the file that -o names.")
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def show(
    words: tuple[str, ...],
    *,
    raw: bool,
    code: bool,
    annotate: bool,
    no_line: bool,
    output: Path | None,
    force: bool,
    json: bool,
) -> int:
    """Show the one page about NAME: what it is, what it belongs to, what it computes, and its remarks.

    NAME is a node (op3, op3_op4), a buffer or input (buf3, arg0_1), a kernel or the start of its name, an FX
    node (add_1), or a line of yours (file.py:12); a page about the graph if left out. RUN or GRAPH is a path,
    a graph's name (model__0_inference_0.0), a label, or the start of one; the latest run if left out.
    """
    if output is not None and not annotate:
        raise ProbeError("-o is for --annotate only", "probe show KERNEL --annotate -o FILE")
    pages = answer(words, 1, partial(ip.show, raw=raw, code=code))
    if annotate:
        _annotate(pages, output, line_directives=not no_line, force=force)
        return screen.warn(pages.problems)
    status = screen.give(pages, json=json)
    if pages.outline and not json:
        screen.say(f"next: probe show {_short_name(pages[0])}")
    return status


def _short_name(page: ip.Page) -> str:
    return ip.open_graph(page.graph.folder.path).short_name


def _annotate(pages: ip.Pages, output: Path | None, *, line_directives: bool, force: bool) -> None:
    kernels = [page for page in pages if isinstance(page.record, KernelRow)]
    if not kernels:
        raise ProbeError("--annotate is for kernels", "probe kernels lists them")
    if len(kernels) > 1:
        graphs = ", ".join(map(_short_name, kernels))
        raise ProbeError(f"{len(kernels)} graphs have this kernel: name one", f"one of {graphs}")
    text = kernels[0].annotated(line_directives=line_directives)
    if output is None:
        sys.stdout.write(visible(text))  # source code: no line of it may be broken
        return
    if output.exists() and not force:
        raise ProbeError(f"{output} exists already", "choose another name, or overwrite it with --force")
    from inductor_probe.files import write_whole  # noqa: PLC0415 - slow to import, and pages need no file

    write_whole(output, text)
    screen.say(f"written: {screen.relative(output)}")
