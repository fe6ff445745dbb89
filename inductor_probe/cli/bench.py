"""The verbs about time: they write bench files and programs, run them, and judge what they measured."""

from __future__ import annotations

import itertools
import re
import shlex
from functools import partial
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.api.kernel_check import LIMIT_S, check_graph
from inductor_probe.api.on_disk import SAMPLES_NAME
from inductor_probe.api.trust import lacks_gpu, require_trust
from inductor_probe.api.verbs import graphs_with
from inductor_probe.cli.completion import KERNEL, KERNEL_OR_TARGET, REWRITE, TARGET, VARIANT
from inductor_probe.cli.parameters import (
    CommaList,
    command,
    first_graph,
    first_kernel,
    resolve,
    said_first,
    seconds,
    shared_option,
)
from inductor_probe.cli.screen import (
    OutputFormat,
    give,
    give_rows,
    progress_line,
    relative,
    say,
    say_duration,
    show,
    show_json,
    write_output,
)
from inductor_probe.errors import ExitCode, ProbeError, VariantTextError
from inductor_probe.files import read_text
from inductor_probe.model.assembly import OF_CPP, STAGES
from inductor_probe.model.bench import INPUTS, BenchFile, BenchKernelOutput, BenchSettings, RewriteOutput
from inductor_probe.report.document import Code, Line
from inductor_probe.report.pages.bench import bench_file_lines, settings_table, variant_diffs
from inductor_probe.report.pages.kernel_check import kernel_check_page
from inductor_probe.report.units import one_word
from inductor_probe.report.words.bench import next_steps, result_sentence
from inductor_probe.report.words.kernel_check import summary

_DETAILS = "Show overheads, roofline, samples, and diffs, too."
_WHERE_DATA_IS = "Do calls read their data from memory or from a cache?"


def _show_all_options(ctx: click.Context, parameter: click.Parameter, chosen: bool) -> None:
    if chosen:
        for option in ctx.command.params:
            if isinstance(option, click.Option):
                option.hidden = False
        click.echo(ctx.get_help())
        ctx.exit()


@command(
    click.argument("target", required=False, metavar="[GRAPH]", type=TARGET),
    click.option("--kernel", type=KERNEL, help="Time only this kernel and its variants."),
    shared_option("--budget", help="Measuring in all: 500ms, 10s, 2m.  [10s]"),
    click.option("--no-run", is_flag=True, help="Only write the file."),
    click.option("--details", is_flag=True, help=_DETAILS),
    shared_option("--trust"),
    click.option(
        "--help-all", is_flag=True, is_eager=True, expose_value=False, callback=_show_all_options,
        help="Show 11 more options: inputs, threads, processes, ...",
    ),
    click.option(
        "--variant", "variants", multiple=True, hidden=True, type=VARIANT, metavar="NAME[=FILE]",
        help="Add a copy of a kernel, or FILE's text.",
    ),
    click.option(
        "--copies", is_flag=True, hidden=True, help="Time unedited copies, too: A against A."
    ),
    shared_option("--margin", default="1%", hidden=True, help="A smaller difference counts as none.  [1%]"),
    click.option(
        "--processes", type=click.IntRange(min=3), hidden=True,
        help="Fresh processes.  [3, and up to 9 if they differ]",
    ),
    shared_option("--cold/--warm", hidden=True, help=f"{_WHERE_DATA_IS}  [warm; on a GPU cold]"),
    click.option(
        "--threads", type=CommaList(), hidden=True,
        help="Of torch and OpenMP: 1, or 1,2.  [1; of the script's call those that it has]",
    ),
    click.option(
        "--inputs", type=CommaList(INPUTS), default="random", hidden=True,
        help="random, zeros, sequential, real.  [random]",
    ),
    click.option(
        "--no-script", "own", is_flag=True, flag_value=False, default=True, hidden=True,
        help="Do not run the script again to time its call against eager.",
    ),
    shared_option("--size", "sizes", hidden=True),
    shared_option("--import", "imports", hidden=True),
    shared_option("--cxxflags", hidden=True),
    epilog="See also: probe rewrite, probe sweep-configs, probe export-cpp, probe verdict.",
)  # fmt: skip
def bench_kernel(
    target: str | None,
    *,
    no_run: bool,
    details: bool,
    trust: bool,
    variants: tuple[str, ...],
    threads: tuple[int, ...] | None,
    inputs: tuple[str, ...],
    output_format: OutputFormat,
    **options: Any,
) -> int:
    """Write output_code_bench.py and run it: this executes the dump's code.

    Edit the _v2 copies and run this again: they are checked, and timed if they are right. All samples are
    written to output_code_bench.json.
    """
    graph, options["kernel"] = first_graph(options["kernel"], target)
    settings = BenchSettings(**options)
    counts = threads or (1,)
    untimed = not no_run and lacks_gpu(graph)
    if not no_run:  # before anything is written or said: the refusal of a stranger's dump leaves it as it is
        require_trust(
            graph,
            trust=trust,
            imports=settings.imports,
            rewriting=True,
            adding=bool(variants),
            launched=not untimed,
        )
    files = _variant_files(variants)
    texts = [(name, None if file is None else _variant_text(name, file)) for name, file in files.items()]
    try:
        file = graph.write_bench_file(variants=texts)
    except VariantTextError as error:
        raise ProbeError(f"{files[error.name]}:{error.line}: {error.what}", error.hint) from error
    _show_written(file, "json" if not no_run else output_format)  # a report shows the variants below it
    if no_run and output_format == "json":
        show_json(file.output)
    elif not no_run:
        say(f"running it: this executes the code that inductor generated for {graph.name}")
        times = 1 if untimed else len(inputs) * len(counts)
        say_duration([graph], settings, times)
        if untimed:
            settings = replace(settings, inputs=inputs[0], threads=counts[0])
            return _check_untimed(graph, file, settings, output_format, trust=trust)
        runs = [
            replace(settings, inputs=values, threads=number, own_threads=number if threads else None)
            for values, number in itertools.product(inputs, counts)
        ]
        return _bench(graph, file, runs, output_format, trust=trust, details=details)
    name = graph.short_name
    if first := next((f"{kernel}_v2" for kernel in file.kernels), None):
        place = _places(file.path).get(first)
        where = f"{first} ({place})" if place else first
        say(f"next: edit {where}, then {one_word(f'probe bench-kernel {name}')}")
    say(f"next: {one_word(f'probe rewrite {name}')} lists variants that need not be written by hand")
    return ExitCode.OK


