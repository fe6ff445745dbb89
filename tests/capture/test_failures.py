"""Compiles that fail, one at each stage, in a script that catches every exception: what is said of them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from inductor_probe.reader.debug_dir import read_run
from inductor_probe.reader.logs.trace import failures_of
from inductor_probe.store.manifest import read_manifest
from tests.capture.conftest import Dumped, run_dump

pytestmark = [pytest.mark.compiles, pytest.mark.usefixtures("warm")]
SCRIPT = Path(__file__).with_name("failing_stages.py")


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory, warm: None) -> Dumped:
    return run_dump(tmp_path_factory.mktemp("stages"), SCRIPT)


def test_each_stage_is_recorded_with_exception_node_and_line(stages: Dumped) -> None:
    assert (stages.manifest.outcome, stages.manifest.exit_status) == ("ok", 0)
    assert stages.manifest.notes == ()
    lines = SCRIPT.read_text().splitlines()
    shown = []
    for failure in stages.manifest.failures or ():
        file, _, number = (failure.where or "::0").rpartition(":")
        assert file in (str(SCRIPT), ":")
        assert failure.line == (lines[int(number) - 1].strip() if number != "0" else None)
        graph = (failure.graph or "").partition("_")[2].rpartition("_")[0]
        node = (failure.node, failure.target)
        shown.append((failure.function, failure.stage, failure.exception, node, graph, int(number) > 0))
    assert shown == [
        ("in_dynamo", "dynamo", "Unsupported", (None, None), "", True),
        ("in_decomposition", "decomposition", "RuntimeError", ("silu", None), "", True),
        (
            "in_lowering",
            "lowering",
            "RuntimeError",
            ("digamma", "aten.digamma.default"),
            "_1_inference",
            True,
        ),
        ("in_scheduling", "scheduling", "RuntimeError", (None, None), "_2_inference", False),
        ("in_code_generation", "code-generation", "RuntimeError", ("op0", None), "_3_inference", True),
        ("in_compiler", "cpp-compiler", "CppCompileError", ("cpp_fused_sum_0", None), "_4_inference", False),
        ("in_guards", "guards", "ConstraintViolationError", (None, None), "_5_inference", True),
        (None, "lowering", "RuntimeError", ("cosh", "aten.cosh.default"), "_6_backward", True),
    ]
    assert [one.backward for one in stages.manifest.failures or ()] == [False] * 7 + [True]


def test_every_verb_says_it_and_none_that_it_can_be_benchmarked(
    stages: Dumped, probe: Callable[..., Any]
) -> None:
    run = stages.run
    lowering = "the compile of in_lowering failed in the lowering of digamma (aten.digamma.default): RuntimeE"
    for words in (("show", run), ("check", run), ("why", run), ("expect", run, "--kernels", "1")):
        text = " ".join(probe(*words).out.split())
        assert lowering in text
        assert "the compile of in_guards failed when its guards were made" in text
        assert "does not exist" not in text
        assert "bench-kernel" not in text
    listed = probe("runs", run).out
    assert "failed" in listed.splitlines()[1]
    assert "! " in listed
    assert "7 further compiles failed" in " ".join(listed.split())


def test_what_was_made_before_it_failed_stays_readable(stages: Dumped, probe: Callable[..., Any]) -> None:
    graph = next((stages.run / "torchinductor").glob("model__3_inference*"))
    ran = probe("show", "op0", graph)
    assert (ran.status, ran.err) == (0, "")
    assert "buf0[p0] = sin(arg0_1[p0]) - 4.0" in ran.out


def test_a_graph_that_has_no_code_is_not_left_out_in_silence(
    stages: Dumped, probe: Callable[..., Any]
) -> None:
    """`kernels` and `layouts` showed the other graphs alone."""
    for verb in ("kernels", "layouts", "nodes"):
        text = " ".join(probe(verb, stages.run).out.split())
        assert re.search(
            r"! model__\d_inference_\S+: the compile of in_lowering failed in the lowering", text
        )
        assert "in_guards failed" not in text  # its graph has rows


def test_expectations_fail_of_the_graph_that_failed_and_hold_of_another(
    stages: Dumped, probe: Callable[..., Any]
) -> None:
    folder = stages.run / "torchinductor"
    guards, forward = (next(folder.glob(f"model__{name}*")) for name in ("5_inference", "6_forward"))
    ran = probe("expect", guards, "--kernels", "1")
    assert ran.status == 1
    assert "--no-failed-compile FAILS: 1 failed compile" in ran.out
    assert probe("expect", forward, "--kernels", "1", "--no-failed-compile").status == 0


def test_the_time_of_compiling_outlives_a_reset_of_dynamo(stages: Dumped) -> None:
    """The script ends with `torch._dynamo.reset()`, which clears all times."""
    assert stages.manifest.compile_s


def test_torch_s_own_log_has_them_where_the_manifest_has_not(stages: Dumped, tmp_path: Path) -> None:
    run = tmp_path / stages.run.name
    shutil.copytree(stages.run, run)
    shutil.copytree(stages.run.parent / "tlparse", tmp_path / "tlparse")
    data = json.loads((run / "probe.json").read_text())
    del data["failures"]
    (run / "probe.json").write_text(json.dumps(data))
    manifest = read_manifest(run / "probe.json")
    assert manifest.failures is None
    recorded = [replace(one, node=None, target=None, line=None) for one in stages.manifest.failures or ()]
    *forwards, _ = recorded  # torch writes no failure of a backward
    logged = [replace(one, node=None, target=None, line=None) for one in failures_of(run, manifest)]
    of_guards = next(one for one in recorded if one.stage == "guards")
    assert [replace(one, where=None) for one in logged] == [
        replace(one, where=None, graph=None if one == of_guards else one.graph) for one in forwards
    ]
    assert read_run(run).problems == ()
