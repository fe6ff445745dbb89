"""One call of a tool, in a process of its own: an order on standard input, events in lines of JSON on standard output.

    {"tool": "why", "arguments": {"first": "buf0"}, "root": "/work", "allow_run": false}
    -> {"step": "..."} as it works, then {"text": ..., "structured": {...}} or {"error": {...}}

It is interrupted, as by Ctrl-C, when its standard input ends: the server took the call back, or is gone.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import threading
import warnings
from pathlib import Path
from typing import Any, TextIO

from msgspec import Struct
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.errors import ProbeError, StoppedError
from inductor_probe.mcp_server.answers import answer_of, failure_of
from inductor_probe.mcp_server.confined import confine, refuse_outside
from inductor_probe.mcp_server.tools import BY_NAME, Tool, asked_of, form_of
from inductor_probe.options.verb import Progress


class _Steps(Progress):
    """Writes each step where the server reads it."""

    def __init__(self, wire: TextIO) -> None:
        super().__init__(lambda text: write(wire, {"step": text}))

    def say(self, text: Any) -> None:
        """Write what was made, too."""
        self(text if isinstance(text, str) else "".join(part if isinstance(part, str) else part[0] for part in text))


def write(wire: TextIO, event: dict[str, Any]) -> None:
    """Write one event in a line."""
    wire.write(json.dumps(event) + "\n")
    wire.flush()


def answer(order: dict[str, Any], wire: TextIO) -> dict[str, Any]:
    """Carry out an order.

    Raises:
        ProbeError: it cannot be done, or may not.
    """
    root, allow_run = Path(order["root"]), order["allow_run"]
    if uri := order.get("uri"):
        confine(root, reading=True)
        return {"text": _resource(*uri)}
    tool, arguments = BY_NAME[order["tool"]], order["arguments"]
    form, asked = form_of(arguments), asked_of(arguments)
    refuse_outside(asked, root)
    options = tool.options(asked, allow_run=allow_run)
    runs_code = tool.runs == "all" or (tool.runs == "scripts" and allow_run)
    if tool.runs == "scripts" and not allow_run:
        _refuse_script(tool, options)
    confine(root, reading=not runs_code)
    if order.get("frozen"):
        options = _frozen(options)
    verb = getattr(ip, tool.verb or tool.name)
    view = verb(options, progress=_Steps(wire)) if runs_code else verb(options)
    if isinstance(view, ip.Trials) and view.interrupted:
        raise StoppedError("interrupted", f"what was known by then is in {view.path}")
    return answer_of(tool, view, options, form, asked)


def _refuse_script(tool: Tool, options: Struct) -> None:
    """Refuse a program that is a script.

    Raises:
        ProbeError: it is one.
    """
    from inductor_probe.api.meaning import meaning_of  # noqa: PLC0415 - for two tools

    program = getattr(options, "program", None)
    if program is not None and meaning_of(str(program), Path.cwd()).script is not None:
        raise may_not_run(f"{tool.name} of a script", "name a run that is there (see runs)")


def may_not_run(what: str, instead: str = "") -> ProbeError:
    """Return what a client reads where nothing may run."""
    ask = "ask the user to start `probe mcp` with --allow-run"
    return ProbeError(f"{what} runs code, which this server may not", f"{instead}, or {ask}" if instead else ask)


def _frozen(options: Any) -> Any:
    """Return the options of a frozen workload, whose bench file is made anew: edits in it decide nothing."""
    from inductor_probe.api.verbs import open_graph  # noqa: PLC0415 - for frozen workloads alone
    from inductor_probe.discovery.dump_files import BENCH_NAME  # noqa: PLC0415

    graph = open_graph(options.target)
    (graph.path / BENCH_NAME).unlink(missing_ok=True)
    return replace(options, target=graph)


def _resource(run: str, graph: str, form: str) -> str:
    """Return a page of a run or of a graph in it, or the code of a graph."""
    target = f"{run}/{graph}" if graph else run
    if form == "code":
        from inductor_probe.files import read_text  # noqa: PLC0415 - as above

        return read_text(ip.open_graph(target).path / "output_code.py")
    return ip.show(target=target).markdown


def main() -> None:
    """Read an order, and carry it out. What is printed meanwhile goes to standard error."""
    wire = os.fdopen(os.dup(1), "w", encoding="utf-8")
    orders = os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    order = json.loads(orders.readline())

    answered = threading.Event()

    def wait_for_end() -> None:
        orders.read()
        if not answered.is_set():
            os.killpg(0, signal.SIGINT)

    threading.Thread(target=wait_for_end, daemon=True).start()
    warnings.simplefilter("ignore", SyntaxWarning)  # of a dump's text, which Python's parser only reads
    try:
        event = answer(order, wire)
    except KeyboardInterrupt:
        event = {"error": failure_of(StoppedError("interrupted"))}
    except Exception as error:
        event = {"error": failure_of(error)}
    answered.set()
    write(wire, event)
    atexit._run_exitfuncs()  # temporary folders of archives are removed there
    os._exit(0)


if __name__ == "__main__":
    main()
