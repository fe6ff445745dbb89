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

import inductor_probe as ip
from inductor_probe.model.codec import to_json
from inductor_probe.model.compile_time import Compile, CompileTimes, PhaseTime, RegionTime
from inductor_probe.model.decision import DECISIONS_NAME, Decisions
from inductor_probe.model.report import ReportOutput, ReportVerdict
from inductor_probe.report.pages.compile_time import PHASES
from inductor_probe.report.shared_page import page_html
from inductor_probe.store.decisions import write_decisions
from tests.browser import PROGRAMS, Browser, browser, program
from tests.builders import comparison, decision, manifest_text
from tests.cli.test_dump_commands import RANK, TORCHRUN
from tests.conftest import Probe
from tests.dumps import ANTIALIAS, FLIP, TRAINING, run_in
from tests.schemas import schema_faults

HOSTILE = "</script><script>hit = 1</script><img src=x onerror='hit = 2'>\"'\x1b[31m\u202e\u2028&lt;"
NEAR, CHOSEN = "[...document.querySelectorAll('.near')]", "[...document.querySelectorAll('.on')]"
ROW = "[...document.querySelectorAll('{} .row')].find(row => row.textContent.includes('{}'))"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    path = program()
    if path is None:
        pytest.skip(f"no browser ({', '.join(PROGRAMS)}): apt-get install chromium-headless-shell")
    with browser(path, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def reader(chromium: Browser) -> Browser:
    chromium.faults.clear()
    chromium.look(1440, 900)
    return chromium


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
    reader: Browser, page: str, width: int, height: int, dark: bool
) -> None:
    reader.look(width, height, dark=dark)
    opened(reader, page)
    assert reader.wait_for("document.querySelectorAll('.drawing:not([hidden]) .ip-node').length") == 4
    assert reader.wait_for("document.querySelectorAll('#table tbody tr').length") == 4
    assert reader.wait_for("document.documentElement.scrollWidth") <= width
    ground = reader.wait_for("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(13, 17, 23)" if dark else "rgb(246, 248, 250)")
    columns = reader.wait_for(
        "getComputedStyle(document.querySelector('#panes')).gridTemplateColumns"
    ).split()
    assert len(columns) == (3 if width > 1000 else 1)
    assert reader.faults == []


def test_a_node_is_found_by_typing_and_the_address_has_it(reader: Browser, page: str) -> None:
    opened(reader, page)
    reader.press("/")
    reader.wait_for("document.activeElement.id == 'search'")
    reader.type("op3")
    reader.wait_for("document.querySelector('#hits li.at b').textContent == 'op3'")
    reader.press("Enter")
    reader.wait_for("location.hash.includes('n=op3')")
    assert "buf3" in reader.wait_for("document.querySelector('#about').innerText")
    assert reader.wait_for(f"{CHOSEN}.some(one => one.matches('.ip-node[data-name=op3]'))")
    assert reader.wait_for(f"{CHOSEN}.some(one => one.matches('#table tr'))")


def test_panes_follow_the_pointer_and_a_click(reader: Browser, page: str) -> None:
    opened(reader, page)
    row = ROW.format("#bodies", "op1 ")
    reader.click(row)
    reader.wait_for("location.hash.includes('n=op1')")
    for pane in ("#bodies", "#kernel", "#table", ".view"):
        assert reader.wait_for(f"document.querySelectorAll('{pane} .on').length"), pane
    assert reader.wait_for(f"{CHOSEN}.filter(one => one.matches('#kernel .row')).length") < reader.wait_for(
        "document.querySelectorAll('#kernel .row').length"
    )
    reader.press("Escape")
    reader.wait_for("!location.hash.includes('n=')")
    line = "document.querySelector('#kernel .row:not(.plain)')"
    reader.wait_for(f"({line}.scrollIntoView({{block: 'center'}}), true)")
    reader.point(line)
    assert reader.wait_for(f"{NEAR}.some(one => one.matches('#bodies .row'))")
    assert reader.wait_for(f"{NEAR}.some(one => one.matches('.ip-node'))")


def test_what_was_missed_stands_where_it_is(reader: Browser, page: str) -> None:
    opened(reader, page)
    assert "op2 is scalar" in reader.wait_for(
        f"{ROW.format('#bodies', 'op2 ')}.querySelector('.mark').textContent"
    )
    opened(reader, f"{page}#t=fusion")
    assert "op1, op3" in reader.wait_for("document.querySelector('#table tbody').innerText")


