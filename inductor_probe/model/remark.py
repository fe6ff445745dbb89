"""A conclusion about a compiled graph, typed: what it is about, the numbers, and how it is known.

A remark holds no sentence. `report/words` makes one of its code and numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.decision import Decision
from inductor_probe.model.manifest import CompileFailure, NoteCode
from inductor_probe.model.record import Compared
from inductor_probe.model.span import Span

LayoutCode: TypeAlias = Literal["noncontiguous-access", "short-contiguous-runs", "layout-change"]
"""Made by `analysis/layout_remarks.py`."""

HarnessCode: TypeAlias = Literal[
    "core-lost", "cpu-time", "clock-changed", "data-not-cold", "foreign-pointers",
    "parts-lost-cores",
    "launches-alike", "other-launch-count", "kernels-not-timed", "launches-not-repeatable",
    "too-many-launches",
    "arguments-too-large", "launches-included",
    "guards-not-skipped", "not-inductor", "wrapper-not-marked",
    "flops-not-counted", "sleep-not-available", "not-replayed", "other-stream", "host-waits",
    "profiler-empty", "autotune-cache-in-use", "scaled-configs-missing", "config-not-compiled",
    "config-not-run", "config-left-out", "config-wrong", "no-reference", "constant-missing",
    "constants-remade", "call-not-timed", "eager-not-timed", "wrapper-as-python", "one-rank",
    "reference-fails", "unwatched-fails", "float64-fails", "float64-differs", "float64-unwatched",
    "reference-unlike",
    "other-random-numbers", "range-exceeded", "outputs-not-written", "raises", "input-changed",
    "output-count", "output-form", "own-wrapper", "own-wrapper-needed",
    "call-varies", "rounded-otherwise", "rounded-as-eager", "integers-tied",
    "variant-not-compiled", "variant-crashes", "pair-not-timed", "no-budget-left",
    "overheads-left-out", "too-many-nests", "kernel-fault", "not-interpreted", "not-finished", "call-not-run",
]  # fmt: skip
"""Written by bench files: `harness/remarks.py` has the sentence of each."""

BenchCode: TypeAlias = Literal[
    # about the samples of a comparison
    "bimodal-samples", "drift", "autocorrelation", "processes-differ",
    "baseline-offset", "disturbance-shift",
    # why there is no other verdict
    "one-process", "guard-outside-margin", "disturbed-quads", "processes-disagree", "too-few-quads",
    "too-few-processes", "too-many-processes", "near-margin", "readings-differ",
    # about the overhead table, and what a kernel reaches of the roofline
    "kernels-exceed-call", "once-exceeds-call", "few-samples",
    "above-copy-rate", "below-copy-rate", "above-matmul-rate",
    "matmul-not-measured", "roofline-not-measured", "new-pages",
    # about the processes
    "no-fork", "other-harness", "process-lost", "budget-exceeded",
]  # fmt: skip
"""Made by `bench/` and `machine/roofline.py`."""

MachineCode: TypeAlias = Literal[
    "fixed-threads", "more-threads-than-processors", "cpu-quota", "busy-processors", "stolen-processors",
    "varying-clocks", "gpu-not-readable", "gpu-throttled", "gpu-was-throttled", "gpu-shared", "gpu-busy",
]  # fmt: skip
"""Made by `machine/cpu.py` and `machine/gpu.py`: what spoils times on this machine."""

KernelCode: TypeAlias = Literal[
    "scalar-loops", "underfilled-loops", "int64-indices", "reduction-hint", "unaligned-pointers", "no-launch",
    "no-node", "folds-constants", "text-only", "fallback", "passed-twice",
]  # fmt: skip
"""Made by `analysis/kernels.py`."""

ProvedCode: TypeAlias = Literal["vectorised-loops", "reduction-kernel", "fused-nodes"]
"""Made by `analysis/causes/proved.py`, where a dump does not record what was decided."""

LaunchCode: TypeAlias = Literal[
    "argument-count", "argument-type", "other-buffer", "swapped-buffers", "other-size", "block-too-small",
    "other-points", "grid-size-missing", "grid-too-large", "other-grid-blocks", "other-grid-batches",
    "other-grid-sizes", "not-divisible", "not-aligned", "int32-overflow", "int32-extent",
]  # fmt: skip
"""Made by `analysis/launch_check.py`."""

RunCode: TypeAlias = Literal[
    "kernels-without-ir", "unfinished-compile", "cut-short", "recompile-limit", "graph-break", "script-ended",
    "graphs-in-cache", "empty-graphs", "no-dump", "ended-before-compile", "other-backend", "ran-eagerly",
    "nothing-compiled", "none-followed-compiled", "compiled-before", "no-frame", "simulated-gpu",
    "added-code", "compile-failed", "members-left-out", "input-left-out", "still-made",
    "setting-overridden",
]  # fmt: skip
"""Made by `analysis/run_remarks.py`, `analysis/check.py`, `discovery/run_facts.py` and `failed_compile`."""

DumpCode: TypeAlias = Literal[
    "ranks-same", "ranks-differ", "process-ended", "idle-rank", "run-missing", "not-followed"
]
"""Made by `analysis/ranks.py` of the processes of a dump."""

RemarkCode: TypeAlias = Literal[
    LayoutCode, KernelCode, ProvedCode, LaunchCode, RunCode, NoteCode, HarnessCode, BenchCode,
    MachineCode, DumpCode,
]  # fmt: skip
"""Stable names; what numbers each has stands where it is made."""

RemarkKind: TypeAlias = Literal["passed", "missed", "analysis", "hazard"]
"""LLVM's words: an optimisation that was done, one that was not, a fact that helps to judge, a danger."""

