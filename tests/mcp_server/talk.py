"""Talking to the server as a client does, with what varies masked."""

from __future__ import annotations

import asyncio
import json
import re
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from mcp import Client
from mcp.types import CallToolResult

from inductor_probe.mcp_server.server import Server

Answer = TypeVar("Answer")
LARGEST = 8000
"""Bytes of a whole result as JSON."""


def talk(server: Server, ask: Callable[[Client], Awaitable[Answer]]) -> Answer:
    """Connect a client in memory, and return what `ask` makes of it."""

    async def session() -> Answer:
        async with Client(server.mcp) as client:
            return await ask(client)

    return asyncio.run(session())


def call(server: Server, tool: str, **arguments: Any) -> CallToolResult:
    """Call a tool, and hold its answer to what holds for all."""
    return checked(talk(server, lambda client: client.call_tool(tool, arguments)))


def checked(result: CallToolResult) -> CallToolResult:
    """Return a result that is small, and whose sentence stands in both of its parts."""
    assert len(result.model_dump_json(by_alias=True, exclude_none=True).encode()) <= LARGEST
    if not result.is_error:
        data = result.structured_content or {}
        assert data["answer"]
        assert not data.get("cut") or data["rest"]["tool"]
        for rows in (value for value in data.get("data", {}).values() if isinstance(value, list)):
            assert len(rows) <= 20
    return result


def text_of(result: CallToolResult) -> str:
    """Return the text of a result."""
    return "".join(getattr(part, "text", "") for part in result.content)


def transcript(result: CallToolResult, root: Path) -> str:
    """Return what a client reads, of `data` only its keys, without what varies."""
    structured = dict(result.structured_content or {})
    structured["data"] = [*structured.get("data", {})]
    values = [f"{key}: {json.dumps(value)}" for key, value in structured.items()]
    lines = [masked(line, root) for line in (*text_of(result).splitlines(), "--", *values)]
    folded = ([line] if len(line) <= 105 else textwrap.wrap(line, 100) for line in lines)
    return "".join(f"{line}\n" for part in folded for line in part)


def masked(text: str, root: Path) -> str:
    """Return a text without what varies."""
    for pattern, mask in (
        (re.escape(str(root)), "ROOT"),
        (r"run_\d{4}(_\d\d){5}_\d{6}-pid_\d+", "RUN"),
        (r"\b\d+ (s|min|h|d|weeks?|months?|years?)$", "AGE"),
    ):
        text = re.sub(pattern, mask, text, flags=re.MULTILINE)
    return text