def _check_untimed(
    graph: ip.Graph, file: BenchFile, settings: BenchSettings, output_format: OutputFormat, *, trust: bool
) -> ExitCode:
    """Check the file by triton's interpreter, as there is no GPU to time it on."""
    with progress_line() as progress:
        checked = check_graph(graph, file, settings, limit=LIMIT_S, trust=trust, progress=progress)
    if output_format == "json":
        words = (summary(checked.record),)
        show_json(BenchKernelOutput(file=file, check=checked.record, summary=words))
    else:
        show(kernel_check_page(checked.record, timed=False), output_format)
    return ExitCode.OK if checked.right else ExitCode.MISMATCH


_DEFINITION = re.compile(r"^(?:def )?(\w+_v\d+)(?: = |\()", re.MULTILINE)


def _places(path: Path) -> dict[str, str]:
    """Return where each variant of a bench file is defined: `output_code_bench.py:97`."""
    text = read_text(path)
    return {
        match[1]: f"{path.name}:{text.count(chr(10), 0, match.start()) + 1}"
        for match in _DEFINITION.finditer(text)
    }


def _bench(
    graph: ip.Graph,
    file: BenchFile,
    runs: list[BenchSettings],
    output_format: OutputFormat,
    *,
    trust: bool,
    details: bool,
) -> ExitCode:
    """Run the file under one setting after the other, and say how much it depends on them."""
    benches = []
    for number, settings in enumerate(runs):
        if number and output_format != "json":
            show([Line()], output_format)
        with progress_line() as progress:
            bench = graph.run_bench_file(file, settings, trust=trust, progress=progress)
        bench = bench.with_details(details)
        if output_format != "json":
            show(bench.document, output_format)
        benches.append(bench)
    results = tuple(bench.result for bench in benches)
    if output_format == "json":
        show_json(BenchKernelOutput(file=file, results=results, summary=tuple(map(result_sentence, results))))
    elif len(benches) > 1:
        show([Line(), *settings_table(results)], output_format)
    if output_format != "json":
        for step in next_steps(results[0], graph.short_name, _places(file.path), runs[0].budget):
            say(f"next: {step}")
    return ExitCode.OK if all(bench.correct for bench in benches) else ExitCode.MISMATCH


def _show_written(file: ip.WrittenBenchFile, output_format: OutputFormat) -> None:
    """Say what happened to a bench file, and show how its variants differ from what they are copies of."""
    for line in bench_file_lines(file, relative(file.path)):
        say(line.text)
    if file.diffs and output_format != "json":
        show(variant_diffs(file.diffs), output_format)


