"""One call of a tool, in a process of its own: an order comes on stdin, events go to stdout.

    {"tool": "why", "arguments": {"first": "buf0"}, "root": "/home/me/net", "allow_run": false}
    -> {"step": "..."} as it works, then {"answer": ..., "whole": {...}, ...} or {"error": {...}}

It is interrupted, as by Ctrl-C, when its standard input ends before that: the call was taken back.
"""

from __future__ import annotations

import atexit
import json
import os
import shlex
import signal
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.api.rows import Rows
from inductor_probe.api.session import Run
from inductor_probe.errors import ProbeError, StoppedError
from inductor_probe.mcp_server.answers import WIDTH
from inductor_probe.mcp_server.confined import confine
from inductor_probe.mcp_server.tools import BY_NAME, Tool, asked_of
from inductor_probe.options.fields import words_of
from inductor_probe.options.verb import Progress
from inductor_probe.report.document import Table
from inductor_probe.report.shown import Shown
from inductor_probe.report.terminal import to_text
from inductor_probe.report.units import counted

_UNBROKEN = 1000
"""Columns of a line that is not broken."""
_LINES = 100


class _Steps(Progress):
    """Hears what is done next, and what was made."""

    def say(self, text: Any) -> None:
        """Hear what was made, a text or pieces of one with styles."""
        self(
            text
            if isinstance(text, str)
            else "".join(part if isinstance(part, str) else part[0] for part in text)
        )


def answer(order: dict[str, Any], step: Callable[[str], object]) -> dict[str, Any]:
    """Carry out an order whose arguments were judged.

    Raises:
        ProbeError: it cannot be done, or may not.
    """
    root = Path(order["root"])
    if names := order.get("resource"):
        confine(root, reading=True)
        return {"answer": _resource(*names)}
    tool, asked = BY_NAME[order["tool"]], asked_of(order["arguments"])
    options = tool.options(asked, allow_run=order["allow_run"])
    reading = not tool.may_run(allow_run=order["allow_run"])
    if reading:
        _refuse_script(tool, options)
    confine(root, reading=reading)
    if order.get("frozen"):
        options = _with_new_bench_file(options)
    verb = getattr(ip, tool.verb or tool.name)
    view = verb(options) if tool.runs == "nothing" else verb(options, progress=_Steps(step))
    if isinstance(view, ip.Trials) and view.interrupted:
        raise StoppedError("interrupted", f"what was known by then is in {view.path}")
    whole = cast("dict[str, Any]", view.json)
    command = ["probe", (tool.verb or tool.name).replace("_", "-"), *words_of(options), "--json"]
    screen = to_text(view.document, WIDTH).splitlines()
    return {
        "answer": _sentence(view, whole),
        "screen": screen[:_LINES],
        "whole": whole,
        "command": shlex.join(command),
        "page": f"probe://page/{quote(Path(whole['run']).name)}" if tool.page else None,
    }


def _sentence(view: Shown, whole: dict[str, Any]) -> str:
    """Return what is shown in a sentence: the summary, of a table how many rows, else the first line."""
    summary = whole.get("summary")
    if summary and isinstance(summary, (str, list)):
        return summary if isinstance(summary, str) else "; ".join(summary)
    first = next(iter(view.document), None)
    if isinstance(view, Rows) and (first is None or isinstance(first, Table)):
        return counted(len(view), view.noun) if view else view.empty
    if isinstance(view, Run):
        label = view.manifest.label if view.manifest else None
        return f"{label or view.path.name} has {counted(len(view.graphs), 'graph')}"
    lines = to_text([] if first is None else [first], _UNBROKEN).splitlines()
    line = next(iter(lines), "")
    if " " not in line.strip():  # the name of a graph: what it comes to is below
        line = next(filter(None, reversed(to_text(view.document, _UNBROKEN).splitlines())), line)
    if isinstance(view, Rows) and len(view) > 1 and str(len(view)) not in line:
        line = f"{counted(len(view), view.noun)}; {line}"
    return line


def _refuse_script(tool: Tool, options: Struct) -> None:
    """Refuse a program that is a script, where nothing may run.

    Raises:
        ProbeError: it is one.
    """
    from inductor_probe.api.meaning import meaning_of  # noqa: PLC0415 - for two tools

    program = getattr(options, "program", None)
    of_script = any(getattr(options, name, None) for name in ("cases", "knobs", "env", "args"))
    if program is not None and meaning_of(str(program), Path.cwd(), of_script=of_script).script is not None:
        raise ProbeError(
            f"{program} is a script, and this server runs none",
            "name a run that is there (see runs), or ask the user to start `probe mcp` with --allow-run",
        )


def _with_new_bench_file(options: Any) -> Any:
    """Return the options of a frozen workload, whose bench file is made anew: edits in the last are gone."""
    from inductor_probe.discovery.dump_files import BENCH_NAME  # noqa: PLC0415 - for frozen workloads alone

    graph = ip.open_graph(options.target)
    (graph.path / BENCH_NAME).unlink(missing_ok=True)
    return replace(options, target=graph)


def _resource(run: str, graph: str, form: str) -> str:
    """Return a page of a run, in markdown or HTML, or of a graph in it, or the code of a graph."""
    target = f"{run}/{graph}" if graph else run
    if form == "code":
        from inductor_probe.files import read_text  # noqa: PLC0415 - for this alone

        return read_text(ip.open_graph(target).path / "output_code.py")
    return ip.report_of(a=run).html if form == "html" else ip.show(target=target).markdown


def failure_of(error: BaseException) -> dict[str, Any]:
    """Return an error as an event."""
    if isinstance(error, ProbeError):
        return {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
    message = f"internal error: {type(error).__name__}: {error}"
    return {
        "error": {
            "code": "internal",
            "message": message,
            "hint": "this is a bug in inductor_probe: report it",
        }
    }


def main() -> None:
    """Read an order, and carry it out. What is printed meanwhile goes to standard error."""
    wire = os.fdopen(os.dup(1), "w", encoding="utf-8")
    orders = os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    order = json.loads(orders.readline())
    answered = threading.Event()

    def write(event: dict[str, Any]) -> None:
        wire.write(json.dumps(event) + "\n")
        wire.flush()

    def wait_for_end() -> None:
        orders.read()
        if not answered.is_set():
            os.killpg(0, signal.SIGINT)

    threading.Thread(target=wait_for_end, daemon=True).start()
    warnings.simplefilter("ignore", SyntaxWarning)  # of a dump's text, which Python's parser only reads
    try:
        event = answer(order, lambda text: write({"step": text}))
    except KeyboardInterrupt:
        event = failure_of(StoppedError("interrupted"))
    except Exception as error:
        event = failure_of(error)
    answered.set()
    write(event)
    atexit._run_exitfuncs()  # temporary folders of archives are removed there
    os._exit(0)


if __name__ == "__main__":
    main()
