"""The workflow in the guide of expect: its YAML is that of GitHub Actions, and its commands run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import REPOSITORY
from tests.documents import GUIDES

LIBRARY = "import torch\n\n\ndef scaled(x):\n    return (x * {factor}).flip(-1){more}\n"
SCRIPT = """\
import torch
from library import scaled

torch.compile(scaled)(torch.rand(4, 8, 64))
"""


def workflow() -> dict[Any, Any]:
    """Return the workflow; YAML 1.1 reads its key `on` as true."""
    (text,) = re.findall(r"```yaml\n(name:.*?)```", (GUIDES / "expect.md").read_text(), re.DOTALL)
    parsed: dict[Any, Any] = yaml.safe_load(text)
    return parsed


def steps() -> list[dict[str, Any]]:
    (job,) = workflow()["jobs"].values()
    parts: list[dict[str, Any]] = job["steps"]
    return parts


def test_it_is_a_workflow_for_every_pull_request_that_may_upload_what_it_says() -> None:
    assert workflow()[True] == "pull_request"
    assert workflow()["permissions"] == {"contents": "read", "security-events": "write"}
    for step in steps():
        assert ("uses" in step) != ("run" in step)
        assert re.fullmatch(r"[\w-]+/[\w/-]+@v\d+", step.get("uses", "a/b@v1"))
    (upload,) = [step for step in steps() if "upload-sarif" in step.get("uses", "")]
    assert any(upload["with"]["sarif_file"] in step.get("run", "") for step in steps())


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    ran = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


@pytest.fixture
def pull_request(tmp_path: Path) -> tuple[Path, str]:
    """Return a library with a commit on top of another, and the name of that."""
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q")
    (library / "smoke_compile.py").write_text(SCRIPT)
    (library / "library.py").write_text(LIBRARY.format(factor=2, more=""))
    git(library, "add", ".")
    git(library, "commit", "-qm", "base")
    base = git(library, "rev-parse", "HEAD")
    (library / "library.py").write_text(LIBRARY.format(factor=3, more=".exp()"))
    git(library, "commit", "-qam", "head")
    return library, base


@pytest.mark.compiles
@pytest.mark.takes(90)
def test_its_commands_run_on_a_pull_request(pull_request: tuple[Path, str], tmp_path: Path) -> None:
    library, base = pull_request
    programs = tmp_path / "bin"
    programs.mkdir()
    probe = programs / "probe"
    probe.write_text(f'#!/bin/sh\nPYTHONPATH={REPOSITORY} exec {sys.executable} -m inductor_probe "$@"\n')
    probe.chmod(0o755)
    summary = tmp_path / "summary.md"
    printed = ""
    for step in steps():
        command = step.get("run", "")
        if not command or command.startswith("pip install"):
            continue
        of_step = {name: value.replace("${{ github.event.pull_request.base.sha }}", base)
                   for name, value in step.get("env", {}).items()}  # fmt: skip
        assert not any("${{" in value for value in of_step.values())
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", command],
            cwd=library, capture_output=True, text=True, check=False,
            env={**os.environ, **of_step, "PATH": f"{programs}:{os.environ['PATH']}",
                 "GITHUB_STEP_SUMMARY": str(summary), "XDG_STATE_HOME": str(tmp_path / "state")},
        )  # fmt: skip
        assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
        printed += ran.stderr
    assert "::warning title=probe diff::" in printed
    for title in ("probe diff", "probe expect", "probe accuracy"):
        assert f"## {title}\n" in summary.read_text()
    (log,) = json.loads((library / "missed.sarif").read_text())["runs"]
    assert log["tool"]["driver"]["name"] == "inductor_probe"
    for result in log["results"]:
        place = result["locations"][0]["physicalLocation"]["artifactLocation"]
        assert place == {"uri": "library.py", "uriBaseId": "%SRCROOT%"}
