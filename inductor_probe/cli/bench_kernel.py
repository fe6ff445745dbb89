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
from inductor_probe.api.tunings import tuned_rewrites
from inductor_probe.cli.completion import KERNEL, REWRITE, TARGET
from inductor_probe.cli.quantities import Duration, Names, Share, Sizes
from inductor_probe.cli.screen import relative, say, show, show_json
from inductor_probe.cli.verdict import say_warnings
from inductor_probe.errors import ExitCode, ProbeError, VariantTextError
from inductor_probe.files import write_whole
from inductor_probe.model.bench import BenchFile, BenchKernelOutput, BenchSettings
from inductor_probe.reader.text import read_text
from inductor_probe.report.bench import VariantDiffs, bench_file_text
from inductor_probe.report.bench_settings import SettingsTable
from inductor_probe.report.words.bench import result_sentence


@click.command()
@click.argument("target", required=False, metavar="[GRAPH]", type=TARGET)
@click.option("--kernel", type=KERNEL, help="Time only this kernel and its variants.")
@click.option("--run/--no-run", default=True, help="Run the file after writing it.")
@click.option("--trust", is_flag=True, help="Run code not provably made here: read it first.")
@click.option(
    "--variant", "variants", multiple=True, metavar="NAME[=FILE]", help="Add a copy, or FILE's text."
)
@click.option(
    "--rewrite",
    "rewrites",
    multiple=True,
    type=REWRITE,
    metavar="SPEC",
    help="Add variants by a rewrite; list shows which.",
)
@click.option(
    "--tuned",
    type=click.Path(path_type=Path),
    metavar="TABLE.csv",
    help="Triton: add variants with the configs that probe tunings --csv exported.",
)
@click.option("--budget", type=Duration(), default="10s", help="Timing in all: 500ms, 10s, 2m.  [10s]")
@click.option("--margin", type=Share(), default="1%", help="What differs by less is the same.  [1%]")
@click.option("--processes", type=click.IntRange(min=3), help="Fresh processes.  [3, or 5 if they differ]")
@click.option("--cold/--warm", default=None, help="Do calls find data in a cache?  [warm; on a GPU cold]")
@click.option("--threads", type=Names(int), default="1", help="Of torch and OpenMP: 1, or 1,2.  [1]")
@click.option(
    "--inputs", type=Names(str), default="random", help="random, zeros, sequential, real.  [random]"
)
@click.option("--size", "sizes", type=Sizes(), multiple=True, help="Bind a symbolic size: s77=128.")
@click.option(
    "--import",
    "imports",
    multiple=True,
    metavar="MODULE",
    help="Import first: it registers custom operators.",
)
@click.option("--copies", is_flag=True, help="Time copies that nobody edited, too: A against A.")
@click.option("--cxxflags", default="", help="Flags behind inductor's own: '-O2 -g'.")
@click.option(
    "--configs", metavar="TEXT", help="Triton: time all configs, and XBLOCK=1,8 num_warps=4 of yours."
)
@click.option("--cpp", type=click.Path(dir_okay=False, path_type=Path), help="Write KERNEL as a C++ program.")
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def bench_kernel(
    target: str | None,
    *,
    kernel: str | None,
    run: bool,
    trust: bool,
    variants: tuple[str, ...],
    rewrites: tuple[str, ...],
    tuned: Path | None,
    budget: float,
    margin: float,
    processes: int | None,
    cold: bool | None,
    threads: tuple[int, ...],
    inputs: tuple[str, ...],
    sizes: tuple[tuple[str, int], ...],
    imports: tuple[str, ...],
    copies: bool,
    cxxflags: str,
    configs: str | None,
    cpp: Path | None,
    json: bool,
) -> int:
    """Write output_code_bench.py beside output_code.py and run it: this executes the dump's code.

    GRAPH is a graph's name (model__0_inference_0.0), the start of it, or a path; it may be left out when the
    latest run has only one. Edit the _v2 copies in the file and run this again: the edit is kept, checked,
    and timed if it is right. Start, compiling and checks come on top of the budget. All samples are written
    to output_code_bench.json: see probe verdict.
    """
    if rewrites == ("list",):
        for name, arguments, does in ip.rewrites():
            sys.stdout.write(f"{name}:{arguments}\n    {does}\n")
        return ExitCode.OK
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
    if cpp is not None:
        return _write_program(graph, settings, cpp)
    if run:  # before anything is written or said: the refusal of a stranger's dump leaves it as it is
        adding = bool(variants or rewrites or tuned)
        require_trust(graph, trust=trust, imports=imports, rewriting=True, adding=adding)
    if tuned is not None:
        rewrites += tuned_rewrites(graph, tuned)
    files = _variants(variants)
    texts = [(name, None if file is None else _text_of(name, file)) for name, file in files.items()]
    try:
        file = graph.write_bench_file(variants=texts, rewrites=rewrites)
    except VariantTextError as error:
        raise ProbeError(f"{files[error.name]}:{error.line}: {error.what}", error.hint) from error
    say(bench_file_text(file, relative(file.path)))
    if file.diffs and not json:
        show(VariantDiffs(file.diffs))
    if not run:
        if json:
            show_json(BenchKernelOutput(file=file))
        else:
            say(f"next: edit a _v2 in it, then probe bench-kernel {graph.name}")
        return ExitCode.OK
    say(f"running it: this executes the code that inductor generated for {graph.name}")
    if configs is not None:
        return _configs(graph, file, settings, configs, trust=trust, json=json)
    chosen = [
        replace(settings, inputs=kind, threads=number) for kind, number in itertools.product(inputs, threads)
    ]
    return _bench(graph, file, chosen, trust=trust, json=json)


