"""The page of `probe report`: documents and drawings in one file, and the record that its tables show.

What was decided here:

- One file that loads nothing: style, script and data stand in it, and a content policy with the hashes of
  style and script lets nothing else run. Names in a dump are a stranger's: documents and drawings escape
  them, jinja2 does so with what the skeleton holds, and the script reads the record as JSON and writes text,
  never HTML but for drawings, which were escaped where they were made.
- The record and the drawings are compressed in it, and a drawing becomes shapes when it is first shown: what
  a browser takes to open a page is for reading what it has.
- What is a table or a picture elsewhere is the same here: `html` of a document, the drawing of a notebook,
  the flame view of `probe profile`. The script adds what a file cannot do without one: panes that follow each
  other, tables that sort and filter, the address.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from inductor_probe import __version__
from inductor_probe.model.codec import to_json
from inductor_probe.model.report import ReportOutput
from inductor_probe.report import html
from inductor_probe.report.document import Document
from inductor_probe.report.pages.compile_time import compile_time_pages
from inductor_probe.report.pages.overview import overview_page
from inductor_probe.report.pages.profile import profile_page
from inductor_probe.report.pages.report import lead, processes_table
from inductor_probe.report.plots.flame import flame_svg
from inductor_probe.report.plots.intervals import intervals_svg
from inductor_probe.report.visible import visible

_FILES = Path(__file__).parent / "shared"


def page_html(
    record: ReportOutput, drawings: Sequence[Sequence[tuple[str, str]]], changes: Document = ()
) -> str:
    """Return the page.

    Args:
        record: all that it shows.
        drawings: of each graph of the record, one or two: legend and SVG, folded and whole.
        changes: what is shown of `record.diff`.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - for a page alone
    from markupsafe import Markup  # noqa: PLC0415 - as above

    environment = Environment(
        loader=FileSystemLoader(_FILES), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["visible"] = visible
    style = html.RULES + (_FILES / "page.css").read_text(encoding="utf-8")
    script = (_FILES / "page.js").read_text(encoding="utf-8")
    profiles = [graph.profile for graph in record.graphs if graph.profile is not None]
    markup = Markup  # what follows is escaped where it is made
    return environment.get_template("page.html").render(
        record=record,
        lead=lead(record),
        version=__version__,
        style=markup(style),
        script=markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=_packed(json.dumps(to_json(record), separators=(",", ":"), ensure_ascii=False)),
        overviews=[markup(html.html(overview_page(one))) for one in record.overview],
        changes=markup(html.html(changes)),
        drawings=[[(markup(legend), _packed(svg)) for legend, svg in of_graph] for of_graph in drawings],
        profiles=[
            (one.graph, markup(flame_svg(one)), markup(html.html(profile_page(one, details=True))))
            for one in profiles
        ],
        compile_times=markup(html.html(compile_time_pages(record.compile_times))),
        verdicts=markup(intervals_svg(record.verdicts)) if record.verdicts else "",
        processes=markup(html.html([processes_table(record.processes)])) if record.processes else "",
    )


def _packed(text: str) -> str:
    """Return a text as zlib and base64 have it: a page a tenth as large is sooner sent, and sooner read."""
    return b64encode(zlib.compress(text.encode())).decode()


def _hash(text: str) -> str:
    """Return what a content policy calls a text."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
