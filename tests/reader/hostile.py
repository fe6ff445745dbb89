"""Ways to damage a dump, and a look at it through every verb that must end with a sentence."""

from __future__ import annotations

import faulthandler
import io
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import FrameType

from inductor_probe.cli import run as probe
from inductor_probe.model.debug_dir import CompiledGraph, GraphDir
from inductor_probe.reader.debug_dir import read_graph
from tests.conftest import DUMPS

SECONDS = 20
"""No look at a damaged fixture takes a tenth of this: it only tells a hang from a slow machine."""
VERBS = ("layouts", "nodes", "kernels", "show", "fusion", "check", "runs", "diff")
GRAPHS = [
    DUMPS / name
    for name in (
        "torch-2.13.0-cpu/aa_separable_cl",
        "torch-2.13.0-cpu/dynamic_shapes",
        "torch-2.1.2-cpu/layernorm_grad",
        "torch-2.11.0-cuda/foreach_adam",
    )
]


@contextmanager
def limited(what: object = "") -> Iterator[None]:
    """Raise where the body takes too long; where not even that helps, say where it hangs, and end."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"took more than {SECONDS} s: {what}")

    before = signal.signal(signal.SIGALRM, stop)
    faulthandler.dump_traceback_later(4 * SECONDS, exit=True)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)


def read(graph: Path) -> CompiledGraph:
    """Read a graph's folder, in bounded time. Whatever is in it, this returns."""
    with limited(graph):
        return read_graph(GraphDir(graph, 0, None))


def look(verb: str, graph: Path) -> tuple[int, str, str]:
    """Run a verb on the run of a graph; return its status and what it said. Nothing may escape."""
    run = str(graph.parents[1])
    arguments = {"layouts": [run], "diff": [run, run], "show": [str(graph)], "fusion": [str(graph)]}.get(
        verb, [run]
    )
    out, err = io.StringIO(), io.StringIO()
    with limited(f"probe {verb} {graph}"), redirect_stdout(out), redirect_stderr(err):
        status = probe([verb, *arguments])
    return status, out.getvalue(), err.getvalue()


def assert_ends_well(verb: str, graph: Path) -> None:
    """A verb ends with a status of its own and a sentence; a bug would be told as an internal error."""
    status, _, err = look(verb, graph)
    assert status in (0, 1, 2), f"probe {verb} {graph}"
    assert "internal error" not in err, f"probe {verb} {graph}: {err}"
    assert "Traceback" not in err


Damage = Callable[[bytes], bytes]
DAMAGES: dict[str, Damage] = {
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "cr": lambda data: data.replace(b"\n", b"\r"),
    "utf16": lambda data: data.decode().encode("utf-16"),
    "utf8 with a mark": lambda data: b"\xef\xbb\xbf" + data,
    "latin1": lambda data: data + "größe\n".encode("latin-1"),
    "nul at the start": lambda data: b"\0" + data,
    "nul in the middle": lambda data: data[: len(data) // 2] + b"\0" + data[len(data) // 2 :],
    "no line ends": lambda data: data.replace(b"\n", b" "),
    "twice": lambda data: data + data,
    "reversed lines": lambda data: b"\n".join(reversed(data.split(b"\n"))),
    "indented": lambda data: b"".join(b"    " + line for line in data.splitlines(keepends=True)),
    "no numbers": lambda data: data.translate(None, b"0123456789"),
    "no brackets": lambda data: data.translate(None, b"[]{}()"),
    "no quotes": lambda data: data.translate(None, b"\"'"),
    "huge numbers": lambda data: data.replace(b"1", b"1" * 6000, 4),
    "huge exponent": lambda data: data.replace(b"1", b"1e999999", 4).replace(b"2", b"2**99999999", 4),
    "deep brackets": lambda data: data.replace(b"(", b"(" * 100_000, 1).replace(b"[", b"[" * 100_000, 1),
    "deep brackets closed": lambda data: data + b"\n" + b"(" * 50_000 + b")" * 50_000,
    "deep minus": lambda data: data.replace(b"= ", b"= " + b"-" * 50_000, 2),
    "deep calls": lambda data: data.replace(b"= ", b"= " + b"f(" * 5_000, 2),
    "deep sum": lambda data: data.replace(b"= ", b"= " + b"x + " * 20_000, 2),
    "deep attributes": lambda data: data.replace(b"= ", b"= a" + b".a" * 50_000 + b" + ", 2),
    "one long line": lambda data: data + b"x" * 10_000_000,
    "many spaces": lambda data: data.replace(b" ", b" " * 3000, 300),
    "escapes": lambda data: data.replace(b"buf0", b"\x1b]0;buf0\x07\xc2\x9b31m").replace(
        b"kernel", "\u202ekernel".encode()
    ),
    "other names": lambda data: data.replace(b"buf", b"b\xc3\xbcf"),
    "all one name": lambda data: data.replace(b"buf1", b"buf0").replace(b"op1", b"op0"),
}
