"""Where a debugger listens, and what editors are told."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from inductor_probe.debugging import Endpoint, instructions, offer_launch_configuration, read_endpoint
from inductor_probe.errors import ProbeError

HERE = Endpoint("127.0.0.1", 5678)
ENTRY = {
    "name": "probe debug 127.0.0.1:5678",
    "type": "debugpy",
    "request": "attach",
    "connect": {"host": "127.0.0.1", "port": 5678},
    "justMyCode": False,
}


def test_a_new_file_is_plain_json(tmp_path: Path) -> None:
    assert offer_launch_configuration(tmp_path, HERE) == "wrote .vscode/launch.json"
    file = tmp_path / ".vscode" / "launch.json"
    assert json.loads(file.read_text()) == {"version": "0.2.0", "configurations": [ENTRY]}
    assert offer_launch_configuration(tmp_path, HERE) is None


@pytest.mark.parametrize("content", [b"", b"{ // mine\n}", b'{"a": "\xe4"}', b"[" * 5000])
def test_a_file_that_exists_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / ".vscode" / "launch.json"
    file.parent.mkdir()
    file.write_bytes(content)
    text = offer_launch_configuration(tmp_path, HERE)
    assert text is not None
    assert text.startswith("add this to the configurations in .vscode/launch.json:\n")
    assert json.loads(text[text.index("{") :]) == ENTRY
    assert file.read_bytes() == content


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / ".vscode").touch()
    with pytest.raises(ProbeError, match=r"cannot make .*vscode"):
        offer_launch_configuration(tmp_path, HERE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5678", Endpoint("127.0.0.1", 5678)),
        (":5678", Endpoint("127.0.0.1", 5678)),
        ("0.0.0.0:1", Endpoint("0.0.0.0", 1)),  # noqa: S104
        ("[::1]:5678", Endpoint("::1", 5678)),
        ("box:65535", Endpoint("box", 65535)),
    ],
)
def test_an_endpoint_is_this_machine_s_unless_said(text: str, expected: Endpoint) -> None:
    endpoint = read_endpoint(text)
    assert endpoint == expected
    assert endpoint.is_loopback == (expected.host in ("127.0.0.1", "::1"))
    assert read_endpoint(str(endpoint)) == endpoint


@pytest.mark.parametrize("text", ["", "here", "65536", "-1", "127.0.0.1", "1.2.3.4:", "5678:x", "²"])
def test_an_endpoint_needs_a_port(text: str) -> None:
    with pytest.raises(ProbeError, match="write \\[HOST:\\]PORT"):
        read_endpoint(text)


def test_port_zero_is_a_free_one() -> None:
    assert read_endpoint("0").port > 1023


def test_an_editor_elsewhere_is_told_the_machine_and_where_files_are(tmp_path: Path) -> None:
    everywhere = Endpoint("0.0.0.0", 5678)  # noqa: S104
    offer_launch_configuration(tmp_path, everywhere)
    (entry,) = json.loads((tmp_path / ".vscode" / "launch.json").read_text())["configurations"]
    assert entry["connect"] == {"host": platform.node(), "port": 5678}
    assert entry["pathMappings"] == [{"localRoot": "${workspaceFolder}", "remoteRoot": str(tmp_path)}]
    assert all(f"{platform.node()}" in step for _, step in instructions(everywhere))
