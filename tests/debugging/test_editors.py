"""launch.json as text: what a person wrote stays, byte for byte, and one entry is added."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.debugging import jsonc
from inductor_probe.debugging.editors import instructions, launch_file
from inductor_probe.debugging.endpoint import Endpoint, read_endpoint
from inductor_probe.errors import ProbeError, UnreadableError

HERE = Endpoint("127.0.0.1", 5678)
ENTRY = {
    "name": "probe debug 127.0.0.1:5678",
    "type": "debugpy",
    "request": "attach",
    "connect": {"host": "127.0.0.1", "port": 5678},
    "justMyCode": False,
}

MINE = """\
{
    // Use IntelliSense: https://go.microsoft.com/fwlink/?linkid=830387
    "version": "0.2.0",
    "configurations": [
        {
            "name": "mine", // "quoted" {and} [bracketed]
            "args": ["a", "b",],
        }, /* the last */ // one
        // "not": "this one"
    ], // end
}
"""
MERGED = """\
{
    // Use IntelliSense: https://go.microsoft.com/fwlink/?linkid=830387
    "version": "0.2.0",
    "configurations": [
        {
            "name": "mine", // "quoted" {and} [bracketed]
            "args": ["a", "b",],
        }, /* the last */ // one
        {
            "name": "probe debug 127.0.0.1:5678",
            "type": "debugpy",
            "request": "attach",
            "connect": {
                "host": "127.0.0.1",
                "port": 5678
            },
            "justMyCode": false
        }
        // "not": "this one"
    ], // end
}
"""


def merged(folder: Path, text: str, endpoint: Endpoint = HERE) -> str:
    file = folder / ".vscode" / "launch.json"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text.encode())
    return launch_file(folder, endpoint).after


def is_kept(before: str, after: str) -> bool:
    """Tell whether `after` is `before` with text put in, and nothing taken away or moved."""
    rest = iter(after)
    return all(character in rest for character in before)


def test_comments_and_trailing_commas_stay(tmp_path: Path) -> None:
    assert merged(tmp_path, MINE) == MERGED


def test_what_is_there_already_is_not_added_again(tmp_path: Path) -> None:
    once = merged(tmp_path, MINE)
    assert merged(tmp_path, once) == once
    other = merged(tmp_path, once, Endpoint("127.0.0.1", 5679))
    names = [one["name"] for one in jsonc.read(other).value["configurations"]]
    assert names == ["mine", "probe debug 127.0.0.1:5678", "probe debug 127.0.0.1:5679"]


def test_a_new_file_is_plain_json(tmp_path: Path) -> None:
    file = launch_file(tmp_path, HERE)
    assert file.before is None
    assert not file.path.parent.exists()
    file.write()
    assert json.loads(file.path.read_text()) == {"version": "0.2.0", "configurations": [ENTRY]}


def test_an_empty_file_is_like_none(tmp_path: Path) -> None:
    assert json.loads(merged(tmp_path, "\n")) == {"version": "0.2.0", "configurations": [ENTRY]}


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"configurations": []}',
        '{"configurations": [{"name": "x"}]}',
        '{"configurations": [{"name": "x"},],}',
        '{\n\t"configurations": [\n\t\t// none yet\n\t]\n}',
        '{\r\n  "version": "0.2.0"\r\n}\r\n',
        '{\r\n  "configurations": [\r\n    {"name": "x"}\r\n  ]\r\n}\r\n',
        '\ufeff{"configurations": [ /* a */ {"name": "}"} /* b */ ] /* c */ } // d',
        '{"a": {"configurations": [1]}, "configurations": [{"name": "\\"x\\\\"} // last\n]}',
        "// first\n{\n  // only a comment\n}",
    ],
)
def test_any_shape_of_file_gets_the_entry_last(tmp_path: Path, text: str) -> None:
    after = merged(tmp_path, text)
    was, now = jsonc.read(text).value, jsonc.read(after).value
    assert now["configurations"] == [*was.get("configurations", []), ENTRY]
    assert {**now, "configurations": None} == {**was, "configurations": None}
    assert is_kept(text, after)
    assert ("\r\n" in text) == ("\r\n" in after)
    if "\r\n" in text:
        assert after.count("\n") == after.count("\r\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n"configurations": [}', "line 2: a value is missing"),
        ('{\n\n"configurations" []}', "line 3: a key and a colon is missing"),
        ('{"a": 1 "b": 2}', "line 1: a comma or } is missing"),
        ('{"a": 01x}', "is no JSON with comments"),
        ("// nothing", "a value is missing"),
        ("{} x", "line 1: the end is missing"),
        ("[" * 5000, "fewer brackets is missing"),
        ("[]", "is no object"),
        ('{"configurations": {}}', "are no list"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UnreadableError) as raised:
        merged(tmp_path, text)
    assert message in raised.value.message
    assert "launch.json" in raised.value.message
    assert raised.value.hint == "add the configuration by hand"


def test_a_file_that_is_not_utf_8_is_said(tmp_path: Path) -> None:
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "launch.json").write_bytes(b'{"a": "\xe4"}')
    with pytest.raises(UnreadableError, match="it is not UTF-8"):
        launch_file(tmp_path, HERE)


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
TRIVIA = st.sampled_from(["", " ", "\n", "\t", "// x ]}\n", '/* , \n " */', '  // "\n  ', "\r\n"])


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """Return `value` as a person might have written it."""
    around = draw(TRIVIA), draw(TRIVIA)
    if isinstance(value, (list, dict)):
        items = (
            [f"{json.dumps(key)}{draw(TRIVIA)}:{draw(written(one))}" for key, one in value.items()]
            if isinstance(value, dict)
            else [draw(written(one)) for one in value]
        )
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        trailing = "," if items and draw(st.booleans()) else ""
        inside = ",".join(draw(TRIVIA) + item for item in items) + trailing + draw(TRIVIA)
        return f"{around[0]}{opening}{inside}{closing}{around[1]}"
    return f"{around[0]}{json.dumps(value)}{around[1]}"


@given(st.data(), st.dictionaries(st.text(), JSON, max_size=3), st.lists(JSON, max_size=3) | st.none())
def test_anything_is_read_and_added_to(data: st.DataObject, value: dict[str, Any], items: list[Any]) -> None:
    if items is not None:
        value["configurations"] = items
    text = data.draw(written(value))
    root = jsonc.read(text)
    assert root.value == value
    container = root.members.get("configurations", root)
    item = '{\n    "new": true\n}'
    after = jsonc.add(text, container, item if container is not root else f'"new": {item}')
    expected = {**value, "configurations": [*items, {"new": True}]} if items is not None else value
    if items is None:
        expected = {**value, "new": {"new": True}}
    assert jsonc.read(after).value == expected
    assert is_kept(text, after)


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
    with pytest.raises(ProbeError, match="is not \\[HOST:\\]PORT"):
        read_endpoint(text)


def test_port_zero_is_a_free_one() -> None:
    assert read_endpoint("0").port > 1023


def test_an_editor_elsewhere_is_told_the_machine_and_where_files_are(tmp_path: Path) -> None:
    everywhere = Endpoint("0.0.0.0", 5678)  # noqa: S104
    (entry,) = json.loads(launch_file(tmp_path, everywhere).after)["configurations"]
    assert entry["connect"] == {"host": platform.node(), "port": 5678}
    assert entry["pathMappings"] == [{"localRoot": "${workspaceFolder}", "remoteRoot": str(tmp_path)}]
    assert all(f"{platform.node()}" in step for _, step in instructions(everywhere))
