"""What the other decision would have cost: two runs of a program, checked and timed against each other."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, count
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.analysis.causes.candidates import asked_changes
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.api.diff import Diff
from inductor_probe.api.on_disk import GraphOnDisk, RunOnDisk
from inductor_probe.api.own_call import own_pair
from inductor_probe.api.trust import WITHOUT_GPU, missing_gpu, texts_to_run, why_not_launched
from inductor_probe.executors.server import Server
from inductor_probe.files import seen_from
from inductor_probe.model.bench import BenchSettings
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.diff import GraphDiff, RunDiff
from inductor_probe.model.output import Output
from inductor_probe.model.own_call import NoOwnCall, OwnPair
from inductor_probe.model.span import Problem
from inductor_probe.model.timing import Process
from inductor_probe.model.whatif import Candidate, GraphWhatIf, WhatIfOutput, acts_at_run_time
from inductor_probe.report.document import Document
from inductor_probe.report.pages.whatif import whatif_page, whatif_sentence
from inductor_probe.report.shown import Shown
from inductor_probe.report.units import one_word
from inductor_probe.report.words.flips import flip_texts

_CODES = ("output_code.py", "output_code.cpp")
_RUNNABLE, _READABLE = "fx_graph_runnable.py", "fx_graph_readable.py"
_NAME = "output_code_bench.whatif_{}.py"
_OF_INPUTS = ("size", "stride", "dtype", "device", "offset", "position")
"""Facts of an input that decide whether one graph can take the input of the other."""

Progress = Callable[[str], None]


class WhatIf(Shown, Struct, frozen=True):
    """Two runs, graph by graph: what changed, whether it is right, and how long both take.

    `runs` are A and B, `candidate` is what is different in B, where that was asked for here. `details`: with
    what else the report is folded. `own`: the callables of both programs, where graphs could not be timed.
    """

    runs: tuple[RunOnDisk, RunOnDisk]
    diff: RunDiff
    graphs: tuple[GraphWhatIf, ...]
    candidate: Candidate | None = None
    details: bool = False
    own: OwnPair | NoOwnCall | None = None

    @property
    def correct(self) -> bool:
        """Whether B computes in every graph that was run what A does."""
        return all(graph.correct for graph in self.graphs)

    @property
    def compared(self) -> bool:
        """Whether anything could be timed, or is the same code in both."""
        same = any(graph.result or graph.not_timed == "same-code" for graph in self.graphs)
        return same or isinstance(self.own, OwnPair)

    @property
    def without_gpu(self) -> str:
        """What can be done with B where its kernels are for a GPU, and there is none; empty elsewhere."""
        if not any(map(why_not_launched, self.runs[1].graphs)):
            return ""
        command = f"probe check-kernel {seen_from(self.runs[1].path, Path.cwd())}"
        return f"{WITHOUT_GPU}: {one_word(command)}"

    def faster_by(self, share: float) -> tuple[str, ...]:
        """Return a sentence for each right graph that takes less time by more than a share."""
        faster = [graph for graph in self.graphs if graph.correct and is_faster(graph.call, share)]
        several = len(self.graphs) > 1
        return tuple(
            (f"{graph.diff.a.name}: " if several else "") + whatif_sentence(graph, self.candidate)
            for graph in faster
        )

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        a, b = self.runs
        return WhatIfOutput(
            a=a.path,
            b=b.path,
            candidate=self.candidate,
            compile_s=self._compile_s,
            environment=self.diff.environment,
            graphs=self.graphs,
            only_a=self.diff.removed,
            only_b=self.diff.added,
            not_timed_with=self._not_timed_with,
            summary=tuple(whatif_sentence(graph, self.candidate) for graph in self.graphs),
            own=self.own if isinstance(self.own, OwnPair) else None,
            no_own=self.own if isinstance(self.own, NoOwnCall) else None,
            problems=self.problems,
        )

    @property
    def _compile_s(self) -> tuple[float | None, ...]:
        return tuple(run.manifest.compile_s if run.manifest else None for run in self.runs)

    @property
    def document(self) -> Document:
        """For each graph the decisions that changed, times and verdicts, and one sentence."""
        here = Path.cwd()
        return whatif_page(
            self.diff,
            tuple(_from(here, graph) for graph in self.graphs),
            self.candidate,
            compile_s=self._compile_s,
            flips=self._flips,
            not_timed_with=self._not_timed_with,
            samples_of=partial(_samples_of, here),
            details=self.details,
            own=self.own,
        )

    @property
    def _not_timed_with(self) -> tuple[str, ...]:
        named = self.candidate.not_timed_with if self.candidate else ()
        changed = (fact.name for fact in self.diff.environment if acts_at_run_time(fact.name))
        return tuple(dict.fromkeys((*named, *changed)))

    @property
    def _flips(self) -> tuple[str, ...]:
        """What became of each decision that was to be turned in B."""
        manifest = self.runs[1].manifest
        texts = flip_texts(manifest.flips, manifest.flip_results) if manifest else ()
        return tuple(text for _, text in texts)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What could not be read of either run."""
        return tuple(chain.from_iterable(run.debug_dir.problems for run in self.runs))

    def with_details(self, details: bool = True) -> WhatIf:
        """Return the same with what else is folded."""
        return replace(self, details=details)


