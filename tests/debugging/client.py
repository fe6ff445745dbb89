"""A client of the Debug Adapter Protocol, as small as the tests need: no part of debugpy is in it."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

ANSWER_S = 120
"""How long an answer may take before a test fails; a busy machine compiles slowly."""


def start(cwd: Path, *arguments: str) -> tuple[subprocess.Popen[str], int, list[str]]:
    """Start `probe debug`; return it with the port that it waits on, and what it said before."""
    process = subprocess.Popen(
        [sys.executable, "-m", "inductor_probe", "debug", *arguments, "--listen", "0"],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if match := re.search(r"waiting for a debugger on 127\.0\.0\.1:(\d+)", line):
            return process, int(match[1]), said
    raise AssertionError("".join(said))


class Client:
    """A conversation with an adapter that listens on this machine."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S)
        self._stream = self._socket.makefile("rwb")
        self._sent = 0
        self._events: list[dict[str, Any]] = []

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stream.close()
        self._socket.close()

    def attach(self, breakpoints: dict[str, list[int]] | None = None, **settings: Any) -> None:
        """Attach as editors do, with breakpoints of this client by file: lines."""
        self.ask("initialize", clientID="test", adapterID="debugpy", pathFormat="path", linesStartAt1=True)
        attach = self.send("attach", name="test", **settings)
        self.event("initialized")
        for file, lines in (breakpoints or {}).items():
            self.ask("setBreakpoints", source={"path": file}, breakpoints=[{"line": line} for line in lines])
        self.ask("configurationDone")
        self.answer(attach)

    def send(self, command: str, **arguments: Any) -> int:
        self._sent += 1
        request = {"seq": self._sent, "type": "request", "command": command, "arguments": arguments}
        body = json.dumps(request).encode()
        self._stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._stream.flush()
        return self._sent

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        return self.answer(self.send(command, **arguments))

    def answer(self, number: int) -> dict[str, Any]:
        while True:
            message = self._receive()
            if message["type"] == "response" and message["request_seq"] == number:
                assert message["success"], message
                return dict(message.get("body") or {})
            self._events.append(message)

    def happened(self, *names: str) -> str:
        """Wait for an event of one of `names`; return its name. `event` takes it."""
        while True:
            for message in self._events:
                assert message.get("success", True), message
                if message["type"] == "event" and message["event"] in names:
                    return str(message["event"])
            self._events.append(self._receive())

    def event(self, name: str) -> dict[str, Any]:
        """Return the body of the next event called `name`."""
        self.happened(name)
        at = next(i for i, message in enumerate(self._events) if message.get("event") == name)
        return dict(self._events.pop(at).get("body") or {})

    def stopped(self) -> tuple[int, list[dict[str, Any]]]:
        """Wait for a stop; return the thread, and its frames from the innermost one."""
        assert self.happened("stopped", "terminated") == "stopped", "it ran to its end without a stop"
        thread = int(self.event("stopped")["threadId"])
        return thread, self.ask("stackTrace", threadId=thread)["stackFrames"]

    def locals(self, frame: dict[str, Any]) -> dict[str, str]:
        scopes = self.ask("scopes", frameId=frame["id"])["scopes"]
        (scope,) = [scope for scope in scopes if scope["name"] == "Locals"]
        found = self.ask("variables", variablesReference=scope["variablesReference"])["variables"]
        return {variable["name"]: variable["value"] for variable in found}

    def evaluate(self, text: str, frame: dict[str, Any]) -> str:
        return str(self.ask("evaluate", expression=text, frameId=frame["id"], context="repl")["result"])

    def _receive(self) -> dict[str, Any]:
        length = 0
        while line := self._stream.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        assert length, "the adapter has closed the connection"
        return dict(json.loads(self._stream.read(length)))
