"""Rows that show themselves: one collection for all tables, and what each is filtered and sorted by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar, get_args

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.errors import NotFoundError, UnreadableError, names_meant, near_names
from inductor_probe.files import read_text
from inductor_probe.model.autotuning import ConfigSweep, SweepConfigsOutput, Tuning, TuningsOutput
from inductor_probe.model.bench import RewriteOutput, RewriteRow
from inductor_probe.model.cause import GraphCauses, WhyOutput
from inductor_probe.model.decision import DecisionKind
from inductor_probe.model.explanation import ExplainOutput, Explanation
from inductor_probe.model.fusion import FusionDecision, FusionOutput, GraphFusion, NodeFusion
from inductor_probe.model.ir import Dim
from inductor_probe.model.kernels import KernelRow, KernelsOutput
from inductor_probe.model.layouts import LayoutRow, LayoutsOutput
from inductor_probe.model.nodes import NodeKind, NodeRow, NodesOutput
from inductor_probe.model.output import Output
from inductor_probe.model.remark import Remark
from inductor_probe.model.span import Problem
from inductor_probe.report.document import Document, Line, RemarkLine, by_graph
from inductor_probe.report.shown import Shown
from inductor_probe.report.words.remarks import failure_sentence

if TYPE_CHECKING:
    from typing_extensions import Self

    from inductor_probe.api.on_disk import GraphOnDisk, RunOnDisk

Row = TypeVar("Row")
Orders: TypeAlias = Mapping[str, Callable[[Any], Any]]


class Filter(Struct, Generic[Row], frozen=True):
    """A condition on rows: `values(row)` has a word, as in `nodes --kind reduction`."""

    values: Callable[[Row], Iterable[str]]
    missing: str = ""  # the error for a word `{}` that no row has; none if it is empty: no rows then
    known: Callable[[Iterable[Row]], Iterable[str]] = lambda rows: ()  # words for which there is no error
    matches: Callable[[str, str], bool] = str.__eq__  # (value, word): if no value is the word itself
    spelled: Callable[[str], str] = str  # how rows spell a word


class Rows(Shown, tuple[Row, ...], Generic[Row]):
    """Records that show themselves as text and as HTML.

    Attributes:
        problems: what could not be read.
        left_out: graphs that have no row since their compile failed.
        unfiltered: how many there were before any were picked.
        record: the class of what `--json` prints.
        noun: what one of them is called. nothing: why there may be none.
        orders: what they can be sorted by: a key of a row, smallest first.
    """

    problems: tuple[Problem, ...]
    left_out: tuple[Remark, ...] = ()
    unfiltered: int
    record: ClassVar[Any]
    noun: ClassVar[str]
    nothing: ClassVar[str]
    orders: ClassVar[Orders] = {}

    def __new__(cls, rows: Iterable[Row] = (), problems: Iterable[Problem] = ()) -> Self:
        """Join the rows with what could not be read."""
        self = super().__new__(cls, rows)
        self.problems = tuple(dict.fromkeys(problems))
        self.unfiltered = len(self)
        return self

    @classmethod
    def of_graphs(
        cls, run: RunOnDisk, graphs: Sequence[GraphOnDisk], rows_of: Callable[[GraphOnDisk], Self]
    ) -> Self:
        """Join what `rows_of` returns for graphs of a run; what cannot be read is a problem beside others.

        Raises:
            NotFoundError: the run is empty. UnreadableError: `rows_of` raises it for all of them.
        """
        if not graphs:
            raise run.empty()
        tables: list[Self] = []
        failures: list[UnreadableError] = []
        for graph in graphs:
            try:
                tables.append(rows_of(graph))
            except UnreadableError as error:
                failures.append(error)
        if not tables:
            raise failures[0]
        problems = [problem for table in tables for problem in table.problems]
        return cls(chain.from_iterable(tables), [*problems, *(Problem(one.message) for one in failures)])

    def beside(self, graphs: Sequence[GraphOnDisk]) -> Self:
        """Return them with why some of the graphs have no row: their compile failed."""
        from inductor_probe.analysis.run_remarks import unfinished

        names = {getattr(row, "graph") for row in self}  # noqa: B009 - the rows of graphs have one
        missing = (graph.generated for graph in graphs if graph.name not in names)
        self.left_out = tuple(remark for graph in missing if graph.failures for remark in unfinished(graph))
        return self

    @property
    def output(self) -> Output:
        """The rows as the record that `--json` prints."""
        output: Output = self.record(rows=self, problems=self.problems)
        return output

    @property
    def empty(self) -> str:
        """Why there are none."""
        if not self.unfiltered:
            return f"no {self.noun} was read" if self.problems else self.nothing
        from inductor_probe.report.units import counted

        return f"no {self.noun} matches these filters ({counted(self.unfiltered, self.noun)})"

    def sorted_by(self, order: str | None) -> Self:
        """Return the rows of each graph sorted by one of `orders`; as they are if None."""
        if order is None:
            return self
        graphs: dict[str, int] = {}
        for row in self:
            graphs.setdefault(getattr(row, "graph"), len(graphs))  # noqa: B009 - rows with orders have one
        key = self.orders[order]
        return self._with(sorted(self, key=lambda row: (graphs[getattr(row, "graph")], key(row))))  # noqa: B009

    def _filtered(self, condition: Filter[Row], word: str) -> Self:
        """Return the rows that have `word`, or else values that match it.

        Raises:
            NotFoundError: no row has it, and it is not among the known words; near ones are offered.
        """
        word = condition.spelled(word)
        values = {value for row in self for value in condition.values(row)}
        matching = {word} & values or {value for value in values if condition.matches(value, word)}
        if not matching and condition.missing and word not in (known := set(condition.known(self))):
            raise NotFoundError(condition.missing.format(word), near_names(word, sorted(values | known)))
        return self._with(row for row in self if not matching.isdisjoint(condition.values(row)))

    def _with(self, rows: Iterable[Row]) -> Self:
        """Return other rows with the same problems, and the same number before filters."""
        others = type(self)(rows, self.problems)
        others.__dict__.update(self.__dict__)
        return others

    @property
    def document(self) -> Document:
        """The rows, or why there are none; then the graphs that have none, as their compile failed."""
        yield from self._view() if self else (Line(self.empty),)
        yield from self._without_rows()

    def _without_rows(self) -> Document:
        for remark in self.left_out:
            yield RemarkLine(remark.kind, failure_sentence(remark))

    def _view(self) -> Document:
        raise NotImplementedError


class LayoutRows(Rows[LayoutRow]):
    """Rows of `layouts`. Those of a name (`named`) show as a page each, all of a graph as a table."""

    record = LayoutsOutput
    noun = "buffer"
    nothing = "the graph has neither inputs nor buffers"
    named = False

    def _view(self) -> Document:
        from inductor_probe.report.pages.layouts import layout_page, layout_table

        return by_graph((row.graph, layout_page(row)) for row in self) if self.named else layout_table(self)


def _points(row: NodeRow) -> tuple[int, int]:
    """Symbolic sizes come before numbers, nodes without loops last."""
    if row.ranges is None:
        return (2, 0)
    steps = [*row.ranges.iteration, *row.ranges.reduction]
    numbers = [step for step in steps if isinstance(step, int)]
    return (1, -prod(numbers)) if len(numbers) == len(steps) else (0, 0)


def _written(row: NodeRow) -> list[str]:
    return [*(buffer.name for buffer in row.writes), *row.mutates]


def _buffers(rows: Iterable[NodeRow]) -> set[str]:
    return {name for row in rows for name in (*row.reads, *_written(row))}


def on_line(place: str, line: str) -> bool:
    """Whether `/home/u/a.py:12` is meant by `a.py:12`, `a.py`, `12` or `:12`."""
    path, _, known = place.rpartition(":")
    file, colon, number = line.rpartition(":")
    if not colon:
        file, number = ("", line) if line.isdigit() else (line, "")
    tail = file.removeprefix("…") if file.startswith("…") else f"/{file}"  # as a table cuts a place
    return (not number or number == known) and (not file or path == file or path.endswith(tail))


NODE_KINDS = (*get_args(NodeKind), "fused", "foreach", "unlinked", "ambiguous")
"""What nodes can be filtered by, beside the classes that inductor prints."""
NODE_FILTERS: Mapping[str, Filter[NodeRow]] = {
    "kind": Filter(
        lambda row: row.traits, "unknown kind of node {}", known=lambda rows: NODE_KINDS, spelled=str.lower
    ),
    "kernel": Filter(
        lambda row: [row.link.kernel] if row.link.kernel else [],
        "no node runs in a kernel {}",
        matches=lambda value, word: bool(names_meant(word, (value,))),
    ),
    "reads": Filter(lambda row: row.reads, "no buffer or input {}", known=_buffers),
    "writes": Filter(_written, "no buffer or input {}", known=_buffers),
    "op": Filter(
        lambda row: [*(name for name, _ in row.operations), *row.reductions],
        spelled=lambda word: word.removeprefix("ops."),
    ),
    "source": Filter(
        lambda row: map(str, row.link.sources), "no node is known to come from {}", matches=on_line
    ),
}


class NodeRows(Rows[NodeRow]):
    """Rows of `nodes`."""

    record = NodesOutput
    noun = "node"
    nothing = "the scheduler had nothing to do: the graph computes nothing"
    orders: ClassVar[Orders] = {
        "size": _points,
        "ops": lambda row: -row.op_count,
        "reads": lambda row: -len(row.reads),
        "users": lambda row: -len(row.users),
        "kind": lambda row: row.kind,
        "kernel": lambda row: row.link.kernel or "",
    }

    def where(
        self,
        *,
        kind: str | None = None,
        kernel: str | None = None,
        reads: str | None = None,
        writes: str | None = None,
        op: str | None = None,
        source: str | None = None,
    ) -> Self:
        """Return the nodes that all conditions hold for.

        Args:
            kind: what they do (`reduction`), their class, or `fused`, `foreach`, `unlinked`.
            kernel: the kernel or library call, or the start of its name.
            reads, writes: a buffer or input; writing includes changing it in place.
            op: an operation of the loop body (`exp`), or a reduction (`sum`).
            source: a line of the user's: `file.py:12`, `file.py`, or `12`.

        Raises:
            NotFoundError: there is no such kind, kernel, buffer or line; near names are offered.
        """
        words = {"kind": kind, "kernel": kernel, "reads": reads, "writes": writes, "op": op, "source": source}
        rows = self
        for name, word in words.items():
            if word:  # each condition is one on all rows: a kernel without reductions is no unknown kernel
                common = {id(row) for row in self._filtered(NODE_FILTERS[name], word)}
                rows = rows._with(row for row in rows if id(row) in common)
        return rows

    def _view(self) -> Document:
        from inductor_probe.report.pages.nodes import node_table

        return node_table(self)


TRAITS = (
    "cpp", "triton", "extern", "library", "fallback", "loops", "template", "pointwise", "reduction",
    "persistent_reduction", "split_scan", "cooperative_reduction", "foreach", "user_autotune", "scalar",
    "underfilled", "vectorised", "atomic", "int64", "unlinked",
)  # fmt: skip
"""What kernels can be filtered by; those of further backends and heuristics are known when they are met."""
_BY_TRAIT: Filter[KernelRow] = Filter(
    lambda row: row.traits, "unknown trait of a kernel {}", known=lambda rows: TRAITS
)


def _largest(*sizes: tuple[Dim | None, int | None]) -> tuple[int, int]:
    """Symbolic sizes of unknown value come before numbers, unknown ones last: neither can be compared.

    A size comes with what it was when the graph was compiled.
    """
    known = [size if recorded is None else recorded for size, recorded in sizes]
    numbers = [size for size in known if isinstance(size, int)]
    if len(numbers) == len(known):
        return (1, -sum(numbers))
    return (0, 0) if any(isinstance(size, str) for size in known) else (2, 0)


class KernelRows(Rows[KernelRow]):
    """Rows of `kernels`. In a notebook the page and text of each is there to unfold."""

    record = KernelsOutput
    noun = "kernel"
    nothing = "nothing in the graph needs a kernel or a library call"
    orders: ClassVar[Orders] = {
        "bytes": lambda row: _largest(
            (row.bytes_read, row.recorded_read), (row.bytes_written, row.recorded_written)
        ),
        "reads": lambda row: _largest((row.bytes_read, row.recorded_read)),
        "writes": lambda row: _largest((row.bytes_written, row.recorded_written)),
        "nodes": lambda row: -len(row.nodes),
        "loads": lambda row: -(row.loads or 0),
        "calls": lambda row: -len(row.launches),
        "name": lambda row: row.name,
    }

    def only(self, *traits: str) -> Self:
        """Return the kernels that have every trait: see `TRAITS`.

        Raises:
            NotFoundError: there is no such trait; near ones are offered.
        """
        for trait in traits:
            self._filtered(_BY_TRAIT, trait)
        return self._with(row for row in self if set(traits) <= set(row.traits))

    def _view(self) -> Document:
        from inductor_probe.report.pages.kernels import kernel_table

        return kernel_table(self)


FusionRow: TypeAlias = GraphFusion | NodeFusion | FusionDecision


class FusionRows(Rows[FusionRow]):
    """Answers of `fusion`, one a graph: all of it, one node, or one pair.

    `problems` is also where log and IR disagree.
    """

    record = FusionOutput
    noun = "graph"
    nothing = "nothing was fused or refused"

    def __new__(cls, rows: Iterable[FusionRow] = (), problems: Iterable[Problem] = ()) -> Self:
        """Join the answers with what could not be read, and with where log and IR disagree."""
        rows = tuple(rows)
        return super().__new__(cls, rows, (*problems, *(problem for row in rows for problem in row.problems)))

    def _view(self) -> Document:
        return self.page()

    def page(self, *, everything: bool = False) -> Document:
        """Return each answer on a page of its own; with `everything` lists to their end."""
        from inductor_probe.report.pages.fusion import fusion_pages

        return fusion_pages(self, everything=everything)


class Causes(Rows[GraphCauses]):
    """Answers of `why`, one a graph: the decisions about a subject, or all of them.

    `problems` is also what of the recorded decisions could not be read.
    """

    record = WhyOutput
    noun = "graph"
    nothing = "nothing was decided"

    def __new__(cls, rows: Iterable[GraphCauses] = (), problems: Iterable[Problem] = ()) -> Self:
        """Join the answers with what could not be read."""
        rows = tuple(rows)
        return super().__new__(cls, rows, (*problems, *(problem for row in rows for problem in row.problems)))

    def _view(self) -> Document:
        return self.page()

    def page(self, *, everything: bool = False) -> Document:
        """Return each answer; with `everything` each decision with its evidence, and tables to their end."""
        from inductor_probe.report.pages.why import why_pages

        return why_pages(self, everything=everything)


class Explanations(Rows[Explanation]):
    """What causes mean: a page for each meaning of a code, or a list of all codes."""

    record = ExplainOutput
    noun = "cause"
    nothing = "there are no causes"
    is_list = True

    @classmethod
    def of_code(cls, code: str | None, kinds: Sequence[DecisionKind] = ()) -> Self:
        """Return what a code means, or what all of them do.

        Raises:
            NotFoundError: no cause has it; near codes are offered.
        """
        from inductor_probe.catalogue.explained import explanations

        rows = cls(explanations(code, kinds))
        rows.is_list = code is None
        return rows

    def _view(self) -> Document:
        from inductor_probe.report.pages.explain import explanation_list, explanation_pages

        return explanation_list(self) if self.is_list else explanation_pages(self)


class Tunings(Rows[Tuning]):
    """What was autotuned, each with every choice."""

    record = TuningsOutput
    noun = "tuning"
    nothing = (
        "nothing was autotuned in it, or it was not recorded: dump what calls "
        "torch.compile(mode='max-autotune')"
    )

    @property
    def csv(self) -> str:
        """The tunings as a small table, which `tunings` reads back."""
        from inductor_probe.store.choices import tunings_to_csv

        return tunings_to_csv(self)

    def _view(self) -> Document:
        from inductor_probe.report.pages.tunings import tuning_tables

        return tuning_tables(self)


class ConfigSweeps(Rows[ConfigSweep]):
    """The configs of each Triton kernel of a graph, timed."""

    record = SweepConfigsOutput
    noun = "kernel"
    nothing = "no Triton kernel of the graph is launched"

    def _view(self) -> Document:
        from inductor_probe.report.pages.configs import config_sweeps

        return config_sweeps(self)


class RewriteRows(Rows[RewriteRow]):
    """The named rewrites, each with the specs that make variants of a graph."""

    noun = "rewrite"
    nothing = "there are no rewrites"

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return RewriteOutput(rewrites=self)

    def _view(self) -> Document:
        from inductor_probe.report.pages.configs import rewrite_list

        return rewrite_list(self)


def rewrite_rows(graph: GraphOnDisk) -> RewriteRows:
    """Return the rewrites that make variants of a graph; a wrapper in C++ is put as Python for it."""
    from inductor_probe.bench_file.python_form import code_as_python
    from inductor_probe.reader.debug_dir import texts_of
    from inductor_probe.variants.registry import applicable

    code, path, _ = code_as_python(texts_of(graph.generated), graph.path, graph.inputs)
    return RewriteRows(replace(row, graph=graph.name) for row in applicable(code, str(path)))


def tunings_of_graph(graph: GraphOnDisk) -> Tunings:
    """Return what was autotuned in a graph, templates and Triton configs; empty if not recorded."""
    from inductor_probe.analysis.links import linked_tunings
    from inductor_probe.reader.tunings import cached_configs, logged_configs, read_tunings, tuning_of_log

    if graph.run.manifest and graph.run.manifest.gpu:  # all its times are ties, and none was measured
        return Tunings((), [])
    recorded = read_tunings(graph.path)
    problems = list(recorded.problems)
    templates = linked_tunings(graph.generated, recorded.tunings)
    if not templates:
        linked = linked_tunings(graph.generated, map(tuning_of_log, graph.run.logs.autotunes))
        alone = len(graph.run.graphs) == 1  # else only what is proved to be of this graph
        templates = tuple(tuning for tuning in linked if alone or tuning.kernel)
    kernels = graph.generated.code.kernels if graph.generated.code else ()
    triton = {kernel.name for kernel in kernels if kernel.backend == "triton"}
    logged = logged_configs(graph.run.path, problems) if triton else ()
    configs = _configs_of_kernels(graph, [tuning for tuning in logged if tuning.operation in triton])
    cached = [replace(tuning, kernel=tuning.operation) for tuning in cached_configs(kernels, problems)]
    tunings = (*templates, *configs, *cached)
    return Tunings((replace(tuning, graph=graph.name) for tuning in tunings), problems)


def _configs_of_kernels(graph: GraphOnDisk, logged: list[Tuning]) -> list[Tuning]:
    """Name the kernel of each tuning; one that another graph of the run has too is not proved."""
    others = [other.path / "output_code.py" for other in graph.run.graphs if other.path != graph.path]
    texts = [read_text(path) for path in others if path.exists()] if logged else []
    return [
        replace(tuning, generated=None)
        if any(f"{tuning.operation} = async_compile." in text for text in texts)
        else replace(tuning, kernel=tuning.operation)
        for tuning in logged
    ]
