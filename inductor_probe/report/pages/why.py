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
    stack_texts,
)
from inductor_probe.report.words.remarks import sentence as remark_sentence

_MOST_PAGES = 4
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
    shown = row.causes if everything else row.causes[:_MOST_PAGES]
    yield from apart(_cause(cause, row) for cause in shown)
    if rest := row.causes[len(shown) :]:
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


def _cause(cause: Cause, row: GraphCauses) -> Iterator[Block]:
    """Yield a decision: the sentence, then what it rests on, then what changes it."""
    yield RemarkLine(cause.kind, cause_sentence(cause))
    yield Facts([*_facts(cause), *_changes(cause)])


def cause_sentence(cause: Cause) -> str:
    """Return what was decided, and why; of what was not recorded, what the dump shows."""
    if cause.decision is not None:
        return sentence(cause.decision, [subject.name for subject in cause.subjects])
    return remark_sentence(cause.remark) if cause.remark else ""


def _facts(cause: Cause) -> Iterator[tuple[str, Inline]]:
    decision = cause.decision
    if decision is not None:
        yield "compared", ", ".join(operand_texts(decision))
        yield "decided in", place_text(decision)
        callers = list(stack_texts(decision))[:_MOST_CALLERS]
        yield "called by", "\n".join(callers)
        yield "asked", f"{decision.times} times; the last answer counts" if decision.times > 1 else ""
    else:
        yield "known", f"{cause.knowledge} in the dump, which does not record the decision"
    yield "at stake", _stake(cause)
    yield "kernel", _kernels(cause)
    yield "FX nodes", first_names(cause.fx, 6)
    yield "dump", ", ".join(place(span) for span in cause.evidence[:_MOST_LINES])
    lines = [source_text(line) for line in own_lines(cause.sources)]
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
    """Decisions that differ in their subjects alone: what is in common, whom they are about, the sums."""

    cause: Cause
    about: tuple[str, ...]
    cost: int | None
    seconds: float | None


def _fold(causes: Iterable[Cause]) -> list[_Folded]:
    """Fold decisions of equal cause and operands, as the layers of a network have them."""
    groups: dict[object, list[Cause]] = {}
    for cause in causes:
        decision = cause.decision
        key: object = cause.remark
        if decision is not None:
            key = (decision.kind, decision.outcome, decision.cause, decision.operands)
        groups.setdefault(key, []).append(cause)
    folded = []
    for members in groups.values():
        costs = [member.cost for member in members if member.cost is not None]
        times = [member.seconds for member in members if member.seconds is not None]
        about = tuple(" + ".join(subject.name for subject in member.subjects[:2]) for member in members)
        folded.append(
            _Folded(members[0], about, sum(costs) if costs else None, sum(times) if times else None)
        )
    return folded


_COLUMNS = (
    Column("", fold="never"),
    Column("about", fold="middle", least=14),
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
                row_text(cause),
                bytes_text(row.cost) if row.cost is not None else "-",
                duration(row.seconds) if row.seconds is not None else "-",
                short_setting(setting) if setting else "source" if cause.changes else "-",
            ]
        )
    shown = [index for index in range(len(_COLUMNS)) if index < 4 or any(line[index] != "-" for line in rows)]
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
