"""Build the documentation: README, guides, findings, figures, and the pages that are made from the code.

    make docs                          # build/site
    python docs/make_site.py FOLDER    # FOLDER/site

Pages are copied as they lie in the checkout, so that a link between two of them is right in both places. A
link to a file that is no page (a script, the folder of the notebooks) leads to the code host.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import made_pages

from inductor_probe.model.output import output_schema

CHECKOUT = Path(__file__).parents[1]
HOST = "https://github.com/inductor-probe/inductor-probe/blob/main"
PAGES = (
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md"),
    *("docs/guides/*.md", "docs/findings/*.md", "docs/screens/*.svg"),
    *("benchmarks/results/*.md", "benchmarks/results/*.png"),
)
_FENCE = re.compile(r"^```(\w+) .*$", re.MULTILINE)
"""The opening of a block that says more than its language: how a test runs it."""
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)((?:#[^)\s]*)?)\)")
_SETTINGS = """\
[project]
site_name = "inductor_probe"
docs_dir = "docs"
site_dir = "site"
use_directory_urls = false
nav = [{nav}]

[project.theme]
font = false
features = ["navigation.tabs", "navigation.top", "content.code.copy", "search.highlight"]
palette = [
  {{ media = "(prefers-color-scheme: light)", scheme = "default" }},
  {{ media = "(prefers-color-scheme: dark)", scheme = "slate" }},
]

[project.markdown_extensions.toc]
permalink = true
slugify = {{ object = "pymdownx.slugs.slugify", kwds = {{ case = "lower" }} }}

[project.markdown_extensions.pymdownx.highlight]
[project.markdown_extensions.pymdownx.superfences]
[project.markdown_extensions.tables]
"""


def main(build: Path) -> int:
    """Write the pages, then the site of them; a link or anchor that leads nowhere is an error."""
    zensical = Path(sys.executable).with_name("zensical")
    if not zensical.exists():
        print("error: no zensical, which needs Python 3.11: make env PYTHON=python3.11", file=sys.stderr)
        return 2
    sources = build / "docs"
    shutil.rmtree(sources, ignore_errors=True)
    for path in (path for pattern in PAGES for path in sorted(CHECKOUT.glob(pattern))):
        copy = sources / path.relative_to(CHECKOUT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            copy.write_text(page(path))
        else:
            shutil.copy(path, copy)
    (sources / "docs" / "records.md").write_text(made_pages.records())
    (sources / "docs" / "causes.md").write_text(made_pages.causes())
    (sources / "docs" / "schema.json").write_text(json.dumps(output_schema(), indent=1))
    settings = build / "zensical.toml"
    settings.write_text(_SETTINGS.format(nav=", ".join(navigation())))
    command = [zensical, "build", "--clean", "--strict", "--config-file", settings]
    ran = subprocess.run(command, cwd=build, check=False)
    return ran.returncode


def page(path: Path) -> str:
    """Return the text of a page as the site has it."""

    def link(match: re.Match[str]) -> str:
        target = (path.parent / match[1]).resolve().relative_to(CHECKOUT)
        is_page = any(target.match(pattern) for pattern in PAGES)
        return match[0] if is_page else f"]({HOST}/{target}{match[2]})"

    return _LINK.sub(link, _FENCE.sub(r"```\1", path.read_text()))


def navigation() -> Iterator[str]:
    """Yield the tabs as TOML: the guides in the order of the README, what is made, found and measured."""
    guides = re.findall(r"\((docs/guides/\w+\.md)\)", (CHECKOUT / "README.md").read_text())
    tabs = {
        "Guides": [*dict.fromkeys(guides)],
        "Reference": ["docs/causes.md", "docs/records.md", "CHANGELOG.md"],
        "Findings": ["docs/findings/README.md", *_pages("docs/findings")],
        "Figures": ["benchmarks/results/README.md", "benchmarks/README.md", *_pages("benchmarks/results")],
        "The house": ["ARCHITECTURE.md", "CONTRIBUTING.md"],
    }
    yield '{ "Start" = "README.md" }'
    for name, paths in tabs.items():
        yield f"{{ {json.dumps(name)} = {json.dumps(paths)} }}"


def _pages(folder: str) -> list[str]:
    return [str(path.relative_to(CHECKOUT)) for path in sorted((CHECKOUT / folder).glob("[a-z]*.md"))]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else CHECKOUT / "build"))
