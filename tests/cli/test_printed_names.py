"""Every name that a verb prints is taken by every verb that takes names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import inductor_probe as ip
from inductor_probe.cli.parameters import resolve
from inductor_probe.errors import NotFoundError, ProbeError, UnreadableError
from inductor_probe.report.document import Document, Table
from inductor_probe.report.shown import Shown
from inductor_probe.report.terminal import to_text
from tests.conftest import all_graph_dirs

NAME = re.compile(
    r"""(?<![\w./…-])(?:
      (?:op|buf)\d+(?:_(?:op|buf)\d+)*(?![\w.(=…])
    | (?:op|buf)[\d_opbuf]*…[\d_opbuf]*\d(?![\w.…])
    | (?:arg|primals|tangents)_?\d+(?:_\d+)?(?![\w.])
    | (?:cpp|triton)_[\w…]*_\d+(?![\w.…])
    | extern_kernels\.\w+
    | (?:aten|prims)\.\w+(?:\.\w+)?(?![\w.…])
    | (?:…/?)?[\w/]+\.py:\d+
    )""",
    re.VERBOSE,
)
"""Nodes, buffers, kernels, operators and lines, whole or with an ellipsis for what had no room."""
GENERATED = re.compile(r"(?:output_code|fx_graph_\w+)\.py:\d+")
"""Places in a dump, which are no lines of the user's."""
TAKES: dict[str, Callable[[ip.Graph, str], object]] = {
    "show": lambda graph, name: graph.show(name),
    "why": lambda graph, name: graph.why(name),
    "layouts": lambda graph, name: graph.layouts(name),
    "fusion": lambda graph, name: graph.fusion(name),
    "expect": lambda graph, name: graph.expect(vectorised=name),
    "KERNEL": lambda graph, name: graph.kernel(name),  # of asm, export-cpp, bench-kernel --kernel, ...
}
SAMPLE = 3


def printed(graph: ip.Graph) -> Iterator[Shown]:
    """Yield what the verbs that read a graph show of it, without a name."""
    yield from (graph.show(), graph.nodes(), graph.nodes(pre=True), graph.kernels(), graph.layouts())
    yield from (graph.fusion(), graph.why(), graph.tunings())
    try:
        yield graph.rewrites()
    except UnreadableError:  # a wrapper in C++ that is not put as Python
        return


def names_of(graph: ip.Graph) -> Iterator[str]:
    """Yield the names that verbs print of a graph in a pipe and, shortened, in 80 columns; first FX nodes."""
    for view in printed(graph):
        yield from NAME.findall(to_text(view.document, 10_000))
        # A whole name may go on in the next line there: `false_graph_0`, `op0`.
        yield from (name for name in NAME.findall(to_text(view.document, 80)) if "…" in name)
        yield from (text for text in about(view.document) if " + " not in text)
    yield from (node.name for node in (graph.compiled.fx.nodes if graph.compiled.fx else ())[:5])


def about(document: Document) -> Iterator[str]:
    """Yield whom rows of the ledger are about, with what stands behind the name: `op10 +3`."""
    for block in document:
        if isinstance(block, Table) and [column.title for column in block.columns[1:2]] == ["about"]:
            cells = (row[1] for row in block.rows)
            yield from (str(cell[0] if isinstance(cell, tuple) else cell) for cell in cells)


def refusals(graph: ip.Graph) -> Iterator[str]:
    """Yield each name that a verb prints and another does not know, or knows no verb for."""
    for name in dict.fromkeys(names_of(graph)):
        if GENERATED.search(name) or name == graph.name:
            continue
        for verb, take in TAKES.items():
            try:
                take(graph, name)
            except NotFoundError as error:
                if "probe " not in (error.hint or ""):
                    yield f"{graph.path.parents[2].name}/{graph.name}: {verb} {name}: {error.message}"
            except ProbeError as error:  # several fit, which are named
                if not error.hint:
                    yield f"{graph.path.parents[2].name}/{graph.name}: {verb} {name}: {error.message}"


@pytest.mark.parametrize("part", range(SAMPLE))
def test_every_name_that_is_printed_is_taken(part: int) -> None:
    graphs = all_graph_dirs()[part::SAMPLE]
    assert graphs
    assert [refusal for folder in graphs for refusal in refusals(ip.open_graph(folder))] == []


def test_every_name_that_is_printed_of_the_corpus_is_taken(corpus: Path) -> None:
    folders = sorted(path.parent for path in corpus.rglob("output_code.py"))[::40]
    assert folders
    assert [refusal for folder in folders for refusal in refusals(ip.open_graph(folder))] == []


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["op10", "+3"], ("op10", None)),
        (["op10 +3 (largest)"], ("op10 +3 (largest)", None)),  # which the resolver takes
        (["op10", "+3", "(largest)"], ("op10", None)),
        (["op3", "+", "op4"], ("op3", "op4")),
        (["op3 + op4 +2"], ("op3", "op4 +2")),
    ],
)
def test_a_row_of_the_ledger_is_a_name_or_a_pair(words: Sequence[str], names: tuple[str, ...]) -> None:
    assert resolve(words, 2, lambda *reading: reading) == (*names, None)
