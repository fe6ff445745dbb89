"""Sentences of remarks and patterns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import pytest
from msgspec.structs import replace

from inductor_probe.model.layouts import GeneratedAccess, Pattern
from inductor_probe.model.manifest import NoteCode
from inductor_probe.model.op_check import FailureCode, FailureKind, OpCase, OpFailure
from inductor_probe.model.remark import (
    KernelCode,
    LaunchCode,
    LayoutCode,
    Number,
    Remark,
    RemarkCode,
    RemarkKind,
    RunCode,
    Subject,
)
from inductor_probe.report.document import remark_lines
from inductor_probe.report.words.layouts import generated_text, pattern_text
from inductor_probe.report.words.op_check import FAILURE_SENTENCES, KIND_WORDS, failure_sentence
from inductor_probe.report.words.remarks import REMARK_WORDS, sentence


def seen(code: RemarkCode, kind: RemarkKind, node: str, cost: int | None, **numbers: Number) -> Remark:
    return Remark(code, kind, Subject("node", node), tuple(numbers.items()), cost, knowledge="read")


def access(node: str = "op1", cost: int | None = 8192, **changes: Number) -> Remark:
    numbers: dict[str, Number] = {
        "buffer": "arg0_1", "direction": "read", "pattern": "strided", "loop": "x2", "steps": 256,
        "stride": 816, "accesses": 1, "format": "channels_last", "dim_order": "[0, 2, 3, 1]",
    }  # fmt: skip
    return seen("noncontiguous-access", "missed", node, cost, **{**numbers, **changes})


CHANGE = seen(
    "layout-change", "analysis", "op0", 98304,
    buffer="arg2_1", format="contiguous", dim_order="[0, 1, 2, 3]",
    written="buf0", written_format="transposed", written_dim_order="[0, 2, 1, 3]",
)  # fmt: skip
RUNS = seen(
    "short-contiguous-runs", "analysis", "op0", 602112,
    buffer="arg0_1", direction="read", loop="x2", steps=3, run_bytes=12, accesses=1,
)  # fmt: skip


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


ARGUMENT = {"aspect": "type", "argument": "in_ptr0", "type": "*fp32"}
OTHERS: list[tuple[RemarkCode, dict[str, Number], str]] = [
    ("scalar-loops", {"scalar": 2, "nests": 3}, "2 of 3 loop nests are scalar; the dump does not record why"),
    (
        "underfilled-loops",
        {"underfilled": 1, "nests": 2},
        "no vector is full in 1 of 2 loop nests; the dump does not record why",
    ),
    (
        "underfilled-loops",
        {"underfilled": 2, "nests": 2, "tiles": 2},
        "no tile is full in 2 of 2 loop nests; the dump does not record why",
    ),
    ("int64-indices", {}, "indices are int64"),
    ("reduction-hint", {"hint": "DEFAULT"}, "reduction hint DEFAULT"),
    (
        "unaligned-pointers",
        {"pointers": ("in_ptr0", "out_ptr1"), "of": 5},
        "2 of 5 pointers are not marked as aligned to 16 bytes in triton_meta: in_ptr0, out_ptr1",
    ),
    ("no-launch", {}, "the wrapper does not launch it"),
    ("no-node", {}, "no scheduler node is linked to it"),
    (
        "passed-twice",
        {"buffer": "arg0_1", "times": 2},
        "it is passed arg0_1 2 times, and changes it in place",
    ),
    (
        "folds-constants",
        {},
        "it folds constants when the package is loaded; only probe dump keeps the IR of that",
    ),
    (
        "argument-count",
        {"parameters": 5, "grid": 3, "passed": 4},
        "it takes 5 arguments and 3 for the grid, but is passed 4",
    ),
    ("argument-type", {**ARGUMENT, "passed": "7"}, "in_ptr0 is a pointer (*fp32) and is passed the number 7"),
    (
        "argument-type",
        {**ARGUMENT, "type": "i32", "passed": "buf0"},
        "in_ptr0 is a number (i32) and is passed the buffer buf0",
    ),
    (
        "argument-type",
        {**ARGUMENT, "passed": "buf0", "dtype": "int64"},
        "in_ptr0 is *fp32 and is passed buf0 of int64",
    ),
    (
        "other-buffer",
        {"argument": "in_ptr0", "buffer": "buf0", "access": "read"},
        "in_ptr0 is passed buf0, which its nodes do not read",
    ),
    (
        "swapped-buffers",
        {
            "argument": "in_ptr0",
            "buffer": "b",
            "other_argument": "in_ptr1",
            "other_buffer": "a",
            "access": "read",
        },
        "in_ptr0 is passed b and in_ptr1 a, but its nodes read a first: they may be swapped",
    ),
    (
        "other-size",
        {"argument": "xnumel", "passed": 7, "compiled": 8},
        "xnumel is passed 7, but the kernel was generated for 8",
    ),
    (
        "block-too-small",
        {"argument": "r0_numel", "passed": 2048, "block": "R0_BLOCK", "limit": 1024},
        "r0_numel is passed 2048, but the kernel reduces at most R0_BLOCK=1024 elements",
    ),
    (
        "other-points",
        {"passed": ("xnumel=4", "r0_numel=7"), "node": "op0", "points": 4, "reduced": 8},
        "it is passed xnumel=4, r0_numel=7, but op0 has numel 4 and rnumel 8",
    ),
    (
        "other-points",
        {"passed": ("xnumel=4",), "node": "op0", "points": "s0", "reduced": 1},
        "it is passed xnumel=4, but op0 has numel s0 and rnumel 1",
    ),
    (
        "grid-size-missing",
        {"grid": "Grid2D", "argument": "ynumel"},
        "its grid Grid2D needs ynumel, which is not passed",
    ),
    (
        "grid-too-large",
        {"sizes": ("ynumel=9",), "limit": 8},
        "ynumel=9 needs more than 8 blocks in y or z",
    ),
    (
        "other-grid-blocks",
        {"blocks": 31, "rows": 256, "columns": 256, "block_rows": 64, "block_columns": 32, "needed": 32},
        "its grid has 31 blocks in x, but 256x256 in tiles of 64x32 needs 32",
    ),
    (
        "other-grid-batches",
        {"blocks": 2, "batches": 1},
        "its grid has 2 blocks in y and z, but its output holds 1 matrix",
    ),
    (
        "other-grid-sizes",
        {"grid": ("7",), "passed": ("8", "9")},
        "its grid is computed from 7, but it is passed 8, 9",
    ),
    (
        "not-divisible",
        {"argument": "xnumel", "divisor": 16, "passed": 7},
        "triton_meta says that xnumel is divisible by 16, but it is passed 7",
    ),
    (
        "not-aligned",
        {"argument": "in_ptr0", "alignment": 16, "passed": "buf0", "offset": 12},
        "triton_meta says that in_ptr0 is aligned to 16 bytes, but buf0 starts at byte 12 of its storage",
    ),
    (
        "int32-overflow",
        {"argument": "xnumel", "passed": 1 << 31},
        "xnumel is int32, but is passed 2147483648",
    ),
    (
        "int32-extent",
        {"argument": "in_ptr0", "passed": "buf0", "elements": 1 << 31},
        "in_ptr0 is indexed with int32, but buf0 spans 2147483648 elements",
    ),
    (
        "text-only",
        {"backend": "halide"},
        "kernels of the backend halide are not read: its text is shown, and what it is passed",
    ),
    (
        "added-code",
        {"lines": 3, "first": "in line 4"},
        "3 lines of output_code.py, the first in line 4, are not of the forms that torch prints: added by "
        "hand, it seems, and not read; the rest is",
    ),
    (
        "kernels-without-ir",
        {"kernels": 1},
        "1 launched kernel has no scheduler node: torch dumps only the IR of the last part of a graph with "
        "branches, loops or partitions; probe dump keeps that of each",
    ),
    (
        "compile-failed",
        {
            "process": "rank1",
            "stage": "lowering",
            "exception": "TypeError",
            "message": "no [0] of {x}",
            "raised": "InductorError",
            "function": "f",
            "node": "add",
            "target": "aten.add.Tensor",
            "where": "/m.py:3",
            "line": "x + 1",
            "suppressed": "config.suppress_errors",
            "more": 2,
        },
        "rank1: the compile of f failed in the lowering of add (aten.add.Tensor): TypeError: no [0] of {x}; "
        "/m.py:3: x + 1; torch ran it eagerly instead (config.suppress_errors); 2 further compiles failed",
    ),
    (
        "members-left-out",
        {"nodes": 2},
        "torch left the members of 2 fused nodes out of ir_post_fusion.txt, as it does where it fails to "
        "print one: they are read from the fused node's name and from ir_pre_fusion.txt",
    ),
    (
        "input-left-out",
        {"names": ("arg1_1", "arg2_1")},
        "torch left arg1_1, arg2_1 out of the wrapper: inputs without a tensor that no node of the FX graph "
        "uses",
    ),
    (
        "unfinished-compile",
        {},
        "its compile did not finish: files are missing or truncated",
    ),
    (
        "cut-short",
        {"outcome": "interrupted", "exit_status": -15, "signal": "SIGTERM"},
        "the script was interrupted by SIGTERM: later compiles, if any, are missing",
    ),
    (
        "still-made",
        {"pid": 7},
        "process 7, which makes it, is still there: later compiles, if any, are missing yet",
    ),
    (
        "recompile-limit",
        {"function": "f"},
        "recompile limit hit by f: from then on it ran eagerly",
    ),
    (
        "graph-break",
        {"reason": "call to print", "times": 2, "where": "x.py:5"},
        "graph break at x.py:5: call to print (2 times)",
    ),
    (
        "setting-overridden",
        {"setting": "inductor.x", "value": "True", "present": "False", "graphs": ("a", "b", "c")},
        "inductor.x=True was not in force for a, b and 1 more: the script, or an option of torch.compile, "
        "set it to False",
    ),
    ("not-recorded", {"text": "not available on torch 2.13.0: x"}, "not available on torch 2.13.0: x"),
    (
        "hook-failed",
        {"torch": "2.13.0", "module": "torch._logging", "error": "no trace_log"},
        "not available on torch 2.13.0: torch._logging: no trace_log",
    ),
    (
        "log-missing",
        {"torch": "2.2.0", "artifact": "fusion"},
        "not available on torch 2.2.0: the log fusion",
    ),
    (
        "recorder-failed",
        {"recorder": "first_call", "error": "KeyError: 'x'"},
        "first_call could not be recorded: KeyError: 'x'",
    ),
    (
        "input-not-recorded",
        {"input": "arg0_1", "graph": "model__0", "type": "ScriptObject"},
        "input arg0_1 of model__0 is a ScriptObject: not recorded",
    ),
    (
        "graph-not-opened",
        {"graph": "other", "facts": "inputs"},
        "other: inputs recorded of a graph that was not opened",
    ),
    ("event-lost", {}, "an event was cut short, and is lost"),
    ("log-line-lost", {"artifact": "fusion", "line": "'x'"}, "a line of the log fusion is lost: 'x'"),
    ("end-incomplete", {"error": "OSError: x"}, "the end could not be recorded in full: OSError: x"),
    (
        "graph-not-computed",
        {"graph": "model__0_inference_0.0", "reason": "its values have 379 MiB"},
        "model__0_inference_0.0 was not computed (its values have 379 MiB): on the simulated GPU it returned "
        "zeros, and the script went on with them",
    ),
    (
        "simulated-gpu",
        {"device": "NVIDIA H200", "target": "h200"},
        "NVIDIA H200 was simulated (--target h200): its Triton kernels were generated, but neither compiled "
        "nor run; all that torch times to decide was a tie",
    ),
    (
        "compile-refused",
        {"device": "Tesla T4", "capability": "7.5", "reason": "BF16 is not supported"},
        "torch refused to compile a graph for Tesla T4 (compute capability 7.5): BF16 is not supported; "
        "name a later GPU, or another dtype",
    ),
    ("script-ended", {"outcome": "failed", "exit_status": 3}, "the script exited with status 3"),
    (
        "script-ended",
        {"outcome": "failed", "exit_status": -9, "signal": 9},
        "the script was killed by signal 9",
    ),
    (
        "script-ended",
        {"outcome": "interrupted"},
        "the script ended, and how was not recorded: by a signal, or os._exit",
    ),
    (
        "graphs-in-cache",
        {"path": "/c"},
        "torch loaded its graphs from inductor's cache; the other verbs read them there: /c",
    ),
    (
        "empty-graphs",
        {},
        "its graphs compute nothing (views and identities), so inductor left their folders empty",
    ),
    (
        "no-dump",
        {},
        "no graph was dumped, and there is no probe.json that records why; consistent with a warm cache: "
        "`probe dump` gives each run an empty one",
    ),
    (
        "ended-before-compile",
        {"outcome": "failed", "exit_status": 3},
        "the script exited with status 3 before inductor compiled anything",
    ),
    (
        "other-backend",
        {"frames": 2},
        "dynamo compiled 2 graphs, none with inductor; consistent with another backend in the script",
    ),
    ("ran-eagerly", {}, "everything ran eagerly: dynamo gave up on every function"),
    (
        "nothing-compiled",
        {},
        "nothing was compiled: torch.compile was not called, or the function it returned never ran",
    ),
    (
        "none-followed-compiled",
        {"others": 2, "names": "python -I a.py, python -I b.py", "why": "isolated"},
        "nothing was compiled in the processes that could be followed; what 2 others compiled is not known "
        "(python -I a.py, python -I b.py), since python -I, -E and -S look neither at PYTHONPATH nor for "
        "sitecustomize",
    ),
    (
        "compiled-before",
        {},
        "nothing was compiled in the block: what was compiled before it is not compiled again, and a "
        "function that torch.compile returned compiles when it first runs",
    ),
    ("no-frame", {}, "nothing was compiled: the function computes nothing that dynamo hands to a compiler"),
    ("fallback", {"kernel": "aten.sort"}, "k1 falls back to aten.sort"),
]


@pytest.mark.parametrize(("code", "numbers", "text"), OTHERS)
def test_sentences_of_other_codes(code: RemarkCode, numbers: dict[str, Number], text: str) -> None:
    remark = Remark(code, "missed", Subject("kernel", "k1"), tuple(numbers.items()))
    assert sentence(remark, about="k1") == text


def test_every_code_of_a_dump_is_tried_here() -> None:
    tried = {remark.code for remark in (access(), CHANGE, RUNS)} | {code for code, _, _ in OTHERS}
    codes = (LayoutCode, KernelCode, LaunchCode, RunCode, NoteCode)
    assert tried == {code for kind in codes for code in get_args(kind)}


def folded(remarks: Sequence[Remark], about: str | None = None) -> list[tuple[RemarkKind, str]]:
    """Return the lines of remarks: repeated ones are one."""
    return [(line.kind, line.text) for line in remark_lines(remarks, about=about)]


def test_remarks_about_kernels_name_them_and_add_up_their_bytes() -> None:
    remarks = [
        Remark("int64-indices", "missed", Subject("kernel", f"k{number}"), (), 1024 * number)
        for number in range(1, 6)
    ]
    wide = "indices are int64"
    assert folded(remarks[:1], about="k1") == [("missed", f"{wide} (kernel reads and writes 1 KiB)")]
    assert folded(remarks[:1]) == [("missed", f"k1: {wide} (kernel reads and writes 1 KiB)")]
    assert folded(remarks) == [("missed", f"k5, k4, k3 and 2 more: {wide} (kernels read and write 15 KiB)")]


def test_hazards_come_first() -> None:
    launch = Remark("no-launch", "hazard", Subject("kernel", "k1"), ())
    assert [kind for kind, _ in folded([access(), launch])] == ["hazard", "missed"]


def test_repeated_remarks_share_a_line_and_the_largest_cost_comes_first() -> None:
    layers = [access(f"op{number}", buffer=f"buf{number}") for number in range(2, 9)]
    lines = folded([CHANGE, *layers, access(stride=3, cost=None), layers[0]])
    assert [kind for kind, _ in lines] == ["analysis", "missed", "missed"]
    assert [text for _, text in lines] == [
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


FAILURES: dict[FailureCode, tuple[dict[str, Number], str]] = {
    "outputs": ({"compiled": 1, "eager": 2}, "compiled returns 1 value, eager 2"),
    "size": (
        {"what": "output", "number": 0, "compiled": ("2", "3"), "eager": ("3", "2")},
        "output 0 has size (2, 3), eager gives (3, 2)",
    ),
    "elements": (
        {
            "what": "gradient", "number": 1, "place": (), "compiled": "nan", "eager": "1.5", "float64": "",
            "wrong": 1, "elements": 1, "error": "nan",
        },
        "gradient 1 is nan, eager gives 1.5; 1 of 1 element is wrong, by nan at most",
    ),
    "signal": ({"signal": 9}, "the process was killed by signal 9"),
    "not-called": ({}, "torch traced the sample without calling it"),
}  # fmt: skip


@pytest.mark.parametrize("code", FAILURES)
def test_failures_of_operators_are_sentences(code: FailureCode) -> None:
    numbers, words = FAILURES[code]
    case = OpCase("flip", "float32", "static", "given", "compiled")
    failure = OpFailure("flip", "compiled", "values", code, tuple(numbers.items()), (case,), 1, "flip(x)", 6)
    assert failure_sentence(failure) == words


def test_each_failure_of_an_operator_has_words() -> None:
    assert set(FAILURE_SENTENCES) == set(get_args(FailureCode))
    assert set(KIND_WORDS) == set(get_args(FailureKind))
