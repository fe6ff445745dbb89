"""The guides and CONTRIBUTING: every command is run, each document's in order in a folder of its own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from inductor_probe.model.decision import DECISION_KINDS
from tests.conftest import REPOSITORY
from tests.documents import GUIDES, Command, Dumped, Reader, check, commands_of, follower
from tests.fork_server import ForkServer

pytestmark = pytest.mark.usefixtures("warm")

SKILL = "skills/inductor-probe/SKILL.md"
ALL = sorted(GUIDES.glob("*.md"))
FOLLOWED = [*ALL, *(REPOSITORY / name for name in ("CONTRIBUTING.md", "AGENTS.md", SKILL))]


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> dict[Path, Reader]:
    base = tmp_path_factory.mktemp("guides")
    dumps: dict[str, Dumped] = {}
    # The tour asks about the latest run, which a copy of an earlier dump is not.
    own = {GUIDES / "tour.md": dict[str, Dumped]()}
    return {
        guide: follower(base / guide.stem, base / "state", own.get(guide, dumps), fork_server)
        for guide in FOLLOWED
    }


@pytest.mark.compiles
@pytest.mark.parametrize("command", [each for guide in FOLLOWED for each in commands_of(guide)], ids=str)
def test_a_command_of_a_guide_does_what_is_shown(readers: dict[Path, Reader], command: Command) -> None:
    check(command, readers[command.document].follow(command))


@pytest.mark.parametrize("guide", ALL, ids=lambda guide: guide.stem)
def test_every_guide_is_in_the_readme_and_its_links_lead_somewhere(guide: Path) -> None:
    assert f"(docs/guides/{guide.name})" in (REPOSITORY / "README.md").read_text()
    for link in re.findall(r"\]\(([^)#:]+)\)", guide.read_text()):
        assert (guide.parent / link).exists(), f"{guide.name} points to {link}"


def test_every_kind_of_decision_is_in_the_table_of_kinds() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \|", (GUIDES / "questions.md").read_text(), re.MULTILINE)
    assert {*DECISION_KINDS} <= {*rows}
    assert len(rows) == len({*rows})


def test_a_document_is_read_as_it_says(tmp_path: Path) -> None:
    document = tmp_path / "d.md"
    document.write_text(
        "# What?\n\n```console\n$ a --x \\\n      y\nshown  here\n...\n(exit status 1)\n$ b\n```\n"
        "```console gpu\n$ c\n```\n```python\n$ no\n```\n"
    )
    first, second, third = commands_of(document)
    assert (first.text, first.shown, first.status, first.kind) == ("a --x y", ("shown  here",), 1, "")
    assert (second.text, second.status) == ("b", 0)
    assert (third.text, third.kind) == ("c", "gpu")
    check(first, subprocess.CompletedProcess("", 1, "shown here\nother\n", ""))
    with pytest.raises(AssertionError, match="it does not print"):
        check(first, subprocess.CompletedProcess("", 1, "shown there\n", ""))
    with pytest.raises(AssertionError):
        check(first, subprocess.CompletedProcess("", 0, "shown here\n", ""))
