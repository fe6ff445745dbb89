"""An empty run of a warm cache: its graphs are found where inductor kept them, or the way to them is told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from inductor_probe.discovery.discover import find
from inductor_probe.discovery.inductor_cache import code_in_cache, debug_folders, way_to_graphs
from inductor_probe.reader.logs.trace import trace_log
from tests.conftest import DUMPS
from tests.dumps import graph_in

FLIP = graph_in(DUMPS / "torch-2.13.0-cpu" / "hflip_cl")
RUN = "run_2026_11_21_08_35_26_491105-pid_5172"
CODE = "oa/coa7klbeyjwtcfb4lidvhj4liawdmrlruyludxtmaz34q5cagjde.py"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Inductor's cache as torch leaves it: code, and beside it the graph's folder."""
    folder = tmp_path / "inductor cache"
    debug = (folder / CODE).with_suffix(".debug")
    shutil.copytree(FLIP, debug)
    shutil.copy(FLIP / "output_code.py", folder / CODE)
    (folder / "fxgraph" / "7m").mkdir(parents=True)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def warm(tmp_path: Path) -> Path:
    """A run in which torch compiled nothing."""
    run = tmp_path / "work" / "torch_compile_debug" / RUN
    (run / "torchinductor").mkdir(parents=True)
    (run / "torchinductor" / "aot_model___0_debug.log").touch()
    (run / "torchdynamo").mkdir()
    return run


def write_log(run: Path, code: Path | str, *, pid: int = 5172, time: str = "1121 08:35:26.487000") -> Path:
    log = run.parent / "tlparse" / f"dedicated_log_torch_trace_{pid}.log"
    log.parent.mkdir(exist_ok=True)
    event = json.dumps(
        {"inductor_output_code": {"filename": str(code), "file_path": str(code)}, "frame_id": 0}
    )
    lines = [
        f'V{time} {pid} torch/_dynamo/utils.py:2350] {{"chromium_event": {{}}, "has_payload": "81"}}',
        "\t{",
        '\t"inductor_output_code": {"filename": "/a/payload/that/mentions/it.py"}',
        f"V{time} {pid} torch/_inductor/codecache.py:2008] {event}",
        "\t# AOT ID: ['0_inference']",
        f'V{time} {pid} x.py:1] {{"inductor_output_code": 7}}',
        f'V{time} {pid} x.py:1] {{"inductor_output_code": ',
    ]
    log.write_text("\n".join(lines) + "\n")
    return log


def test_graphs_that_the_trace_log_names_are_the_runs(tmp_path: Path, cache: Path, warm: Path) -> None:
    log = write_log(warm, cache / CODE)
    assert trace_log(warm) == log
    assert code_in_cache(warm) == (cache / CODE,)
    for target in (None, str(warm), RUN):
        run = find(target, tmp_path / "work").run
        assert run.path == warm
        assert run.cached
        (graph,) = run.graphs
        assert graph.path == (cache / CODE).with_suffix(".debug")
        assert graph.kind == "inference"


@pytest.mark.parametrize(
    "other", [{"pid": 5173}, {"time": "1121 12:35:26.487000"}, {"time": "1321 99:35:26.487000"}]
)
def test_a_log_of_another_process_or_day_proves_nothing(
    tmp_path: Path, cache: Path, warm: Path, other: dict[str, object]
) -> None:
    write_log(warm, cache / CODE, **other)  # type: ignore[arg-type]  # either of its options
    assert trace_log(warm) is None
    assert find(None, tmp_path / "work").run.graphs == ()


def test_without_a_log_what_the_cache_holds_is_offered_and_not_taken(
    tmp_path: Path, cache: Path, warm: Path
) -> None:
    run = find(None, tmp_path / "work").run
    assert not run.graphs
    assert not run.cached
    text = way_to_graphs(run)
    assert f"{cache} holds 1 graph" in text
    assert "none of them known to be of this run" in text
    assert "TORCHINDUCTOR_FORCE_DISABLE_CACHES=1" in text


