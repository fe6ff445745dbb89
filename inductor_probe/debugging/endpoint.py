"""Where the debugger listens."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass

from inductor_probe.errors import ProbeError

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Endpoint:
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


def read_endpoint(text: str) -> Endpoint:
    """Return the endpoint that `PORT` or `HOST:PORT` names; port 0 is any free one.

    Raises:
        ProbeError: it names none.
    """
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not port.isascii() or int(port) > 65535:
        raise ProbeError(f"--listen {text} is not [HOST:]PORT", "for example --listen 5678")
    return Endpoint(host.strip("[]") or LOOPBACK, int(port) or _free_port(host.strip("[]") or LOOPBACK))


def _free_port(host: str) -> int:
    """Return a port that nobody listens on now: the editor is told the number before the child starts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as taken:
        try:
            taken.bind((host, 0))
        except OSError as error:
            raise ProbeError(f"cannot listen on {host}: {error.strerror or error}") from error
        return int(taken.getsockname()[1])
