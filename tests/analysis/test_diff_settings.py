"""`diff` says which settings and variables changed: they are what explains the rest."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.model.diff import FactChange
from inductor_probe.model.manifest import Manifest
from inductor_probe.report.terminal import to_text
from inductor_probe.store.manifest import manifest_to_json, read_manifest
from tests.builders import manifest
from tests.dumps import TRAINING, run_in

TILING = "torch._inductor.config.cpp.enable_tiling_heuristics"
MANIFEST = manifest(label="plain", environment=(("CXX", "g++"), ("TORCHINDUCTOR_CACHE_DIR", "/a")))


def run_of(folder: Path, manifest: Manifest, settings: str = "", only: str = "") -> Path:
    """Return a copy of a training run with a manifest, and lines put into the runnables of its graphs."""
    run = folder / f"run_{manifest.label}"
    shutil.copytree(run_in(TRAINING), run)
    (run / "probe.json").write_text(json.dumps(manifest_to_json(manifest)))
    for runnable in run.glob(f"torchinductor/*{only}*/fx_graph_runnable.py"):
        text = runnable.read_text()
        runnable.write_text(
            text.replace("\ntorch._inductor.config", f"\n{settings}torch._inductor.config", 1)
        )
    return run


def test_a_setting_of_the_run_is_said_once(tmp_path: Path) -> None:
    other = replace(MANIFEST, label="tiled", environment=(("CXX", "clang++"), ("OMP_NUM_THREADS", "1")))
    diff = ip.diff(run_of(tmp_path, MANIFEST), run_of(tmp_path, other, f"{TILING} = False\n"))
    assert diff.result.environment == (
        FactChange("CXX", "g++", "clang++"),
        FactChange("OMP_NUM_THREADS", "not set", "1"),
        FactChange(TILING, "default", "False"),
    )
    assert [graph.environment for graph in diff.graphs] == [(), ()]
    assert diff.equal
    lines = to_text(diff.document, 80).splitlines()
    assert f"  {TILING}: default -> False" in lines
    narrow = to_text(diff.document, 40).splitlines()
    assert narrow[0].startswith("A  plain  …")
    assert narrow[1].startswith("B  tiled  …")
    assert narrow[1].endswith("/run_tiled")


def test_a_setting_of_one_graph_is_said_there(tmp_path: Path) -> None:
    other = replace(MANIFEST, label="other")
    diff = ip.diff(
        run_of(tmp_path, MANIFEST), run_of(tmp_path, other, f"{TILING} = False\n", only="backward")
    )
    assert diff.result.environment == ()
    assert [graph.environment for graph in diff.graphs] == [(), (FactChange(TILING, "default", "False"),)]


def test_two_graphs_name_the_labels_and_settings_of_their_runs(tmp_path: Path) -> None:
    other = replace(MANIFEST, label="tiled", environment=(("CXX", "clang++"),))
    runs = run_of(tmp_path, MANIFEST), run_of(tmp_path, other, f"{TILING} = False\n")
    a, b = (next(run.glob("torchinductor/*forward*")) for run in runs)
    diff = ip.diff(a, b)
    assert diff.result.environment == (
        FactChange("CXX", "g++", "clang++"),
        FactChange(TILING, "default", "False"),
    )
    assert [side.label for side in (diff.graphs[0].a, diff.graphs[0].b)] == ["plain", "tiled"]


def test_manifests_from_before_variables_were_kept_are_read_and_say_nothing_of_them(tmp_path: Path) -> None:
    old = run_of(tmp_path, replace(MANIFEST, label="old"))
    written = json.loads((old / "probe.json").read_text())
    del written["environment"]
    (old / "probe.json").write_text(json.dumps(written))
    assert read_manifest(old / "probe.json").environment is None
    assert ip.diff(old, run_of(tmp_path, MANIFEST)).result.environment == ()


def test_what_a_c_wrapper_sets_itself_and_what_torch_put_back_is_no_setting(tmp_path: Path) -> None:
    """Two graphs of one process differed in eight settings and an address; one of them was the user's."""
    config = "torch._inductor.config"
    touched = {
        "cpp_wrapper": "True", "inplace_buffers": "True", "deterministic": "False",
        "comprehensive_padding": "True", "triton.store_cubin": "True", "triton.cudagraphs": "False",
        "triton.autotune_cublasLt": "True", "triton.autotune_at_compile_time": "False",
        "post_grad_custom_pre_pass": "'<function f at 0x7f10>'",
    }  # fmt: skip
    before = f"{config}.post_grad_custom_pre_pass = '<function f at 0x7f20>'\n"
    address = "os.environ['_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR'] = '140704521833504'\n"
    after = address + "".join(f"{config}.{name} = {value}\n" for name, value in touched.items())
    other = replace(MANIFEST, label="wrapper")
    diff = ip.diff(run_of(tmp_path, MANIFEST, before), run_of(tmp_path, other, after))
    assert diff.result.environment == (FactChange(f"{config}.cpp_wrapper", "default", "True"),)
