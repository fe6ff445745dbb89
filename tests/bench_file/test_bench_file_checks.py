"""Bench files of fixtures, compiled and checked as they are: each in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from inductor_probe.analysis.input_bounds import input_bounds
from inductor_probe.bench_file.source import bench_source
from inductor_probe.reader.debug_dir import graph_dir, read_graph
from tests.conftest import DUMPS

PROGRAMS = DUMPS / "torch-2.13.0-cpu-programs"
# Compares `call` with the graph run eagerly, then the unedited copies, then a copy with one number changed.
CHECK = """
import json, sys, torch
names = {"__name__": "bench", "__file__": sys.argv[1]}
sys.modules["bench"] = type(sys)("bench")
sys.modules["bench"].__dict__.update(names)
names = sys.modules["bench"].__dict__
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), names)
bench = names["BENCH"]
with torch.no_grad():
    found = [names["prepare"](bench, seed, pattern) for seed, pattern in enumerate(names["POISON"])]
    rounds = [each for each, _ in found]
    copies = [names["judge"](bench, variant, rounds).correct for variant in bench.variants()]
print(json.dumps([[check.correct, names["sentences"](check.remarks)] for _, check in found] + [copies]))
"""


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("random_numbers", r"float>\(0\.3\)", "float>(0.31)"),
        ("conditional", r"float>\(([12])\.0\)", r"float>(\1.5)"),
        ("scatters", r"int64_t>\(3\)", "int64_t>(2)"),
    ],
)
def test_pristine_code_and_its_copies_are_right_and_an_edited_copy_is_not(
    name: str, before: str, after: str, tmp_path: Path
) -> None:
    folder = next((PROGRAMS / name).glob("run_*/torchinductor/*/output_code.py")).parent
    graph = graph_dir(folder)
    assert graph is not None
    source = bench_source(
        (folder / "output_code.py").read_text(),
        (folder / "fx_graph_runnable.py").read_text(),
        folder.name,
        bounds=input_bounds(read_graph(graph)),
        readable=(folder / "fx_graph_readable.py").read_text(),
    )
    path = tmp_path / "output_code_bench.py"
    edited = re.sub(
        r"_v2 = async_compile.*?\'\'\'\)",
        lambda copy: re.sub(before, after, copy[0]),
        source,
        flags=re.DOTALL,
    )
    assert edited != source
    for text in (source, edited):
        path.write_text(text)
        ended = subprocess.run(
            [sys.executable, "-c", CHECK, str(path)],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        *rounds, copies = json.loads(ended.stdout.splitlines()[-1])
        assert rounds == [[True, ""]] * 2
        assert len(copies) >= 2
        assert all(copies) is (text is source)
