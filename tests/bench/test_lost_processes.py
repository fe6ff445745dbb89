"""Measuring processes that end early: what ended them is named, and everything else is still judged."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest

from inductor_probe.bench.session import run_bench_file
from inductor_probe.bench.state import MOST_LOST, State
from inductor_probe.bench_file.bench_file import write_bench_file
from inductor_probe.errors import RunFailedError
from inductor_probe.executors.server import JobFailedError, Server
from inductor_probe.model.bench import BenchResult, BenchSettings
from tests.bench.dumped import edit_copy

pytestmark = pytest.mark.usefixtures("warm")

SETTINGS = BenchSettings(budget=0.3, processes=3, copies=True)
PAGE = resource.getpagesize()


def killed(phase: str, *names: str, signal: int = 9) -> JobFailedError:
    event = {"phase": phase, "names": list(names)}
    return JobFailedError("killed", f"was killed by signal {signal}", event, "", signal)


def lost(result: BenchResult) -> list[object]:
    return [warning.number("doing") for warning in result.warnings if warning.code == "process-lost"]


def insert(path: Path, text: str) -> None:
    """Put Python behind the kernels of a bench file."""
    source = path.read_text()
    assert source.count("\nclass Runner:") == 1
    path.write_text(source.replace("\nclass Runner:", f"\n{text}\n\nclass Runner:"))


def how(result: BenchResult, name: str) -> str:
    """Return how the process ended that a variant is wrong for."""
    variant = next(variant for variant in result.variants if variant.name == name)
    (remark,) = variant.remarks
    assert (variant.correct, remark.code) == (False, "variant-crashes")
    return str(remark.number("how"))


def test_a_process_killed_from_outside_says_nothing_of_a_variant_the_first_time(tmp_path: Path) -> None:
    state = State()
    for phase in ("loading", "checking"):
        state.lose(tmp_path, killed(phase, "k_v2"))
        assert not state.crashed
        state.lose(tmp_path, killed(phase, "k_v2"))
        assert state.crashed.pop("k_v2").startswith("was killed by signal 9")
    state.lose(tmp_path, killed("checking", "k_v3", signal=11))
    assert state.crashed == {"k_v3": "was killed by signal 11"}
    state.lose(tmp_path, killed("loading", "k"))
    with pytest.raises(RunFailedError, match="killed by signal 9 while loading k") as caught:
        state.lose(tmp_path, killed("loading", "k"))
    assert "memory" in str(caught.value.hint)


def test_losses_after_the_checks_never_end_a_session(tmp_path: Path) -> None:
    state = State(variants=["k_v2"])
    state.lose(tmp_path, killed("timing", "k alone", "k_v2 alone", signal=11))
    state.lose(tmp_path, killed("recording", "k2", signal=11))
    state.lose(tmp_path, killed("overheads", signal=11))
    assert (state.skipped, state.overheads, state.gave_up) == (["k_v2 alone", "k2"], False, False)
    for _ in range(MOST_LOST):
        state.lose(tmp_path, killed("profiling", signal=11))
    assert state.gave_up


@pytest.mark.compiles
def test_a_variant_that_crashes_as_it_is_loaded_is_wrong_and_the_rest_is_judged(graph_dir: Path) -> None:
    file = write_bench_file(graph_dir)
    (kernel,) = file.kernels
    crash = "#include <csignal>\nstatic int crash = raise(SIGSEGV);\nextern "
    edit_copy(file.path, 'extern "C"', crash + '"C"')
    result = run_bench_file(file.path, SETTINGS)
    assert how(result, f"{kernel}_v2") == "was killed by signal 11 (SIGSEGV) while it was compiled"
    assert [pair.candidate for pair in result.comparisons] == ["Compiled call"]
    assert [row.name for row in result.alone] == [f"{kernel} alone"]


@pytest.mark.compiles
def test_a_variant_whose_process_is_killed_twice_as_it_is_loaded_is_named(graph_dir: Path) -> None:
    file = write_bench_file(graph_dir)
    (kernel,) = file.kernels
    crash = "#include <csignal>\nstatic int crash = raise(SIGKILL);\nextern "
    edit_copy(file.path, 'extern "C"', crash + '"C"')
    result = run_bench_file(file.path, SETTINGS)
    assert how(result, f"{kernel}_v2") == "was killed by signal 9 (SIGKILL) while it was loaded"
    assert lost(result) == [f"compiling {kernel}_v2", f"loading {kernel}_v2"]
    assert [pair.candidate for pair in result.comparisons] == ["Compiled call"]


KILLED_WHILE_PROFILING = """
_started_alone = {kernel}


def {kernel}(*args):
    names, frame = [], sys._getframe()
    while frame:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    if "profile_call" in names and ({always} or not os.path.exists({flag!r})):
        open({flag!r}, "w").close()
        os.kill(os.getpid(), 9)
    return _started_alone(*args)
"""


@pytest.mark.compiles
@pytest.mark.parametrize("always", [False, True])
def test_a_process_killed_while_it_profiles_keeps_the_checks(
    graph_dir: Path, tmp_path: Path, always: bool
) -> None:
    file = write_bench_file(graph_dir)
    (kernel,) = file.kernels
    edit_copy(file.path, "tmp0 =", "tmp0 = 1 +")
    text = KILLED_WHILE_PROFILING.format(kernel=kernel, always=always, flag=str(tmp_path / "flag"))
    insert(file.path, "import os, sys\n" + text)
    result = run_bench_file(file.path, SETTINGS)
    checks = {variant.name: variant.correct for variant in result.variants}
    assert checks == {"call": True, "call_v2": False, f"{kernel}_v2": False}
    assert lost(result) == ["profiling"]
    assert [pair.candidate for pair in result.comparisons] == ([] if always else ["Compiled call"])


@pytest.mark.compiles
@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are set on Linux only")
def test_a_variant_that_takes_all_memory_leaves_some_for_those_behind_it(graph_dir: Path) -> None:
    file = write_bench_file(graph_dir)
    (kernel,) = file.kernels
    insert(
        file.path,
        f"""
import resource, torch
_started_alone = {kernel}


def {kernel}_v3(*args):
    return _started_alone(*args)


def {kernel}_v2(*args):
    used = int(open("/proc/self/statm").read().split()[0]) * {PAGE}
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
    torch.empty(1 << 30)
""",
    )
    result = run_bench_file(file.path, SETTINGS)
    assert how(result, f"{kernel}_v2").startswith("ran out of memory: RuntimeError: ")
    checks = {variant.name: variant.correct for variant in result.variants}
    assert checks == {"call": True, "call_v2": False, f"{kernel}_v2": False, f"{kernel}_v3": True}
    assert f"{kernel}_v3 alone" in [pair.candidate for pair in result.comparisons]


@pytest.mark.compiles
@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are set on Linux only")
def test_where_memory_runs_out_before_anything_is_judged_a_sentence_says_so(
    graph_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_bench_file(graph_dir).path
    monkeypatch.delenv("TESTS_TORCH_SERVER")  # which is another process than the one that is limited
    start = Server.start

    def limited(self: Server) -> None:
        start(self)
        assert self._child is not None
        pid = self._child.pid
        used = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * PAGE
        resource.prlimit(pid, resource.RLIMIT_AS, (used + (1 << 20), resource.RLIM_INFINITY))

    monkeypatch.setattr(Server, "start", limited)
    with pytest.raises(RunFailedError, match="a measuring process ran out of memory") as caught:
        run_bench_file(path, SETTINGS)
    assert "free -h" in str(caught.value.hint)
