"""A process that has imported `probe`, and forks for each command of a test: a tenth of the time of a start.

A worker of pytest has one, started with its first command (`ForkServer`); this file is what it runs, too.
The fork runs `python -m inductor_probe` as Python does: by runpy, in the folder, with the environment,
arguments and files of standard input, output and error that it is sent. What Python reads as it starts cannot
be sent to a process that has started: see `can_run`.
"""

from __future__ import annotations

import json
import os
import resource
import runpy
import selectors
import socket
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO

FRESH_VERBS = {"dump", "debug", "bench-kernel", "sweep-configs", "export-cpp", "doctor"}
"""They start processes or ask for the machine: a process of their own is a part of what is tested."""
_STARTS_NOTHING = {"--no-run", "--help", "--json-schema"}
"""With one of these they do neither."""
LEAVE_OUT_OWN_CALLS = "TESTS_LEAVE_OUT_OWN_CALLS"
"""A variable of a command that is to leave them out: see `leave_out_own_calls`."""
_AT_START = ("PYTHON", "LANG", "LC_", "LD_", "MALLOC", "GLIBC", "OMP_", "TZ", "VIRTUAL_ENV")
_WARM = str(Path(__file__).with_name("warm"))
_ROOMS = (
    "cli",
    "api",
    "report",
    "analysis",
    "bench_file",
    "variants",
    "reader",
    "discovery",
    "store",
    "backends",
)


class ForkServer:
    """Runs `probe` commands in forks of one process, one at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._environment: dict[str, str] = {}

    def can_run(
        self, arguments: list[str], environment: Mapping[str, str], fresh: Collection[str] = FRESH_VERBS
    ) -> bool:
        """Tell whether a fork behaves as a fresh process does for this command and environment.

        Args:
            fresh: verbs that are to have a process of their own.
        """
        starts = {*fresh}.intersection(arguments[:2]) and not _STARTS_NOTHING.intersection(arguments)
        return not starts and read_at_start(environment) == read_at_start(self._environment or os.environ)

    def run(
        self,
        arguments: list[str],
        cwd: Path,
        environment: Mapping[str, str],
        limits: Mapping[int, int] = MappingProxyType({}),
    ) -> subprocess.CompletedProcess[str]:
        """Run `probe` and wait, as `subprocess.run` does with pipes for its output.

        Args:
            limits: of the process, as `resource.setrlimit` takes them.
        """
        server = self._started()
        request = json.dumps(
            {
                "arguments": arguments,
                "cwd": str(cwd),
                "environment": dict(environment),
                "limits": [*limits.items()],
            }
        ).encode()
        out_read, out_write = os.pipe()
        error_read, error_write = os.pipe()
        with Path(os.devnull).open("rb") as nothing:
            header = len(request).to_bytes(8, "big")
            socket.send_fds(server, [header], [nothing.fileno(), out_write, error_write])
            server.sendall(request)
        os.close(out_write)
        os.close(error_write)
        out, error = read_all(out_read, error_read)
        answer = received(server, 4)
        assert len(answer) == 4, self._process and self._process.communicate()
        status = int.from_bytes(answer, "big", signed=True)
        return subprocess.CompletedProcess(arguments, status, out.decode(), error.decode())

    def close(self) -> None:
        """End the process: it ends when nobody is at the other side of its socket."""
        if self._process and self._socket:
            self._socket.close()
            self._process.communicate()
            self._process = self._socket = None

    def _started(self) -> socket.socket:
        if self._socket is None:
            self._socket, theirs = socket.socketpair()
            self._environment = dict(os.environ)
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, __file__, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,  # Python's own files are made for pipes, as a command's are
                    stderr=subprocess.PIPE,
                    pass_fds=[theirs.fileno()],
                )
        return self._socket


def read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that Python and the C library read as a process starts.

    But for the path of a test's own (`tests/torch_server.py`), where nothing is that a reading verb imports.
    """
    variables = {name: value for name, value in environment.items() if name.startswith(_AT_START)}
    paths = variables.pop("PYTHONPATH", "").split(os.pathsep)
    return {**variables, "PYTHONPATH": os.pathsep.join(path for path in paths if path != _WARM)}


def read_all(*descriptors: int) -> list[bytes]:
    """Read pipes to their ends, whichever is written to."""
    texts: dict[IO[bytes], bytearray] = {
        os.fdopen(descriptor, "rb", buffering=0): bytearray() for descriptor in descriptors
    }
    with selectors.DefaultSelector() as selector:
        for file in texts:
            selector.register(file, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                file = key.fileobj  # type: ignore[assignment]  # as registered
                if piece := file.read(1 << 16):
                    texts[file] += piece
                else:
                    selector.unregister(file)
                    file.close()
    return [bytes(text) for text in texts.values()]


def received(connection: socket.socket, size: int) -> bytes:
    """Receive `size` bytes; fewer where the other side has ended."""
    pieces = bytearray()
    while len(pieces) < size and (piece := connection.recv(size - len(pieces))):
        pieces += piece
    return bytes(pieces)


def import_rooms() -> None:
    """Import what reading verbs import, which nothing is done by."""
    import gc  # noqa: PLC0415 - a command's own process need not have it
    import pkgutil  # noqa: PLC0415
    from importlib import import_module  # noqa: PLC0415

    for room in _ROOMS:
        package = import_module(f"inductor_probe.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    assert "torch" not in sys.modules
    gc.freeze()  # what is here stays: a fork's collector need not touch, and so copy, it


def leave_out_own_calls() -> None:
    """Do as if nobody had asked for the call of the user's program, which runs a script three times."""
    from inductor_probe.api import own_call  # noqa: PLC0415 - for some commands alone
    from inductor_probe.model.own_call import NoOwnCall  # noqa: PLC0415 - as above

    own_call.own_calls = lambda *_, **__: ((), NoOwnCall("not-asked"))


def next_command(connection: socket.socket) -> list[str]:
    """Fork for each command that comes; return its arguments in the fork, which has become its process."""
    while True:
        header, descriptors, _, _ = socket.recv_fds(connection, 8, 3)
        if not header:
            os._exit(0)
        request = json.loads(received(connection, int.from_bytes(header, "big")))
        if pid := os.fork():
            for descriptor in descriptors:
                os.close(descriptor)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            connection.sendall(status.to_bytes(4, "big", signed=True))
            continue
        connection.close()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["environment"])
        for limit, value in request["limits"]:
            resource.setrlimit(limit, (value, value))
        return list(request["arguments"])


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file
    import_rooms()
    with socket.socket(fileno=int(sys.argv[1])) as at_tests:
        sys.argv[1:] = next_command(at_tests)
    if os.environ.pop(LEAVE_OUT_OWN_CALLS, None):
        leave_out_own_calls()
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - as `python -m` does
    runpy.run_module("inductor_probe", run_name="__main__", alter_sys=True)
