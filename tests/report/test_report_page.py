"""The page of `probe report` in a browser, as a person reads it, also with names that mean harm."""

from __future__ import annotations

import json
import re
import shutil
import sys
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace
from playwright.sync_api import Browser, Locator, Page, expect

import inductor_probe as ip
from inductor_probe.model.codec import to_json
from inductor_probe.model.compile_time import Compile, CompileTimes, PhaseTime, RegionTime
from inductor_probe.model.decision import DECISIONS_NAME, Decisions
from inductor_probe.model.report import ReportOutput, ReportVerdict
from inductor_probe.report.pages.compile_time import PHASES
from inductor_probe.report.shared_page import page_html
from inductor_probe.store.decisions import write_decisions
from tests.browser import chromium, tab
from tests.builders import comparison, decision, manifest_text
from tests.cli.test_dump_commands import RANK, TORCHRUN
from tests.conftest import Probe
from tests.dumps import ANTIALIAS, FLIP, TRAINING, run_in
from tests.schemas import schema_faults

HOSTILE = "</script><script>hit = 1</script><img src=x onerror='hit = 2'>\"'\x1b[31m\u202e\u2028&lt;"
NODES, ROWS = ".drawing:not([hidden]) .ip-node", "#table tbody tr"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def reader(browser: Browser) -> Iterator[Page]:
    with tab(browser) as opened:
        yield opened


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ip.Run:
    """A run in which something was missed, at lines that are known."""
    path = shutil.copytree(run_in(ANTIALIAS), tmp_path_factory.mktemp("report") / "run_1")
    (graph,) = ip.open_run(path).graphs
    limits = {"nodes": 2, "limit": 1}
    decisions = (
        decision("vectorisation", "op2", outcome="scalar", cause="no-vector-isa"),
        decision("fusion", "op1, op3", "refused", "fusion-size-limit", operands=limits, number=2),
        decision("vectorisation", "op0", "vectorised", "one-dimension", number=3),
    )
    write_decisions(graph.path / DECISIONS_NAME, Decisions("2.13.0", ("fusion", "vectorisation"), decisions))
    return ip.open_run(path)


