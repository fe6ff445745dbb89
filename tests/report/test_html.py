"""Objects as HTML: all of them, from dumps of all ages, also from a stranger's."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path

import pytest

import inductor_probe as ip
from inductor_probe.report.document import Block, Code, Column, Facts, Fold, Line, Picture, RemarkLine, Table
from inductor_probe.report.html import escaped, html, page
from tests.dumps import ANTIALIAS, every_graph, run_in
from tests.report.harmless import checked

EVIL = "<script>alert(1)</script>"


def objects(graph: ip.Graph) -> Iterator[object]:
    """Yield an object of every kind that a graph gives."""
    yield graph
    yield graph.run
    yield graph.layouts()
    yield graph.nodes()
    yield graph.nodes(pre=True)
    yield graph.kernels()
    yield graph.fusion()
    yield graph.show()
    for row in graph.layouts():
        yield graph.layouts(row.buffer)
        yield graph.show(row.buffer, raw=True)
    for node in graph.nodes():
        yield graph.show(node.node)
    for kernel in graph.kernels():
        yield graph.show(kernel.name, code=True)
    yield graph.diff(graph)
    yield ip.Pages([graph.show(), graph.show()])
    yield ip.tunings(graph.path)


@every_graph
def test_every_object_of_every_dump_has_harmless_html(folder: Path) -> None:
    run = ip.open_run(folder.parents[1])
    graph = next(each for each in run.graphs if each.path == folder)
    for found in objects(graph):
        text = checked(found._repr_html_()).text  # type: ignore[attr-defined]
        assert len(text) > 40 or not repr(found)


def test_what_is_shown_in_a_notebook_is_what_is_shown_in_a_prompt() -> None:
    run = ip.open_run(ANTIALIAS)
    for found in (
        run,
        run.graphs[0].kernels(),
        run.graphs[0].show("op1"),
        ip.runs(ANTIALIAS),
        ip.check(ANTIALIAS),
    ):
        lines = [line for line in repr(found).splitlines() if not line.startswith("left out at")]
        words = set(" ".join(lines).split())
        html = set(checked(found._repr_html_()).text.replace("\xa0", " ").split())
        missing = {word for word in words - html if "…" not in word and "/" not in word and word.isalpha()}
        joined = "".join(html)
        assert {word for word in missing if word not in joined} == set()


def test_a_strangers_dump_shows_its_scripts_and_runs_none(tmp_path: Path) -> None:
    """Names, lines of code, kernels and messages are text, wherever a dump has them."""
    run = tmp_path / "run_evil"
    shutil.copytree(run_in(ANTIALIAS), run)
    for path in run.rglob("*"):
        if path.is_file():
            text = path.read_text()
            text = text.replace("cpp_fused", f"cpp_{EVIL}_fused").replace("capture.py", f"{EVIL}.py")
            text = text.replace("#include", f'// {EVIL} " onload=alert(1) x="\n#include', 1)
            text = text.replace("FixedLayout(", f"Fixed{'<img src=x onerror=alert(1)>'}Layout(", 1)
            path.write_text(text.replace("arange", f"arange{EVIL}"))
    shown = ""
    (graph,) = ip.open_run(run).graphs
    for found in objects(graph):
        html = found._repr_html_()  # type: ignore[attr-defined]
        checked(html)
        assert EVIL not in html
        shown += html
    assert escape(EVIL) in shown


def test_what_acts_on_a_reader_is_shown_as_an_escape() -> None:
    assert escaped("a\u202eb<\x1b\"'") == "a\\u202eb&lt;\\x1b&quot;&#x27;"
    text = html([Table([Column("x\u202e")], [["<b>\u202e"]]), Code("x = '\u202e'", "python")])
    assert "\u202e" not in text
    assert "&lt;b&gt;" in text


@pytest.mark.parametrize(
    ("block", "text", "classes"),
    [
        (Line(("a<b", "bold red")), "a<b", {"ip-bold", "ip-red"}),
        (Line(["x", ("y", "dim")], 2), "xy", {"ip-dim"}),
        (Table([Column("n", right=True)], [[("7", "green")]]), "n7", {"ip-right", "ip-green"}),
        (Facts([("fact", [("a", "red"), "b"]), ("none", "")]), "factab", {"ip-dim", "ip-red"}),
        (RemarkLine("hazard", "see & do"), "! see & do", {"ip-red", "ip-bold"}),
        (Table([Column("p")], [[Picture(lambda: "<svg></svg>")]]), "p", {"ip-table"}),
        (Fold("more <", lambda: [Line("inside")]), "more <inside", {"ip-line"}),
    ],
)
def test_every_block_has_html(block: Block, text: str, classes: set[str]) -> None:
    found = checked(html([block]))
    assert found.text == text
    used = {name for _, attributes in found.elements for name in attributes.get("class", "").split()}
    assert classes <= used


def test_code_has_colours_and_no_line_more_than_it_has() -> None:
    found = checked(html([Code("\nint x = 1; // <b>\n", "cpp")]))
    assert found.text == "int x = 1; // <b>"
    assert [each["class"] for _, each in found.elements[1:]] == ["ip-k", "ip-n", "ip-c"]
    assert checked(html([Code("", "python")])).text == ""
    huge = "x = 1\n" * 50_000
    assert checked(html([Code(huge, "python")])).text == huge.strip()


def test_facts_have_no_head_and_long_tables_unfold() -> None:
    assert "<th" not in html([Facts([("name", "text")])])
    found = checked(html([Table([Column("n")], [["1"], ["2"], ["3"]], most=1)]))
    assert found.text == "n1and 2 moren23"
    assert [tag for tag, _ in found.elements].count("details") == 1


def test_every_output_brings_its_style_and_asks_no_network() -> None:
    html = page([Line("x")])
    assert html.startswith("<style>")
    assert "url(" not in html
    assert "@import" not in html
    for dark in ('[data-jp-theme-light="false"]', ".vscode-dark", "prefers-color-scheme:dark"):
        assert dark in html


def test_no_object_of_the_package_is_without_a_document() -> None:
    classes = [getattr(ip, name) for name in ip.__all__]
    shown = [each for each in classes if isinstance(each, type) and hasattr(each, "__rich__")]
    assert len(shown) >= 11
    assert all(hasattr(each, "document") and hasattr(each, "markdown") for each in shown)


@pytest.mark.parametrize("library", ["matplotlib", "pygments.lexers", "IPython", "torch"])
def test_a_table_loads_nothing_that_it_does_not_need(library: str) -> None:
    script = (
        "import sys, inductor_probe as ip\n"
        f"run = ip.open_run({str(ANTIALIAS)!r})\n"
        "assert len(run.layouts()._repr_html_()) > 1000\n"
        f"print({library!r} in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def test_repr_in_a_notebook_writes_nothing_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich displays what is printed to any of its consoles, once it finds itself in a notebook."""
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    shown: list[object] = []
    monkeypatch.setattr("rich.jupyter.display", lambda *parts: shown.append(parts))
    run = ip.open_run(ANTIALIAS)
    assert "model__0_inference_0.0" in repr(run)
    assert "model__0_inference_0.0" in run._repr_html_()
    assert shown == []


def test_the_dumped_text_is_folded_unless_asked_for(dump_dir: Callable[[str], Path]) -> None:
    graph = ip.open_graph(dump_dir("torch-2.13.0-cpu/hflip_cl"))
    assert "<details><summary>op0 as dumped" in graph.show("op0")._repr_html_()
    raw = graph.show("op0", raw=True)._repr_html_()
    assert "<details" not in raw
    assert "get_index" in raw
    kernel = graph.kernels()[0].name
    assert "<details><summary>text" in graph.show(kernel)._repr_html_()
    assert "<details" not in graph.show(kernel, code=True)._repr_html_()