def test_tables_sort_and_filter_and_the_address_shows_the_same_again(reader: Browser, page: str) -> None:
    names = "[...document.querySelectorAll('#table tbody td.name')].map(cell => cell.textContent).join()"
    opened(reader, page)
    reader.click(
        "[...document.querySelectorAll('#tabs button')].find(tab => tab.textContent.startsWith('buffers'))"
    )
    heads = "[...document.querySelectorAll('#table th button')]"
    head = f"{heads}.find(head => head.textContent.startsWith('bytes'))"
    reader.click(head)
    reader.wait_for(
        "document.querySelector('#table th[aria-sort=descending]')?.innerText.startsWith('bytes')"
    )
    largest = reader.wait_for(names).split(",")
    reader.click("document.querySelector('#filter')")
    reader.type("intermediate")
    reader.wait_for("document.querySelector('#count').textContent == '3 of 5'")
    shown = reader.wait_for(names).split(",")
    assert shown == [name for name in largest if name in ("buf0", "buf1", "buf2")]
    reader.click("document.querySelector('#table tbody tr')")
    reader.wait_for(f"location.hash.includes('n={shown[0]}')")
    address = reader.wait_for("location.href")
    opened(reader, address)
    assert reader.wait_for(names).split(",") == shown
    assert reader.wait_for("document.querySelector('#about h3').textContent") == shown[0]
    assert reader.faults == []


def test_decisions_are_in_the_record_s_order_until_they_are_sorted(
    reader: Browser, run: ip.Run, page: str
) -> None:
    decisions = ip.report_of(run).record.graphs[0].decisions
    subjects = [one.subject for one in decisions if one.topic != "fusion"]
    opened(reader, f"{page}#t=decisions")
    reader.wait_for(
        "document.querySelector('#tabs [aria-selected=true]').textContent.startsWith('decisions')"
    )
    names = "[...document.querySelectorAll('#table tbody td.name')].map(cell => cell.textContent)"
    assert reader.wait_for(names) == subjects
    assert decisions[0].kind == "missed"
    assert reader.wait_for("document.querySelectorAll('#table th[aria-sort]').length == 0")


def test_of_a_long_table_more_is_drawn_where_it_is_scrolled_or_a_row_is_chosen(
    reader: Browser, run: ip.Run, tmp_path: Path
) -> None:
    report = ip.report_of(run)
    (graph,) = report.record.graphs
    many = tuple(replace(graph.buffers[0], buffer=f"more{number}", readers=()) for number in range(500))
    record = replace(report.record, graphs=(replace(graph, buffers=(*graph.buffers, *many)),))
    path = tmp_path / "page.html"
    path.write_text(page_html(record, [_drawn(report)]))
    opened(reader, f"{path.as_uri()}#t=buffers")
    rows, scroll = "document.querySelectorAll('#table tbody tr').length", "document.querySelector('.scroll')"
    assert reader.wait_for(rows) == 100
    reader.wait_for(f"({scroll}.scrollTo(0, 1e6), {rows} == 200)")
    opened(reader, f"{path.as_uri()}#t=buffers&n=more450")
    reader.wait_for(f"{rows} > 450")
    reader.wait_for("(dispatchEvent(new Event('beforeprint')), true)")
    assert reader.wait_for(rows) == 500 + len(graph.buffers)
    assert reader.faults == []


