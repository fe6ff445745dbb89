"""The `probe` command: a verb parses arguments, calls one function of `api`, and renders what it returns.

What was decided here:

- Starting is cheap. The package imports nothing; a method of `api` imports what it needs when it is called;
  tables of thousands of rows are written by `report/terminal.py`, since rich wraps and renders each cell by
  itself.
- The command line uses click directly: recent releases of typer import pydantic where it is installed,
  which slows every start; `probe layouts` has a quarter of the time that importing torch takes.
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from itertools import pairwise

import click

from inductor_probe import __version__
from inductor_probe.cli.screen import complain, say, show_failure
from inductor_probe.errors import ExitCode, ProbeError, StoppedError, near_names

VERBS: dict[str, dict[str, tuple[str, str]]] = {
    "What was compiled": {
        "dump": ("scripts", "Run a script and dump every graph that inductor compiles."),
        "debug": ("scripts", "The same, under a debugger that stops inside the compiler."),
        "runs": ("runs", "The runs below here; remove some of them."),
        "check": ("runs", "Is everything in a dump there and understood?"),
        "nodes": ("graphs", "The scheduler's nodes in a table."),
        "kernels": ("graphs", "The generated kernels in a table, with what their code shows."),
        "show": ("graphs", "One graph, node, buffer or kernel on one page."),
        "report": ("graphs", "One page of HTML about a run, or about two, to share."),
    },
    "Why": {
        "why": ("graphs", "Each decision of the compiler: its cause, and what would change it."),
        "explain": ("graphs", "What a code like [few-shared-bytes] means, and what changes it."),
        "layouts": (
            "graphs",
            "The layout of each buffer, and which nodes write and read it with which strides.",
        ),
        "fusion": ("graphs", "What was fused when, and what was refused why."),
        "diff": ("graphs", "What changed between two runs or graphs."),
        "tunings": ("graphs", "What max-autotune considered, with times."),
        "expect": ("programs", "Is a graph as it should be? Exit status 1 if not, with the decision."),
    },
    "How fast": {
        "overview": ("programs", "What to do: the call, where its time goes, what was missed, what to try."),
        "whatif": ("whatif", "Compile another way, check both, and time them in turns."),
        "profile": ("profile", "Where the time of a call goes: guards, wrapper, loop nests, launches."),
        "compile-time": ("programs", "Where the time of compiling goes, and what a warm cache saves."),
        "memory": ("programs", "The peak of a call against eager's, and which buffers live then."),
        "bench-kernel": ("bench", "Write, check and time a standalone bench file of a graph."),
        "rewrite": ("bench", "List the rewrites of a graph's kernels, or add them to the bench file."),
        "check-kernel": (
            "bench",
            "Are Triton kernels right? On the CPU, by triton's interpreter: no GPU is needed.",
        ),
        "sweep-configs": ("bench", "Time every autotuning config of Triton kernels."),
        "asm": ("bench", "What a kernel is compiled to: registers, occupancy, vectors, PTX, machine code."),
        "export-cpp": ("bench", "Write a C++ kernel as a program of its own."),
        "verdict": ("bench", "Judge the samples of bench-kernel once more."),
    },
    "Over many cases": {
        "perf": ("perf", "Time cases of a scenario: eager, compiled and variants, in a table."),
        "compare": ("perf", "Two results, row by row: what became slower, and by how much."),
        "results": ("perf", "What was measured here; show the table of one, or remove some."),
    },
    "Is it right": {
        "accuracy": ("programs", "Is a program right compiled? If not: which operator, line and layer."),
        "reduce": ("programs", "The smallest program that still shows it: wrong, slow, a decision ..."),
        "bisect": ("programs", "Which build of torch, setting or decision makes the difference?"),
        "check-op": ("op_check", "Run PyTorch's own samples of operators eager and compiled."),
    },
    "Is this machine fit": {
        "doctor": (
            "runs",
            "What is missing or would mislead: compiler, caches, variables, GPU, load.",
        ),
    },
}
"""Question -> the verbs that answer it -> the module of each, imported when it is called, and its help."""
DOORS = {"For programs": {"mcp": ("mcp", "Serve the verbs as tools of the Model Context Protocol.")}}
"""What starts something that goes on, and has no answer of its own: as `VERBS`."""
_COMMANDS = {**VERBS, **DOORS}
_MODULES = {verb: module for verbs in _COMMANDS.values() for verb, (module, _) in verbs.items()}


class _Verbs(click.Group):
    """Shows verbs under their questions, and offers the nearest one for a slip of the keyboard."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return None
        module = import_module(f"inductor_probe.cli.{_MODULES[cmd_name]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        command.name = cmd_name
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _MODULES:
            raise ProbeError(f"unknown verb {args[0]}", near_names(args[0], _MODULES), code="usage")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for question, verbs in _COMMANDS.items():
            with formatter.section(question):
                formatter.write_dl([(verb, sentence) for verb, (_, sentence) in verbs.items()])


def _show_version(ctx: click.Context, parameter: click.Parameter, chosen: bool) -> None:
    if chosen:
        from importlib.metadata import PackageNotFoundError, version  # slow, and only for this

        try:
            torch = version("torch")  # from its metadata: importing torch takes seconds
        except PackageNotFoundError:
            torch = "not installed"
        click.echo(f"inductor_probe {__version__}, torch {torch}, python {sys.version.split()[0]}")
        ctx.exit()


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show versions.",
)
@click.option("--traceback", is_flag=True, help="Show the Python traceback of an error.")
def app(traceback: bool) -> None:
    """A microscope for TorchInductor: what did the compiler decide, why, and what would it cost otherwise?"""


