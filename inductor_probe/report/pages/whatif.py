"""What `whatif` shows: the decisions that fell otherwise, whether the result is right, times and verdicts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from inductor_probe.model.bench import OTHER_CODE, BenchResult, Overheads
from inductor_probe.model.diff import RunDiff
from inductor_probe.model.whatif import GraphWhatIf
from inductor_probe.report.document import Block, Heading, Line
from inductor_probe.report.pages.bench import bench_page
from inductor_probe.report.pages.diff import environment_lines, sides_table
from inductor_probe.report.words.bench import result_sentence
from inductor_probe.report.words.diff import headlines, names_words
from inductor_probe.report.words.whatif import NOT_TIMED, same_result

_MOST_CHANGES = 8
_CALLS = {"Compiled call": "A", f"call_v{OTHER_CODE}": "B", "call": "A"}
_KERNEL = re.compile(rf"(?P<kernel>\w+?)(?P<other>_v{OTHER_CODE})?(?P<alone> alone)?(?P<launch> #\d+)?")


def whatif_page(diff: RunDiff, graphs: Sequence[GraphWhatIf], *, details: bool = False) -> Iterator[Block]:
    """Yield what was set otherwise, then each graph: what changed in it, and both sides timed."""
    yield sides_table((diff.label_a, str(diff.a)), (diff.label_b, str(diff.b)))
    yield from environment_lines(diff.environment)
    for graph in graphs:
        yield Line()
        yield Heading((names_words(graph.diff.a.name, graph.diff.b.name), "bold"))
        changes = headlines(graph.diff)
        for sentence in changes[: None if details else _MOST_CHANGES]:
            yield Line(sentence, 2)
        if not details and len(changes) > _MOST_CHANGES:
            yield Line((f"{len(changes) - _MOST_CHANGES} more changes: --details", "dim"), 2)
        if graph.result is None:
            yield Line((whatif_sentence(graph), "bold"))
            continue
        yield Line()
        if text := same_result(graph.result):
            yield Line((text, "green"))
        yield from bench_page(with_sides(graph.result), details=details)
        for side, (path, digest) in zip("AB", graph.ran, strict=True):
            yield Line((f"{side} ran {path} (sha256 {digest[:12]})", "dim"))
        yield Line((f"both are in {graph.file}", "dim"))
    for name in diff.removed:
        yield Line(f"only A has {name}: it was not timed")
    for name in diff.added:
        yield Line(f"only B has {name}: it was not timed")


def whatif_sentence(graph: GraphWhatIf) -> str:
    """Return what was found out about a graph in a sentence, wrong values first."""
    if graph.result is not None:
        return result_sentence(with_sides(graph.result))
    assert graph.not_timed is not None  # noqa: S101 - else there is a result
    return NOT_TIMED[graph.not_timed].format(subjects=", ".join(graph.subjects))


def with_sides(result: BenchResult) -> BenchResult:
    """Return what was measured under names that say whose code it is: `A`, `B`, `k of A`, `k of B`.

    The command of `bench-kernel` in the samples is left out: it would measure A alone.
    """
    kernels = set(result.kernels)
    return replace(
        result,
        command=(),
        comparisons=_renamed(result.comparisons, kernels),
        times=_renamed(result.times, kernels),
        variants=_renamed(result.variants, kernels),
        overheads=_of_side(result.overheads, kernels),
    )


def _of_side(overheads: Overheads | None, kernels: set[str]) -> Overheads | None:
    """Return overheads, which are those of A, under the names of the other tables; kinds keep theirs."""
    if overheads is None:
        return None
    rows = (replace(row, name=_renamed(row.name, kernels)) for row in overheads.rows)
    return replace(overheads, rows=tuple(rows))


def _renamed(value: Any, kernels: set[str]) -> Any:
    """Return a record in which names of what was timed are those of its side, wherever they stand."""
    new = value
    if isinstance(value, str):
        match = _KERNEL.fullmatch(value)
        if value in _CALLS:
            new = _CALLS[value]
        elif match and match["kernel"] in kernels:
            new = f"{match['kernel']} of {'B' if match['other'] else 'A'}{match['launch'] or ''}"
    elif isinstance(value, tuple):
        new = tuple(_renamed(part, kernels) for part in value)
    elif is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        new = replace(value, **{name: _renamed(part, kernels) for name, part in parts.items()})
    return new
