"""Dumps that several tests look at: each takes real child processes and real compiles, so it is made once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from inductor_probe.model.manifest import LOGS_DIR, Manifest
from inductor_probe.store.manifest import read_manifest
from tests.torch_server import TorchServer

SCENARIOS = Path(__file__).parents[2] / "scenarios"

# Stands for the command line: what it prints itself comes after everything that the script prints.
DRIVER = """
import json, sys
from pathlib import Path
from inductor_probe.capture import dump
script, options = json.loads(sys.argv[1])
result = dump(Path(script), **options)
print(json.dumps({"run": str(result.run), "torch": "torch" in sys.modules}))
"""


@dataclass(frozen=True)
class Dumped:
    """A dump as a caller sees it: what is on disk, and what was on the screen."""

    run: Path
    manifest: Manifest
    stdout: str
    stderr: str
    imported_torch: bool

    def log(self, artifact: str) -> str:
        return (self.run / LOGS_DIR / f"{artifact}.log").read_text(encoding="utf-8")

    @property
    def graph_folders(self) -> list[str]:
        return sorted(folder.name for folder in (self.run / "torchinductor").glob("model_*"))


def driver_command(script: Path, **options: Any) -> list[str]:
    return [sys.executable, "-c", DRIVER, json.dumps([str(script), options])]


def plain_environment(**more: str) -> dict[str, str]:
    settings = ("TORCH_LOGS", "TORCH_COMPILE_DEBUG", "TORCH_COMPILE_DEBUG_DIR", "TORCHINDUCTOR_CACHE_DIR")
    return {**{name: value for name, value in os.environ.items() if name not in settings}, **more}


def finished(stdout: str, stderr: str) -> Dumped:
    *printed, last = stdout.splitlines(keepends=True)
    said = json.loads(last)
    run = Path(said["run"])
    manifest = read_manifest(run / "probe.json")
    return Dumped(run, manifest, "".join(printed), stderr, said["torch"])


def run_dump(cwd: Path, script: Path, env: dict[str, str] | None = None, **options: Any) -> Dumped:
    done = subprocess.run(
        driver_command(script, **options),
        cwd=cwd,
        env=plain_environment(**(env or {})),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return finished(done.stdout, done.stderr)


def write_script(folder: Path, source: str) -> Path:
    script = folder / "script.py"
    script.write_text(source)
    return script


@pytest.fixture
def dump_source(tmp_path: Path) -> Callable[..., Dumped]:
    """Dump a script given as source, from a folder of its own."""

    def dump(source: str, **options: Any) -> Dumped:
        return run_dump(tmp_path, write_script(tmp_path, source), **options)

    return dump


@pytest.fixture(scope="session")
def hflip(tmp_path_factory: pytest.TempPathFactory) -> Dumped:
    cwd = tmp_path_factory.mktemp("hflip")
    return run_dump(
        cwd,
        SCENARIOS / "check_hflip.py",
        cases=["sliced"],
        knobs={"batch": "2"},
        label="mine",
        save_inputs=True,
    )


HISTORY = """
import torch

def rows(x, index):
    return x[index] * 2

compiled = torch.compile(rows, dynamic=False)
compiled(torch.ones(8, 3), torch.tensor([6, 2, 5]))
compiled(torch.ones(8, 4), torch.tensor([6, 2, 5]))


@torch.compile(backend="eager")
def broken(x):
    y = x.sin()
    print("in the middle")
    return y.cos()

broken(torch.ones(3))


@torch.compile(backend="eager")
def narrow(x, n):
    return x + n

torch._dynamo.config.recompile_limit = 2
for n in "abcd":
    narrow(torch.ones(3), len(n) if n == "a" else {"b": 2.5, "c": True, "d": 7}[n])

loss = torch.compile(lambda w: (w * w).sum())(torch.ones(4, requires_grad=True))
loss.backward()
"""


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory, torch_server: TorchServer) -> Dumped:
    """A script with a recompile, a graph break, a recompile limit that is hit, and a backward graph."""
    cwd = tmp_path_factory.mktemp("history")
    with torch_server.used():
        return run_dump(cwd, write_script(cwd, HISTORY))


FAILS = """
import torch

def half(x):
    return x / 2

torch.compile(half)(torch.ones(4))

def deeper():
    raise ValueError("no more")

deeper()
"""


@pytest.fixture(scope="session")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Dumped:
    cwd = tmp_path_factory.mktemp("failed")
    return run_dump(cwd, write_script(cwd, FAILS))


@pytest.fixture(scope="session")
def failed_again(failed: Dumped, torch_server: TorchServer) -> Dumped:
    """The same script a second time, from the same folder."""
    cwd = failed.run.parents[1]
    with torch_server.used():
        return run_dump(cwd, cwd / "script.py")


@pytest.fixture(scope="session")
def several(tmp_path_factory: pytest.TempPathFactory) -> Dumped:
    """A script that compiles, as two ranks, a fork and a subprocess of it do."""
    return run_dump(tmp_path_factory.mktemp("several"), Path(__file__).with_name("several_processes.py"))
