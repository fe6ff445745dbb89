"""A process that has imported torch, and forks in place of those of probe that begin with importing it.

That takes four of the six seconds of processor time of a small dump, and most of those of a bench file that
is timed for a moment. The fixture `warm` (`conftest.py`) puts `tests/warm` first in the PYTHONPATH of a file
of tests; the `sitecustomize.py` there hands over to this process what is about to run
`capture/supervisor.py`, `capture/own_child.py`, `accuracy_checks/child.py`, `harness/server.py`,
`op_checks/worker.py`, `assembly/triton_child.py`, `machine/torch_child.py`, two programs of benchmarks, or
three of tests that do nothing else, with its files, folder, environment and signals.

All that these programs do is then done as ever, but for one thing: in the script of a user, hooks are set
after torch is imported, as `ip.dump` does in a notebook. `test_torch_server.py` compares the two. What is
tested about hooks, signals, processes and imports themselves is tested without this, and a script that may
do something before it imports torch has a Python of its own.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import gc
import importlib
import json
import os
import random
import re
import resource
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

KINDS = ("dump", "bench", "interpret", "check-op", "ask")
OWNERS = "owners"
"""The socket to which those connect who use a server."""
WARM = Path(__file__).with_name("warm")
ONCE = Path(__file__).with_name("torch_once.py")
_LATER = {
    "TORCH_COMPILE_DEBUG_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "PYTHONPATH", "PATH",
    "COLUMNS", "LINES", "HOME", "PWD", "OLDPWD", "SHLVL", "_", "TMPDIR", "XDG_STATE_HOME", "XDG_CACHE_HOME",
    "PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER", "TESTS_TORCH_SERVER",
    # Those of a notebook's kernel, which torch reads none of.
    "JUPYTER_PATH", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR", "JPY_PARENT_PID", "MPLBACKEND",
    # An address in a process that has loaded kernels: each sets its own (`CppPythonBindingsCodeCache`).
    "_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR",
    "PYDEVD_USE_FRAME_EVAL", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM", "PAGER", "GIT_PAGER",
    # Of two places that read it, one acts as torch is imported: custom operators that alias fail, or warn.
    "CI",
}  # fmt: skip
"""Variables that act when they are asked for; any other may have been read as torch was imported."""
SCRIPT_CHILDREN = ("/capture/own_child.py", "/accuracy_checks/child.py")
"""They run a user's script as it is, and get the process that started them as their first argument."""
_OF_RAY = "RAY_"
"""In names of variables that importing Ray sets: a worker that has run its tests has them from then on."""
_THREADS = "OMP_NUM_THREADS"
_HIGH = 400
"""Descriptors from here on are for a moment alone: a fork gets those of the process that it stands for."""
_AT_START = {
    "TORCH_WARM_POOL": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}
"""So that importing torch starts no process, no thread, and no CUDA, which a fork cannot use; taken away."""
_kept: list[object] = []
"""What a fork holds until its end."""
_NAMESPACES = ("mnt", "pid", "net", "user")
_LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE)


class TorchServer:
    """Serves the processes that tests start, while `environment` is theirs.

    All workers of a session share the one of `folder`: the first starts it, and it ends with the last.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            place = folder / "place"
            try:
                self.folder = Path(place.read_text())
                self._owner = connected(self.folder)
            except OSError:  # there is none yet, or it has ended with all who used it
                self.folder = Path(tempfile.mkdtemp())  # names of sockets are short
                start_server(self.folder)
                self._owner = connected(self.folder)
                place.write_text(str(self.folder))
        before = os.environ.get("PYTHONPATH")
        self.environment = {
            "TESTS_TORCH_SERVER": str(self.folder),
            "PYTHONPATH": os.pathsep.join([str(WARM), *([before] if before else [])]),
        }

    def used(self) -> AbstractContextManager[object]:
        """Return a context in which processes that tests start are forked here."""
        return patch.dict(os.environ, self.environment)

    @property
    def forks(self) -> list[str]:
        """The kind of each process that was forked in place of another."""
        return (self.folder / "forks").read_text().split()

    def close(self) -> None:
        """Leave it: it ends when no worker is left."""
        self._owner.close()


def connected(folder: Path) -> socket.socket:
    """Return a connection by which a server knows that somebody uses it."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(folder / OWNERS))
    except OSError:  # unclosed, it would be a warning, and so the fault of whatever test runs then
        connection.close()
        raise
    return connection


