"""The server: tools and resources of the Model Context Protocol, each call carried out by `jobs.Jobs`."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.server.apps import Apps
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.server.mcpserver.tools import Tool as ServedTool
from mcp.types import CallToolResult, TextContent, ToolAnnotations

from inductor_probe import __version__
from inductor_probe.errors import ProbeError, near_names
from inductor_probe.mcp_server.answers import answer_of
from inductor_probe.mcp_server.confined import refuse_outside
from inductor_probe.mcp_server.jobs import Job, Jobs
from inductor_probe.mcp_server.tools import (
    BY_NAME,
    OF_AN_ANSWER,
    OUTPUT_SCHEMA,
    TOOLS,
    Tool,
    asked_of,
    form_of,
)

WAIT_S = 50.0
"""A call that takes longer is answered with the id of a job: many clients give up after a minute."""
_BEAT_S = 2.0
"""From progress to progress, in seconds."""

_APP = "ui://inductor_probe/page.html"

_INSTRUCTIONS = """\
inductor_probe explains what TorchInductor compiled: what was decided, why, what another decision would cost.
Slow: dump (with a label), overview, why NAME, whatif with what why offers: its verdict is the proof.
Wrong: accuracy. Names in answers (op0, buf3, kernels, labels) are arguments of other tools.
A verdict with busy true was disturbed by other programs: ask again.
Long work is answered with a job: call the same tool with {"job": ID}. Paths are below the root.
Resources: probe://run/RUN, probe://run/RUN/GRAPH, probe://run/RUN/GRAPH/code; as HTML probe://page/RUN."""
_READ_ONLY = (
    " This server only reads: for dump, whatif, bench and accuracy the user starts it with --allow-run."
)


class _Tool(ServedTool):
    """A row of the table as the SDK serves it, with the schema and the checks of the options' record."""

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        """Carry out a call."""
        try:
            return await self.fn(arguments, context)
        except ProbeError as error:
            raise ToolError(f"[{error.code}] {_with_hint(error)}") from error


def _page_app() -> Apps:
    """Return the view of the MCP Apps extension that shows the page of a run; other clients pass over it."""
    apps = Apps()
    html = Path(__file__).with_name("page_app.html").read_text(encoding="utf-8")
    apps.add_html_resource(_APP, html, title="The page of a run", prefers_border=True)
    return apps


def _seconds(arguments: Mapping[str, Any]) -> float:
    """Return how long a client waits.

    Raises:
        ProbeError: that is no number.
    """
    given = arguments.get("wait_s", WAIT_S)
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise ProbeError(f"wait_s is {given!r}", "it is a number of seconds", code="usage")
    return float(given)


