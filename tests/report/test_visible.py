"""No text of a stranger's reaches a terminal as more than text."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from inductor_probe.notebook.shown import Shown
from inductor_probe.report.shown import plain_console, to_text
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


def rendered(renderable: object, *, colours: bool) -> str:
    file = StringIO()
    console = plain_console(
        file=file, width=60, force_terminal=colours, color_system="standard" if colours else None
    )
    console.print(renderable)
    return file.getvalue()


def table_of(text: str) -> Table:
    table = Table("plain", "styled", title=text)
    table.add_row(text, Text.assemble((text, "red"), "after"))
    table.add_row(Text(text, style="bold"), "x")
    return table


@pytest.mark.parametrize("text", HOSTILE)
def test_tables_titles_and_styled_text_are_shown_harmless(text: str) -> None:
    out = rendered(table_of(text), colours=False)
    assert not ACTING.search(out)
    assert "\\" in out


@pytest.mark.parametrize("text", HOSTILE)
def test_only_richs_own_colours_come_through(text: str) -> None:
    out = rendered(table_of(text), colours=True)
    assert set(re.findall("\x1b.[^a-z]*[a-z]", out)) <= {"\x1b[0m", "\x1b[1m", "\x1b[3m", "\x1b[31m"}
    assert not ACTING.search(out.replace("\x1b", ""))
    assert "\x1b[31m" in out


def test_styles_stay_on_their_letters() -> None:
    out = rendered(Text.assemble(("a\x1bb", "red"), ("c", "green")), colours=True)
    assert out == "\x1b[31ma\\x1bb\x1b[0m\x1b[32mc\x1b[0m\n"


def test_a_line_break_counts_the_escapes() -> None:
    assert all(len(line) <= 60 for line in rendered(Text("\x1b" * 40), colours=False).splitlines())


class _Object(Shown):
    def __rich__(self) -> Text:
        return Text("<b>\x1b[31m\u202e</b>")


def test_notebook_objects_are_harmless() -> None:
    assert repr(_Object()) == r"<b>\x1b[31m\u202e</b>"
    html = _Object()._repr_html_()
    assert r"&lt;b&gt;\x1b[31m\u202e&lt;/b&gt;" in html
    assert not ACTING.search(html)
    assert to_text("\x1b]0;t\x07") == r"\x1b]0;t\x07"