def start_server(folder: Path) -> None:
    """Start the server whose sockets are in a folder; it removes the folder at its end."""
    (folder / "forks").touch()
    listeners = []
    for name in (OWNERS, *KINDS):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(folder / name))
        listener.listen(64)
        listeners.append(listener)
    numbers = [listener.fileno() for listener in listeners]
    for number in numbers:
        os.set_inheritable(number, True)
    command = [sys.executable, __file__, str(folder), *map(str, numbers)]
    nothing = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    os.posix_spawn(sys.executable, command, os.environ, file_actions=[nothing])  # it may outlive this worker
    for listener in listeners:
        listener.close()


def next_program() -> list[str]:
    """Wait for the first process of a kind, and fork what imports torch for that kind.

    Returns in forks of that, with the command line of the process that it is to be. Those forks see by a pipe
    that this process has ended, which alone has the other end.
    """
    folder, owners, *listeners = sys.argv[1], *map(int, sys.argv[2:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the workers decide when this ends
    ended, alive = os.pipe()
    waiting = dict(zip(listeners, KINDS, strict=True))
    joining = socket.socket(fileno=owners)
    present: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        for number in (owners, *waiting):
            selector.register(number, selectors.EVENT_READ)
        while True:
            for number in [key.fd for key, _ in selector.select()]:
                if number == owners:
                    owner, _ = joining.accept()
                    present[owner.fileno()] = owner
                    selector.register(owner, selectors.EVENT_READ)
                elif number in present:
                    selector.unregister(number)
                    present.pop(number).close()
                    if not present:
                        shutil.rmtree(folder)
                        sys.exit()
                else:
                    selector.unregister(number)
                    if os.fork() == 0:
                        selector.close()
                        sockets = [joining.detach(), *(owner.detach() for owner in present.values())]
                        for other in (alive, *sockets, *(set(waiting) - {number})):
                            os.close(other)
                        return serve(waiting[number], number, ended)
                    os.close(number)
                    del waiting[number]


def serve(kind: str, listener: int, owner: int) -> list[str]:
    """Import torch, and fork for each process that comes; return in the fork, with its command line."""
    os.setpgid(0, 0)
    given = dict(os.environ)
    os.environ.update({**environment_of(kind), **_AT_START})
    runpy.run_path(str(ONCE), run_name="__main__")
    for name in ("capture.supervisor", "capture.child", "capture.in_process", "harness.jobs"):
        importlib.import_module(f"inductor_probe.{name}")
    if kind == "check-op":
        importlib.import_module("inductor_probe.op_checks.samples").operators()
    if kind in ("dump", "ask"):
        rewrite_what_is_watched()
    os.environ.clear()
    os.environ.update(given)
    gc.collect()
    gc.freeze()  # what is here stays: a fork's collector need not touch, and so copy, it
    gc.set_threshold(10_000, 10, 10)  # by the usual one, compiling is looked through every few milliseconds
    # A supervisor has none of what a dump needs, and who lists operators compiles nothing.
    expected = [given] if kind == "dump" else [{**given, **environment_of(kind)}]
    if kind in ("check-op", "ask"):
        expected.append(given)
    if len(list(Path("/proc/self/task").iterdir())) > 1:  # as importing a torch for CUDA may start them
        expected = []  # a fork has none but the thread that forks: it stands for no process
    with _Forks(socket.socket(fileno=listener), owner, expected) as forks:
        program = forks.next_program()
    note_fork(kind)
    return program


def rewrite_what_is_watched() -> None:
    """Make the code by which functions of torch report which way they go (`capture/branches`)."""
    from inductor_probe.capture import recorders  # noqa: PLC0415 - a process of a test imports this file, too
    from inductor_probe.capture.events import EventLog  # noqa: PLC0415
    from inductor_probe.capture.recorders.decision_log import DecisionLog  # noqa: PLC0415
    from inductor_probe.capture.torch_places import wraps_undone  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder, closing(EventLog(Path(folder))) as events, wraps_undone():
        for name, hook in recorders.hooks(DecisionLog(events, simulated=False)):
            if name in sys.modules:
                hook(sys.modules[name])


def note_fork(kind: str) -> None:
    """Write down that this process is a fork in place of another."""
    with Path(os.environ["TESTS_TORCH_SERVER"], "forks").open("a") as file:
        file.write(f"{kind}\n")


class _Forks:
    """The processes that stand for others, each with the socket on which that one waits."""

    def __init__(self, listener: socket.socket, owner: int, expected: Sequence[Mapping[str, str]]) -> None:
        self._listener, self._owner, self._expected = listener, owner, expected
        self._of: dict[int, tuple[int, socket.socket]] = {}  # by the descriptor of a process, with its id
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(owner, selectors.EVENT_READ)

    def __enter__(self) -> _Forks:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()

    def next_program(self) -> list[str]:
        """Fork for each process that comes; return in the fork, with its command line."""
        while True:
            for key, _ in self._selector.select():
                if key.fd == self._owner:
                    os._exit(0)
                elif key.fd == self._listener.fileno():
                    if (program := self._answer(self._listener.accept()[0])) is not None:
                        return program
                elif key.data is None and key.fd in self._of:
                    self._ended(key.fd)
                elif key.data in self._of:  # who waited for it was killed
                    self._selector.unregister(key.fd)
                    os.kill(self._of[key.data][0], signal.SIGKILL)

    def _answer(self, connection: socket.socket) -> list[str] | None:
        request, files = asked(connection)
        can_stand_for_it = any(is_as_here(request, expected) for expected in self._expected)
        pid = os.fork() if can_stand_for_it else 0
        if can_stand_for_it and not pid:
            self._selector.close()
            for own in (self._listener, connection, *(one for _, one in self._of.values())):
                own.detach()  # it is closed with all others
            return become(request, files)
        for number in files:
            os.close(number)
        with suppress(OSError):  # it has been killed
            connection.sendall(pid.to_bytes(8, "big"))
        if not pid:
            connection.close()
            return None
        process = os.pidfd_open(pid)
        self._of[process] = pid, connection
        self._selector.register(process, selectors.EVENT_READ)
        self._selector.register(connection, selectors.EVENT_READ, process)
        return None

    def _ended(self, process: int) -> None:
        pid, connection = self._of.pop(process)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        for registered in (process, connection):
            with suppress(KeyError):  # who waited was killed
                self._selector.unregister(registered)
        with suppress(OSError):
            connection.sendall(status.to_bytes(8, "big", signed=True))
        connection.close()
        os.close(process)


def environment_of(kind: str) -> dict[str, str]:
    """Return what processes of a kind have in their environment beside what tests give them."""
    from inductor_probe.bench.interpreted import _ENVIRONMENT as INTERPRETED  # noqa: PLC0415
    from inductor_probe.capture.process import environment  # noqa: PLC0415
    from inductor_probe.executors.server import ENVIRONMENT  # noqa: PLC0415 - who starts the server needs none
    from inductor_probe.op_checks.running import _environment  # noqa: PLC0415

    if kind == "bench":
        return ENVIRONMENT
    if kind == "interpret":  # what bench files run by then: triton reads it when it is imported
        return {**INTERPRETED, **ENVIRONMENT}
    if kind == "ask":  # `_environment` in assembly/triton.py; triton.knobs reads it when it compiles
        return {"TRITON_DISABLE_LINE_INFO": "0"}
    if kind == "check-op":
        return {**_environment(), **ENVIRONMENT}
    of_kind = environment(Path("/"), Path("/"))
    return {name: value for name, value in of_kind.items() if name not in _LATER}


def asked(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Receive what `tests/warm/sitecustomize.py` sends of its process, and its files."""
    header, files, _, _ = socket.recv_fds(connection, 8, 64)
    data = bytearray()
    while len(data) < int.from_bytes(header, "big"):
        data += connection.recv(1 << 16)
    return json.loads(data), files


def is_as_here(request: Mapping[str, Any], expected: Mapping[str, str]) -> bool:
    """Tell whether a process would have imported torch as it was imported here."""
    return bool(
        request["executable"] == sys.executable
        and request["flags"] == list(sys.flags)
        and (can_lead_session(request) or request["session"] == os.getsid(0))
        and request["namespaces"] == [str(Path(f"/proc/self/ns/{name}").readlink()) for name in _NAMESPACES]
        and request["cores"] == sorted(os.sched_getaffinity(0))
        and request["limits"] == [list(resource.getrlimit(limit)) for limit in _LIMITS]
        and at_import(with_threads_of(expected, request)) == at_import(expected)
        and (not runs_script(request["argv"][1:]) or imports_torch_first(script_of(request)))
    )


def with_threads_of(expected: Mapping[str, str], request: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment of a process, with as many threads as are here where a fork can have others.

    OpenMP reads the number as it is loaded, and torch has it from there: `torch.set_num_threads` sets both.
    """
    asked = dict(request["environment"])
    if runs_script(request["argv"][1:]) and asked.get(_THREADS, "").isdigit() and _THREADS not in expected:
        del asked[_THREADS]
    return asked


def runs_script(words: Sequence[str]) -> bool:
    """Tell whether a program runs a user's script as it is."""
    return words[0].endswith(SCRIPT_CHILDREN)


def script_of(request: Mapping[str, Any]) -> Path:
    """Return the script that such a program is to run: `own_child.py PARENT EVENTS ASKED OPTIONS SCRIPT`."""
    return Path(request["cwd"], request["argv"][6])


def can_lead_session(request: Mapping[str, Any]) -> bool:
    """Tell whether a fork may have a session of its own: one of a kernel's has no terminal to lose."""
    return bool(request["leads_session"]) or "JPY_PARENT_PID" in request["environment"]


def at_import(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that may act as Python or torch is loaded."""
    return {
        name: value
        for name, value in environment.items()
        if name not in _LATER and not name.startswith(_OF_RAY)
    }


def become(request: Mapping[str, Any], files: Sequence[int]) -> list[str]:
    """Give this fork what the process has that it stands for; return its command line."""
    if can_lead_session(request):
        os.setsid()
    else:
        os.setpgid(0, request["group"])
    high = [fcntl.fcntl(number, fcntl.F_DUPFD, _HIGH) for number in files]
    os.closerange(3, _HIGH)
    for number, place in zip(high, request["files"], strict=True):
        os.dup2(number, place)
        os.close(number)
    os.chdir(request["cwd"])
    set_environment(request["environment"])
    for signalled in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        is_default = signalled not in request["ignored"]
        signal.signal(signalled, signal_at_start(signalled) if is_default else signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, request["blocked"])
    random.seed()
    sys.modules["numpy"].random.seed()
    sys.path[:] = request["path"]
    sys.orig_argv[:] = request["argv"]
    return list(request["argv"][1:])


def signal_at_start(number: int) -> Any:
    """Return what Python does about a signal as it starts."""
    return signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL


def set_environment(environment: Mapping[str, str]) -> None:
    """Replace the environment of this process."""
    os.environ.clear()
    os.environ.update(environment)


def run(words: Sequence[str]) -> None:
    """Run `FILE ARGUMENTS` or `-c TEXT ARGUMENTS` as Python does."""
    if words[0] == "-c":
        sys.argv[:] = ["-c", *words[2:]]
        sys.path.insert(0, "")
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(words[1], main.__dict__)  # noqa: S102 - as Python does
        return
    sys.argv[:] = words
    sys.path.insert(0, str(Path(words[0]).resolve().parent))
    process: Any = sys.modules["inductor_probe.capture.process"]
    process.subprocess = SimpleNamespace(Popen=start_child)
    if runs_script(words):
        if (threads := os.environ.get(_THREADS, "")).isdigit():
            torch: Any = sys.modules["torch"]
            torch.set_num_threads(min(int(threads), torch.get_num_threads()))  # of the cores, as OpenMP does
        sys.argv[1] = str(os.getppid())  # it ends with the process that it is a fork of
        replace_before_the_script()
    runpy.run_path(words[0], run_name="__main__")


def replace_before_the_script() -> None:
    """Let hooks that are set from now on hold, when the script runs, in what torch has imported already."""
    from inductor_probe.capture import child  # noqa: PLC0415 - a process of a test imports this file, too
    from inductor_probe.capture.torch_places import wraps_undone  # noqa: PLC0415

    wraps, run_script = wraps_undone(), child.run_script
    _kept.append(wraps)  # until the end of the process
    replace_imported = wraps.__enter__()

    def replace_and_run(script: str, args: list[str]) -> None:
        replace_imported()
        run_script(script, args)

    child.run_script = replace_and_run


def start_child(command: Sequence[str], **options: Any) -> Any:
    """Fork for the script of a dump where it cannot tell; start a Python for any other."""
    if not script_may_fork(command, options):
        return subprocess.Popen(command, **options)
    sys.stderr.flush()
    if pid := os.fork():
        return SimpleNamespace(pid=pid, returncode=None)
    try:
        os._exit(status_of_script(command, options))
    finally:
        os._exit(1)


def script_may_fork(command: Sequence[str], options: Mapping[str, Any]) -> bool:
    """Tell whether a child of a dump imports torch at once, and as it was imported here."""
    from inductor_probe.capture.process import CHILD  # noqa: PLC0415 - it is loaded

    if list(command[:2]) != [sys.executable, str(CHILD)] or options["preexec_fn"] is not None:
        return False
    if not command[5].endswith(".py"):
        return False
    expected = {**os.environ, **environment_of("dump")}
    if json.loads(command[4])["target"]:
        from inductor_probe.capture.targets import ENVIRONMENT  # noqa: PLC0415 - as above

        expected |= ENVIRONMENT
    return (
        at_import(options["env"]) == at_import(expected)
        and options["env"].get("PYTHONPATH") == os.environ.get("PYTHONPATH")
        and imports_torch_first(Path(command[5]))
    )


def imports_torch_first(script: Path) -> bool:
    """Tell whether a script imports torch, and does nothing to what that reads, or about processes."""
    try:
        text = script.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
    unlike = r"\benviron\b|sys\.modules|sys\.argv\[0\]|subprocess|fork"
    return "import torch" in text and not re.search(unlike, text)


def status_of_script(command: Sequence[str], options: Mapping[str, Any]) -> int:
    """Run `child.py` as a Python that is started for it; return its status."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal_at_start(number))
    if options["stdout"] is not None:
        os.dup2(options["stdout"], 1)
    for descriptor in (int(file.name) for file in list(Path("/proc/self/fd").iterdir())):
        if descriptor > 2 and descriptor not in options["pass_fds"]:
            with suppress(OSError):
                os.close(descriptor)
    set_environment(options["env"])
    note_fork("script")
    sys.orig_argv[:] = command
    sys.argv[:] = command[1:]
    hooks: Any = sys.modules["inductor_probe.capture.hooks"]
    hooks.install = functools.partial(install_late, hooks.install)
    status = 0
    try:
        runpy.run_path(command[1], run_name="__main__")
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        if not isinstance(error.code, int | None):
            print(error.code, file=sys.stderr)
    except KeyboardInterrupt as error:
        sys.excepthook(type(error), error, error.__traceback__)
        end()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        status = 1
    end()
    return status & 0xFF


def end() -> None:
    """Do what Python does at the end of a process."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()


def install_late(install: Callable[..., None], events: Any, options: Any) -> None:
    """Set hooks where torch is there already, as in a notebook, and what it has read of the environment."""
    import torch._dynamo.config  # noqa: PLC0415 - a process of a test imports this file, too

    from inductor_probe.capture import in_process  # noqa: PLC0415
    from inductor_probe.capture.torch_places import wraps_undone  # noqa: PLC0415
    from inductor_probe.model.manifest import LOGS_DIR  # noqa: PLC0415

    root = torch._dynamo.config.default_debug_dir_root()
    torch._dynamo.config.debug_dir_root = root
    torch._logging._internal.LOG_TRACE_HANDLER.root_dir = os.path.join(root, "tlparse")  # noqa: PTH118
    wraps = wraps_undone()
    _kept.append(wraps)  # until the end of the process
    replace_imported = wraps.__enter__()
    before = dict(vars(sys.modules["torch.cuda"]))
    install(events, options)
    replace_imported()
    if options.target:
        answer_as_the_target(before)
    in_process._keep_logs(events.folder / LOGS_DIR, events)


def answer_as_the_target(before: Mapping[str, object]) -> None:
    """Let what asked about GPUs as torch was imported ask the simulated one.

    Args:
        before: the attributes of `torch.cuda` that the interface of dynamo to devices was made of.
    """
    cuda, interface = sys.modules["torch.cuda"], sys.modules["torch._dynamo.device_interface"].CudaInterface
    names = {id(function): name for name, function in before.items() if callable(function)}
    for attribute, value in list(vars(interface).items()):
        function = value.__func__ if isinstance(value, staticmethod) else value
        if (name := names.get(id(function))) is not None:
            new = getattr(cuda, name)
            setattr(interface, attribute, staticmethod(new) if isinstance(value, staticmethod) else new)
    for function in vars(sys.modules["torch.utils._triton"]).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file
    PROGRAM = next_program()
    run(PROGRAM)
