"""One pass over the corpus of real dumps: each is read once, and asked for all that holds of any dump."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductor_probe.analysis.links import links
from inductor_probe.reader.debug_dir import graph_dir
from tests.analysis import test_annotate, test_kernel_fx, test_kernels, test_layout_remarks, test_links
from tests.dumps import read_at
from tests.reader import test_lossless


@pytest.mark.takes(30)
def test_what_holds_of_any_dump_holds_of_the_corpus(corpus: Path) -> None:
    graphs = listed = remarks = 0
    wrong: list[str] = []
    for folder in sorted(corpus.glob("*/*/torch_compile_debug/run_*/torchinductor/*")):
        if graph_dir(folder) is None:
            continue
        graph = read_at(folder)
        graphs += 1
        test_lossless.assert_all_is_read(folder, graph)
        if graph.code is None:
            continue
        linked = links(graph)
        test_annotate.check(graph)
        test_kernels.check(graph)
        remarks += test_layout_remarks.check_graph(graph)
        listed += len(test_kernel_fx.listed_pairs(folder))
        wrong += [f"{folder}: {text}" for text in test_links.disagreements(graph, linked)]
        wrong += [f"{folder}: {pair} is missing" for pair in sorted(test_kernel_fx.missing(folder, graph))]
        wrong += [f"{folder}: {text}" for text in test_kernel_fx.contradictions(graph, linked)]
        wrong += [f"{folder}: {text}" for text in test_kernel_fx.unproved(graph, linked)]
    assert wrong == []
    assert graphs > 330
    assert listed > 5500
    assert remarks > 100
