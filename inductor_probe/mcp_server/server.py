"""The server: tools and resources of the Model Context Protocol, each call carried out by `jobs.Jobs`."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.server.mcpserver.tools import Tool as ServedTool
from mcp.types import CallToolResult, TextContent, ToolAnnotations

from inductor_probe import __version__
from inductor_probe.errors import ProbeError, near_names
from inductor_probe.mcp_server.confined import refuse_outside
from inductor_probe.mcp_server.jobs import Job, Jobs
from inductor_probe.mcp_server.tools import BY_NAME, OUTPUT_SCHEMA, TOOLS, Tool, asked_of, form_of

WAIT_S = 50.0
"""A call that takes longer is answered with the id of a job: many clients give up after a minute."""
_BEAT_S = 2.0
"""From progress to progress, in seconds."""

_INSTRUCTIONS = """\
inductor_probe explains what TorchInductor compiled: what was decided, why, what another decision would cost.
Slow: dump (with a label), overview, why NAME, whatif with what why offers: its verdict is the proof. Wrong: accuracy.
Names in answers (op0, buf3, kernels, labels) are arguments of other tools. A verdict with busy true was disturbed by \
other programs: ask again. Long work is answered with a job: call the same tool with {"job": ID}. Paths are below the \
root. Resources: probe://run/RUN, probe://run/RUN/GRAPH, probe://run/RUN/GRAPH/code."""
_READ_ONLY = " This server only reads: for dump, whatif, bench and accuracy the user starts it with --allow-run."


class _Tool(ServedTool):
    """A row of the table as the SDK serves it: its schema is that of the options' record, and so are its checks."""

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        """Carry out a call."""
        try:
            return await self.fn(arguments, context)
        except ProbeError as error:
            hint = f"\nhint: {error.hint}" if error.hint else ""
            raise ToolError(f"[{error.code}] {error.message}{hint}") from error


