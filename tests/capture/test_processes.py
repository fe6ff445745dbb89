"""Processes that a dumped script starts or forks: each that compiles has a run, and they are one dump."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.analysis.ranks import dump_remarks
from inductor_probe.analysis.run_remarks import why_empty
from inductor_probe.capture.unfollowed import _stack, is_fork_of
from inductor_probe.model.debug_dir import DebugDir
from inductor_probe.model.decision import DECISIONS_NAME
from inductor_probe.model.manifest import LOGS_DIR, DumpProcess, DumpRecord, Manifest
from inductor_probe.report.words.remarks import sentence
from inductor_probe.store.manifest import read_manifest
from tests.capture.conftest import Dumped

pytestmark = pytest.mark.compiles


@pytest.fixture(scope="session")
def manifests(several: Dumped) -> dict[Path, Manifest]:
    """The manifests of all runs that the script left."""
    return {run: read_manifest(run / "probe.json") for run in several.run.parent.glob("run_*")}


def rows(manifest: Manifest) -> tuple[DumpProcess, ...]:
    assert manifest.dump is not None
    return manifest.dump.processes


def test_each_process_that_compiled_has_a_run_with_its_graphs(
    several: Dumped, manifests: dict[Path, Manifest]
) -> None:
    assert (several.manifest.outcome, several.manifest.exit_status) == ("ok", 0)
    graphs = {process.run: process.graphs for process in rows(several.manifest) if process.run is not None}
    assert sorted(graphs.values()) == [1, 1, 1, 2, 2]
    assert graphs == {run.name: len(manifest.graphs) for run, manifest in manifests.items()}
    for run, manifest in manifests.items():
        on_disk = {folder.name for folder in (run / "torchinductor").glob("model_*")}
        assert {graph.name for graph in manifest.graphs} == on_disk
        assert all(graph.finished and graph.inputs for graph in manifest.graphs)
        assert manifest.notes == ()
        assert dict(manifest.versions)["torch"]
        assert manifest.compiled_frames == len(on_disk)
        assert (run / "torchinductor" / min(on_disk) / DECISIONS_NAME).exists()
        assert "scheduler" in (run / LOGS_DIR / "fusion.log").read_text()


def test_all_runs_are_of_one_dump_and_say_of_which_process(
    several: Dumped, manifests: dict[Path, Manifest]
) -> None:
    records = [manifest.dump for manifest in manifests.values()]
    assert len({record.id for record in records if record}) == 1
    assert len({record.pid for record in records if record}) == 5
    assert len({record.processes for record in records if record}) == 1
    for run, manifest in manifests.items():
        assert run.name.endswith(f"-pid_{manifest.dump.pid if manifest.dump else None}")
        assert (manifest.command, manifest.script) == (several.manifest.command, several.manifest.script)


def test_the_script_comes_first_then_the_ranks(several: Dumped) -> None:
    script, *others = rows(several.manifest)
    pid, fork_pid = map(int, several.stdout.split()[1:])
    assert (script.pid, script.run, script.rank) == (pid, several.run.name, None)
    assert [(one.rank, one.world_size) for one in others] == [(0, 2), (1, 2), (None, None), (None, None)]
    fork, child = others[2:]
    assert (fork.pid, fork.parent, fork.outcome, fork.exit_status) == (fork_pid, pid, "ok", 0)
    assert (child.command[1], child.outcome, child.exit_status) == ("-c", "failed", 3)
    assert [one.outcome for one in others[:2]] == ["ok", "ok"]


def test_a_fork_takes_nothing_from_the_process_that_compiled_before(
    manifests: dict[Path, Manifest], several: Dumped
) -> None:
    fork = next(
        one for one in manifests.values() if one.dump and one.dump.pid == int(several.stdout.split()[2])
    )
    assert [graph.inputs[0].size for graph in fork.graphs] == [(5,)]
    assert [graph.inputs[0].size for graph in several.manifest.graphs] == [(4,)]


def test_a_sitecustomize_of_the_user_s_runs_in_the_processes_too(dump_source: object, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import builtins\nbuiltins.of_user = __name__\n")
    child = "import sys; assert of_user == 'sitecustomize'; print(sys.modules['sitecustomize'].__file__)"
    source = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}], check=True)\n"
    os.environ["PYTHONPATH"] = str(tmp_path / "own")
    try:
        dumped = dump_source(source)  # type: ignore[operator]
    finally:
        del os.environ["PYTHONPATH"]
    assert dumped.manifest.outcome == "ok", dumped.stderr
    assert dumped.stdout == f"{tmp_path / 'own' / 'sitecustomize.py'}\n"


DIES = """
import os, signal, subprocess, sys
child = '''
import torch
torch.compile(lambda x: x - 1)(torch.ones(3))
import os, signal
os.kill(os.getpid(), signal.SIGKILL)
'''
print(subprocess.run([sys.executable, "-c", child], env={**os.environ, "RANK": "1"}).returncode)
subprocess.run([sys.executable, "-c", "import torch"], env={**os.environ, "RANK": "0"}, check=True)
"""


def test_a_process_that_is_killed_leaves_its_run_and_one_that_never_compiles_is_listed(
    dump_source: object,
) -> None:
    dumped = dump_source(DIES)  # type: ignore[operator]
    assert dumped.stdout == "-9\n"
    killed, script, idle = rows(dumped.manifest)
    assert (killed.rank, killed.graphs, killed.run) == (1, 1, dumped.run.name)
    assert (killed.outcome, killed.exit_status, killed.ended_by) == ("failed", -9, "SIGKILL")
    assert (script.graphs, script.run, script.outcome) == (0, None, "ok")
    assert (idle.rank, idle.graphs, idle.run, idle.outcome) == (0, 0, None, "ok")
    assert dumped.manifest.graphs[0].finished


UNSEEN = """
import os, subprocess, sys
child = "import torch; torch.compile(lambda x: x * {0})(torch.ones({0}))"
subprocess.run([sys.executable, "-I", "-c", child.format(3)], check=True)
own = {"HOME": os.environ["HOME"], "PATH": os.environ["PATH"], "PYTHONPATH": "/nowhere"}
subprocess.run([sys.executable, "-c", child.format(5)], env=own, check=True)
"""


def test_a_child_that_ignores_the_environment_is_said_and_one_with_its_own_is_followed(
    dump_source: object,
) -> None:
    """`probe dump` said "nothing was compiled" of scripts that start `python -I`, or a Python with env={}."""
    dumped = dump_source(UNSEEN)  # type: ignore[operator]
    processes = {one.command[-1][-3:]: one for one in rows(dumped.manifest) if one.graphs}
    assert {size: (one.graphs, one.not_followed) for size, one in processes.items()} == {
        "3))": (1, "isolated"),
        "5))": (1, None),
    }
    runs = {
        one.run: read_manifest(dumped.run.parent / str(one.run) / "probe.json")
        for one in rows(dumped.manifest)
        if one.run
    }
    inputs = {len(graph.inputs) for manifest in runs.values() for graph in manifest.graphs}
    assert inputs == {0, 1}  # nobody saw those of the first
    assert "libtorch" not in dumped.stderr


def test_it_is_not_said_that_nothing_was_compiled_where_a_process_was_not_followed(several: Dumped) -> None:
    """Nothing of a process that has neither our hooks nor TORCH_COMPILE_DEBUG shows what it compiled."""
    unseen = DumpProcess(
        7, 1, None, None, ("python", "-c", "import torch\n" * 20), None, 0, "ok", None, None, "environment"
    )
    script = replace(rows(several.manifest)[0], graphs=0)
    record = DumpRecord("id", script.pid, script.pid, (script, unseen))
    empty = replace(several.manifest, graphs=(), graph_breaks=(), compiled_frames=0, dump=record)
    run = DebugDir(several.run, (), manifest=empty)
    assert sentence(why_empty(run)) == (
        "nothing was compiled in the processes that could be followed; what 1 other compiled is not known "
        f"({'python -c' + ' import torch' * 20:.100} ...), since it was started without the environment of "
        "the script"
    )
    (said,) = (sentence(remark) for remark in dump_remarks(run, ()) if remark.code == "not-followed")
    assert said.endswith(
        "since it was started without the environment of the script; what it compiled is not known"
    )


def test_a_fork_is_known_by_its_stack_whatever_title_it_gives_itself() -> None:
    """It has the hooks, and must not be called a process that could not be followed."""
    read, write = os.pipe()
    sleeper = "import os, sys; os.read(0, 1)"
    fork = os.fork()
    if not fork:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    other = subprocess.Popen([sys.executable, "-c", sleeper], stdin=read)
    try:
        assert is_fork_of(fork, os.getpid())
        assert not is_fork_of(other.pid, os.getpid())
        assert _stack(fork) == _stack(os.getpid()) != _stack(other.pid)
    finally:
        os.close(write)
        os.close(read)
        os.waitpid(fork, 0)
        other.wait()


RAISES = """
import os, time
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

