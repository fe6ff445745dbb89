"""`probe bench-kernel`: a standalone bench file for a graph, and what running it says."""

from __future__ import annotations

import itertools
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import click

import inductor_probe as ip
from inductor_probe.api.trust import require_trust
from inductor_probe.cli.completion import KERNEL, MODULE, TARGET, VARIANT
from inductor_probe.cli.quantities import Duration, Names, Share, Sizes
from inductor_probe.cli.screen import relative, say, show, show_json
from inductor_probe.cli.verdict import say_warnings
from inductor_probe.errors import ExitCode, ProbeError, VariantTextError
from inductor_probe.files import read_text
from inductor_probe.model.bench import INPUTS, BenchFile, BenchKernelOutput, BenchSettings
from inductor_probe.report.bench import VariantDiffs, bench_file_text
from inductor_probe.report.bench_settings import SettingsTable
from inductor_probe.report.words.bench import result_sentence


def _show_all(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        for option in ctx.command.params:
            if isinstance(option, click.Option):
                option.hidden = False
        click.echo(ctx.get_help())
        ctx.exit()


@click.command(epilog="See also: probe rewrite, probe sweep-configs, probe export-cpp, probe verdict.")
@click.argument("target", required=False, metavar="[GRAPH]", type=TARGET)
@click.option("--kernel", type=KERNEL, help="Time only this kernel and its variants.")
@click.option("--budget", type=Duration(), default="10s", help="Timing in all: 500ms, 10s, 2m.  [10s]")
@click.option("--no-run", is_flag=True, help="Only write the file.")
@click.option("--trust", is_flag=True, help="Run code not provably made here: read it first.")
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
@click.option(
    "--help-all",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Show 10 more options: inputs, threads, processes, ...",
)
@click.option(
    "--variant",
    "variants",
    multiple=True,
    hidden=True,
    type=VARIANT,
    metavar="NAME[=FILE]",
    help="Add a copy of a kernel, or FILE's text.",
)
@click.option("--copies", is_flag=True, hidden=True, help="Time copies that nobody edited, too: A against A.")
@click.option(
    "--margin", type=Share(), default="1%", hidden=True, help="A smaller difference counts as none.  [1%]"
)
@click.option(
    "--processes",
    type=click.IntRange(min=3),
    hidden=True,
    help="Fresh processes.  [3, or 5 if they differ]",
)
@click.option(
    "--cold/--warm",
    default=None,
    hidden=True,
    help="Do calls read their data from memory or from a cache?  [warm; on a GPU cold]",
)
@click.option(
    "--threads", type=Names(int), default="1", hidden=True, help="Of torch and OpenMP: 1, or 1,2.  [1]"
)
@click.option(
    "--inputs",
    type=Names(str, INPUTS),
    default="random",
    hidden=True,
    help="random, zeros, sequential, real.  [random]",
)
@click.option(
    "--size", "sizes", type=Sizes(), multiple=True, hidden=True, help="Bind a symbolic size: s77=128."
)
@click.option(
    "--import",
    "imports",
    multiple=True,
    hidden=True,
    type=MODULE,
    metavar="MODULE",
    help="Import first: it registers custom operators.",
)
@click.option("--cxxflags", default="", hidden=True, help="Flags behind inductor's own: '-O2 -g'.")
def bench_kernel(
    target: str | None,
    *,
    kernel: str | None,
    budget: float,
    no_run: bool,
    trust: bool,
    json: bool,
    variants: tuple[str, ...],
    copies: bool,
    margin: float,
    processes: int | None,
    cold: bool | None,
    threads: tuple[int, ...],
    inputs: tuple[str, ...],
    sizes: tuple[tuple[str, int], ...],
    imports: tuple[str, ...],
    cxxflags: str,
) -> int:
    """Write output_code_bench.py beside output_code.py and run it: this executes the dump's code.

    GRAPH is a graph's name (model__0_inference_0.0), the start of it, or a path; it may be left out when the
    latest run has only one. Edit the _v2 copies in the file and run this again: the edit stays, is checked,
    and timed if it is right. All samples are written to output_code_bench.json.
    """
    graph = ip.open_graph(target)
    settings = BenchSettings(
        kernel=kernel,
        budget=budget,
        margin=margin,
        processes=processes,
        cold=cold,
        sizes=sizes,
        cxxflags=tuple(shlex.split(cxxflags)),
        copies=copies,
        imports=imports,
    )
    if not no_run:  # before anything is written or said: the refusal of a stranger's dump leaves it as it is
        require_trust(graph, trust=trust, imports=imports, rewriting=True, adding=bool(variants))
    files = _variants(variants)
    texts = [(name, None if file is None else _text_of(name, file)) for name, file in files.items()]
    try:
        file = graph.write_bench_file(variants=texts)
    except VariantTextError as error:
        raise ProbeError(f"{files[error.name]}:{error.line}: {error.what}", error.hint) from error
    say_written(file, json=json)
    if no_run:
        if json:
            show_json(file.output)
        _say_next(graph)
        return ExitCode.OK
    say(f"running it: this executes the code that inductor generated for {graph.name}")
    combinations = itertools.product(inputs, threads)
    runs = [replace(settings, inputs=values, threads=number) for values, number in combinations]
    status = _bench(graph, file, runs, trust=trust, json=json)
    if not json:
        _say_next(graph)
    return status


def say_written(file: ip.WrittenBenchFile, *, json: bool) -> None:
    """Say what happened to a bench file, and show how its variants differ from what they are copies of."""
    say(bench_file_text(file, relative(file.path)))
    if file.diffs and not json:
        show(VariantDiffs(file.diffs))


def _say_next(graph: ip.Graph) -> None:
    name = graph.short_name
    say(f"next: edit a _v2 in it, then probe bench-kernel {name}")
    say(f"next: probe rewrite {name} lists variants that need not be written by hand")


def _bench(graph: ip.Graph, file: BenchFile, runs: list[BenchSettings], *, trust: bool, json: bool) -> int:
    """Run the file under one setting after the other, and say how much it depends on them."""
    benches = []
    for settings in runs:
        progress = say if sys.stderr.isatty() else None
        bench = graph.run_bench_file(file, settings, trust=trust, progress=progress)
        say_warnings(bench)
        if not json:
            show(bench)
        benches.append(bench)
    if json:
        results = tuple(bench.result for bench in benches)
        show_json(BenchKernelOutput(file=file, results=results, summary=tuple(map(result_sentence, results))))
    elif len(benches) > 1:
        show(SettingsTable([bench.result for bench in benches]))
    return ExitCode.OK if all(bench.correct for bench in benches) else ExitCode.MISMATCH


def _variants(texts: tuple[str, ...]) -> dict[str, Path | None]:
    """Read `--variant`: `cpp_fused_0_v3` is a copy; `cpp_fused_0_v3=FILE` has the text of FILE."""
    files: dict[str, Path | None] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        example = "for example --variant cpp_fused_0_v2=kernel.cpp; without =FILE it is a copy to edit"
        if not name:
            raise ProbeError(f"--variant {text} has no name before =", example)
        if equals and not path:
            raise ProbeError(f"--variant {text} has no file after =", example)
        if name in files:
            raise ProbeError(f"--variant {name} is given twice", "name the second one with another number")
        files[name] = Path(path) if equals else None
    return files


def _text_of(name: str, file: Path) -> str:
    try:
        return read_text(file)
    except ProbeError as error:
        hint = (
            "give a file with the kernel's source, or with NAME = async_compile... as output_code.py has it"
        )
        raise type(error)(f"--variant {name}: {error.message}", hint) from error