def _variant_files(texts: tuple[str, ...]) -> dict[str, Path | None]:
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


def _variant_text(name: str, file: Path) -> str:
    try:
        return read_text(file)
    except ProbeError as error:
        hint = (
            "give a file with the kernel's source, or with NAME = async_compile... as output_code.py has it"
        )
        raise type(error)(f"--variant {name}: {error.message}", hint) from error


_SPEC = re.compile(r"\w+(@v\d+)?:(?!\d+$)[^/]+", re.DOTALL)
"""`loops:cpp_fused_0 x1,x2` is one; `gpt_block:1` is a graph."""


@command(
    click.argument("words", nargs=-1, metavar="[GRAPH] [SPEC]...", type=REWRITE),
    click.option(
        "--tuned",
        type=click.Path(path_type=Path),
        metavar="TABLE.csv",
        help="Triton: add variants with the configs that probe tunings --csv exported.",
    ),
)
def rewrite(words: tuple[str, ...], *, tuned: Path | None, output_format: OutputFormat) -> int:
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
    if not specs and tuned is None:
        status = give_rows(ip.rewrites(target), output_format)
        if output_format != "json":
            rewrite = one_word(f"probe rewrite {graphs_with(None, target)[0].short_name} SPEC")
            say(f"next: {rewrite} adds its variants to the bench file")
        return status
    graph, _ = first_graph(None, target)
    file = ip.rewrite(*specs, target=graph.path, tuned=tuned)
    _show_written(file, output_format)
    if output_format == "json":
        show_json(RewriteOutput(file=file))
    say(f"next: {one_word(f'probe bench-kernel {graph.short_name}')}")
    return ExitCode.OK


@command(
    click.argument("words", nargs=-1, metavar="[KERNEL] [RUN|GRAPH]", type=KERNEL_OR_TARGET),
    click.option(
        "--time-limit",
        "limit_s",
        type=seconds,
        default="2m",
        metavar="TIME",
        help="For one run of the call: 30s, 5m.  [2m]",
    ),
    click.option(
        "--inputs", type=click.Choice(INPUTS), default="random", help="Values of the inputs.  [random]"
    ),
    shared_option("--size", "sizes"),
    shared_option("--import", "imports"),
    shared_option("--trust"),
)
def check_kernel(
    words: tuple[str, ...], *, limit_s: float, trust: bool, output_format: OutputFormat, **options: Any
) -> int:
    """Check the Triton kernels of a graph, and your _v2 of them, on the CPU: no GPU is needed.

    Triton's interpreter runs them with the launch arguments of the wrapper; library calls run in eager. What
    comes out is compared with the graph in float64, and each address with the memory of its argument. This
    executes the dump's code, in a process of its own. KERNEL is its name or the start of it: of the variants
    only its own are checked. Exit status 1 if something is wrong, or could not be run.
    """
    graph, kernel = resolve(words, 1, first_graph)
    settings = BenchSettings(kernel=kernel, **options)
    with progress_line() as progress:
        checked = graph.check_kernel(settings, limit=limit_s, trust=trust, progress=progress)
    return give(checked, output_format, ok=checked.right)


_CONFIGS = re.compile(r"\s*\w+\s*=.*", re.DOTALL)
"""`XBLOCK=1,8 num_warps=4`: neither a kernel nor a graph."""


@command(
    click.argument("words", nargs=-1, metavar="[KERNEL] [RUN|GRAPH] [TEXT]...", type=KERNEL_OR_TARGET),
    shared_option("--budget", help="Timing of each kernel: 500ms, 10s, 2m.  [10s]"),
    shared_option("--cold/--warm", help=f"{_WHERE_DATA_IS}  [cold]"),
    shared_option("--size", "sizes"),
    shared_option("--import", "imports"),
    shared_option("--trust"),
)
def sweep_configs(words: tuple[str, ...], *, trust: bool, output_format: OutputFormat, **options: Any) -> int:
    """Check and time every config that inductor tries for a Triton kernel: this executes the dump's code.

    KERNEL is its name or the start of it; every Triton kernel of the graph if left out. TEXT adds configs of
    yours: XBLOCK=1,8 num_warps=4,8 adds each combination.
    """
    text = " ".join(word for word in words if _CONFIGS.fullmatch(word))
    names = [word for word in words if not _CONFIGS.fullmatch(word)]
    graph, kernel = resolve(names, 1, first_graph)
    settings = BenchSettings(kernel=kernel, **options)
    require_trust(graph, trust=trust, imports=settings.imports, rewriting=True)  # before anything is said
    say(f"running the kernels: this executes the code that inductor generated for {graph.name}")
    return give_rows(graph.sweep_configs(settings, text, trust=trust), output_format)


