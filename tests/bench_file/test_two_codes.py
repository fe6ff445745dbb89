"""The code of two graphs in one bench file."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductor_probe.bench_file.two_codes import bench_of_two
from tests.bench_file.test_bench_source import made
from tests.dumps import graph_in

PROGRAMS = "torch-2.13.0-cpu-programs"


def backward(program: str) -> Path:
    return graph_in(f"{PROGRAMS}/{program}", "backward")


@pytest.mark.parametrize(
    ("folder", "donated"),
    [
        (backward("training"), ["addmm"]),  # buf1 = addmm; del addmm  # reuse
        (graph_in(f"{PROGRAMS}/reductions"), []),  # a forward graph: its inputs are the caller's
    ],
)
def test_inputs_that_the_other_code_reuses_are_known_to_be_donated(folder: Path, donated: list[str]) -> None:
    code = (folder / "output_code.py").read_text()
    text = bench_of_two(made(folder), code, {}, runnable=None, path=folder / "output_code.py")
    inputs = next(line for line in code.splitlines() if line.endswith(" = args")).split(" = ")[0]
    names = [name.strip() for name in inputs.strip().rstrip(",").split(",")]
    lines = [line for line in text.splitlines() if line.startswith("DONATED")]
    assert lines == ([f"DONATED = {[names.index(name) for name in donated]!r}"] if donated else [])
    compile(text, "bench.py", "exec")
