"""The built wheel, installed outside of the checkout: its verbs work, and the scenarios come with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import DUMPS, REPOSITORY

pytestmark = pytest.mark.skipif(
    find_spec("hatchling") is None,
    reason="hatchling, which builds the wheel, is not installed, and a test installs nothing",
)
_PYTEST = """
import sys, pytest
pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--rootdir", sys.argv[1], sys.argv[1]])
"""
OFFLINE = ("--quiet", "--no-index", "--no-deps", "--disable-pip-version-check")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of the checkout, as others edit this one or have things of theirs in it."""
    base = tmp_path_factory.mktemp("wheel")
    copy = base / "checkout"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, copy)
    for name in ("inductor_probe", "scenarios"):
        shutil.copytree(REPOSITORY / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "wheel", *OFFLINE, "--no-build-isolation", "-w", str(base), str(copy)]
    subprocess.run(pip, check=True, cwd=base)
    (built,) = base.glob("*.whl")
    shutil.rmtree(copy)
    return built


@pytest.fixture(scope="module")
def probe(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Return what runs the `probe` of an environment that has the wheel, and torch from this one."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", *OFFLINE, str(wheel)]
    subprocess.run(install, check=True, cwd=folder)
    (packages,) = (folder / "env" / "lib").glob("python*/site-packages")
    # What it depends on is found behind the wheel; .pth files there, of an editable install, are not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    here = folder / "here"
    here.mkdir()

    def run(*arguments: str | Path, program: str = "probe") -> str:
        environment = {
            key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "COLUMNS")
        }
        environment["PATH"] = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
        ran = subprocess.run(
            [python.parent / program, *arguments],
            cwd=here,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    return run


def test_the_wheel_has_code_and_scenarios_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = [path for path in (REPOSITORY / "inductor_probe").rglob("*") if path.is_file()]
    code = {str(path.relative_to(REPOSITORY)) for path in files if path.parent.name != "__pycache__"}
    assert names == code | {
        f"inductor_probe/_scenarios/{path.name}" for path in (REPOSITORY / "scenarios").glob("*.py")
    }


def test_an_installed_probe_reads_a_dump(probe: Callable[..., str]) -> None:
    out = probe("layouts", "buf1", DUMPS / "torch-2.13.0-cpu" / "aa_separable_cl")
    assert "transposed [0, 2, 1, 3]" in out


def test_pytest_finds_the_plugin_of_an_installed_wheel(probe: Callable[..., str], tmp_path: Path) -> None:
    """Nothing names it there: neither a conftest.py nor an option. A dump that exists needs no compiler."""
    dump = DUMPS / "torch-2.13.0-cpu" / "aa_separable_cl"
    (tmp_path / "test_pinned.py").write_text(f"""
import inductor_probe as ip
from inductor_probe import pytest_plugin

def test_pinned(inductor_probe):
    assert "site-packages" in pytest_plugin.__file__
    graph = ip.open_graph({str(dump)!r})
    inductor_probe.expect(graph, kernels=1, vectorised=True, no_fallback=True)

def test_not_so(inductor_probe):
    inductor_probe.expect(ip.open_graph({str(dump)!r}), kernels=2)
""")
    shown = probe("-c", _PYTEST, tmp_path, program="python")
    assert "--kernels 2 FAILS: 1 kernel" in shown
    assert "1 failed, 1 passed" in shown


@pytest.mark.compiles
def test_an_installed_probe_dumps_a_scenario_and_reads_it(probe: Callable[..., str]) -> None:
    shown = json.loads(probe("dump", "check_hflip.py", "--case", "channels_last", "--json"))
    script = json.loads(Path(shown["path"], "probe.json").read_text())["script"]
    assert script.endswith("site-packages/inductor_probe/_scenarios/check_hflip.py")
    assert "buf0" in probe("layouts")


@pytest.mark.compiles
def test_an_installed_probe_knows_whether_the_machine_is_fit(probe: Callable[..., str]) -> None:
    assert "fit: nothing that is needed is missing" in probe("doctor")
