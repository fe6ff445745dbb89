"""The page of a run as a view of the MCP Apps extension: what the protocol says, and a host in a browser."""

from __future__ import annotations

import json
import shutil
from html import escape
from pathlib import Path
from typing import Any

import pytest
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from playwright.sync_api import expect

from inductor_probe.mcp_server.server import Server
from tests.browser import chromium, tab
from tests.dumps import ANTIALIAS
from tests.mcp_server.talk import call, talk

pytestmark = pytest.mark.filterwarnings("ignore")
APP = "ui://inductor_probe/page.html"
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
"""What the extension has hosts allow a view that names no domains."""
HOST = """
<!doctype html><title>host</title>
<iframe sandbox="{sandbox}" srcdoc="{view}" width="1200" height="800"></iframe>
<script>
window.heard = [];
const answers = {answers};
addEventListener("message", ({{ data, source }}) => {{
  heard.push(data.method);
  const result = answers[data.method];
  if (result !== undefined) source.postMessage({{ jsonrpc: "2.0", id: data.id, result }}, "*");
  if (data.method === "ui/notifications/initialized") {{
    const method = "ui/notifications/tool-result";
    source.postMessage({{ jsonrpc: "2.0", method, params: answers.tool }}, "*");
  }}
}});
</script>
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Server:
    root = tmp_path_factory.mktemp("root")
    shutil.copytree(ANTIALIAS, root / "torch_compile_debug")
    return Server(root)


def read(server: Server, uri: str) -> dict[str, Any]:
    """Return a resource, as a host reads it."""
    result = talk(server, lambda client: client.read_resource(uri))
    data: dict[str, Any] = result.model_dump(by_alias=True, exclude_none=True, mode="json")
    return data


def test_the_tool_about_a_run_names_its_view_and_its_answer_the_page(server: Server) -> None:
    tools = {tool.name: tool for tool in talk(server, lambda client: client.list_tools()).tools}
    views = {name for name, tool in tools.items() if tool.meta}
    assert views == {"overview"}
    assert (tools["overview"].meta or {})["ui"] == {"resourceUri": APP}
    (view,) = read(server, APP)["contents"]
    assert view["mimeType"] == APP_MIME_TYPE
    answer = call(server, "overview").structured_content or {}
    (page,) = read(server, answer["page"])["contents"]
    assert page["mimeType"] == "text/html"
    assert "op1" in page["text"]
    assert "page" not in (call(server, "kernels").structured_content or {})


def test_the_server_says_that_it_has_views(server: Server) -> None:
    async def capabilities(client: Any) -> Any:
        return client.server_capabilities

    assert EXTENSION_ID in (talk(server, capabilities).extensions or {})


@pytest.mark.parametrize("sandbox", ["allow-scripts", "allow-scripts allow-same-origin"])
def test_a_host_shows_the_page_of_the_run(server: Server, tmp_path: Path, sandbox: str) -> None:
    (view,) = read(server, APP)["contents"]
    answer = call(server, "overview")
    answers = {
        "ui/initialize": {"protocolVersion": "2026-01-26", "hostInfo": {"name": "host", "version": "1"}},
        "resources/read": read(server, (answer.structured_content or {})["page"]),
        "tool": answer.model_dump(by_alias=True, exclude_none=True, mode="json"),
    }
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    host = HOST.format(
        sandbox=sandbox,
        view=escape(view["text"].replace("<meta", f"{policy}<meta", 1)),
        answers=json.dumps(answers).replace("<", "\\u003c"),
    )
    (tmp_path / "host.html").write_text(host, encoding="utf-8")
    with chromium() as browser, tab(browser) as page:
        page.goto((tmp_path / "host.html").as_uri())
        inside = page.frame_locator("iframe")
        expect(inside.locator("body")).to_contain_text("op1", use_inner_text=True)
        expect(inside.locator("svg")).not_to_have_count(0)
        assert page.evaluate("heard") == ["ui/initialize", "ui/notifications/initialized", "resources/read"]