def _bench(graph: ip.Graph, file: BenchFile, chosen: list[BenchSettings], *, trust: bool, json: bool) -> int:
    """Run the file under one setting after the other, and say how much it depends on them."""
    found = []
    for settings in chosen:
        progress = say if sys.stderr.isatty() else None
        bench = graph.run_bench_file(file, settings, trust=trust, progress=progress)
        say_warnings(bench)
        if not json:
            show(bench)
        found.append(bench)
    if json:
        results = tuple(bench.result for bench in found)
        show_json(BenchKernelOutput(file=file, results=results, summary=tuple(map(result_sentence, results))))
    elif len(found) > 1:
        show(SettingsTable([bench.result for bench in found]))
    return ExitCode.OK if all(bench.correct for bench in found) else ExitCode.MISMATCH


def _configs(
    graph: ip.Graph, file: BenchFile, settings: BenchSettings, text: str, *, trust: bool, json: bool
) -> int:
    tables = graph.time_configs(file, settings, text, trust=trust)
    if json:
        show_json(BenchKernelOutput(file=file, configs=tables))
    for table in () if json else tables:
        sys.stdout.write(f"{table['shown']}\n")
    return ExitCode.OK


def _variants(texts: tuple[str, ...]) -> dict[str, Path | None]:
    """Read `--variant`: `cpp_fused_0_v3` is a copy; `cpp_fused_0_v3=FILE` has the text of FILE."""
    files: dict[str, Path | None] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        example = "for example --variant cpp_fused_0_v2=kernel.cpp; without =FILE it is a copy to edit"
        if not name:
            raise ProbeError(f"--variant {text} has no name before the =", example)
        if equals and not path:
            raise ProbeError(f"--variant {text} has no file behind the =", example)
        if name in files:
            raise ProbeError(f"--variant {name} is there twice", "name the second one with another number")
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


def _write_program(graph: ip.Graph, settings: BenchSettings, path: Path) -> int:
    if settings.kernel is None:
        raise ProbeError("--cpp writes one kernel: name it", "--kernel NAME; probe kernels lists them")
    if path.exists():
        raise ProbeError(f"{path} is there already", "choose another name")
    program = graph.cpp_program(
        settings.kernel, path.name, sizes=dict(settings.sizes), cxxflags=settings.cxxflags
    )
    write_whole(path, program.text)
    say(f"written: {relative(path)}; compile it with")
    sys.stdout.write(f"{shlex.join(program.command)}\n")
    return ExitCode.OK
