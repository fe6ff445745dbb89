"""What is wrong with `--variant NAME=FILE` is said with the file, the line and what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import Probe
from tests.dumps import graph_in

KERNEL = "cpp_fused_flip_0"


@pytest.mark.parametrize(
    ("variant", "said", "hint"),
    [
        (f"{KERNEL}_v3=gone.cpp", f"--variant {KERNEL}_v3: gone.cpp does not exist", "the kernel's source"),
        ("=kernel.cpp", "--variant =kernel.cpp has no name before =", "for example --variant"),
        (f"{KERNEL}_v3=", f"--variant {KERNEL}_v3= has no file after =", "for example --variant"),
        (f"{KERNEL}=kernel.cpp", f"{KERNEL} is what variants are compared to", f"name it {KERNEL}_v3"),
        (
            f"{KERNEL}_v3=kernel.cpp",
            f"kernel.cpp:1: no kernel was found in it, and {KERNEL} takes 2 arguments",
            "in_ptr0, out_ptr0",
        ),
        ("call_v3=call.py", "call.py:2: not Python", "as output_code.py has them"),
    ],
)
def test_a_variant_that_does_not_fit_is_said_with_its_file(
    probe: Probe, tmp_path: Path, variant: str, said: str, hint: str
) -> None:
    graph = graph_in("torch-2.13.0-cpu/hflip_cl")
    shutil.copytree(graph, tmp_path / "graph")
    (tmp_path / "kernel.cpp").write_text("int main() {}\n")
    (tmp_path / "call.py").write_text("def call(args):\n    return (\n")
    ran = probe("bench-kernel", "./graph", "--no-run", "--variant", variant)
    assert (ran.status, ran.out) == (2, "")
    message, _, next_step = ran.err.partition("\nhint: ")
    assert f"error: {said}" in message
    assert hint in next_step
    assert not (tmp_path / "graph" / "output_code_bench.py").exists()
