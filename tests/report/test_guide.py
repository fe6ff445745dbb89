"""What the guide to notebooks promises: expressions that show something, and what the extra brings."""

from __future__ import annotations

import re
import sys

import pytest

import inductor_probe as ip
from tests.conftest import DUMPS, REPOSITORY
from tests.report.harmless import checked

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

GUIDE = (REPOSITORY / "docs" / "guides" / "notebooks.md").read_text()
WRITTEN = [
    code for row in re.findall(r"^\| (`.*?) \|", GUIDE, re.MULTILINE) for code in re.findall(r"`(.*?)`", row)
]
NEEDS_A_RUN = {"graph.bench_kernel()"}
"""What runs generated code: a notebook's test does."""


def test_the_guide_shows_what_to_write() -> None:
    assert set(WRITTEN) > NEEDS_A_RUN
    assert len(WRITTEN) > 8


@pytest.mark.parametrize("code", sorted({*WRITTEN} - NEEDS_A_RUN))
def test_what_the_guide_writes_shows_itself(code: str) -> None:
    latest = DUMPS / "torch-2.13.0-cpu"
    graph = ip.open_graph(latest / "hflip_cl")
    places = {'"a"': repr(str(latest / "hflip_cf")), '"b"': repr(str(latest / "hflip_cl"))}
    for name, place in places.items():
        code = code.replace(name, place)
    found = eval(code, {"ip": ip, "graph": graph})  # noqa: S307 - the guide is ours
    assert checked(found._repr_html_()).text


def test_the_guide_names_every_notebook_and_the_command() -> None:
    targets = re.findall(r"^([\w-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"`make ([\w-]+)`", GUIDE)) == {"notebooks"} <= set(targets)
    assert len(list((REPOSITORY / "notebooks").glob("*.ipynb"))) == 8
    assert "Eight notebooks" in GUIDE


def test_the_extra_is_pinned_and_says_why() -> None:
    text = (REPOSITORY / "pyproject.toml").read_text()
    pins = re.findall(r"^([\w.-]+)==", (REPOSITORY / "constraints.txt").read_text(), re.MULTILINE)
    extra = tomllib.loads(text)["project"]["optional-dependencies"]["notebook"]
    assert "inductor-probe[notebook]" in GUIDE
    for requirement in extra:
        assert re.search(rf'"{re.escape(requirement)}",\s+# \w', text), (
            f"{requirement} has no reason beside it"
        )
        assert re.split(r"[<>=]", requirement)[0].lower() in {name.lower() for name in pins}
