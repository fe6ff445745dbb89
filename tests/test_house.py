"""The house itself: what the documents promise about files and rooms."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PACKAGE = REPOSITORY / "inductor_probe"
OF_A_DUMP = ("output_code.py", "output_code_bench.py")
"""Files that documents name, and that are not the project's."""


def test_every_room_is_in_the_architecture_page_in_the_order_of_the_layers() -> None:
    """The page says that a room imports only rooms above it: import-linter has the other way round."""
    page = (REPOSITORY / "ARCHITECTURE.md").read_text()
    rooms = re.findall(r"^\| `(\w+)/?` \|", page, re.MULTILINE)
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    layers = [layer.split(" | ") for layer in project["tool"]["importlinter"]["contracts"][0]["layers"]]
    ranks = {room: -number for number, layer in enumerate(layers) for room in layer}
    assert {*rooms} == {*ranks} - {"__main__"}
    assert [ranks[room] for room in rooms] == sorted(ranks[room] for room in rooms)


def test_files_that_the_documents_of_the_house_name_are_there() -> None:
    rooms = [*PACKAGE.glob("*/__init__.py")]
    documents = {REPOSITORY / "ARCHITECTURE.md": PACKAGE, **{path: path.parent for path in rooms}}
    lost = []
    for document, folder in documents.items():
        text = document.read_text()
        text = (ast.get_docstring(ast.parse(text)) or "") if document.suffix == ".py" else text
        for name in re.findall(r"`((?:\w+/)*\w+(?:\.py|\.md|\.toml|/))`", text):
            is_there = any((place / name).exists() for place in (folder, PACKAGE, REPOSITORY))
            if name not in OF_A_DUMP and not is_there:
                lost.append(f"{document.relative_to(REPOSITORY)}: {name}")
    assert lost == []


def test_no_python_file_is_longer_than_600_lines() -> None:
    files = [*PACKAGE.rglob("*.py"), *(REPOSITORY / "scenarios").glob("*.py")]
    long = {path.name: lines for path in files if (lines := len(path.read_text().splitlines())) > 600}
    assert long == {}


def test_what_is_not_changed_is_a_struct_where_msgspec_is_there() -> None:
    """`dataclasses.replace` of a struct fails as it is called: with dataclasses beside them, one did."""
    without_msgspec = (PACKAGE / "harness", PACKAGE / "measuring" / "child", PACKAGE / "scenario.py")
    frozen, copied = list[str](), list[str]()
    for path in PACKAGE.rglob("*.py"):
        if not any(path.is_relative_to(place) for place in without_msgspec):
            text = path.read_text()
            frozen += re.findall(r"@dataclass\([^)]*frozen=True.*", text)
            copied += re.findall(
                r"from dataclasses import .*\b(?:replace|asdict)\b|dataclasses\.replace", text
            )
    assert (frozen, copied) == ([], [])


def test_every_benchmark_says_what_it_measures_and_its_figures_are_found() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "benchmarks"],
        cwd=REPOSITORY,
        env={**os.environ, "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = {line.split()[0]: line for line in listed.splitlines() if line.startswith("benchmarks.")}
    assert len(rows) > 35
    assert all(re.match(r"\S+ +[A-Z]", line) for line in rows.values())
    assert "0.962 times torch's own dump" in rows["benchmarks.cost.dump_cost"]
    assert rows["benchmarks.cost.dump_cost"].rstrip().endswith("2026-11-21, cpu-2-cores")
    folder = REPOSITORY / "benchmarks"
    table = (folder / "results" / "README.md").read_text()
    figures = re.findall(r"^\| `([\w.]+)` .* \[[\w-]+\]\((\S+)\) \|$", table, re.MULTILINE)
    assert len(figures) == sum("none is written down" not in line for line in rows.values())
    for name, page in figures:
        assert f"benchmarks.{name}" in rows, f"the table of figures names {name}"
        text = (folder / "results" / page).read_text()
        path = name.replace(".", "/")
        assert re.search(rf"benchmarks\.{name}\b|\b{path}\.py|make compat", text), f"{page} has no {name}"


def test_every_dependency_is_used_and_says_why() -> None:
    text = (REPOSITORY / "pyproject.toml").read_text()
    source = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    for requirement in tomllib.loads(text)["project"]["dependencies"]:
        name = re.split(r"[<>=]", requirement)[0]
        reason = re.search(rf'"{re.escape(requirement)}",\s+# (\w.*)', text)
        assert reason, f"{name} has no reason beside it"
        imported = re.search(rf"^\s*(import|from) {name}\b", source, re.MULTILINE)
        assert imported or reason[1].startswith("torch "), f"{name} is neither imported nor torch's need"


def test_the_pins_cover_every_requirement() -> None:
    pinned = set(re.findall(r"^([\w.-]+)==", (REPOSITORY / "constraints.txt").read_text(), re.MULTILINE))
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    requirements = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["triton"],
        *project["dependency-groups"]["dev"],
    ]
    assert {re.split(r"[<>=]", requirement)[0] for requirement in requirements} <= pinned


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_every_file_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), f"{path} has no docstring"
