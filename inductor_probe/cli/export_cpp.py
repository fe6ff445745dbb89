"""`probe export-cpp`: a C++ kernel as a program with its own `main`, inputs and compile command."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import click

import inductor_probe as ip
from inductor_probe.cli.arguments import answer
from inductor_probe.cli.completion import KERNEL_OR_TARGET
from inductor_probe.cli.quantities import Sizes
from inductor_probe.cli.screen import relative, say, show_json
from inductor_probe.errors import ExitCode, ProbeError
from inductor_probe.files import write_whole


@click.command()
@click.argument("words", nargs=-1, metavar="[KERNEL] [RUN|GRAPH]", type=KERNEL_OR_TARGET)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write.  [KERNEL.cpp]",
)
@click.option("--force", is_flag=True, help="Overwrite the file.")
@click.option("--size", "sizes", type=Sizes(), multiple=True, help="Bind a symbolic size: s77=128.")
@click.option("--cxxflags", default="", help="Flags behind inductor's own: '-O2 -g'.")
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def export_cpp(
    words: tuple[str, ...],
    *,
    output: Path | None,
    force: bool,
    sizes: tuple[tuple[str, int], ...],
    cxxflags: str,
    json: bool,
) -> int:
    """Write a C++ kernel as a program of its own, for perf, gdb and Compiler Explorer.

    The command that compiles it is printed; nothing of the dump is run. KERNEL is its name or the start of
    it; it may be left out when the graph has only one C++ kernel. RUN or GRAPH is a path, a graph's name, a
    label, or the start of one; the latest run if left out.
    """
    graph, kernel = answer(words, 1, ip.open_kernel)
    path = output or Path(f"{kernel}.cpp")
    if path.exists() and not force:
        raise ProbeError(
            f"{path} exists already", "choose another name with -o, or overwrite it with --force"
        )
    program = graph.export_cpp(kernel, path.name, sizes=dict(sizes), cxxflags=shlex.split(cxxflags))
    write_whole(path, program.text)
    say(f"written: {relative(path)}; compile it with")
    if json:
        show_json(replace(program.output, path=path))
    else:
        sys.stdout.write(f"{shlex.join(program.command)}\n")
    return ExitCode.OK
