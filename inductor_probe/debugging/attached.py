"""Stops for a client of debugpy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from inductor_probe.debugging.session import NO_DEBUGPY, Endpoint
from inductor_probe.errors import ProbeError


class Attached:
    """debugpy, from its first import on. Nothing private of it but in `_step_into_libraries`.

    Raises:
        ProbeError: it is not installed.
    """

    def __init__(self) -> None:
        try:
            import debugpy  # noqa: PLC0415 - pdb does without it
        except ImportError as error:
            raise ProbeError(*NO_DEBUGPY) from error
        self._debugpy: Any = debugpy
        self.stop: Callable[[], Any] = debugpy.breakpoint  # called in the frame to stop in
        self.is_watched: Callable[[], bool] = debugpy.is_client_connected

    def wait(self, endpoint: Endpoint) -> None:
        """Listen, say so, and return when a client is there and has set its breakpoints.

        Raises:
            ProbeError: the address cannot be listened on.
            KeyboardInterrupt: while waiting.
        """
        # Inductor asks short Python processes about the machine: each would wait for a client of its own.
        self._debugpy.configure(subProcess=False)
        try:
            self._debugpy.listen((endpoint.host, endpoint.port))
        except (RuntimeError, OSError) as error:
            raise ProbeError(
                f"cannot listen on {endpoint}: {_reason(error)}",
                "another one is still there? name a free port with --listen, 0 for any",
            ) from error
        _say(f"waiting for a debugger on {endpoint}; Ctrl-C gives up")
        self._debugpy.wait_for_client()
        _step_into_libraries()
        _say("a debugger is here: the script starts")


def _reason(error: Exception) -> str:
    """Return what the adapter answered, without the address that it repeats."""
    text = str(error)
    return text.rpartition("] ")[2] if "] " in text else text


def _step_into_libraries() -> None:
    """Take torch for the user's own code, whatever `justMyCode` the client has sent."""
    debugger = getattr(sys.modules.get("pydevd"), "get_global_debugger", lambda: None)()
    set_filter = getattr(debugger, "set_use_libraries_filter", None)
    if set_filter is None:
        _say("this debugpy does not let justMyCode be switched off from here: switch it off in the client")
        return
    set_filter(False)


def _say(text: str) -> None:
    print(f"probe debug: {text}", file=sys.stderr, flush=True)
