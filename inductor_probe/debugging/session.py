"""`debug`: a dump whose child stops for a debugger, where that listens, and how editors attach to it."""

from __future__ import annotations

import ipaddress
import json
import os
import platform
import socket
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct

from inductor_probe.capture import DumpResult, Program, dump
from inductor_probe.debugging.breakpoints import Breakpoint
from inductor_probe.errors import ProbeError
from inductor_probe.files import write_whole
from inductor_probe.model.codec import to_json

NO_DEBUGPY = (
    "debugpy is not installed in this environment",
    "pip install debugpy, or stay in the terminal with --pdb",
)
_CHILD = Path(__file__).with_name("child.py")
_SETTINGS = {
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # kernels are compiled in this process, where it can stop
    "TORCHINDUCTOR_AUTOTUNE_IN_SUBPROC": "0",
    "TORCHINDUCTOR_FX_COMPILE_MODE": "NORMAL",
    # Dynamo evaluates frames itself; pydevd's own way of doing so (Python 3.10) would take its place.
    "PYDEVD_USE_FRAME_EVAL": "NO",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # warns of Python's frozen modules, in which nobody stops here
}


class Endpoint(Struct, frozen=True):
    """An address that a client connects to."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it: whoever reaches a debugger runs code as its user."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def reached(self) -> Endpoint:
        """The address for clients: this machine's name where the debugger listens on all of its addresses."""
        everywhere = self.host in ("0.0.0.0", "::", "")  # noqa: S104 - compared, not listened on
        return Endpoint(platform.node(), self.port) if everywhere else self


def read_endpoint(text: str) -> Endpoint:
    """Return the endpoint that `PORT` or `HOST:PORT` names; port 0 is any free one.

    Raises:
        ProbeError: it names none.
    """
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not port.isascii() or int(port) > 65535:
        raise ProbeError(f"invalid address --listen {text}: write [HOST:]PORT", "for example --listen 5678")
    host = host.strip("[]") or "127.0.0.1"
    return Endpoint(host, int(port) or _free_port(host))


def _free_port(host: str) -> int:
    """Return a port that nobody listens on now: the editor gets the number before the child starts."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            raise ProbeError(f"cannot listen on {host}: {error.strerror or error}") from error
        return int(probe.getsockname()[1])


def debug(
    script: Path, breakpoints: Sequence[Breakpoint], endpoint: Endpoint | None, **options: Any
) -> DumpResult:
    """Dump `script`, stopping at `breakpoints` for a client that attaches at `endpoint`; with pdb if None.

    The script waits until a client is there. Options, and further errors, are those of `capture.dump`.

    Raises:
        ProbeError: debugpy is not installed; nothing could stop pdb.
        RunFailedError: the endpoint is taken; no client came before Ctrl-C. There is no run then.
    """
    if endpoint is None and not breakpoints:
        raise ProbeError("pdb has nowhere to stop", "name a place, for example --break fusion")
    if endpoint is not None and find_spec("debugpy") is None:
        raise ProbeError(*NO_DEBUGPY)
    arguments = (json.dumps(to_json(tuple(breakpoints))), str(endpoint) if endpoint else "pdb")
    return dump(
        script, **options, record=False, program=Program(_CHILD, arguments, _SETTINGS, is_debugger=True)
    )


def offer_launch_configuration(folder: Path, endpoint: Endpoint) -> str | None:
    """Write `.vscode/launch.json` in `folder` if there is none; return what to print for the user.

    A file that exists is the user's, with comments in it: it is left as it is, and the text has the
    configuration to paste. None where it has one of that name, which holds the address.

    Raises:
        ProbeError: the file cannot be written.
    """
    address = endpoint.reached
    configuration: dict[str, Any] = {
        "name": f"probe debug {address}",
        "type": "debugpy",
        "request": "attach",
        "connect": {"host": address.host, "port": address.port},
        "justMyCode": False,
    }
    if not address.is_loopback:  # the editor may run on another machine, with the files elsewhere
        configuration["pathMappings"] = [{"localRoot": "${workspaceFolder}", "remoteRoot": str(folder)}]
    path = folder / ".vscode" / "launch.json"
    shown = path.relative_to(folder)
    if os.path.lexists(path):
        text = ""
        with suppress(OSError):
            text = path.read_text("utf-8", errors="replace")
        if f'"{configuration["name"]}"' in text:
            return None
        return f"add this to the configurations in {shown}:\n{json.dumps(configuration, indent=4)}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ProbeError(f"cannot make {path.parent}: {error.strerror or error}") from error
    write_whole(path, json.dumps({"version": "0.2.0", "configurations": [configuration]}, indent=4) + "\n")
    return f"wrote {shown}"


def instructions(endpoint: Endpoint) -> tuple[tuple[str, str], ...]:
    """Return editors, and what to do in each to attach."""
    address = endpoint.reached
    table = (
        f'{{ type = "python", request = "attach", justMyCode = false, '
        f'connect = {{ host = "{address.host}", port = {address.port} }} }}'
    )
    return (
        ("VS Code", f'Run and Debug, "probe debug {address}"'),
        ("PyCharm", f"Run, Edit Configurations, Attach to DAP: remote address {address}"),
        ("nvim-dap", f':lua require("dap").run({table})'),
    )