def main() -> None:
    """Run `probe` and exit with its status: see `ExitCode`.

    What was read is not freed piece by piece at the end, which takes as long as reading a part of it.
    """
    _open_streams()
    gc.disable()  # a command ends soon, and its records have no cycles: looking for some takes its time
    warnings.simplefilter("ignore", SyntaxWarning)  # of a dump's text, which Python's parser only reads
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # where the locale has no such character
    status = run(sys.argv[1:])
    atexit._run_exitfuncs()  # temporary folders of archives are removed there
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(status)  # Python's own way of telling that what was printed went nowhere
    os._exit(status)


def _open_streams() -> None:
    """Where a stream is closed let what is printed go nowhere: the next open file would get its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def run(arguments: list[str]) -> int:
    """Run `probe` with `arguments`; return its exit status."""
    try:
        return int(app.main(arguments, prog_name="probe", standalone_mode=False, obj=arguments) or 0)
    except BrokenPipeError:
        # The reader (`head`) has what it wanted. Python flushes stdout once more at exit: let it go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return ExitCode.OK
    except (Exception, KeyboardInterrupt) as error:
        failure = _explain(error, arguments)
        with suppress(OSError):  # standard error is closed: the exit status remains
            if arguments[:1] == ["--traceback"]:
                say("".join(traceback.format_exception(error)))  # its message may quote a dump: see `screen`
            else:
                complain(failure)
        with suppress(OSError):  # standard output is closed, or full
            if _wants_json(arguments):
                show_failure(failure, next((word for word in arguments if word in _MODULES), ""))
        return failure.exit_code


def _explain(error: BaseException, arguments: list[str]) -> ProbeError:
    """Turn whatever stopped a verb into a sentence and a next step."""
    match error:
        case ProbeError():
            return error
        case KeyboardInterrupt() | click.Abort():
            return StoppedError("interrupted")
        case click.UsageError(ctx=click.Context() as context):
            return _usage(error, context.command_path)
        case click.ClickException():
            verb = f" {arguments[0]}" if arguments and arguments[0] in _MODULES else ""
            return _usage(error, f"probe{verb}")
        case OSError(errno=errno.ENAMETOOLONG):
            name = str(error.filename)
            return ProbeError(f"{name[:60]}... has {len(name):,} characters: too long for the name of a file")
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            place = error.filename or "the output"
            return ProbeError(f"cannot write {place}: {error.strerror}", "free some space, and run it again")
    words = [word for word in arguments if word != "--traceback"]
    return ProbeError(
        f"internal error: {type(error).__name__}: {error}",
        f"this is a bug in inductor_probe: report what `{shlex.join(['probe', '--traceback', *words])}` and "
        "`probe --version` print, with the dump if you may share it",
        code="internal",
    )


def _usage(error: click.ClickException, command: str) -> ProbeError:
    return ProbeError(error.format_message().rstrip("."), f"see {command} --help", code="usage")


def _wants_json(arguments: Sequence[str]) -> bool:
    """Tell whether an answer was to be JSON, also where the arguments are wrong otherwise."""
    return bool({"--json", "--format=json"} & {*arguments}) or ("--format", "json") in pairwise(arguments)
