"""Measuring processes of a real bench file: forked, refused by a compiler, killed, and without a fork."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inductor_probe.bench.session import run_bench_file, server_of
from inductor_probe.bench_file.bench_file import write_bench_file
from inductor_probe.bench_file.source import other_harness
from inductor_probe.errors import NotFoundError, RunFailedError
from inductor_probe.executors.child import Event
from inductor_probe.executors.server import JobFailedError, Server
from inductor_probe.model.bench import BenchResult, BenchSettings
from inductor_probe.store.samples import read_samples
from tests.bench.dumped import edit_copy
from tests.builders import text_of_job, with_jobs_in

pytestmark = [pytest.mark.compiles, pytest.mark.usefixtures("warm")]

SETTINGS = BenchSettings(budget=0.3, processes=3, copies=True)


def codes(result: BenchResult) -> list[str]:
    return [warning.code for warning in result.warnings]


def test_one_import_serves_all_processes_and_wrong_variants_are_told_before_any_is_timed(
    graph_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_bench_file(graph_dir).path
    edit_copy(path, "tmp0 =", "tmp0 = 1 +")
    said: list[str] = []
    jobs: list[tuple[dict[str, Any], list[str]]] = []
    events_of = Server.events

    def watched(self: Server, request: dict[str, Any]) -> Iterator[Event]:
        events: list[str] = []
        jobs.append((request, events))
        for event in events_of(self, request):
            events.append(event["event"])
            yield event
        assert self.no_fork is None

    monkeypatch.setattr(Server, "events", watched)
    result = run_bench_file(path, SETTINGS, progress=said.append)
    assert [request["job"] for request, _ in jobs] == ["compile", "measure", "measure", "measure"]
    assert [request.get("check") for request, _ in jobs] == [None, True, False, False]
    first = jobs[1][1]
    assert max(index for index, event in enumerate(first) if event == "check") < first.index("comparison")
    assert "check" not in jobs[2][1]
    assert said[0] == "importing torch and inductor"
    assert "compiling 2 of 2 kernels" in said
    assert not next(each for each in result.variants if each.name.startswith("cpp_")).correct
    kept = read_samples(path.with_suffix(".json")).processes
    assert [process.first for process in kept] == ["baseline", "candidate", "baseline"]
    assert [process.overheads is not None for process in kept] == [True, False, False]
    assert len({process.seed for process in kept}) == 3


def test_a_variant_that_does_not_compile_is_told_with_its_line_and_the_rest_is_judged(
    graph_dir: Path,
) -> None:
    file = write_bench_file(graph_dir)
    (kernel,) = file.kernels
    edit_copy(file.path, r"auto tmp0 =", "auto tmp0 = no_such_name +")
    lines = file.path.read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "no_such_name" in text)
    result = run_bench_file(file.path, SETTINGS)
    variants = {variant.name: variant for variant in result.variants}
    assert variants["call"].correct
    refused = variants[f"{kernel}_v2"]
    (remark,) = refused.remarks
    assert (refused.correct, remark.code, remark.number("line")) == (False, "variant-not-compiled", line)
    assert "no_such_name" in str(remark.number("error"))
    assert "no_such_name" in str(remark.number("message"))
    assert not variants["call_v2"].correct
    assert [pair.candidate for pair in result.comparisons] == ["Compiled call"]
    assert [row.name for row in result.alone] == [f"{kernel} alone"]


def test_a_pristine_kernel_that_does_not_compile_ends_the_run_at_its_line(graph_dir: Path) -> None:
    path = write_bench_file(graph_dir).path
    text = path.read_text().replace("auto tmp0 =", "auto tmp0 = no_such_name +")
    path.write_text(text)
    line = text[: text.index("no_such_name")].count("\n") + 1
    with pytest.raises(
        RunFailedError, match=rf"output_code_bench\.py:{line}: \w+ does not compile: .*no_such_name"
    ):
        run_bench_file(path, SETTINGS)


def test_what_the_file_raises_is_told_with_its_line(graph_dir: Path) -> None:
    path = write_bench_file(graph_dir).path
    lines = path.read_text().split("\n")
    place = lines.index("async_compile = AsyncCompile()")
    lines.insert(place, "undefined_name")
    path.write_text("\n".join(lines))
    with pytest.raises(
        RunFailedError, match=rf":{place + 1}: NameError: name 'undefined_name' is not defined"
    ):
        run_bench_file(path, SETTINGS)


def test_a_process_that_is_killed_while_it_times_loses_that_pair_only(graph_dir: Path) -> None:
    file = write_bench_file(graph_dir)
    (kernel,) = file.kernels
    killed = f"""

_started = {kernel}_v2
_count = 0


def {kernel}_v2(*args):
    global _count
    _count += 1
    if _count > 200:
        os.kill(os.getpid(), 9)
    return _started(*args)