class Server:
    """What `probe mcp` serves: `mcp` is the server of the SDK.

    Args:
        root: below which clients read and write.
        allow_run: whether scripts and generated code may run.
        workload: arguments of `bench` that no client changes; see `read_workload`. Nothing else runs then.

    Raises:
        ProbeError: `allow_run` with a workload.
    """

    def __init__(
        self, root: Path, *, allow_run: bool = False, workload: Mapping[str, Any] | None = None
    ) -> None:
        if workload and allow_run:
            raise ProbeError(
                "--allow-run would let a client change what --workload freezes, as the dump",
                "leave out --allow-run: bench is served without it",
                code="usage",
            )
        self._root = Path(os.path.realpath(root))
        self._allow_run = allow_run
        self._workload = workload
        self._jobs = Jobs(self._root)
        frozen = ["bench"] if workload else []
        served = [tool for tool in TOOLS if allow_run or tool.runs != "all" or tool.name in frozen]
        self.mcp: MCPServer[None] = MCPServer(
            "inductor_probe", instructions=_INSTRUCTIONS + ("" if allow_run else _READ_ONLY),
            version=__version__, log_level="ERROR", lifespan=self._lifespan, extensions=[_page_app()],
            tools=[self._tool(tool) for tool in served],
        )  # fmt: skip
        serve = self.mcp.resource
        serve("probe://run/{run}", mime_type="text/markdown", description="The page of a run.")(
            self._page_of_run
        )
        serve("probe://page/{run}", mime_type="text/html", description="What probe report writes of a run.")(
            self._html_of_run
        )
        serve("probe://run/{run}/{graph}", mime_type="text/markdown", description="The page of a graph.")(
            self._page_of_graph
        )
        serve("probe://run/{run}/{graph}/code", mime_type="text/x-python", description="Its output_code.py.")(
            self._code_of_graph
        )

    @asynccontextmanager
    async def _lifespan(self, server: MCPServer[None]) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self._jobs.end()

    def _frozen(self, tool: Tool) -> Mapping[str, Any]:
        return self._workload or {} if tool.name == "bench" else {}

    def _tool(self, tool: Tool) -> ServedTool:
        runs, frozen, schema = tool.may_run(allow_run=self._allow_run), self._frozen(tool), tool.schema()
        about = f"{tool.about} These arguments are fixed: {json.dumps(frozen)}" if frozen else tool.about
        if frozen:
            schema["properties"] = {name: schema["properties"][name] for name in OF_AN_ANSWER}
        annotations = ToolAnnotations(
            read_only_hint=not runs, destructive_hint=False, idempotent_hint=not runs, open_world_hint=False
        )

        async def call(arguments: dict[str, Any], context: Context[None, Any]) -> CallToolResult:
            return await self._call(tool, arguments, context)

        made = _Tool.from_function(call, tool.name, None, about, "context", annotations)
        made.meta = {"ui": {"resourceUri": _APP}} if tool.page else None
        made.parameters, made.fn_metadata.output_schema = schema, OUTPUT_SCHEMA
        return made

    async def _call(
        self, tool: Tool, arguments: dict[str, Any], context: Context[None, Any]
    ) -> CallToolResult:
        """Carry out a call, or wait for one that is at work.

        Raises:
            ProbeError: it cannot be done, or may not.
        """
        if "job" in arguments:
            job = self._jobs.find(str(arguments["job"]))
            if arguments.get("cancel"):
                await job.end()
                return _result(
                    {"text": f"{job.id} was ended", "structured": {"answer": f"{job.id} was ended"}}
                )
            return await self._wait(job, arguments, context, ends=False)
        if frozen := self._frozen(tool):
            if changed := next((name for name in arguments if name not in OF_AN_ANSWER), None):
                raise ProbeError(
                    f"{changed} is fixed by the workload of this server", "leave it out", code="usage"
                )
            arguments = {**arguments, **frozen}
        form = form_of(arguments)
        asked = asked_of(arguments)
        refuse_outside(asked, self._root)
        options = tool.options(asked, allow_run=self._allow_run)
        order = {
            "tool": tool.name,
            "arguments": arguments,
            "allow_run": self._allow_run,
            "frozen": bool(frozen),
        }
        if not tool.may_run(allow_run=self._allow_run):
            return _result(answer_of(await self._jobs.call(order), form, tool.name, asked))
        _seconds(arguments)
        job = self._jobs.start(tool, order, float(getattr(options, "budget", None) or 0))
        return await self._wait(job, arguments, context, ends=True)

    async def _wait(
        self, job: Job, arguments: Mapping[str, Any], context: Any, *, ends: bool
    ) -> CallToolResult:
        """Wait for a job, as long as the client does; it `ends` with a call that is taken back."""
        until = time.monotonic() + _seconds(arguments)
        await context.report_progress(job.elapsed_s, job.estimate_s, f"it takes about {job.estimate_s:.0f} s")
        try:
            while not job.task.done() and (left := until - time.monotonic()) > 0:
                await asyncio.wait({job.task}, timeout=min(_BEAT_S, left))
                total = job.estimate_s if job.elapsed_s < job.estimate_s else None
                await context.report_progress(job.elapsed_s, total, job.step)
        except asyncio.CancelledError:
            if ends:
                await asyncio.shield(job.end())
            raise
        if job.task.done():
            if job.task.cancelled():
                raise ProbeError(f"{job.id} was ended", "call the tool again", code="interrupted")
            return _result(answer_of(job.task.result(), form_of(arguments), job.tool, {"job": job.id}))
        sentence = f"{job.step}: {job.elapsed_s:.0f} s of about {job.estimate_s:.0f} s"
        rest = {"tool": job.tool, "arguments": {"job": job.id}}
        state = {"job": job.id, "estimate_s": job.estimate_s, "elapsed_s": job.elapsed_s, "step": job.step}
        text = f"{sentence}; go on with {json.dumps(rest)}"
        return _result({"text": text, "structured": {"answer": sentence, **state, "rest": rest}})

    async def _page_of_run(self, run: str) -> str:
        return await self._read(run, "", "page")

    async def _html_of_run(self, run: str) -> str:
        return await self._read(run, "", "html")

    async def _page_of_graph(self, run: str, graph: str) -> str:
        return await self._read(run, graph, "page")

    async def _code_of_graph(self, run: str, graph: str) -> str:
        return await self._read(run, graph, "code")

    async def _read(self, *names: str) -> str:
        try:
            refuse_outside(names, self._root)
            return str((await self._jobs.call({"resource": names}))["answer"])
        except ProbeError as error:
            raise ResourceError(_with_hint(error)) from error


def _with_hint(error: ProbeError) -> str:
    return f"{error.message}\nhint: {error.hint.strip()}" if error.hint else error.message


def _result(event: Mapping[str, Any]) -> CallToolResult:
    text = TextContent(type="text", text=event["text"])
    return CallToolResult(content=[text], structured_content=event["structured"])


def read_workload(path: Path) -> dict[str, Any]:
    """Return a frozen workload: the arguments of `bench` in a file, read once.

        {"target": "flip", "variants": ["cpp_fused_flip_0_v2=edited.cpp"], "budget": 10}

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
        raise ProbeError(f"{path} is not JSON: {error}", example) from error
    if not isinstance(workload, dict) or not workload.get("variants"):
        raise ProbeError(f"{path} names no variants, which a client may edit", example)
    if unknown := next(
        (name for name in workload if name not in BY_NAME["bench"].record.__struct_fields__), None
    ):
        raise ProbeError(
            f"{path}: bench has no argument {unknown}", near_names(unknown, BY_NAME["bench"].schema())
        )
    return workload


def serve(root: Path, *, allow_run: bool, workload: Path | None) -> None:
    """Serve over standard input and output until the client closes them."""
    frozen = read_workload(workload) if workload else None
    Server(root, allow_run=allow_run, workload=frozen).mcp.run("stdio")
