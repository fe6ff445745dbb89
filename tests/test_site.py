"""The documentation as a site: `make docs` builds it, and a person reads it in a browser."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from inductor_probe.catalogue import KINDS, kind_of
from inductor_probe.model.output import outputs
from tests.browser import chromium, tab
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="zensical, which builds the site, needs Python 3.11"
)


class Page(HTMLParser):
    """The links of a page, and the anchors in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links, self.anchors = set[str](), {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src"):
                self.links.add(value or "")
            if name == "id":
                self.anchors.add(value or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documentation")
    command = [sys.executable, REPOSITORY / "docs" / "make_site.py", folder]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder / "site"


@pytest.fixture
def reader(site: Path) -> Iterator[Tab]:
    """A browser, which starts at the site."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with chromium() as browser, tab(browser, f"http://127.0.0.1:{server.server_port}") as opened:
            yield opened
        server.shutdown()


def test_every_link_and_anchor_of_the_site_leads_somewhere(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 50
    lost = []
    for path, page in pages.items():
        for link in page.links:
            address, anchor = urldefrag(link)
            if urlsplit(link).scheme:
                continue
            target = (path.parent / unquote(address)).resolve() if address else path
            target = target / "index.html" if target.is_dir() else target
            anchors = pages[target].anchors if target in pages else {""}
            if not target.is_file() or unquote(anchor) not in anchors:
                lost.append((str(path.relative_to(site)), link))
    assert lost == []


def test_a_link_to_what_is_no_page_leads_to_a_file_of_the_checkout(site: Path) -> None:
    links = {link for path in site.rglob("*.html") for link in Page(path).links}
    named = [link.partition("/blob/main/")[2] for link in links if "inductor-probe/blob/main/" in link]
    assert {"scenarios", "notebooks"} <= {*named}
    assert [name for name in named if not (REPOSITORY / name).exists()] == []


def test_pages_that_are_made_have_every_verb_and_every_cause_and_no_template(site: Path) -> None:
    records = (site / "docs" / "records.html").read_text()
    assert [verb for verb in outputs() if f'id="probe-{verb}"' not in records] == []
    causes = re.sub(
        r"<(script|style).*?</\1>", "", (site / "docs" / "causes.html").read_text(), flags=re.DOTALL
    )
    codes = [
        code for kind in KINDS for cause in kind_of(kind).causes
        for code in (cause.code, *(getattr(change, "code", cause.code) for change in cause.changes))
    ]  # fmt: skip
    assert len(codes) > 200
    assert [code for code in codes if f"<code>{code}</code>" not in causes] == []
    assert not re.search(r"\{[\w|]+[:}]", causes)


def test_a_reader_finds_a_cause_by_the_search(reader: Tab) -> None:
    reader.goto("/index.html")
    reader.locator(".md-search__button").click()
    reader.locator("input:focus").fill("little-work-per-iteration")
    reader.locator("[role=option][href*='causes.html']").first.click()
    expect(reader).to_have_url(re.compile("/docs/causes.html"))
    code = reader.get_by_text("little-work-per-iteration", exact=True)
    expect(reader.locator("tr", has=code).first).to_contain_text("the next loop is not divided")


def test_a_reader_clicks_from_the_start_to_a_guide_and_to_a_record(reader: Tab) -> None:
    reader.goto("/index.html")
    expect(reader.locator("img[src$='.svg']").first).not_to_have_js_property("naturalWidth", 0)
    reader.locator("article").get_by_role("link", name="tour", exact=True).click()
    expect(reader).to_have_url(re.compile("/docs/guides/tour.html$"))
    reader.locator(".md-tabs").get_by_role("link", name="Reference").click()
    expect(reader).to_have_url(re.compile("/docs/causes.html$"))
    reader.locator(".md-sidebar--primary a[href$='records.html']").click()
    expect(reader).to_have_url(re.compile("/docs/records.html$"))
    reader.locator("article a[href$='#span']").first.click()
    expect(reader).to_have_url(re.compile("#span$"))
    expect(reader.locator("#span")).to_be_in_viewport()


def test_no_generated_page_is_in_git() -> None:
    command = ["git", "ls-files", "docs"]
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert {Path(name).suffix for name in ran.stdout.split()} == {".md", ".py", ".svg"}
    assert not {"docs/records.md", "docs/causes.md"} & {*ran.stdout.split()}
