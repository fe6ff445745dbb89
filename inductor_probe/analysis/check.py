"""Whether everything of a graph is there, read and linked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from inductor_probe.analysis.completeness.files import check_files
from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.links import links
from inductor_probe.model.check import GraphCheck
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.links import Links
from inductor_probe.model.remark import Remark, Subject
from inductor_probe.model.span import Problem, Span


def check_graph(graph: CompiledGraph, texts: Mapping[str, str], unopened: Sequence[Path] = ()) -> GraphCheck:
    """Count what was read of `graph`, and list what is missing, damaged, unknown or unlinked.

    Args:
        graph: read with everything in it.
        texts: of its files, by name; of a file that is not among them the lines are only counted.
        unopened: files in its folder that nothing reads.
    """
    linked = links(graph)
    checked = check_files(graph, texts)
    # Without a wrapper nothing can be linked, and what is wrong with it is told anyhow.
    unlinked = tuple(link.node for link in linked.unlinked) if graph.code and graph.code.entry else ()
    return GraphCheck(
        graph=graph.folder.path,
        nodes=len(index_of(graph).nodes.leaves),
        kernels=len(graph.code.kernels) if graph.code else 0,
        launches=len(graph.code.launches) if graph.code else 0,
        files=checked.files,
        unopened=tuple(unopened),
        unlinked=unlinked,
        remarks=tuple(_remarks(graph, linked)),
        problems=tuple(
            dict.fromkeys([*graph.problems, *_unknown_fields(graph), *_unfinished(graph), *checked.problems])
        ),
    )


def _remarks(graph: CompiledGraph, linked: Links) -> Iterator[Remark]:
    """Torch writes the IR files once for each subgraph, into the same place: the last one remains."""
    if graph.code is None or not graph.code.functions:
        return
    run = {link.kernel for link in linked.nodes.values()}
    run.update(name for link in linked.nodes.values() for name in link.kernel_candidates)
    without = [launch.kernel for launch in graph.code.launches if launch.kernel not in run]
    if without:
        yield Remark(
            "kernels-without-ir",
            "analysis",
            Subject("graph", graph.name),
            (("kernels", len(set(without))),),
            evidence=tuple(launch.span for launch in graph.code.launches if launch.kernel in without),
            knowledge="read",
        )


def _unknown_fields(graph: CompiledGraph) -> Iterator[Problem]:
    """A field of the IR that this version of the reader has no attribute for: kept, but not understood."""
    for top in graph.nodes:
        for node in (top, *top.leaves()) if top.children else (top,):
            for key, value in node.fields:
                yield Problem(f"unknown field {node.name}.{key} = {value[:60]}", _first_line(node.span))


def _first_line(span: Span | None) -> Span | None:
    return Span(span.path, span.first, span.first) if span else None


def _unfinished(graph: CompiledGraph) -> Iterator[Problem]:
    """A compile that was stopped leaves files that end early without a trace in them."""
    if graph.record and not graph.record.finished:
        yield Problem(f"{graph.folder.path}: its compile did not come to its end")
    for name in _FX_FILES:
        if _missing(graph, name):
            yield Problem(f"{graph.folder.path / name} does not exist")
    if graph.pre and not graph.post and not _missing(graph, "ir_post_fusion.txt"):
        path = graph.folder.path / "ir_post_fusion.txt"
        yield Problem("no node after fusion, though there are some before it", Span(path, 1, 1))
    if graph.code is None or graph.code.entry is None:
        return
    runs = any(leaf.body or leaf.kernel for leaf in index_of(graph).nodes.leaves)
    if runs and not graph.code.launches and not graph.code.externs:
        path = graph.folder.path / "output_code.py"
        yield Problem("the wrapper launches nothing, though there are nodes to run", Span(path, 1, 1))


# The reader is content with one of them.
_FX_FILES = ("fx_graph_readable.py", "fx_graph_transformed.py")


def _missing(graph: CompiledGraph, name: str) -> bool:
    return all(file.path.name != name for file in graph.files)
