"""Cases of scenarios, timed: what is asked for, what each process measured, and what follows from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.bench import Measurement
from inductor_probe.model.codec import Between
from inductor_probe.model.comparison import Comparison, Verdict
from inductor_probe.model.output import Output
from inductor_probe.model.timing import Count, Roofline, Seconds, Series, Variant

Knob: TypeAlias = "bool | int | float | str"

EAGER, COMPILED, CALL, KERNEL = "eager", "compiled", "call", "kernel"
"""Columns of every case: the function as it is; compiled; the generated `call` without dynamo's guards; all
launches of its generated kernels, one after the other, on the arguments that the wrapper passed them."""

SECOND = " (B)"
"""Behind the names of columns of the second interpreter."""

ColumnProblem: TypeAlias = Literal[
    "ran-eager", "shares-code", "compiled-while-timed", "other-code", "wrong", "failed", "several-graphs",
    "not-timed",
]  # fmt: skip
"""Why a column is not compared.

- `ran-eager`: no generated code ran in a call of it, as after a recompile limit.
- `shares-code`: it compiled nothing, and ran what another column had compiled.
- `compiled-while-timed`, `other-code`: it compiled, or ran other files, while it was timed.
- `wrong`: it computes something else. `failed`: compiling or running it raised an error.
- `several-graphs`: `call` and `kernel` are one graph's, and several, or none, ran; or it has no kernels.
- `not-timed`: the process ended before, or there was no time.
"""


class CaseKey(Struct, frozen=True):
    """What two rows have to have in common to be compared: all of it.

    Attributes:
        scenario: name of its script, `my.py:fn` for a plain function.
        case: its name. knobs: all of them, with their values.
        device: `cpu` or `cuda`. threads: of torch and OpenMP. data: `warm` or `cold`.
    """

    scenario: str
    case: str
    knobs: tuple[tuple[str, Knob], ...]
    device: str
    threads: Count
    data: str = "warm"


class GeneratedCode(Struct, frozen=True):
    """A file of generated code that ran in a call: where it was in inductor's cache, and its sha256.

    `fallbacks` are the operators of ATEN that it calls.
    """

    path: Path
    sha256: str
    fallbacks: tuple[str, ...] = ()


class OutputStrides(Struct, frozen=True):
    """An output of a column whose strides are others than eager's, in dimensions of more than one element.

    Attributes:
        output: its number. size: of both. stride, eager: in elements, of the column's and of eager's.
        format, eager_format: `contiguous`, `channels_last`, or `strided` for all else.
    """

    output: Count
    size: tuple[int, ...]
    stride: tuple[int, ...]
    eager: tuple[int, ...]
    format: str
    eager_format: str


class ColumnFacts(Struct, frozen=True):
    """What one process saw of a column.

    Attributes:
        name: `eager`, `compiled`, or a variant's, with settings behind `@`: `compiled@cpp.simdlen=256`.
        compiles: of dynamo, with `recompiles` among them. limit_hits: how often it gave up compiling.
        graph_breaks: as dynamo counted them.
        codes: the files that ran in a call, in order, each once. They were seen to run, in a call of their
            own outside of the clock; none for `eager`.
        check: against eager, references and float64; None where another process made it.
        problem: why it is not compared; None where it is. detail: in the words of torch or of the check.
        compile_s: seconds of the calls before the check, compiling among them; from caches as a rule.
        strides: of outputs that lie otherwise than eager's. The values may be right: what comes next reads
            them in another order, or copies them.
    """

    name: str
    compiles: Count = 0
    recompiles: Count = 0
    graph_breaks: Count = 0
    limit_hits: Count = 0
    codes: tuple[GeneratedCode, ...] = ()
    check: Variant | None = None
    problem: ColumnProblem | None = None
    detail: str = ""
    compile_s: Annotated[float, Between(0, 1e6)] = 0.0
    strides: tuple[OutputStrides, ...] = ()


class RowProcess(Struct, frozen=True):
    """One measuring process of a row.

    Attributes:
        seed: of the order in quads, and of where inputs lie in memory. first: the side set up first.
        columns: what it saw of each. series: quads of the first column with each other one.
        measured: seconds that count against the budget. load: of the machine, as it began.
    """

    seed: Count
    first: str
    columns: tuple[ColumnFacts, ...]
    series: tuple[Series, ...] = ()
    measured: Annotated[float, Between(0, 1e6)] = 0.0
    load: Annotated[float, Between(0, 1e6)] = 0.0


RowFailureCode: TypeAlias = Literal[
    "error", "load", "usage", "memory", "device", "killed", "workers-died", "no-node-left"
]
"""Why nothing is known of a row:

