"""Processes below a dumped script that load torch without our hooks: seen in /proc, and said in the manifest.

A Python that ignores or does not get our PYTHONPATH (`python -I`, `-E`, `-S`, a cleared environment, another
interpreter) compiles unseen. Where it still has TORCH_COMPILE_DEBUG its run appears among ours, and becomes a
run of the dump; where it has not, only that it loaded torch is known. Importing torch takes longer than the
time between two looks.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Container, Iterator, Set
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from inductor_probe.capture.process import descendants
from inductor_probe.capture.processes import STAGING, STARTUP
from inductor_probe.model.manifest import GraphRecord, NotFollowed

_BETWEEN_S = 0.5
_TORCH = (
    b"libtorch_python"  # what `import torch` maps; kernels that torch tries in a child have the rest alone
)
_NO_SCRIPT = b"compile_worker"  # as in startup/sitecustomize.py
_FLAGS = re.compile(r"-[a-zA-Z]*[IES]")
_LONGEST = 1 << 20


class Unfollowed(Struct, frozen=True):
    """A process that loaded torch, and reports nothing. `started` is in seconds since the epoch."""

    pid: int
    parent: int
    command: tuple[str, ...]
    why: NotFollowed
    started: float


class Watch:
    """Looks for such processes from time to time; `seen` are all of them by their ids."""

    def __init__(self) -> None:
        self.seen: dict[int, Unfollowed] = {}
        self._not_before = 0.0

    def look(self, followed: Set[int], script: int | None) -> None:
        """Look at the processes below this one but those `followed`, which report, and the `script`.

        The script is one of those if probe starts it itself, from its first moment on; else None.
        """
        now = time.monotonic()
        if now < self._not_before:
            return
        parents = descendants()
        followed = followed if script is None else {*followed, script}
        for pid in parents.keys() - self.seen.keys() - followed:
            if not _is_fork(pid, parents, followed) and _has_loaded_torch(pid):
                self._add(pid, parents[pid])
        self._not_before = time.monotonic() + max(_BETWEEN_S, 20 * (time.monotonic() - now))

    def _add(self, pid: int, parent: int) -> None:
        command = tuple(os.fsdecode(word) for word in _words(pid, "cmdline"))
        if not any(_NO_SCRIPT in os.fsencode(word) for word in command):
            self.seen[pid] = Unfollowed(pid, parent, command, _why(pid, command), time.time())

    def but(self, followed: Container[int]) -> Iterator[Unfollowed]:
        """Yield those that have not reported since."""
        yield from (one for pid, one in self.seen.items() if pid not in followed)


def _is_fork(pid: int, parents: dict[int, int], followed: Set[int]) -> bool:
    """Whether a process is a fork of a followed one, which has the hooks, or of such a fork."""
    parent = parents.get(pid)
    while parent is not None:
        if not is_fork_of(pid, parent):
            return False
        if parent in followed:
            return True
        parent = parents.get(parent)
    return False


def is_fork_of(pid: int, parent: int) -> bool:
    """Whether a process is a fork of its parent, and has not become another program since.

    A fork has its parent's stack at the same address, which is another one in each program that is started,
    and the same command line and first environment, unless it has given itself a title.
    """
    if all(_words(pid, name) == _words(parent, name) for name in ("cmdline", "environ")):
        return True
    stack = _stack(pid)
    return stack is not None and stack == _stack(parent) and _addresses_differ()


def _stack(pid: int) -> bytes | None:
    """Return the address at which the stack begins: `7ffd1c000000-7ffd1c021000 rw-p ... [stack]`."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/maps").read_bytes().splitlines():
            if line.endswith(b"[stack]"):
                return line.partition(b" ")[0].partition(b"-")[2]
    return None


def _addresses_differ() -> bool:
    """Whether each program that is started gets addresses of its own."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/randomize_va_space").read_bytes().strip() != b"0"
    return False


def _has_loaded_torch(pid: int) -> bool:
    with suppress(OSError):  # it has ended, or is another user's
        return _TORCH in Path(f"/proc/{pid}/maps").read_bytes()
    return False


def _words(pid: int, name: str) -> list[bytes]:
    with suppress(OSError), Path(f"/proc/{pid}/{name}").open("rb") as file:
        return file.read(_LONGEST).rstrip(b"\0").split(b"\0")
    return []


def _why(pid: int, command: tuple[str, ...]) -> NotFollowed:
    """Return why our `sitecustomize` did not run, as far as command line and environment show that."""
    environment = {key: value for word in _words(pid, "environ") for key, _, value in [word.partition(b"=")]}
    if STAGING.encode() not in environment:
        return "environment"
    path = os.fsdecode(environment.get(b"PYTHONPATH", b""))
    if str(STARTUP) not in path.split(os.pathsep):
        return "python-path"
    for word in command[1:]:  # up to the script, whose options are its own
        if not word.startswith("-") or word in ("-c", "-m", "-"):
            break
        if _FLAGS.match(word):
            return "isolated"
    return "unknown"


def graphs_in(run: Path) -> list[Path]:
    """Return the folders of graphs in a run that torch made by itself, in the order of their numbers."""
    folders = (
        path for path in (run / "torchinductor").glob("model_*") if (path / "output_code.py").is_file()
    )
    return sorted(folders, key=lambda path: (path.stat().st_mtime_ns, path.name))


def dumped_graph(folder: Path) -> GraphRecord:
    """Return what is known of a graph whose compile nobody saw: it wrote its code."""
    is_backward = "_backward_" in folder.name
    return GraphRecord(folder.name, None, "backward" if is_backward else None, (), None, finished=True)
