"""The two debuggers: pdb in the terminal, and debugpy for a client that attaches."""

from __future__ import annotations

import pdb
import sys
from collections.abc import Sequence
from typing import Any

from inductor_probe.debugging.breakpoints import Breakpoint, Checker, say
from inductor_probe.debugging.session import NO_DEBUGPY, Endpoint
from inductor_probe.errors import ProbeError


class Quit(SystemExit):
    """The user has left pdb. torch catches exceptions of many kinds, and lets this one through."""


class _Pdb(pdb.Pdb):
    """Ends the process on `quit`, in place of an error that dynamo and inductor would wrap."""

    def set_quit(self) -> None:
        sys.settrace(None)
        raise Quit(1)


def stopping_in_pdb(breakpoints: Sequence[Breakpoint]) -> Checker:
    """Return what stops in pdb, on the process's own stdin and stdout."""
    debugger = _Pdb(skip=["inductor_probe.debugging.*"])

    def stop() -> None:
        debugger.set_trace(sys._getframe(1))

    def is_attached() -> bool:
        return True

    return Checker(breakpoints, stop, is_attached)


def stopping_in_debugpy(breakpoints: Sequence[Breakpoint], endpoint: Endpoint) -> Checker:
    """Wait until a client is attached at `endpoint` and has set its breakpoints; return what stops for it.

    Raises:
        ProbeError: debugpy is not installed; the address cannot be listened on.
        KeyboardInterrupt: while waiting.
    """
    try:
        import debugpy  # noqa: PLC0415 - pdb does without it
    except ImportError as error:
        raise ProbeError(*NO_DEBUGPY) from error
    client: Any = debugpy
    # Inductor asks short Python processes about the machine: each would wait for a client of its own.
    client.configure(subProcess=False)
    try:
        client.listen((endpoint.host, endpoint.port))
    except (RuntimeError, OSError) as error:
        reason = str(error).rpartition("] ")[2]  # what the adapter answered, without the address
        raise ProbeError(
            f"cannot listen on {endpoint}: {reason}",
            "is another debugger still running? name a free port with --listen, 0 for any",
        ) from error
    say(f"waiting for a debugger on {endpoint}; Ctrl-C gives up")
    client.wait_for_client()
    _step_into_libraries()
    say("a debugger is attached: the script starts")
    return Checker(breakpoints, client.breakpoint, client.is_client_connected)


def _step_into_libraries() -> None:
    """Take torch for the user's own code, whatever `justMyCode` the client has sent."""
    debugger = getattr(sys.modules.get("pydevd"), "get_global_debugger", lambda: None)()
    set_filter = getattr(debugger, "set_use_libraries_filter", None)
    if set_filter is None:
        say("this debugpy does not let justMyCode be switched off from here: switch it off in the client")
        return
    set_filter(False)
