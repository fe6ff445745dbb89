"""Lines of code are broken where there is no room, and never cut: what changed may stand at their ends."""

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


def squeezed(text: str) -> str:
    """Return a text without its spaces and line ends: lines are broken at those, or between them."""
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize("width", [40, 80, 160])
def test_code_of_a_kernel_is_not_cropped(width: int) -> None:
    line = longest_line_of_the_kernel()
    assert len(line) > 80
    text = to_text(ip.show("cpp_fused_flip_0", FLIP, code=True).document, width)
    assert squeezed(line) in squeezed(text)
    assert (line in text.splitlines()) == (width > len(line))


def test_dumped_text_is_not_cropped() -> None:
    shown = to_text(ip.show("op0", FLIP, raw=True).document, 60)
    dumped = (graph_in(FLIP) / "ir_post_fusion.txt").read_text()
    longest = max(re.findall(r"^ +\w+ = .*", dumped, re.MULTILINE), key=len)
    assert squeezed(longest) in squeezed(shown)


def test_code_is_not_cropped_in_diffs() -> None:
    kernels = list(code_page([("a -> b", (f"-{LINE}", f"+{LINE}  "))]))
    assert squeezed(f"-{LINE}+{LINE}") in squeezed(to_text(kernels, 80))
    assert f"-{LINE}\n+{LINE}" in to_text(kernels, 1000)
    variants = variant_diffs([VariantDiff("k_v2", "k", "edit", (f"+{LINE}",))])
    assert squeezed(f"+{LINE}") in squeezed(to_text(variants, 80))


def test_a_terminal_gets_lines_of_code_whole() -> None:
    """With colours the text takes another way."""
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
    assert squeezed(longest_line_of_the_kernel()) in squeezed(re.sub(r"\x1b\[[\d;]*m", "", coloured))


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the child has ended: so Linux says that nothing more comes
        return b""