def test_a_pane_goes_to_what_is_chosen_however_far_down_it_is(
    reader: Browser, run: ip.Run, tmp_path: Path
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
    pane = "document.querySelector('#bodies .rows').getBoundingClientRect()"
    row = "document.querySelector('#bodies .row.on').getBoundingClientRect()"
    assert reader.wait_for(f"{row}.top >= {pane}.top && {row}.bottom <= {pane}.bottom")


def test_folded_nodes_are_found_and_unfolded(reader: Browser, run: ip.Run, tmp_path: Path) -> None:
    report = ip.report_of(run)
    fold = '<g class="ip-node" data-name="op1 ... op3" data-nodes="op1 op3"><rect width="9" height="9"/></g>'
    drawings = [[("", f'<svg class="ip-map" viewBox="0 0 9 9">{fold}</svg>'), *_drawn(report)]]
    path = tmp_path / "page.html"
    path.write_text(page_html(report.record, drawings))
    opened(reader, f"{path.as_uri()}#n=op3")
    boxes = "[...document.querySelectorAll('.drawing:not([hidden]) .ip-node')]"
    assert reader.wait_for(f"{boxes}.map(box => box.classList.contains('on')).join()") == "true"
    reader.press("a")
    reader.wait_for("location.hash.includes('v=all')")
    assert reader.wait_for(f"{boxes}.length") == 4
    assert reader.faults == []


def _drawn(report: ip.Report) -> list[tuple[str, str]]:
    return [("", packed(report.html, '</div><script type="text/plain">'))]


def test_two_runs_are_one_page_with_what_changed(reader: Browser, run: ip.Run, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(ip.report_of(run, ip.open_run(run_in(FLIP))).html)
    opened(reader, path.as_uri())
    assert "A" in reader.wait_for("document.querySelector('#changes').innerText")
    assert reader.wait_for("document.querySelectorAll('#graphs option').length") == 2
    assert reader.wait_for("document.querySelectorAll('#overview .card').length") == 2
    opened(reader, f"{path.as_uri()}#g=1")
    assert reader.wait_for("document.querySelectorAll('.drawing:not([hidden])').length") == 1
    assert reader.wait_for("document.querySelector('#kernels').value").startswith("cpp_fused_flip")
    assert reader.faults == []


def opened(reader: Browser, address: str) -> None:
    """Open a page anew, until its script has run."""
    reader.open("about:blank")
    reader.open(address)
    reader.wait_for("document.body.classList.contains('ready')")


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


def test_names_that_mean_harm_are_shown_and_do_nothing(reader: Browser, run: ip.Run, tmp_path: Path) -> None:
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
    assert reader.wait_for("typeof hit") == "undefined"
    assert reader.wait_for("[...document.scripts].filter(one => !one.type).length") == 1
    assert reader.wait_for("document.querySelectorAll('img, iframe, object, link, base, form').length == 0")
    for place in ("#table", "#compiling"):
        shown = reader.wait_for(f"document.querySelector('{place}').innerText")
        assert "</script><script>hit = 1" in shown
    assert "\x1b" not in reader.wait_for("document.body.innerText")
    assert "\u202e" not in reader.wait_for("document.body.innerText")
    assert reader.faults == []
    assert data_of(text) == to_json(record)


def test_a_dump_of_names_that_mean_harm_is_drawn(
    reader: Browser, dump_dir: Callable[[str], Path], tmp_path: Path
) -> None:
    path = shutil.copytree(run_in(ANTIALIAS), tmp_path / "run_1")
    (path / "probe.json").write_text(manifest_text(label=HOSTILE, script=HOSTILE))
    for file in path.rglob("*.py"):
        text = file.read_text()
        file.write_text(re.sub(r"(# .*code: )(.*)", lambda match: match[1] + HOSTILE[:60], text))
    page = tmp_path / "page.html"
    page.write_text(ip.report_of(ip.open_run(path)).html)
    opened(reader, page.as_uri())
    assert reader.wait_for("document.querySelector('h1').textContent").startswith("</script>")
    assert reader.wait_for("[...document.scripts].filter(one => !one.type).length") == 1
    assert reader.wait_for("typeof hit") == "undefined"
    assert reader.faults == []


def test_what_is_missing_is_a_sentence_with_a_command(reader: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(ip.report_of(ip.open_run(run_in(TRAINING))).html)
    opened(reader, path.as_uri())
    assert "probe profile" in reader.wait_for("document.querySelector('#missing').textContent")
    assert "probe whatif" in reader.wait_for("document.querySelector('#more').innerText")
    assert reader.wait_for("document.querySelectorAll('#time, #verdicts, #processes, #changes').length == 0")
    empty = "[...document.querySelectorAll('main > section')].filter(one => !one.innerText.split('\\n')[1])"
    assert reader.wait_for(f"{empty}.length == 0")


@pytest.mark.compiles
def test_ranks_stand_side_by_side_with_where_compiling_took_each_its_time(
    reader: Browser, probe: Probe, tmp_path: Path
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
    rows = "[...document.querySelectorAll('#processes tbody tr')].map(row => row.cells[0].textContent).join()"
    assert reader.wait_for(rows) == "rank0,rank1"
    text = reader.wait_for("document.querySelector('#compiling').innerText")
    assert text.count("compiling took") == len(record.compile_times) == 2
    for row in record.compile_times:
        assert PHASES[row.phases[0].phase] in text
        assert row.regions[0].name in text
    assert reader.faults == []


def test_what_is_printed_has_all_of_the_page_and_nothing_to_click(reader: Browser, page: str) -> None:
    reader.look(700, 1000, paper=True)
    opened(reader, page)
    assert reader.wait_for("document.querySelectorAll('#table tbody tr').length") == 4
    boxes = "[...document.querySelectorAll('.view, .pane, .scroll')]"
    assert reader.wait_for(f"{boxes}.every(one => one.clientHeight >= one.scrollHeight - 1)")
    assert reader.wait_for("document.documentElement.scrollWidth") <= 700
    clicked = "[...document.querySelectorAll('nav, button, input')].filter(one => one.closest('nav, .bar'))"
    assert reader.wait_for(f"{clicked}.every(one => !one.offsetParent)")


def test_the_address_has_the_section_that_is_read(reader: Browser, page: str) -> None:
    top = "document.querySelector('#tables').getBoundingClientRect().top"
    reader.look(1440, 400)
    opened(reader, page)
    reader.click("document.querySelector('nav a[href=\"#at=tables\"]')")
    reader.wait_for("location.hash.includes('at=tables')")
    address = reader.wait_for("location.href")
    opened(reader, address)
    assert 0 <= reader.wait_for(top) < 150
    assert reader.wait_for("document.querySelector('nav a.here').textContent") == "Tables"
    reader.wait_for("(scrollTo(0, 0), location.hash == '')")
    assert reader.faults == []


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
