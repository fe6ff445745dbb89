"""No text of a stranger's reaches a terminal as more than text."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.model.output import Output
from inductor_probe.report.document import (
    Code,
    Column,
    Document,
    Facts,
    Heading,
    Line,
    Name,
    RemarkLine,
    Table,
)
from inductor_probe.report.html import html
from inductor_probe.report.markdown import to_markdown
from inductor_probe.report.shown import Shown
from inductor_probe.report.terminal import Terminal, plain_console, to_text
from inductor_probe.report.visible import visible

HOSTILE = [
    "\x1b[31mred",
    "\x1b]8;;http://x\x1b\\link",
    "\x1b]52;c;cm0gLXJm\x07",
    "\x9b31m",
    "\x9d8;;x\x9c",
    "a\u202eb",
    "a\u2066b\u2069",
    "zero\u200bwidth",
    "\udcff.txt",
    "\U000e0041tag",
]
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", r"\x1b[31m"),
        ("\x9b", r"\x9b"),
        ("a\u202eb", r"a\u202eb"),
        ("\udcff", r"\xff"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("a\rb\x00", r"a\rb\x00"),
        ("s77*s27 [3, 4]\tb\n", "s77*s27 [3, 4]\tb\n"),
        ("größe 日本 …", "größe 日本 …"),
    ],
)
def test_acting_characters_become_escapes_and_others_stay(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(st.characters(codec=None), max_size=60))
def test_nothing_acting_is_left_whatever_the_text(text: str) -> None:
    assert not ACTING.search(visible(text))
    visible(text).encode("utf-8")


def rendered(document: Document, *, colours: bool) -> str:
    file = StringIO()
    console = plain_console(
        file=file, width=60, force_terminal=colours, color_system="standard" if colours else None
    )
    console.print(Terminal(document))
    return file.getvalue()


def document_of(text: str) -> Document:
    return [
        Heading((text, "bold")),
        Facts([(text, [(text, "red"), "after"])]),
        Table([Column(text)], [[text], [[(text, "red"), Name(text)]]]),
        RemarkLine("hazard", text),
        Code(text, "diff"),
        Line(text),
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_every_block_is_shown_harmless(text: str) -> None:
    out = rendered(document_of(text), colours=False)
    assert not ACTING.search(out)
    assert out.count("\\") >= 8
    assert not ACTING.search(to_markdown(document_of(text)))
    assert not ACTING.search(html(document_of(text)))


@pytest.mark.parametrize("text", HOSTILE)
def test_only_our_own_colours_come_through(text: str) -> None:
    out = rendered(document_of(text), colours=True)
    assert set(re.findall("\x1b.[^a-z]*[a-z]", out)) <= {
        f"\x1b[{code}m" for code in ("0", "1", "2", "31", "1;31")
    }
    assert not ACTING.search(out.replace("\x1b", ""))
    assert "\x1b[31m" in out


def test_styles_stay_on_their_letters() -> None:
    out = rendered([Line([("a\x1bb", "red"), ("c", "green")])], colours=True)
    assert out == "\x1b[31ma\\x1bb\x1b[0m\x1b[32mc\x1b[0m\n"


def test_a_line_break_counts_the_escapes() -> None:
    assert all(len(line) <= 60 for line in rendered([Line("\x1b" * 40)], colours=False).splitlines())


class _Object(Shown):
    document = (Line("<b>\x1b[31m\u202e</b>"),)
    output = Output(verb="none")


def test_notebook_objects_are_harmless() -> None:
    assert repr(_Object()) == r"<b>\x1b[31m\u202e</b>"
    assert r"&lt;b&gt;\x1b[31m\u202e&lt;/b&gt;" in _Object()._repr_html_()
    assert not ACTING.search(_Object()._repr_html_())
    assert _Object().markdown == "\\<b>\\\\x1b[31m\\\\u202e\\</b>\n"
    assert to_text([Line("\x1b]0;t\x07")]) == r"\x1b]0;t\x07"
