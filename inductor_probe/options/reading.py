"""The options of the verbs that read what was compiled: tables, pages, causes, comparisons, runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.decision import DecisionKind
from inductor_probe.options.fields import ARGUMENT, PYTHON, Target, Typed

_RUN = "A path, a graph's name, a label, or the start of one; the latest run if left out."
RunOrGraph: TypeAlias = Annotated[Target, Typed("run or graph", "[RUN|GRAPH]", text=_RUN)]
Name: TypeAlias = Annotated[str, ARGUMENT]
Kinds: TypeAlias = Annotated[Sequence[DecisionKind], Typed("kinds", "KIND,...", "--kind")]
Second: TypeAlias = Annotated[Name, Typed(text="The other one of a pair.")]


class NodesOptions(Struct, frozen=True):
    """Which nodes `probe nodes` shows.

    Attributes:
        pre: The nodes before fusion, with those removed since.
        kind: Only pointwise, reduction, scan, sort, scatter, template, extern, fallback, item, nop; a class
            (ComputedBuffer); fused, foreach, unlinked.
        kernel: Only nodes in this kernel, or one whose name starts so.
        reads: Only nodes that read this buffer or input.
        writes: Only nodes that write it, or change it in place.
        op: Only nodes whose loop body calls this: exp, load, sum ...
        source: Only nodes from this source line, or file, or line number.
        sort: Largest first; in the scheduler's order if left out.
    """

    target: RunOrGraph = None
    pre: bool = False
    kind: Annotated[str | None, Typed("node kind", "KIND")] = None
    kernel: Annotated[str | None, Typed("kernel", "KERNEL")] = None
    reads: Annotated[str | None, Typed("buffer", "BUFFER")] = None
    writes: Annotated[str | None, Typed("buffer", "BUFFER")] = None
    op: str | None = None
    source: Annotated[str | None, Typed(metavar="FILE:LINE")] = None
    sort: Literal["size", "ops", "reads", "users", "kind", "kernel"] | None = None


class KernelsOptions(Struct, frozen=True):
    """Which kernels `probe kernels` shows.

    Attributes:
        sort: Largest first, names from a to z; in the order of first use if left out.
        traits: Only kernels that are TRAIT: cpp, triton, extern, fallback, template, pointwise, reduction,
            scalar, underfilled, vectorised, atomic, int64, unlinked ... Several must all hold.
    """

    target: RunOrGraph = None
    sort: Literal["bytes", "reads", "writes", "nodes", "loads", "calls", "name"] | None = None
    traits: Annotated[Sequence[str], Typed("trait", "TRAIT", "--only")] = ()


class LayoutsOptions(Struct, frozen=True):
    """Which layouts `probe layouts` shows.

    Attributes:
        name: A buffer (buf3), an input (arg0_1) or a node (op3); every buffer if left out.
    """

    name: Name | None = None
    target: RunOrGraph = None


class FusionOptions(Struct, frozen=True):
    """What `probe fusion` is asked about.

    Attributes:
        first: A node (op3), a fused one (op3_op4) or a buffer (buf3); all of the graph if left out.
    """

    first: Name | None = None
    second: Second | None = None
    target: RunOrGraph = None


class WhyOptions(Struct, frozen=True):
    """What `probe why` is asked about.

    Attributes:
        first: A node, buffer, kernel, FX node, source line or operator; every decision if left out.
        kinds: Only decisions of these kinds: vectorisation, fallback, realization, threads, fusion,
            reduction, index-width, layout, copy, concatenation, casts, arguments, divisions, loops,
            rewrite, cudagraphs, freezing, tiling, configs.
    """

    first: Name | None = None
    second: Second | None = None
    target: RunOrGraph = None
    kinds: Kinds = ()


class ExplainOptions(Struct, frozen=True):
    """What `probe explain` explains.

    Attributes:
        code: Of a cause, as on the screen; a list of all if left out.
        kinds: Only causes of these kinds of decisions; see why.
    """

    code: Annotated[str | None, ARGUMENT, Typed("cause", "[CODE]")] = None
    kinds: Kinds = ()


class ShowOptions(Struct, frozen=True):
    """Which page `probe show` shows.

    Attributes:
        name: A node, buffer, kernel, FX node or source line; a page about the graph if left out.
        raw: Loop bodies as dumped, with line numbers, instead of formulas.
        code: With a kernel: its text.
    """

    name: Name | None = None
    target: RunOrGraph = None
    raw: bool = False
    code: bool = False


class DiffOptions(Struct, frozen=True):
    """What `probe diff` compares.

    Attributes:
        a: A run or graph; the run before the latest if left out.
        b: What is compared with it; the latest run if left out.
        devices: Show the kernels of two devices beside each other, by what they compute, with the times that
            probe profile measured of each run.
    """

    a: Annotated[Target, Typed("run or graph", "[A]")] = None
    b: Annotated[Target, Typed("run or graph", "[B]")] = None
    devices: bool = False


class ReportOptions(Struct, frozen=True):
    """What the page of `probe report` is about.

    Attributes:
        a: A run or graph; the latest run if left out.
        b: What is compared with it; nothing if left out.
    """

    a: Annotated[Target, Typed("run or graph", "[RUN]")] = None
    b: Annotated[Target, Typed("run or graph", "[RUN_B]")] = None


class TuningsOptions(Struct, frozen=True):
    """Whose autotuning `probe tunings` shows.

    Attributes:
        target: A run or graph, the latest run if left out; or a table that --csv printed.
    """

    target: Annotated[Target, Typed("run or graph", "[RUN|GRAPH|TABLE.csv]")] = None


class CheckOptions(Struct, frozen=True):
    """What `probe check` reads.

    Attributes:
        targets: Folders, archives, runs or graphs; the latest run if left out.
    """

    targets: Annotated[Sequence[Any], ARGUMENT, Typed("run or graph", "[PATH|RUN|GRAPH]...")] = ()


class RunsOptions(Struct, frozen=True):
    """Which runs `probe runs` lists.

    Attributes:
        targets: Folders, or runs by path, label or name; those below the working folder if left out.
        older_than: Only runs older than this: 30m, 12h, 7d, 2w.
        empty: Only runs in which nothing was dumped.
        exact: Each target is one run, and no folder that holds runs.
    """

    targets: Annotated[Sequence[Any], ARGUMENT, Typed("run or graph", "[PATH|RUN]...")] = ()
    older_than: Annotated[timedelta | None, Typed("age", "AGE")] = None
    empty: bool = False
    exact: Annotated[bool, PYTHON] = False


class DoctorOptions(Struct, frozen=True):
    """`probe doctor` has no options: it asks the whole machine."""
