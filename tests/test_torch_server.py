"""Processes that are forked of one with torch do what those do that a Python is started for."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from inductor_probe.accuracy_checks.options import AccuracyOptions
from inductor_probe.accuracy_checks.session import judge_program
from inductor_probe.capture.dumping import DumpResult, dump
from inductor_probe.executors.server import JobFailedError, Server
from inductor_probe.measuring.own_calls import time_own_calls
from inductor_probe.measuring.script_process import OwnProgram
from inductor_probe.model.flip import parse_flip
from inductor_probe.model.manifest import MANIFEST_NAME
from inductor_probe.store.decisions import read_decisions
from inductor_probe.store.manifest import read_manifest
from tests.builders import text_of_job, with_jobs_in
from tests.torch_server import TorchServer, imports_torch_first

pytestmark = [pytest.mark.compiles, pytest.mark.usefixtures("warm")]

SCRIPT = """
import sys
import torch

@torch.compile
def flipped(x):
    return x.flip(-1).relu() @ x.sum(0)[:, None]

torch.set_float32_matmul_precision("high")  # without a warning that a process prints once
device = "cuda" if torch.cuda.is_available() else "cpu"
flipped(torch.arange(64 * 64, dtype=torch.float32, device=device).reshape(64, 64))
print("printed by the script")
sys.exit(3)
"""
GRAPH = "torchinductor/model__0_inference_0.0"


@pytest.fixture(scope="module")
def torch_server(surroundings: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TorchServer]:
    """A server of these tests' own: what other tests left in this worker is there from its beginning."""
    server = TorchServer(tmp_path_factory.mktemp("torch_server"))
    yield server
    server.close()


def files(result: DumpResult) -> set[str]:
    """Return the names of all files of a run."""
    paths = [path for path in result.run.rglob("*") if path.is_file()]
    return {str(path.relative_to(result.run)) for path in paths}


def log_lines(path: Path) -> list[str]:
    """Return the messages of a log, without times, processes and folders."""
    return [line.partition("] ")[2] for line in anywhere(path).splitlines()]


def anywhere(path: Path) -> str:
    """Return a text without the folders of a dump, and without where a kernel was kept."""
    folders = r"run_[\d_]+-pid_\d+|/(started|forked)/|inductor_probe_dump_\w+|(?<=# kernel path: ).*"
    return re.sub(folders, "", path.read_text())


@pytest.mark.parametrize("target", [None, "h200"])
def test_a_dump_by_a_fork_is_that_of_a_python_that_was_started(
    tmp_path: Path, torch_server: TorchServer, monkeypatch: pytest.MonkeyPatch, target: str | None
) -> None:
    script = tmp_path / "flipped.py"
    script.write_text(SCRIPT)
    before = len(torch_server.forks)
    monkeypatch.setenv("RAY_CLIENT_MODE", "0")  # importing Ray sets it
    forked = dump(script, out=tmp_path / "forked", output=tmp_path / "forked.txt", target=target)
    assert torch_server.forks[before:] == ["dump", "script"]
    monkeypatch.delenv("TESTS_TORCH_SERVER")
    started = dump(script, out=tmp_path / "started", output=tmp_path / "started.txt", target=target)
    assert len(torch_server.forks) == before + 2
    assert [read_manifest(each.run / MANIFEST_NAME).exit_status for each in (forked, started)] == [3, 3]
    assert files(forked) == files(started)
    printed = [(tmp_path / f"{name}.txt").read_text() for name in ("started", "forked")]
    assert printed == ["printed by the script\n"] * 2
    for name in ("output_code.py", "ir_post_fusion.txt", "fx_graph_readable.py"):
        texts = {anywhere(each.run / GRAPH / name) for each in (started, forked)}
        assert len(texts) == 1, name
    for log in (started.run / "probe_logs").iterdir():
        assert log_lines(log) == log_lines(forked.run / "probe_logs" / log.name)
    first, second = (read_decisions(each.run / GRAPH / "probe_decisions.jsonl") for each in (started, forked))
    assert second.complete
    assert sorted(map(repr, first.decisions)) == sorted(map(repr, second.decisions))


def test_what_may_act_before_torch_is_imported_has_a_python_of_its_own(
    tmp_path: Path, torch_server: TorchServer
) -> None:
    script = tmp_path / "sets.py"
    script.write_text("import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport torch\n")
    before = len(torch_server.forks)
    dump(script, out=tmp_path, output=tmp_path / "printed.txt")
    assert torch_server.forks[before:] == ["dump"]


def test_a_server_is_forked_where_its_environment_is_known_and_ends_as_it_is_ended(
    tmp_path: Path, torch_server: TorchServer
) -> None:
    (tmp_path / "asked.py").write_text(
        "import os\ndef ask(file, request, tell):\n"
        "    tell('asked', text=f'{os.environ[\"OMP_NUM_THREADS\"]} {os.getppid()}')\n"
    )
    variables = with_jobs_in(tmp_path)
    before = len(torch_server.forks)
    with Server(tmp_path, "", environment=variables) as server:
        threads, worker = text_of_job(server, "asked:ask").split()
        assert torch_server.forks[before:] == ["bench"]
        assert server._child is not None
        assert threads == "1"
        os.kill(server._child.pid, signal.SIGKILL)
        with pytest.raises(JobFailedError, match=r"signal 9 \(SIGKILL\)"):
            text_of_job(server, "asked:ask")
    for _ in range(100):
        if not Path(f"/proc/{worker}").exists():
            break
        signal.sigtimedwait([], 0.1)
    assert not Path(f"/proc/{worker}").exists()
    with Server(tmp_path, "", environment={**variables, "TORCH_LOGS": "+dynamo"}) as server:
        assert text_of_job(server, "asked:ask")
    assert torch_server.forks[before:] == ["bench"]


JUDGED = """
import torch
assert torch.get_num_threads() == 1

@torch.compile
def scaled(x):
    return (x.sin() * 2).sum(-1)

for number in range(2):
    scaled(torch.arange(64.0).reshape(8, 8))
"""


def test_calls_of_a_script_are_judged_by_a_fork_as_by_a_python_that_was_started(
    tmp_path: Path, torch_server: TorchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "judged.py"
    script.write_text(JUDGED)
    options = AccuracyOptions(folder="", seconds=60.0)
    before = len(torch_server.forks)

    def judged() -> tuple[object, ...]:
        flips = (parse_flip("scalar op0"),)
        program = OwnProgram(script=script, variables={}, flips=flips, threads=1)
        judgement = judge_program(program, options)
        assert [call.name for call in judgement.calls] == ["scaled"]
        calls, why = time_own_calls(program, [("0/0", False)], budget=0.2, margin=0.01, processes=1)
        assert why is None
        return judgement, [(call.name, call.call, call.where, call.changes) for call in calls]

    forked = judged()
    assert torch_server.forks[before:] == ["ask", "ask"]
    monkeypatch.delenv("TESTS_TORCH_SERVER")
    assert judged() == forked
    script.write_text(f"import os\nos.environ['OMP_NUM_THREADS'] = '1'\n{JUDGED}")
    assert not imports_torch_first(script)
