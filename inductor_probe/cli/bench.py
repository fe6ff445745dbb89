"""The verbs about kernels: they write bench files and programs, run them, and judge what they measured."""

from __future__ import annotations

import re
import shlex
from functools import partial
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.api.on_disk import SAMPLES_NAME
from inductor_probe.api.verbs import graphs_with
from inductor_probe.cli.completion import WORDS
from inductor_probe.cli.parameters import first_graph, first_kernel, resolve, said_first, verb
from inductor_probe.cli.screen import (
    OutputFormat,
    give,
    give_rows,
    progress_line,
    relative,
    say,
    show,
    show_json,
    write_output,
)
from inductor_probe.errors import ExitCode
from inductor_probe.model.bench import RewriteOutput
from inductor_probe.options.kernels import (
    AsmOptions,
    BenchKernelOptions,
    CheckKernelOptions,
    ExportCppOptions,
    RewriteOptions,
    SweepConfigsOptions,
    VerdictOptions,
)
from inductor_probe.report.document import Code, Line
from inductor_probe.report.pages.bench import bench_file_lines, variant_diffs
from inductor_probe.report.shown import Shown
from inductor_probe.report.units import one_word


class Details(Struct, frozen=True):
    """How much of the answer is shown: `with_details` in Python.

    Attributes:
        details: Show overheads, roofline, samples, and diffs, too.
    """

    details: bool = False


def _show_all_options(ctx: click.Context, parameter: click.Parameter, chosen: bool) -> None:
    if chosen:
        for option in ctx.command.params:
            if isinstance(option, click.Option):
                option.hidden = False
        click.echo(ctx.get_help())
        ctx.exit()


_HELP_ALL = click.Option(
    ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_show_all_options,
    help="Show 11 more options: inputs, threads, processes, ...",
)  # fmt: skip


@verb(
    BenchKernelOptions,
    Details,
    _HELP_ALL,
    epilog="See also: probe rewrite, probe sweep-configs, probe export-cpp, probe verdict.",
)
def bench_kernel(options: BenchKernelOptions, shown: Details, *, output_format: OutputFormat) -> int:
    """Write output_code_bench.py and run it: this executes the dump's code.

    Edit the _v2 copies and run this again: they are checked, and timed if they are right. All samples are
    written to output_code_bench.json.
    """
    graph, kernel = first_graph(options.kernel, options.target)
    shown_before = 0

    def show_bench(bench: Shown) -> None:
        nonlocal shown_before
        if output_format != "json" and isinstance(bench, ip.Bench):
            between = [Line()] if shown_before else []
            show([*between, *bench.with_details(shown.details).document], output_format)
            shown_before += 1

    with progress_line(show_bench) as progress:
        answer = ip.bench_kernel(replace(options, target=graph, kernel=kernel), progress=progress)
    if output_format == "json":
        show_json(answer.output)
    elif options.run:
        show(answer.conclusion, output_format)
    else:
        show(variant_diffs(answer.file.diffs), output_format)
    for step in answer.next if output_format != "json" or not options.run else ():
        say(f"next: {step}")
    return ExitCode.OK if answer.correct else ExitCode.MISMATCH


_SPEC = re.compile(r"\w+(@v\d+)?:(?!\d+$)[^/]+", re.DOTALL)
"""`loops:cpp_fused_0 x1,x2` is one; `gpt_block:1` is a graph."""


def _words(metavar: str, kind: str) -> click.Argument:
    return click.Argument(["words"], nargs=-1, metavar=metavar, type=WORDS[kind])


@verb(RewriteOptions, None, _words("[GRAPH] [SPEC]...", "rewrite"), arguments=False)
def rewrite(options: RewriteOptions, *, words: tuple[str, ...], output_format: OutputFormat) -> int:
    """List the rewrites with what they apply to in a graph; with SPEC, add variants to its bench file.

    A SPEC is one that the list shows, for example 'loops:cpp_fused_add_0 x1,x2'; NAME@v3:... rewrites the
    variants _v3. A rewrite changes every place that depends on it, or is refused with the line. Nothing is
    run: probe bench-kernel checks and times what is in the file.
    """
    specs = [word for word in words if _SPEC.fullmatch(word)]
    targets = [word for word in words if word not in specs]
    if len(targets) > 1:
        raise click.UsageError(
            f"expected one graph, not {' and '.join(targets)}; a SPEC is REWRITE:ARGUMENTS"
        )
    target = targets[0] if targets else None
    if not specs and options.tuned is None:
        status = give_rows(ip.rewrites(target), output_format)
        if output_format != "json":
            rewrite = one_word(f"probe rewrite {graphs_with(None, target)[0].short_name} SPEC")
            say(f"next: {rewrite} adds its variants to the bench file")
        return status
    graph, _ = first_graph(None, target)
    file = ip.rewrite(replace(options, specs=specs, target=graph))
    for line in bench_file_lines(file, relative(file.path)):
        say(line.text)
    if output_format == "json":
        show_json(RewriteOutput(file=file))
    else:
        show(variant_diffs(file.diffs), output_format)
    say(f"next: {one_word(f'probe bench-kernel {graph.short_name}')}")
    return ExitCode.OK


