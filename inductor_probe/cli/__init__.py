"""The `probe` command: one file a verb; a verb parses arguments, calls one function of `api`, and renders."""

from __future__ import annotations

import atexit
import errno
import gc
import os
import shlex
import sys
import traceback
import warnings
from importlib import import_module
from io import TextIOWrapper

import click

from inductor_probe import __version__
from inductor_probe.cli.screen import complain, say
from inductor_probe.errors import ExitCode, ProbeError, near_names

VERBS: dict[str, dict[str, str]] = {
    "What was compiled": {
        "dump": "Run a script and dump every graph that inductor compiles.",
        "debug": "The same, under a debugger that stops inside the compiler.",
        "runs": "The runs below here; remove some of them.",
        "check": "Is everything in a dump there and understood?",
        "nodes": "The scheduler's nodes in a table.",
        "kernels": "The generated kernels in a table, with what their text tells.",
        "show": "One graph, node, buffer or kernel on one page.",
    },
    "Why": {
        "layouts": "The layout of each buffer, and which nodes write and read it with which strides.",
        "fusion": "What was fused when, and what was refused why.",
        "diff": "What changed between two runs or graphs.",
        "tunings": "What max-autotune considered, with times.",
    },
    "How fast": {
        "bench-kernel": "Write, check and time a standalone bench file of a graph.",
        "rewrite": "List the rewrites of a graph's kernels, or add them to the bench file.",
        "sweep-configs": "Time every autotuning config of Triton kernels.",
        "export-cpp": "Write a C++ kernel as a program of its own.",
        "verdict": "Judge the samples of bench-kernel once more.",
    },
    "Is this machine fit": {
        "doctor": "What is missing or would mislead: compiler, caches, variables, GPU, load.",
    },
}
"""The question that a verb answers -> verbs. A verb's module is imported when it is asked for."""


class _Verbs(click.Group):
    """Shows verbs under their questions, and offers the nearest one for a slip of the keyboard."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [verb for verbs in VERBS.values() for verb in verbs]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        name = cmd_name.replace("-", "_")
        command = getattr(import_module(f"inductor_probe.cli.{name}"), name)
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.list_commands(ctx):
            raise ProbeError(f"there is no verb {args[0]}", near_names(args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for question, verbs in VERBS.items():
            with formatter.section(question):
                formatter.write_dl(list(verbs.items()))


def _show_version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - slow, and only for this

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


def run(arguments: list[str]) -> int:
    """Run `probe` with `arguments`; return its exit status."""
    try:
        return int(app.main(arguments, prog_name="probe", standalone_mode=False) or 0)
    except BrokenPipeError:
        # The reader (`head`) has what it wanted. Python flushes stdout once more at exit: let it go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return ExitCode.OK
    except (Exception, KeyboardInterrupt) as error:
        failure = _explain(error, arguments)
        if arguments[:1] == ["--traceback"]:
            say("".join(traceback.format_exception(error)))  # its message may quote a dump: see `screen`
        else:
            complain(failure)
        return failure.exit_code


def _explain(error: BaseException, arguments: list[str]) -> ProbeError:
    """Turn whatever stopped a verb into a sentence and a next step."""
    match error:
        case ProbeError():
            return error
        case KeyboardInterrupt() | click.Abort():
            return ProbeError("interrupted")
        case click.UsageError(ctx=click.Context() as context):
            return ProbeError(error.format_message().rstrip("."), f"see {context.command_path} --help")
        case click.ClickException():
            return ProbeError(error.format_message().rstrip("."), "see probe --help")
        case OSError(errno=errno.ENAMETOOLONG):
            name = str(error.filename)
            return ProbeError(f"{name[:60]}... has {len(name):,} characters: too long for the name of a file")
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            place = error.filename or "the output"
            return ProbeError(f"cannot write {place}: {error.strerror}", "free some space, and run it again")
    asked = [word for word in arguments if word != "--traceback"]
    return ProbeError(
        f"internal error: {type(error).__name__}: {error}",
        f"this is a bug in inductor_probe: report what `{shlex.join(['probe', '--traceback', *asked])}` and "
        "`probe --version` print, with the dump if you may share it",
    )
