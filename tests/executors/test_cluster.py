"""`--executor ray` on a real cluster of two nodes, whose workers are killed in the middle."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.measuring.plan import PlannedRow
from inductor_probe.measuring.session import _on_cluster
from inductor_probe.model.perf import CaseKey
from tests.conftest import Ran
from tests.documents import GUIDES, check, commands_of, follower
from tests.fork_server import ForkServer
from tests.schemas import schema_faults

Probe = Callable[..., Ran]
SCENARIO = """\
import os, signal, subprocess, sys
from pathlib import Path

import torch
from beside import ROWS
from inductor_probe.scenario import Check, Scenario

FOLDER = Path("FOLDER_OF_TEST")
RESOURCES = "import json, ray; ray.init('ADDRESS'); print(json.dumps(ray.available_resources()))"

def double(x):
    return x * 2

def parent(process):
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])

def build(case):
    if case["kill"] and not (FOLDER / "mended").exists():
        server = os.getppid()
        actor = parent(server)
        with (FOLDER / "killed").open("a") as file:
            file.write(f"{actor} {server} {os.getpid()}\\n")
        os.kill(actor, signal.SIGKILL)
        signal.pause()  # until the server ends it
    if case["look"]:
        ran = subprocess.run([sys.executable, "-c", RESOURCES], capture_output=True, text=True)
        (FOLDER / "resources.json").write_text(ran.stdout.splitlines()[-1])
    return Check(double, (torch.rand(ROWS, 8),))

cases = {"first": {}, "kills": {"kill": True}, "looks": {"look": True}, "last": {}}
scenario = Scenario(build, {"kill": False, "look": False}, cases)
"""
DECOMPOSITION = """\
import os, signal
from pathlib import Path

import torch

def flip(self, dims):
    killed = Path("FOLDER_OF_TEST", "killed")
    if not killed.exists():
        killed.touch()
        server = Path(f"/proc/{os.getppid()}/stat").read_text()
        os.kill(int(server.rpartition(")")[2].split()[1]), signal.SIGKILL)  # the actor
        signal.pause()  # until the server ends it
    return torch.ops.prims.rev(self, [dim % self.dim() for dim in dims])
"""
BRIEF = ("--columns", "eager", "--matrix", "full", "--budget", "60ms", "--processes", "1")


@pytest.mark.compiles
def test_a_matrix_is_measured_on_two_nodes_and_a_killed_worker_costs_its_case(
    probe: Probe, ray_address: str, tmp_path: Path
) -> None:
    scenario = SCENARIO.replace("FOLDER_OF_TEST", str(tmp_path)).replace("ADDRESS", ray_address)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "kills.py").write_text(scenario)
    (tmp_path / "work" / "beside.py").write_text("ROWS = 8\n")
    where = {"cwd": tmp_path / "work", "RAY_ADDRESS": ray_address}

    ran = probe("perf", "kills.py", *BRIEF, "--executor", "ray", **where)
    assert ran.status == 0, ran.err
    assert "not finished: 1 row of 4 left" in ran.out
    assert "kills: failed: the process that had it died 2 times, on " in ran.out
    assert "measured on" in ran.out
    (path,) = (tmp_path / "work" / ".probe" / "results").glob("*.json")
    run = json.loads(path.read_text())["run"]
    rows = {row["key"]["case"]: row for row in run["rows"]}
    assert [*rows] == ["first", "kills", "looks", "last"]
    assert [case for case, row in rows.items() if row["lost"]] == ["kills"]
    assert all(row["processes"] and row["node"] for case, row in rows.items() if case != "kills")
    assert {node["name"] for node in run["nodes"]} == {row["node"] for row in rows.values() if row["node"]}
    (node,) = run["nodes"]  # both are this machine
    assert dict(node["machine"])["cpu"]
    assert node["interpreter"]["torch"]
    assert (run["executor"], run["finished"]) == ("ray", False)

    # Two actors died of it, on two nodes; what they had started has ended, too.
    killed = [line.split() for line in (tmp_path / "killed").read_text().splitlines()]
    assert len({actor for actor, _, _ in killed}) == 2
    assert not [process for each in killed for process in each if Path("/proc", process, "exe").exists()]
    # While rows were measured, both nodes were taken as a whole.
    assert json.loads((tmp_path / "resources.json").read_text()).get("CPU", 0) == 0

    (tmp_path / "mended").touch()
    again = probe("perf", "kills.py", *BRIEF, "--executor", "ray", "--resume", "--format", "csv", **where)
    assert again.status == 0, again.err
    table = list(csv.DictReader(io.StringIO(again.out)))
    assert [row["case"] for row in table] == ["first", "kills", "looks", "last"]
    assert {row["node"] for row in table} == {node["name"]}
    resumed = json.loads(path.read_text())["run"]
    assert resumed["finished"]
    assert [row for row in resumed["rows"] if row["key"]["case"] != "kills"] == [
        row for case, row in rows.items() if case != "kills"
    ]


@pytest.mark.compiles
def test_samples_of_operators_run_on_two_nodes_and_a_killed_worker_is_replaced(
    probe: Probe, ray_address: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(DECOMPOSITION.replace("FOLDER_OF_TEST", str(tmp_path)))
    ran = probe(
        *("check-op", "flip", "--decomp", "mine.py:flip", "--dtype", "float32", "--modes", "static"),
        *("--forms", "given", "--samples", "1", "--executor", "ray", "--json"),
        cwd=tmp_path,
        RAY_ADDRESS=ray_address,
    )
    assert ran.status == 0, ran.err
    printed = json.loads(ran.out)
    assert schema_faults("check-op", printed) == []
    assert (tmp_path / "killed").exists()
    checks = printed["checks"]
    assert [(row["case"]["way"], row["right"]) for row in checks["rows"]] == [
        ("compiled", 1),
        ("decomposition", 1),
    ]
    assert checks["lost"] == []
    assert (checks["decomposition"]["operators"], checks["decomposition"]["calls"]) == (
        ["aten.flip.default"],
        1,
    )


def test_no_cluster_is_a_sentence(probe: Probe, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="ray is not installed: pip install ray")
    (tmp_path / "my.py").write_text("def fn(x):\n    return x\n")
    ran = probe("perf", "my.py:fn", "--executor", "ray", RAY_ADDRESS="nonsense")
    assert ran.status == 2
    assert "cannot connect to the Ray cluster" in ran.err
    assert "Traceback" not in ran.err


def test_without_ray_it_is_said_what_to_install(probe: Probe, tmp_path: Path) -> None:
    """A `ray` first on the path that cannot be imported stands for none: it is installed where this runs."""
    (tmp_path / "ray.py").write_text("raise ImportError('not here')\n")
    (tmp_path / "my.py").write_text("def fn(x):\n    return x\n")
    for words in (("perf", "my.py:fn"), ("check-op", "flip")):
        ran = probe(*words, "--executor", "ray", PYTHONPATH=str(tmp_path))
        assert ran.status == 2
        assert "pip install 'inductor-probe[ray]'" in ran.err


TASKS = """\
import json, os, signal, time
from pathlib import Path
from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.executors.cluster import RayExecutor
from inductor_probe.executors.local import Needs

