"""What every reading verb shows of the fixtures on terminals of 80 and 60 columns.

No line is wider, no word, path, name or line of code is broken but at a separator, and what was asked for is
there. A screen is compared with what the same document is in a pipe, where nothing is broken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.cells import cell_len

import inductor_probe as ip
from inductor_probe.cli.screen import complain, say
from inductor_probe.errors import ProbeError
from inductor_probe.report.document import Document
from inductor_probe.report.terminal import to_text
from inductor_probe.report.units import one_word
from tests.conftest import DUMPS
from tests.dumps import ANTIALIAS, FOREACH, LATEST, run_in

RUNS = sorted(
    path.parent.relative_to(DUMPS) for path in DUMPS.glob("torch-2.1[13].*/*/run_*") if path.is_dir()
)
WORD = re.compile(r"[^\W_]+")
NOTES = set(WORD.findall("left out at columns a pipe has them and more all shows probe show json names own"))
"""Words that a terminal adds: which columns it leaves out, how much of a long table."""
DIGEST = 40
"""So many letters and digits without a separator are a digest in the text of a kernel."""
ANSWERS = {
    "why": {"about", "decision", "changed by"},
    "layouts": {"buffer", "size", "stride", "format", "writer", "readers"},
    "nodes": {"node", "does", "kernel"},
    "kernels": {"kernel", "how", "reads", "writes", "calls"},
    "fusion": {"node after fusion", "kernel", "reason"},
}
"""Columns by verb that answer what is asked, wherever a pipe has them."""


def screens(run: Path) -> Iterator[tuple[str, Document]]:
    """Yield what each verb shows of a run, of its first nodes, a pair of them, and its first kernel."""
    yield "dump", ip.open_run(run).document
    yield "check", ip.check(run).document
    for verb in (*ANSWERS, "show"):
        yield verb, getattr(ip, verb)(target=run).document
    nodes = list(dict.fromkeys(row.node for row in ip.nodes(run)))
    for node in nodes[:2]:
        for verb in ("layouts", "fusion", "why", "show"):
            yield f"{verb} {node}", getattr(ip, verb)(node, target=run).document
        yield f"show {node} --raw", ip.show(node, target=run, raw=True).document
    if len(nodes) > 1:
        yield "fusion A B", ip.fusion(nodes[0], nodes[-1], run).document
        yield "why A B", ip.why(nodes[0], nodes[-1], run).document
    for kernel in ip.kernels(run)[:1]:
        yield "show KERNEL", ip.show(kernel.name, target=run, code=True).document
        yield "why KERNEL", ip.why(kernel.name, target=run).document


@pytest.mark.parametrize("name", RUNS, ids=str)
def test_no_line_is_too_wide_and_no_word_is_broken(name: Path) -> None:
    """`why` left out `changed by` at 80 columns, and paths were broken within words (F16)."""
    for screen, document in screens(run_in(DUMPS / name)):
        blocks = list(document)
        whole = to_text(blocks, 1000)
        words = {*WORD.findall(whole), *NOTES}
        for width in (80, 60):
            text = to_text(blocks, width)
            assert [line for line in text.splitlines() if cell_len(line) > width] == [], (screen, width)
            # A number that says how many rows there are more is no word of the whole.
            fragments = {word for word in WORD.findall(text) if not word.isdigit()} - words
            if longest := [word for word in words if len(word) > DIGEST]:
                fragments = {word for word in fragments if not any(word in digest for digest in longest)}
            assert fragments == set(), (screen, width)
            titles = {word for title in ANSWERS.get(screen, ()) if title in whole for word in title.split()}
            assert {word for word in titles if word not in text} == set(), (screen, width)


class _Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_what_is_next_can_be_copied_from_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stood on standard error was never broken: the terminal broke it anywhere, and paths with it."""
    monkeypatch.setenv("COLUMNS", "60")
    terminal = _Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    run = "/home/user/project/torch_compile_debug/run_2026_01_01_00_00_00_000000-pid_12345"
    say(f"run: {run}")
    say(f"next: {one_word(f'probe fusion op0_op1 op2_op3 {run}')} (they share 4 MiB, and were not fused)")
    complain(
        ProbeError("the script ended with status 1, and what it had dumped is above", "see `probe check g`")
    )
    assert re.sub(r"\x1b\[[\d;]*m", "", terminal.getvalue()).splitlines() == [
        "run:",
        run,
        "next:",
        "probe fusion op0_op1 op2_op3 \\",
        f"  {run}",
        "(they share 4 MiB, and were not fused)",
        "error: the script ended with status 1, and what it had",
        "dumped is above",
        "hint: see `probe check g`",
    ]


def test_the_members_of_a_foreach_node_are_folded_and_a_command_has_the_rest() -> None:
    """Of an optimizer of a hundred parameters each list of them took a screen."""
    kernel = to_text(ip.show("triton_for_fused_1", FOREACH).document, 200)
    assert (
        "nodes              op16, op4, ... (16: probe nodes --kernel triton_for_fused_1), fused as" in kernel
    )
    assert "divisible by 16    in_ptr0, in_ptr1, ... (32: --json)" in kernel
    assert "and 8 more: probe show triton_for_fused_1 --json" in kernel
    assert "output_code.py:377  arg13_1, arg16_1, ... (32: --json), stream=stream0" in kernel
    assert len(ip.nodes(FOREACH).where(kernel="triton_for_fused_1")) == 16
    why = to_text(ip.why("op16", target=FOREACH).document, 80)
    assert "op16_op4_op20_op27_op17_op5_…op22_op29_op19_op7_op23_op31" in why
    fused = ip.nodes(FOREACH)[4].top
    assert fused is not None
    assert "and 4 more: probe show op19 shows the next" in to_text(ip.show(fused, FOREACH).document, 80)


@pytest.mark.parametrize(
    ("verb", "answer"),
    [
        ("why", "! missed at op1: 20.2 MiB"),
        ("nodes", "model__0_inference_0.0  4 nodes (4 pointwise); 1 kernel"),
        ("layouts", "accessed non-contiguously: arg0_1"),
        ("fusion", "shared: op3 and op5 (60 KiB)"),
    ],
)
def test_the_answer_comes_first(verb: str, answer: str) -> None:
    """A sentence for the whole, and then the evidence."""
    target = LATEST / "multi_output_no_fuse" if verb == "fusion" else ANTIALIAS
    assert answer in to_text(getattr(ip, verb)(target=target).document, 80).splitlines()[:3]
