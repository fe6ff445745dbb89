"""`probe doctor` as a user meets it: the machine as it is, and with something taken away."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import inductor_probe as ip
from inductor_probe.model.codec import to_json
from inductor_probe.model.health import Diagnostic, MachineHealth
from inductor_probe.report.pages.check import health_page
from inductor_probe.report.terminal import to_text
from inductor_probe.report.words.health import text_and_remedy
from tests.conftest import REPOSITORY, Probe

GUIDE = REPOSITORY / "docs" / "guides" / "machine.md"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What it says of this machine, by the way of the package's own function."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("here"))
        patch.setenv("TORCHINDUCTOR_MAX_AUTOTUNE", "1")
        health = ip.doctor()
    assert isinstance(health, MachineHealth)
    assert repr(health).count("\n") > 15
    for diagnostic in health.diagnostics:
        assert (text_and_remedy(diagnostic)[1] is None) == (diagnostic.level == "ok"), diagnostic
    return json.loads(json.dumps(to_json(health)))


@pytest.mark.compiles
def test_this_machine_runs_the_tests_so_it_is_fit(found: dict[str, Any]) -> None:
    assert found["fit"] is True
    assert {each["level"] for each in found["diagnostics"]} <= {"ok", "warning"}


@pytest.mark.compiles
def test_json_has_the_documented_keys(found: dict[str, Any]) -> None:
    documented = {
        row[1]: set(re.findall(r"`(\w+)`", row[2]))
        for row in re.finditer(r"^\| `(\w+)` \| (.*) \|$", GUIDE.read_text(), re.MULTILINE)
    }
    assert set(found) == {"fit", "diagnostics"}
    for each in found["diagnostics"]:
        assert set(each) == {"about", "level", "code", "facts", "remarks"}
        assert set(each["facts"]) == documented[each["about"]], each["about"]
    assert {each["about"] for each in found["diagnostics"]} == set(documented)


@pytest.mark.compiles
def test_a_variable_that_is_set_is_a_warning(found: dict[str, Any]) -> None:
    (warning,) = [
        each for each in found["diagnostics"] if each["facts"].get("name") == "TORCHINDUCTOR_MAX_AUTOTUNE"
    ]
    assert (warning["level"], warning["code"]) == ("warning", "variable-effect")


@pytest.mark.compiles
def test_without_a_compiler_the_status_tells(probe: Probe, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("bash", "sh", "uname"):
        (tools / tool).symlink_to(shutil.which(tool) or "/bin/sh")
    ran = probe("doctor", PATH=str(tools), COLUMNS="80")
    assert ran.status == 1
    assert re.search(r"^error +compiler +there is no g\+\+ on the PATH; install g\+\+", ran.out, re.MULTILINE)
    assert "not fit: see compiler" in ran.out
    assert all(len(line) <= 80 for line in ran.out.splitlines())
    assert "Traceback" not in ran.out + ran.err


def test_without_torch_it_ends_at_once_with_the_remedy(probe: Probe, tmp_path: Path) -> None:
    stand_in = tmp_path / "torch.py"
    stand_in.write_text("raise ModuleNotFoundError(\"No module named 'torch'\")\n")
    environment = {"PYTHONPATH": f"{tmp_path}:{REPOSITORY}"}
    ran = probe("doctor", **environment)
    assert ran.status == 1
    assert "error    torch" in ran.out
    line = next(line for line in ran.out.splitlines() if line.startswith("error"))
    assert "ModuleNotFoundError" in line  # a pipe gets whole lines
    assert f"{sys.executable} -c" in line
    as_json = probe("doctor", "--json", **environment)
    assert (as_json.status, as_json.err) == (1, "")
    said = json.loads(as_json.out)
    assert [each["about"] for each in said["health"]["diagnostics"] if each["level"] == "error"] == ["torch"]


def test_it_never_imports_torch_itself() -> None:
    code = (
        "import sys, inductor_probe.api.check, inductor_probe.cli.runs\n"
        "sys.exit(bool({'torch', 'triton'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_last_line_says_what_is_needed() -> None:
    missing = (("executable", "/bin/python"), ("error", None))
    full = (("use", "dumps"), ("folder", "/a"), ("error", "No space left on device"))
    health = MachineHealth(
        (
            Diagnostic("torch", "error", "torch-not-installed", missing),
            Diagnostic("disk", "error", "folder-not-writable", full),
            Diagnostic("debugpy", "warning", "debugpy-not-installed", ()),
        )
    )
    lines = to_text(health_page(health), 110).splitlines()
    assert lines[0].startswith("error    torch    not installed in /bin/python; pip install torch")
    assert lines[-1] == "not fit: see torch, disk; 1 warning above"