class Worker:
    def __init__(self, tell):
        import ray
        self.node = ray.get_runtime_context().get_node_id()

    def open(self):
        if self.node == FIRST:
            raise ProbeError("there is no torch here")

    def prepare(self, tasks, cores):
        self.cores = cores

    def run(self, task):
        if task == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if task.startswith("gpu"):  # both at once, each on a GPU of its own
            Path("FOLDER_OF_TEST", task).touch()
            end = time.monotonic() + 60
            while len([*Path("FOLDER_OF_TEST").glob("gpu?")]) < 2 and time.monotonic() < end:
                time.sleep(0.1)
            return os.environ["CUDA_VISIBLE_DEVICES"], self.cores
        if task == "unknown":
            raise NotFoundError("no column nope", "did you mean eager?")
        return self.node, self.cores

    def close(self):
        pass

def done_of(tasks, needs):
    return [
        [done.task, done.result, done.lost and done.lost.code, done.lost and done.lost.hosts]
        for done in executor.map(Worker, tasks, needs, batch=2)
    ]

warnings = []
executor = RayExecutor(warn=warnings.append)
import ray
FIRST = ray.nodes()[0]["NodeID"]
answer = {"here": done_of(["a", "b", "dies", "c", "d"], Needs(alone=True)), "first": FIRST}
try:
    done_of(["a", "unknown"], Needs())
except ProbeError as error:
    answer["unknown"] = [type(error).__name__, error.message, error.hint]
FIRST = ""
answer["gpus"] = done_of(["gpu0", "gpu1"], Needs("cuda", alone=True))
executor.close()
print(json.dumps({**answer, "warnings": warnings}))
"""


def test_a_node_that_cannot_start_is_named_and_the_others_do_its_tasks(
    ray_address: str, tmp_path: Path
) -> None:
    (tmp_path / "tasks.py").write_text(TASKS.replace("FOLDER_OF_TEST", str(tmp_path)))
    ran = subprocess.run(
        [sys.executable, tmp_path / "tasks.py"],
        env={**os.environ, "RAY_ADDRESS": ray_address},
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(ran.stdout)
    done = {task: (result, lost, hosts) for task, result, lost, hosts in answer["here"]}
    assert done.keys() == {"a", "b", "c", "d", "dies"}
    (node,) = {result[0] for result, *_ in done.values() if result}
    assert node != answer["first"]
    assert (done["dies"][1], len(done["dies"][2])) == ("workers-died", 2), answer["warnings"]
    assert len(answer["warnings"]) == 1
    assert "is not used any more: there is no torch here" in answer["warnings"][0]
    assert answer["unknown"] == ["NotFoundError", "no column nope", "did you mean eager?"]
    assert sorted(result[0] for _, result, *_ in answer["gpus"]) == ["0", "1"]
    assert len([*tmp_path.glob("gpu?")]) == 2


def test_cases_for_a_gpu_are_left_out_where_no_node_has_one() -> None:
    """Whether this machine has one does not matter."""
    cpu = PlannedRow(CaseKey("x", "on cpu", (), "cpu", 1))
    cuda = PlannedRow(CaseKey("x", "on cuda", (), "cuda", 1), "cuda is not available")
    assert _on_cluster([cpu, cuda], 0) == (cpu, replace(cuda, missing="no node of the Ray cluster has a GPU"))
    assert _on_cluster([cpu, cuda], 2) == (cpu, replace(cuda, missing=None))


@pytest.mark.compiles
def test_the_commands_of_the_guide_run_on_a_cluster(
    ray_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fork_server: ForkServer
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", ray_address)
    reader = follower(tmp_path / "guide", tmp_path / "state", {}, fork_server)
    commands = [one for one in commands_of(GUIDES / "cluster.md") if one.kind == "cluster"]
    assert commands
    for command in commands:
        ran = reader.follow(command)
        check(command, ran)
    assert "measured on" in ran.stdout
