"""What runs code: one whole task, jobs, progress, cancellation, a frozen workload; mostly over stdio."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult

from inductor_probe.mcp_server.server import Server
from tests.mcp_server.talk import Answer, call, checked, talk, text_of

pytestmark = pytest.mark.filterwarnings("ignore")
NETWORK = """
import torch

print("a script prints")

@torch.compile
def mirrored(image):
    return image.flip(-1)

image = torch.randint(0, 255, (8, 3, 224, 224), dtype=torch.uint8)
for _ in range(3):
    mirrored(image)
"""


def over_stdio(root: Path, ask: Callable[[Client], Awaitable[Answer]], *words: str) -> Answer:
    """Start `probe mcp` as a client does, and return what `ask` makes of it."""
    command = ["-m", "inductor_probe", "mcp", "--root", str(root), *words]
    server = StdioServerParameters(command=sys.executable, args=command, env={**os.environ})

    async def session() -> Answer:
        async with Client(server) as client:
            return await ask(client)

    return asyncio.run(session())


@pytest.mark.compiles
@pytest.mark.takes(120)
def test_why_is_it_slow_and_what_proves_a_change(tmp_path: Path) -> None:
    """Seven calls at most: what an agent reads in one answer is what it asks in the next."""
    (tmp_path / "network.py").write_text(NETWORK)
    calls: list[str] = []
    steps: list[str] = []

    async def task(client: Client) -> dict[str, Any]:
        async def ask(tool: str, **arguments: Any) -> dict[str, Any]:
            async def step(progress: float, total: float | None, message: str | None) -> None:
                steps.append(message or "")

            result = checked(await client.call_tool(tool, arguments, progress_callback=step))
            assert not result.is_error, text_of(result)
            answer = result.structured_content or {}
            if "job" in answer:
                assert answer["estimate_s"] > 0
                return await ask(**{"tool": answer["rest"]["tool"], **answer["rest"]["arguments"]})
            calls.append(tool)
            return answer

        run = await ask("dump", script="network.py", label="slow")
        view = await ask("overview", program=run["data"]["label"], budget=0.3)
        name = view["data"]["costs"][0]["subject"]
        causes = await ask("why", first=name, target="slow")
        decision = causes["data"]["rows"][0]["causes"][0]["decision"]
        await ask("explain", code=decision["cause"])
        return await ask("whatif", program="slow", vectorise=[name], budget=0.5)

    proof = over_stdio(tmp_path, task, "--allow-run")
    assert calls == ["dump", "overview", "why", "explain", "whatif"]
    assert any(step.startswith("it takes about ") for step in steps)
    (graph,) = proof["data"]["graphs"]
    assert "vectorising cpp_fused_flip_0" in proof["answer"]
    assert {'"verdict"', '"busy"'} <= {*re.findall(r'"\w+"', json.dumps(graph))}


@pytest.mark.compiles
def test_edits_of_a_frozen_workload_are_judged_by_what_no_client_edits(tmp_path: Path) -> None:
    (tmp_path / "network.py").write_text(NETWORK)
    call(Server(tmp_path, allow_run=True), "dump", script="network.py", label="slow", wait_s=300)
    code = next(tmp_path.glob("torch_compile_debug/run_*/torchinductor/*/output_code.py")).read_text()
    kernel = code[code.index("cpp_fused_flip_0 =") : code.index("''')") + 4]
    (tmp_path / "edited.py").write_text(kernel.replace("= tmp0;", "= tmp0 + 1;"))
    workload = {"target": "slow", "variants": ["cpp_fused_flip_0_v2=edited.py"], "budget": 0.3, "own": False}
    server = Server(tmp_path, workload=workload)
    first = call(server, "bench", wait_s=300)
    bench = next(tmp_path.glob("torch_compile_debug/run_*/torchinductor/*/output_code_bench.py"))
    bench.write_text("raise SystemExit('the client edited the check')\n")
    again = call(server, "bench", wait_s=300)
    for result in (first, again):
        assert "wrong" in text_of(result).lower(), text_of(result)


def _below(folder: Path) -> list[str]:
    """Return the processes that work in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == folder:
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


