"""Remarks: what is to be known of times and checks, as codes with values; one sentence for each code.

The core, which is pasted into bench files, has sentences only: `code_of` has their codes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:  # `report` has these sentences, too, and imports no torch
    from inductor_probe.harness.checks import Reason

Remark: TypeAlias = "dict[str, Any]"  # `code`, `kind`, `subject` (`type`, `name`), `numbers`, `knowledge`

NOT_ALONE = "kernels are not timed one by one: "
BY_EVENTS = "timed by events, not replayed: "
NOT_FLOAT64 = "reference not in float64: "
OTHERS = "pointers to memory of something else"
SENTENCES = {  # by the type of the subject, a sentence for each code
    "machine": {
        "core-lost": "lost its core {times} times",
        "cpu-time": "lost its core {times} times: its times are CPU time",
        "clock-changed": "the clock was {mhz:.0f} MHz instead of {median_mhz:.0f}",
        "data-not-cold": "data are only partly cold: the ring holds {ring_mib} MiB, the cache {cache_mib}",
        "sleep-not-available": "torch.cuda._sleep is not available on torch {torch}: gaps may be timed",
        "host-waits": "the host waits for the GPU in it, or is slow: gaps are part of the time",
        "profiler-empty": "torch.profiler sees no kernels here: times include what events add",
        "not-replayed": BY_EVENTS + "{error}",
        "other-stream": BY_EVENTS + "it launches on another stream than the current one",
    },
    "kernel": {
        "launches-alike": "{subject}: {timed} of {launches} launches timed, one of each set of sizes and "
        "strides",
        "foreign-pointers": "{subject} is not timed alone: its launches pass " + OTHERS,
        "constant-missing": "{subject} is neither judged nor timed, as it takes the constant {constant}: "
        "{reason}",
        "scaled-configs-missing": "configs with smaller reduction blocks are missing: {error}",
        "config-not-compiled": "does not compile: {error}",
        "config-not-run": "does not run: {error}",
        "config-left-out": "inductor leaves it out: more than {limit} words are spilled",
        "config-wrong": "WRONG in {mismatches} of {elements} elements, first at [{index}]: "
        "{value} instead of {expected}",
        "autotune-cache-in-use": "{function} is not available on torch {torch}: the cache may hide configs",
    },
    "variant": {
        "other-launch-count": "{subject} is not timed alone: {entry} launches it {launches} times",
        "variant-not-compiled": "does not compile: line {line}: {error}",
        "pair-not-timed": "{subject} is not timed: {error}",
        "no-budget-left": "{subject} is not timed: one comparison takes {least_s:.2g} s, "
        "and {left_s:.2g} s are left of the budget",
        "variant-crashes": "its process {how}",
        "raises": "raises {error}",
        "kernel-fault": "{kernel} {error} ({place})",
        "not-interpreted": "{kernel} is not interpreted: {error} ({place})",
        "not-finished": "{kernel} was stopped: {error} ({place})",
        "call-not-run": "call does not run on the CPU: {error}",
        "input-changed": "changes input {input}, which call leaves alone",
        "output-count": "returns {values} values instead of {expected}",
        "output-form": "output {output} is {form} instead of {expected}",
        "own-wrapper": "inside {wrapper}",
        "own-wrapper-needed": "inside {wrapper}: it does not fit the buffers of call",
        "call-varies": "call varies: variants may be {times:g} times as far off as {runs} runs",
        "rounded-otherwise": "{mean:.2g} times as far off as call by root mean square, at most {times:g} "
        "times in an element; consistent with code that rounds otherwise",
        "rounded-as-eager": "{mean:.2g} times as far off as eager by root mean square, at most {times:g} "
        "times in an element; consistent with code that rounds the result of each operation, as eager does",
        "integers-tied": "{count} integers are others, which are others in call, too, in one of {runs} runs "
        "with inputs off in their last places; consistent with ties that rounding decides",
    },
    "graph": {
        "kernels-not-timed": NOT_ALONE + "{error}",
        "launches-not-repeatable": NOT_ALONE + "launches of {kernel} pass " + OTHERS,
        "too-many-launches": NOT_ALONE + "call makes more than {most} launches",
        "arguments-too-large": NOT_ALONE + "what they are passed takes more than {most_gib} GiB",
        "launches-included": "launches are part of the kernels' times: {error}",
        "guards-not-skipped": "guards are part of dynamo's entry, as they cannot be skipped: {error}",
        "not-inductor": "what dynamo compiled runs no graph of inductor",
        "wrapper-not-marked": "what a wrapper launches is not told apart: {error}",
        "parts-lost-cores": "in {lost} of {rounds} rounds each call lost a core to other programs, which "
        "long parts are charged for",
        "flops-not-counted": "flops are not counted: {error}",
        "too-many-nests": "the times of loop nests are not known: a call runs more than {most} of them",
        "overheads-left-out": "where the time of a call goes is not measured: that takes 60 calls "
        "of {call_s:.2g} s",
        "no-reference": "{reason}",
        "constants-remade": "constants have random values, as the dump does not hold the real ones: {names}",
        "call-not-timed": "the whole call is not timed: constants of {kernels} cannot be had",
        "eager-not-timed": "eager is not timed: {reason}",
        "wrapper-as-python": "the wrapper is C++: kernels are timed as they are there, call as the same "
        "steps in Python",
        "reference-fails": "the graph does not run eagerly: {error}",
        "float64-fails": NOT_FLOAT64 + "{error}",
        "float64-differs": NOT_FLOAT64 + "the graph computes something else in it",
        "reference-unlike": "only probe bench-kernel compares {operator} with float64",
        "unwatched-fails": "without a dispatch mode, the graph does not run: {error}",
        "float64-unwatched": NOT_FLOAT64 + "under a dispatch mode, the graph computes something else",
        "other-random-numbers": "eager draws other random numbers: {operators}",
        "range-exceeded": "with these inputs, {left} of {elements} elements leave the range of their dtype, "
        "and are compared with those of the pristine call only",
        "one-rank": "collectives are those of a stand-in process group of one rank: nothing is sent, what is "
        "gathered are copies of its own values, and no time has communication in it",
        "outputs-not-written": "outputs that the graph does not write to are not compared",
    },
}
MISSING_CONSTANT = {  # why a constant cannot be had
    "too-large": "it is too large to be kept unless asked for; probe dump --save-inputs keeps it",
    "graph-too-large": "the constants of the graph are too large to be kept unless asked for; "
    "probe dump --save-inputs keeps them",
    "not-written": "probe dump could not write it; dump the script again",
    "not-strided": "its layout is not strided, and only strided tensors are kept",
    "unknown-packing": "it was packed by a call that probe dump does not know",
    "not-in-dump": "the dump does not hold it; dump the script again",
    "library-object": "it is an object of a library, which only a pickle holds",
    "file-missing": "its file in probe_constants does not exist; dump the script again",
    "file-changed": "its file in probe_constants is not as probe dump left it; dump the script again",
}
TYPES = {code: type_ for type_, sentences in SENTENCES.items() for code in sentences}
_CODES = {sentence: code for sentences in SENTENCES.values() for code, sentence in sentences.items()}


def remark(code: str, subject: str = "", **numbers: float | str) -> Remark:
    """Return a remark for JSON; `subject` names the kernel or variant that it is about."""
    kind = "hazard" if TYPES[code] == "machine" else "analysis"
    about = {"type": TYPES[code], "name": subject}
    return {"code": code, "kind": kind, "subject": about, "numbers": numbers, "knowledge": "measured"}


def reason(code: str, **numbers: float | str) -> Reason:
    """Return why a check ended as it did, by the code of a sentence."""
    return SENTENCES[TYPES[code]][code], numbers


def code_of(sentence: str) -> str | None:
    """Return the code of the sentence of a reason; None of one that is not known."""
    return _CODES.get(sentence)


def sentence(remark: Remark) -> str:
    """Return what a remark says."""
    subject, numbers = remark["subject"], dict(remark["numbers"])
    if remark["code"] == "constant-missing":
        numbers["reason"] = MISSING_CONSTANT[numbers["reason"]]
    return SENTENCES[subject["type"]][remark["code"]].format(subject=subject["name"], **numbers)


def sentences(remarks: list[Remark]) -> str:
    """Return what remarks say, in a line."""
    return "; ".join(map(sentence, remarks))
