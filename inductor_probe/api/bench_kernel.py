"""The bench file of a graph with the variants that are asked for, run under one setting after the other."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.api.bench import Bench, WrittenBenchFile
from inductor_probe.api.kernel_check import LIMIT_S, CheckedKernels, check_graph
from inductor_probe.api.own_call import duration_sentence
from inductor_probe.api.session import Graph
from inductor_probe.api.trust import lacks_gpu, require_trust
from inductor_probe.api.verbs import open_graph
from inductor_probe.errors import ProbeError, VariantTextError
from inductor_probe.files import read_text, seen_from
from inductor_probe.model.bench import BenchKernelOutput, BenchSettings
from inductor_probe.options.fields import shared
from inductor_probe.options.kernels import BenchKernelOptions
from inductor_probe.options.verb import Progress, takes
from inductor_probe.report.document import Document, Line
from inductor_probe.report.pages.bench import bench_file_lines, settings_table
from inductor_probe.report.pages.kernel_check import kernel_check_page
from inductor_probe.report.shown import Shown
from inductor_probe.report.units import one_word
from inductor_probe.report.words.bench import next_steps, result_sentence
from inductor_probe.report.words.kernel_check import summary

_DEFINITION = re.compile(r"^(?:def )?(\w+_v\d+)(?: = |\()", re.MULTILINE)


class Benches(Shown, Struct, frozen=True):
    """A bench file, and what came of it: a `Bench` for each setting, or a check where there is no GPU.

    `next` are steps to go on with.
    """

    file: WrittenBenchFile
    benches: tuple[Bench, ...] = ()
    check: CheckedKernels | None = None
    next: tuple[str, ...] = ()

    @property
    def correct(self) -> bool:
        """Whether everything that was run computes what the graph does."""
        return all(bench.correct for bench in self.benches) and (self.check is None or self.check.right)

    @property
    def output(self) -> BenchKernelOutput:
        """What `--json` prints, as a record."""
        results = tuple(bench.result for bench in self.benches)
        sentences = tuple(map(result_sentence, results))
        check = self.check.record if self.check else None
        return BenchKernelOutput(
            file=self.file, results=results, check=check, summary=(summary(check),) if check else sentences
        )

    @property
    def document(self) -> Document:
        """The reports, and how much they depend on the settings; of a file that was not run what is in it."""
        if not self.benches and self.check is None:
            yield from self.file.document
        for number, bench in enumerate(self.benches):
            yield from ([Line()] if number else [])
            yield from bench.document
        yield from self.conclusion

    @property
    def conclusion(self) -> Document:
        """What follows the reports of each setting."""
        if self.check is not None:
            yield from kernel_check_page(self.check.record, timed=False)
        if len(self.benches) > 1:
            yield Line()
            yield from settings_table(tuple(bench.result for bench in self.benches))


@takes(BenchKernelOptions)
def bench_kernel(options: BenchKernelOptions, progress: Progress) -> Benches:
    """Write the bench file of a graph, and run it: this executes the dump's code; see `Graph.bench_kernel`.

    Raises:
        NotFoundError: there is no such graph, kernel or file. ProbeError: the text of a variant does not fit,
            or the code may not run: then nothing was written.
    """
    graph = open_graph(options.target)
    kernel = None if options.kernel is None else graph.kernel(options.kernel).name
    inputs, counts = options.inputs, options.threads or (1,)
    of_one = {"kernel": kernel, "inputs": inputs[0], "threads": counts[0]}
    settings = BenchSettings(**{**shared(options, BenchSettings), **of_one})
    untimed = options.run and lacks_gpu(graph)
    if options.run:  # before anything is written: the refusal of a stranger's dump leaves it as it is
        require_trust(
            graph,
            trust=options.trust,
            imports=settings.imports,
            rewriting=True,
            adding=bool(options.variants),
            launched=not untimed,
        )
    files = _variant_files(options.variants)
    texts = [(name, None if file is None else _variant_text(name, file)) for name, file in files.items()]
    try:
        file = graph.write_bench_file(variants=texts)
    except VariantTextError as error:
        raise ProbeError(f"{files[error.name]}:{error.line}: {error.what}", error.hint) from error
    for line in bench_file_lines(file, seen_from(file.path, Path.cwd())):
        progress.say(line.text)
    if not options.run:
        return Benches(file, next=_edits(graph, file))
    progress.say(f"running it: this executes the code that inductor generated for {graph.name}")
    times = 1 if untimed else len(inputs) * len(counts)
    if sentence := duration_sentence([graph], settings, times):
        progress.say(sentence)
    runs = [
        replace(settings, inputs=values, threads=number, own_threads=number if options.threads else None)
        for values, number in itertools.product(inputs, counts)
    ]
    if untimed:
        checked = check_graph(graph, file, settings, limit=LIMIT_S, trust=options.trust, progress=progress)
        return Benches(file, check=checked)
    benches = []
    for each in runs:
        benches.append(graph.run_bench_file(file, each, trust=options.trust, progress=progress))
        progress.part(benches[-1])
    steps = next_steps(benches[0].result, graph.short_name, _places(file.path), runs[0].budget)
    return Benches(file, tuple(benches), next=tuple(steps))


def _edits(graph: Graph, file: WrittenBenchFile) -> tuple[str, ...]:
    """Return what to do with a file that was only written."""
    name, edit = graph.short_name, list[str]()
    if first := next((f"{kernel}_v2" for kernel in file.kernels), None):
        place = _places(file.path).get(first)
        where = f"{first} ({place})" if place else first
        edit = [f"edit {where}, then {one_word(f'probe bench-kernel {name}')}"]
    return (*edit, f"{one_word(f'probe rewrite {name}')} lists variants that need not be written by hand")


def _places(path: Path) -> dict[str, str]:
    """Return where each variant of a bench file is defined: `output_code_bench.py:97`."""
    text = read_text(path)
    return {
        match[1]: f"{path.name}:{text.count(chr(10), 0, match.start()) + 1}"
        for match in _DEFINITION.finditer(text)
    }


def _variant_files(texts: Sequence[str]) -> dict[str, Path | None]:
    """Read `--variant`: `cpp_fused_0_v3` is a copy; `cpp_fused_0_v3=FILE` has the text of FILE."""
    files: dict[str, Path | None] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        example = "for example --variant cpp_fused_0_v2=kernel.cpp; without =FILE it is a copy to edit"
        if not name:
            raise ProbeError(f"--variant {text} has no name before =", example)
        if equals and not path:
            raise ProbeError(f"--variant {text} has no file after =", example)
        if name in files:
            raise ProbeError(f"--variant {name} is given twice", "name the second one with another number")
        files[name] = Path(path) if equals else None
    return files


def _variant_text(name: str, file: Path) -> str:
    try:
        return read_text(file)
    except ProbeError as error:
        hint = (
            "give a file with the kernel's source, or with NAME = async_compile... as output_code.py has it"
        )
        raise type(error)(f"--variant {name}: {error.message}", hint) from error