Knowledge: TypeAlias = Literal["recorded", "read", "inferred", "measured"]
"""Torch recorded it while it compiled; it stands in the dump; it is consistent with what stands there; it was
measured on this machine."""

Number: TypeAlias = int | float | str | tuple[str, ...]
"""A size may be symbolic, and names are values, too."""


class Subject(Struct, frozen=True):
    """Something of a run that has a name: what a remark is about, or what a name stands for.

    A `line` is one of the user's (`/home/u/model.py:12`), `fx` a node of an FX graph, `operator` what such a
    node calls (`aten.cumprod`).
    """

    type: Literal[
        "node", "buffer", "kernel", "fx", "line", "operator", "graph", "run", "variant", "machine"
    ]  # fmt: skip
    name: str


class Remark(Compared, frozen=True):
    """A conclusion.

    Attributes:
        code: which conclusion. kind: LLVM's word for it.
        subject: what it is about. `also`: further subjects of which the very same is true.
        numbers: named values, in a fixed order for each code.
        cost: bytes at stake; None when not known or symbolic.
        evidence: lines of the dump that it was concluded from.
        settings: names of inductor's settings that change it, as far as that is known.
        knowledge: how it is known.
        decisions: recorded decisions of the compiler that say why it is so.
    """

    code: RemarkCode
    kind: RemarkKind
    subject: Subject
    numbers: tuple[tuple[str, Number], ...]
    cost: int | None = None
    evidence: tuple[Span, ...] = ()
    settings: tuple[str, ...] = ()
    knowledge: Knowledge = "inferred"
    also: tuple[Subject, ...] = ()
    decisions: tuple[Decision, ...] = ()

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """All that it is about."""
        return (self.subject, *self.also)

    def number(self, name: str) -> Number | None:
        """Return the value called `name`, None where the remark has none."""
        return dict(self.numbers).get(name)

    def names(self, name: str) -> tuple[str, ...]:
        """Return the names that the value called `name` lists, none where the remark has none."""
        value = self.number(name)
        return value if isinstance(value, tuple) else ()


def by_cost(remark: Remark) -> tuple[bool, int]:
    """Sort key: hazards first, then most bytes at stake, unknown costs last."""
    return remark.kind != "hazard", 1 if remark.cost is None else -remark.cost


def known_numbers(numbers: Iterable[tuple[str, Number | None]]) -> tuple[tuple[str, Number], ...]:
    """Return the numbers of a remark that are known."""
    return tuple((name, value) for name, value in numbers if value is not None)


def measured(
    code: RemarkCode, kind: RemarkKind, subject: Subject, numbers: Mapping[str, Number | None] | None = None
) -> Remark:
    """Return a remark about what was measured; values that are None are not known, and left out."""
    return Remark(code, kind, subject, known_numbers((numbers or {}).items()), knowledge="measured")


def failed_compile(
    failure: CompileFailure, run: str, process: str | None = None, more: int | None = None
) -> Remark:
    """Return the remark `compile-failed`, about the graph if it had one by then, else about the run.

    Its numbers are those of `CompileFailure` that are known, the process in a dump of several, and how many
    more compiles failed where one stands for all.
    """
    subject = Subject("graph", failure.graph) if failure.graph else Subject("run", run)
    names = (
        "stage", "exception", "message", "raised", "compile_id", "function", "node", "target", "where",
        "line",
    )  # fmt: skip
    numbers = [("process", process), *((name, getattr(failure, name)) for name in names)]
    numbers.append(("suppressed", "config.suppress_errors" if failure.suppressed else None))
    numbers.append(("more", more or None))
    return Remark("compile-failed", "hazard", subject, known_numbers(numbers), knowledge="recorded")