- `error`: something was raised; `load`: a file could not be loaded; `usage`: what was asked for is not there;
- `memory`: it ran out of memory; `device`: the GPU cannot be used any more;
- `killed`: its process ended by `signal`;
- `workers-died`: workers that an executor gave it to died, on `hosts`;
- `no-node-left`: no node of the cluster is left that could run it.
"""


class RowFailure(Struct, frozen=True):
    """Why nothing is known of a row.

    Attributes:
        message: in the words of Python, torch or Ray; of `no-node-left` why the first node was given up.
        phase: what a killed process was doing, for instance `checking`; empty if it had not reported it.
        signal: its number, where a process ended by one. hosts: in the order of their deaths.
    """

    code: RowFailureCode
    message: str = ""
    phase: str = ""
    signal: int | None = None
    hosts: tuple[str, ...] = ()


class PerfRow(Struct, frozen=True):
    """A case that was measured, or why it was not.

    Attributes:
        inputs: size, dtype and memory format of the largest.
        processes: none where it failed before anything was measured.
        moved: bytes of all inputs and outputs: what any implementation reads and writes at least once, where
            it uses all of them. flops: as torch counts operators; None where none has a count.
        dtype: of the largest floating-point input.
        failure: why nothing was measured; None where something was.
        lost: the case did not fail: what measured it was killed from outside, or with its node, twice.
            `--resume` measures it.
        node: which of `PerfRun.nodes` measured it; empty for the machine and interpreter of the run.
    """

    key: CaseKey
    inputs: str = ""
    processes: tuple[RowProcess, ...] = ()
    moved: Count | None = None
    flops: Count | None = None
    dtype: str | None = None
    failure: RowFailure | None = None
    lost: bool = False
    node: str = ""


class Interpreter(Struct, frozen=True):
    """A Python that rows were measured with; `git` is the commit that its torch was built of."""

    path: Path
    python: str
    torch: str
    git: str = ""


class PerfNode(Struct, frozen=True):
    """A machine that measured rows, with what they were measured with there.

    Attributes:
        name: its host name; with a number behind it where the machine of that name was another one before.
        interpreter, other, machine, rooflines: as in `PerfRun`.
    """

    name: str
    interpreter: Interpreter
    machine: tuple[tuple[str, str], ...] = ()
    other: Interpreter | None = None
    rooflines: tuple[Roofline, ...] = ()


class PerfSettings(Struct, frozen=True):
    """How rows are measured.

    Attributes:
        columns: as asked for; the first is what others are compared with. Empty: eager, compiled and all
            variants.
        budget: seconds of measuring for each row, in all processes.
        margin: a ratio from 1 / (1 + margin) to 1 + margin is the same time.
        processes: how many; None for 3, and more where those differ.
        cold: calls find none of their data in a cache; None: on a GPU only.
        check_only: columns are compiled and checked, and nothing is timed.
    """

    columns: tuple[str, ...] = ()
    budget: Annotated[float, Between(0.001, 1e5)] = 3.0
    margin: Annotated[float, Between(1e-6, 1)] = 0.01
    processes: Annotated[int, Between(1, 99)] | None = None
    cold: bool | None = None
    check_only: bool = False


class PerfRun(Struct, frozen=True):
    """A file of results: all that tables are made from.

    Attributes:
        name: of the file, without `.json`. probe: the version that wrote it.
        scenario: as in the keys of its rows. command: that measured it.
        started: in UTC, `2026-11-23T12:00:00`. finished: whether all rows are there; else `--resume` goes on.
        planned: how many rows there are to be.
        interpreter: what measured. machine: `host`, `cpu`, `cores`, `gpu` and the like.
        rooflines: of the machine, one for each device and number of threads.
        other: with `--interleave`, the second interpreter. Its columns have `(B)` behind their names.
        executor: `local`, or `ray`: then `machine` and `interpreter` only chose the cases.
        nodes: the machines that measured rows with `ray`, each with its interpreter.
        source: commit of the repository that the script is in, with a `+` where files differ from it; empty
            outside of one.
    """

    name: str
    probe: str
    scenario: str
    command: tuple[str, ...]
    started: str
    settings: PerfSettings
    interpreter: Interpreter
    machine: tuple[tuple[str, str], ...] = ()
    planned: Count = 0
    finished: bool = False
    rows: tuple[PerfRow, ...] = ()
    rooflines: tuple[Roofline, ...] = ()
    other: Interpreter | None = None
    executor: Literal["local", "ray"] = "local"
    nodes: tuple[PerfNode, ...] = ()
    source: str = ""

    @property
    def machines(self) -> tuple[PerfNode, ...]:
        """The machines that measured rows: nodes, or the one that the command ran on."""
        host = dict(self.machine).get("host", "")
        return self.nodes or (PerfNode(host, self.interpreter, self.machine, self.other, self.rooflines),)

    def node_of(self, row: PerfRow) -> PerfNode:
        """Return the machine that measured a row, with its interpreter and rooflines."""
        return next((node for node in self.machines if node.name == row.node), self.machines[0])

    @property
    def measured(self) -> tuple[PerfRow, ...]:
        """The rows that are not lost."""
        return tuple(row for row in self.rows if not row.lost)


class ColumnResult(Struct, frozen=True):
    """What a column of a row came to.

    Attributes:
        facts: what the first process saw, with the first problem of any.
        time: None where it was not timed.
        comparison: with the row's first column; None for that, and where `facts` has a problem.
        share: of the copy rate (or of the rate of products, where that is more) that a call reaches with the
            bytes of inputs and outputs; None where not known. share_of: `copy` or `matmul`.
    """

    facts: ColumnFacts
    time: Measurement | None = None
    comparison: Comparison | None = None
    share: float | None = None
    share_of: Literal["copy", "matmul"] | None = None


class RowResult(Struct, frozen=True):
    """A row, concluded from its samples; `node` and `failure` as in `PerfRow`."""

    key: CaseKey
    inputs: str
    columns: tuple[ColumnResult, ...] = ()
    failure: RowFailure | None = None
    node: str = ""

    def column(self, name: str) -> ColumnResult | None:
        """Return a column by its name."""
        return next((column for column in self.columns if column.facts.name == name), None)


class PerfOutput(Output, frozen=True, kw_only=True):
    """A table over cases; times are in seconds a call.

    Attributes:
        file: the samples, from which the table can be made again.
        rows: in the order of the scenario. nodes: what measured them, with `--executor ray`.
        summary: one sentence.
    """

    verb: Literal["perf"] = "perf"
    file: Path
    name: str
    interpreter: Interpreter
    other: Interpreter | None = None
    margin: float = 0.01
    rows: tuple[RowResult, ...] = ()
    nodes: tuple[PerfNode, ...] = ()
    summary: str = ""


class ResultEntry(Struct, frozen=True):
    """A file of results in a list.

    Attributes:
        rows: how many it has of those `planned`. columns: of all rows.
        size: of the file in bytes. problem: why it cannot be read; empty where it can.
    """

    name: str
    path: Path
    scenario: str = ""
    started: str = ""
    torch: str = ""
    host: str = ""
    rows: int = 0
    planned: int = 0
    finished: bool = False
    columns: tuple[str, ...] = ()
    size: int = 0
    problem: str = ""


ChangeCause: TypeAlias = Literal["code", "method", "machine", "noise"]
"""What a change of a time is due to: the build of torch, the source or the generated code; how it was
measured; what it was measured on; or nothing that is known."""


class ChangePoint(Struct, frozen=True):
    """A place in a history from which on a time is another.

    Attributes:
        before, at: names of the last result before, and of the first one after.
        ratio: of the times after over those before, up to the next changes; `low` to `high` is its interval.
        differences: what differs between both results, by name, with the values before and after.
        control: the ratio of eager's times over the same results, where that was the same code.
    """

    before: str
    at: str
    ratio: float
    low: float
    high: float
    verdict: Verdict
    cause: ChangeCause
    differences: tuple[tuple[str, tuple[str, str]], ...] = ()
    control: float | None = None


class HistoryPoint(Struct, frozen=True):
    """A time in a history: a result by its name, with the build of torch and the commit that it is of."""

    result: str
    started: str
    torch: str
    source: str
    host: str
    seconds: Seconds


class SeriesHistory(Struct, frozen=True):
    """A column of a case over results, the oldest first; `noise` is its scatter from result to result."""

    key: CaseKey
    column: str
    points: tuple[HistoryPoint, ...]
    changes: tuple[ChangePoint, ...]
    noise: float


class ResultsOutput(Output, frozen=True, kw_only=True):
    """The files of results of a folder, the newest first.

    With `--prune`, those that were removed; with `--history`, those of a scenario, and how its times went.
    """

    verb: Literal["results"] = "results"
    rows: tuple[ResultEntry, ...] = ()
    removed: bool = False
    history: tuple[SeriesHistory, ...] = ()


class CompareRow(Struct, frozen=True):
    """A column of a row that both sides have.

    Attributes:
        a, b: seconds a call.
        ratio: of B over A; `low` to `high` is its interval.
        control: the ratio of eager's times, by which the interval was widened where eager is the same code
            on both sides; None without it.
        processes: how many each side had.
        hosts: the machines of A and B, where they are two; None where it was the same one.
        strides: of A and of B, the outputs that lie otherwise than eager's there.
    """

    key: CaseKey
    column: str
    a: Seconds
    b: Seconds
    ratio: float
    low: float
    high: float
    verdict: Verdict
    control: float | None = None
    processes: tuple[int, int] = (0, 0)
    hosts: tuple[str, str] | None = None
    strides: tuple[tuple[OutputStrides, ...], tuple[OutputStrides, ...]] = ((), ())


class Unpaired(Struct, frozen=True):
    """A column of a row that one side has alone, or that is not compared, and why."""

    key: CaseKey
    column: str
    side: Literal["A", "B", "both"]
    problem: ColumnProblem | Literal["absent", "row-failed"] = "absent"
    detail: str = ""
    failure: RowFailure | None = None


class CompareOutput(Output, frozen=True, kw_only=True):
    """Two files of results, row by row.

    Attributes:
        a, b: what both sides are: file, interpreter, machine.
        rows: regressions first. unpaired: what was not compared.
        regressions: rows that are slower by more than was allowed, wholly; how many of `rows`.
        differences: of the machine or torch, by name, with the values of A and B.
    """

    verb: Literal["compare"] = "compare"
    a: ResultEntry
    b: ResultEntry
    rows: tuple[CompareRow, ...] = ()
    unpaired: tuple[Unpaired, ...] = ()
    regressions: int = 0
    differences: tuple[tuple[str, tuple[str, str]], ...] = ()
    summary: str = ""
