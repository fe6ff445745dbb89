"""Every verb once, on what the installed torch compiled: `make compat` runs this with another release.

The fixtures of other tests are dumps of releases that were read before. These are made by the torch that is
here, so that a form that a verb does not know ends it with status 2.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inductor_probe import cli
from tests.conftest import Probe

# Loop nests with and without a reduction, a library call, a view, a buffer with two readers.
SCRIPT = """
import torch

def network(image, weight, bias):
    flipped = torch.flip(image, [-1]).float() / 255
    normal = torch.nn.functional.group_norm(torch.conv2d(flipped, weight, bias), 2)
    return torch.nn.functional.silu(normal), normal.softmax(1)

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
image = torch.randint(256, (2, 3, 24, 32), dtype=torch.uint8, device=device)
weight, bias = torch.randn(8, 3, 3, 3, device=device), torch.randn(8, device=device)
with torch.no_grad():
    torch.compile(network)(image.contiguous(memory_format=torch.channels_last), weight, bias)
"""
BRIEF = ("--budget", "300ms")
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "dump": ("network.py", "--label", "cpu"),
    "runs": (),
    "check": (),
    "nodes": ("cpu",),
    "kernels": ("cpu",),
    "show": ("op0", "cpu"),
    "report": ("cpu", "--force"),
    "why": ("cpu",),
    "explain": ("few-shared-bytes",),
    "layouts": ("cpu",),
    "fusion": ("cpu",),
    "tunings": ("cpu",),
    "expect": ("cpu", "--kernels", "2"),
    "whatif": ("cpu", "--scalar", "op0", "--budget", "300ms"),
    "overview": ("cpu", "--budget", "300ms"),
    "compile-time": ("cpu",),
    "memory": ("cpu",),
    "reduce": ("cpu", "--keep", "run: grep -q conv2d"),
    "bisect": ("network.py", "--keep", "expect: --vectorised", "--set", "inductor.cpp.simdlen=1"),
    "accuracy": ("cpu", "--no-try"),
    "profile": ("cpu", "--budget", "300ms"),
    "bench-kernel": ("cpu", *BRIEF),
    "verdict": ("cpu",),
    "rewrite": ("cpu",),
    "export-cpp": ("cpp_fused__to_copy_convolution_div_flip_0", "cpu", "-o", "kernel.cpp"),
    "asm": ("cpp_fused__to_copy_convolution_div_flip_0", "cpu"),
    "debug": ("network.py", "--break", "torch._inductor.codegen.simd:SIMDScheduling.can_fuse", "--pdb"),
    "diff": ("cpu", "gpu"),
    "check-kernel": ("gpu",),
    "sweep-configs": ("gpu", "num_warps=4"),
    "perf": ("check_hflip.py", "--case", "*channels_last*", "--matrix", "quick", *BRIEF),
    "results": (),
    "compare": ("check_hflip", "check_hflip"),
    "check-op": ("flip", "--samples", "1", "--dtype", "float32", "--modes", "static", "--budget", "10s"),
    "doctor": (),
}
"""In the order in which they run: a verb shows what an earlier one dumped or measured."""
SIMULATED = "diff"
"""From this verb on there is a second dump, of the same script for a simulated GPU."""
STATUS = {"diff": 1, "sweep-configs": 2, "doctor": None}
"""What is not 0: two graphs differ, a sweep needs a GPU; what a doctor says depends on the machine."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which all verbs run."""
    folder = tmp_path_factory.mktemp("verbs")
    (folder / "network.py").write_text(SCRIPT)
    return folder


def test_all_verbs_are_tried() -> None:
    assert set(ARGUMENTS) == {verb for verbs in cli.VERBS.values() for verb in verbs}


@pytest.mark.compiles
@pytest.mark.skipif(
    "EVERY_VERB" not in os.environ,
    reason="set EVERY_VERB=1, as make compat does: tests of each verb try the torch of constraints.txt",
)
@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("verb", ARGUMENTS)
def test_a_verb_reads_what_this_torch_compiled(probe: Probe, folder: Path, verb: str) -> None:
    if verb == SIMULATED:
        made = probe("dump", "network.py", "--label", "gpu", "--target", "h100", cwd=folder)
        assert made.status == 0, made.out + made.err
    ran = probe(verb, *ARGUMENTS[verb], cwd=folder)
    expected = STATUS.get(verb, 0)
    assert expected is None or ran.status == expected, ran.out + ran.err
    assert "Traceback" not in ran.out + ran.err
    assert "unknown statement" not in ran.out + ran.err
