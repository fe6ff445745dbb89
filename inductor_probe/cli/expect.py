"""The verb that says whether graphs are as somebody expects them, for tests and continuous integration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import click

import inductor_probe as ip
from inductor_probe.cli.completion import CASE, SCRIPT
from inductor_probe.cli.parameters import IN_GITHUB, command, shared_option
from inductor_probe.cli.screen import OutputFormat, give, relative, say, warn
from inductor_probe.cli.scripts import SETTINGS, VARIABLES
from inductor_probe.errors import ExitCode, ProbeError, StoppedError
from inductor_probe.model.expectation import EXPECTATION_KINDS, ExpectationKind
from inductor_probe.report.words.runs import how_it_ended

_HELP: dict[ExpectationKind, tuple[str, str]] = {
    "kernels": ("N", "So many generated kernels; calls of libraries are not among them."),
    "vectorised": ("[NODE]", "C++: the loop nests of a node, a kernel, or of all are vectorised."),
    "fused": ("NODE+NODE", "These nodes, or those that write these buffers, are in one fused node."),
    "layout": ("BUFFER=ORDER", "A buffer is channels_last, contiguous, transposed or padded."),
    "no-copy": ("", "Nothing is copied into another layout, or cloned."),
    "no-extern": ("", "No function of a library is called."),
    "no-fallback": ("", "No operator of ATen is called."),
    "reduction-hint": ("[NODE=]HINT", "Triton: INNER, OUTER, OUTER_TINY or DEFAULT."),
    "index-dtype": ("[NODE=]TYPE", "Triton: int32 or int64 indices."),
    "bytes-at-most": ("SIZE", "All kernels read and write no more: 1500000, 1.5MB, 2MiB."),
    "no-failed-compile": ("", "No compile failed; it is always expected."),
    "no-graph-break": ("", "Dynamo compiled it as one graph."),
    "no-recompile": ("", "Nothing was compiled again, as a guard failed."),
    "no-remark": ("CODE", "No remark of this code: noncontiguous-access, int64-indices ..."),
}


def _add(ctx: click.Context, param: click.Parameter, given: Any) -> None:
    kind = cast("ExpectationKind", (param.name or "").replace("_", "-"))
    if given:
        ctx.params.setdefault("expected", {})[kind.replace("-", "_")] = (
            True if given is True else [text or True for text in given]
        )


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each kind; the verb gets them as the keywords of `Session.expect`."""
    for kind in reversed(EXPECTATION_KINDS):
        metavar, text = _HELP[kind]
        form: dict[str, Any] = {"multiple": True, "metavar": metavar} if metavar else {"is_flag": True}
        if metavar == "[NODE]":  # it may stand alone
            form |= {"is_flag": False, "flag_value": ""}
        function = click.option(f"--{kind}", callback=_add, expose_value=False, help=text, **form)(function)
    return function


@command(
    click.argument("words", nargs=-1, metavar="[SCRIPT|RUN|GRAPH [-- ARGS]]", type=SCRIPT),
    click.option("--case", "cases", multiple=True, type=CASE, help="A case of the scenario."),
    SETTINGS,
    VARIABLES,
    _options,
    shared_option("--out"),
    IN_GITHUB,
)
def expect(
    words: tuple[str, ...],
    *,
    cases: tuple[str, ...],
    knobs: dict[str, str],
    env: dict[str, str],
    out: Path | None,
    output_format: OutputFormat,
    expected: dict[str, Any] | None = None,
) -> int:
    """Is what was compiled as it should be? Pins what was fixed in a lowering, so that it stays fixed.

    SCRIPT is dumped first; RUN and GRAPH are there already, the latest run if left out. All that is expected
    has to hold in each graph that has the nodes and buffers that it names. Of what does not, the decision is
    shown that torch recorded, with its cause.

    Exit status 1 if an expectation fails, else 2 if one is not known, names what is not there, or
    something cannot be read.
    """
    if not expected:
        first = f" {words[0]}" if words else ""
        raise ProbeError("nothing is expected", f"for example probe expect{first} --kernels 1 --vectorised")
    answer = dumped_or_found(words, cases, knobs, env, out, compile_may_fail=True).expect(**expected)
    status = give(answer, output_format) or answer.status
    unread = warn(answer.problems)  # beside what fails it changes nothing: that was read
    return status if status == ExitCode.MISMATCH else max(status, unread)


def dumped_or_found(
    words: tuple[str, ...],
    cases: tuple[str, ...],
    knobs: dict[str, str],
    env: dict[str, str],
    out: Path | None,
    *,
    target: str | None = None,
    compile_may_fail: bool = False,
    may_fail: bool = False,
) -> ip.Run | ip.Graph:
    """Return the run or graph that is named; a script is dumped, and has to end well.

    With `compile_may_fail` it may end with the exception of a compile, with `may_fail` with any. `target` is
    a GPU that is simulated.
    """
    from inductor_probe.api.meaning import meaning_of
    from inductor_probe.api.verbs import open_target

    if not words:
        return open_target(None)
    of_script = bool(cases or knobs or env or target or words[1:])
    meaning = meaning_of(words[0], Path.cwd(), of_script=of_script)
    if meaning.beside:
        say(meaning.beside)
    script = meaning.script
    if script is None:
        return open_target(meaning.target)
    say(f"dumping {script}")
    run = ip.dump(
        script,
        args=words[1:],
        cases=cases,
        knobs=knobs,
        env=env,
        target=target,
        out=out,
        stdout_to_stderr=True,
    )
    manifest = run.manifest
    if manifest and manifest.outcome == "interrupted":
        raise StoppedError("interrupted while it was dumped", f"what was compiled is in {relative(run.path)}")
    if manifest and manifest.outcome != "ok" and not (may_fail or (compile_may_fail and manifest.failures)):
        raise ProbeError(
            f"{manifest.script} {how_it_ended(manifest)}; its message is above",
            f"what it had dumped by then is in {relative(run.path)}",
        )
    say(f"it is {relative(run.path)}")
    return run
