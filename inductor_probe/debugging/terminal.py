"""Stops in the terminal, with pdb."""

from __future__ import annotations

import pdb
import sys


class Quit(SystemExit):
    """The user has left pdb. torch catches exceptions of many kinds, and lets this one through."""


class Terminal:
    """pdb on the process's own stdin and stdout."""

    def __init__(self) -> None:
        self._pdb = _Pdb(skip=["inductor_probe.debugging.*"])

    def stop(self) -> None:
        """Stop in the frame that calls this."""
        self._pdb.set_trace(sys._getframe(1))

    def is_watched(self) -> bool:
        """Return True: the terminal is always there."""
        return True


class _Pdb(pdb.Pdb):
    """Ends the process when told to quit, in place of an error that dynamo and inductor would wrap."""

    def set_quit(self) -> None:
        sys.settrace(None)
        raise Quit(1)
