"""`probe rewrite` and `probe export-cpp` as a user meets them; nothing of a dump is run."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import inductor_probe as ip
from tests.conftest import Probe
from tests.dumps import graph_in

pytestmark = pytest.mark.usefixtures("warm")

KERNEL = "cpp_fused_flip_0"


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A copy of a graph that may be written to."""
    stored = graph_in("torch-2.13.0-cpu/hflip_cl")
    return Path(shutil.copytree(stored, tmp_path / "graph"))


def test_the_list_shows_specs_that_apply(probe: Probe, graph: Path) -> None:
    rows = {row["name"]: row for row in json.loads(probe("rewrite", graph, "--json").out)["rewrites"]}
    assert rows["loops"]["specs"] == [f"loops:{KERNEL} {pair}" for pair in ("x0,x1", "x0,x2", "x1,x2")]
    assert rows["triton"]["specs"] == rows["no_epilogue"]["specs"] == []
    out = probe("rewrite", graph).out
    assert f"    'loops:{KERNEL} x1,x2'\n" in out
    assert "    applies to nothing in this graph\n" in out
    assert not (graph / "output_code_bench.py").exists()
    for row in rows.values():
        for spec in row["specs"]:
            assert probe("rewrite", graph, spec).status == 0


def test_specs_of_triton_kernels_apply(tmp_path: Path) -> None:
    stored = graph_in("torch-2.11.0-cuda/foreach_adam")
    graph = ip.open_graph(shutil.copytree(stored, tmp_path / "graph"))
    specs = [spec for row in ip.open_graph(stored).rewrites() for spec in row.specs]
    for spec in specs:
        assert graph.write_bench_file(rewrites=[spec]).edited


def test_a_spec_adds_its_variant_and_runs_nothing(probe: Probe, graph: Path) -> None:
    for words in ([graph, f"loops:{KERNEL} x1,x2"], [f"index:{KERNEL} int32", graph]):
        ran = probe("rewrite", *words)
        assert ran.status == 0, ran.err
        assert f"{KERNEL}_v" in ran.out
        assert "next: probe bench-kernel" in ran.err
    text = (graph / "output_code_bench.py").read_text()
    assert f"{KERNEL}_v3 = " in text
    assert f"{KERNEL}_v4 = " in text
    assert not (graph / "output_code_bench.json").exists()


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (["lops:cpp_fused x1,x2"], "there is no rewrite lops", "did you mean loops"),
        ([f"loops:{KERNEL} x1,x9"], "no nest with loops over both x1 and x9", "it has nest 1"),
        (["one", "two"], "expected one graph, not", "probe rewrite --help"),
        ([], None, None),
    ],
)
def test_what_does_not_apply_is_said_and_nothing_is_written(
    probe: Probe, graph: Path, words: list[str], error: str | None, hint: str | None
) -> None:
    ran = probe("rewrite", graph, *words)
    assert not (graph / "output_code_bench.py").exists()
    if error is None or hint is None:
        assert ran.status == 0
        return
    assert ran.status == 2
    assert error in ran.err
    assert hint in ran.err


def test_a_graph_with_a_number_is_no_spec(probe: Probe, graph: Path) -> None:
    assert "no run in" in probe("rewrite", "gpt_block:1").err


@pytest.mark.compiles
def test_a_kernel_becomes_a_program_that_compiles(probe: Probe, graph: Path, tmp_path: Path) -> None:
    ran = probe("export-cpp", graph)
    assert ran.status == 0, ran.err
    assert (tmp_path / f"{KERNEL}.cpp").exists()
    subprocess.run(ran.out, shell=True, cwd=tmp_path, check=True)  # noqa: S602 - what we say
    assert (tmp_path / KERNEL).exists()


def test_a_program_is_not_overwritten_unasked(probe: Probe, graph: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.cpp").write_text("mine")
    ran = probe("export-cpp", "cpp_fused", graph, "-o", "mine.cpp")
    assert ran.status == 2
    assert "mine.cpp exists already" in ran.err
    assert (tmp_path / "mine.cpp").read_text() == "mine"
    program = json.loads(probe("export-cpp", "cpp_fused", graph, "-o", "mine.cpp", "--force", "--json").out)
    assert (program["kernel"], program["path"]) == (KERNEL, "mine.cpp")
    assert (tmp_path / "mine.cpp").read_text() == program["text"]
    assert "has no kernel, node, buffer, FX node or operator nope" in probe("export-cpp", "nope", graph).err


def test_the_first_screen_of_bench_kernel_is_one_screen(probe: Probe) -> None:
    short, long = (probe("bench-kernel", option, COLUMNS="80").out for option in ("--help", "--help-all"))
    assert len(short.splitlines()) < 24
    assert all(
        f"probe {verb}" in " ".join(short.split()) for verb in ("rewrite", "sweep-configs", "export-cpp")
    )
    hidden = ("--variant", "--copies", "--margin", "--processes", "--cold", "--threads", "--inputs", "--size",
              "--no-script", "--import", "--cxxflags")  # fmt: skip
    assert all(option in long and option not in short for option in hidden)
    assert f"Show {len(hidden)} more options" in short
    gone = ("--rewrite", "--configs", "--cpp ", "--tuned")
    assert not any(option in long for option in gone)
