"""Python runs this at its start in tests that use `tests/torch_server.py`: see there.

That is asked to do the work of this process, which hands on signals until then, and ends as that ends.
Where it refuses, as a variable differs that torch reads at its import, this process goes on as if nothing
had been.
"""

import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - each start of a Python runs this
_PROGRAMS = {
    "/benchmarks/findings/asked.py": "ask",
    "/benchmarks/findings/calls.py": "ask",
    "/findings_program.py": "ask",  # of tests/test_findings.py
    "/inductor_probe/accuracy_checks/child.py": "ask",
    "/inductor_probe/assembly/triton_child.py": "ask",
    "/inductor_probe/capture/own_child.py": "ask",
    "/inductor_probe/capture/refusals.py": "ask",
    "/inductor_probe/capture/supervisor.py": "dump",
    "/inductor_probe/harness/server.py": "bench",
    "/inductor_probe/machine/torch_child.py": "ask",
    "/inductor_probe/op_checks/worker.py": "check-op",
    "/tests/bench_file/checked.py": "bench",
    "/tests/cpp_program/kernel_by_inductor.py": "ask",
}
_SIGNALS = (1, 2, 3, 15)  # SIGHUP, SIGINT, SIGQUIT, SIGTERM


def _kind():  # type: ignore[no-untyped-def]
    words = sys.orig_argv[1:]
    if words[:1] == ["-c"]:
        del words[:2]
    if words[1:2] == ["setup"]:  # of torch_child.py: what is asked there is also how torch is imported
        return None
    kind = next((kind for end, kind in _PROGRAMS.items() if words and words[0].endswith(end)), None)
    if kind == "bench" and os.environ.get("TRITON_INTERPRET"):
        return "interpret"
    return "check-op" if kind == "bench" and os.environ.get("TORCHINDUCTOR_FX_GRAPH_CACHE") == "0" else kind


def _hand_over(path):  # type: ignore[no-untyped-def]
    import array  # noqa: PLC0415
    import json  # noqa: PLC0415
    import resource  # noqa: PLC0415
    import signal  # noqa: PLC0415
    import socket  # noqa: PLC0415

    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        server.connect(path)
    except OSError:  # it has ended
        return
    open_here = [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208
    files = []
    for number in open_here:
        try:
            if os.get_inheritable(number):
                files.append(number)
        except OSError:  # that of the folder itself
            continue
    limits = (resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE)
    request = {
        "argv": sys.orig_argv,
        "executable": sys.executable,
        "flags": list(sys.flags),
        "path": sys.path,
        "cwd": os.getcwd(),  # noqa: PTH109
        "environment": dict(os.environ),
        "files": files,
        "namespaces": [os.readlink(f"/proc/self/ns/{name}") for name in ("mnt", "pid", "net", "user")],  # noqa: PTH115
        "cores": sorted(os.sched_getaffinity(0)),
        "leads_session": os.getsid(0) == os.getpid(),
        "session": os.getsid(0),
        "group": os.getpgid(0),
        "limits": [resource.getrlimit(limit) for limit in limits],
        "blocked": [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
        "ignored": [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_IGN],
    }
    data = json.dumps(request).encode()
    header = len(data).to_bytes(8, "big")
    try:
        server.sendmsg([header], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))])
        server.sendall(data)
        pid = int.from_bytes(_received(server, 8), "big")
    except OSError:  # it has ended
        pid = 0
    if not pid:
        server.close()
        return
    for number in _SIGNALS:
        if number not in request["ignored"]:
            signal.signal(number, lambda number, frame: os.kill(pid, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    for number in files:  # who reads from them is to see their end with that of the process which works
        os.close(number)
    answer = _received(server, 8)
    status = int.from_bytes(answer, "big", signed=True) if answer else -int(signal.SIGKILL)
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _received(server, size):  # type: ignore[no-untyped-def]
    data = b""
    while len(data) < size:
        piece = server.recv(size - len(data))
        if not piece:
            return b""
        data += piece
    return data


sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _FOLDER]  # noqa: PTH100
_folder = os.environ.get("TESTS_TORCH_SERVER")
if _folder and (_of := _kind()):
    _hand_over(f"{_folder}/{_of}")