class Runner:"""
    text = file.path.read_text()
    assert text.count("\nclass Runner:") == 1
    file.path.write_text(text.replace("\nclass Runner:", killed))
    result = run_bench_file(file.path, SETTINGS)
    assert [warning.number("doing") for warning in result.warnings if warning.code == "process-lost"] == [
        "timing call_v2",
        f"timing {kernel}_v2 alone",
    ]
    assert [pair.candidate for pair in result.comparisons] == ["Compiled call"]
    assert len(result.comparisons[0].process_ratios) == 3


def test_without_fork_processes_are_fresh_and_that_is_said(
    graph_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_bench_file(graph_dir).path
    start, pids = Server.start, []

    def started(self: Server) -> None:
        self.no_fork = self.no_fork or "not here"
        start(self)
        assert self._child is not None
        pids.append(self._child.pid)

    monkeypatch.setattr(Server, "start", started)
    result = run_bench_file(path, SETTINGS)
    assert "no-fork" in codes(result)
    assert result.processes == 3
    assert len(set(pids)) >= 3


def test_a_file_of_another_harness_runs_by_that(graph_dir: Path) -> None:
    path = write_bench_file(graph_dir).path
    text = path.read_text()
    assert not other_harness(text)
    edited = text.replace("FEWEST = 6\n", "FEWEST = 7\n")
    assert other_harness(edited)
    result = run_bench_file(path, SETTINGS, source=edited, other_harness=True)
    assert codes(result)[0] == "other-harness"
    assert result.processes == 3


def test_a_job_that_cannot_be_done_is_one_sentence(graph_dir: Path) -> None:
    path = write_bench_file(graph_dir).path
    with pytest.raises(NotFoundError) as caught:
        run_bench_file(path, BenchSettings(kernel="cpp_fused_flop_0"))
    assert "no kernel cpp_fused_flop_0" in caught.value.message
    with pytest.raises(NotFoundError, match="no size s0"):
        run_bench_file(path, BenchSettings(sizes=(("s0", 3),)))
    with Server(path, "import os\nos.kill(os.getpid(), 11)\n", environment={}) as server:
        with pytest.raises(JobFailedError) as failed:
            [*server.events({"job": "compile", "children": 1})]
        assert failed.value.message == "was killed by signal 11 (SIGSEGV)"
        assert (failed.value.kind, failed.value.phase) == ("killed", "")


def test_files_of_one_server_import_torch_once(graph_dir: Path, tmp_path: Path) -> None:
    path = write_bench_file(graph_dir).path
    (tmp_path / "parent.py").write_text(
        "import os\ndef ask(file, request, tell):\n    tell('parent', text=str(os.getppid()))\n"
    )
    parents: list[str] = []
    with server_of(path, SETTINGS, with_jobs_in(tmp_path)) as server:
        for _ in range(2):
            result = run_bench_file(path, SETTINGS, shared=server)
            assert result.variants
            assert all(variant.correct for variant in result.variants)
            parents.append(text_of_job(server, "parent:ask"))
        with pytest.raises(RunFailedError, match=r"cannot be loaded|NameError"):
            run_bench_file(path, SETTINGS, source="BENCH = nothing", shared=server)
        assert run_bench_file(path, SETTINGS, shared=server).variants == result.variants
    assert parents[0] == parents[1]


def test_children_lie_elsewhere_in_memory(graph_dir: Path, tmp_path: Path) -> None:
    """Code, heap and buffers of forked children have addresses of their own."""
    (tmp_path / "where.py").write_text(
        "import ctypes, torch\n"
        "def ask(file, request, tell):\n"
        "    buffer = torch.empty(1 << 20)\n"
        "    heap = ctypes.addressof(ctypes.create_string_buffer(600))\n"
        "    tell('where', text=f'{buffer.data_ptr()} {heap}')\n"
    )
    with Server(write_bench_file(graph_dir).path, "", environment=with_jobs_in(tmp_path)) as server:
        rows = [text_of_job(server, "where:ask").split() for _ in range(4)]
    assert len({row[0] for row in rows}) == 4
    assert len({row[1] for row in rows}) > 1


def test_imports_make_no_cuda_context_and_no_thread_and_leave_no_hash_of_torch_to_children(
    graph_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TESTS_TORCH_SERVER")  # it is about the imports of a Python that is started
    (tmp_path / "state_of_child.py").write_text(
        "import os, torch\n"
        "from torch._inductor import codecache\n"
        "def hashing(*arguments):\n"
        "    raise AssertionError('a child hashes the sources of torch')\n"
        "def ask(file, request, tell):\n"
        "    codecache.build_code_hash = hashing\n"
        "    cuda = torch.cuda.is_initialized() or torch.cuda._is_in_bad_fork()\n"
        "    tasks = len(os.listdir('/proc/self/task'))\n"
        "    tell('state', text=f'{cuda} {tasks} {len(codecache.torch_key())}')\n"
    )
    path = write_bench_file(graph_dir).path
    source = f"{path.read_text()}\n# torch.compile("
    with Server(path, source, environment=with_jobs_in(tmp_path)) as server:
        text = text_of_job(server, "state_of_child:ask")
    assert text.split() == ["False", "1", "32"]


def test_a_variant_that_crashes_in_a_check_is_wrong_and_the_rest_is_judged(graph_dir: Path) -> None:
    file = write_bench_file(graph_dir)
    (kernel,) = file.kernels
    edit_copy(file.path, r"auto tmp0 =", "__builtin_trap(); auto tmp0 =")
    result = run_bench_file(file.path, SETTINGS)
    variants = {variant.name: variant for variant in result.variants}
    assert variants["call"].correct
    for name in ("call_v2", f"{kernel}_v2"):
        (remark,) = variants[name].remarks
        assert (remark.code, remark.number("how")) == ("variant-crashes", "was killed by signal 4 (SIGILL)")
    assert [pair.candidate for pair in result.comparisons] == ["Compiled call"]
