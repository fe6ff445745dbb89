"""Why: the decisions about a subject, each with its evidence and what turns it; the ledger of a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from inductor_probe.model.cause import Cause, GraphCauses
from inductor_probe.model.span import own_lines
from inductor_probe.report.document import (
    Block,
    Cell,
    Column,
    Facts,
    Heading,
    Inline,
    Line,
    RemarkLine,
    Table,
    apart,
    place,
    source_text,
)
from inductor_probe.report.units import bytes_text, counted, duration, first_names, shorten
from inductor_probe.report.words.causes.sentences import (
    change_text,
    kind_words,
    operand_texts,
    place_text,
    sentence,
    short_cause,
    short_setting,
)
from inductor_probe.report.words.remarks import sentence as remark_sentence

_MOST_PAGES = 5
"""Decisions about a subject that are shown with their evidence; further ones are rows of a table."""
_MOST_ROWS = 30
_MOST_NAME = 40
_MOST_CALLERS = 3
_MOST_LINES = 3
_SIGNS = {"missed": ("missed", "bold red"), "hazard": ("hazard", "bold red"), "passed": ("passed", "green")}


def why_pages(rows: Sequence[GraphCauses], *, everything: bool = False) -> Iterator[Block]:
    """Yield an answer for each graph; with `everything` lists to their end."""
    yield from apart(_page(row, everything, alone=len(rows) == 1) for row in rows)


def _page(row: GraphCauses, everything: bool, *, alone: bool) -> Iterator[Block]:
    if not row.asked:
        yield from _ledger(row, everything)
        return
    if not alone:
        yield Heading((row.graph, "bold"))
    if not row.causes:
        yield Line(nothing_text(row))
    shown = row.causes if everything else _first(row)
    groups: dict[object, list[Cause]] = {}
    for cause in shown:
        groups.setdefault((cause.nodes, cause.kernels, cause.fx, cause.knowledge), []).append(cause)
    yield from apart(map(_group, groups.values()))
    if rest := [cause for cause in row.causes if cause not in shown]:
        yield Line()
        yield Line((f"{counted(len(rest), 'further decision')}:", "bold"))
        yield _table(rest, everything)
    yield from _missing(row)


def nothing_text(row: GraphCauses) -> str:
    """Say that nothing was decided about a subject, and what was looked for."""
    names = " and ".join(subject.name for subject in row.asked) or row.graph
    looked_for = [kind for kind in row.looked_for if kind in row.recorded]
    kinds = ", ".join(map(kind_words, looked_for))
    tried = (
        f"; {counted(row.tried, 'attempt')} {'was' if row.tried == 1 else 'were'} not kept"
        if row.tried
        else ""
    )
    if not looked_for:
        return f"nothing is recorded about {names}{tried}"
    return f"nothing was decided about {names}: looked for {kinds}{tried}"


def _first(row: GraphCauses) -> Sequence[Cause]:
    """Return the decisions that are shown whole: those about the subject itself, and what was missed."""
    names = {subject.name for subject in row.asked}
    first = [
        cause
        for cause in row.causes
        if cause.kind in ("missed", "hazard")
        or any(subject.name in names or names & {*subject.name.split("_")} for subject in cause.subjects)
    ]
    return (first or row.causes)[:_MOST_PAGES]


def _group(causes: Sequence[Cause]) -> Iterator[Block]:
    """Yield decisions about the same nodes: what each rests on, what changes it, and then the nodes."""
    for cause in causes:
        about = "" if cause.decision is not None else f"{cause.subjects[0].name}: "
        yield RemarkLine(cause.kind, f"{about}{cause_sentence(cause)}")
        yield Facts([*_facts(cause), *_changes(cause)])
    yield Facts(_nodes(causes))


def cause_sentence(cause: Cause) -> str:
    """Return what was decided, and why; of what was not recorded, what the dump shows."""
    if cause.decision is not None:
        return sentence(cause.decision, [subject.name for subject in cause.subjects])
    return remark_sentence(cause.remark, cause.subjects[0].name) if cause.remark else ""


def _facts(cause: Cause) -> Iterator[tuple[str, Inline]]:
    decision = cause.decision
    if decision is None:
        yield "known", f"{cause.knowledge} in the dump, which does not record the decision"
        return
    yield "compared", ", ".join(operand_texts(decision))
    yield "decided in", place_text(decision)
    yield "called by", " < ".join(frame.function for frame in decision.stack[:_MOST_CALLERS])
    yield "asked", f"{decision.times} times; the last answer counts" if decision.times > 1 else ""


def _nodes(causes: Sequence[Cause]) -> Iterator[tuple[str, Inline]]:
    """Yield what decisions about the same nodes have in common."""
    first = causes[0]
    yield "at stake", ", ".join(dict.fromkeys(filter(None, map(_stake, causes))))
    yield "kernel", ", ".join(dict.fromkeys(filter(None, map(_kernels, causes))))
    yield "FX nodes", first_names(first.fx, 6)
    places = dict.fromkeys(place(span) for cause in causes for span in cause.evidence)
    yield "dump", first_names(tuple(places), _MOST_LINES)
    lines = [source_text(line) for line in own_lines(first.sources)]
    more = [f"and {len(lines) - _MOST_LINES} more lines"] if len(lines) > _MOST_LINES else []
    yield "from", "\n".join([*lines[:_MOST_LINES], *more])


def _changes(cause: Cause) -> Iterator[tuple[str, Inline]]:
    for number, change in enumerate(cause.changes):
        if cause.decision is not None:
            yield "or by" if number else "changed by", change_text(change, cause.decision)


def _stake(cause: Cause) -> str:
    parts = [duration(cause.seconds) if cause.seconds is not None else ""]
    if cause.cost is not None:
        shared = len(cause.subjects) == 2 and cause.decision is not None and len(cause.decision.subjects) == 2
        parts.append(f"{bytes_text(cause.cost)} {'used by both' if shared else 'read and written'}")
    return ", ".join(filter(None, parts))


def _kernels(cause: Cause) -> str:
    names = first_names([shorten(name, 60) for name in cause.kernels], 3)
    return f"{names}, loop nest {cause.nest}" if cause.nest is not None else names


def _ledger(row: GraphCauses, everything: bool) -> Iterator[Block]:
    counts = Counter(cause.kind for cause in row.causes)
    parts = [f"{counts[kind]} {kind}" for kind in ("hazard", "missed", "analysis", "passed") if counts[kind]]
    total = counted(len(row.causes), "decision") + (f" ({', '.join(parts)})" if parts else "")
    tried = f", {row.tried} tried and not kept" if row.tried else ""
    yield Heading([(row.graph, "bold"), f"  {total}{tried}"])
    if row.causes:
        yield _table(row.causes, everything)
    else:
        yield Line(nothing_text(row), 2)
    yield from _missing(row)


@dataclass(frozen=True, slots=True)
class _Folded:
    """Decisions that read alike: the weightiest, whom all are about, the bytes and times of them all."""

    cause: Cause
    about: tuple[str, ...]
    cost: int | None
    seconds: float | None


def _fold(causes: Iterable[Cause]) -> list[_Folded]:
    """Fold decisions of one text, as the values of a formula and the layers of a network have them.

    What is at stake counts once for the same nodes: `inlined: a single user` of ten values of op1 is what op1
    moves.
    """
    groups: dict[object, list[Cause]] = {}
    for cause in causes:
        groups.setdefault((cause.kind, cause.topic, row_text(cause)), []).append(cause)
    folded = []
    for members in groups.values():
        distinct = {member.nodes or member.subjects: member for member in members}.values()
        costs = [member.cost for member in distinct if member.cost is not None]
        times = [member.seconds for member in distinct if member.seconds is not None]
        about = tuple(" + ".join(subject.name for subject in member.subjects[:2]) for member in members)
        folded.append(
            _Folded(members[0], about, sum(costs) if costs else None, sum(times) if times else None)
        )
    return folded


_COLUMNS = (
    Column("", fold="never"),
    Column("about", fold="middle", least=14),
    Column("kind", fold="never", rank=2),
    Column("decision", most=60),
    Column("bytes", right=True, fold="never"),
    Column("time", right=True, fold="never"),
    Column("changed by", most=44, rank=1),
)


def _table(causes: Sequence[Cause], everything: bool) -> Table:
    rows: list[list[Cell]] = []
    for row in _fold(causes):
        cause = row.cause
        setting = next((change.setting for change in cause.changes if change.setting), None)
        others = f" +{len(row.about) - 1}" if len(row.about) > 1 else ""
        rows.append(
            [
                _SIGNS.get(cause.kind, (cause.kind, "dim")),
                (f"{shorten(row.about[0], _MOST_NAME)}{others}", "bold"),
                kind_words(cause.topic) if cause.topic else "not recorded",
                row_text(cause),
                bytes_text(row.cost) if row.cost is not None else "-",
                duration(row.seconds) if row.seconds is not None else "-",
                short_setting(setting) if setting else "source" if cause.changes else "-",
            ]
        )
    shown = [index for index in range(len(_COLUMNS)) if index < 5 or any(line[index] != "-" for line in rows)]
    return Table(
        [_COLUMNS[index] for index in shown],
        [[line[index] for index in shown] for line in rows],
        most=None if everything else _MOST_ROWS,
        more="--all shows all of them, --kind those of a kind",
    )


def row_text(cause: Cause) -> str:
    """`scalar: inner range 3 < 16/4 with 2 operations`; what is not recorded says how it is known."""
    decision = cause.decision
    if decision is None:
        return f"{cause_sentence(cause)} ({cause.knowledge})"
    return f"{decision.outcome}: {short_cause(decision)}"


def decision_lines(causes: Sequence[Cause], name: str) -> Iterator[Block]:
    """Yield what was decided about a node or buffer, a line each, and where the rest of it is."""
    for cause in causes[:_MOST_PAGES]:
        yield RemarkLine(cause.kind, cause_sentence(cause))
    if causes:
        more = f"{len(causes) - _MOST_PAGES} more decisions, " if len(causes) > _MOST_PAGES else ""
        yield Line((f"probe why {name} shows {more}what was compared, and what changes it", "dim"), 2)


def _missing(row: GraphCauses) -> Iterator[Block]:
    """Yield what this dump does not record, and how to get it."""
    missing = [kind for kind in row.looked_for if kind not in row.recorded]
    if not missing:
        return
    kinds = ", ".join(map(kind_words, missing))
    how = "`probe dump SCRIPT` of this version records what torch decides, and why"
    if row.recorded:
        how = "by the version of probe that made it, or on its torch"
    yield Line((f"not recorded in this dump: {kinds} ({how})", "dim"))
    if not row.recorded:
        yield Line(("probe kernels, probe fusion and probe layouts show what the dump itself proves", "dim"))
