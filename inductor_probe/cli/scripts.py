"""The verbs that run a script, `dump` and `debug`: its cases and knobs, and the report of the run it left."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from click.core import ParameterSource
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.api.compile_time import compile_summary_of
from inductor_probe.cli.parameters import verb
from inductor_probe.cli.screen import OutputFormat, complain, give, progress_line, relative, say, say_warning
from inductor_probe.discovery.dump_processes import process_name, process_of
from inductor_probe.errors import ExitCode, ProbeError, RunFailedError
from inductor_probe.model.manifest import Manifest, ScriptForm
from inductor_probe.model.runs import NextStep, RunSummary
from inductor_probe.options.programs import DebugOptions, DumpOptions
from inductor_probe.report.pages.compile_time import summary_sentence
from inductor_probe.report.pages.runs import next_step
from inductor_probe.report.units import one_word
from inductor_probe.report.words.flips import flip_texts
from inductor_probe.report.words.runs import how_it_ended


class DumpCommand(click.Command):
    """A verb that takes a script with its arguments behind `--`, or `-m MODULE ...`, or `-- COMMAND ...`.

    What stands behind the module or the command is theirs, options too, as with `python -m`.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Tell apart which of the three it is: the function gets that as `form`."""
        form, own, theirs = self._parts(args)
        if form != "script":
            what = "MODULE" if form == "module" else "COMMAND"
            if form == "module" and theirs[1:2] == ["--"]:
                del theirs[1]
            if not theirs and not ctx.resilient_parsing:
                raise click.UsageError(f"{'-m' if form == 'module' else '--'} needs a {what} behind it", ctx)
            args = [*own, "--", *theirs]
        rest = super().parse_args(ctx, args)
        ctx.params["form"] = form
        ctx.set_parameter_source("form", ParameterSource.COMMANDLINE)
        return rest

    def _parts(self, args: list[str]) -> tuple[ScriptForm, list[str], list[str]]:
        options = [param for param in self.params if isinstance(param, click.Option) and not param.is_flag]
        with_value = {name for option in options for name in option.opts}
        place = 0
        while place < len(args) and args[place].startswith("-"):
            if args[place] in ("-m", "--"):
                form: ScriptForm = "module" if args[place] == "-m" else "command"
                return form, args[:place], args[place + 1 :]
            place += 2 if args[place] in with_value else 1
        return "script", args, []


_MODULE = click.Option(
    ["module", "-m"], metavar="MODULE [ARGS]", expose_value=False,
    help="Run a module as python -m does, in place of SCRIPT.",
)  # fmt: skip


@verb(DumpOptions, None, _MODULE, cls=DumpCommand)
def dump(options: DumpOptions, *, output_format: OutputFormat) -> int:
    """Run SCRIPT with its own empty inductor caches and dump every graph that inductor compiles.

    SCRIPT is any Python script that calls torch.compile: a path, or the bare name of one here or in the
    project's scenarios. Its own arguments follow after --. A command is dumped as

    \b
      probe dump [OPTIONS] -- torchrun --nproc-per-node 2 train.py
      probe dump [OPTIONS] -m pytest tests/test_model.py

    Processes that it starts, or forks, are followed: each that compiles has a run, and the runs are one dump.
    """
    if sys.stderr.isatty():
        say(f"running {options.script} with empty caches: every kernel is compiled again")
    options = replace(options, stdout_to_stderr=output_format == "json")
    with _signals_left_to_the_dump():
        return _show_run(ip.dump(options), output_format)


@verb(DebugOptions, context_settings={"max_content_width": 80})
def debug(options: DebugOptions, *, output_format: OutputFormat) -> int:
    """Dump SCRIPT as `probe dump` does, under a debugger that stops in the compiler.

    \b
    A PLACE is one of
      torch._inductor.codegen.cpp:LoopLevel.lines      a function or method
      "scheduler:Scheduler.can_fuse if node1.get_name() == 'op3'"
      torch/_inductor/ir.py:123                        a line
      fusion vectorisation tiling layout lowering codegen    a set of places

    \b
    A SUBJECT is one of
      buf3                it is realised, and its layout decided
      op3                 it is made, and its code generated
      op3,op4             the two are tried for fusion
      cpp_fused_add_0     the kernel is tiled and generated; triton_... too

    In the script itself, write breakpoint().
    """
    options = replace(options, stdout_to_stderr=output_format == "json")
    with progress_line() as progress, _signals_left_to_the_dump():
        return _show_run(ip.debug(options, progress=progress), output_format)


@contextmanager
def _signals_left_to_the_dump() -> Iterator[None]:
    """Leave SIGTERM and its like to the dump: this process has still to say what was dumped.

    A shell script starts what it puts into the background with Ctrl-C ignored: `kill -INT` ends it, too.
    """
    signals = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    before = {number: signal.getsignal(number) for number in (*signals, signal.SIGINT)}
    try:
        if before.pop(signal.SIGINT) is signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # by nohup
                signal.signal(number, lambda number, frame: None)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _show_run(run: ip.Run, output_format: OutputFormat) -> int:
    """Print what was compiled and how the script ended; return the exit status for it.

    Of a run that a signal interrupted it is the one that shells give: 130 for Ctrl-C, 143 for SIGTERM.
    """
    manifest = run.manifest.of_script() if run.manifest else None
    number = getattr(signal, manifest.ended_by or "", None) if manifest else None
    if manifest is None or manifest.outcome != "interrupted" or number is None:
        return _show_graphs_and_next_steps(run, output_format)
    try:
        _show_graphs_and_next_steps(run, output_format)
    except OSError:  # the terminal is gone, as SIGHUP said: let the rest of it go nowhere
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
    return 128 + int(number)


def _show_graphs_and_next_steps(run: ip.Run, output_format: OutputFormat) -> int:
    summary, manifest = run.summary, run.manifest.of_script() if run.manifest else None
    ended_well = manifest is None or manifest.outcome == "ok"
    compile_failed = summary.empty is not None and summary.empty.code == "compile-failed"
    if (
        output_format == "json"
        or run.graphs
        or summary.remarks
        or summary.problems
        or (compile_failed and not ended_well)
    ):
        give(run, output_format)
    for one in (run, *run.others):
        process = process_of(one.debug_dir)
        rank = f"{process_name(process)}, " if process and process.rank is not None else ""
        what = f"  {rank}pid {process.pid}" if process and run.others else ""
        say(f"run: {relative(one.path)}{what}")
    if compiling := compile_summary_of(run):
        say(f"{summary_sentence(compiling)} (probe compile-time)")
    if run.not_remembered:
        say_warning(run.not_remembered)
    for turned, text in flip_texts(manifest.flips, manifest.flip_results) if manifest else ():
        (say if turned else say_warning)(text)
    if manifest and not ended_well:
        complain(_failure(manifest, summary))
        return ExitCode.FAILED
    if not run.graphs:
        complain(run.empty())
    for step in summary.next:
        command, why = next_step(step, _target(run, step))
        say(f"next: {one_word(command)} {why}".rstrip())
    return ExitCode.OK if run.graphs else ExitCode.FAILED


def _target(run: ip.Run, step: NextStep) -> str:
    """Name the graph where there are several, and its path where verbs would not find the run from here."""
    graph = next((graph for graph in run.dump_graphs if graph.name == step.graph), None)
    if not run.path.is_relative_to(Path.cwd()):
        return str(graph.path if graph else run.path)
    return graph.name if graph and len(run.dump_graphs) > 1 else ""


def _failure(manifest: Manifest, summary: RunSummary) -> ProbeError:
    has_graphs = bool(summary.graphs)
    remarks = (*summary.remarks, *(remark for graph in summary.graphs for remark in graph.remarks))
    dumped = "what it had dumped is shown above" if has_graphs else "nothing had been dumped yet"
    failed = any(remark.code == "compile-failed" for remark in (*remarks, summary.empty) if remark)
    of_machine = "" if failed else "; `probe doctor` says whether this machine lacks something"
    hint: str | None = f"the script's own message is above{of_machine}"
    if manifest.outcome == "interrupted":
        hint = "`probe check` says which parts of it are complete" if has_graphs else None
    elif manifest.ended_by == "SIGKILL":
        hint = "unless you killed it, consistent with the out-of-memory killer: see `dmesg`"
    return RunFailedError(f"{manifest.script} {how_it_ended(manifest)}; {dumped}", hint)
