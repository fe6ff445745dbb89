"""`probe dump` as a user meets it: tables, JSON, empty dumps, and scripts that fail."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import Probe

pytestmark = pytest.mark.compiles


def write(folder: Path, text: str) -> Path:
    script = folder / "script.py"
    script.write_text(text)
    return script


@pytest.mark.usefixtures("warm_here")
def test_a_script_that_never_compiles_is_told_so(probe: Probe, tmp_path: Path) -> None:
    ran = probe("dump", write(tmp_path, "import torch\nprint('hello')\n"))
    assert ran.status == 2
    assert ran.out == "hello\n"
    assert "is an empty run: nothing was compiled: torch.compile was not called" in ran.err
    assert list(tmp_path.glob("torch_compile_debug/run_*/probe.json"))
    after = probe("layouts")
    assert after.status == 2
    assert "is an empty run: nothing was compiled" in after.err


@pytest.mark.usefixtures("warm_here")
def test_another_backend_is_told_apart(probe: Probe, tmp_path: Path) -> None:
    text = "import torch\ntorch.compile(lambda x: x + 1, backend='eager')(torch.ones(3))\n"
    ran = probe("dump", write(tmp_path, text))
    assert ran.status == 2
    assert "dynamo compiled 1 graph, none with inductor" in ran.err


@pytest.mark.usefixtures("warm_here")
def test_a_script_that_fails_keeps_its_traceback_and_its_dump(probe: Probe, tmp_path: Path) -> None:
    text = "import torch\ntorch.compile(lambda x: x.sin() + 1)(torch.ones(4))\nraise SystemExit('my words')\n"
    ran = probe("dump", write(tmp_path, text))
    assert ran.status == 2
    assert "model__0_inference_0.0" in ran.out
    assert "my words" in ran.err
    assert "exited with status 1; what it had dumped is shown above" in ran.err
    assert "inductor_probe" not in ran.err.partition("run:")[0]


@pytest.mark.usefixtures("warm_here")
def test_json_is_alone_on_stdout(probe: Probe, tmp_path: Path) -> None:
    text = "import torch\nprint('noise')\ntorch.compile(lambda x: x.sin() + 1)(torch.ones(4))\n"
    ran = probe("dump", write(tmp_path, text), "--json", "--label", "quiet")
    assert ran.status == 0
    found = json.loads(ran.out)
    assert "noise" in ran.err
    assert (found["label"], found["outcome"], found["exit_status"]) == ("quiet", "ok", 0)
    (graph,) = found["summary"]["graphs"]
    assert (graph["graph"], graph["kernels"], graph["buffer_bytes"]) == (
        "model__0_inference_0.0",
        {"cpp": 1},
        16,
    )
    assert probe("layouts", "buf0", "quiet").status == 0


def test_ctrl_c_reports_what_was_dumped(tmp_path: Path) -> None:
    text = (
        "import time, torch, pathlib\n"
        "torch.compile(lambda x: x.sin() + 1)(torch.ones(4))\n"
        "pathlib.Path('ready').touch()\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "-m", "inductor_probe", "dump", str(write(tmp_path, text))]
    child = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + 120
    while not (tmp_path / "ready").exists():
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < end
        time.sleep(0.1)
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "model__0_inference_0.0" in out
    assert "was interrupted by SIGINT; what it had dumped is shown above" in err


def test_graphs_of_a_killed_probe_dump_are_its_user_s(
    probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody told `probe dump` to end: what it had compiled needs no --trust, and pages say what happened."""
    text = (
        "import time, torch, pathlib\n"
        "torch.compile(lambda x: x.sin() + 1)(torch.ones(4))\n"
        "pathlib.Path('ready').touch()\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "-m", "inductor_probe", "dump", str(write(tmp_path, text))]
    child = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 240
    while not (tmp_path / "ready").exists():
        assert child.poll() is None
        assert time.monotonic() < end
        time.sleep(0.1)
    child.kill()
    child.wait()
    manifest = next(tmp_path.glob("torch_compile_debug/run_*/probe.json"))
    while json.loads(manifest.read_text())["exit_status"] is None:
        assert time.monotonic() < end
        time.sleep(0.1)
    found = json.loads(manifest.read_text())
    assert (found["outcome"], found["exit_status"], found["ended_by"]) == (
        "interrupted", -signal.SIGTERM, "the end of probe dump",
    )  # fmt: skip
    assert [graph["finished"] for graph in found["graphs"]] == [True]
    assert (manifest.parent / "probe_logs" / "fusion.log").is_file()
    assert "the script was interrupted by the end of probe dump" in probe("show").out
    assert "the script was interrupted by the end of probe dump" in probe("runs").out
    checked = probe("check")
    assert checked.status == 1
    assert "the script was interrupted by the end of probe dump" in checked.out
    benched = probe("bench-kernel")
    assert "--trust" not in benched.err
    assert benched.status == 0, benched.err