@pytest.fixture(scope="module")
def page(run: ip.Run, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of its page."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(ip.report_of(run).html)
    return path.as_uri()


@pytest.mark.parametrize(
    ("width", "height", "dark"), [(1440, 900, False), (1440, 900, True), (700, 900, False)]
)
def test_the_page_opens_without_a_fault_at_two_sizes_and_in_the_dark(
    reader: Page, page: str, width: int, height: int, dark: bool
) -> None:
    reader.set_viewport_size({"width": width, "height": height})
    reader.emulate_media(color_scheme="dark" if dark else "light")
    opened(reader, page)
    expect(reader.locator(NODES)).to_have_count(4)
    expect(reader.locator(ROWS)).to_have_count(4)
    assert reader.evaluate("document.documentElement.scrollWidth") <= width
    ground = "rgb(13, 17, 23)" if dark else "rgb(246, 248, 250)"
    expect(reader.locator("body")).to_have_css("background-color", ground)
    columns = reader.locator("#panes").evaluate("panes => getComputedStyle(panes).gridTemplateColumns")
    assert len(columns.split()) == (3 if width > 1000 else 1)


def test_a_node_is_found_by_typing_and_the_address_has_it(reader: Page, page: str) -> None:
    opened(reader, page)
    reader.keyboard.press("/")
    expect(reader.locator("#search")).to_be_focused()
    reader.keyboard.type("op3")
    expect(reader.locator("#hits li.at b")).to_have_text("op3")
    reader.keyboard.press("Enter")
    expect(reader).to_have_url(re.compile("n=op3"))
    expect(reader.locator("#about")).to_contain_text("buf3")
    expect(reader.locator(".ip-node.on[data-name=op3]")).not_to_have_count(0)
    expect(reader.locator("#table tr.on")).not_to_have_count(0)


def test_panes_follow_the_pointer_and_a_click(reader: Page, page: str) -> None:
    opened(reader, page)
    row_of(reader, "op1").click()
    expect(reader).to_have_url(re.compile("n=op1"))
    for pane in ("#bodies", "#kernel", "#table", ".view"):
        expect(reader.locator(f"{pane} .on")).not_to_have_count(0)
    lines, chosen = reader.locator("#kernel .row"), reader.locator("#kernel .row.on")
    assert 0 < chosen.count() < lines.count()
    reader.keyboard.press("Escape")
    expect(reader).not_to_have_url(re.compile("n="))
    reader.locator("#kernel .row:not(.plain)").first.hover()
    expect(reader.locator("#bodies .row.near")).not_to_have_count(0)
    expect(reader.locator(".ip-node.near")).not_to_have_count(0)


def test_what_was_missed_stands_where_it_is(reader: Page, page: str) -> None:
    opened(reader, page)
    expect(row_of(reader, "op2").locator(".mark").first).to_contain_text("op2 is scalar")
    opened(reader, f"{page}#t=fusion")
    expect(reader.locator("#table tbody")).to_contain_text("op1, op3")


def test_tables_sort_and_filter_and_the_address_shows_the_same_again(reader: Page, page: str) -> None:
    names = reader.locator("#table tbody td.name")
    opened(reader, page)
    reader.locator("#tabs button", has_text=re.compile("^buffers")).click()
    reader.locator("#table th button", has_text=re.compile("^bytes")).click()
    expect(reader.locator("#table th[aria-sort=descending]")).to_have_text(re.compile("^bytes"))
    largest = names.all_text_contents()
    reader.locator("#filter").click()
    reader.keyboard.type("intermediate")
    expect(reader.locator("#count")).to_have_text("3 of 5")
    shown = names.all_text_contents()
    assert shown == [name for name in largest if name in ("buf0", "buf1", "buf2")]
    reader.locator(ROWS).first.click()
    expect(reader).to_have_url(re.compile(f"n={shown[0]}"))
    opened(reader, reader.url)
    expect(names).to_have_text(shown)
    expect(reader.locator("#about h3")).to_have_text(shown[0])


def test_decisions_are_in_the_record_s_order_until_they_are_sorted(
    reader: Page, run: ip.Run, page: str
) -> None:
    decisions = ip.report_of(run).record.graphs[0].decisions
    opened(reader, f"{page}#t=decisions")
    expect(reader.locator("#tabs [aria-selected=true]")).to_have_text(re.compile("^decisions"))
    subjects = [one.subject for one in decisions if one.topic != "fusion"]
    expect(reader.locator("#table tbody td.name")).to_have_text(subjects)
    assert decisions[0].kind == "missed"
    expect(reader.locator("#table th[aria-sort]")).to_have_count(0)


def test_of_a_long_table_more_is_drawn_where_it_is_scrolled_or_a_row_is_chosen(
    reader: Page, run: ip.Run, tmp_path: Path
) -> None:
    report = ip.report_of(run)
    (graph,) = report.record.graphs
    many = tuple(replace(graph.buffers[0], buffer=f"more{number}", readers=()) for number in range(500))
    record = replace(report.record, graphs=(replace(graph, buffers=(*graph.buffers, *many)),))
    path = tmp_path / "page.html"
    path.write_text(page_html(record, [_drawn(report)]))
    opened(reader, f"{path.as_uri()}#t=buffers")
    expect(reader.locator(ROWS)).to_have_count(100)
    reader.locator(".scroll").first.evaluate("box => box.scrollTo(0, 1e6)")
    expect(reader.locator(ROWS)).to_have_count(200)
    opened(reader, f"{path.as_uri()}#t=buffers&n=more450")
    expect(reader.locator(ROWS).nth(450)).to_be_attached()
    reader.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(reader.locator(ROWS)).to_have_count(500 + len(graph.buffers))


def test_a_pane_goes_to_what_is_chosen_however_far_down_it_is(
    reader: Page, run: ip.Run, tmp_path: Path
) -> None:
    report = ip.report_of(run)
    (graph,) = report.record.graphs
    body = tuple(f"line {number}" for number in range(12))
    many = tuple(
        replace(graph.nodes[0], node=f"more{number}", top=f"more{number}", body=body) for number in range(300)
    )
    record = replace(report.record, graphs=(replace(graph, nodes=(*graph.nodes, *many)),))
    path = tmp_path / "page.html"
    path.write_text(page_html(record, [_drawn(report)]))
    opened(reader, f"{path.as_uri()}#n=more250")
    reader.locator("#bodies .rows").scroll_into_view_if_needed()
    expect(reader.locator("#bodies .row.on").first).to_be_in_viewport(ratio=0.9)


def test_folded_nodes_are_found_and_unfolded(reader: Page, run: ip.Run, tmp_path: Path) -> None:
    report = ip.report_of(run)
    fold = '<g class="ip-node" data-name="op1 ... op3" data-nodes="op1 op3"><rect width="9" height="9"/></g>'
    drawings = [[("", f'<svg class="ip-map" viewBox="0 0 9 9">{fold}</svg>'), *_drawn(report)]]
    path = tmp_path / "page.html"
    path.write_text(page_html(report.record, drawings))
    opened(reader, f"{path.as_uri()}#n=op3")
    expect(reader.locator(NODES)).to_have_count(1)
    expect(reader.locator(f"{NODES}.on")).to_have_count(1)
    reader.keyboard.press("a")
    expect(reader).to_have_url(re.compile("v=all"))
    expect(reader.locator(NODES)).to_have_count(4)


def _drawn(report: ip.Report) -> list[tuple[str, str]]:
    return [("", packed(report.html, '</div><script type="text/plain">'))]


def test_two_runs_are_one_page_with_what_changed(reader: Page, run: ip.Run, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(ip.report_of(run, ip.open_run(run_in(FLIP))).html)
    opened(reader, path.as_uri())
    expect(reader.locator("#changes")).to_contain_text("A", use_inner_text=True)
    expect(reader.locator("#graphs option")).to_have_count(2)
    expect(reader.locator("#overview .card")).to_have_count(2)
    opened(reader, f"{path.as_uri()}#g=1")
    expect(reader.locator(".drawing:not([hidden])")).to_have_count(1)
    expect(reader.locator("#kernels")).to_have_value(re.compile("^cpp_fused_flip"))


def opened(reader: Page, address: str) -> None:
    """Open a page anew, until its script has run."""
    reader.goto("about:blank")  # else a new address of the same page would not load it
    reader.goto(address)
    reader.locator("body.ready").wait_for()


def row_of(reader: Page, node: str) -> Locator:
    """Return the first line of the loop bodies that names a node."""
    return reader.locator("#bodies .row", has_text=re.compile(f"{node} ")).first


def packed(text: str, before: str) -> str:
    """Return what a page has compressed behind a text."""
    return zlib.decompress(b64decode(text.partition(before)[2].partition("</script>")[0])).decode()


def data_of(text: str) -> object:
    """Return the record in a page."""
    return json.loads(packed(text, 'id="data">'))


def spoiled(value: Any) -> Any:
    """Return a record whose texts end in what acts in a careless page."""
    match value:
        case Struct():
            changes = {name: spoiled(getattr(value, name)) for name in value.__struct_fields__}
            return replace(value, **changes)
        case str():
            return value if value in _OF_A_KIND else value + HOSTILE
        case Path():
            return Path(str(value) + HOSTILE.replace("/", "|"))
        case tuple():
            return tuple(map(spoiled, value))
    return value


_OF_A_KIND = {"missed", "passed", "analysis", "hazard", "fusion", "a", "b", "bytes", "time", "none", "host",
              "UNDECIDED", "report", "overview", "other"}  # fmt: skip


def test_names_that_mean_harm_are_shown_and_do_nothing(reader: Page, run: ip.Run, tmp_path: Path) -> None:
    report = ip.report_of(run)
    verdicts = (ReportVerdict("x", "eager", comparison(0.9, 1.2, "UNDECIDED")),)
    phases = (PhaseTime("other", 1.0),)
    compiles = (Compile("0/0", "f", "net.py:1", 1.0, phases),)
    times = (CompileTimes("x", True, 1.0, compiles, phases, (RegionTime("r", "other", 1.0, 1, 1),)),)
    more = replace(report.record, verdicts=verdicts, compile_times=times, left_out=("m",), missing=("m",))
    record: ReportOutput = spoiled(more)
    drawings = [[("", "")] for _ in record.graphs]
    text = page_html(record, drawings, [])
    path = tmp_path / "page.html"
    path.write_text(text)
    opened(reader, f"{path.as_uri()}#t=decisions")
    expect(reader.locator("script:not([type])")).to_have_count(1)
    expect(reader.locator("img, iframe, object, link, base, form")).to_have_count(0)
    for place in ("#table", "#compiling"):
        expect(reader.locator(place)).to_contain_text("</script><script>hit = 1", use_inner_text=True)
    shown = reader.locator("body").inner_text()
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert reader.evaluate("typeof hit") == "undefined"
    assert data_of(text) == to_json(record)


def test_a_dump_of_names_that_mean_harm_is_drawn(
    reader: Page, dump_dir: Callable[[str], Path], tmp_path: Path
) -> None:
    path = shutil.copytree(run_in(ANTIALIAS), tmp_path / "run_1")
    (path / "probe.json").write_text(manifest_text(label=HOSTILE, script=HOSTILE))
    for file in path.rglob("*.py"):
        text = file.read_text()
        file.write_text(re.sub(r"(# .*code: )(.*)", lambda match: match[1] + HOSTILE[:60], text))
    page = tmp_path / "page.html"
    page.write_text(ip.report_of(ip.open_run(path)).html)
    opened(reader, page.as_uri())
    expect(reader.locator("h1")).to_have_text(re.compile("^</script>"))
    expect(reader.locator("script:not([type])")).to_have_count(1)
    assert reader.evaluate("typeof hit") == "undefined"


def test_what_is_missing_is_a_sentence_with_a_command(reader: Page, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(ip.report_of(ip.open_run(run_in(TRAINING))).html)
    opened(reader, path.as_uri())
    expect(reader.locator("#missing")).to_contain_text("probe profile")
    expect(reader.locator("#more")).to_contain_text("probe whatif", use_inner_text=True)
    expect(reader.locator("#time, #verdicts, #processes, #changes")).to_have_count(0)
    sections = reader.locator("main > section").all_inner_texts()
    assert [text for text in sections if not text.partition("\n")[2].strip()] == []


@pytest.mark.compiles
def test_ranks_stand_side_by_side_with_where_compiling_took_each_its_time(
    reader: Page, probe: Probe, tmp_path: Path
) -> None:
    (tmp_path / "rank.py").write_text(RANK)
    ran = probe("dump", "--label", "two", "--", sys.executable, "-m", *TORCHRUN, "rank.py")
    assert ran.status == 0, ran.err
    ran = probe("report", "two", "-o", "page.html")
    assert ran.status == 0, ran.err
    record = ip.report_of(tmp_path).record
    assert [(one.name, one.outcome, one.collectives) for one in record.processes] == [
        ("rank0", "ok", 1),
        ("rank1", "ok", 1),
    ]
    assert not any(one.guards for row in record.compile_times for one in row.compiles)
    opened(reader, (tmp_path / "page.html").as_uri())
    expect(reader.locator("#processes tbody tr > :first-child")).to_have_text(["rank0", "rank1"])
    text = reader.locator("#compiling").inner_text()
    assert text.count("compiling took") == len(record.compile_times) == 2
    for row in record.compile_times:
        assert PHASES[row.phases[0].phase] in text
        assert row.regions[0].name in text


def test_what_is_printed_has_all_of_the_page_and_nothing_to_click(reader: Page, page: str) -> None:
    reader.set_viewport_size({"width": 700, "height": 1000})
    reader.emulate_media(media="print")
    opened(reader, page)
    expect(reader.locator(ROWS)).to_have_count(4)
    boxes = "[...document.querySelectorAll('.view, .pane, .scroll')]"
    assert reader.evaluate(f"{boxes}.every(one => one.clientHeight >= one.scrollHeight - 1)")
    assert reader.evaluate("document.documentElement.scrollWidth") <= 700
    clicked = ":is(nav, .bar) :is(nav, button, input), nav"
    expect(reader.locator(clicked)).not_to_have_count(0)
    expect(reader.locator(clicked).filter(visible=True)).to_have_count(0)


def test_the_address_has_the_section_that_is_read(reader: Page, page: str) -> None:
    reader.set_viewport_size({"width": 1440, "height": 400})
    opened(reader, page)
    reader.locator('nav a[href="#at=tables"]').click()
    expect(reader).to_have_url(re.compile("at=tables"))
    opened(reader, reader.url)
    expect(reader.locator("nav a.here")).to_have_text("Tables")
    assert 0 <= reader.locator("#tables").evaluate("tables => tables.getBoundingClientRect().top") < 150
    reader.evaluate("scrollTo(0, 0)")
    expect(reader).to_have_url(re.compile("html#?$"))


def test_the_page_holds_what_json_prints(probe: Probe, tmp_path: Path) -> None:
    target = str(run_in(ANTIALIAS))
    ran = probe("report", target, "-o", "page.html", cwd=tmp_path)
    assert ran.status == 0
    assert "written: page.html" in ran.err
    printed = json.loads(probe("report", target, "--json", "--limit", "0", cwd=tmp_path).out)
    text = (tmp_path / "page.html").read_text()
    assert data_of(text) == printed
    assert schema_faults("report", printed) == []
    assert len(text) < 2e6 * len(printed["graphs"][0]["nodes"]) / 100 + 1e5
    again = probe("report", target, "-o", "page.html", cwd=tmp_path)
    assert again.status == 2
    assert "--force" in again.err


def test_model_explorer_gets_every_node_and_arrows_between_nodes(probe: Probe, tmp_path: Path) -> None:
    ran = probe("report", str(run_in(TRAINING)), "--model-explorer", "-o", "graphs.json", cwd=tmp_path)
    assert ran.status == 0
    graphs = json.loads((tmp_path / "graphs.json").read_text())["graphs"]
    assert [graph["id"] for graph in graphs] == [graph.name for graph in ip.open_run(run_in(TRAINING)).graphs]
    for graph in graphs:
        names = [node["id"] for node in graph["nodes"]]
        assert len(names) == len({*names})
        edges = [edge for node in graph["nodes"] for edge in node["incomingEdges"]]
        assert edges
        assert {edge["sourceNodeId"] for edge in edges} <= {*names}
    spaces = {node["namespace"] for graph in graphs for node in graph["nodes"]}
    assert "op2_op3_op4" in spaces
