"""`dump` on scripts that compile: what is on disk afterwards, and what was on the screen."""

from __future__ import annotations

import re

import pytest
import torch

from inductor_probe.model.manifest import INPUTS_DIR, LOGS_DIR, BufferOrigin
from tests.capture.conftest import Dumped

pytestmark = pytest.mark.compiles

# V1121 02:22:22.682000 15139 torch/_inductor/scheduler.py:2372] [0/0] [__fusion] message
PREFIX = re.compile(r"[VIWEC]\d{4} [\d:.]+ \d+ torch/\S+\.py:\d+\] (\[\d+/\d+\] )?\[__(\w+)\] ?.*")


def test_manifest_says_what_was_run(hflip: Dumped) -> None:
    manifest = hflip.manifest
    assert manifest.command[1].endswith("check_hflip.py")
    assert manifest.command[2:] == ("--case", "sliced", "--set", "batch=2")
    assert (manifest.scenario, manifest.cases, manifest.knobs) == (
        "check_hflip",
        ("sliced",),
        (("batch", "2"),),
    )
    assert (manifest.label, manifest.outcome, manifest.exit_status) == ("mine", "ok", 0)
    assert manifest.compiled_frames == 1
    assert manifest.duration_s > 0
    assert dict(manifest.versions)["torch"] == torch.__version__
    assert {"inductor_probe", "python", "cxx"} <= dict(manifest.versions).keys()
    assert {"host", "system", "cpu", "cores", "memory_gib", "threads"} <= dict(manifest.machine).keys()
    assert ("TORCHINDUCTOR_VEC_ISA_OK", "1") in (manifest.environment or ())
    assert manifest.notes == ()


def test_graph_has_its_compile_case_and_inputs(hflip: Dumped) -> None:
    (graph,) = hflip.manifest.graphs
    assert [graph.name] == hflip.graph_folders
    assert (graph.compile_id, graph.why, graph.guards, graph.case) == ("0/0", "first", (), "sliced")
    (fact,) = graph.inputs
    assert (fact.name, fact.kind, fact.dtype, fact.device) == ("arg0_1", "tensor", "uint8", "cpu")
    # The view x[:, :, 9:-12, 12:-10] of a (2, 3, 245, 246) image.
    assert (fact.size, fact.stride, fact.offset) == (
        (2, 3, 224, 224), (3 * 245 * 246, 245 * 246, 246, 1), 9 * 246 + 12,
    )  # fmt: skip
    assert (fact.minimum, fact.maximum) == (0, 255)
    assert graph.origins == (BufferOrigin("buf0", "rev", ("rev",)),)
    assert graph.became == (("flip", ("rev",)), ("aten.flip", ("rev",)))


def test_saved_input_is_its_whole_storage(hflip: Dumped) -> None:
    (graph,) = hflip.manifest.graphs
    assert graph.inputs[0].saved == "arg0_1.bin"
    saved = (hflip.run / "torchinductor" / graph.name / INPUTS_DIR / "arg0_1.bin").read_bytes()
    torch.manual_seed(0)  # as a scenario does before it builds a case
    assert saved == torch.randint(0, 256, (2, 3, 245, 246), dtype=torch.uint8).numpy().tobytes()


def test_logs_are_files_in_torch_s_own_format_and_not_on_the_screen(hflip: Dumped) -> None:
    for log in sorted((hflip.run / LOGS_DIR).iterdir()):
        for line in log.read_text().splitlines():
            match = PREFIX.fullmatch(line)
            assert match, line
            assert match[2] == log.stem
    assert "attempting fusion" in hflip.log("fusion")
    assert "[__" not in hflip.stderr
    assert not re.search(r"attempting fusion|comprehensive padding", hflip.stdout + hflip.stderr)


def test_parent_never_imports_torch(hflip: Dumped) -> None:
    assert not hflip.imported_torch


def test_script_s_own_output_is_untouched(hflip: Dumped) -> None:
    assert re.fullmatch(r"sliced  uint8 \[2, 3, 224, 224\] .* ok\n", hflip.stdout)


def test_recompile_names_the_guards_that_failed(history: Dumped) -> None:
    first, second = history.manifest.graphs[:2]
    assert (first.compile_id, first.why, first.guards) == ("0/0", "first", ())
    assert (second.compile_id, second.why) == ("0/1", "recompile")
    (guard,) = second.guards
    assert guard.startswith("0/0: tensor 'x' size mismatch at index 1. expected 3, actual 4")
    assert guard in re.sub(r"\s{2,}", "  ", history.log("recompiles"))


def test_integer_inputs_have_their_extremes_and_floats_have_none(history: Dumped) -> None:
    facts = {fact.dtype: fact for fact in history.manifest.graphs[0].inputs}
    assert (facts["int64"].minimum, facts["int64"].maximum) == (2, 6)
    assert (facts["float32"].minimum, facts["float32"].maximum) == (None, None)
    assert all(fact.saved is None for fact in facts.values())


def test_graph_break_has_its_reason_and_place(history: Dumped) -> None:
    found = [broken for broken in history.manifest.graph_breaks if "print" in broken.reason]
    assert len(found) == 1
    assert found[0].where == f"{history.run.parents[1] / 'script.py'}:15"
    assert "Dynamo does not know how to trace builtin operator `print`" in found[0].reason


def test_recompile_limit_names_function_and_guard(history: Dumped) -> None:
    (hit,) = history.manifest.limit_hits
    assert hit.function == "narrow"
    assert hit.where == f"{history.run.parents[1] / 'script.py'}:21"
    assert re.match(r"\d+/\d+: .*\bn\b", str(hit.reason))
    assert "hit config.recompile_limit (2)" in history.stderr  # dynamo's own warning stays visible


def test_backward_graph_is_told_from_a_first_compile(history: Dumped) -> None:
    forward, backward = history.manifest.graphs[-2:]
    assert ("_forward_" in forward.name, forward.why) == (True, "first")
    assert ("_backward_" in backward.name, backward.why) == (True, "backward")
    assert backward.inputs
    assert backward.compile_id == forward.compile_id


def test_every_graph_on_disk_is_in_the_manifest(history: Dumped) -> None:
    assert sorted(graph.name for graph in history.manifest.graphs) == history.graph_folders
    assert history.manifest.notes == ()


def test_failing_script_keeps_traceback_status_and_dump(failed: Dumped) -> None:
    manifest = failed.manifest
    assert (manifest.outcome, manifest.exit_status) == ("failed", 1)
    assert [graph.name for graph in manifest.graphs] == failed.graph_folders
    assert len(manifest.graphs) == 1
    script = failed.run.parents[1] / "script.py"
    traceback = failed.stderr[failed.stderr.index("Traceback") :]
    assert traceback.startswith(
        f'Traceback (most recent call last):\n  File "{script}", line 12, in <module>\n'
    )
    assert traceback.endswith("ValueError: no more\n")
    assert "inductor_probe" not in traceback


def test_second_dump_is_as_full_as_the_first(failed: Dumped, failed_again: Dumped) -> None:
    assert failed_again.run != failed.run
    assert failed_again.graph_folders == failed.graph_folders
    graph = failed_again.graph_folders[0]
    files = [sorted(file.name for file in (dump.run / "torchinductor" / graph).iterdir())
             for dump in (failed, failed_again)]  # fmt: skip
    assert files[0] == files[1]
    assert {"ir_pre_fusion.txt", "ir_post_fusion.txt", "output_code.py"} <= set(files[1])
