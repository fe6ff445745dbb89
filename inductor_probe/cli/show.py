"""`probe show`: one graph, node, buffer, kernel, FX node or line on one page."""

from __future__ import annotations

import sys
from pathlib import Path

import click

import inductor_probe as ip
from inductor_probe.cli import screen
from inductor_probe.cli.completion import NAME, TARGET
from inductor_probe.cli.screen import is_path
from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.pages import ShowOutput
from inductor_probe.report.visible import visible


@click.command()
@click.argument("name", required=False, type=NAME)
@click.argument("target", required=False, metavar="[RUN|GRAPH]", type=TARGET)
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
    name: str | None,
    target: str | None,
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
    pages = _pages(name, target, raw=raw, code=code)
    if annotate:
        _annotate(pages, output, line_directives=not no_line, force=force)
    elif json:
        screen.show_json(ShowOutput(pages=tuple(page.shown for page in pages), problems=pages.problems))
    else:
        screen.show(pages)
        if pages.is_outline:
            screen.say(f"next: probe show {pages[0].graph.name}")
    return screen.warn(pages.problems)


def _pages(name: str | None, target: str | None, *, raw: bool, code: bool) -> ip.Pages:
    """With one argument that names nothing in the latest run, it may be the run or graph that is meant."""
    if target is None and is_path(name):
        name, target = None, name
    if name is None or target is not None:
        return ip.show(name, target, raw=raw, code=code)
    try:
        return ip.show(name, raw=raw, code=code)
    except NotFoundError as nothing:
        try:
            return ip.show(None, name, raw=raw, code=code)
        except NotFoundError:
            raise nothing from None


def _annotate(pages: ip.Pages, output: Path | None, *, line_directives: bool, force: bool) -> None:
    kernels = [page for page in pages if isinstance(page.record, KernelRow)]
    if not kernels:
        raise ProbeError("--annotate is for kernels", "probe kernels lists them")
    if len(kernels) > 1:
        graphs = ", ".join(page.graph.name for page in kernels)
        raise ProbeError(f"{len(kernels)} graphs have this kernel: name one", f"one of {graphs}")
    (page,) = kernels
    assert isinstance(page.record, KernelRow)  # noqa: S101 - filtered above, and mypy cannot tell
    text = page.graph.annotate(page.record.name, line_directives=line_directives)
    if output is None:
        sys.stdout.write(visible(text))  # source code: no line of it may be broken
        return
    if output.exists() and not force:
        raise ProbeError(f"{output} is there already", "choose another name, or overwrite it with --force")
    from inductor_probe.files import write_whole  # noqa: PLC0415 - slow to import, and pages need no file

    write_whole(output, text)
    screen.say(f"written: {screen.relative(output)}")
