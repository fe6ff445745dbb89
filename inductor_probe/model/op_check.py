"""PyTorch's own samples of operators, eager beside compiled: what was run, and what came out wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.output import Output
from inductor_probe.model.perf import RowFailure
from inductor_probe.model.remark import Number

Mode: TypeAlias = Literal["static", "dynamic", "backward", "backward-dynamic"]
MODES: tuple[Mode, ...] = ("static", "dynamic", "backward", "backward-dynamic")
Form: TypeAlias = Literal["given", "channels_last", "noncontiguous", "varied"]
FORMS: tuple[Form, ...] = ("given", "channels_last", "noncontiguous", "varied")
SAMPLE_KINDS = ("empty", "of one element", "with rows of 16 and more", "non-contiguous", "offset in memory")
"""Kinds of samples that code may treat differently."""
Way: TypeAlias = Literal["compiled", "decomposition"]
FailureKind: TypeAlias = Literal[
    "raises", "values", "form", "strides", "gradients", "killed", "decomposition-not-called"
]
FailureCode: TypeAlias = Literal[
    "raises", "outputs", "value", "no-gradient", "gradient-for-none", "type", "dtype", "size", "stride",
    "elements", "signal", "status", "not-called",
]  # fmt: skip
"""What was seen in one sample: `report/words/op_check.py` has its sentence, and so which numbers it has."""


class OpCase(Struct, frozen=True):
    """One way to run the samples of an operator.

    Attributes:
        operator: its name in PyTorch's database, with the variant: `nn_functional_interpolate_bilinear`.
        dtype: of the samples: `float32`.
        mode: sizes as they are or as symbols (`dynamic=True`), without or with a backward pass.
        form: samples as the database has them; their tensors of four or five dimensions channels-last; all
            of them non-contiguous; or varied: sizes at the borders of vectors, other memory and values.
        way: with inductor's own decomposition and lowering, or with the decomposition that was given.
    """

    operator: str
    dtype: str
    mode: Mode
    form: Form
    way: Way


class OpRow(Struct, frozen=True):
    """What came of the samples of a case.

    Attributes:
        samples: how many were run. right: of which both gave the same.
        failed: of which they did not.
        refused: further samples that eager refuses, too: nothing to compare.
        not_compiled: samples right, of which inductor compiled nothing: views, or dynamo ran them eagerly.
        graph_breaks: samples with a graph break: only a part of them was compiled.
        random: samples of which dtypes, sizes and strides are compared, since eager gives other values each
            time.
        seconds: that it took, with compiling.
        not_run: samples that the budget did not reach.
        without: kinds of samples (`SAMPLE_KINDS`) that there were none of.
    """

    case: OpCase
    samples: int
    right: int
    failed: int
    refused: int
    not_compiled: int
    graph_breaks: int
    random: int
    seconds: float
    not_run: int = 0
    without: tuple[str, ...] = ()


class OpFailure(Struct, frozen=True):
    """What is wrong with some samples, alike in all of them.

    Attributes:
        kind: `raises`: compiled raises and eager does not; `values`: further from the float64 result than
            eager by more than the tolerance of the dtype; `form`: another dtype, size or number of outputs;
            `strides`: another stride, where the size is over 1; `gradients`: wrong values of a gradient;
            `killed`: the process was; `decomposition-not-called`: it was given, and torch never asked for it.
        code: what was seen in the smallest of these samples. numbers: its named values; those of tensors and
            what torch said as text.
        cases: in which it was seen. count: in how many samples.
        sample: the smallest, as one would write it. elements: of its tensors.
        script: a program that shows it alone.
        alone: how that program ended: it shows the failure (True), or passes (False); None: it was not run.
    """

    operator: str
    way: Way
    kind: FailureKind
    code: FailureCode
    numbers: tuple[tuple[str, Number], ...]
    cases: tuple[OpCase, ...]
    count: int
    sample: str
    elements: int
    script: Path | None = None
    alone: bool | None = None


class OpLost(Struct, frozen=True):
    """A case of which nothing is known: what ran it was lost, twice."""

    case: OpCase
    failure: RowFailure | None


class OpDecomposition(Struct, frozen=True):
    """A decomposition that was tried.

    Attributes:
        function: where it is: `my_decompositions:flip`. operators: the overloads that it stood for.
        calls: how often torch called it while it traced.
    """

    function: str
    operators: tuple[str, ...]
    calls: int


class OpChecks(Struct, frozen=True, kw_only=True):
    """What came of PyTorch's samples of some operators.

    Attributes:
        torch: its version. device: what the samples were on.
        decomposition: that was tried beside inductor's own, if one was.
        rows: a case each. failures: the smallest sample of each kind.
        spent: seconds. complete: no sample was left out.
        lost: cases that no machine has run to the end. interrupted: how many cases Ctrl-C left out.
    """

    torch: str
    device: str
    rows: tuple[OpRow, ...]
    failures: tuple[OpFailure, ...]
    decomposition: OpDecomposition | None = None
    spent: float = 0.0
    lost: tuple[OpLost, ...] = ()
    interrupted: int = 0

    @property
    def complete(self) -> bool:
        """Tell whether no sample was left out: for lack of time, with a machine, or by Ctrl-C."""
        return not self.lost and not self.interrupted and not any(row.not_run for row in self.rows)


class OpCheckOutput(Output, frozen=True, kw_only=True):
    """What `probe check-op --json` prints."""

    verb: Literal["check-op"] = "check-op"
    checks: OpChecks
