"""A headless Chromium that a test drives: pages are opened, clicked and typed into as by a person.

It is asked through two pipes (`--remote-debugging-pipe`): a message is JSON and ends with a zero byte.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_PATIENCE = 30.0
"""Seconds until something that is waited for counts as missing."""


def program() -> str | None:
    """Return the path of a browser, if there is one."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


@contextmanager
def browser(path: str, profile: Path) -> Iterator[Browser]:
    """Start a browser with an empty profile, and end it."""
    (input_end, to_it), (from_it, output_end) = os.pipe(), os.pipe()
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (input_end, output_end)]  # neither is 3 or 4
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    process = subprocess.Popen(
        [*("bash", "-c", f'exec "$0" "$@" 3<&{ends[0]} 4>&{ends[1]}', path, *options),
         *(f"--user-data-dir={profile}", "--window-size=1300,900", "--remote-debugging-pipe")],
        pass_fds=ends, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    for end in (input_end, output_end, *ends):
        os.close(end)
    try:
        with os.fdopen(to_it, "wb", 0) as requests, os.fdopen(from_it, "rb") as answers:
            yield Browser(requests, answers)
    finally:
        process.kill()
        process.wait()


class Browser:
    """One page of a browser. `faults` are the exceptions of its scripts, and what it could not load."""

    def __init__(self, requests: BinaryIO, answers: BinaryIO) -> None:
        self.faults: list[str] = []
        self._requests, self._answers, self._number = requests, answers, 0
        self._session: dict[str, str] = {}
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._session = {"sessionId": session}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def open(self, url: str) -> None:
        """Load a page."""
        self._ask("Page.navigate", url=url)
        self.wait_for(f"location.href == {json.dumps(url)} && document.readyState == 'complete'")

    def look(self, width: int, height: int, *, dark: bool = False, paper: bool = False) -> None:
        """Show pages in a window of this size, in the colours of a light or a dark system, or as printed."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._ask("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", media="print" if paper else "", features=[scheme])

    def busy(self) -> float:
        """Return the processor time of the page's main thread since the browser's start, in seconds."""
        self._ask("Performance.enable", timeDomain="threadTicks")
        metrics = self._ask("Performance.getMetrics")["metrics"]
        return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))

    def slow(self, factor: float) -> None:
        """Run pages as on a processor that is so many times slower."""
        self._ask("Emulation.setCPUThrottlingRate", rate=factor)

    def picture(self, *, whole: bool = False) -> bytes:
        """Return what is shown as PNG; with `whole` also what is below the window."""
        answer = self._ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return b64decode(answer["data"])

    def wait_for(self, expression: str) -> Any:
        """Wait until a JavaScript expression is true; return its value."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            if value := self._value(expression):
                return value
            time.sleep(0.02)
        raise AssertionError(f"not so: {expression} on {self._value('location.href')}; {self.faults}")

    def click(self, element: str) -> None:
        """Click in the middle of what an expression gives, once it can be seen and stays where it is."""
        found = (
            f"(e => {{ e?.scrollIntoView({{block: 'center', behavior: 'instant'}}); return e }})({element})"
        )
        box = "(b => b && b.width && [b.x + b.width / 2, b.y + b.height / 2])"
        before = None
        while before != (place := self.wait_for(f"{box}({found}?.getBoundingClientRect())")):
            before = place
            time.sleep(0.1)
        for kind in ("mousePressed", "mouseReleased"):
            self._ask(
                "Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1
            )

    def press(self, key: str) -> None:
        """Press a key, and let go of it."""
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, key=key, **(text if kind == "keyDown" else {}))

    def point(self, element: str) -> None:
        """Move the pointer to the middle of what an expression gives, where it can be seen."""
        box = f"(b => [b.x + b.width / 2, b.y + b.height / 2])({element}.getBoundingClientRect())"
        x, y = self.wait_for(box)
        self._ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self._ask("Input.insertText", text=text)

    def _value(self, expression: str) -> Any:
        message = self._send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return message.get("result", {}).get("result", {}).get("value")  # none of a page that is being left

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        message = self._send(method, **parameters)
        assert "error" not in message, f"{method}: {message['error']}"
        answer: dict[str, Any] = message["result"]
        return answer

    def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        request = {"id": self._number, "method": method, "params": parameters, **self._session}
        self._requests.write(json.dumps(request).encode() + b"\0")
        while (message := self._read()).get("id") != self._number:
            self._note(message.get("method"), message.get("params", {}))
        return message

    def _read(self) -> dict[str, Any]:
        text = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            assert byte, "the browser has ended"
            text += byte
        message: dict[str, Any] = json.loads(text)
        return message

    def _note(self, method: str | None, event: dict[str, Any]) -> None:
        match method:
            case "Runtime.exceptionThrown":
                self.faults.append(event["exceptionDetails"]["text"])
            case "Log.entryAdded" if event["entry"]["level"] == "error":
                self.faults.append(f"{event['entry']['text']} {event['entry'].get('url', '')}")
            case "Network.requestWillBeSent" if "//127.0.0.1:" not in (url := event["request"]["url"]):
                if url.startswith("http"):
                    self.faults.append(f"not of the site: {url}")