@command(
    click.argument("words", nargs=-1, metavar="[KERNEL] [RUN|GRAPH]", type=KERNEL_OR_TARGET),
    shared_option("--output", "-o", help="The file to write.  [KERNEL.cpp]"),
    click.option("--force", is_flag=True, help="Overwrite the file."),
    shared_option("--size", "sizes"),
    shared_option("--cxxflags"),
)
def export_cpp(
    words: tuple[str, ...],
    *,
    output: Path | None,
    force: bool,
    sizes: tuple[tuple[str, int], ...],
    cxxflags: tuple[str, ...],
    output_format: OutputFormat,
) -> int:
    """Write a C++ kernel as a program of its own, for perf, gdb and Compiler Explorer.

    The command that compiles it is printed; nothing of the dump is run. KERNEL is its name or the start of
    it; it may be left out when the graph has only one C++ kernel.
    """
    graph, kernel = resolve(words, 1, first_kernel)
    path = output or Path(f"{kernel}.cpp")
    program = graph.export_cpp(kernel, path.name, sizes=dict(sizes), cxxflags=cxxflags)
    write_output(path, program.text, force=force)
    say(f"written: {relative(path)}; compile it with")
    if output_format == "json":
        show_json(replace(program.output, path=path))
    else:
        show([Code(shlex.join(program.command), "sh")], output_format)
    return ExitCode.OK


@command(
    click.argument("words", nargs=-1, metavar="[KERNEL [B]] [RUN|GRAPH]", type=KERNEL_OR_TARGET),
    click.option("--against", metavar="RUN|GRAPH", help="Take the second kernel from there."),
    click.option("--arch", metavar="sm_90|h200", help="For which GPU.  [what the dump was made for]"),
    click.option(
        "--config", "configs", multiple=True, metavar="NAME=N,...",
        help="Instead of inductor's: XBLOCK=1024,num_warps=4; XBLOCK=512,1024 is both. Repeatable.",
    ),
    click.option(
        "--sweep", is_flag=True,
        help="Triton: what inductor tries, what the dump recorded, and a grid of configs around them.",
    ),
    click.option(
        "--stage", "stages", multiple=True, type=click.Choice([*STAGES, OF_CPP]),
        help="Print this text, too: of the first config; asm of a C++ kernel.",
    ),
    shared_option("--trust"),
)  # fmt: skip
def asm(
    words: tuple[str, ...],
    *,
    against: str | None,
    arch: str | None,
    configs: tuple[str, ...],
    stages: tuple[str, ...],
    sweep: bool,
    trust: bool,
    output_format: OutputFormat,
) -> int:
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
    query = partial(ip.find_kernels, against=against, choose=first_kernel)
    (graph, kernel), *others = resolve(words, 2, query)
    other = others[0] if others else None
    with progress_line() as progress:
        compiled = ip.asm(
            kernel, graph, arch=arch, configs=configs, stages=stages, sweep=sweep, other=other, trust=trust,
            progress=progress,
        )  # fmt: skip
    ok = all(
        config.failure is None for config in compiled.record.kernels[0].configs if config.origin != "grid"
    )
    return give(compiled, output_format, ok=ok)


@command(
    click.argument("target", required=False, metavar="[FILE.json|GRAPH]", type=TARGET),
    shared_option("--margin", help="A smaller difference counts as none; as when measured if left out."),
    click.option("--details", is_flag=True, help=_DETAILS),
)
def verdict(target: str | None, *, margin: float | None, details: bool, output_format: OutputFormat) -> int:
    """Make the report of bench-kernel again from its samples, with the same statistics; nothing is run.

    FILE.json is output_code_bench.json, or the folder that it is in; GRAPH names a graph as for bench-kernel,
    of a run the first that was measured. Exit status 1 if a variant was wrong.
    """
    if target is None or not (Path(target).is_file() or Path(target, SAMPLES_NAME).is_file()):
        graphs = graphs_with(None, target)
        measured = [graph for graph in graphs if (graph.path / SAMPLES_NAME).is_file()]
        target = str(said_first(measured or graphs, " that were measured" if measured else "").path)
    bench = ip.verdict(target, margin=margin).with_details(details)
    return give(bench, output_format, ok=bench.correct)