@pytest.mark.parametrize(("lost", "told"), [(".debug", "has no .debug folder beside it"), (".py", "is gone")])
def test_a_cache_that_lost_it_says_how_to_get_a_full_dump(
    tmp_path: Path, cache: Path, warm: Path, lost: str, told: str
) -> None:
    write_log(warm, cache / CODE)
    shutil.rmtree((cache / CODE).with_suffix(".debug"))
    if lost == ".py":
        (cache / CODE).unlink()
    run = find(None, tmp_path / "work").run
    assert not run.graphs
    assert told in way_to_graphs(run)
    assert "probe dump SCRIPT" in way_to_graphs(run)


@pytest.mark.parametrize("code", ["x" * 5000 + ".py", "a\0b.py", "/", "", "/etc/passwd", "\ud800.py"])
def test_names_in_a_strangers_log_may_be_anything(tmp_path: Path, cache: Path, warm: Path, code: str) -> None:
    write_log(warm, code)
    run = find(None, tmp_path / "work").run
    assert run.graphs == ()
    way_to_graphs(run)


@pytest.mark.parametrize(
    "target", ["", "oa", CODE, CODE.replace(".py", ".debug"), CODE.replace(".py", ".debug/output_code.py")]
)
def test_a_cache_and_places_in_it(tmp_path: Path, cache: Path, target: str) -> None:
    (graph,) = find(str(cache / target), tmp_path).run.graphs
    assert graph.path == (cache / CODE).with_suffix(".debug")


def test_graphs_of_a_cache_are_in_the_order_of_their_code(tmp_path: Path, cache: Path) -> None:
    for number, letter in enumerate("cba"):
        folder = cache / f"x{letter}" / f"c{letter * 50}.debug"
        shutil.copytree(FLIP, folder)
        os.utime(folder / "output_code.py", (number, number))
    names = [graph.name[:2] for graph in find(str(cache), tmp_path).run.graphs]
    assert names == ["cc", "cb", "ca", "co"]
    assert len(debug_folders(cache)) == 4


def test_a_log_that_names_debug_traces_leads_to_them(tmp_path: Path, cache: Path) -> None:
    # torch 2.1 to 2.3 name the folder in the cache, later ones the run's own.
    folder = (cache / CODE).with_suffix(".debug")
    log = tmp_path / "stderr.txt"
    log.write_text(
        f"[2026-11-21 03:01:47,868] [0/0] torch._inductor.debug: [WARNING] model___54 debug trace: {folder}\n"
        "W1121 02:09:16.743000 1 torch/_inductor/debug.py:545] [0/0] model__0 debug trace: /gone/away\n"
    )
    (graph,) = find("stderr.txt", tmp_path).run.graphs
    assert graph.path == folder


@pytest.mark.compiles
def test_the_second_run_of_a_real_torch(tmp_path: Path) -> None:
    script = tmp_path / "twice.py"
    script.write_text(
        "import torch\nprint(torch.compile(lambda x: x.flip(-1) + 1)(torch.ones(4, 5)).sum())\n"
    )
    environment = {
        **os.environ,
        "TORCH_COMPILE_DEBUG": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
        "TORCH_COMPILE_DEBUG_DIR": str(tmp_path),
    }
    for _ in range(2):
        subprocess.run(
            [sys.executable, script], env=environment, cwd=tmp_path, check=True, capture_output=True
        )
    runs = sorted((tmp_path / "torch_compile_debug").glob("run_*"))
    cold, warm = (find(str(run), tmp_path).run for run in runs)
    (graph,) = cold.graphs
    assert not cold.cached
    if list((warm.path / "torchinductor").glob("model__*")):
        pytest.skip("this torch compiled again: its graph cache is off")
    assert warm.cached
    (cached,) = warm.graphs
    assert cached.path.is_relative_to(tmp_path / "cache")
    for name in ("output_code.py", "ir_post_fusion.txt"):
        assert (cached.path / name).read_bytes() == (graph.path / name).read_bytes()