def is_faster(call: Comparison | None, share: float) -> bool:
    """Whether the whole interval of a comparison is faster by more than a share."""
    return call is not None and call.verdict == "FASTER" and 1 - call.high > share


def is_whatif(samples: Path) -> bool:
    """Whether samples are of the code of two graphs, by the name of their file."""
    return samples.name.startswith(_NAME.partition("{}")[0])


def _from(here: Path, graph: GraphWhatIf) -> GraphWhatIf:
    """Return a graph whose files are named from a folder, where they are below it."""
    ran = tuple((seen_from(path, here), digest) for path, digest in graph.ran)
    return replace(graph, file=graph.file and seen_from(graph.file, here), ran=ran)


def _samples_of(here: Path, graph: GraphWhatIf) -> tuple[Process, ...]:
    """Return what was measured of a graph, whose files are named from `here`; nothing where it is gone."""
    from inductor_probe.store.samples import read_samples

    path = here / graph.file.with_suffix(".json") if graph.file else None
    return read_samples(path).processes if path and path.exists() else ()


def whatif_of_runs(
    a: RunOnDisk,
    b: RunOnDisk,
    settings: BenchSettings | None = None,
    *,
    candidate: Candidate | None = None,
    only: GraphOnDisk | None = None,
    trust: bool = False,
    progress: Progress | None = None,
) -> WhatIf:
    """Check and time the graphs of B against their partners in A, on inputs of A; this executes their code.

    Each is compiled code of its own, both in one program: calls of A and B take turns in each process.

    Args:
        settings: how long for each graph, in how many processes.
        candidate: what is different in B, where that is known.
        only: the only graph of A to be timed.
        trust: run code that is not known to be made here.
        progress: called with what comes next.

    Raises:
        NotFoundError: a run has no graphs. ProbeError: code may not be run, or a graph is in an archive.
        RunFailedError: nothing could be measured.
    """
    for run in (a, b):
        if not run.graphs:
            raise run.empty()
    compared = Diff(a, b)
    diffs, settings = compared.result, settings or BenchSettings()
    assert isinstance(diffs, RunDiff)  # noqa: S101 - both are runs
    graphs = tuple(
        with_asked(refused, graph_a, graph_b, candidate)
        if (refused := why_not_timed(graph_a, graph_b, diff)) is not None
        else timed_graph(graph_a, graph_b, diff, settings, candidate, trust=trust, progress=progress)
        for diff, (graph_a, graph_b) in zip(diffs.graphs, compared.pairs, strict=True)
        if only is None or graph_a.path == only.path
    )
    own = None
    around = candidate is not None and candidate.acts_around_code
    if only is None and (around or _is_of_other_form(diffs, graphs)):
        own = own_pair(
            *_not_timed_graphs(a, b, diffs, graphs),
            budget=settings.budget,
            margin=settings.margin,
            threads=settings.threads if settings.threads > 1 else None,
            processes=settings.processes,
            progress=progress,
        )
    return WhatIf((a, b), diffs, graphs, candidate, own=own)


def _is_of_other_form(diff: RunDiff, graphs: tuple[GraphWhatIf, ...]) -> bool:
    """Whether graphs of B take other inputs than those of A or hold other constants, or are more or fewer."""
    forms = ("inputs-differ", "constants-differ")
    return bool(diff.added or diff.removed) or any(graph.not_timed in forms for graph in graphs)


def _not_timed_graphs(
    a: RunOnDisk, b: RunOnDisk, diff: RunDiff, graphs: tuple[GraphWhatIf, ...]
) -> tuple[list[GraphOnDisk], list[GraphOnDisk]]:
    """Return the graphs of each run that were not timed against a partner; all where one has none such."""
    timed = [
        {graph.diff.a.name for graph in graphs if graph.result},
        {graph.diff.b.name for graph in graphs if graph.result},
    ]
    left = [
        [graph for graph in run.graphs if graph.name not in names]
        for run, names in zip((a, b), timed, strict=True)
    ]
    return left[0] or [*a.graphs], left[1] or [*b.graphs]


def timed_graph(
    a: GraphOnDisk,
    b: GraphOnDisk,
    diff: GraphDiff,
    settings: BenchSettings,
    candidate: Candidate | None = None,
    *,
    trust: bool,
    progress: Progress | None,
    server: Server | None = None,
) -> GraphWhatIf:
    """Check and time a graph of B against its partner in A, whatever their code is.

    `server` is a process that has imported torch for other candidates.
    """
    timed = _timed(a, b, diff, settings, trust=trust, progress=progress, server=server)
    return with_asked(timed, a, b, candidate)


