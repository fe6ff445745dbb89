"""Run the notebooks and write what they show as HTML that needs no network: `make notebooks`.

    python notebooks/render.py [FOLDER]

They run in this very Python, each in an empty folder; copies go to FOLDER, or to `build/notebooks`.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nbformat
from markdown_it import MarkdownIt
from nbclient import NotebookClient

from inductor_probe.report import html as document_html
from inductor_probe.report.document import Code

NOTEBOOKS = Path(__file__).parent
BUILD = NOTEBOOKS.parent / "build" / "notebooks"
LONGEST = 600
"""Seconds that a cell may take."""

_KERNEL = "this-python"
_PLACES = ("JUPYTER_PATH", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR")
_ACTING = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>{style}<style>
:root{{color-scheme:light dark}}
body{{max-width:1180px;margin:2em auto;padding:0 1.2em;font:15px/1.55 system-ui,sans-serif;
 color:light-dark(#1f2328,#e6edf3);background:light-dark(#fff,#0d1117)}}
h1,h2{{line-height:1.25;margin:1.4em 0 .5em}}p{{max-width:78ch}}
pre.ip-code{{border-left-color:#3b82f6!important}}
.text{{white-space:pre-wrap;font:12px/1.45 ui-monospace,monospace;overflow-x:auto}}
.output{{margin:.6em 0 1.6em}}
</style></head><body class="by-system">
{body}
</body></html>
"""


def run(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Return a notebook with its outputs, run from top to bottom in `folder`.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    notebook = nbformat.read(path, as_version=4)
    with _environment():
        place = {"metadata": {"path": str(folder)}}
        NotebookClient(notebook, timeout=LONGEST, kernel_name=_KERNEL, resources=place).execute()
    return notebook


def html(notebook: nbformat.NotebookNode, title: str) -> str:
    """Return a notebook that was run as one page."""
    cells = "\n".join(part for cell in notebook.cells for part in _cell(cell))
    return _PAGE.format(title=escape(title), style=document_html.STYLE, body=cells)


def main() -> None:
    """Run and write all notebooks."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else BUILD
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        with tempfile.TemporaryDirectory(prefix="notebook-") as empty:
            page = html(run(path, Path(empty)), path.stem)
        (folder / f"{path.stem}.html").write_text(page, encoding="utf-8")
        print(folder / f"{path.stem}.html")


@contextmanager
def _environment() -> Iterator[None]:
    """Let Jupyter know this Python as a kernel, and nothing of the user's: no profile, no other kernels."""
    with tempfile.TemporaryDirectory(prefix="jupyter-") as own:
        spec = Path(own, "kernels", _KERNEL)
        spec.mkdir(parents=True)
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        (spec / "kernel.json").write_text(
            json.dumps({"argv": argv, "display_name": _KERNEL, "language": "python"})
        )
        with patch.dict(os.environ, dict.fromkeys(_PLACES, own)):
            yield


def _cell(cell: nbformat.NotebookNode) -> Iterator[str]:
    if cell.cell_type == "markdown":
        yield MarkdownIt().render(cell.source)
        return
    yield f'<div class="ip">{document_html.html([Code(cell.source, "python")])}</div>'
    for output in cell.outputs:
        yield f'<div class="output">{_output(output)}</div>'


def _output(output: Mapping[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _text(output["text"])
    if output["output_type"] == "error":
        return _text("\n".join(output["traceback"]))
    data = output["data"]
    return str(data["text/html"]) if "text/html" in data else _text(data.get("text/plain", ""))


def _text(text: str) -> str:
    return f'<div class="text">{escape(_ACTING.sub("", text))}</div>'


if __name__ == "__main__":
    main()
