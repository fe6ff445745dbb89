"""Documents as markdown: GitHub shows the text of a dump as text."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt

import inductor_probe as ip
from inductor_probe.report.document import (
    Block,
    Code,
    Column,
    Facts,
    Fold,
    Heading,
    Line,
    Picture,
    RemarkLine,
    Table,
)
from inductor_probe.report.markdown import to_markdown
from tests.conftest import all_graph_dirs
from tests.report.harmless import checked


def rendered(*blocks: Block) -> str:
    """Return the HTML that GitHub's dialect makes of the markdown of some blocks."""
    return MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(to_markdown(blocks))


@pytest.mark.parametrize(
    ("block", "markdown"),
    [
        (Heading([("buf0", "bold"), "  contiguous"]), "### buf0  contiguous\n"),
        (Heading(("reads", "bold"), 2), "#### reads\n"),
        (
            Facts([("size", "[1, 2]"), ("from", "one\ntwo"), ("none", "")]),
            "- **size**: [1, 2]\n- **from**: one<br>two\n",
        ),
        (RemarkLine("missed", "op0 reads 2*n"), "**missed**: op0 reads 2\\*n\n"),
        (Line([("kept ", "bold"), "run_1"]), "**kept** run_1\n"),
        (Line("- no list"), "\\- no list\n"),
        (Line(), ""),
        (Code("x = 1\n", "python"), "```python\nx = 1\n```\n"),
        (Code("```\ninside", ""), "````\n```\ninside\n````\n"),
        (Picture(lambda: "<svg></svg>"), ""),
        (Fold("text", lambda: [Line("in")]), "<details><summary>text</summary>\n\nin\n\n</details>\n"),
    ],
)
def test_each_block_in_markdown(block: Block, markdown: str) -> None:
    assert to_markdown([block]) == markdown


def test_a_table_has_its_alignment_and_says_how_many_rows_are_not_shown() -> None:
    columns = [Column("name"), Column("bytes", right=True), Column("picture")]
    rows = [[("a|b", "bold"), "1 KiB", Picture(str)], ["c", "2", Picture(str)]]
    assert to_markdown([Table(columns, rows, most=1, more="probe nodes")]).splitlines() == [
        "| name | bytes |",
        "| :-- | --: |",
        "| **a\\|b** | 1 KiB |",
        "",
        "and 1 more: probe nodes",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<script>x</script>",
        "[a](javascript:b)",
        "![a](http://b)",
        "`code`",
        "**b**",
        "__init__ a__b _c d_",
        "~~s~~",
        "a | b",
        "# h",
        "1. x",
    ],
)
def test_text_of_a_dump_is_text(text: str) -> None:
    found = checked(rendered(Line(text), Facts([("name", text)]), Table([Column("c")], [[text]])))
    tags = {tag for tag, _ in found.elements}
    assert tags <= {"p", "ul", "li", "strong", "table", "thead", "tbody", "tr", "th", "td"}
    assert found.text.count(text) == 3


@pytest.mark.parametrize(
    "link",
    ["user@torch", "@torch.compile", "#1", "(#1)", "pytorch/pytorch#12", "GH-3", "gh-3", "cf30153",
     "0123456789abcdef0123456789abcdef01234567", "**#7**"],
)  # fmt: skip
def test_what_github_would_link_stays_text(link: str) -> None:
    """GitHub links `@name`, `#1`, `GH-1` and a commit's name where nothing stands in between."""
    linked = re.compile(r"@\w|#\d|(?i:gh)-\d|\b[\da-f]{7,40}\b")
    for block in (Line(link), Heading(link), RemarkLine("missed", link), Facts([("from", link)])):
        markdown = to_markdown([block])
        assert not linked.search(markdown)
        assert checked(rendered(block)).text.strip().endswith(link)


@pytest.mark.parametrize("text", ["# 1", "1234567 bytes", "defaced", "buf0", "op3_op4", "x @ y", "0x7f00"])
def test_what_github_does_not_link_has_no_comment(text: str) -> None:
    assert "<!--" not in to_markdown([Line(text)])


@pytest.mark.parametrize("folder", all_graph_dirs()[::5], ids=lambda path: "/".join(path.parts[-5:-3]))
def test_markdown_shows_what_a_prompt_shows(folder: str) -> None:
    graph = ip.open_graph(folder)
    for shown in (graph.layouts(), graph.kernels(), graph.nodes(), graph.show(), graph.fusion()):
        text = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(shown.markdown)
        words = checked(text).text.split()
        missing = {word for word in repr(shown).split() if word.isidentifier()} - set(
            " ".join(words).replace(",", " ").split()
        )
        joined = " ".join(words)
        assert {word for word in missing if word not in joined and "left" not in word} <= {
            "out",
            "at",
            "columns",
            "pipe",
            "has",
            "them",
            "a",
        }
