"""Places that editors find: first in a line of a pipe, and as links of a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from inductor_probe.errors import ProbeError
from inductor_probe.report.document import Column, RemarkLine, Table
from inductor_probe.report.editor_links import with_links
from inductor_probe.report.html import html
from inductor_probe.report.markdown import to_markdown
from inductor_probe.report.terminal import PIPE, to_text
from tests.conftest import Probe
from tests.dumps import ANTIALIAS, FLIP

TEMPLATE = "vscode://file{path}:{line}"
ESC = "\x1b"


def test_a_place_is_a_link_and_nothing_else_of_the_text_changes() -> None:
    text = f"{ESC}[2mfrom{ESC}[0m /home/u v/a.py:12 in f: see (/x/b.py), op0/op1.x and 3/4.5"
    linked = with_links(text, TEMPLATE)
    assert re.sub(r"\x1b\]8;;[^\x1b]*\x1b\\", "", linked) == text
    assert re.findall(r"\]8;;([^\x1b]+)\x1b", linked) == ["vscode://file/x/b.py:1"]


def test_a_path_is_quoted_in_the_url() -> None:
    assert with_links("/home/ü/a.py:12", "x:{path}?{line}") == (
        f"{ESC}]8;;x:/home/%C3%BC/a.py?12{ESC}\\/home/ü/a.py:12{ESC}]8;;{ESC}\\"
    )


@pytest.mark.parametrize("template", ["", "vscode://file", "{path", "{file}", "{}", "{path}\x1b[31m"])
def test_a_template_that_names_no_file_is_a_sentence(template: str) -> None:
    with pytest.raises(ProbeError, match="names no file"):
        with_links("/a.py:1", template)


def test_in_a_pipe_the_place_comes_first_and_on_a_screen_it_is_left_out() -> None:
    line = RemarkLine("missed", "op0 reads", 2, at="/home/u/net.py:7")
    table = Table((Column("", pipe=True), Column("name")), [["/home/u/net.py:7:", "op0"]])
    assert to_text([line, table], PIPE).splitlines() == [
        "/home/u/net.py:7: missed: op0 reads",
        "                   name",
        "/home/u/net.py:7:  op0",
    ]
    for text in (to_text([line, table], 80), to_markdown([line, table]), html([line, table])):
        assert "op0" in text
        assert "net.py" not in text


@pytest.mark.parametrize("words", [["why"], ["why", "op1"], ["layouts"], ["show", "op1"], ["kernels"]])
def test_remarks_of_a_dump_begin_with_their_line_in_a_pipe(probe: Probe, words: list[str]) -> None:
    """`grep -n`, and `vim -q` with the error format `%f:%l:%m`, read them."""
    lines = probe(*words, FLIP if words == ["kernels"] else ANTIALIAS).out.splitlines()
    remarks = [line for line in lines if re.search(r"\bop1 reads arg0_1 non-contiguously|scalar \(", line)]
    assert remarks
    assert all(re.match(r"/repro/capture\.py:\d+: +missed\b", line) for line in remarks)


@pytest.mark.parametrize(("terminal", "linked"), [("xterm-256color", True), ("dumb", False)])
def test_a_terminal_that_knows_links_has_them(terminal: str, linked: bool) -> None:
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "inductor_probe", "show", "op1", str(ANTIALIAS)]
    env = {**os.environ, "TERM": terminal, "COLUMNS": "100", "PROBE_EDITOR_URL": TEMPLATE}
    with subprocess.Popen(command, stdout=slave, stderr=subprocess.DEVNULL, env=env) as process:
        os.close(slave)
        shown = b""
        while block := _read(master):
            shown += block
    os.close(master)
    assert process.returncode == 0
    assert (b"\x1b]8;;vscode://file/repro/capture.py:50\x1b\\/repro/capture.py:50\x1b]8;;" in shown) is linked
    assert b"/repro/capture.py:50" in shown


def _read(stream: int) -> bytes:
    try:
        return os.read(stream, 1 << 16)
    except OSError:  # the other end is closed
        return b""


def test_a_pipe_has_no_links(probe: Probe, tmp_path: Path) -> None:
    assert ESC not in probe("show", "op1", ANTIALIAS, PROBE_EDITOR_URL=TEMPLATE).out
