"""Why the intermediate of a separable antialias resize is not channels-last though its input is.

The recorded decision answers it: nobody required an order. Torch followed the strides of what the buffer
reads, and a gather along the width has stride 0 there (`471960, 1, 1368, 0` of a channels-last image), so
that the width, not the channels, got the smallest stride.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inductor_probe.model.decision import DECISIONS_NAME
from inductor_probe.reader.debug_dir import read_run
from inductor_probe.report.words.decisions import sentence
from inductor_probe.store.decisions import read_decisions

pytestmark = pytest.mark.usefixtures("warm")

SCENARIO = Path(__file__).parents[2] / "scenarios" / "check_interpolate_bilinear_aa.py"


@pytest.mark.compiles
def test_the_intermediate_of_an_antialias_resize_follows_a_gather(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "inductor_probe", "dump", str(SCENARIO), "--out", str(tmp_path)]
    ended = subprocess.run(
        [*command, "--case", "separable_channels_last"],
        capture_output=True, text=True, check=False, env=dict(os.environ),
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    [graph] = read_run(next((tmp_path / "torch_compile_debug").glob("run_*"))).graphs
    decisions = read_decisions(graph.path / DECISIONS_NAME).decisions
    [buf1] = [one for one in decisions if one.kind == "layout" and one.subjects == (("buf1",),)]
    operands = dict(buf1.operands)
    assert (buf1.outcome, buf1.cause) == ("permuted", "reads")
    assert operands["asker"] == "end-of-lowering"
    assert operands["stride"] == ("264960", "256", "768", "1")
    assert operands["fill_order"] == ("3", "1", "2", "0")
    reads = operands["reads"]
    assert isinstance(reads, tuple)
    assert reads.count("arg0_1 (471960, 1, 1368, 0)") == len(reads) - 1
    assert sentence(buf1).startswith(
        "buf1 has permuted strides (264960, 256, 768, 1): nobody required an order, so torch followed the "
        "strides of what it reads: arg0_1 (471960, 1, 1368, 0)"
    )