@verb(CheckKernelOptions, None, _words("[KERNEL] [RUN|GRAPH]", "kernel or graph"), arguments=False)
def check_kernel(options: CheckKernelOptions, *, words: tuple[str, ...], output_format: OutputFormat) -> int:
    """Check the Triton kernels of a graph, and your _v2 of them, on the CPU: no GPU is needed.

    Triton's interpreter runs them with the launch arguments of the wrapper; library calls run in eager. What
    comes out is compared with the graph in float64, and each address with the memory of its argument. This
    executes the dump's code, in a process of its own. KERNEL is its name or the start of it: of the variants
    only its own are checked. Exit status 1 if something is wrong, or could not be run.
    """
    graph, kernel = resolve(words, 1, first_graph)
    with progress_line() as progress:
        checked = ip.check_kernel(replace(options, kernel=kernel, target=graph), progress=progress)
    return give(checked, output_format, ok=checked.right)


_CONFIGS = re.compile(r"\s*\w+\s*=.*", re.DOTALL)
"""`XBLOCK=1,8 num_warps=4`: neither a kernel nor a graph."""


@verb(
    SweepConfigsOptions,
    None,
    _words("[KERNEL] [RUN|GRAPH] [TEXT]...", "kernel or graph"),
    arguments=False,
)
def sweep_configs(
    options: SweepConfigsOptions, *, words: tuple[str, ...], output_format: OutputFormat
) -> int:
    """Check and time every config that inductor tries for a Triton kernel: this executes the dump's code.

    KERNEL is its name or the start of it; every Triton kernel of the graph if left out. TEXT adds configs of
    yours: XBLOCK=1,8 num_warps=4,8 adds each combination.
    """
    text = " ".join(word for word in words if _CONFIGS.fullmatch(word))
    names = [word for word in words if not _CONFIGS.fullmatch(word)]
    graph, kernel = resolve(names, 1, first_graph)
    with progress_line() as progress:
        options = replace(options, kernel=kernel, target=graph, text=text)
        return give_rows(ip.sweep_configs(options, progress=progress), output_format)


class Force(Struct, frozen=True):
    """Whether a file may be written over.

    Attributes:
        force: Overwrite the file.
    """

    force: bool = False


@verb(ExportCppOptions, Force, _words("[KERNEL] [RUN|GRAPH]", "kernel or graph"), arguments=False)
def export_cpp(
    options: ExportCppOptions, do: Force, *, words: tuple[str, ...], output_format: OutputFormat
) -> int:
    """Write a C++ kernel as a program of its own, for perf, gdb and Compiler Explorer.

    The command that compiles it is printed; nothing of the dump is run. KERNEL is its name or the start of
    it; it may be left out when the graph has only one C++ kernel.
    """
    graph, kernel = resolve(words, 1, first_kernel)
    path = options.output or Path(f"{kernel}.cpp")
    program = ip.export_cpp(replace(options, kernel=kernel, target=graph, output=path))
    write_output(path, program.text, force=do.force)
    say(f"written: {relative(path)}; compile it with")
    if output_format == "json":
        show_json(replace(program.output, path=path))
    else:
        show([Code(shlex.join(program.command), "sh")], output_format)
    return ExitCode.OK


@verb(AsmOptions, None, _words("[KERNEL [B]] [RUN|GRAPH]", "kernel or graph"), arguments=False)
def asm(options: AsmOptions, *, words: tuple[str, ...], output_format: OutputFormat) -> int:
    """Compile a kernel, and show what it became: Triton's for a GPU that need not be there, C++ as here.

    Of C++, the innermost loops with their instructions by the width of their vectors, and what the compiler's
    own vectoriser says of them (inductor turns GCC's off); --stage asm prints the machine code. Of Triton,
    registers, stack, shared memory and occupancy of each config, how many bits each access to global memory
    moves, and how the threads of a warp reach it, by lines of output_code.py; --stage prints TTIR, TTGIR,
    LLVM IR, PTX or machine code (SASS).
    This imports the text of a Triton kernel in a process of its own; nothing is launched.

    With a second kernel, or a variant in the bench file (KERNEL_v2), what differs: figures, and of each
    --stage the lines, where names of registers count as the same. --against takes it from another run, by the
    name of the first one if B is left out.
    """
    query = partial(ip.find_kernels, against=options.against, choose=first_kernel)
    (graph, kernel), *others = resolve(words, 2, query)
    other = others[0] if others else None
    with progress_line() as progress:
        options = replace(options, kernel=kernel, target=graph, other=other, against=None)
        compiled = ip.asm(options, progress=progress)
    ok = all(
        config.failure is None for config in compiled.record.kernels[0].configs if config.origin != "grid"
    )
    return give(compiled, output_format, ok=ok)


@verb(VerdictOptions, Details)
def verdict(options: VerdictOptions, shown: Details, *, output_format: OutputFormat) -> int:
    """Make the report of bench-kernel again from its samples, with the same statistics; nothing is run.

    FILE.json is output_code_bench.json, or the folder that it is in; GRAPH names a graph as for bench-kernel,
    of a run the first that was measured. Exit status 1 if a variant was wrong.
    """
    target = options.target
    if target is None or not (Path(target).is_file() or Path(target, SAMPLES_NAME).is_file()):
        graphs = graphs_with(None, target)
        measured = [graph for graph in graphs if (graph.path / SAMPLES_NAME).is_file()]
        target = said_first(measured or graphs, " that were measured" if measured else "").path
    bench = ip.verdict(replace(options, target=target)).with_details(shown.details)
    return give(bench, output_format, ok=bench.correct)