def work(rank):
    dist.init_process_group("gloo", f"file://{os.getcwd()}/store", rank=rank, world_size=2)
    torch.compile(lambda x: x - 1)(torch.ones(3))
    dist.barrier()
    if rank == 1:
        raise ValueError("rank 1 has no data")
    time.sleep(600)  # spawn ends it with SIGTERM

if __name__ == "__main__":
    mp.spawn(work, nprocs=2)
"""
ALONE = "import torch; torch.compile(lambda x: x + 2)(torch.ones(5))"


def test_two_programs_in_one_folder_are_two_dumps_though_a_rank_of_one_raises(tmp_path: Path) -> None:
    """Both at once: what one leaves is not taken for a run of the other's."""
    for name, source in (("raises.py", RAISES), ("alone.py", ALONE)):
        (tmp_path / name).write_text(source)
    probe = [sys.executable, "-m", "inductor_probe", "dump"]
    both = [
        subprocess.Popen(
            [*probe, name], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for name in ("raises.py", "alone.py")
    ]
    (raised, _), (alone, _) = [one.communicate(timeout=300) for one in both]
    assert [one.returncode for one in both] == [2, 0], raised + alone
    assert "ValueError: rank 1 has no data" in raised
    assert "! rank1 exited with status 1" in raised, raised
    assert "! rank0 was interrupted by SIGTERM: later compiles, if any, are missing" in raised
    assert "rank0, rank1 compiled the same graphs (1)" in raised
    assert raised.count("\nrun: ") == 2
    assert alone.count("\nrun: ") == 1
    assert "rank" not in alone
    manifests = [read_manifest(path) for path in tmp_path.glob("torch_compile_debug/run_*/probe.json")]
    assert sorted(Path(str(one.script)).name for one in manifests) == ["alone.py", "raises.py", "raises.py"]
    assert all(len(one.graphs) == 1 for one in manifests)