class Server:
    """What `probe mcp` serves.

    Args:
        root: below which clients read and write.
        allow_run: whether scripts and generated code may run.
        workload: arguments of `bench` that no client changes; see `read_workload`.
    """

    def __init__(self, root: Path, *, allow_run: bool = False, workload: Mapping[str, Any] | None = None) -> None:
        self.root = Path(os.path.realpath(root))
        self.allow_run = allow_run
        self.workload = workload
        self.jobs = Jobs(self.root)
        self.served = [tool for tool in TOOLS if self._is_served(tool)]
        about = _INSTRUCTIONS if allow_run or workload else _INSTRUCTIONS + _READ_ONLY
        self.mcp: MCPServer[None] = MCPServer(
            "inductor_probe", instructions=about, version=__version__, log_level="WARNING",
            tools=[self._tool(tool) for tool in self.served], lifespan=self._lifespan,
        )  # fmt: skip
        for uri, name in (("{run}", "run"), ("{run}/{graph}", "graph"), ("{run}/{graph}/code", "code")):
            self._serve_resource(f"probe://run/{uri}", name)

    def _is_served(self, tool: Tool) -> bool:
        return tool.runs != "all" or self.allow_run or (self.workload is not None and tool.name == "bench")

    @asynccontextmanager
    async def _lifespan(self, server: MCPServer[None]) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self.jobs.end()

    def _tool(self, tool: Tool) -> ServedTool:
        runs = tool.runs == "all" or (tool.runs == "scripts" and self.allow_run)
        annotations = ToolAnnotations(
            title=f"probe {(tool.verb or tool.name).replace('_', '-')}", read_only_hint=not runs,
            destructive_hint=False, idempotent_hint=not runs, open_world_hint=False,
        )  # fmt: skip

        async def call(arguments: dict[str, Any], context: Context[None, Any]) -> CallToolResult:
            return await self._call(tool, arguments, context)

        made = _Tool.from_function(call, tool.name, None, tool.about, "context", annotations)
        made.fn_metadata.output_schema = OUTPUT_SCHEMA
        made.parameters = tool.schema()
        if self.workload is not None and tool.name == "bench":
            made.description = f"{tool.about} Its arguments are frozen: {json.dumps(self.workload)}"
            shown = made.parameters["properties"]
            made.parameters["properties"] = {name: shown[name] for name in shown if name in _OF_FROZEN}
        return made

    async def _call(self, tool: Tool, arguments: dict[str, Any], context: Context[None, Any]) -> CallToolResult:
        """Carry out a call, or wait for one that is at work.

        Raises:
            ProbeError: it cannot be done, or may not.
        """
        if "job" in arguments:
            job = self.jobs.find(str(arguments["job"]))
            if arguments.get("cancel"):
                await job.end()
                return _result(f"{job.id} was ended", {"answer": f"{job.id} was ended"})
            return await self._wait(job, arguments, context, ends=False)
        order = {"tool": tool.name, "arguments": dict(arguments), "allow_run": self.allow_run}
        if self.workload is not None and tool.name == "bench":
            if fixed := next((name for name in arguments if name not in _OF_FROZEN), None):
                raise ProbeError(f"{fixed} is frozen: the workload of this server says what is measured", "leave it out")
            order |= {"arguments": {**arguments, **self.workload}, "frozen": True}
        form_of(order["arguments"])
        asked = asked_of(order["arguments"])
        refuse_outside(asked, self.root)
        options = tool.options(asked, allow_run=self.allow_run)
        if tool.runs == "nothing" or (tool.runs == "scripts" and not self.allow_run):
            event = await self.jobs.call(order)
            return _result(event["text"], event["structured"])
        job = self.jobs.start(tool, order, float(getattr(options, "budget", None) or 0))
        return await self._wait(job, arguments, context, ends=True)

    async def _wait(self, job: Job, arguments: Mapping[str, Any], context: Any, *, ends: bool) -> CallToolResult:
        """Wait for a job, with progress, for so long as the client does; it `ends` when the client takes the call back."""
        wait_s, begin = float(arguments.get("wait_s", WAIT_S)), job.elapsed_s
        await context.report_progress(job.elapsed_s, job.estimate_s, f"it takes about {job.estimate_s:.0f} s")
        try:
            while not job.task.done() and job.elapsed_s - begin < wait_s:
                await asyncio.wait({job.task}, timeout=min(_BEAT_S, max(wait_s - (job.elapsed_s - begin), 0.01)))
                total = job.estimate_s if job.elapsed_s < job.estimate_s else None
                await context.report_progress(job.elapsed_s, total, job.step)
        except asyncio.CancelledError:
            if ends:
                await asyncio.shield(job.end())
            raise
        if not job.task.done():
            sentence = f"{job.step}: {job.elapsed_s:.0f} s of about {job.estimate_s:.0f} s"
            rest = {"tool": job.tool, "arguments": {"job": job.id}}
            state = {"answer": sentence, "job": job.id, "estimate_s": job.estimate_s, "elapsed_s": job.elapsed_s}
            return _result(f"{sentence}; go on with {json.dumps(rest)}", {**state, "step": job.step, "rest": rest})
        if job.task.cancelled():
            raise ProbeError(f"{job.id} was ended", "call the tool again", code="interrupted")
        event = job.task.result()
        return _result(event["text"], event["structured"])

    def _serve_resource(self, uri: str, form: str) -> None:
        async def read(run: str, graph: str = "") -> str:
            parts = [unquote(run), unquote(graph)]
            try:
                refuse_outside(parts, self.root)
                event = await self.jobs.call({"uri": [*parts, form], "allow_run": False})
            except ProbeError as error:
                raise ResourceError(f"{error.message}; {error.hint}" if error.hint else error.message) from error
            return str(event["text"])

        async def of_run(run: str) -> str:
            return await read(run)

        async def of_graph(run: str, graph: str) -> str:
            return await read(run, graph)

        about = {"run": "The page of a run", "graph": "The page of a graph", "code": "output_code.py of a graph"}
        kind = "text/x-python" if form == "code" else "text/markdown"
        serve = self.mcp.resource(uri, name=form, description=about[form], mime_type=kind)
        serve(of_run if form == "run" else of_graph)


_OF_FROZEN = ("fields", "limit", "offset", "job", "cancel", "wait_s")


def _result(text: str, structured: dict[str, Any]) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=structured)


def read_workload(path: Path) -> dict[str, Any]:
    """Return a frozen workload: the arguments of `bench` in a file, read once.

        {"target": "flip", "kernel": "cpp_fused_flip_0", "variants": ["cpp_fused_flip_0_v2=edited.cpp"], "budget": 10}

    Inputs, check and verdict are those of the bench file that is made anew for each call: only the files that
    `variants` name are the client's.

    Raises:
        ProbeError: it is none.
    """
    from inductor_probe.files import read_text  # noqa: PLC0415 - for frozen workloads alone

    example = 'for example {"target": "flip", "variants": ["cpp_fused_flip_0_v2=edited.cpp"]}'
    try:
        workload = json.loads(read_text(path))
    except ValueError as error:
        raise ProbeError(f"{path} is no JSON: {error}", example) from error
    if not isinstance(workload, dict) or not workload.get("variants"):
        raise ProbeError(f"{path} names no variants, which a client may edit", example)
    if unknown := next((name for name in workload if name not in BY_NAME["bench"].record.__struct_fields__), None):
        raise ProbeError(f"{path}: bench has no argument {unknown}", near_names(unknown, BY_NAME["bench"].schema()))
    return workload


def serve(root: Path, *, allow_run: bool, workload: Path | None) -> None:
    """Serve over standard input and output until the client closes them."""
    frozen = read_workload(workload) if workload else None
    Server(root, allow_run=allow_run, workload=frozen).mcp.run("stdio")
