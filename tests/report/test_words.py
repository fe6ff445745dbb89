"""Sentences of remarks and patterns."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from inductor_probe.model.layouts import GeneratedAccess, Pattern
from inductor_probe.model.remark import LayoutCode, Number, Remark, RemarkCode, Subject
from inductor_probe.report.words.layouts import generated_text, pattern_text
from inductor_probe.report.words.remarks import REMARK_WORDS, folded_sentences, sentence


def access(node: str = "op1", cost: int | None = 8192, **changes: Number) -> Remark:
    numbers: dict[str, Number] = {
        "buffer": "arg0_1",
        "direction": "read",
        "pattern": "strided",
        "loop": "x2",
        "steps": 256,
        "stride": 816,
        "accesses": 1,
        "format": "channels_last",
        "dim_order": "[0, 2, 3, 1]",
        **changes,
    }
    return Remark(
        "noncontiguous-access",
        "missed",
        Subject("node", node),
        tuple(numbers.items()),
        cost,
        knowledge="read",
    )


CHANGE = Remark(
    "layout-change",
    "analysis",
    Subject("node", "op0"),
    (
        ("buffer", "arg2_1"),
        ("format", "contiguous"),
        ("dim_order", "[0, 1, 2, 3]"),
        ("written", "buf0"),
        ("written_format", "transposed"),
        ("written_dim_order", "[0, 2, 1, 3]"),
    ),
    98304,
    knowledge="read",
)
RUNS = Remark(
    "short-contiguous-runs",
    "analysis",
    Subject("node", "op0"),
    (
        ("buffer", "arg0_1"),
        ("direction", "read"),
        ("loop", "x2"),
        ("steps", 3),
        ("run_bytes", 12),
        ("accesses", 1),
    ),
    602112,
    knowledge="read",
)


@pytest.mark.parametrize(
    ("remark", "text"),
    [
        (
            access(),
            "op1 reads arg0_1 non-contiguously (stride 816 along innermost loop x2, 256 steps; 8 KiB)",
        ),
        (
            access(pattern="indirect", accesses=5, unit_stride_loop="x1", unit_stride_steps=3),
            "op1 reads arg0_1 non-contiguously (5 loads, indirect index along innermost loop x2, 256 steps; "
            "stride 1 along x1, 3 steps; 8 KiB)",
        ),
        (
            replace(access(direction="write"), knowledge="inferred", cost=None),
            "op1 writes arg0_1 non-contiguously (stride 816 along innermost loop x2, 256 steps) "
            "(inferred from the IR: no kernel is linked)",
        ),
        (
            replace(access(), also=tuple(Subject("node", f"op{number}") for number in range(2, 7))),
            "op1, op2, op3 and 3 more read arg0_1 non-contiguously "
            "(stride 816 along innermost loop x2, 256 steps; 8 KiB)",
        ),
        (CHANGE, "op0 reads arg2_1 as contiguous and writes buf0 as transposed [0, 2, 1, 3] (96 KiB)"),
        (RUNS, "op0 reads arg0_1 in contiguous runs of 3 elements (12 bytes along x2; 588 KiB)"),
    ],
)
def test_sentences(remark: Remark, text: str) -> None:
    assert sentence(remark) == text


def test_every_code_has_a_sentence() -> None:
    assert set(REMARK_WORDS) == set(get_args(RemarkCode))
    assert {remark.code for remark in (access(), CHANGE, RUNS)} == set(get_args(LayoutCode))


def test_repeated_remarks_share_a_line_and_the_largest_cost_comes_first() -> None:
    layers = [access(f"op{number}", buffer=f"buf{number}") for number in range(2, 9)]
    lines = folded_sentences([CHANGE, *layers, access(stride=3, cost=None), layers[0]])
    assert lines == [
        "op0 reads arg2_1 as contiguous and writes buf0 as transposed [0, 2, 1, 3] (96 KiB)",
        "op2 reads buf2 non-contiguously (stride 816 along innermost loop x2, 256 steps; 8 KiB); "
        "the same: op3 (buf3), op4 (buf4), op5 (buf5) and 3 more",
        "op1 reads arg0_1 non-contiguously (stride 3 along innermost loop x2, 256 steps)",
    ]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (Pattern("contiguous", 1), "contiguous"),
        (Pattern("contiguous", 1, 3, ("p1",)), "contiguous in runs of 3, reversed along p1"),
        (Pattern("reversed", -1), "reversed"),
        (Pattern("reversed", -3), "reversed, strided by 3"),
        (Pattern("strided", "s77"), "strided by s77"),
        (Pattern("whole_buffer"), "whole buffer"),
    ],
)
def test_patterns(pattern: Pattern, text: str) -> None:
    assert pattern_text(pattern) == text


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (GeneratedAccess("none"), "no access: the value stays in registers"),
        (GeneratedAccess("vector", "x0", 1, 32, True), "vector along x0 (32 steps)"),
        (GeneratedAccess("element", "x2", 5, 256, False), "stride 5 along x2 (256 steps)"),
        (GeneratedAccess("block", "x0", 1, None, True), "coalesced, stride 1 along x0"),
        (GeneratedAccess("block", None, "indirect", None, False), "indirect"),
    ],
)
def test_generated_accesses(made: GeneratedAccess, text: str) -> None:
    assert generated_text(made) == text
