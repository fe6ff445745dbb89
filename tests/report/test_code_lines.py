"""Lines of code are never cut: what changed may stand at their ends."""

from __future__ import annotations

import os
import pty
import re
import sys

import pytest

import inductor_probe as ip
from inductor_probe.model.bench import VariantDiff
from inductor_probe.report.pages.bench import variant_diffs
from inductor_probe.report.pages.diff import code_page
from inductor_probe.report.terminal import to_text
from tests.conftest import PROBE
from tests.dumps import FLIP, graph_in

LINE = "out_ptr0[static_cast<int64_t>(x2 + 3L*x1 + 672L*x0)] = tmp0; // " + "x" * 100


def longest_line_of_the_kernel() -> str:
    (row,) = ip.open_graph(FLIP).kernels()
    return max(row.source.splitlines(), key=len)


@pytest.mark.parametrize("width", [40, 80, 160])
def test_code_of_a_kernel_is_not_cropped(width: int) -> None:
    line = longest_line_of_the_kernel()
    assert len(line) > 80
    assert line in to_text(ip.show("cpp_fused_flip_0", FLIP, code=True).document, width).splitlines()


def test_dumped_text_is_not_cropped() -> None:
    shown = to_text(ip.show("op0", FLIP, raw=True).document, 40)
    dumped = (graph_in(FLIP) / "ir_post_fusion.txt").read_text()
    longest = max(re.findall(r"^ +\w+ = .*", dumped, re.MULTILINE), key=len)
    assert len(longest) > 40
    assert longest in shown


def test_code_is_not_cropped_in_diffs() -> None:
    kernels = code_page([("a -> b", (f"-{LINE}", f"+{LINE}  "))])
    assert f"-{LINE}\n+{LINE}" in to_text(kernels, 80)
    variants = variant_diffs([VariantDiff("k_v2", "k", "edit", (f"+{LINE}",))])
    assert f"  +{LINE}" in to_text(variants, 80).splitlines()


def test_a_terminal_gets_lines_of_code_whole() -> None:
    """With colours the text takes another way: the terminal wraps what it has no room for."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(COLUMNS="60", TERM="xterm-256color")
        os.execv(  # noqa: S606 - this Python, with arguments of ours
            sys.executable,
            [*PROBE, "show", "cpp_fused_flip_0", str(FLIP), "--code"],
        )
    told = b""
    while chunk := _read(terminal):
        told += chunk
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    coloured = told.decode()
    assert "\x1b[" in coloured
    assert longest_line_of_the_kernel() in re.sub(r"\x1b\[[\d;]*m", "", coloured).replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the child has ended: so Linux says that nothing more comes
        return b""
