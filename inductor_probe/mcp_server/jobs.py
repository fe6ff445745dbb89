"""Calls at work, each in a process; of what runs code one at a time, with how long it takes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.machine.python_child import python_command
from inductor_probe.mcp_server.tools import Tool

_ENDS_S = 15.0
"""A call that is taken back has so long to end what it started, and to put away what it made."""
_LONGEST = 64 << 20
"""Bytes of a line: a page of a run, as a resource, is one."""
_PRINTED = 12
_KEPT = 50
"""Jobs that have ended, whose answers can still be asked for."""


class Job:
    """A call at work, or its answer.

    Attributes:
        id: for the client. estimate_s: how long it takes, in seconds. step: what it does now.
    """

    def __init__(self, number: int, tool: str, estimate_s: float, work: Callable[[Job], Any]) -> None:
        self.id = f"{tool}-{number}"
        self.tool = tool
        self.estimate_s = estimate_s
        self.step = "starting"
        self._begin = time.monotonic()
        self.task: asyncio.Task[dict[str, Any]] = asyncio.create_task(work(self))

    @property
    def elapsed_s(self) -> float:
        """Seconds since it was asked for."""
        return round(time.monotonic() - self._begin, 1)

    async def end(self) -> None:
        """End it, and wait until its process is gone."""
        self.task.cancel()
        with suppress(asyncio.CancelledError, ProbeError):
            await self.task


class Jobs:
    """The calls of a server.

    Args:
        root: below which they work.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._jobs: dict[str, Job] = {}
        self._took: dict[tuple[str, str], float] = {}
        self._number = 0
        self._alone: asyncio.Lock | None = None

    def start(self, tool: Tool, order: dict[str, Any], budget: float) -> Job:
        """Start a call of what runs code, behind those before it. `budget`: what it measures, in seconds."""
        self._number += 1
        self._alone = self._alone or asyncio.Lock()
        key = (tool.name, json.dumps(order["arguments"], sort_keys=True))
        estimate = self._took.get(key, tool.takes_s + budget)
        alone = self._alone

        async def work(job: Job) -> dict[str, Any]:
            job.step = "waiting for the one before it"
            async with alone:
                begin = time.monotonic()
                job.step = f"{tool.name} is at work"
                event = await self.call(order, job)
            self._took[key] = round(time.monotonic() - begin, 1)
            return event

        job = Job(self._number, tool.name, estimate, work)
        self._jobs[job.id] = job
        for ended in [name for name, one in self._jobs.items() if one.task.done()][:-_KEPT]:
            del self._jobs[ended]
        return job

    def find(self, name: str) -> Job:
        """Return a job.

        Raises:
            NotFoundError: there is none of that name.
        """
        if name not in self._jobs:
            raise NotFoundError(
                f"there is no job {name}", f"jobs are {', '.join(self._jobs) or 'not there yet'}"
            )
        return self._jobs[name]

    async def end(self) -> None:
        """End all that is at work."""
        await asyncio.gather(*(job.end() for job in self._jobs.values()))

    async def call(self, order: dict[str, Any], job: Job | None = None) -> dict[str, Any]:
        """Carry out an order in a process, which ends with this call whatever becomes of it.

        Raises:
            ProbeError: it could not be done.
        """
        process = await asyncio.create_subprocess_exec(
            *python_command(Path(__file__).with_name("child.py")),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self._root,
            limit=_LONGEST,
            start_new_session=True,
        )
        orders, events, errors = process.stdin, process.stdout, process.stderr
        if orders is None or events is None or errors is None:
            raise ValueError("they are pipes")
        printed = asyncio.create_task(_printed(errors))
        event: dict[str, Any] = {}
        try:
            orders.write(json.dumps({**order, "root": str(self._root)}).encode() + b"\n")
            while line := await events.readline():
                event = json.loads(line)
                if job is not None and "step" in event:
                    job.step = event["step"]
                elif "step" not in event:
                    break
        finally:
            orders.close()
            await asyncio.shield(_ended(process))
            lines = await asyncio.shield(printed)
        if "answer" not in event:
            failure = event.get("error") or {
                "code": "failed",
                "message": f"it ended with status {process.returncode}",
            }
            hint = failure.get("hint")
            if lines and failure["code"] in ("run-failed", "failed", "internal"):
                hint = f"{hint or ''}\nprinted last:\n" + "\n".join(lines)
            raise ProbeError(failure["message"], hint, code=failure["code"])
        return event


async def _printed(stream: asyncio.StreamReader) -> list[str]:
    """Pass on what a process prints on standard error to that of the server; return the last lines."""
    last: deque[str] = deque(maxlen=_PRINTED)
    rest = ""
    while block := await stream.read(1 << 16):
        text = block.decode(errors="replace")
        with suppress(OSError):
            sys.stderr.write(text)
            sys.stderr.flush()
        *lines, rest = (rest + text)[-4000:].split("\n")
        last.extend(line.strip()[:200] for line in lines if line.strip())
    return [*last, rest.strip()[:200]] if rest.strip() else [*last]


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Let a process end whose orders have ended, which it hears as Ctrl-C. One that does not is killed."""
    try:
        await asyncio.wait_for(process.wait(), _ENDS_S)
    except asyncio.TimeoutError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