SLEEPS = """
import pathlib, time
pathlib.Path("begun").touch()
time.sleep(600)
"""


async def _begun(folder: Path) -> None:
    while not (folder / "begun").exists():
        await asyncio.sleep(0.05)


async def _gone(folder: Path) -> None:
    while any("sleeps.py" in command for command in _below(folder)):
        await asyncio.sleep(0.05)


def test_work_that_the_client_takes_back_ends(tmp_path: Path) -> None:
    (tmp_path / "sleeps.py").write_text(SLEEPS)

    async def take_back(client: Client) -> None:
        calling = asyncio.create_task(client.call_tool("dump", {"script": "sleeps.py"}))
        await asyncio.wait_for(_begun(tmp_path), 120)
        calling.cancel()
        await asyncio.wait_for(_gone(tmp_path), 60)

    over_stdio(tmp_path, take_back, "--allow-run")


def test_long_work_is_a_job_that_can_be_ended(tmp_path: Path) -> None:
    (tmp_path / "sleeps.py").write_text(SLEEPS)

    async def end(client: Client) -> list[CallToolResult]:
        begun = await client.call_tool("dump", {"script": "sleeps.py", "wait_s": 0})
        rest = (begun.structured_content or {})["rest"]
        await asyncio.wait_for(_begun(tmp_path), 120)
        waited = await client.call_tool(rest["tool"], {**rest["arguments"], "wait_s": 0.1})
        ended = await client.call_tool(rest["tool"], {**rest["arguments"], "cancel": True})
        await asyncio.wait_for(_gone(tmp_path), 60)
        return [begun, waited, ended, await client.call_tool(rest["tool"], rest["arguments"])]

    begun, waited, ended, after = over_stdio(tmp_path, end, "--allow-run")
    assert (begun.structured_content or {})["estimate_s"] > 0
    assert (waited.structured_content or {})["job"] == (begun.structured_content or {})["job"]
    assert "was ended" in text_of(ended)
    assert after.is_error
    assert "[interrupted]" in text_of(after)


def test_work_ends_with_its_server(tmp_path: Path) -> None:
    (tmp_path / "sleeps.py").write_text(SLEEPS)

    async def leave(client: Client) -> None:
        await client.call_tool("dump", {"script": "sleeps.py", "wait_s": 0})
        await asyncio.wait_for(_begun(tmp_path), 120)

    over_stdio(tmp_path, leave, "--allow-run")
    asyncio.run(asyncio.wait_for(_gone(tmp_path), 60))


def test_a_script_that_fails_says_what_it_printed(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("print('about to fail')\nraise ValueError('no such weight')\n")
    result = talk(
        Server(tmp_path, allow_run=True), lambda c: c.call_tool("overview", {"program": "fails.py"})
    )
    assert result.is_error
    assert "no such weight" in text_of(result)


def test_standard_output_is_the_protocol_alone(tmp_path: Path) -> None:
    """Each line is JSON-RPC, whatever a script and its children print on their standard output."""
    (tmp_path / "prints.py").write_text(
        "import os\nprint('x' * 99)\nos.write(1, b'raw\\n')\nos.system('echo shell')\n"
    )
    version = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    messages = (
        {"id": 1, "method": "initialize", "params": version},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "dump", "arguments": {"script": "prints.py"}}},
    )
    command = [sys.executable, "-m", "inductor_probe", "mcp", "--allow-run"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            process.stdin.flush()
        lines = []
        while not lines or json.loads(lines[-1]).get("id") != 2:
            lines.append(process.stdout.readline())
        process.stdin.close()
        lines += process.stdout.readlines()
        errors = process.stderr.read()
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in lines)
    assert "shell" in errors


def test_without_the_sdk_the_command_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['mcp'] = None; from inductor_probe.cli import run; sys.exit(run(['mcp']))"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert ran.stderr == ("error: probe mcp needs the package mcp\nhint: pip install 'inductor_probe[mcp]'\n")
