"""What `whatif` shows: the decisions that fell otherwise, whether the result is right, times and verdicts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from inductor_probe.model.bench import CALL, OTHER_CALL, OTHER_CODE, BenchResult
from inductor_probe.model.call_parts import Overheads
from inductor_probe.model.diff import RunDiff
from inductor_probe.model.own_call import NoOwnCall, OwnPair
from inductor_probe.model.timing import Process
from inductor_probe.model.whatif import Candidate, GraphWhatIf, Trial, ranked
from inductor_probe.report.document import Block, Cell, Column, Heading, Line, Picture, Table
from inductor_probe.report.pages.bench import bench_page, renamed, samples_html
from inductor_probe.report.pages.diff import environment_lines, sides_table
from inductor_probe.report.units import counted
from inductor_probe.report.words.bench import result_sentence
from inductor_probe.report.words.diff import decision_lines, headlines, names_words
from inductor_probe.report.words.own_call import how_pair_timed, own_remark, pair_sentence, why_no_own_call
from inductor_probe.report.words.whatif import (
    RANK_WORDS,
    SAME_TEXT,
    not_timed_sentence,
    not_timed_words,
    quotable,
    same_result,
    trial_words,
    trials_sentence,
)

_MOST_CHANGES = 8
_CALLS = {CALL: "A", OTHER_CALL: "B", "call": "A"}
_KERNEL = re.compile(rf"(?P<kernel>\w+?)(?P<other>_v{OTHER_CODE})?(?P<alone> alone)?(?P<launch> #\d+)?")


def whatif_page(
    diff: RunDiff,
    graphs: Sequence[GraphWhatIf],
    candidate: Candidate | None = None,
    *,
    compile_s: Sequence[float | None] = (),
    flips: Sequence[str] = (),
    not_timed_with: Sequence[str] = (),
    samples_of: Callable[[GraphWhatIf], Sequence[Process]] | None = None,
    details: bool = False,
    own: OwnPair | NoOwnCall | None = None,
) -> Iterator[Block]:
    """Yield what was set otherwise, then each graph: what changed in it, and both sides timed.

    `samples_of` reads what was measured of a graph: it is called where a picture can be shown.
    """
    yield sides_table((diff.label_a, str(diff.a)), (diff.label_b, str(diff.b)))
    yield from environment_lines(diff.environment)
    if len(compile_s) == 2 and None not in compile_s:
        a, b = (f"{seconds:.1f} s" for seconds in compile_s)
        yield Line((f"torch compiled A in {a} and B in {b}: once each, with empty caches", "dim"))
    yield from map(Line, flips)
    for graph in graphs:
        yield Line()
        yield Heading((names_words(graph.diff.a.name, graph.diff.b.name), "bold"))
        changes = headlines(replace(graph.diff, decisions=()) if graph.asked else graph.diff)
        if graph.result is not None and graph.diff.equal and not any(one.code for one in graph.diff.kernels):
            changes = (SAME_TEXT,)  # and yet they are other code
        yield from _decisions(graph)
        for sentence in changes[: None if details else _MOST_CHANGES]:
            yield Line(sentence, 2)
        if not details and len(changes) > _MOST_CHANGES:
            yield Line((f"{counted(len(changes) - _MOST_CHANGES, 'more change')}: --details", "dim"), 2)
        if graph.result is None:
            yield Line(not_timed_sentence(graph))
            continue
        yield Line()
        if text := same_result(graph.result):
            yield Line((text, "green"))
        elif any(call.name == "A" for call in graph.wrong_calls):
            yield Heading((f"{quotable(graph, candidate)}.", "bold red"))
        yield from bench_page(with_sides(graph.result), details=details)
        if samples_of is not None:
            yield Picture(partial(_samples_html, graph, samples_of))
        yield from _what_ran(graph)
    yield from _alone(diff)
    if graphs or own:
        yield Line()
    if not_timed_with and graphs:
        yield Line((not_timed_words(not_timed_with), "yellow"))
    for graph in graphs:
        name = f"{graph.diff.a.name}: " if len(graphs) > 1 else ""
        yield Line((f"{name}{quotable(graph, candidate)}", "bold"))
    yield from _own_pair(own)


def _own_pair(own: OwnPair | NoOwnCall | None) -> Iterator[Block]:
    """Say what the call of B takes against that of A, and what each was found to be against eager."""
    if isinstance(own, NoOwnCall):
        yield Line((f"{why_no_own_call(own, 'the calls of both programs')}.", "dim"))
    if not isinstance(own, OwnPair):
        return
    yield Line((f"{pair_sentence(own)}.", "bold"))
    yield Line((f"{how_pair_timed(own)}.", "dim"))
    for side, call in (("A", own.a), ("B", own.b)):
        for remark in call.remarks:
            yield Line([("warning: ", "yellow"), f"{side}: {own_remark(remark)}"])


def _samples_html(graph: GraphWhatIf, samples_of: Callable[[GraphWhatIf], Sequence[Process]]) -> str:
    """Return what was measured as a picture, under the names that say whose code it is."""
    assert graph.result is not None  # noqa: S101 - else there is no picture
    samples = samples_with_sides(samples_of(graph), graph.result)
    return samples_html(with_sides(graph.result), samples)


def _what_ran(graph: GraphWhatIf) -> Iterator[Block]:
    """Say which code each side ran, and what judges the samples again."""
    for side, (path, digest) in zip("AB", graph.ran, strict=True):
        yield Line((f"{side} ran {path} (sha256 {digest[:12]})", "dim"))
    if graph.file:
        yield Line((f"both are in {graph.file}", "dim"))
        yield Line((f"probe verdict {graph.file.with_suffix('.json')} judges the samples again", "dim"))


def _alone(diff: RunDiff) -> Iterator[Block]:
    """Say which graphs have no partner, and what that may mean."""
    for side, names in (("A", diff.removed), ("B", diff.added)):
        for name in names:
            yield Line(f"only {side} has {name}: it was not timed")
    if diff.removed and diff.added:
        yield Line(
            "if the candidate does not explain that, the script may compile something else each time: "
            "dump it twice as it is, and see probe diff"
        )


def _decisions(graph: GraphWhatIf) -> Iterator[Block]:
    """Yield the decisions that were asked for, and then those that fell otherwise as a consequence."""
    if not graph.asked:
        return
    rest = tuple(change for change in graph.diff.decisions if change not in graph.asked)
    for title, changes in (("asked for", graph.asked), ("as a consequence", rest)):
        for sentence in decision_lines(changes):
            yield Line([(f"{title}: ", "cyan"), sentence], 2)


def whatif_sentence(graph: GraphWhatIf, candidate: Candidate | None = None) -> str:
    """Return what was found out about a graph in a sentence, wrong values first."""
    if candidate is not None:
        return quotable(graph, candidate)
    if any(call.name == "A" for call in graph.wrong_calls):
        return f"{quotable(graph, None)}."
    if graph.result is not None:
        return result_sentence(with_sides(graph.result))
    return not_timed_sentence(graph)


def trials_page(
    trials: Sequence[Trial], margin: float = 0.01, threads: int = 1, *, several_graphs: bool = False
) -> Iterator[Block]:
    """Yield a row for each candidate, gains first, and one sentence about all of them.

    `margin` and `threads` are those with which they were timed.
    """
    columns = [
        Column("", fold="never"),
        Column("candidate", fold="words"),
        *([Column("graph", fold="middle", rank=1)] if several_graphs else []),
        Column("time against A", fold="words"),
    ]
    rows: list[list[Cell]] = [
        [
            (RANK_WORDS[trial.rank], _STYLES.get(trial.rank, "")),
            (f"{trial.candidate}{' (together)' if trial.together else ''}", "bold"),
            *([trial.graph or ""] if several_graphs else []),
            trial_words(trial, margin),
        ]
        for trial in ranked(trials)
        if trial.rank != "dropped"
    ]
    yield Table(columns, rows)
    yield Line()
    if dropped := [trial for trial in trials if trial.rank == "dropped"]:
        most = max(trial.at_most or 0.0 for trial in dropped)
        what = f"{counted(len(dropped), 'candidate')} not compiled: what each is about takes at most"
        yield Line((f"{what} {most * 100:.2g} % of the call (--json lists them)", "dim"))
    names = dict.fromkeys(name for trial in trials for name in trial.candidate.not_timed_with)
    if names:
        yield Line((not_timed_words((*names,)), "yellow"))
    yield Line((trials_sentence(trials, margin, threads), "bold"))


_STYLES = {"right": "green", "gain": "green", "loss": "red", "wrong": "bold red", "undecided": "yellow"}


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


def samples_with_sides(samples: Sequence[Process], result: BenchResult) -> tuple[Process, ...]:
    """Return samples under the names of `with_sides`."""
    renamed: tuple[Process, ...] = _renamed(tuple(samples), set(result.kernels))
    return renamed


def _of_side(overheads: Overheads | None, kernels: set[str]) -> Overheads | None:
    """Return overheads, which are those of A, under the names of the other tables; kinds keep theirs."""
    if overheads is None:
        return None
    rows = (replace(row, name=_renamed(row.name, kernels)) for row in overheads.rows)
    return replace(overheads, rows=tuple(rows))


def _renamed(value: Any, kernels: set[str]) -> Any:
    """Return a record in which names of what was timed are those of its side, wherever they stand."""

    def of_side(name: str) -> str:
        match = _KERNEL.fullmatch(name)
        if match and match["kernel"] in kernels:
            return f"{match['kernel']} of {'B' if match['other'] else 'A'}{match['launch'] or ''}"
        return _CALLS.get(name, name)

    return renamed(value, of_side)
