"""The processes below one: that they end with it, which they are, and ending them.

What Linux has for this and others lack: `prctl`, and `/proc` to see who started whom. Elsewhere the script
itself is still signalled, as its supervisor notices the end of `probe dump` by a pipe; processes that the
script started are then left to notice the end of the script, as torch's compile workers do, and a supervisor
that is killed leaves the script running.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36  # both from linux/prctl.h
_PARENT = 1  # of the fields of /proc/<pid>/stat after the name
_TERM_S = 2.0
_KILL_S = 2.0
_AGAIN_S = 0.02


def end_with(parent: int) -> None:
    """Have this process killed when process `parent`, which started it, ends in whatever way."""
    # SIGKILL: a supervisor that ends before its child was killed itself, so that nobody is left to insist.
    if _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) and os.getppid() != parent:  # it ended before that call
        os.kill(os.getpid(), signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of every process below this one whose own parent ends.

    Without this they become children of process 1, and cannot be told from others any more.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_descendants() -> None:
    """End every process below this one that the system lists: SIGTERM, and SIGKILL two seconds later."""
    asked: set[int] = set()
    begin = time.monotonic()
    while (below := _descendants()) and time.monotonic() < begin + _TERM_S + _KILL_S:
        number = signal.SIGTERM if time.monotonic() < begin + _TERM_S else signal.SIGKILL
        for pid in below - asked if number == signal.SIGTERM else below:
            with suppress(ProcessLookupError, PermissionError):  # ended meanwhile; another user's (sudo)
                os.kill(pid, number)
        asked |= below
        time.sleep(_AGAIN_S)
        reap()


def reap() -> dict[int, int]:
    """Release the children that have ended; return their statuses by pid, negative for a signal."""
    ended = {}
    with suppress(ChildProcessError):  # there are none
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = os.waitstatus_to_exitcode(found[1])
    return ended


def _descendants() -> set[int]:
    """Return the processes below this one; none where the system has no `/proc`."""
    children: dict[int, list[int]] = {}
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208 - names are enough
    except OSError:
        return set()
    for pid in pids:
        # A name may hold spaces and parentheses: the fields are counted from its end.
        with suppress(OSError, ValueError, IndexError):  # it ended meanwhile
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            children.setdefault(int(fields[_PARENT]), []).append(pid)
    found: set[int] = set()
    to_visit = [os.getpid()]
    while to_visit:
        new = [pid for pid in children.get(to_visit.pop(), ()) if pid not in found]
        found.update(new)
        to_visit.extend(new)
    return found


def _prctl(option: int, argument: int) -> bool:
    """Call `prctl(2)`; tell whether the system has it, and did it."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes  # noqa: PLC0415 - not everywhere, and slow to import

    try:
        return bool(ctypes.CDLL(None).prctl(option, argument, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False