def with_asked(
    graph: GraphWhatIf, a: GraphOnDisk, b: GraphOnDisk, candidate: Candidate | None
) -> GraphWhatIf:
    """Return an answer with which decisions were asked for, and which settings were not in force."""
    changes = graph.diff.decisions
    asked = asked_changes(changes, candidate, a.compiled, b.compiled) if candidate else ()
    record = b.compiled.record
    return replace(graph, asked=asked, overridden=record.overridden if record else ())


def _timed(
    a: GraphOnDisk,
    b: GraphOnDisk,
    diff: GraphDiff,
    settings: BenchSettings,
    *,
    trust: bool,
    progress: Progress | None,
    server: Server | None,
) -> GraphWhatIf:
    from inductor_probe.analysis.input_bounds import input_bounds
    from inductor_probe.bench.session import run_bench_file
    from inductor_probe.bench_file.bench_file import seal
    from inductor_probe.bench_file.python_form import code_as_python
    from inductor_probe.bench_file.source import bench_source
    from inductor_probe.bench_file.two_codes import bench_of_two
    from inductor_probe.files import write_whole

    texts_a, texts_b = (texts_to_run(one, trust=trust, imports=settings.imports) for one in (a, b))
    code_a, path_a, of_cpp = code_as_python(texts_a, a.path, a.inputs)
    code_b, path_b, _ = code_as_python(texts_b, b.path, b.inputs)
    made = bench_source(
        code_a,
        texts_a[_RUNNABLE],
        a.name,
        a.inputs,
        path_a,
        bounds=input_bounds(a.generated),
        readable=texts_a[_READABLE],
        constants=a.constants,
        of_cpp=of_cpp,
    )
    partners = dict(_partners(a, b, diff))
    both = bench_of_two(made, code_b, partners, runnable=texts_b[_RUNNABLE], path=path_b)
    source = seal(both, both)
    paths = (a.path / _NAME.format(number) for number in count(1))
    path = next(path for path in paths if not path.exists() and not path.with_suffix(".json").exists())
    write_whole(path, source)
    if not _compiled_alike(a, b):  # then B is other code, also where its text is that of A
        settings = replace(settings, copies=True)
    result = run_bench_file(path, settings, (), progress, source=source, shared=server)
    ran = tuple(
        (path, hashlib.sha256((texts[path.name] or "").encode()).hexdigest())
        for path, texts in ((path_a, texts_a), (path_b, texts_b))
    )
    return GraphWhatIf(diff, result, file=path, ran=ran)


def why_not_timed(a: GraphOnDisk, b: GraphOnDisk, diff: GraphDiff) -> GraphWhatIf | None:
    """Return the answer for two graphs that are not timed; None for those that are."""
    if not all(any((graph.path / name).exists() for name in _CODES) for graph in (a, b)):
        return GraphWhatIf(diff, not_timed="no-code")
    if diff.equal and not any(match.code for match in diff.kernels) and _compiled_alike(a, b):
        return GraphWhatIf(diff, not_timed="same-code")
    inputs = tuple(
        change.a or change.b or ""
        for change in diff.inputs
        if change.a is None or change.b is None or any(fact.name in _OF_INPUTS for fact in change.facts)
    )
    if inputs:
        return GraphWhatIf(diff, not_timed="inputs-differ", subjects=inputs)
    constants = [
        {fact.name: (fact.sha256, fact.size, fact.stride) for fact in graph.constants or () if fact.in_code}
        for graph in (a, b)
    ]
    if constants[0] != constants[1]:
        names = [name for name, _ in constants[0].items() ^ constants[1].items()]
        return GraphWhatIf(diff, not_timed="constants-differ", subjects=tuple(sorted(set(names))))
    if gpu := missing_gpu(a) or missing_gpu(b):
        return GraphWhatIf(diff, not_timed="no-gpu", subjects=(gpu,))
    return None


def _compiled_alike(a: GraphOnDisk, b: GraphOnDisk) -> bool:
    """Whether the C++ of both is compiled with the same settings: some are not in the text of kernels."""
    from inductor_probe.bench_file.compile_settings import compile_settings
    from inductor_probe.files import read_text

    settings = []
    for graph in (a, b):
        runnable = graph.path / _RUNNABLE
        code = graph.generated.code
        settings.append(code and compile_settings(code, read_text(runnable) if runnable.exists() else None))
    return settings[0] == settings[1]


def _partners(a: GraphOnDisk, b: GraphOnDisk, diff: GraphDiff) -> Iterator[tuple[str, str]]:
    """Yield kernels of B, each with the one of A that does the same work and takes the same arguments."""
    rows_a, rows_b = ({row.name: row for row in kernel_rows(graph.generated)} for graph in (a, b))
    for match in diff.kernels:
        if len(match.a) == len(match.b) == 1 and match.relation in ("same", "changed"):
            row_a, row_b = rows_a.get(match.a[0]), rows_b.get(match.b[0])
            if row_a and row_b and row_a.backend == row_b.backend and len(row_a.args) == len(row_b.args):
                yield match.b[0], match.a[0]
